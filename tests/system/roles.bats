#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Jobs of several programs: srun elasticrun --roles=FILE on the nodes of its step.
# Takes 40 s

load helpers
load elastic
load roles

setup_file() {
    testbed_up --stock --nodes 3 --cpus-per-node 4
    roles_up
}

teardown_file() { testbed_down; }

teardown() {
    [[ $BATS_TEST_COMPLETED ]] || tail -n 40 "$TB_WORK"/*.out
    cancel_all
}

@test "replicas start, are replaced, and end with the leading one" {
    job_file rl.yaml <<'YAML'
  server:
    run: [PROGRAM, serve, "{port}"]
    replicas: 2:5
    ports: [http]
    after: [coordinator]
    ready: {http: /healthz, within: 120s, every: 200ms}
    drain: {within: 50s}
    restart: {backoff: 200ms..1s}
YAML
    # Without plugins, too, replicas for which the step has no room run in an extension.
    job=$(run_roles rl.yaml 1)
    wait_for 30 ready_are "$job" server 5
    [ "$(endpoints "$job" | wc -l)" = 5 ]
    each_answers "$job"
    # Lines of output begin with the name.
    for i in 0 1 2 3 4; do wait_for 20 says "$TB_WORK/$job.out" "^server-$i: started\$"; done

    run --separate-stderr -0 as_user selastic logs "$job" sever
    [[ -z $output && $stderr == "selastic: no line in the output of job $job is of 'sever'" ]]
    run -0 as_user selastic logs "$job" server-4
    [ "$output" = 'server-4: started' ]
    [ "$(as_user selastic logs "$job" server | sort)" = "$(printf 'server-%s: started\n' 0 1 2 3 4)" ]
    if [[ $(id -u) == 0 ]]; then
        # Root opens what the user has named with the user's rights.
        run -0 on_testbed selastic logs "$job" server-4
        [ "$output" = 'server-4: started' ]
        as_user mv "$TB_WORK/$job.out" "$TB_WORK/kept"
        as_user ln -s /etc/shadow "$TB_WORK/$job.out"
        run -1 on_testbed selastic logs "$job"
        [[ $output == *"$job.out: Permission denied" ]]
        as_user mv "$TB_WORK/kept" "$TB_WORK/$job.out"
    fi
    as_user timeout 900 selastic logs "$job" server-1 --follow >"$TB_HOME/followed" &
    follower=$!

    # Slurm's SIGTERM is not for them.
    grep -q libelastic-shield "/proc/$(pid_of "$job" server-0)/maps"
    run ! grep -q libelastic-shield "/proc/$(pid_of "$job" coordinator-0)/maps"

    # The end of a replica is the end of no other one.
    others=$(for i in 0 2 3 4; do pid_of "$job" "server-$i"; done)
    old=$(pid_of "$job" server-1)
    as_user kill -KILL "$old"
    wait_for 30 ready_are "$job" server 5
    wait_for 30 eval "[[ \$(pid_of $job server-1) != $old ]]"
    [ "$(for i in 0 2 3 4; do pid_of "$job" "server-$i"; done)" = "$others" ]
    wait_for 20 says "$TB_WORK/$job.out" 'server-1 on n[12]: '

    # Fewer, and more.
    run -0 as_user selastic scale "$job" server=2
    [[ $output == *"server: 2 replicas (was 5)"* ]]
    wait_for 30 ready_are "$job" server 2
    wait_for 20 eval "[[ \$(ls $TB_WORK/log-$job/*.drained | wc -l) == 3 ]]"
    run -1 as_user selastic scale "$job" server=6
    [[ $output == *"6 replicas of server: allowed are 2 to 5"* ]]
    run -0 as_user selastic scale "$job" server=+1
    wait_for 30 ready_are "$job" server 3
    each_answers "$job"

    # Replaced because a user says so.
    old=$(pid_of "$job" server-0)
    run -0 as_user selastic fail "$job" server-0
    wait_for 30 eval "[[ \$(pid_of $job server-0) != $old ]]"
    wait_for 30 ready_are "$job" server 3

    # The job ends as the leading replica ends, and drains the others.
    echo 7 >"$TB_WORK/log-$job/end"
    wait_for 40 job_is "$job" FAILED
    [[ $(job_field "$job" ExitCode) == 7:0 ]]
    wait_for 30 nothing_is_left_of "$job"
    drained=("$TB_WORK/log-$job"/*.drained)
    ((${#drained[@]} == 7))
    # It has seen both starts of that replica, and the end of the job.
    wait "$follower"
    [ "$(sort -u "$TB_HOME/followed")" = 'server-1: started' ]
    [ "$(wc -l <"$TB_HOME/followed")" = 2 ]
}

@test "a gang is on several nodes, and starts anew as a whole" {
    job_file gang.yaml <<'YAML'
  pair:
    run: [PROGRAM, gang]
    tasks: 4
    per-node: 2
    ready: told
    restart: {backoff: 200ms..1s}
YAML
    job=$(run_roles gang.yaml 2)
    wait_for 20 eval "[[ \$(ls $TB_WORK/log-$job/pair-0.*.met 2>/dev/null | wc -l) == 4 ]]"
    wait_for 10 ready_are "$job" pair 1
    # Two ranks on each node; all know the nodes in the order of the ranks.
    met=$(sort "$TB_WORK/log-$job"/pair-0.*.met | tr '\n' ,)
    [[ $met =~ ^0\ (n[12])\ (n[^ ]*),1\ (n[12])\ (n[^ ]*),2\ (n[12])\ (n[^ ]*),3\ (n[12])\ (n[^ ]*),$ ]]
    [[ ${BASH_REMATCH[1]} == "${BASH_REMATCH[3]}" && ${BASH_REMATCH[5]} == "${BASH_REMATCH[7]}" ]]
    [[ ${BASH_REMATCH[2]} == "n[${BASH_REMATCH[1]#n}-${BASH_REMATCH[5]#n}]" || ${BASH_REMATCH[2]} == "n[2,1]" ]]
    as_user kill -KILL "$(cat "$TB_WORK/log-$job"/pair-0.3.[0-9])"
    wait_for 20 eval "[[ \$(ls $TB_WORK/log-$job/pair-0.*.met 2>/dev/null | wc -l) == 8 ]]"
    # scancel drains them all.
    as_user scancel "$job"
    wait_for 20 job_is "$job" CANCELLED
    wait_for 30 nothing_is_left_of "$job"
}

@test "a lost node costs its replicas only; what fails for good is said" {
    job_file lost.yaml <<'YAML'
  server:
    run: [PROGRAM, serve, "{port}"]
    replicas: 6
    ports: [http]
    ready: {tcp: yes, every: 200ms}
  broken:
    run: [/nonexistent/program]
YAML
    job=$(run_roles lost.yaml 3)
    wait_for 30 ready_are "$job" server 6
    broken_says_why() {
        roles_json "$job" | json_value "[r['more'] for r in s['roles'] if r['name'] == 'broken'][0]" >"$TB_HOME/more"
        says "$TB_HOME/more" 'broken-0 is not started again: .*/nonexistent/program'
    }
    wait_for 20 broken_says_why
    before=$(endpoints "$job" | awk '$2 != "" {print $1}' | wc -l)
    [ "$before" = 6 ]
    "$TESTBED" crash --dir "$TB_DIR" n3
    none_on_n3() { as_user selastic replicas "$job" >"$TB_HOME/replicas" && ! grep -qw n3 "$TB_HOME/replicas"; }
    wait_for 40 none_on_n3
    wait_for 40 ready_are "$job" server 6
    none_on_n3
    "$TESTBED" boot --dir "$TB_DIR" n3
    echo 0 >"$TB_WORK/log-$job/end"
    wait_for 40 nothing_is_left_of "$job"
}

@test "the leading node is lost: another node leads, and the replicas of the others go on" {
    job_file over.yaml <<'YAML'
  server:
    run: [PROGRAM, serve, "{port}"]
    replicas: 4
    ports: [http]
    ready: {tcp: yes, every: 200ms}
  big: {run: [sleep, "100"], cpus: 100}
YAML
    job=$(run_roles over.yaml 3)
    wait_for 30 ready_are "$job" server 4
    big_waits() {
        # Slurm may have refused it by then.
        [[ $(roles_json "$job" | json_value "[r['more'] for r in s['roles'] if r['name'] == 'big'][0]") =~ ^1\ (more asked for|are missing, asked for in ) ]]
    }
    wait_for 20 big_waits
    wait_for 20 ready_are "$job" coordinator 1
    as_user selastic show "$job" | tee "$TB_HOME/show"
    says "$TB_HOME/show" ': running, 3 nodes'
    says "$TB_HOME/show" 'coordinator 1/1, server 4/4, big 0/1'
    run -1 as_user selastic resize "$job" 2
    [[ $output == *"has roles: \`selastic scale $job ROLE=N\` sets their sizes"* ]]
    others=$(as_user selastic replicas "$job" --json | json_value "' '.join(r['name'] for r in s['replicas']
        if r['state'] == 'ready' and r['tasks'][0]['node'] != 'n1')")
    before=$(for name in $others; do echo "$name $(pid_of "$job" "$name")"; done)
    "$TESTBED" crash --dir "$TB_DIR" n1
    wait_for 40 eval "[[ \$(as_user selastic show $job --json | json_value 's[\"term\"]') == 1 ]]"
    wait_for 40 ready_are "$job" server 4
    wait_for 20 ready_are "$job" coordinator 1
    each_answers "$job"
    [ "$(for name in $others; do echo "$name $(pid_of "$job" "$name")"; done)" = "$before" ]
    "$TESTBED" boot --dir "$TB_DIR" n1
    echo 0 >"$TB_WORK/log-$job/end"
    wait_for 40 nothing_is_left_of "$job"
    wait_for 30 nodes_are 3 idle
}

@test "what cannot be run is said in one line" {
    refused_with() {
        run as_user srun -N1 -t 5 elasticrun "${@:2}"
        echo "$output"
        ((status != 0))
        [[ $output == *"$1"* ]]
    }
    refused_with "leave the command out" --roles="$TB_WORK/rl.yaml" python3 train.py
    refused_with "none.yaml: No such file" --roles=none.yaml
    refused_with "--roles=: must be the name of a job file" --roles=
}
