#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# A service under load while everything happens to it: hey asks 200 times a second, and each answer
# of a second asker has to be one that was allowed then. The control, without shield, drain and
# router, loses requests. STORM_SECONDS=300 is the long form (bench/serve --load).
# Takes 60 s

# shellcheck disable=SC2034
BATS_TEST_TIMEOUT=900
load helpers
load elastic
load roles
load serve

setup_file() {
    export SERVICE=s$$ STORM_SECONDS=${STORM_SECONDS:-0} # services outlive jobs and testbeds
    if [[ ! -x $(PATH=$PATH:/usr/sbin command -v haproxy) || ! -x $(command -v hey) ]]; then
        skip "without haproxy and hey"
    fi
    testbed_up --nodes 4 --cpus-per-node 8
    cp "$TREE"/tests/system/{serve_program.py,storm.py} "$TB_WORK/"
    as_user mkdir "$TB_WORK/models"
    job_file storm "service: $SERVICE" yes
    model one 1 3000000
    model mover 1 2000000
    submit --elastic-roles="$TB_WORK/storm.yaml" -N2 --exclusive -t 12 --wrap "srun elasticrun" >"$TB_WORK/job"
}

# job_file NAME SERVICE SHIELD
job_file() {
    cat >"$TB_WORK/$1.yaml" <<YAML
$2
models: {repository: $TB_WORK/models, every: 1s}
roles:
  server:
    kind: shards
    shards: 1:3
    replicas: 3
    run: [/usr/bin/python3, $TB_WORK/serve_program.py, "{port}", "{models}"]
    ports: [http]
    pool: elastic
    shield: $3
    ready: {http: /ready, within: 20s, every: 200ms}
    drain: {within: 10s}
    restart: {backoff: 200ms..1s}
    capacity: 10M
    window: 0
YAML
    chmod 0644 "$TB_WORK/$1.yaml"
}

setup() { job=$(<"$TB_WORK/job"); }

teardown_file() {
    for each in hey-one hey-mover asker router control; do end_process "$TB_WORK/$each.pid" TERM; done
    as_user sh -c "rm -rf ~/.slurm-elastic/services/$SERVICE"
    testbed_down
}

teardown() { [[ $BATS_TEST_COMPLETED ]] || tail -n 60 "$TB_WORK"/*.out "$TB_WORK"/hey-*.log; }

# model NAME NUMBER BYTES: a version of it, as a state.
model() {
    local dir
    dir=$TB_WORK/models/$1/$(printf %06d "$2")
    as_user mkdir -p "$dir"
    as_user sh -c "echo data >$dir/data; echo '{\"bytes\": $3}' >$dir/../model.json"
    as_user sh -c "echo '{\"format\": 1, \"files\": {\"data\": 5}}' >$dir/complete.json"
}

# allow KEY WHAT...: from now on.
allow() { echo "$EPOCHREALTIME $*" >>"$TB_WORK/timeline"; }

# only KEY VERSION: all replicas of all shards say that, or nothing. VERSION -: none says anything.
only() {
    local at said seen=-
    for at in $(table | json_value "*(f'{r[\"address\"]}:{r[\"port\"]}' for s1 in s['shards'] for r in s1['replicas'])"); do
        said=$(as_user curl -s -m 2 -o - -w ' %{http_code}' "http://$at/$1") || return 1
        case $said in
        "$2 200") seen=$2 ;;
        " 404") ;;
        *) return 1 ;;
        esac
    done
    [[ $seen == "$2" ]]
}

# update KEY OLD NUMBER BYTES: another version; until all have it, requests may get the old one.
update() {
    local new
    new=$(printf %06d "$3")
    allow "$1" "$2" "$new"
    model "$1" "$3" "$4"
    wait_for 60 only "$1" "$new"
    wait_for 20 by_router "$1" "$new"
    allow "$1" "$new"
}

take_away() {
    allow "$1" "$2" 503
    as_user rm -r "$TB_WORK/models/$1"
    wait_for 60 only "$1" -
    allow "$1" 503
}

by_router() { [[ $(curl -s "http://127.0.0.1:$(<"$TB_WORK/port")/$1") == "$2" ]]; }

# begin NAME COMMAND...: in the background, with its number in NAME.pid.
begin() {
    "${@:2}" >"$TB_WORK/$1.log" 2>&1 3>&- &
    echo $! >"$TB_WORK/$1.pid"
}

count_of() { sed -n "s/.*\[$2\][[:space:]]*\([0-9]*\) responses/\1/p" "$TB_WORK/$1.log"; }

servers_of() { table | json_value "*(f'{r[\"address\"]}:{r[\"port\"]}' for s1 in s['shards'] for r in s1['replicas'])"; }

ready_count() { shard_json | json_value '*(str(x["ready"]) for x in s["shards"])'; }

all_ready() { [[ $(ready_count | tr ' ' '\n' | sort -u) == 3 ]]; }

# A job of the higher tier takes the node of an extension, with its replicas.
preempt() {
    local rival
    rival=$(submit -p batch -N1 --exclusive -t 1 --wrap 'sleep 3')
    wait_for 60 job_is "$rival" COMPLETED
}

kill_server() {
    local pid
    pid=$(as_user curl -sf "http://$(servers_of | tr ' ' '\n' | shuf -n 1)/ready")
    as_user kill -KILL "$pid"
}

new_leader() {
    local term leader
    term=$(show_json "$job" | json_value 's["term"]')
    leader=$(show_json "$job" | json_value 's["leader"]')
    as_user kill -KILL "$(agent_of "$job" "$leader")"
    led_on() { (($(show_json "$job" | json_value 's["term"]') > term)); }
    wait_for 60 led_on
}

@test "200 requests a second while models come, grow and go, servers and the leader die, and a node is taken" {
    wait_for 60 routed mover=shard_1 one=shard_1
    wait_for 60 all_ready
    allow one 000001
    allow mover 000001
    allow three 503
    /usr/bin/python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])' >"$TB_WORK/port"
    url=http://127.0.0.1:$(<"$TB_WORK/port")
    # shellcheck disable=SC2016 # the other shell's
    begin router as_user sh -c 'echo $$ >router.own; exec selastic router "$1" --listen "127.0.0.1:$2" --no-tokens \
        --route-by=path:/ --run-dir="$3/router"' sh "$SERVICE" "$(<"$TB_WORK/port")" "$TB_WORK"
    wait_for 20 test -s "$TB_WORK/router.own"
    cp "$TB_WORK/router.own" "$TB_WORK/router.pid"
    wait_for 40 by_router one 000001
    wait_for 40 by_router mover 000001
    begin hey-one hey -z 20m -c 4 -q 25 "$url/one"
    begin hey-mover hey -z 20m -c 4 -q 25 "$url/mover"
    begin asker /usr/bin/python3 "$TB_WORK/storm.py" ask "$url" "$TB_WORK/answers" one mover three
    began=$SECONDS number=1
    while :; do
        number=$((number + 1))
        update one "$(printf %06d $((number - 1)))" $number 3000000 # in place
        update three 503 $((100 + number)) 2000000                # a model is added
        kill_server
        # It grows, and goes to a new shard: a reload of haproxy.
        update mover "$(sed -n 's/^[^ ]* mover //p' "$TB_WORK/timeline" | tail -n 1)" $((number)) 8000000
        wait_for 60 all_ready
        preempt
        take_away three "$(printf %06d $((100 + number)))"
        # It shrinks: it stays. The next round's growth needs nothing new.
        update mover "$(printf %06d $number)" $((1000 + number)) 2000000
        wait_for 60 all_ready
        as_user selastic repack "$job"
        wait_for 60 routed mover=shard_1 one=shard_1
        new_leader
        wait_for 90 all_ready
        ((SECONDS - began < STORM_SECONDS)) || break
    done
    end_process "$TB_WORK/hey-one.pid" INT
    end_process "$TB_WORK/hey-mover.pid" INT
    end_process "$TB_WORK/asker.pid" TERM
    cat "$TB_WORK"/hey-*.log
    cat "$TB_WORK/timeline"
    for each in one mover; do
        grep -q 'Error distribution' "$TB_WORK/hey-$each.log" && return 1
        [[ $(grep -c '\[[0-9]*\].*responses' "$TB_WORK/hey-$each.log") == 1 ]]
    done
    total=$(($(count_of hey-one 200) + $(count_of hey-mover 200)))
    echo "# $total requests, none failed, in $((number - 1)) rounds" >&3
    ((total > 1000))
    ((STORM_SECONDS < 300 || total >= 50000))
    run -0 /usr/bin/python3 "$TB_WORK/storm.py" check "$TB_WORK/answers" "$TB_WORK/timeline"
    echo "# ${lines[0]}" >&3
    as_user scancel "$job"
    wait_for 60 job_ended "$job"
}

@test "the control, without shield, drain and router, loses requests" {
    as_user sh -c "rm -rf ~/.slurm-elastic/services/$SERVICE"
    job_file control "service: $SERVICE" no
    submit --elastic-roles="$TB_WORK/control.yaml" -N2 --exclusive -t 5 --wrap "srun elasticrun" >"$TB_WORK/job"
    job=$(<"$TB_WORK/job")
    wait_for 60 routed mover=shard_1 one=shard_1
    wait_for 60 all_ready
    port=$(/usr/bin/python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
    {
        printf 'defaults\n  mode http\n  retries 0\n  timeout connect 5s\n  timeout client 30s\n  timeout server 30s\n'
        printf 'listen all\n  bind 127.0.0.1:%s\n' "$port"
        as_user selastic endpoints "$job" --role server-1 --format=haproxy | sed 's/$/ check inter 1s/'
    } >"$TB_WORK/control.cfg"
    begin control "$(PATH=$PATH:/usr/sbin command -v haproxy)" -db -f "$TB_WORK/control.cfg"
    answers_one() { [[ -n $(curl -sf "http://127.0.0.1:$port/one") ]]; }
    wait_for 20 answers_one
    begin hey-one hey -z 5m -c 4 -q 50 "http://127.0.0.1:$port/one"
    kill_server
    preempt
    end_process "$TB_WORK/hey-one.pid" INT
    cat "$TB_WORK/hey-one.log"
    # hey lists statuses as "[503] 7 responses", and errors as "[7] the error".
    lost=$(sed -n -e '/\[200\]/d' -e 's/.*\[[0-9]*\][[:space:]]*\([0-9]*\) responses/\1/p' \
        -e 's/.*\[\([0-9]*\)\].*/\1/p' "$TB_WORK/hey-one.log" | awk '{n += $1} END {print n + 0}')
    echo "# of $(($(count_of hey-one 200) + lost)) requests $lost failed" >&3
    ((lost > 0))
}
