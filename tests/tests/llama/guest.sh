# In a guest with a GPU on node 1 and the engine and its model on /disk: a server whose weights another program read on
# node 0, and the same one launched after the page cache was dropped. Of each: where the kernel says that the weights lie,
# what `numawatch check` says, and its status, as JSON.

model=/disk/model.gguf
export LD_LIBRARY_PATH=/disk/lib PYTHONHOME=/disk PYTHONPATH=/disk/modules PYTHONDONTWRITEBYTECODE=1
mkdir -p /lib64 && ln -s /disk/lib/ld-linux-x86-64.so.2 /lib64/ || exit

# Where the server's weights lie.
weights() { grep -F "file=$model" "/proc/$server/numa_maps"; }

# Starts the server by the command given, with the GPU open, and checks it once it has mapped its weights: it decodes its
# first tokens then, which takes half a minute here.
serve_and_check() {
    "$@" sh -c 'exec 9<>/dev/dri/renderD128; exec "$@"' sh \
        /disk/python -S /disk/serve.py --model "$model" --port 8080 --emulated >/tmp/server.log 2>&1 &
    server=$!
    until mapped=$(weights); do
        lives
        sleep 1
    done
    # Being mapped, and rid of what isn't weights.
    until sleep 2 && [ "$mapped" = "$(weights)" ]; do mapped=$(weights); done
    echo "\"$mapped\""
    numawatch check --json --for 1s --pid "$server"
    echo "$?"
}

lives() { kill -0 "$server" 2>/dev/null || { cat /tmp/server.log >&2; exit 1; }; }

taskset 1 cat "$model" >/dev/null
serve_and_check env
kill -9 "$server"
wait "$server"
sync
echo 1 >/proc/sys/vm/drop_caches
serve_and_check numawatch launch --gpu 0 --
# It is no server that doesn't serve.
until wget -q -O /dev/null http://127.0.0.1:8080/health 2>/dev/null; do
    lives
    sleep 1
done
