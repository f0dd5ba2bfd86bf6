#!/bin/sh
# The guest's first process: mounts what a Linux has, then runs the commands that the host sends.
#
# Three virtio ports lead to the host: "out" and "err" carry what a command prints, byte for byte,
# "control" its text (base64, one line) and its exit status. The kernel's console is none of them.

export PATH=/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin HOME=/root TERM=dumb
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t tmpfs tmp /tmp
mount -t tmpfs run /run
mount -t tracefs trace /sys/kernel/tracing
mount -t bpf bpf /sys/fs/bpf
mount -t cgroup2 cgroup /sys/fs/cgroup
ip link set lo up

for module in /lib/guest-modules/*.ko; do
    [ -e "$module" ] && { insmod "$module" || echo "cannot load $module"; }
done

# Prints the device of the port of this name. Ports appear a little after their driver.
port() {
    tries=0
    while [ "$tries" -lt 500 ]; do
        for dir in /sys/class/virtio-ports/*; do
            # No subshell: a fork takes milliseconds under emulation.
            [ -e "$dir/name" ] && read -r name <"$dir/name"
            if [ "$name" = "$1" ] && [ -c "/dev/${dir##*/}" ]; then
                echo "/dev/${dir##*/}"
                return
            fi
        done
        tries=$((tries + 1))
        sleep 0.01
    done
    echo "no virtio port $1" >/dev/console
    poweroff -f
}

if [ -e /etc/disk ]; then
    mkdir -p /disk
    tries=0
    until [ -b /dev/vda ] || [ "$tries" -ge 500 ]; do
        tries=$((tries + 1))
        sleep 0.01
    done
    mount -t ext4 /dev/vda /disk || poweroff -f
fi

# A port can be opened once only, but /dev/stdout and /dev/stderr are opened by many a script:
# commands get a pipe instead, and cat carries it over.
mkfifo /run/out /run/err
cat /run/out >"$(port out)" &
cat /run/err >"$(port err)" &
exec 5<>"$(port control)" 6>/run/out 7>/run/err

read -r token </etc/token
cd /tmp || poweroff -f
echo ready >&5
while :; do
    # Nothing to read means that the host hasn't opened its end yet.
    read -r request <&5 || { sleep 0.01; continue; }
    echo "$request" | base64 -d >/run/command
    sh /run/command </dev/null >&6 2>&7 5>&- 6>&- 7>&-
    status=$?
    # Behind the last byte of the command, and in the same pipe: so the host knows that it has all.
    printf %s "$token" >&6
    printf %s "$token" >&7
    echo "$status" >&5
done
