#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# A fit goes on when slurmctld is away, when a node is lost or only silent, and when its job is requeued.
# Takes 50 s

load helpers
load elastic
load roles
load serve
load fit

setup_file() {
    export SERVICE=ff$$ # services outlive jobs and testbeds
    testbed_up --stock --nodes 4 --cpus-per-node 8
    fit_file fit 2 'cpus: 7' 'within: {start: 600s, fit: 600s, target: 600s}'
    begin_job
}

# begin_job: the next job of the service.
begin_job() {
    submit --requeue --open-mode=append -N4 --exclusive -t 90 --wrap "srun elasticrun --roles=$TB_WORK/fit.yaml" >"$TB_WORK/job"
    job=$(<"$TB_WORK/job")
    wait_for 40 runs_it
}

setup() { job=$(<"$TB_WORK/job") away='' crashed='' stopped=''; }

teardown() {
    [[ -z $away ]] || "$TESTBED" start-controller --dir "$TB_DIR"
    [[ -z $crashed ]] || "$TESTBED" boot --dir "$TB_DIR" "$crashed"
    [[ -z $stopped ]] || as_user kill -CONT "$stopped"
    [[ $BATS_TEST_COMPLETED ]] || { tail -n 60 "$TB_WORK"/*.out; as_user selastic fit show "$SERVICE"; }
}

teardown_file() {
    end_service
    testbed_down
}

# ended_well MODEL: the fit has made it, and two replicas serve it. Nothing of the fit is left.
ended_well() {
    wait_for 100 ended_as SUCCESS
    [[ $(as_user cat "$TB_WORK/models/m/$(current)/model") == "$1" ]]
    as_user selastic states show "$TB_WORK/models/m" --verify
    [[ $(fit_json | json_value 's["count"]') == 2 && $(partials) == 0 ]]
    wait_for 40 serves_all "$(current)" 2
    wait_for 20 trains_nobody
}

trains_on_try() { [[ $(as_user selastic fit log "$SERVICE" 2>/dev/null | grep -c ^trains) == "$1" ]]; }

leader() { show_json "$job" | json_value 's["leader"]'; }

# The node of the trainer, by the environment that Slurm gives to each step.
trainer_node() { tr '\0' '\n' <"/proc/$(processes train)/environ" | sed -n 's/^SLURMD_NODENAME=//p'; }

@test "slurmctld is killed, and the runner too; both come back while the training goes on" {
    have_written_down "$job"
    data first A
    fit first
    data second B until "$TB_WORK/second"
    begin second
    wait_for 30 trains_on_try 1
    kill -KILL "$("$TESTBED" status --dir "$TB_DIR" | awk '$1 == "slurmctld" { print $2 }')"
    away=yes
    as_user kill -KILL "$(processes run)"
    # The next runner begins while Slurm is away.
    runs_again() { [[ $(processes run) ]]; }
    wait_for 30 runs_again
    "$TESTBED" start-controller --dir "$TB_DIR"
    away=
    go_on second
    ended_well "A B"
    trains_on_try 1
}

@test "the node of the trainer is lost: the training begins once more on another one" {
    data third C until "$TB_WORK/third"
    begin third
    wait_for 30 trains_on_try 1
    crashed=$(trainer_node)
    "$TESTBED" crash --dir "$TB_DIR" "$crashed"
    wait_for 60 trains_on_try 2
    go_on third
    ended_well "A B C"
}

@test "the job is requeued while the training goes on: its next run trains once more" {
    # Slurm has the job of before with a lost node.
    as_user scancel "$job"
    wait_for 30 job_ended "$job"
    begin_job
    wait_for 40 serves_all "$(current)" 2
    data fourth D until "$TB_WORK/fourth"
    begin fourth
    wait_for 30 trains_on_try 1
    as_user scontrol requeue "$job"
    wait_for 60 starts_again "$job"
    # The count that is recorded is that of this run.
    wait_for 60 serves_all "$(current)" 2
    go_on fourth
    ended_well "A B C D"
    trains_on_try 2
}

@test "the trainer was only taken for lost: another one trains, and the first ends" {
    data fifth E until "$TB_WORK/fifth"
    begin fifth
    wait_for 30 trains_on_try 1
    before=$(processes train)
    stopped=$(agent_of "$job" "$(trainer_node)")
    as_user kill -STOP "$stopped"
    wait_for 60 trains_on_try 2
    programs() { pgrep -u "$TB_USER" -f "^/usr/bin/python3 -S $TB_WORK/fit_program.py"; }
    one_trains() { [[ $(programs | wc -l) == 1 ]]; }
    wait_for 30 one_trains
    # Its trainer lives, and says nothing.
    [[ -d /proc/$before ]]
    go_on fifth
    wait_for 60 ended_as SUCCESS
    as_user kill -CONT "$stopped"
    stopped=
    ended_well "A B C D E"
    [[ -z $(find "$TB_WORK/models" -name '.attempt*') ]]
}

@test "the node of the leader and of the runner is lost while replicas are replaced" {
    data sixth F slow "$TB_WORK/sixth"
    begin sixth
    wait_for 60 acts replace
    crashed=$(leader)
    "$TESTBED" crash --dir "$TB_DIR" "$crashed"
    led_by_another() { local now; now=$(leader) && [[ $now && $now != "$crashed" ]]; }
    wait_for 60 led_by_another
    go_on sixth.all
    ended_well "A B C D E F"
}
