#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The leader of a job that hands its service over dies, or that of the next job, in each step of it,
# while hey asks through a router. Each time it ends in the same state, and no request fails.
# Takes 80 s

load helpers
load elastic
load roles
load serve

setup_file() {
    local program
    for program in haproxy hey; do
        [[ -x $(PATH=$PATH:/usr/sbin command -v $program) ]] || skip "$program is not installed"
    done
    export SERVICE=k$$ # services outlive jobs and testbeds
    testbed_up --nodes 4 --cpus-per-node 4
    cp "$TREE"/tests/system/{light,serve_program}.py "$TB_WORK/"
    model one
    model two
    cat >"$TB_WORK/serve.yaml" <<YAML
service: $SERVICE
handover: 10m
models: {repository: $TB_WORK/models, every: 1s}
roles:
  server:
    kind: shards
    replicas: 2
    run: [/usr/bin/python3, -S, $TB_WORK/serve_program.py, "{port}", "{models}"]
    ports: [http]
    ready: {http: /ready, within: 120s, every: 200ms}
    drain: {within: 20s}
    restart: {backoff: 200ms..1s}
    capacity: 10M
    window: 0
YAML
    chmod 0644 "$TB_WORK/serve.yaml"
    script serve.sh <<<$'#!/bin/bash\n#SBATCH --elastic-roles=serve.yaml\nsrun elasticrun' >/dev/null
    submit -N2 --exclusive -t 120 serve.sh >"$TB_WORK/first"
}

teardown_file() {
    end_process "$TB_WORK/hey.pid" INT
    end_process "$TB_WORK/router.pid" TERM
    end_service
    testbed_down
}

teardown() { [[ $BATS_TEST_COMPLETED ]] || tail -n 60 "$TB_WORK"/*.out "$TB_WORK"/*.log; }

# model NAME: a version of it, as a state.
model() {
    local dir=$TB_WORK/models/$1/000001
    as_user mkdir -p "$dir"
    as_user sh -c "echo data >$dir/data; echo 1 >$dir/slow; echo '{\"bytes\": 3000000}' >$dir/../model.json"
    as_user sh -c "echo '{\"format\": 1, \"files\": {\"data\": 5}}' >$dir/complete.json"
}

asked() { [[ $(curl -s -m 60 "http://127.0.0.1:$(<"$TB_WORK/port")/$1") == 000001 ]]; }

job_of() { leader_file 's["job"]'; }

# hand_over JOB: it submits the next one now.
hand_over() { as_user selastic handover "$1"; }

# The replicas of the next job do not start before let_go.
hold() { as_user touch "$TB_WORK/models/one/000001/hold"; }
let_go() { as_user rm -f "$TB_WORK/models/one/000001/hold"; }

has_submitted() { [[ $(leader_file 's["job"], s.get("submitted", 0) > 0') == "$1 True" ]]; }

# It has, or the next job has even begun.
is_submitted() { has_submitted "$1" || has_been_claimed "$1"; }

has_been_claimed() { local job; job=$(job_of) && [[ $job != "$1" ]]; }

kill_leader() {
    local leader
    leader=$(show_json "$1" | json_value 's["leader"]')
    as_user kill -KILL "$(agent_of "$1" "$leader")"
}

is_as_before() {
    [[ $(shard_json | json_value '*((m["name"], m["has"], m["why"] or "") for m in s["models"]),
        *((x["name"], x["ready"], x["replicas"]) for x in s["shards"])' 2>/dev/null) == \
    "('one', '000001', '') ('two', '000001', '') ('shard_1', 2, 2)" ]] && routed one=shard_1 two=shard_1
}

# The job that has the service, and perhaps the one that it has submitted.
no_others_run() {
    [[ " $(leader_file 's["job"], s.get("submitted", 0)') " == *" $(as_user squeue -h -t R -u "$TB_USER" -o %A | xargs) "* ]]
}

# The next job serves what the one before did, and nothing is left of that.
is_handed_over() {
    wait_for 120 another_serves "$1"
    wait_for 100 job_is "$1" COMPLETED
    wait_for 60 is_as_before
    wait_for 60 no_others_run
    wait_for 20 asked one
    wait_for 20 asked two
}

@test "a job serves, a router has its address, and requests come all the time" {
    wait_for 40 serves "$(<"$TB_WORK/first")"
    begin_router
    wait_for 40 asked one
    hey -z 60m -t 120 -c 4 -q 15 "http://127.0.0.1:$(<"$TB_WORK/port")/two" >"$TB_WORK/hey.log" 2>&1 3>&- &
    echo $! >"$TB_WORK/hey.pid"
}

@test "the leader dies before it has submitted the next job" {
    job=$(job_of)
    kill_leader "$job"
    run -1 has_submitted "$job"
    wait_for 60 hand_over "$job"
    is_handed_over "$job"
}

@test "the leader dies when it has submitted the next job" {
    job=$(job_of)
    hand_over "$job"
    wait_for 60 is_submitted "$job"
    kill_leader "$job"
    is_handed_over "$job"
}

@test "the leader dies when the next job has claimed the service" {
    job=$(job_of)
    hold
    hand_over "$job"
    wait_for 60 has_been_claimed "$job"
    [[ $(leader_file 's["serves"]') == False ]]
    kill_leader "$job"
    let_go
    is_handed_over "$job"
}

@test "the leader of the next job dies while its replicas start" {
    job=$(job_of)
    hold
    hand_over "$job"
    wait_for 60 has_been_claimed "$job"
    [[ $(leader_file 's["serves"]') == False ]]
    kill_leader "$(job_of)"
    let_go
    is_handed_over "$job"
}

@test "the leader of the next job dies while the routes are switched" {
    job=$(job_of)
    hand_over "$job"
    wait_for 60 another_serves "$job"
    kill_leader "$(job_of)"
    is_handed_over "$job"
}

@test "no request has failed meanwhile" {
    kill -0 "$(<"$TB_WORK/hey.pid")" # it has been there all the time
    end_process "$TB_WORK/hey.pid" INT
    grep -A 3 'Status code' "$TB_WORK/hey.log" | sed 's/^/# /' >&3
    run -1 grep 'Error distribution' "$TB_WORK/hey.log"
    [[ $(grep -c '\[[0-9]*\].*responses' "$TB_WORK/hey.log") == 1 ]]
    (($(sed -n 's/.*\[200\][[:space:]]*\([0-9]*\) responses/\1/p' "$TB_WORK/hey.log") > 500))
}
