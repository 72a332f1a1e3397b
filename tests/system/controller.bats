#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# slurmctld is away for 20 s while jobs grow: nothing is lost, and growth goes on.
# Takes 125 s

load helpers
load elastic
load slow

AWAY=20

setup_file() {
    testbed_up --nodes 9
    patient
    cp "$TREE/tests/system/steps.py" "$TB_WORK/"
    slow_things
}

teardown_file() { testbed_down; }

teardown() {
    [[ -z ${stopped:-} ]] || kill -CONT "$stopped"
    "$TESTBED" status --dir "$TB_DIR" >/dev/null || "$TESTBED" start-controller --dir "$TB_DIR"
    rm -f "$TB_WORK"/hold.* "$TB_WORK"/at-*
    cancel_all
}

controller() { "$TESTBED" status --dir "$TB_DIR" | awk '$1 == "slurmctld" { print $2 }'; }

# The nodes of a job's world as its files say; selastic would ask Slurm where the leader is.
world_is() { [[ $(json_value 'len(s["nodes"])' <"$TB_DIR/jobs/$TB_USER-$1/generation.json") == "$2" ]]; }

extension_is_at() { [[ -e $TB_WORK/at-$2.$(extensions_of "$1") ]]; }

# Jobs of a node each that want another one, in different moments of growth. (With the filler they have all nine nodes.
# One of its two is for the job that loses one: Slurm takes long to clear a node whose job has ended while it was away.)
jobs_grow() {
    filler=$(submit -N2 --exclusive -t 60 --wrap 'sleep 3600')
    grown=$(slow_train grown 1:2)
    wait_for 60 size_is "$grown" 2
    hold srun starting
    starting=$(slow_train starting 1:2)
    wait_for 60 extension_is_at "$starting" srun
    hold agent joining
    joining=$(slow_train joining 1:2 --elastic-grow=ask)
    pending=$(slow_train pending 1:2 --elastic-grow=ask)
    jobs=("$pending" "$joining" "$starting" "$grown")
    for job in "${jobs[@]}"; do
        wait_for 60 steps_exceed "$job" 0
    done
    extension=$(extensions_of "$grown")
    agent=$(agent_of "$extension")
    [[ -n $agent ]]
    # From here on all is soon: a minute after its nodes are up, an extension that has not joined is given up.
    as_user selastic resize "$joining" 2
    wait_for 60 extension_is_at "$joining" agent
    as_user selastic resize "$pending" 2
    wait_for 60 has_pending_extension "$pending"
}

# What happens while the controller is away, since $begun.
meanwhile() {
    wait_for 60 world_is "$joining" 2 || {
        tail -n 20 "$TB_WORK/$joining.out" "$TB_DIR/jobs/$TB_USER-$joining"/extension-*.log
        return 1
    }
    for job in "${jobs[@]}"; do
        goes_on "$job"
    done
    while (($(seconds_since "$begun") < AWAY)); do
        sleep 0.5 # so long it is away
    done
    world_is "$starting" 1
    world_is "$pending" 1
}

# Everybody gets a second node, and who has had no fault has not lost or repeated a step.
all_grow() {
    as_user scancel "$filler"
    for job in "${jobs[@]}"; do
        wait_for 120 size_is "$job" 2
        goes_on "$job"
        job_is "$job" RUNNING
        [[ $(job_field "$job" Restarts) == 0 ]]
    done
    [[ -z ${lost:-} || $(sizes_of "$lost") == 1,2,1,2 ]]
    [[ $(sizes_of "$joining") == 1,2 && $(sizes_of "$pending") == 1,2 && $(sizes_of "$starting") == 1,2 ]]
    as_user scancel "${jobs[@]}"
    for job in "${jobs[@]}"; do
        wait_for 60 nothing_is_left_of "$job"
        [[ $job == "${lost:-}" ]] || steps_were_made_once "$job"
    done
}

@test "slurmctld is stopped and started again" {
    jobs_grow
    "$TESTBED" stop-controller --dir "$TB_DIR"
    begun=$EPOCHREALTIME
    let_go joining # its agent joins without Slurm's help
    # The starting one's step cannot be made, and its extension fails: Slurm hears of it, or its leader gives it up, within a minute.
    let_go starting
    # Another one is lost, and sbatch for its successor fails.
    lost=$grown
    kill -KILL "$agent"
    wait_for 60 world_is "$lost" 1
    meanwhile
    "$TESTBED" start-controller --dir "$TB_DIR"
    all_grow
}

@test "slurmctld stands still" {
    jobs_grow
    stopped=$(controller)
    kill -STOP "$stopped"
    begun=$EPOCHREALTIME
    let_go joining
    meanwhile
    let_go starting
    kill -CONT "$stopped"
    stopped=
    all_grow
}
