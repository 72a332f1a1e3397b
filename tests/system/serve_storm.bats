#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# A service under load while everything happens to it: hey asks 200 times a second, and each answer
# of a second asker has to be one that was allowed then. The control, without shield, drain and
# router, loses requests. STORM_SECONDS=300 is the long form (bench/serve --load).
# Takes 65 s

# shellcheck disable=SC2034
BATS_TEST_TIMEOUT=3000
load helpers
load elastic
load roles
load serve

setup_file() {
    export SERVICE=s$$ STORM_SECONDS=${STORM_SECONDS:-0} # services outlive jobs and testbeds
    if [[ ! -x $(PATH=$PATH:/usr/sbin command -v haproxy) || ! -x $(command -v hey) ]]; then
        skip "without haproxy and hey"
    fi
    testbed_up --nodes 6 --cpus-per-node 8
    cp "$TREE"/tests/system/{light,serve_program,storm}.py "$TB_WORK/"
    as_user mkdir "$TB_WORK/models"
    job_file storm yes
    model one 1 3000000
    model mover 1 2000000
    # The file is read by each job anew.
    script storm.sh <<<$'#!/bin/bash\n#SBATCH --elastic-roles=storm.yaml\nsrun elasticrun' >/dev/null
    submit -N2 --exclusive -t UNLIMITED storm.sh
}

# job_file NAME SHIELD: two replicas fill a node, so those of a second shard need an extension.
job_file() {
    cat >"$TB_WORK/$1.yaml" <<YAML
service: $SERVICE
models: {repository: $TB_WORK/models, every: 1s}
roles:
  server:
    kind: shards
    shards: 1:3
    replicas: 3
    scale: {max: 4, sessions: 4, calm: 2s}
    run: [/usr/bin/python3, -S, $TB_WORK/serve_program.py, "{port}", "{models}", RELEASE-1]
    cpus: 4
    ports: [http]
    pool: elastic
    shield: $2
    ready: {http: /ready, within: 120s, every: 200ms}
    drain: {within: 10s}
    restart: {backoff: 200ms..1s}
    capacity: 10M
    window: 0
YAML
    chmod 0644 "$TB_WORK/$1.yaml"
}

teardown_file() {
    for each in hey-burst hey-one hey-mover asker router control; do
        end_process "$TB_WORK/$each.pid" TERM
    done
    end_service
    testbed_down
}

teardown() { [[ $BATS_TEST_COMPLETED ]] || tail -n 60 "$TB_WORK"/*.out "$TB_WORK"/hey-*.log; }

# ---- models, and what is allowed -----------------------------------------------------------------

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

# What was allowed last, if that is one thing.
last_of() { sed -n "s/^[^ ]* $1 //p" "$TB_WORK/timeline" | tail -n 1; }

# "ADDRESS:PORT" of all replicas.
servers() { table | json_value "*(f'{r[\"address\"]}:{r[\"port\"]}' for s1 in s['shards'] for r in s1['replicas'])"; }

# only KEY VERSION: all replicas of all shards say that, or nothing. VERSION -: none says anything.
only() {
    local at said seen=-
    for at in $(servers); do
        said=$(as_user curl -s -m 2 -o - -w ' %{http_code}' "http://$at/$1") || return 1
        case $said in
        "$2 200") seen=$2 ;;
        " 404") ;;
        *) return 1 ;;
        esac
    done
    [[ $seen == "$2" ]]
}

# update KEY NUMBER BYTES: another version; until all have it, requests may get the old one.
update() {
    local old new
    old=$(last_of "$1")
    new=$(printf %06d "$2")
    allow "$1" "$old" "$new"
    model "$1" "$2" "$3"
    wait_for 60 only "$1" "$new"
    wait_for 20 by_router "$1" "$new"
    allow "$1" "$new"
}

take_away() {
    allow "$1" "$(last_of "$1")" 503
    as_user rm -r "$TB_WORK/models/$1"
    wait_for 60 only "$1" -
    allow "$1" 503
}

by_router() { [[ $(curl -s "http://127.0.0.1:$(<"$TB_WORK/port")/$1") == "$2" ]]; }

# ---- who asks ------------------------------------------------------------------------------------

# begin NAME COMMAND...: in the background, with its number in NAME.pid.
begin() {
    "${@:2}" >"$TB_WORK/$1.log" 2>&1 3>&- &
    echo $! >"$TB_WORK/$1.pid"
}

count_of() { sed -n "s/.*\[$2\][[:space:]]*\([0-9]*\) responses/\1/p" "$TB_WORK/$1.log"; }

# end_load NAME: none of its requests has failed; they are added to $total.
end_load() {
    kill -0 "$(<"$TB_WORK/$1.pid")" # it has been there all the time
    end_process "$TB_WORK/$1.pid" INT
    cat "$TB_WORK/$1.log"
    run -1 grep 'Error distribution' "$TB_WORK/$1.log"
    [[ $(grep -c '\[[0-9]*\].*responses' "$TB_WORK/$1.log") == 1 ]]
    total=$((total + $(count_of "$1" 200)))
}

# ---- what happens --------------------------------------------------------------------------------

# ready_are_all COUNT: in each shard.
ready_are_all() { [[ $(shard_json | json_value '*{x["ready"] for x in s["shards"]}' 2>/dev/null) == "$1" ]]; }

some_are_ready() { shard_json | json_value '*(x["ready"] for x in s["shards"])' 2>/dev/null | grep -qw "$1"; }

kill_server() {
    local pid
    pid=$(as_user curl -sf "http://$(servers | tr ' ' '\n' | shuf -n 1)/ready")
    as_user kill -KILL "$pid"
}

has_extension() { [[ $(running_extensions_of "$(leader_file 's["job"]')") ]]; }

# A job of the higher tier takes the node of an extension, with its replicas.
preempt() {
    local rival extension
    wait_for 60 has_extension
    extension=$(running_extensions_of "$(leader_file 's["job"]')" | head -n 1)
    rival=$(submit -p batch -w "$(job_nodes "$extension" | head -n 1)" --exclusive -t 10 --wrap 'sleep 3')
    wait_for 60 job_is "$rival" COMPLETED
    ! job_is "$extension" RUNNING
}

# More requests at the same time, of a second hey.
scale_up() {
    begin hey-burst hey -z 60m -t 120 -c 14 -H 'X-Sleep: 0.5' "$url/one"
    wait_for 60 some_are_ready 4
    end_load hey-burst
    wait_for 60 ready_are_all 3
}

# haproxy goes on; the next router takes it over.
new_router() {
    local before
    before=$(router_json | json_value 's["haproxy"]["pid"]')
    end_process "$TB_WORK/router.pid" KILL
    begin_router "$(<"$TB_WORK/port")"
    follows() { [[ $(router_json | json_value 's["haproxy"]["pid"], s["haproxy"]["reloads"]') == "$before 1" ]]; }
    wait_for 40 follows
}

router_json() {
    as_user selastic router "$SERVICE" --status --json --run-dir="$TB_WORK/router" 2>/dev/null
}

new_leader() {
    local job term leader
    job=$(leader_file 's["job"]')
    term=$(show_json "$job" | json_value 's["term"]')
    leader=$(show_json "$job" | json_value 's["leader"]')
    as_user kill -KILL "$(agent_of "$job" "$leader")"
    led_on() { another_serves "$job" || (($(show_json "$job" | json_value 's["term"]') > term)); }
    wait_for 60 led_on
    wait_for 90 ready_are_all 3
}

# new_release NUMBER: the next job begins with another program.
new_release() {
    local job
    job=$(leader_file 's["job"]')
    sed -i "s/RELEASE-[0-9]*/RELEASE-$1/" "$TB_WORK/storm.yaml"
    as_user selastic handover "$SERVICE"
    # Once is enough.
    refused_twice() {
        run as_user selastic handover "$job"
        [[ $output == *already* || $output == *"does not run service"* ]]
    }
    wait_for 20 refused_twice
    wait_for 120 another_serves "$job"
    wait_for 60 only release "RELEASE-$1"
    wait_for 60 job_is "$job" COMPLETED
}

# All of it. Versions are larger in each round.
storm() {
    update one "$1" 3000000                      # in place
    update three "$1" 2000000                    # a model is added
    kill_server
    update mover $((10 * $1)) 8000000            # it grows, and goes to a new shard: a reload of haproxy
    wait_for 60 ready_are_all 3
    preempt
    take_away three
    update mover $((10 * $1 + 1)) 2000000        # it shrinks, and stays
    wait_for 60 ready_are_all 3
    as_user selastic repack "$SERVICE"           # a shard goes
    wait_for 60 routed mover=shard_1 one=shard_1
    scale_up
    new_router                                   # another reload
    new_leader
    new_release "$1"
}

@test "200 requests a second while all of that happens to the service, and none fails" {
    local total=0 number=1 began
    wait_for 60 routed mover=shard_1 one=shard_1
    wait_for 60 ready_are_all 3
    allow one 000001
    allow mover 000001
    allow three 503
    begin_router
    url=http://127.0.0.1:$port
    wait_for 40 by_router one 000001
    wait_for 40 by_router mover 000001
    began=$SECONDS
    begin hey-one hey -z 60m -t 120 -c 4 -q 25 "$url/one"
    begin hey-mover hey -z 60m -t 120 -c 4 -q 25 "$url/mover"
    begin asker /usr/bin/python3 "$TB_WORK/storm.py" ask "$url" "$TB_WORK/answers" one mover three
    until ((number > 1 && SECONDS - began >= STORM_SECONDS)); do
        number=$((number + 1))
        storm $number
        echo "# round $((number - 1)): $((SECONDS - began)) s" >&3
    done
    end_load hey-one
    end_load hey-mover
    end_process "$TB_WORK/asker.pid" TERM
    end_process "$TB_WORK/router.pid" TERM
    cat "$TB_WORK/timeline"
    echo "# $total requests, none failed, in $((number - 1)) rounds" >&3
    ((total > 1000))
    ((STORM_SECONDS < 300 || total >= 50000))
    run -0 /usr/bin/python3 "$TB_WORK/storm.py" check "$TB_WORK/answers" "$TB_WORK/timeline"
    echo "# ${lines[0]}" >&3
}

@test "the control, without shield, drain and router, loses requests" {
    end_service
    job_file control no
    job=$(submit --elastic-roles="$TB_WORK/control.yaml" -N1 --exclusive -t 60 --wrap "srun elasticrun")
    wait_for 60 routed mover=shard_1 one=shard_1
    wait_for 60 ready_are_all 3
    port=$(free_port)
    {
        printf 'defaults\n  mode http\n  retries 0\n  timeout connect 5s\n  timeout client 30s\n  timeout server 30s\n'
        printf 'listen all\n  bind 127.0.0.1:%s\n' "$port"
        as_user selastic endpoints "$job" --role server-1 --format=haproxy | sed 's/$/ check inter 1s/'
    } >"$TB_WORK/control.cfg"
    begin control "$(PATH=$PATH:/usr/sbin command -v haproxy)" -db -f "$TB_WORK/control.cfg"
    answers_one() { [[ -n $(curl -sf "http://127.0.0.1:$port/one") ]]; }
    wait_for 20 answers_one
    begin hey-one hey -z 60m -t 120 -c 4 -q 50 "http://127.0.0.1:$port/one"
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
