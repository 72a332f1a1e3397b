#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# However a base job ends, its extensions are gone within 10 s and nothing stays behind.
# Takes 45 s

load helpers
load elastic

setup_file() {
    testbed_up --nodes 6
    patient
    cp "$TREE/tests/system/steps.py" "$TB_WORK/"
}

teardown_file() { testbed_down; }

teardown() { cancel_all; }

# A job of 4 nodes that has two more extensions in the queue.
grown_job() {
    filler=$(submit -N2 --exclusive -t 30 --wrap 'srun sleep 1800')
    wait_for 20 job_is "$filler" RUNNING
    job=$(train 2:6 "$1" 0.2 -- "${@:2}")
    wait_for 60 size_is "$job" 4
    wait_for 30 steps_made_by "$job" "$(generation_of "$job")"
    wait_for 30 has_pending_extension "$job"
}

@test "scancel of the base" {
    grown_job 100000
    as_user scancel "$job"
    wait_for 20 nothing_is_left_of "$job"
    job_is "$job" CANCELLED COMPLETING
    steps_were_made_once "$job"
}

@test "a base that reaches its time limit" {
    grown_job 100000
    on_testbed scontrol update "JobId=$job" EndTime=now+1
    wait_for 120 job_is "$job" TIMEOUT
    wait_for 20 nothing_is_left_of "$job"
    steps_were_made_once "$job"
}

@test "a worker that fails again and again ends the job with one line that says why" {
    cat >"$TB_WORK/bad.py" <<'PY'
import os, sys
if os.environ["RANK"] == "1":
    raise ValueError("bad thing 42")
import time
time.sleep(600)
PY
    job=$(submit --elastic=2:4 --exclusive -t 5 --wrap "srun elasticrun --max-restarts=1 /usr/bin/python3 $TB_WORK/bad.py")
    wait_for 60 job_is "$job" FAILED
    says "$TB_WORK/$job.out" 'elasticrun: error: job [0-9]+: rank 1 on n[0-9] failed: ValueError: bad thing 42 \(exit code 1\)'
    says "$TB_WORK/$job.out" 'giving up .*max-restarts=1'
    wait_for 20 nothing_is_left_of "$job"
}

@test "a command that does not exist is said once, and not tried again" {
    job=$(submit --elastic=2:4 --exclusive -t 5 --wrap "srun elasticrun no-such-command")
    wait_for 30 job_is "$job" FAILED
    says "$TB_WORK/$job.out" 'no-such-command: No such file or directory'
    [[ $(grep -c 'No such file' "$TB_WORK/$job.out") == 1 ]]
    wait_for 20 nothing_is_left_of "$job"
}

