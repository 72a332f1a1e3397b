#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# A fit whose training is a world of two nodes: its leader, one of its nodes, its job and its runner are lost meanwhile.
# Takes 65 s

load helpers
load elastic
load roles
load serve
load fit
load fit_roles

setup_file() {
    export SERVICE=fw$$ # services outlive jobs and testbeds
    testbed_up --stock --nodes 3 --cpus-per-node 8
    roles_train_up
    gcc -O1 -Wall -Wextra -shared -fPIC -o "$TB_WORK/fit_stop.so" "$TREE/tests/system/fit_stop.c"
    chmod 0755 "$TB_WORK/fit_stop.so"
    begin_job
}

# begin_job: the next job of the service, in which two replicas serve, and a runner stops where stop_at says.
begin_job() {
    # shellcheck disable=SC2034 # of begin_service
    PRELOAD="export FIT_STOP=$TB_WORK/stop LD_PRELOAD=$TB_WORK/fit_stop.so; exec "
    begin_service 2 2 "" "world], kind: world, nodes: 2, cpus: 4" -N3 --requeue --open-mode=append
    echo "$job" >"$TB_WORK/job"
}

# another_job: of the one that there is a node is lost.
another_job() {
    as_user scancel "$job"
    [[ -z $crashed ]] || "$TESTBED" boot --dir "$TB_DIR" "$crashed"
    crashed=
    wait_for 60 job_ended "$job"
    begin_job
}

setup() {
    job=$(<"$TB_WORK/job") crashed=''
    rm -f "$TB_WORK"/stop*
}

teardown() {
    [[ -z $crashed ]] || "$TESTBED" boot --dir "$TB_DIR" "$crashed"
    [[ $BATS_TEST_COMPLETED ]] || { tail -n 60 "$TB_WORK"/*.out; as_user selastic fit show "$SERVICE"; }
}

teardown_file() {
    end_service
    testbed_down
}

leader() { show_json "$job" | json_value 's["leader"]'; }

# node_of PROCESS, by the environment that Slurm gives to each step.
node_of() { tr '\0' '\n' <"/proc/$1/environ" | sed -n 's/^SLURMD_NODENAME=//p'; }

# Workers that have begun in this job.
begun() { grep -c 'trains world' "$TB_WORK/$job.out" || true; }
begun_are() { (($(begun) >= $1)); }

# begins: the world does, since there were $before workers.
begins() {
    wait_for 60 begun_are $((before + 2))
    wait_for 60 are_tasks 2
    before=$((before + 2))
}

# begin_training NAME WORD: both workers are there, and wait for NAME.
begin_training() {
    wait_for 60 are_served
    data "$1" "$2" until "$TB_WORK/$1"
    before=$(begun)
    begin "$1"
    begins
}

are_served() { [[ $(servers | wc -l) == 2 ]]; }

# ended_well MODEL: the fit has made it, and two replicas serve it. Nothing of the fit is left.
ended_well() {
    wait_for 100 ended_as SUCCESS
    [[ $(path_of) == "INITIAL > WAIT_FOR_START > WAIT_FOR_FIT > SUCCESS" ]]
    [[ $(latest) == "$1" ]]
    wait_for 60 serves_all "$(current)" 2
    nothing_is_left
}

# No partial state, no attempt, no grant, no worker; what serves is complete, and as much as was recorded.
nothing_is_left() {
    [[ $(partials) == 0 && -z $(find "$TB_WORK/models" -name '.attempt*') ]]
    [[ -z $(as_user sh -c "find ~/.slurm-elastic/services/$SERVICE/fits -name '*grant*.json'") ]]
    as_user selastic states show "$TB_WORK/models/m" --verify
    wait_for 30 are_tasks 0
}

recorded() { [[ $(fit_json | json_value 's["count"]') == "$1" ]]; }

# stopped: the runner stands at its step. $runner is its number.
stopped() {
    [[ -s $TB_WORK/stop.at ]] && runner=$(<"$TB_WORK/stop.at") && [[ $(ps -o stat= -p "$runner") == T* ]]
}

# stop_at ACTION: there the runner stops next.
stop_at() { as_user sh -c 'echo "$1" >"$2/stop.new" && mv "$2/stop.new" "$2/stop"' sh "$1" "$TB_WORK"; }

# lose_leader: its agent is killed, with the runner that it has.
lose_leader() {
    local led now
    led=$(leader)
    as_user kill -KILL "$(agent_of "$job" "$led")"
    led_by_another() { now=$(leader) && [[ $now && $now != "$led" ]]; }
    wait_for 60 led_by_another
}

@test "the runner is killed at each step: the next one goes on" {
    data first A
    stop_at prepare
    begin first
    for next in dedicate fit complete point replace ''; do
        wait_for 60 stopped
        rm "$TB_WORK/stop.at"
        [[ ! $next ]] || stop_at "$next"
        kill -KILL "$runner"
    done
    ended_well A
    # There was no state before, and so no replica had one.
    recorded 0
    [[ $(begun) == 2 ]]
}

@test "the leader is killed: another one goes on, and so does the world" {
    begin_training second B
    lose_leader
    begins
    go_on second
    ended_well "A B"
    recorded 2
}

@test "a world that has failed is not begun once more by the next leader" {
    wait_for 60 are_served
    generations() { grep -c ': generation ' "$TB_WORK/$job.out"; }
    data third C fail 0
    stop_at fit
    begin third
    wait_for 60 stopped
    wait_for 60 says "$TB_WORK/$job.out" 'learner has ended with 93'
    written() { as_user grep -q '"ended":{"learner":93}' "$(show_json "$job" | json_value 's["state_dir"]')/roles.json"; }
    wait_for 30 written
    before=$(generations)
    kill -KILL "$runner"
    lose_leader
    failed "the training: learner has ended with 93"
    [[ $(generations) == "$before" && $(latest) == "A B" ]]
    wait_for 60 serves_all "$(current)" 2
    nothing_is_left
}

@test "the whole job is requeued: the world goes on in its next run" {
    another_job
    begin_training fourth D
    as_user scontrol requeue "$job"
    wait_for 60 starts_again "$job"
    begins
    # The count that is recorded is that of this run.
    wait_for 60 are_served
    go_on fourth
    ended_well "A B D"
    recorded 2
}

@test "a node of the world is lost: the world goes on with another one" {
    begin_training fifth E
    for pid in $(tasks); do
        crashed=$(node_of "$pid")
        [[ $crashed == "$(leader)" ]] || break
    done
    "$TESTBED" crash --dir "$TB_DIR" "$crashed"
    begins
    go_on fifth
    ended_well "A B D E"
    recorded 2
}

@test "the job ends: the next one trains anew, with a directory of its own" {
    another_job
    begin_training sixth F
    another_job
    wait_for 60 are_tasks 2
    [[ $(find "$TB_WORK/models" -name '.attempt-*' | wc -l) == 2 ]]
    go_on sixth
    ended_well "A B D E F"
    recorded 2
}
