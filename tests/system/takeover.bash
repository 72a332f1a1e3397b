# SPDX-License-Identifier: GPL-2.0-or-later
# A live training whose leader is lost, and what must hold afterwards. Load after elastic.
# shellcheck shell=bash

setup_file() { testbed_for_training; }

testbed_for_training() {
    testbed_up --nodes 6
    cp "$TREE"/tests/system/{live,live_faults,steps}.py "$TB_WORK/"
    script says <<SH
#!/bin/bash
PYTHONPATH=$(paced_python):\$PYTHONPATH $PYTHON $TB_WORK/live_faults.py train "\$1" 0.25 && echo "through on \$SLURMD_NODENAME"
SH
}

teardown_file() { testbed_down; }

teardown() {
    [[ -z $away ]] || "$TESTBED" start-controller --dir "$TB_DIR"
    [[ -z $crashed ]] || "$TESTBED" boot --dir "$TB_DIR" "$crashed" || true
    cancel_all
    [[ -z $job ]] || cat "$TB_WORK/$job.out"
    # Where the next leader writes if Slurm cannot say what the job's file is.
    [[ -z $job || ! -e $TB_DIR/jobs/elastic-$job/output.log ]] || cat "$TB_DIR/jobs/elastic-$job/output.log"
}

setup() { crashed='' away=''; }

faults() { as_user "$PYTHON" "$TB_WORK/live_faults.py" "$@"; }

# training SIZES: a live one, on MIN nodes of its own.
training() {
    job=$(submit --elastic="$1" --elastic-grow-delay=0 --elastic-fault-wait=30 --exclusive -t 60 --wrap \
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
