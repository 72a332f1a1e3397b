#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Jobs of several programs, of which one is a world: the training that --elastic alone would run.
# Takes 75 s

load helpers
load elastic
load roles

setup_file() {
    testbed_up --nodes 5 --cpus-per-node 4 --grace 60
    roles_up
    cp "$TREE/tests/system/steps.py" "$TB_WORK/"
}

teardown_file() { testbed_down; }

teardown() {
    [[ $BATS_TEST_COMPLETED ]] || tail -n 60 "$TB_WORK"/*.out
    cancel_all
}

# world_file NAME NODES STEPS KEYS <<EOF: as job_file, with a world "learner".
world_file() {
    {
        cat
        printf '  learner: {kind: world, nodes: "%s", %s, run: [bash, -c, "exec /usr/bin/python3 %s/steps.py $LOG %s 0.05"]}\n' \
            "$2" "$4" "$TB_WORK" "$3"
    } | job_file "$1"
}

submit_world() { submit_roles "$1" "$2" --elastic-grow-delay=1; }

pids_of() {
    local name
    for name in $(as_user selastic replicas "$1" --json | json_value "' '.join(r['name'] for r in s['replicas'] if r['state'] == 'ready')"); do
        echo "$name $(pid_of "$1" "$name")"
    done
}

# role_says JOB ROLE FIELD TEXT
role_says() { [[ $(roles_json "$1" | json_value "[r['$3'] for r in s['roles'] if r['name'] == '$2'][0]") == *"$4"* ]]; }

# extension_of JOB ROLE: the jobs of its extensions; of the world for "".
extension_of() { as_user squeue -h -t RUNNING -n "wrap+$2" -o %i; }

@test "a world grows, is preempted and ends, and no replica notices" {
    world_file rl.yaml 1:3 100000 'cpus: 2' <<'YAML'
  server:
    run: [PROGRAM, serve, "{port}"]
    replicas: 2
    ports: [http]
    after: [learner]
    ready: {http: /healthz, within: 120s, every: 200ms}
    drain: {within: 50s}
YAML
    job=$(submit_world rl.yaml 2)
    wait_for 40 ready_are "$job" learner 3
    wait_for 20 ready_are "$job" server 2
    each_answers "$job"
    [[ $(show_json "$job" | json_value "sorted({e['role'] for e in s['extensions']})") == "['learner']" ]]
    # The world has one node of the base, on which replicas are, too.
    [ "$(as_user squeue -h -t RUNNING -o %A | wc -l)" = 3 ]
    before=$(pids_of "$job")
    # A worker of the world knows its role.
    worker=$(sed -n 's/^start .* pid=//p' "$TB_WORK/log-$job/rank-$(generation_of "$job")-0")
    tr '\0' '\n' <"/proc/$worker/environ" >"$TB_HOME/worker"
    grep -qx ELASTIC_ROLE=learner "$TB_HOME/worker"
    grep -qx OMP_NUM_THREADS=2 "$TB_HOME/worker"
    # Users set its size as that of any elastic job.
    run -0 as_user selastic resize "$job" 2
    wait_for 30 ready_are "$job" learner 2
    run -0 as_user selastic resize "$job" 3
    wait_for 30 ready_are "$job" learner 3
    run as_user selastic scale "$job" learner=2
    ((status != 0))
    [[ $output == *"the size of learner cannot be set: it is the world; selastic resize sets it"* ]]
    # A job of the higher tier takes nodes of the world.
    rival=$(lasting -N2 --exclusive)
    wait_for 30 ready_are "$job" learner 2
    over "$rival"
    wait_for 40 ready_are "$job" learner 3
    goes_on "$job"
    [ "$(pids_of "$job")" = "$before" ]
    steps_were_made_once "$job"
    # It ends, and the job does not.
    as_user touch "$TB_WORK/log-$job.enough"
    wait_for 20 role_says "$job" learner size "it has ended"
    wait_for 20 eval "[[ \$(as_user squeue -h -o %A) == $job ]]"
    [ "$(pids_of "$job")" = "$before" ]
    wait_for 20 says "$TB_WORK/$job.out" 'learner has ended with 0'
    echo 3 >"$TB_WORK/log-$job/end"
    wait_for 60 job_is "$job" FAILED
    wait_for 30 nothing_is_left_of "$job"
}

@test "replicas come and go, and the world does not notice" {
    world_file grow.yaml 1 100000 'cpus: 2' <<'YAML'
  server: {run: [PROGRAM, serve, "{port}"], replicas: 0:6, cpus: 2, pool: elastic, ports: [http], drain: {within: 50s}}
YAML
    job=$(submit_world grow.yaml 1)
    wait_for 40 ready_are "$job" server 6
    wait_for 20 ready_are "$job" learner 1
    rival=$(lasting -N2 --exclusive)
    goes_on "$job"
    over "$rival"
    wait_for 40 ready_are "$job" server 6
    [ "$(generation_of "$job")" = 1 ]
    # The leading replica's end is the job's: the world saves, and ends.
    echo 0 >"$TB_WORK/log-$job/end"
    wait_for 60 job_is "$job" COMPLETED
    grep -q '^told' "$TB_WORK/log-$job/rank-1-0"
    steps_were_made_once "$job"
    wait_for 30 nothing_is_left_of "$job"
}

@test "what the world asks for waits in the queue, until the world is over" {
    rival=$(lasting -N4 --exclusive)
    world_file queue.yaml 1:2 100000 'cpus: 2' </dev/null
    job=$(submit_world queue.yaml 1)
    wait_for 40 ready_are "$job" learner 1
    wait_for 20 eval '[[ $(as_user squeue -h -t PENDING -o %i | wc -w) == 1 ]]'
    waits=$(as_user squeue -h -t PENDING -o %i)
    sleep 13
    [ "$(as_user squeue -h -t PENDING -o %i)" = "$waits" ]
    as_user touch "$TB_WORK/log-$job.enough"
    wait_for 20 role_says "$job" learner size "it has ended"
    wait_for 20 eval '[[ -z $(as_user squeue -h -t PENDING -o %i) ]]'
}

@test "a world that leads ends the job" {
    world_file leads.yaml 1:2 100000 'leads: yes' <<'YAML'
  server: {run: [PROGRAM, serve, "{port}"], ports: [http], drain: {within: 50s}}
YAML
    sed -i '/^  coordinator/d' "$TB_WORK/leads.yaml"
    job=$(submit_world leads.yaml 1)
    # A server that has written its number hears what it is told.
    server_listens() { compgen -G "$TB_WORK/log-$job/server-0.0.*" >/dev/null; }
    wait_for 40 server_listens
    wait_for 40 steps_exceed "$job" 20
    as_user touch "$TB_WORK/log-$job.enough"
    wait_for 60 job_is "$job" COMPLETED
    [ "$(find "$TB_WORK/log-$job" -name 'server-0.*.drained' | wc -l)" = 1 ]
    steps_were_made_once "$job"
    wait_for 30 nothing_is_left_of "$job"
}

@test "clean: none lets the world train on when the leading replica has ended" {
    world_file none.yaml 1 100000 'cpus: 2' </dev/null
    sed -i '1i clean: none' "$TB_WORK/none.yaml"
    job=$(submit_world none.yaml 1)
    wait_for 30 ready_are "$job" learner 1
    echo 0 >"$TB_WORK/log-$job/end"
    wait_for 20 says "$TB_WORK/$job.out" 'coordinator-0 has ended with 0'
    goes_on "$job"
    job_is "$job" RUNNING
    as_user touch "$TB_WORK/log-$job.enough"
    wait_for 60 job_is "$job" COMPLETED
    # Nobody has told the world to end.
    run ! grep -q '^told' "$TB_WORK/log-$job/rank-1-0"
    steps_were_made_once "$job"
    wait_for 30 nothing_is_left_of "$job"
}

@test "clean: all leaves no state behind" {
    for clean in running all; do
        world_file clean.yaml 1 100000 'cpus: 2' </dev/null
        sed -i "1i clean: $clean" "$TB_WORK/clean.yaml"
        job=$(submit_world clean.yaml 1)
        wait_for 30 ready_are "$job" learner 1
        dir=$(show_json "$job" | json_value 's["state_dir"]')
        [ -e "$dir/endpoints.json" ]
        echo 0 >"$TB_WORK/log-$job/end"
        wait_for 60 job_is "$job" COMPLETED
        wait_for 30 nothing_is_left_of "$job"
        if [[ $clean == all ]]; then [ ! -e "$dir" ]; else [ -e "$dir/endpoints.json" ]; fi
    done
}

@test "another node leads: the world and the replicas go on" {
    world_file over.yaml 2:3 100000 'cpus: 2' <<'YAML'
  server: {run: [PROGRAM, serve, "{port}"], replicas: 4, cpus: 1, ports: [http], drain: {within: 50s}}
YAML
    job=$(submit_world over.yaml 3)
    wait_for 40 ready_are "$job" learner 3
    wait_for 20 ready_are "$job" server 4
    before=$(pids_of "$job")
    leader=$(show_json "$job" | json_value 's["leader"]')
    generation=$(generation_of "$job")
    "$TESTBED" crash --dir "$TB_DIR" "$leader"
    wait_for 40 eval "[[ \$(show_json $job | json_value 's[\"term\"]') == 1 ]]"
    goes_on_after "$job" "$generation"
    wait_for 40 ready_are "$job" server 4
    [ "$(comm -12 <(sort <<<"$before") <(pids_of "$job" | sort) | wc -l)" -ge 2 ]
    "$TESTBED" boot --dir "$TB_DIR" "$leader"
    as_user touch "$TB_WORK/log-$job.enough"
    wait_for 30 role_says "$job" learner size "it has ended"
    echo 0 >"$TB_WORK/log-$job/end"
    wait_for 40 nothing_is_left_of "$job"
}

@test "without room for the world or its leading role a job says so, and ends" {
    world_file large.yaml 2 100 'cpus: 4' </dev/null
    job=$(run_roles large.yaml 2)
    wait_for 60 job_is "$job" FAILED
    says "$TB_WORK/$job.out" 'the base has no room for coordinator'
    sed -i 's/cpus: 4/cpus: 5/' "$TB_WORK/large.yaml"
    job=$(run_roles large.yaml 2)
    wait_for 60 job_is "$job" FAILED
    says "$TB_WORK/$job.out" 'the base has no 2 nodes with room for learner'
    job_file wide.yaml </dev/null
    sed -i 's/leads: yes/leads: yes, cpus: 5/' "$TB_WORK/wide.yaml"
    job=$(run_roles wide.yaml 2)
    wait_for 60 job_is "$job" FAILED
    says "$TB_WORK/$job.out" 'the base has no room for coordinator'
    world_file many.yaml 3 100 'cpus: 1' </dev/null
    run as_user srun -N2 -t 10 elasticrun --roles="$TB_WORK/many.yaml"
    ((status != 0))
    [[ $output == *"role learner needs 3 nodes to start, this step has 2; use srun -N3"* ]]
}
