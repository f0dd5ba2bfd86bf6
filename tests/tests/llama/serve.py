"""llama.cpp's own HTTP server, by its Python bindings: `serve.py --model FILE --port PORT`."""

import sys
import time

import xllamacpp


def argument(name):
    return sys.argv[sys.argv.index(name) + 1]


parameters = xllamacpp.CommonParams()
parameters.model.path = argument("--model")
parameters.port = int(argument("--port"))
parameters.n_ctx = 512
server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
while True:
    time.sleep(3600)
