#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# A real haproxy with what lib/haproxy_text says: routes are switched and a replica is replaced while
# requests come, and none fails. No Slurm.

load helpers

setup() {
    DIR=$(mktemp -d)
    ROUTER=${top_builddir:-$TREE/build}/tests/system/router
    pids=()
}

teardown() {
    local pid

    for pid in "${pids[@]}"; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    rm -rf "$DIR"
}

# begin COMMAND...: in the background, until the test ends.
begin() {
    "$@" >"$DIR/${1##*/}-${#pids[@]}.log" 2>&1 3>&- &
    pids+=($!)
}

# replica NAME MODEL...
replica() {
    begin python3 "$TREE/tests/system/router_replica.py" "$DIR/$1.port" "$@"
    wait_for 20 test -s "$DIR/$1.port"
}

port_of() { cat "$DIR/$1.port"; }

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# ask MODEL: prints who answers, and the status.
ask() { curl -s -m 10 -w ' %{http_code}\n' -d "{\"model\": \"$1\"}" "http://127.0.0.1:$PORT/"; }

answers() { [[ $(ask "$1") == "$2" ]]; }

# has_served NAME COUNT: it has had so many requests.
has_served() { (($(curl -s -m 10 "http://127.0.0.1:$(port_of "$1")/count") >= $2)); }

@test "routes are switched and a replica is replaced, and no request fails" {
    local program load status

    for program in haproxy hey curl; do
        type "$program" >/dev/null || skip "$program is not installed"
    done
    PORT=$(free_port)
    replica first tenant_A tenant_B
    replica other tenant_A tenant_B
    replica moved tenant_B
    "$ROUTER" config "$DIR" "$PORT" "$(port_of first)"
    begin haproxy -db -f "$DIR/haproxy.cfg"
    wait_for 20 answers tenant_B "first 200"
    run -0 ask nobody
    [[ $output == *" 503" ]]

    hey -z 100s -c 10 -q 20 -m POST -d '{"model": "tenant_B"}' "http://127.0.0.1:$PORT/" \
        >"$DIR/hey.log" 2>&1 3>&- &
    load=$!
    pids+=("$load")
    wait_for 20 has_served first 100
    "$ROUTER" move "$DIR" "$PORT" "$(port_of moved)" | sed 's/^/# /' >&3
    answers tenant_B "moved 200"
    answers tenant_A "first 200"
    answers other_9999 "first 404"
    "$ROUTER" replace "$DIR" "$PORT" "$(port_of first)" "$(port_of other)"
    answers tenant_A "other 200"
    answers tenant_B "moved 200"
    wait_for 20 has_served moved 400
    kill -0 "$load" # it has been there all the time
    kill -INT "$load"
    wait "$load"

    grep -A 3 'Status code' "$DIR/hey.log" | sed 's/^/# /' >&3
    grep -qE '^ *\[200\].*[1-9][0-9]* responses' "$DIR/hey.log"
    run -1 grep -E '^ *\[([013-9]|2[1-9]|20[1-9])|Error distribution' "$DIR/hey.log"
}
