#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Faults in jobs of several programs: of a task, of a gang, of an agent, of a node, of the leader.
# A world trains beside the replicas.
# Takes 105 s

load helpers
load elastic
load roles

setup_file() {
    testbed_up --nodes 4 --cpus-per-node 4 --grace 60
    roles_up
    cp "$TREE/tests/system/steps.py" "$TB_WORK/"
}

teardown_file() { testbed_down; }

teardown() {
    [[ -z ${stopped:-} ]] || kill -CONT "$stopped" 2>/dev/null || true
    [[ $BATS_TEST_COMPLETED ]] || tail -n 60 "$TB_WORK"/*.out
    cancel_all
}

# faults_file NAME KEYS <<EOF: as job_file, with four servers, a gang on two nodes, and a world on
# two nodes. KEYS are more keys of the servers.
faults_file() {
    {
        cat <<YAML
  server:
    run: [PROGRAM, serve, "{port}"]
    replicas: 4
    ports: [http]
    ready: {http: /healthz, within: 120s, every: 200ms}
    drain: {within: 5s}
    $2
  pair: {run: [PROGRAM, gang], tasks: 2, per-node: 1, ready: told, restart: {backoff: 200ms..1s}}
  learner: {kind: world, nodes: "2", cpus: 1, run: [bash, -c, "exec /usr/bin/python3 $TB_WORK/steps.py \$LOG 100000 0.05"]}
YAML
        cat
    } | job_file "$1"
}

# living JOB: lines "NAME.TASK NODE PID" of the tasks and of the workers that live, whoever knows of them. It is called while tests
# wait, again and again: it must be cheap.
living() {
    local file name pid line
    local -A names=() lives=() nodes=()
    local -a files
    for file in "$TB_WORK/log-$1"/*; do
        name=${file##*/}
        # What has no line yet has not begun.
        if [[ $name =~ ^([a-z]+-[0-9]+\.[0-9]+)\.[0-9]+$ ]]; then
            name=${BASH_REMATCH[1]} && read -r pid <"$file" || continue
        elif [[ $name =~ ^rank-[0-9]+-([0-9]+)$ ]]; then
            name=learner.${BASH_REMATCH[1]} && read -r line <"$file" && pid=${line##* pid=} || continue
        else
            continue
        fi
        names[$pid]=$name
    done
    ((${#names[@]})) || return 0
    files=("${!names[@]}")
    files=("${files[@]/#//proc/}")
    while IFS=/ read -r -d '' _ _ pid line; do
        case $line in
        environ:LOG=*) lives[$pid]=1 ;;
        *) nodes[$pid]=${line#*=} ;;
        esac
    done < <(grep -zxHs -e "LOG=$TB_WORK/log-$1" -e 'SLURMD_NODENAME=.*' "${files[@]/%//environ}")
    for pid in "${!lives[@]}"; do echo "${names[$pid]} ${nodes[$pid]} $pid"; done | sort
}

# NAME.TASK of all that is to live, with faults_file.
all=$(printf '%s\n' coordinator-0.0 learner.0 learner.1 pair-0.0 pair-0.1 server-{0..3}.0)

# whole JOB: all are ready, and each lives once.
whole() {
    [[ $(roles_json "$1" | json_value "all(r['ready'] == r['target'] for r in s['roles'])" 2>/dev/null) == True ]] &&
        [[ $(living "$1" | cut -d' ' -f1) == "$all" ]]
}

# more_says JOB ROLE TEXT: why there are not more.
more_says() { [[ $(roles_json "$1" | json_value "[r['more'] for r in s['roles'] if r['name'] == '$2'][0]") == "$3" ]]; }

# began FILE NODES: submits it, and waits until all is there.
began() {
    job=$(submit_roles "$1" "$2")
    wait_for 40 whole "$job"
    before=$(living "$job")
    echo "$before"
}

# only_changed PATTERN...: all others live as before.
only_changed() {
    local now
    now=$(living "$job")
    echo "$now"
    comm -23 <(grep -vE "$1" <<<"$before") <(echo "$now") >"$TB_HOME/gone"
    [[ ! -s $TB_HOME/gone ]] || { sed 's/^/is gone: /' "$TB_HOME/gone"; return 1; }
}

# other_pid NAME.TASK: it lives, in another process than before.
other_pid() {
    local now
    now=$(living "$job" | grep "^$1 ") && [[ $now != "$(grep "^$1 " <<<"$before")" ]]
}

# lives_anew NAME.TASK LINE: there is another process of it than in this line of living.
lives_anew() { living "$job" | grep "^$1 " | grep -qvxF "$2"; }

pid_before() { awk -v name="$1" '$1 == name { print $3 }' <<<"$before"; }

# names_on NODE: a pattern for what was there. A gang is hit as a whole, and so is the world.
names_on() {
    awk -v node="$1" '
        $2 == node { sub(/^pair-.*/, "pair-", $1); sub(/^learner.*/, "learner", $1); print "^" $1 }' <<<"$before" | sort -u | paste -sd'|'
}

# ends JOB: the leading replica ends well, and the job.
ends() {
    echo 0 >"$TB_WORK/log-$1/end"
    wait_for 60 job_is "$1" COMPLETED
    wait_for 30 nothing_is_left_of "$1"
}

@test "tasks are killed and stopped: each costs its replica, or its gang as a whole" {
    faults_file tasks.yaml 'restart: {backoff: 2s..60s}' </dev/null
    began tasks.yaml 3
    # A stopped task counts as failed after heartbeat_timeout.
    kill -STOP "$(pid_before server-3.0)"
    # The pauses double.
    for pause in 2 4; do
        at=$EPOCHREALTIME
        victim=$(living "$job" | grep '^server-1.0 ')
        kill -KILL "${victim##* }"
        wait_for 40 lives_anew server-1.0 "$victim"
        (($(seconds_since "$at") >= pause))
    done
    kill -KILL "$(pid_before pair-0.1)"
    wait_for 20 eval 'other_pid pair-0.0 && other_pid pair-0.1'
    # This one answers three times in a row that it is not well.
    as_user touch "$(find "$TB_WORK/log-$job" -name 'server-2.0.*').sick"
    wait_for 20 other_pid server-2.0
    wait_for 20 other_pid server-3.0
    wait_for 30 whole "$job"
    only_changed '^(server-[123]|pair-0)'
    wait_for 20 says "$TB_WORK/$job.out" 'job [0-9]+: server-2: /healthz: HTTP status 503$'
    wait_for 20 says "$TB_WORK/$job.out" 'server-3 on n[123]: it had been stopped \(SIGSTOP\) for [0-9]+ s$'
    each_answers "$job"
    [ "$(generation_of "$job")" = 1 ]
    steps_were_made_once "$job"
    ends "$job"
}

@test "a role without restarts says so, and the job goes on" {
    faults_file budget.yaml 'restart: {max: 2, backoff: 100ms..200ms}' </dev/null
    began budget.yaml 3
    for kills in 1 2 3; do
        victim=$(living "$job" | grep '^server-0.0 ')
        kill -KILL "${victim##* }"
        ((kills < 3)) || break
        wait_for 30 lives_anew server-0.0 "$victim"
        wait_for 20 ready_are "$job" server 4
    done
    wait_for 30 ready_are "$job" server 3
    wait_for 20 more_says "$job" server 'server-0 is not started again: ended by signal 9, and no restart is left'
    wait_for 20 says "$TB_WORK/$job.out" 'server-0 is not started again: .*no restart is left'
    only_changed '^server-0'
    goes_on "$job"
    [ "$(generation_of "$job")" = 1 ]
    # The restarts are those of the role, and of no other one.
    kill -KILL "$(pid_before pair-0.0)"
    wait_for 20 eval 'other_pid pair-0.1'
    kill -KILL "$(pid_before server-1.0)"
    wait_for 20 ready_are "$job" server 2
    only_changed '^(server-[01]|pair-0)'
    run ! grep -q '^server-[01]' <(living "$job")
    steps_were_made_once "$job"
    ends "$job"
}

# node_of ROLE: of one of its tasks, and not the leader's.
node_of() { awk -v role="^$1-" -v leader="$leader" '$1 ~ role && $2 != leader { node = $2 } END { print node }' <<<"$before"; }

# hit SIGNAL NODE: its agent, of the base or of an extension.
hit() {
    local each
    for each in "$job" $(running_extensions_of "$job"); do
        stopped=$(agent_of "$each" "$2")
        [[ -z $stopped ]] || break
    done
    kill "-$1" "$stopped"
    [[ $1 == STOP ]] || stopped=
}

@test "an agent is killed, and one is stopped: the replicas of its node are replaced" {
    faults_file agents.yaml 'restart: {backoff: 200ms..1s}' </dev/null
    began agents.yaml 4
    leader=$(show_json "$job" | json_value 's["leader"]')
    for signal in KILL STOP; do
        before=$(living "$job") generation=$(generation_of "$job")
        # First a node without the world.
        node=$(node_of "$([[ $signal == KILL ]] && echo pair || echo server)")
        pattern=$(names_on "$node")
        echo "$signal on $node: $pattern"
        hit "$signal" "$node"
        victim=$(awk -v node="$node" '/^(server|pair)/ && $2 == node { print $1; exit }' <<<"$before")
        wait_for 30 other_pid "$victim"
        if [[ $stopped ]]; then
            kill -CONT "$stopped"
            stopped=
        fi
        wait_for 40 whole "$job"
        only_changed "$pattern"
        each_answers "$job"
        if [[ $pattern == *learner* ]]; then
            goes_on_after "$job" "$generation"
        else
            goes_on "$job"
            [ "$(generation_of "$job")" = "$generation" ]
        fi
    done
    ends "$job"
}

@test "the agent of an extension is killed, and one is stopped: the world goes on, and the base" {
    all=$(printf '%s\n' coordinator-0.0 learner.0 server-{0..4}.0)
    job_file extension.yaml <<YAML
  server:
    run: [PROGRAM, serve, "{port}"]
    replicas: 1:5
    cpus: 2
    pool: elastic
    ports: [http]
    ready: {tcp: yes, every: 200ms}
    restart: {max: 0}
  learner: {kind: world, nodes: 1, cpus: 1, run: [bash, -c, "exec /usr/bin/python3 $TB_WORK/steps.py \$LOG 100000 0.05"]}
YAML
    began extension.yaml 1
    base=$(job_nodes "$job")
    for signal in KILL STOP; do
        before=$(living "$job")
        read -r victim node _ < <(awk -v base="$base" '$2 != base' <<<"$before")
        pattern=$(names_on "$node")
        echo "$signal on $node: $pattern"
        hit "$signal" "$node"
        wait_for 30 other_pid "$victim"
        # An agent that is stopped goes with its extension.
        wait_for 60 whole "$job"
        stopped=
        only_changed "$pattern"
        each_answers "$job"
    done
    [ "$(generation_of "$job")" = 1 ]
    steps_were_made_once "$job"
    ends "$job"
}

@test "the leader is killed, and one is stopped: what runs on other nodes goes on" {
    faults_file leaders.yaml 'restart: {backoff: 200ms..1s}' </dev/null
    began leaders.yaml 4
    for term in 1 2; do
        before=$(living "$job")
        leader=$(show_json "$job" | json_value 's["leader"]')
        signal=$([[ $term == 1 ]] && echo KILL || echo STOP)
        echo "$signal on $leader"
        hit "$signal" "$leader"
        wait_for 40 eval "[[ \$(show_json $job | json_value 's[\"term\"]') == $term ]]"
        if [[ $stopped ]]; then
            kill -CONT "$stopped"
            stopped=
        fi
        wait_for 40 whole "$job"
        # A gang on several nodes starts anew, and so does the world.
        only_changed "^pair|^learner|$(names_on "$leader")"
        each_answers "$job"
    done
    ends "$job"
}

@test "a node is lost: what was there is replaced on the others" {
    faults_file node.yaml 'restart: {max: 0}' </dev/null
    began node.yaml 4
    leader=$(show_json "$job" | json_value 's["leader"]')
    node=$(node_of server)
    "$TESTBED" crash --dir "$TB_DIR" "$node"
    # It costs no restart.
    wait_for 40 whole "$job"
    only_changed "$(names_on "$node")"
    each_answers "$job"
    goes_on_after "$job" 1
    run ! grep -w "$node" <(living "$job")
    "$TESTBED" boot --dir "$TB_DIR" "$node"
    echo 0 >"$TB_WORK/log-$job/end"
    wait_for 40 nothing_is_left_of "$job"
}

@test "the leading replica ends with 3, and so does the job: clean running, clean none" {
    for clean in running none; do
        faults_file clean.yaml 'restart: {max: 0}' </dev/null
        # Who is asked to end has the time to say that it was.
        sed -i "1i clean: $clean
            s/within: 5s/within: 50s/" "$TB_WORK/clean.yaml"
        began clean.yaml 3
        echo 3 >"$TB_WORK/log-$job/end"
        wait_for 20 says "$TB_WORK/$job.out" 'coordinator-0 has ended with 3'
        if [[ $clean == none ]]; then
            goes_on "$job"
            only_changed '^coordinator'
            job_is "$job" RUNNING
            [ -z "$(find "$TB_WORK/log-$job" -name '*.drained')" ]
            as_user touch "$TB_WORK/log-$job.enough"
            awk '/^(server|pair)/ { print $3 }' <<<"$before" | xargs kill -TERM
        fi
        wait_for 60 job_is "$job" FAILED
        [ "$(job_field "$job" ExitCode)" = 3:0 ]
        [ "$(find "$TB_WORK/log-$job" -name '*.drained' | wc -l)" = 6 ]
        [ -z "$(living "$job")" ]
        steps_were_made_once "$job"
        wait_for 30 nothing_is_left_of "$job"
    done
}

@test "another user listens on a port that a replica does not use: nobody is told it meanwhile, and it runs on" {
    [[ $(id -u) == 0 ]] || skip "needs root to be another user"
    cp "$TREE/tests/system/stranger.py" "$TB_WORK/"
    # Without `ready`: both are offered at once, though they never listen. With `ready: tcp` a replica
    # gets another port: test_replicas.
    job_file stolen.yaml <<'YAML'
  idle: {run: [sleep, "1000"], replicas: 2, ports: [http], restart: {max: 0}}
YAML
    job=$(submit_roles stolen.yaml 2)
    wait_for 40 ready_are "$job" idle 2
    before=$(endpoints "$job")
    read -r _ _ port < <(grep '^idle-0 ' <<<"$before")
    exec {hold}> >(on_testbed setpriv --reuid=nobody --regid=nogroup --clear-groups -- /usr/bin/python3 \
        "$TB_WORK/stranger.py" squat any "$port" 1 exactly >"$TB_WORK/stolen.out")
    wait_for 30 says "$TB_WORK/stolen.out" "^listening on $port-"
    is_withheld() { [[ $(endpoints "$job") == "$(grep '^idle-1 ' <<<"$before")" ]]; }
    wait_for 30 is_withheld
    ready_are "$job" idle 2
    exec {hold}>&-
    is_told_again() { [[ $(endpoints "$job") == "$before" ]]; }
    wait_for 30 is_told_again
    ends "$job"
}
