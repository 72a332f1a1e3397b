#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Some rows of the table of faults, and some of the soak. All of them: scripts/faults, scripts/soak.
# Takes 65 s

load helpers
load elastic
load faults

setup_file() {
    if ((UID)) || ! unshare --net --mount --uts true; then
        skip "no network namespaces here"
    fi
    faults_up
    know_testbed
    # Of the trainings that run.py submits.
    export PYTHONPATH=$TB_HOME/python${PYTHONPATH:+:$PYTHONPATH}
}

teardown_file() { faults_down; }

teardown() { cancel_all; }

@test "live: a worker is killed while there is no slurmctld, a node is cut off" {
    on_nodes run.py --only "slurmctld down, worker killed, live" --only "node cut off, live, extension"
}

has_made() { cat "$TB_WORK/log"/* 2>/dev/null | grep -q "\"step\": $1, \"state\""; }

@test "the leading node is cut off and comes back: srun and the batch script end as usual" {
    job=$(submit --elastic=3:3 --elastic-grow-delay=0 --elastic-fault-wait=300 -w 'n[1-3]' --exclusive -t 20 --wrap \
        "srun elasticrun $PYTHON $TB_WORK/live_faults.py train $TB_WORK/log 0.15; echo srun has ended with \$?")
    wait_for 60 has_made 5
    "$TESTBED" cut --dir "$TB_DIR" n1
    wait_for 30 led_by "$job" n2
    "$TESTBED" mend --dir "$TB_DIR" n1
    wait_for 30 works_for_it "$job" n1
    as_user touch "$TB_WORK/log.enough"
    wait_for 60 job_ended "$job"
    cat "$TB_WORK/$job.out"
    job_is "$job" COMPLETED
    says "$TB_WORK/$job.out" '^srun has ended with 0$'
}

