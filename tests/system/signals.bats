#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Signals and ends under each ProctrackType (doc/internals/signals.md). Slurm does not signal the same processes with each.
# Takes 100 s

load helpers
load elastic

# Slurm looks at time limits every 30 s: the jobs for the last test wait for that while the others run.
setup_file() {
    testbed_up --nodes 5
    patient
    # Workers that stand still for a while save all the same.
    sed -i 's/^KillWait=.*/KillWait=30/' "$TB_DIR/etc/slurm.conf"
    on_testbed scontrol reconfigure
    cp "$TREE/tests/system/"{steps,signals}.py "$TB_WORK/"
    script batch.sh <<SH
#!/bin/bash
trap 'touch $TB_WORK/batch.usr1' USR1
$(command_of_job) &
wait
wait
SH
    start 1:1 -w n4 -t 60 --signal=USR1@3590
    limited=$job
    limited_script=$(submit --elastic=1:1 --exclusive -w n5 -t 60 --signal=B:USR1@3590 "$TB_WORK/batch.sh")
    export limited limited_script
}

teardown_file() { testbed_down; }

teardown() { [[ -z ${job:-} ]] || as_user scancel --quiet "$job" "${rival:-$job}" "${second:-$job}"; }

command_of_job() { printf 'srun elasticrun /usr/bin/python3 %s/signals.py %s/steps.py %s/log-$SLURM_JOB_ID 100000 0.2' "$TB_WORK" "$TB_WORK" "$TB_WORK"; }

# start SIZES SBATCH-OPTION...: sets job.
start() {
    job=$(submit --elastic="$1" --elastic-grow-delay=1 --exclusive -t 60 "${@:2}" --wrap "$(command_of_job)")
}

# The ranks that have got the signal, a copy each.
signalled() { sed -n "s/^$2 //p" "$TB_WORK/log-$1.signals" 2>/dev/null | sort -n | paste -s -d,; }

are_signalled() { [[ $(signalled "$1" "$2") == "$3" ]]; }

agents() { for node in n1 n2; do agent_of "$1" "$node"; done; }

# Every rank of the last world has been told, and the checkpoint is of that moment.
was_saved() {
    wait_for 30 grep -q '^told' "$TB_WORK/log-$1/rank-$2-0"
    wait_for 30 nothing_is_left_of "$1"
    steps_were_made_once "$1"
}

signals_and_scancel() {
    start 2:3
    wait_for 60 size_is "$job" 3
    local generation agents
    generation=$(generation_of "$job")
    agents=$(agents "$job")
    wait_for 30 steps_made_by "$job" "$generation"
    as_user scancel --signal=USR1 "$job"
    wait_for 20 are_signalled "$job" SIGUSR1 0,1
    as_user scancel --signal=HUP "$(extensions_of "$job")"
    wait_for 20 are_signalled "$job" SIGHUP 2
    goes_on "$job"
    # Copies that Slurm's way of signalling makes have come by now, and nothing has ended.
    are_signalled "$job" SIGUSR1 0,1
    are_signalled "$job" SIGHUP 2
    [[ $(generation_of "$job") == "$generation" && $(agents "$job") == "$agents" ]]
    as_user scancel "$job"
    was_saved "$job" "$generation"
    wait_for 40 job_is "$job" CANCELLED
}

@test "scancel and scancel --signal with the testbed's own ProctrackType" {
    signals_and_scancel
}

# A step has the ProctrackType of slurm.conf at its start.
with_proctrack() {
    local own conf=$TB_DIR/etc/slurm.conf
    own=$(sed -n 's,^ProctrackType=,,p' "$conf")
    sed -i "s,^ProctrackType=.*,ProctrackType=proctrack/$1," "$conf"
    signals_and_scancel
    sed -i "s,^ProctrackType=.*,ProctrackType=$own," "$conf"
}

@test "the same with proctrack/pgid" {
    with_proctrack pgid
}

@test "the same with proctrack/linuxproc" {
    need_real_form # has it in the simple one
    with_proctrack linuxproc
}

# stands_still JOB NODE: whether its agent is frozen (D) or stopped (T).
stands_still() { [[ $(ps -o stat= -p "$(agent_of "$1" "$2")") == [DT]* ]]; }

@test "a base that was suspended goes on; what does not leave is killed after KillWait" {
    start 2:3
    wait_for 60 size_is "$job" 3
    wait_for 30 steps_made_by "$job" "$(generation_of "$job")"
    on_testbed scontrol suspend "$job"
    wait_for 20 stands_still "$job" n1
    wait_for 20 stands_still "$job" n2
    on_testbed scontrol resume "$job"
    goes_on "$job"
    wait_for 60 size_is "$job" 3
    local generation
    generation=$(generation_of "$job")
    wait_for 30 steps_made_by "$job" "$generation"
    kill -s STOP "$(sed -n 's/^start .* pid=//p' "$TB_WORK/log-$job/rank-$generation-0")"
    as_user scancel "$job"
    wait_for 60 nothing_is_left_of "$job"
    wait_for 40 job_is "$job" CANCELLED
    steps_were_made_once "$job"
}

@test "preemption of the extension, then of the base, saves" {
    start 2:3 -p spare
    wait_for 60 size_is "$job" 3
    wait_for 30 steps_made_by "$job" "$(generation_of "$job")"
    rival=$(submit -N1 --exclusive -t 60 --wrap 'sleep 3000')
    wait_for 30 job_is "$rival" RUNNING
    wait_for 60 size_is "$job" 2
    wait_for 30 steps_made_by "$job" "$(generation_of "$job")"
    local generation
    generation=$(generation_of "$job")
    second=$(submit -N2 --exclusive -t 60 --wrap 'sleep 3000')
    wait_for 30 job_is "$second" RUNNING
    was_saved "$job" "$generation"
}

@test "a worker that the node's memory limit kills is a failed worker, and the job goes on" {
    need_real_form
    start 2:2 --mem=200
    wait_for 60 size_is "$job" 2
    wait_for 30 steps_made_by "$job" 1
    as_user touch "$TB_WORK/log-$job.eat"
    goes_on_after "$job" 1
    wait_for 10 says "$TB_WORK/$job.out" 'rank 1 on n[0-9] failed: (out of memory: .*)?SIGKILL|failed: out of memory'
    as_user touch "$TB_WORK/log-$job.enough"
    # Slurm's judgement of a step in which there was such an end, however well the tasks have ended.
    wait_for 60 job_is "$job" FAILED || { on_testbed scontrol show job "$job"; cat "$TB_WORK/$job.out"; return 1; } >&2
    wait_for 10 says "$TB_WORK/$job.out" 'Out Of Memory'
}

@test "SIGUSR1 before the time limit reaches workers, with B: only the script; the limit saves" {
    wait_for 60 are_signalled "$limited" SIGUSR1 0
    wait_for 60 test -e "$TB_WORK/batch.usr1"
    [[ -z $(signalled "$limited_script" SIGUSR1) ]]
    on_testbed scontrol update "JobId=$limited" EndTime=now+1
    on_testbed scontrol update "JobId=$limited_script" EndTime=now+1
    wait_for 60 job_is "$limited" TIMEOUT
    wait_for 60 job_is "$limited_script" TIMEOUT
    was_saved "$limited" 1
    was_saved "$limited_script" 1
}
