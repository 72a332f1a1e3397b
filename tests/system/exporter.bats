#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# elastic-exporter among clients that want to keep Prometheus away. No Slurm: a script takes the
# place of `selastic exporter --once`.
# Takes 30 s

load helpers

setup() {
    ((UID == 0)) || skip "needs root, for clients of another user"
    DIR=$(mktemp -d)
    pids=()
    PORT=$(free_port)
    printf '#!/bin/sh\necho "one 1"\n' >"$DIR/selastic"
    chmod 0755 "$DIR" "$DIR/selastic"
    "$prefix/libexec/slurm-elastic/elastic-exporter" "$DIR/selastic" "$PORT" 127.0.0.1 50 2 5 \
        >"$DIR/out" 2>"$DIR/err" 3>&- &
    pids+=($!)
    wait_for 20 scrape
}

teardown() {
    local pid
    for pid in "${pids[@]}"; do
        kill "$pid" 2>/dev/null || true
    done
    for pid in "${pids[@]}"; do
        wait "$pid" 2>/dev/null || true
    done
    rm -rf "$DIR"
}

scrape() { curl -s -m 20 "http://127.0.0.1:$PORT/metrics" | grep -qx 'one 1'; }

# hold COUNT: a stranger's connections, a byte of a request each second. Says what has become of them.
hold() {
    setpriv --reuid=65534 --regid=65534 --clear-groups -- /usr/bin/python3 - "$PORT" "$1" "$2" <<'PY' &
import select, socket, sys, time
port, count, seconds = map(int, sys.argv[1:])
links, begun = [], time.monotonic()
for _ in range(count):
    links.append(socket.create_connection(("127.0.0.1", port)))
    links[-1].sendall(b"GET /metrics?")
print("held", flush=True)
while time.monotonic() < begun + seconds and links:
    time.sleep(1)
    for link in links[:]:
        try:
            if select.select([link], [], [], 0)[0] and not link.recv(100):
                raise ConnectionError
            link.sendall(b"x")
        except OSError:
            links.remove(link)
print(len(links), "left", flush=True)
PY
    pids+=($!)
}

@test "a stranger's hundred connections leave a place for Prometheus" {
    hold 100 600 >"$DIR/held" 2>&1 3>&-
    wait_for 20 grep -q held "$DIR/held"
    for _ in 1 2 3 4 5; do
        scrape
    done
}

# A look whose end nobody hears of: another process traces it, and does not wait for it.
immortal() {
    cat >"$DIR/selastic.new" <<'PY'
#!/usr/bin/python3
import ctypes, os, signal, sys, time
libc = ctypes.CDLL(None)
libc.ptrace.argtypes = [ctypes.c_long] * 4
libc.prctl(0x59616D61, -1, 0, 0, 0)
ready, begun = os.pipe()
parent = os.getpid()
if os.fork() == 0:
    os.dup2(os.open("/dev/null", os.O_RDWR), 1)
    failed = libc.ptrace(0x4206, parent, 0, 0)
    with open(sys.argv[0] + ".tracer", "w") as file:
        print("failed" if failed else os.getpid(), file=file)
    os.write(begun, b"x")
    time.sleep(600)
    os._exit(0)
os.read(ready, 1)
time.sleep(600)
PY
    chmod 0755 "$DIR/selastic.new"
    mv "$DIR/selastic.new" "$DIR/selastic"
}

has() { curl -s -m 20 "http://127.0.0.1:$PORT/metrics" | grep -qx "$1"; }

@test "a look that cannot be ended leaves no old numbers" {
    has 'elastic_exporter_success 1'
    immortal
    wait_for 20 test -s "$DIR/selastic.tracer"
    tracer=$(cat "$DIR/selastic.tracer")
    [[ $tracer != failed ]]
    pids+=("$tracer")
    wait_for 20 has 'elastic_exporter_success 0'
    run -1 scrape
    grep -q 'a look cannot be ended' "$DIR/err"
    # Once it is gone, looks go on.
    printf '#!/bin/sh\necho "one 1"\n' >"$DIR/selastic.new"
    chmod 0755 "$DIR/selastic.new"
    mv "$DIR/selastic.new" "$DIR/selastic"
    kill -KILL "$tracer"
    wait_for 20 scrape
    has 'elastic_exporter_success 1'
    # Nor does one hold the end.
    rm "$DIR/selastic.tracer"
    immortal
    wait_for 20 test -s "$DIR/selastic.tracer"
    pids+=("$(cat "$DIR/selastic.tracer")")
    kill "${pids[0]}"
    wait "${pids[0]}"
}

# Their own user has no limit on connections.
@test "forty scrapes at a time share one text" {
    local kb
    printf '#!/bin/sh\necho "one 1"\nhead -c 20000000 /dev/zero | tr "\\0" x\necho\n' >"$DIR/new"
    chmod 0755 "$DIR/new"
    mv "$DIR/new" "$DIR/selastic"
    wait_for 20 eval '(($(curl -s -m 20 "http://127.0.0.1:$PORT/metrics" | wc -c) > 20000000))'
    # Each has the begin of its answer, and leaves the rest there.
    run -0 timeout 100 /usr/bin/python3 - "$PORT" <<'PY'
import socket, sys
links = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(40)]
for link in links:
    link.sendall(b"GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n")
print(sum(link.recv(12) == b"HTTP/1.1 200" for link in links))
PY
    [[ $output == 40 ]]
    kb=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/${pids[0]}/status")
    echo "# $kb KB" >&3
    # Three texts, as a new one is made while the old one is still sent; not forty.
    ((kb < 300000))
}

@test "a client that is slow is cut off" {
    hold 3 600 >"$DIR/held" 2>&1 3>&-
    wait_for 40 grep -qx '0 left' "$DIR/held"
    scrape
}
