#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# How long extensions may run: as long as their base where that is possible, less where other jobs wait.
# Takes 95 s

load helpers
load elastic

setup_file() {
    testbed_up --nodes 8
    cp "$TREE/tests/system/steps.py" "$TB_WORK/"
}

teardown_file() { testbed_down; }

teardown() { cancel_all; }

# limit_of JOB: its time limit in minutes.
limit_of() {
    local hours minutes
    IFS=: read -r hours minutes _ < <(job_field "$1" TimeLimit)
    echo $((10#$hours * 60 + 10#$minutes))
}

@test "an extension that backfill starts gets its base's time, and accepts less only in front of another job" {
    filler=$(submit -N4 -w n[5-8] --exclusive -t 12 --wrap 'sleep 720')
    wait_for 30 job_is "$filler" RUNNING
    # The base's nodes are not among those that it waits for: its six are free when the filler ends.
    rigid=$(submit -N6 --exclusive -t 5 -x n1,n2 --wrap 'sleep 300')
    job=$(train 2:3 100000 0.2 -- -t 60 -w n1,n2)
    wait_for 30 job_is "$job" RUNNING
    wait_for 30 has_extension "$job"
    extension=$(extensions_of "$job")
    (($(limit_of "$extension") >= 55))
    wait_for 150 size_is "$job" 3
    job_is "$rigid" PENDING
    limit=$(limit_of "$extension")
    echo "the limit is $limit minutes"
    # 59 minutes, 29, 14, 7: not just the pool's time_min of one, and no more than the filler's twelve.
    ((limit >= 3 && limit <= 12))
    goes_on "$job"
    steps_were_made_once "$job"
}

has_extension() { [[ -n $(extensions_of "$1") ]]; }

