#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# A service with its models in shards: what its job does as the repository changes, and as things
# fail. Who asks reads the table of routes, or asks a router, which hey does all the time.
# Takes 65 s

load helpers
load elastic
load roles
load serve

setup_file() {
    export SERVICE=t$$ # services outlive jobs and testbeds
    testbed_up --stock --nodes 2 --cpus-per-node 8
    cp "$TREE"/tests/system/{light,serve_program}.py "$TB_WORK/"
    as_user mkdir "$TB_WORK/models"
    cat >"$TB_WORK/serve.yaml" <<YAML
service: $SERVICE
models: {repository: $TB_WORK/models, every: 1s}
roles:
  server:
    kind: shards
    shards: 1:3
    replicas: 2
    scale: {max: 3, sessions: 4, calm: 2s}
    run: [/usr/bin/python3, -S, $TB_WORK/serve_program.py, "{port}", "{models}"]
    ports: [http]
    ready: {http: /ready, within: 120s, every: 200ms}
    drain: {within: 5s}
    restart: {backoff: 200ms..1s}
    capacity: 10M
    window: 0
    update: {max-unavailable: 0}
YAML
    chmod 0644 "$TB_WORK/serve.yaml"
    model one 1 4000000
    model two 1 3000000
    submit -N2 --exclusive -t 60 --wrap "srun elasticrun --roles=$TB_WORK/serve.yaml" >"$TB_WORK/job"
}

setup() { job=$(<"$TB_WORK/job"); }

teardown_file() {
    end_process "$TB_WORK/long.pid" INT
    end_process "$TB_WORK/hey.pid" INT
    end_process "$TB_WORK/router.pid" TERM
    as_user sh -c "rm -rf ~/.slurm-elastic/services/$SERVICE"
    testbed_down
}

teardown() { [[ $BATS_TEST_COMPLETED ]] || tail -n 60 "$TB_WORK"/*.out; }

# answers KEY VERSION COUNT: as many replicas answer for that key, all of them with that version.
answers() {
    local at count=0
    for at in $(replicas_of "$1"); do
        [[ $(as_user curl -sf "http://$at/$1") == "$2" ]] || return 1
        count=$((count + 1))
    done
    ((count == $3))
}

# runs_it JOB: that job has the service.
runs_it() {
    [[ $(as_user selastic services --json | json_value '*(x["job"] for x in s["services"] if x["service"] == "'"$SERVICE"'")') == "$1" ]]
}

# The processes of all replicas.
servers() {
    local at
    for at in $(table | json_value "*(f'{r[\"address\"]}:{r[\"port\"]}' for s1 in s['shards'] for r in s1['replicas'])"); do
        as_user curl -sf "http://$at/ready"
        echo
    done | sort
}

@test "two models come into one shard, and have routes once its replicas are ready" {
    wait_for 40 routed one=shard_1 two=shard_1
    wait_for 20 answers one 000001 2
    wait_for 20 answers two 000001 2
    run -0 as_user selastic services
    [[ $output =~ $SERVICE\ +running\ +$job\ +1\ +n ]]
    run -0 as_user selastic shard "$job"
    [[ $output == *"shard_1    2/2"*"one    000001   000001  shard_1  one  shard_1"* ]]
    [[ $(as_user stat -c %a "$(shard_json | json_value 's["dir"]')/record.json") == 600 ]]
}

@test "a router takes the address of the service, and requests come all the time" {
    if [[ ! -x $(command -v haproxy) || ! -x $(command -v hey) ]]; then skip "without haproxy and hey"; fi
    begin_router
    by_router() { [[ $(curl -s "http://127.0.0.1:$port/one") == 000001 ]]; }
    wait_for 40 by_router
    hey -z 60m -t 120 -c 4 -q 15 "http://127.0.0.1:$port/one" >"$TB_WORK/hey.log" 2>&1 3>&- &
    echo $! >"$TB_WORK/hey.pid"
}

@test "a version is loaded in place, a model is added, one is removed" {
    before=$(servers)
    model one 2 4000000
    wait_for 20 answers one 000002 2
    [[ $(servers) == "$before" ]]
    model three 1 2000000
    wait_for 40 routed one=shard_1 three=shard_1 two=shard_1
    wait_for 20 answers three 000001 2
    as_user rm -r "$TB_WORK/models/two"
    wait_for 40 routed one=shard_1 three=shard_1
}

@test "a model that has grown moves to a shard of its own; the last model takes its shard with it" {
    model three 2 8000000
    wait_for 60 routed one=shard_1 three=shard_2
    wait_for 20 answers three 000002 2
    as_user rm -r "$TB_WORK/models/three"
    wait_for 60 routed one=shard_1
    one_shard() { [[ $(shard_json | json_value '*(x["name"] for x in s["shards"])') == shard_1 ]]; }
    wait_for 40 one_shard
    run -1 as_user test -e "$(shard_json | json_value 's["dir"]')/models/shard_2.json"
}

@test "a replica that is killed comes back, and its key keeps its route" {
    read -r victim <<<"$(servers)"
    as_user kill -KILL "$victim"
    without() { ! servers | grep -qx "$victim"; }
    wait_for 20 without
    routed one=shard_1
    wait_for 20 answers one 000002 2
}

@test "more requests at the same time get one more replica, and it goes when they have ended" {
    [[ -s $TB_WORK/hey.pid ]] || skip "without haproxy and hey"
    local port
    port=$(<"$TB_WORK/port")
    # hey asks as many as 10 at the same time; each is on its way for half a second.
    hey -z 60m -t 120 -c 10 -H 'X-Sleep: 0.5' "http://127.0.0.1:$port/one" >"$TB_WORK/long.log" 2>&1 3>&- &
    echo $! >"$TB_WORK/long.pid"
    wait_for 40 answers one 000002 3
    end_process "$TB_WORK/long.pid" INT
    run -1 grep 'Error distribution' "$TB_WORK/long.log"
    [[ $(grep -c '\[[0-9]*\].*responses' "$TB_WORK/long.log") == 1 ]]
    grep -q '\[200\]' "$TB_WORK/long.log"
    wait_for 60 answers one 000002 2
}

# program FILE ARGUMENT...: the job file with that at the end of its run.
program() {
    sed "s|\"{models}\"]|\"{models}\", $2]|" "$TB_WORK/serve.yaml" >"$TB_WORK/$1"
    chmod 0644 "$TB_WORK/$1"
}

# released NAME COUNT: as many replicas answer for one, all with that program.
released() {
    local at count=0
    for at in $(replicas_of one); do
        [[ $(as_user curl -sf "http://$at/release") == "$1" ]] || return 1
        count=$((count + 1))
    done
    ((count == $2))
}

@test "another program is rolled out: its first replica starts, and the others go on" {
    before=$(servers)
    wait_for 20 released none 2
    # A start waits until there is gate.all.
    as_user sh -c "echo $TB_WORK/gate >$TB_WORK/models/one/000002/slow"
    program two.yaml two
    run -0 as_user selastic apply "$SERVICE" --file "$TB_WORK/two.yaml"
    [[ $output == "job $job: service $SERVICE replaces its replicas by ones with that program; selastic shard says how far it is" ]]
    starts() { pgrep -u "$TB_USER" -f "$TB_WORK/serve_program.py .* two\$"; }
    wait_for 40 starts
    [[ $(servers) == "$before" ]]
    run -0 as_user selastic shard "$SERVICE"
    [[ $output == *"Another program: 0 of 1 shards have it."*"goes on, 0/2"* ]]
    [[ $(show_json "$job" | json_value 's["roles"]') == *'; another program: 0 of 1 shards have it' ]]
    run -0 as_user selastic apply "$SERVICE" --file "$TB_WORK/two.yaml"
    [[ $output == *"has that program already" ]]
}

@test "another leader goes on with the same replicas, and does what comes" {
    before=$(servers)
    term=$(show_json "$job" | json_value 's["term"]')
    leader=$(show_json "$job" | json_value 's["leader"]')
    revision=$(table | json_value 's["revision"]')
    as_user kill -KILL "$(agent_of "$job" "$leader")"
    led_on() { (($(show_json "$job" | json_value 's["term"]') > term)); }
    wait_for 60 led_on
    wait_for 60 routed one=shard_1
    is_later() { (($(table | json_value 's["revision"]') > revision)); }
    wait_for 20 is_later
    # On the other node nothing was started anew.
    after=$(servers)
    for pid in $before; do [[ ! -d /proc/$pid ]] || grep -qx "$pid" <<<"$after"; done
    # It goes on with the program, too.
    as_user touch "$TB_WORK/gate.all"
    wait_for 90 released two 2
    wait_for 60 answers one 000002 2
    # shellcheck disable=SC2317 # wait_for calls it
    old_gone() { ! pgrep -u "$TB_USER" -f "$TB_WORK/serve_program.py [^ ]* [^ ]*\$"; }
    wait_for 40 old_gone
    model four 1 1000000
    wait_for 60 routed four=shard_1 one=shard_1
}

@test "a program that does not get ready: the one before goes on" {
    before=$(servers)
    program ends.yaml two
    sed -i 's|run: .*|run: [/bin/false]|' "$TB_WORK/ends.yaml"
    as_user selastic apply "$SERVICE" --file "$TB_WORK/ends.yaml"
    went_back() { as_user selastic shard "$SERVICE" | grep -q '0 of 1 shards have it; 1 did not get ready with it'; }
    wait_for 90 went_back
    grep -q 'shard_1: 2 new replicas in a row did not get ready' "$TB_WORK/$job.out"
    is_done() { [[ $(shard_json | json_value '*(x["update"] for x in s["shards"])') == "done" ]]; }
    wait_for 40 is_done
    [[ $(servers) == "$before" ]]
    released two 2
    as_user selastic apply "$SERVICE" --file "$TB_WORK/two.yaml"
    run -0 as_user selastic shard "$SERVICE"
    [[ $output != *"Another program"* ]]
    # Nothing else can be another one.
    sed 's|capacity: 10M|capacity: 11M|' "$TB_WORK/two.yaml" >"$TB_WORK/large.yaml"
    run -1 as_user selastic apply "$SERVICE" --file "$TB_WORK/large.yaml"
    [[ $output == *"roles.server.capacity is \"11M\", and \"10M\" in the job that runs: only run of its shards may be another one"* ]]
    run -1 as_user selastic apply "$SERVICE" --file "$TB_WORK/nothing.yaml"
    [[ $output == *"nothing.yaml"* ]]
    [[ $(servers) == "$before" ]]
}

@test "no request has failed meanwhile" {
    [[ -s $TB_WORK/hey.pid ]] || skip "without haproxy and hey"
    end_process "$TB_WORK/hey.pid" INT
    cat "$TB_WORK/hey.log"
    grep -q 'Error distribution' "$TB_WORK/hey.log" && return 1
    [[ $(grep -c '\[[0-9]*\].*responses' "$TB_WORK/hey.log") == 1 ]]
    (($(sed -n 's/.*\[200\][[:space:]]*\([0-9]*\) responses/\1/p' "$TB_WORK/hey.log") > 200))
    follows_it() { [[ $(as_user selastic router "$SERVICE" --status --run-dir="$TB_WORK/router") == *"job $job answers"* ]]; }
    wait_for 20 follows_it
    end_process "$TB_WORK/router.pid" TERM
}

@test "what cannot be used has a line, and disturbs nobody" {
    as_user mkdir -p "$TB_WORK/models/torn/000001"
    as_user sh -c "echo '{\"format\": 1, \"files\": {\"x\": 5}}' >$TB_WORK/models/torn/000001/complete.json"
    model huge 1 20000000
    model x=y 1 1
    model bad 1 1000000 broken
    wait_for 20 why_has torn 'no version of it is complete: '
    wait_for 20 why_has huge 'huge 000001 needs 20000000 bytes, and a shard has 10485760'
    wait_for 20 why_has x=y "'x=y' is no name of a model"
    wait_for 60 why_has bad 'shard_1 did not get ready with 000001: 2 new replicas in a row did not get ready'
    routed four=shard_1 one=shard_1
    wait_for 20 answers one 000002 2
    run -1 as_user selastic shard nobody
    [[ $output == *"there is no service 'nobody' of yours"* ]]
    run -0 as_user selastic flush "$SERVICE"
    [[ $output == "job $job: service $SERVICE does at once what waits, and tries again what has failed" ]]
    run -0 as_user selastic apply "$job"
    run -0 as_user selastic repack "$job"
    run -1 as_user selastic scale "$job" server-1=3
    [[ $output == *"the size of server-1 cannot be set: its service sets it" ]]
}

@test "another job of the service waits for the end of this one, and has all it had" {
    as_user rm -r "$TB_WORK/models/bad"
    as_user scancel "$job"
    next=$(submit -N2 --exclusive -t 60 --wrap "srun elasticrun --roles=$TB_WORK/serve.yaml")
    echo "$next" >"$TB_WORK/job"
    wait_for 60 runs_it "$next"
    wait_for 60 answers one 000002 2
    [[ $(shard_json | json_value 's["term"]') == 2 ]]
}

@test "a job that dies with its leader has not written that it has ended: the next one asks Slurm" {
    next=$(submit -N2 --exclusive -t 60 --wrap "srun elasticrun --roles=$TB_WORK/serve.yaml")
    echo "$next" >"$TB_WORK/job"
    # shellcheck disable=SC2046 # one word for each process
    as_user kill -KILL $(job_processes "$job") || true # a process may have ended meanwhile
    wait_for 30 job_ended "$job"
    wait_for 30 grep -q "service $SERVICE: Slurm says that job $job has ended" "$TB_WORK/$next.out"
    wait_for 60 runs_it "$next"
    wait_for 60 answers one 000002 2
    [[ $(shard_json | json_value 's["term"]') == 3 ]]
    as_user scancel "$next"
    wait_for 30 job_ended "$next"
    run -1 as_user selastic shard "$SERVICE"
    # Slurm may have killed the leader before it could write that it has ended.
    [[ $output == *"service $SERVICE is not run by any job; the last one was job $next"* ||
        $output == *"job $next has ended"* ]]
}
