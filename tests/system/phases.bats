#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# An extension is preempted at each moment of its life that Slurm makes. Whoever wants its node never waits for the end of grace, and
# the base goes on without losing or repeating a step. One that trains: main_path.bats. The moments of a change are the
# simulator's.
# Takes 40 s

load helpers
load elastic
load slow

GRACE=300
# A rival starts in a few seconds.
LONGEST=$((GRACE / 2))

# Three nodes: two of the base, and the third is what extension and rival want.
setup_file() {
    testbed_up --nodes 3 --grace "$GRACE"
    patient
    cp "$TREE/tests/system/steps.py" "$TB_WORK/"
    slow_things
    slow_prolog
}

teardown_file() { testbed_down; }

teardown() {
    as_user rm -f "$TB_WORK/hold.train"
    cancel_all
}

# Waits until the extension is where it is held. Sets extension.
held_at() {
    wait_for 60 an_extension_is_at "$1"
    extension=$(extensions_of "$job" | tail -n 1)
    [[ -e $TB_WORK/at-$1.$extension ]]
}

an_extension_is_at() { [[ -e $TB_WORK/at-$1.$(extensions_of "$job" | tail -n 1) ]]; }

# Slurm runs this before it starts the extension's batch script.
slow_prolog() {
    cat >"$TB_DIR/etc/prolog.d/10-slow" <<SH
#!/bin/sh
[ "\$SLURM_JOB_PARTITION \$(cat $TB_WORK/hold.train 2>/dev/null)" = "elastic prolog" ] || exit 0
touch $TB_WORK/at-prolog.\$SLURM_JOB_ID
while [ -e $TB_WORK/hold.train ]; do sleep 0.1; done
SH
    chmod 0755 "$TB_DIR/etc/prolog.d/10-slow"
}

base() {
    job=$(slow_train train 2:3)
}

# A job that wants the third node: it must have started long before grace ends.
rival_gets_the_node() {
    rival=$(submit -N1 --exclusive -t 5 --wrap 'sleep 1')
    rival_has_started_in_time
}

rival_has_started_in_time() {
    wait_for 120 job_is "$rival" RUNNING COMPLETING COMPLETED
    waited_less "$rival" "$LONGEST"
    # After a minute the leader gives up an extension that does not join. That was not what has helped.
    shown=$(show_json "$job")
    [[ $shown == *'"failure"'* && $shown != *'have not joined in time'* ]] || { echo "$shown" && false; }
}

was_preempted() { [[ $(job_field "$1" PreemptTime) == 20* ]]; }

# The base is still the one that it was, makes steps, and grows again when the rival has gone.
base_goes_on() {
    wait_for 60 job_is "$rival" COMPLETED
    [[ ! -e $TB_WORK/hold.train ]] || let_go
    wait_for 60 size_is "$job" 3
    goes_on "$job"
    [[ $(job_field "$job" Restarts) == 0 ]]
    as_user scancel "$job"
    wait_for 30 nothing_is_left_of "$job"
    steps_were_made_once "$job"
}

base_steps() { wait_for 60 steps_exceed "$job" 3; }

@test "starting: its prolog still runs" {
    hold prolog
    base
    base_steps
    held_at prolog
    rival=$(submit -N1 --exclusive -t 5 --wrap 'sleep 1')
    wait_for 60 was_preempted "$extension"
    let_go
    rival_has_started_in_time
    base_goes_on
}

@test "started, and its step does not exist yet" {
    hold srun
    base
    base_steps
    held_at srun
    rival_gets_the_node
    was_preempted "$extension"
    base_goes_on
}

@test "its step exists, and its agent cannot hear Slurm yet" {
    hold agent
    base
    base_steps
    held_at agent
    rival=$(submit -N1 --exclusive -t 5 --wrap 'sleep 1')
    wait_for 60 was_preempted "$extension"
    let_go
    rival_has_started_in_time
    base_goes_on
}
