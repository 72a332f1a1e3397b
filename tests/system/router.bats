#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# A real haproxy with what lib/haproxy_text says, and elastic-router, which drives one by a table of
# routes: replicas and routes change while requests come, and none fails. No Slurm.
# Takes 65 s

load helpers

setup() {
    DIR=$(mktemp -d)
    ROUTER=${top_builddir:-$TREE/build}/tests/system/router
    pids=()
    HEADER=()
}

teardown() {
    local pid

    [[ $BATS_TEST_COMPLETED ]] || tail -n 60 "$DIR"/selastic-*.log
    kill_haproxy
    for pid in "${pids[@]}"; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    kill_haproxy
    rm -rf "$DIR"
}

# It outlives a router that is killed. What the router says of it may be a moment old, or 0.
kill_haproxy() {
    grep -lzF "$DIR/run/master.sock" /proc/[0-9]*/cmdline 2>/dev/null | cut -d/ -f3 |
        xargs -r kill -KILL 2>/dev/null || true
}

# begin COMMAND...: in the background, until the test ends.
begin() {
    "$@" >"$DIR/${1##*/}-${#pids[@]}.log" 2>&1 3>&- &
    pids+=($!)
}

# replica NAME MODEL...
replica() {
    begin /usr/bin/python3 "$TREE/tests/system/router_replica.py" "$DIR/$1.port" "$@"
    wait_for 20 test -s "$DIR/$1.port"
}

port_of() { cat "$DIR/$1.port"; }

# ask MODEL: prints who answers, and the status.
ask() {
    curl -s -m 60 -w ' %{http_code}\n' "${HEADER[@]}" -d "{\"model\": \"$1\"}" "http://127.0.0.1:$PORT/"
}

answers() { [[ $(ask "$1") == "$2" ]]; }

# has_served NAME COUNT: it has had so many requests.
has_served() { (($(curl -s -m 60 "http://127.0.0.1:$(port_of "$1")/count") >= $2)); }

need() {
    local program

    for program; do
        type "$program" >/dev/null || skip "$program is not installed"
    done
}

# 200 requests a second, by ten clients.
begin_load() {
    hey -z 60m -t 120 -c 10 -q 20 "${HEADER[@]}" -m POST -d '{"model": "tenant_B"}' "http://127.0.0.1:$PORT/" \
        >"$DIR/hey.log" 2>&1 3>&- &
    load=$!
    pids+=("$load")
}

# None of them has failed.
end_load() {
    kill -0 "$load" # it has been there all the time
    kill -INT "$load"
    wait "$load"
    grep -A 3 'Status code' "$DIR/hey.log" | sed 's/^/# /' >&3
    grep -qE '^ *\[200\].*[1-9][0-9]* responses' "$DIR/hey.log"
    run -1 grep -E '^ *\[([013-9]|2[1-9]|20[1-9])|Error distribution' "$DIR/hey.log"
}

# ---- elastic-router ------------------------------------------------------------------------------

# table EPOCH SHARDS ROUTES: of the router, such as 3 "1:first,old/draining 2:" "tenant_A=1".
table() {
    local shard replica route separator=

    REVISION=$((REVISION + 1))
    {
        printf '{"service":"s","job":"1","term":1,"revision":%d,"epoch":%d,' "$REVISION" "$1"
        printf '"route-by":{"json":"$.model"},"shards":['
        for shard in $2; do
            printf '%s{"name":"shard_%s","check":"/ready","replicas":[' "$separator" "${shard%%:*}"
            separator=
            for replica in $(tr , ' ' <<<"${shard#*:}"); do
                printf '%s{"name":"%s","address":"127.0.0.1","port":%d,"state":"%s"}' "$separator" \
                    "${replica%/*}" "$(port_of "${replica%/*}")" \
                    "$([[ $replica == */draining ]] && echo draining || echo ready)"
                separator=,
            done
            printf ']}'
            separator=,
        done
        printf '],"routes":['
        separator=
        for route in $3; do
            printf '%s{"key":"%s","shard":"shard_%s"}' "$separator" "${route%=*}" "${route#*=}"
            separator=,
        done
        printf ']}'
    } >"$DIR/table.new"
    mv "$DIR/table.new" "$DIR/table"
}

elastic_router() { "$prefix/bin/selastic" router s --run-dir "$DIR/run" "$@"; }

begin_router() {
    begin "$prefix/bin/selastic" router s --run-dir "$DIR/run" --listen "127.0.0.1:$PORT" \
        --tokens "$DIR/tokens" --table "$DIR/table" "$@"
    router=${pids[-1]}
}

router_log() { cat "$DIR"/selastic-*.log; }

# router_says PATTERN: its status, as text, has such a line.
router_says() { elastic_router --status | grep -qE "$1"; }

is_true() { router_says "epoch $1\$"; }

knows_no() { ! router_says "$1-127"; }

haproxy_pid() { elastic_router --status | sed -nE 's/^haproxy ([0-9]+):.*/\1/p'; }

worker_pid() { elastic_router --status --json | sed -nE 's/.*"worker": *([0-9]+).*/\1/p'; }

haproxy_is_another() { [[ $(haproxy_pid) != "$1" && $(haproxy_pid) != 0 ]]; }

@test "elastic-router: replicas and routes change, the router is killed, and no request fails" {
    local load router before served name

    need haproxy hey curl
    PORT=$(free_port) REVISION=0
    (umask 077 && printf '# of this test\n0123456789abcdef\n' >"$DIR/tokens")
    HEADER=(-H "Authorization: Bearer 0123456789abcdef")
    for name in first other moved second; do
        replica "$name" tenant_A tenant_B
    done
    table 1 1:first "tenant_A=1 tenant_B=1"
    begin_router
    wait_for 20 answers tenant_B "first 200"
    run -0 ask nobody
    [[ $output == *" 503" ]]
    HEADER=(-H "Authorization: Bearer 0123456789abcdeF")
    run -0 ask tenant_B
    [[ $output == *" 401" ]]
    HEADER=(-H "Authorization: Bearer 0123456789abcdef")
    # Nobody else sees the token, nor what the router has.
    run -1 grep -rl 0123456789abcdef "$DIR/run" /proc/"$router"/cmdline
    [[ $(stat -c %a "$DIR/run" "$DIR/run/haproxy.sock" "$DIR/run/master.sock" | tr '\n' ' ') == "700 600 600 " ]]

    begin_load
    wait_for 20 has_served first 100
    table 1 1:first,other "tenant_A=1 tenant_B=1"
    wait_for 20 has_served other 100
    # A new shard is a reload; then a key moves there; then the old replica goes.
    table 2 "1:first,other 2:moved" "tenant_A=1 tenant_B=2"
    wait_for 20 answers tenant_B "moved 200"
    wait_for 40 is_true 2
    table 2 "1:first/draining,other 2:moved" "tenant_A=1 tenant_B=2"
    wait_for 40 knows_no first
    answers tenant_A "other 200"
    kill "${pids[0]}" # first
    # Killed, with another one beside it.
    table 2 "1:other 2:moved,second" "tenant_A=1 tenant_B=2"
    wait_for 20 has_served second 100
    kill -KILL "${pids[2]}" # moved
    before=$(curl -s "http://127.0.0.1:$(port_of second)/count")
    wait_for 20 has_served second $((before + 200))
    table 2 "1:other 2:second" "tenant_A=1 tenant_B=2"
    wait_for 20 knows_no moved
    # The router is killed. haproxy goes on, and so does the next router.
    before=$(haproxy_pid)
    kill -KILL "$router"
    served=$(curl -s "http://127.0.0.1:$(port_of second)/count")
    wait_for 20 has_served second $((served + 100))
    run -1 elastic_router --status
    [[ $output == *"no router of service s runs on this machine"* ]]
    table 3 "1:other 2:second" "tenant_A=2 tenant_B=1"
    begin_router
    wait_for 20 answers tenant_B "other 200"
    answers tenant_A "second 200"
    [[ $(haproxy_pid) == "$before" ]]
    run -1 elastic_router --listen "127.0.0.1:$PORT" --no-tokens --table "$DIR/table"
    [[ $output == *"a router of service s runs on this machine already"* ]]
    end_load

    # haproxy is killed, and then hangs: another one takes its place.
    kill -KILL "$before"
    wait_for 20 haproxy_is_another "$before"
    wait_for 20 answers tenant_B "other 200"
    before=$(haproxy_pid)
    kill -STOP "$before" "$(worker_pid)"
    wait_for 20 haproxy_is_another "$before"
    wait_for 20 answers tenant_A "second 200"
    # It hangs while the router is killed: the next router ends it.
    before=$(haproxy_pid)
    kill -STOP "$before" "$(worker_pid)"
    kill -KILL "$router"
    begin_router
    wait_for 20 answers tenant_A "second 200"
    wait_for 20 haproxy_is_another "$before"
    # A table that is none changes nothing.
    echo '{"service": "s"' >"$DIR/table"
    wait_for 20 router_says 'the table of routes: '
    answers tenant_A "second 200"
    # Other tokens count without a restart.
    (umask 077 && echo fedcba9876543210 >"$DIR/tokens.new" && mv "$DIR/tokens.new" "$DIR/tokens")
    HEADER=(-H "Authorization: Bearer fedcba9876543210")
    wait_for 20 answers tenant_A "second 200"

    before=$(haproxy_pid)
    kill -TERM "$router"
    wait "$router"
    [[ ! -e /proc/$before && ! -e $DIR/run/haproxy.sock && ! -e $DIR/run/tokens ]]
}

# In the place of haproxy: it answers, but not as haproxy does.
garbage() {
    cat >"$DIR/garbage" <<'END'
#!/usr/bin/python3
import os, socket, sys
path = sys.argv[3].partition(",")[0]
with open(os.path.join(os.path.dirname(path), "../starts"), "a") as file:
    print(os.getpid(), file=file)
listener = socket.socket(socket.AF_UNIX)
if os.path.exists(path):
    os.unlink(path)
listener.bind(path)
listener.listen()
while True:
    with listener.accept()[0] as link:
        link.recv(1000)
        link.sendall(b"\xff\0 1 master\n" * 1000)
END
    chmod 755 "$DIR/garbage"
}

is_locked() { ! flock -n "$1" true; }

started() { [[ -e $DIR/starts ]] && (($(wc -l <"$DIR/starts") >= $1)); }

@test "elastic-router: a haproxy that answers garbage is ended and started again" {
    local router pid

    garbage
    replica first tenant_A
    REVISION=0
    table 1 1:first tenant_A=1
    begin "$prefix/bin/selastic" router s --run-dir "$DIR/run" --listen 127.0.0.1:1 --no-tokens \
        --table "$DIR/table" --haproxy "$DIR/garbage"
    router=${pids[-1]}
    wait_for 20 started 2
    pid=$(tail -n 1 "$DIR/starts")
    grep -q 'does not answer as it should, and is started anew' "$DIR"/selastic-*.log
    kill "$router" # twice: it does not end itself
    kill "$router"
    wait "$router"
    [[ ! -e /proc/$pid ]]
}

@test "elastic-router: what is wrong at the start is one line" {
    # refused TEXT ARGUMENT...
    refused() {
        local text=$1
        shift
        run elastic_router "$@"
        [[ $status != 0 && ${#lines[@]} == 1 && $output == *"$text"* ]] || {
            printf '%s\n' "$output" >&2
            return 1
        }
    }

    echo short >"$DIR/tokens"
    touch "$DIR/table"
    refused "no such program" --listen :8080 --haproxy /nonexistent --no-tokens --table "$DIR/table"
    refused "give --tokens=FILE, or --no-tokens" --listen :8080 --haproxy /bin/true --table "$DIR/table"
    refused "there is no service s" --listen :8080 --haproxy /bin/true --directory "$DIR/none"
    mkdir -m 0777 "$DIR/service"
    chmod 0777 "$DIR/service"
    refused "nobody else can write to" --listen :8080 --haproxy /bin/true --directory "$DIR/service"
    refused "give ADDRESS:PORT" --listen 8080 --table "$DIR/table"
    refused "choose one with --run-dir" --listen :8080 --haproxy /bin/true --no-tokens \
        --table "$DIR/table" --run-dir "$DIR/a b"
    run elastic_router --listen :8080 --haproxy
    [[ $status == 2 ]]
    # What another user has put in the place of the router's directory is not printed.
    if ((UID == 0)); then
        mkdir "$DIR/theirs"
        printf '{"service": "\\u001b[2J"}' >"$DIR/theirs/status.json"
        touch "$DIR/theirs/lock"
        chown -R 65534 "$DIR/theirs"
        begin flock --no-fork "$DIR/theirs/lock" sleep 3000
        wait_for 20 is_locked "$DIR/theirs/lock"
        run -1 "$prefix/bin/selastic" router s --run-dir "$DIR/theirs" --status
        [[ $output == *"no router of service s runs on this machine"* ]]
    fi
    # Where there is no haproxy, the package is named.
    [[ -x /usr/sbin/haproxy || -x /usr/local/sbin/haproxy ]] ||
        PATH=$prefix/bin refused "install the package haproxy" --listen :8080 --no-tokens --table "$DIR/table"
}

@test "routes are switched and a replica is replaced, and no request fails" {
    local load

    need haproxy hey curl
    PORT=$(free_port)
    replica first tenant_A tenant_B
    replica other tenant_A tenant_B
    replica moved tenant_B
    "$ROUTER" config "$DIR" "$PORT" "$(port_of first)"
    begin haproxy -db -f "$DIR/haproxy.cfg"
    wait_for 20 answers tenant_B "first 200"
    run -0 ask nobody
    [[ $output == *" 503" ]]

    begin_load
    wait_for 20 has_served first 100
    "$ROUTER" move "$DIR" "$PORT" "$(port_of moved)" | sed 's/^/# /' >&3
    answers tenant_B "moved 200"
    answers tenant_A "first 200"
    answers other_9999 "first 404"
    "$ROUTER" replace "$DIR" "$PORT" "$(port_of first)" "$(port_of other)"
    answers tenant_A "other 200"
    answers tenant_B "moved 200"
    wait_for 20 has_served moved 400
    end_load
}

# Requests that the program of a replica cannot answer, twenty a second.
send_poison() {
    while curl -s -o /dev/null -m 60 -d '{"model": "tenant_A", "poison": 1}' "http://127.0.0.1:$PORT/"; do
        sleep 0.05
    done
}

@test "elastic-router: clients ask models, and do not load or unload them" {
    local path

    need haproxy curl
    PORT=$(free_port) REVISION=0
    (umask 077 && echo 0123456789abcdef >"$DIR/tokens")
    HEADER=(-H "Authorization: Bearer 0123456789abcdef")
    replica first tenant_A
    table 1 1:first tenant_A=1
    begin_router
    wait_for 20 answers tenant_A "first 200"
    for path in /v1/load_lora_adapter /v1//unload_lora_adapter/ /v1/%6coad_lora_adapter /v2/repository/index \
        /v2/repository/models/tenant_A/unload '//v2/%72epository//models/tenant_A/load?x=1' '/v2%2Frepository/models/a/load' \
        /v1/LOAD_lora_adapter /v1/load_lora_adapter/x /v2/Repository/index /v2/repository/a/index \
        /v2/repository/a/models/tenant_A/load /sleep //Wake_up /pause/ /%75pdate_weights_from_disk \
        /reset_prefix_cache /flush_cache /collective_rpc /start_profile /v2/cudasharedmemory/region/r/register \
        /v2/logging /api/pull; do
        run -0 curl -s -m 60 -o /dev/null -w '%{http_code}' "${HEADER[@]}" -d '{"model": "tenant_A"}' \
            "http://127.0.0.1:$PORT$path"
        [[ $output == 403 ]] || { echo "$path: $output" && false; }
    done
    # What cannot be decoded, or each server reads in its own way.
    for path in /v1/load_lora_adapter%zz /v1/load_lora_adapter% /v1/%/load_lora_adapter/ /v2/repository%zz/index \
        /v2/repository/%/models/a/load /v2/repository/models/a/load%2 /v1/chat% '/v1/load_lora_adapter;x' \
        /v1/load_lora_adapter%00 /v1/%256coad_lora_adapter /v1/a/../load_lora_adapter /v1/a/%2E./load_lora_adapter \
        '/v2/..;/v2/repository/index' /v2/./repository/index '/v1\load_lora_adapter' /v1/load_lora_adapter%23 \
        /v1/load_lora_adapter%3fx /v1/load_lora_adapter/x/.. /v1%e0%80%afload_lora_adapter /v1%F0%80%80%afload_lora_adapter; do
        run -0 curl --path-as-is -s -m 60 -o /dev/null -w '%{http_code}' "${HEADER[@]}" -d '{"model": "tenant_A"}' \
            "http://127.0.0.1:$PORT$path"
        [[ $output == 400 ]] || { echo "$path: $output" && false; }
    done
    # What only looks like it.
    for path in /v1/chat/completions /sleeping /v1/sleep /api/chat /v2/models/logging/infer /v2/models/repository/infer /v2/models/my_load_lora_adapter/infer \
        /v2/models/org%2Fmodel..x/versions/1.0/infer '/v1/models/a:ft@1%20b?x=%25;..'; do
        run -0 curl -s -m 60 -o /dev/null -w '%{http_code}' "${HEADER[@]}" -d '{"model": "tenant_A"}' \
            "http://127.0.0.1:$PORT$path"
        [[ $output == 200 ]] || { echo "$path: $output" && false; }
    done
    # There is no HTTP/2, which would be many requests in a connection.
    run curl -s -m 60 --http2-prior-knowledge -o /dev/null -w '%{http_code}' "${HEADER[@]}" \
        -d '{"model": "tenant_A"}' "http://127.0.0.1:$PORT/"
    [[ $output != 200 ]]
    # Who has no token is told so, and nobody waits for the body.
    exec 4<>"/dev/tcp/127.0.0.1/$PORT"
    printf 'POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n' >&4
    run -0 timeout 100 head -n 1 <&4
    exec 4>&-
    [[ $output == "HTTP/1.1 401"* ]]
    # Another protocol, whose requests nobody would look at: the server does not hear of it.
    kill "$router"
    wait "$router"
    begin_router --route-by=header:X-Tenant
    HEADER+=(-H 'X-Tenant: tenant_A')
    wait_for 20 answers tenant_A "first 200"
    run -0 curl -s -m 60 -H 'Connection: Upgrade, HTTP2-Settings' -H 'Upgrade: h2c' -H 'HTTP2-Settings: AAMAAABk' \
        -o /dev/null -w '%{http_code}' "${HEADER[@]}" "http://127.0.0.1:$PORT/ready"
    [[ $output == 200 ]]
}

@test "elastic-router: a client at one address leaves connections to others" {
    local greedy log

    need haproxy curl
    PORT=$(free_port) REVISION=0
    replica first tenant_A
    table 1 1:first tenant_A=1
    begin "$prefix/bin/selastic" router s --run-dir "$DIR/run" --listen "127.0.0.1:$PORT" \
        --no-tokens --table "$DIR/table"
    wait_for 20 answers tenant_A "first 200"
    # It keeps each connection after a request, and opens more until one is refused.
    begin /usr/bin/python3 "$TREE/tests/system/router_greedy.py" "$PORT" 4096
    greedy=${pids[-1]}
    log=$DIR/python3-$((${#pids[@]} - 1)).log
    wait_for 20 test -s "$log"
    run -0 cat "$log"
    echo "# $output" >&3
    [[ $output =~ ^refused\ after\ ([0-9]+)$ ]]
    ((BASH_REMATCH[1] >= 2000 && BASH_REMATCH[1] < 4096))
    run -0 curl -s -m 60 --interface 127.0.0.2 -d '{"model": "tenant_A"}' -o /dev/null -w '%{http_code}' \
        "http://127.0.0.1:$PORT/"
    [[ $output == 200 ]]
    kill -0 "$greedy"
}

@test "elastic-router: a client whose requests fail with 500 takes no replica from others" {
    local i failed=0

    need haproxy curl
    PORT=$(free_port) REVISION=0
    replica first tenant_A
    replica other tenant_A
    table 1 1:first,other tenant_A=1
    begin "$prefix/bin/selastic" router s --run-dir "$DIR/run" --listen "127.0.0.1:$PORT" \
        --no-tokens --table "$DIR/table"
    wait_for 20 is_true 1
    begin send_poison
    wait_for 20 has_served first 5
    wait_for 20 has_served other 5
    for ((i = 0; i < 100; i++)); do
        [[ $(ask tenant_A) == *" 200" ]] || failed=$((failed + 1))
    done
    echo "# $failed of 100 failed"
    ((failed == 0))
}
