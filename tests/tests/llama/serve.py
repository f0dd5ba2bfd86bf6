"""llama.cpp's own HTTP server, by its Python bindings: `serve.py --model FILE --port PORT [--emulated]`."""

import sys
import time

import xllamacpp


def argument(name):
    return sys.argv[sys.argv.index(name) + 1]


parameters = xllamacpp.CommonParams()
parameters.model.path = argument("--model")
parameters.port = int(argument("--port"))
parameters.n_ctx = 512
if "--emulated" in sys.argv:
    # Where a token takes seconds and the CPUs share one: nothing is tried out before, and no thread waits for another.
    parameters.warmup = False
    parameters.fit_params = False
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = 1
    parameters.cpuparams.poll = 0
server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
while True:
    time.sleep(3600)
