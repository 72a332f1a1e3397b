#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The leading agent, or its node, is lost: another one of the base leads.
# Takes 190 s

# shellcheck disable=SC2034
BATS_TEST_TIMEOUT=300
load helpers
load elastic

setup_file() {
    testbed_up --nodes 6
    cp "$TREE"/tests/system/{live,live_faults,steps}.py "$TB_WORK/"
    script says <<SH
#!/bin/bash
/usr/bin/python3 $TB_WORK/live_faults.py train "\$1" 0.15 && echo "through on \$SLURMD_NODENAME"
SH
}

teardown_file() { testbed_down; }

teardown() {
    [[ -z $away ]] || "$TESTBED" start-controller --dir "$TB_DIR"
    [[ -z $crashed ]] || "$TESTBED" boot --dir "$TB_DIR" "$crashed" || true
    cancel_all
    [[ -z $job ]] || cat "$TB_WORK/$job.out"
}

setup() { crashed='' away=''; }

faults() { as_user /usr/bin/python3 "$TB_WORK/live_faults.py" "$@"; }

# training SIZES: a live one, on MIN nodes of its own.
training() {
    job=$(submit --elastic="$1" --elastic-grow-delay=0 --elastic-fault-wait=30 --exclusive -t 20 --wrap \
        "srun elasticrun --max-restarts=20 $TB_WORK/says $TB_WORK/log-\$SLURM_JOB_ID")
    LOG=$TB_WORK/log-$job
}

losses() { cat "$LOG"/* 2>/dev/null | grep -c '"loss"'; }
losses_exceed() { (($(losses) > $1)); }
trains_on() { wait_for 20 losses_exceed $(($(losses) + 20)) || { cat "$TB_WORK/$job.out" && false; }; }
is_ending() { [[ $(job_field "$job" JobState) != RUNNING ]]; }

# went_well [LOST]: no step is lost, or made twice but for those in flight when so many leaders were.
went_well() {
    local lost=${1:-1}
    as_user touch "$LOG.enough"
    wait_for 60 is_ending
    for ((; lost > 0; lost--)); do
        echo '{"fault": "leader", "seconds": 0}'
    done >"$LOG.faults"
    chmod 0644 "$LOG.faults"
    faults check "$LOG" 1e-10 30 || { cat "$TB_WORK/$job.out" && false; }
}

# killed_agent NODE
killed_agent() {
    as_user kill -KILL "$(agent_of "$job" "$1")"
    trains_on
}

@test "live: the leading agent is killed, and so is the one that leads then; the extensions stay" {
    training 4:6
    wait_for 30 size_is "$job" 6
    trains_on
    killed_agent n1
    wait_for 20 led_by "$job" n2
    killed_agent n2
    # By the next one, or by the first again, which has joined meanwhile.
    wait_for 20 led_by "$job" 'n[13]'
    # Both are started again, and srun does not notice.
    wait_for 40 size_is "$job" 6
    went_well 2
    [[ $(grep -c 'the leading node is lost' "$TB_WORK/$job.out") == 2 ]]
    wait_for 20 nothing_is_left_of "$job"
}

@test "the leading agent is killed, and its node lost when another one leads: the job ends" {
    training 3:3
    trains_on
    crashed=n1
    killed_agent n1
    wait_for 20 led_by "$job" n2
    "$TESTBED" crash --dir "$TB_DIR" n1
    trains_on
    went_well 2
    "$TESTBED" boot --dir "$TB_DIR" n1
    crashed=
    wait_for 60 job_ended "$job"
}

@test "the leading node is lost for good: output goes on in the job's file, and the job ends" {
    training 3:5
    wait_for 30 size_is "$job" 5
    trains_on
    as_user selastic resize "$job" 4
    wait_for 20 size_is "$job" 4
    crashed=n1
    "$TESTBED" crash --dir "$TB_DIR" n1
    trains_on
    wait_for 20 led_by "$job" n2
    # It knows what the one before was told to.
    [[ $(show_json "$job" | json_value 's["target"]') == 4 ]]
    went_well
    says "$TB_WORK/$job.out" "srun is lost with its node: output goes on in .*/$job.out"
    says "$TB_WORK/$job.out" 'generation [0-9]+: 3 nodes, 3 workers \(fault: the leading node was lost\)'
    for node in n2 n3; do
        says "$TB_WORK/$job.out" "^through on $node"
    done
    # Slurm waits for the lost node, or until it takes it for down.
    "$TESTBED" boot --dir "$TB_DIR" n1
    crashed=
    wait_for 60 job_is "$job" COMPLETED
    [[ $(job_field "$job" ExitCode) == 0:0 ]]
    # The next job on that node finds what is left there.
    as_user srun -w n1 true
    wait_for 20 nothing_is_left_of "$job"
}

# has_said PATTERN: elasticrun, where it writes while Slurm cannot say what the job's output file is.
has_said() { says "$TB_DIR/jobs/elastic-$job/output.log" "$1"; }

@test "the leading node is lost while slurmctld is away, which hears of the end of the job when it is back" {
    training 3:4
    wait_for 30 size_is "$job" 4
    trains_on
    away=yes
    "$TESTBED" stop-controller --dir "$TB_DIR"
    crashed=n1
    "$TESTBED" crash --dir "$TB_DIR" n1
    trains_on
    sleep 8 # slurmctld does not answer for longer than agents wait for each other
    trains_on
    # Only once has another one come to lead.
    [[ $(grep -c 'the leading node was lost' "$TB_DIR/jobs/elastic-$job/history.jsonl") == 1 ]]
    as_user touch "$LOG.enough"
    wait_for 60 has_said 'has ended, and tells Slurm as soon as it can'
    "$TESTBED" start-controller --dir "$TB_DIR"
    away=
    wait_for 60 is_ending
    "$TESTBED" boot --dir "$TB_DIR" n1
    crashed=
    wait_for 60 job_is "$job" COMPLETED
    [[ $(job_field "$job" ExitCode) == 0:0 ]]
    # That the extension has ended slurmctld hears a minute later, which the next test need not wait for.
    on_testbed scontrol update nodename=n4 state=down reason=test
    on_testbed scontrol update nodename=n4 state=resume
}

@test "a leader that is silent is followed by another one, and follows that when it is back" {
    training 3:4
    wait_for 30 size_is "$job" 4
    trains_on
    agent=$(agent_of "$job" n1)
    as_user kill -STOP "$agent"
    wait_for 20 led_by "$job" n2
    trains_on
    as_user kill -CONT "$agent"
    # Its own word of that is not heard if srun has been told by then that it is lost.
    wait_for 30 led_by "$job" n2
    wait_for 30 works_for_it "$job" n1
    wait_for 30 size_is "$job" 4
    trains_on
    went_well
    wait_for 60 job_is "$job" COMPLETED
    wait_for 20 nothing_is_left_of "$job"
}

@test "restart mode: the leading one of two agents is killed, and the training goes on from its checkpoint" {
    job=$(train 2:3 100000 0.1 -- --elastic-snooze=60)
    wait_for 30 steps_exceed "$job" 10
    as_user kill -KILL "$(agent_of "$job" n1)"
    goes_on "$job"
    says "$TB_WORK/$job.out" 'the leading node is lost: n2 leads now'
    as_user scancel "$job"
    wait_for 60 job_ended "$job"
    wait_for 20 nothing_is_left_of "$job"
}

stepd_of() { awk '/^PPid/ { print $2 }' "/proc/$(awk '/^PPid/ { print $2 }' "/proc/$(agent_of "$job" "$1")/status")/status"; }

@test "an agent of the base is killed, and a slurmstepd: both nodes train on, and the job ends well" {
    ((UID == 0)) || skip "slurmstepd belongs to root"
    training 3:3
    wait_for 30 size_is "$job" 3
    trains_on
    killed_agent n3
    wait_for 40 size_is "$job" 3
    wait_for 20 says "$TB_WORK/$job.out" 'n3: its agent was killed, and is started again'
    kill -KILL "$(stepd_of n2)"
    # Without Slurm's source there is no elastic-node-fail: the leader ends the job itself.
    [[ ! -e ${prefix:-/usr/local}/libexec/slurm-elastic/elastic-node-fail ]] || wait_for 20 says "$TB_WORK/$job.out" 'Node failure on n2'
    trains_on
    went_well
    wait_for 60 job_is "$job" COMPLETED
    [[ $(job_field "$job" ExitCode) == 0:0 ]]
    # What n2 writes goes through the leader.
    for node in n1 n2 n3; do
        says "$TB_WORK/$job.out" "^through on $node"
    done
    wait_for 20 nothing_is_left_of "$job"
}
