#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The leading agent is lost: another one of the base leads.
# Takes 115 s

load helpers
load elastic
load takeover

@test "restart mode: the leading one of two agents is killed, and the training goes on from its checkpoint" {
    job=$(train 2:3 100000 0.1 -- --elastic-snooze=60)
    wait_for 30 steps_exceed "$job" 10
    before=$(generation_of "$job")
    # Who waits for the job does not notice. The base is told of steps every five seconds.
    made=$(show_json "$job" | json_value 's["steps"]')
    waits_beside before "$job" --step $((made + 100))
    waits_beside takeover "$job" --step $((made + 150))
    wait_for 60 says "$TB_HOME/wait.before" '^status 0'
    as_user kill -KILL "$(agent_of "$job" n1)"
    wait_for 20 led_by "$job" n2
    # The new leader knows of them.
    (($(show_json "$job" | json_value 's["steps"]') >= made))
    goes_on_after "$job" "$before"
    wait_for 60 says "$TB_HOME/wait.takeover" '^status 0'
    wait_for 20 says "$TB_WORK/$job.out" 'the leading node is lost: n2 leads now'
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
    wait_for 20 says "$TB_WORK/$job.out" 'n3: its agent was killed, and is started again'
    wait_for 40 size_is "$job" 3
    kill -KILL "$(stepd_of n2)"
    # Without Slurm's source there is no elastic-node-fail: the leader ends the job itself.
    [[ ! -e ${prefix:-/usr/local}/libexec/slurm-elastic/elastic-node-fail ]] || wait_for 20 says "$TB_WORK/$job.out" 'Node failure on n2'
    trains_on
    went_well
    wait_for 60 job_is "$job" COMPLETED
    if slurm_at_least 23.02; then # the leader has ended the job: it is that of the batch script
        job_field "$job" ExitCode
        [[ $(job_field "$job" ExitCode) =~ ^(0:0|0:15|1:0)$ ]]
    else
        [[ $(job_field "$job" ExitCode) == 0:0 ]]
    fi
    # What n2 writes goes through the leader.
    for node in n1 n2 n3; do
        says "$TB_WORK/$job.out" "^through on $node"
    done
    wait_for 20 nothing_is_left_of "$job"
}

# falls_silent NODE NEXT: its agent leads, and stands still until a node that matches NEXT leads.
falls_silent() {
    agent=$(agent_of "$job" "$1")
    as_user kill -STOP "$agent"
    wait_for 20 led_by "$job" "$2"
    trains_on
}

# comes_back NODE
comes_back() {
    as_user kill -CONT "$agent"
    wait_for 30 works_for_it "$job" "$1"
    wait_for 30 size_is "$job" 4
    trains_on
}

kill_worker_on() {
    local pid
    for pid in $(job_processes "$job" "$1"); do
        ! grep -qsz 'live_faults\.py$' "/proc/$pid/cmdline" || kill -KILL "$pid"
    done
}

@test "a leader that is silent is followed by another one, and follows that when it is back" {
    training 3:4
    wait_for 30 size_is "$job" 4
    trains_on
    falls_silent n1 n2
    comes_back n1
    # Its worker has found the connections of its world broken, and nobody has told it why: it has ended.
    falls_silent n2 'n[13]'
    kill_worker_on n2
    comes_back n2
    went_well 2
    wait_for 60 job_is "$job" COMPLETED
    wait_for 20 nothing_is_left_of "$job"
}
