#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Workers of the next world are started early and wait at their gate; whatever becomes of them, no step is lost.

load helpers
load elastic

GRACE=300

setup_file() {
    testbed_up --nodes 5 --grace "$GRACE"
    patient
    cp "$TREE/tests/system/steps.py" "$TREE/tests/system/early.py" "$TB_WORK/"
    # The test keeps newcomers from their gates for as long as it needs.
    sed -i '1a newcomer_timeout = 600' "$TB_DIR/etc/elastic.conf"
}

teardown_file() { testbed_down; }

setup() {
    HERE=$TB_WORK/early-$BATS_TEST_NUMBER
    mkdir -m 1777 "$HERE"
}

teardown() { cancel_all; }

# A job of 2 nodes that does not grow before it is told to. It grows by 2 nodes at a time, so that
# both join together.
small_job() {
    job=$(submit --elastic=2,4 --elastic-grow=ask --elastic-grow-delay=0 --exclusive -t 30 --wrap \
        "srun elasticrun /usr/bin/python3 $TB_WORK/early.py $HERE $TB_WORK/log-\$SLURM_JOB_ID 100000 0.2")
    wait_for 60 size_is "$job" 2
    wait_for 60 steps_made_by "$job" "$(generation_of "$job")"
    now=$(generation_of "$job")
}

shows_next() { as_user selastic show "$job" | grep -q "^  Next  *$1\$"; }

# Workers of that generation that have been started.
born() { grep -c "^$1 " "$HERE/born" || true; }
born_are() { (($(born "$1") == $2)); }

# Steps are made in this generation, and only after the one before had left.
one_after_the_other() {
    local before after
    before=$(awk '/^end/ { if ($2 > t) t = $2 } END { print t }' "$TB_WORK/log-$job/rank-$(($1 - 1))-"*)
    after=$(awk '/^step/ && (t == 0 || $2 < t) { t = $2 } END { print t }' "$TB_WORK/log-$job/rank-$1-"*)
    awk "BEGIN { exit !($after > $before) }" || { echo "generation $1 made a step at $after, the one before left at $before"; return 1; }
}

@test "the next workers wait until the old ones have saved and left" {
    small_job
    touch "$HERE/slow"
    as_user selastic resize "$job" 4
    wait_for 60 born_are $((now + 1)) 4
    # They are at work on their start, and the old world trains on.
    before=$(steps_of "$job")
    wait_for 20 steps_exceed "$job" $((before + 5))
    size_is "$job" 2
    wait_for 20 shows_next '4 nodes: workers start, 0 of 4 nodes ready'
    rm "$HERE/slow"
    wait_for 60 size_is "$job" 4
    wait_for 60 steps_made_by "$job" $((now + 1))
    born_are $((now + 1)) 4 # nobody was started twice
    one_after_the_other $((now + 1))
    steps_were_made_once "$job"
    # The same on the way down, by a node that Slurm takes: the survivors' next workers start while the old ones save.
    rival=$(submit -p batch -N2 --exclusive -t 30 --wrap 'srun sleep 1800')
    wait_for 60 job_is "$rival" RUNNING
    wait_for 60 steps_made_by "$job" $((now + 2))
    one_after_the_other $((now + 2))
    steps_were_made_once "$job"
}

