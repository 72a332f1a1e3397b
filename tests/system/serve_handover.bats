#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The job of a service hands it over to another one before its time limit, while hey asks through a
# router: no request fails. A successor that dies in between, and one too many, do no harm.
# Takes 75 s

load helpers
load elastic
load roles
load serve

setup_file() {
    local program
    for program in haproxy hey; do
        [[ -x $(command -v $program) ]] || skip "$program is not installed"
    done
    export SERVICE=h$$ # services outlive jobs and testbeds
    testbed_up --stock --nodes 5 --cpus-per-node 4
    cp "$TREE"/tests/system/{light,serve_program}.py "$TB_WORK/"
    as_user mkdir "$TB_WORK/models"
    model one 1
    model two 1
    cat >"$TB_WORK/serve.yaml" <<YAML
service: $SERVICE
handover: HANDOVER
models: {repository: $TB_WORK/models, every: 1s}
roles:
  server:
    kind: shards
    shards: 1:2
    replicas: 2
    run: [/usr/bin/python3, -S, $TB_WORK/serve_program.py, "{port}", "{models}"]
    ports: [http]
    ready: {http: /ready, within: 120s, every: 200ms}
    drain: {within: 20s}
    capacity: 5M
    window: 0
YAML
    handover 1160s
    submit -N2 --exclusive -t 20 -J serve --wrap "srun elasticrun --roles=$TB_WORK/serve.yaml" >"$TB_WORK/first"
}

setup() { first=$(<"$TB_WORK/first"); }

teardown_file() {
    end_process "$TB_WORK/hey.pid" INT
    end_process "$TB_WORK/router.pid" TERM
    end_service
    testbed_down
}

teardown() { [[ $BATS_TEST_COMPLETED ]] || tail -n 60 "$TB_WORK"/*.out "$TB_WORK"/*.log; }

# model NAME NUMBER [SECONDS]: a version of it, as a state; a server needs that long to start with it.
model() {
    local dir=$TB_WORK/models/$1/00000$2
    as_user mkdir -p "$dir"
    as_user sh -c "echo data >$dir/data; echo '{\"bytes\": 3000000}' >$dir/../model.json"
    [[ ! ${3:-} ]] || as_user sh -c "echo $3 >$dir/slow"
    as_user sh -c "echo '{\"format\": 1, \"files\": {\"data\": 5}}' >$dir/complete.json"
}

# handover TIME: jobs that start from now on submit the next one so long before their limit of 20 minutes.
handover() {
    sed -i "s/^handover: .*/handover: $1/" "$TB_WORK/serve.yaml"
    chmod 0644 "$TB_WORK/serve.yaml"
}

asked() { [[ $(curl -s -m 60 "http://127.0.0.1:$(<"$TB_WORK/port")/$1") == "$2" ]]; }

begin_load() {
    hey -z 60m -t 120 -c 4 -q 25 "http://127.0.0.1:$(<"$TB_WORK/port")/$1" >"$TB_WORK/hey.log" 2>&1 3>&- &
    echo $! >"$TB_WORK/hey.pid"
}

# Of more than COUNT requests none has failed.
end_load() {
    kill -0 "$(<"$TB_WORK/hey.pid")" # it has been there all the time
    end_process "$TB_WORK/hey.pid" INT
    grep -A 3 'Status code' "$TB_WORK/hey.log" | sed 's/^/# /' >&3
    run -1 grep 'Error distribution' "$TB_WORK/hey.log"
    [[ $(grep -c '\[[0-9]*\].*responses' "$TB_WORK/hey.log") == 1 ]]
    (($(sed -n 's/.*\[200\][[:space:]]*\([0-9]*\) responses/\1/p' "$TB_WORK/hey.log") > $1))
}

@test "a job serves, and a router has its address" {
    wait_for 40 serves "$first"
    handover 150s # the test says when
    begin_router
    wait_for 40 asked one 000001
    wait_for 20 asked two 000001
    begin_load one
}

@test "before its time limit the next job takes the service, and the first one ends" {
    wait_for 120 another_serves "$first"
    second=$(leader_file 's["job"]')
    echo "$second" >"$TB_WORK/second"
    wait_for 100 job_is "$first" COMPLETED
    wait_for 20 grep -q 'another job has its requests; this job ends' "$TB_WORK/$first.out"
    wait_for 20 asked one 000001
    wait_for 20 asked two 000001
    # The options of the first one, and its name.
    run -0 as_user scontrol show job "$second"
    [[ $output == *"JobName=serve"* && $output == *"TimeLimit=00:20:00"* && $output == *"NumNodes=2"* ]]
    [[ $(leader_file 's["term"]') == 2 ]]
}

@test "one job too many that was to follow the first one ends by itself" {
    extra=$(submit -N1 --exclusive -t 20 --wrap "
        export ELASTIC_HANDOVER_OF=$first
        srun elasticrun --roles=$TB_WORK/serve.yaml")
    wait_for 60 job_is "$extra" COMPLETED
    wait_for 20 grep -q 'another job than the one before has it, and this one is not needed' "$TB_WORK/$extra.out"
    serves "$(<"$TB_WORK/second")"
}

@test "no request has failed meanwhile" {
    follows_it() { [[ $(as_user selastic router "$SERVICE" --status --run-dir="$TB_WORK/router") == *"job $(<"$TB_WORK/second") answers"* ]]; }
    wait_for 20 follows_it
    end_load 500
}

@test "a successor that dies before its replicas are ready: the job before has the service again" {
    second=$(<"$TB_WORK/second")
    serves "$second"
    begin_load two
    model one 2 100 # so long a replica needs to start; those that run load it in place
    wait_for 40 asked one 000002
    as_user selastic handover "$second"
    another_has_claimed() { [[ $(leader_file 's["job"]') != "$second" ]]; }
    wait_for 120 another_has_claimed
    third=$(leader_file 's["job"]')
    [[ $(leader_file 's["serves"]') == False ]]
    run -0 as_user selastic shard "$SERVICE"
    [[ $output == *"holds its table until its replicas are ready: job $second serves"* ]]
    as_user scancel "$third"
    wait_for 90 serves "$second"
    [[ $(leader_file 's["term"]') == 4 ]]
    # It decides again.
    model two 2
    wait_for 40 asked two 000002
    end_load 100
}
