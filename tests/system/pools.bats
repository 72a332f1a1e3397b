#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Jobs with several pools: spot nodes in two zones that fail and have no room, and on-demand nodes.
# Takes 190 s

load helpers
load elastic
load cloud

# Two nodes are always there. GPUs need root.
setup_file() {
    local -a gpus=()
    ((UID)) || gpus=(--gpus-per-node 1)
    testbed_up --nodes 2 --cloud zone_a=8,zone_b=1,demand=2 --resume-timeout 30 "${gpus[@]}"
    cp "$TREE/tests/system/steps.py" "$TB_WORK/"
    metadata_up
    boots_are_seen
    sed -i -e "s|^node_backoff = .*|&\nreclaim = gcp\nreclaim_endpoint = $ENDPOINT\npool_backoff = 3-6\nprices = $TB_DIR/prices|" \
        -e '/^\[pool zone_/a reclaim = yes\nprice = 0.92' \
        -e '/^\[pool demand/a fallback = yes\nprice = 3.06' "$TB_DIR/etc/elastic.conf"
}

teardown_file() {
    metadata_down
    testbed_down
}

setup() {
    zone zone_a capacity=8 boot=1 pause=3 failure=fast
    zone zone_b capacity=0 boot=1 pause=1 failure=fast
    zone demand capacity=2 boot=1 pause=1
    printf 'zone_b 1.20\n' >"$TB_DIR/prices"
    chmod 0644 "$TB_DIR/prices"
    wait_for 40 all_off
}

teardown() {
    [[ $BATS_TEST_COMPLETED ]] || tail -n 60 "$TB_WORK/$job.out"
    cancel_all
}

# reclaim NODE: the zone is to have one node less: it says so, and the job leaves the node.
reclaim() {
    notice "$1" 30
    wait_for 25 is_left "$1"
    rm "$CLOUD/$1"
}

is_left() { ! as_user squeue -h -t R -o %N | grep -qx "$1"; }

# grow SIZES POOLS OPTION...: a job on one node.
grow() { train "$1" 100000 0.1 -- -p batch --elastic-pool="$2" "${@:3}"; }

# pool_says JOB POOL EXPRESSION: p is what selastic shows of the pool.
pool_value() {
    show_json "$1" | json_value "(lambda p: $3)(next(p for p in s['pools'] if p['pool'] == '$2'))" 2>/dev/null
}

pool_says() { [[ $(pool_value "$@") == True ]]; }

has_of() { pool_says "$1" "$2" "p['ready'] == $3"; }

# The extension jobs of a job in a pool, newest first, with their end and the time of their submission.
extensions_in() {
    on_testbed squeue -h -t all -p "$2" -S -i -o '%A %T %e %V %k' | grep " elastic-extension-of=$1\."
}

costs_more_than() { show_json "$1" | json_value "s['cost']['so_far'] > $2" 2>/dev/null | grep -qx True; }

cost_of() { show_json "$1" | json_value "s['cost']['so_far']"; }

@test "a reclaimed node's place is held, filled from another pool, and goes back to spot" {
    zone zone_a capacity=2
    gpus=()
    ((UID)) || gpus=(--gpus-per-node=1)
    job=$(grow 1:3 zone_a,demand --elastic-fallback=15 "${gpus[@]}")
    wait_for 60 size_is "$job" 3
    has_of "$job" zone_a 2
    newest=$(extensions_in "$job" zone_a | head -n 1)
    reclaim "$(job_field "${newest%% *}" NodeList)"
    zone zone_a capacity=1
    wait_for 30 size_is "$job" 2
    job_is "$job" RUNNING
    # The place is held: it is asked for again, and the cloud's own words are shown.
    wait_for 20 pool_says "$job" zone_a "'InsufficientInstanceCapacity' in p['failure'] and p['paused_until'] > 0"
    wait_for 40 size_is "$job" 3
    has_of "$job" demand 1
    job_is "$job" RUNNING
    as_user selastic show "$job"
    # A spot node joins before the on-demand node goes.
    before=$(generation_of "$job")
    zone zone_a capacity=3
    wait_for 60 has_of "$job" zone_a 2
    wait_for 60 has_of "$job" demand 0
    wait_for 30 size_is "$job" 3
    [[ $(history_json "$job" | json_value "min(g['size'] for g in s['generations'] if g['generation'] >= $before)") == 3 ]]
    costs_more_than "$job" 0
    enough "$job"
    steps_were_made_once "$job"
    as_user selastic history "$job"
}

@test "a zone without room, and one whose nodes never come: the next pool is asked at once" {
    zone zone_b capacity=1
    for failure in fast slow; do
        zone zone_a capacity=0 failure="$failure"
        job=$(grow 1:2 zone_a,zone_b)
        wait_for 120 size_is "$job" 2
        has_of "$job" zone_b 1
        pool_says "$job" zone_a "p['booting'] == 0 and p['pending'] == 0 and len(p['failure']) > 9"
        pool_value "$job" zone_a "p['failure']"
        if [[ $failure == fast ]]; then
            pool_says "$job" zone_a "'InsufficientInstanceCapacity' in p['failure']"
        fi
        as_user selastic show "$job"
        failed=$(extensions_in "$job" zone_a | tail -n 1)
        next=$(extensions_in "$job" zone_b | tail -n 1)
        echo "failed: $failed, next: $next"
        read -r _ _ ended _ <<<"$failed"
        read -r _ _ _ asked _ <<<"$next"
        # Slurm's times have whole seconds.
        (($(date -d "$asked" +%s) - $(date -d "$ended" +%s) <= 20))
        enough "$job"
        wait_for 40 all_off
    done
}

@test "late by spot nodes alone: on-demand nodes come, and the job is in time" {
    zone zone_a capacity=0
    # One node would need 50 minutes for 5 samples a second, two need 25, three 17. The deadline is sbatch's.
    job=$(train 1:3 15000 0.2 samples -- -p batch -t 21 --elastic-pool=zone_a,demand --deadline=now+22minutes)
    wait_for 100 has_of "$job" demand 2
    wait_for 30 size_is "$job" 3
    in_time() { show_json "$job" | json_value 's["deadline"]["in_time"]' | grep -qx True; }
    wait_for 30 in_time
    as_user selastic show "$job"
    [[ $(show_json "$job" | json_value 's["deadline"]["why"]') == *on-demand* ]]
    as_user scancel "$job"
}

@test "a budget that is used up leaves MIN nodes, and a new leader knows what has been spent" {
    zone zone_a capacity=1
    # A half each second. Prices are read every 30 s.
    printf 'zone_a 1800\n' >"$TB_DIR/prices"
    job=$(grow 1:2 zone_a --elastic-budget=400)
    wait_for 60 has_of "$job" zone_a 1
    wait_for 60 costs_more_than "$job" 5
    spent=$(cost_of "$job")
    on_testbed scontrol requeue "$job"
    wait_for 60 starts_again "$job"
    wait_for 60 costs_more_than "$job" "$spent"
    printf 'zone_a 360000\n' >"$TB_DIR/prices"
    wait_for 60 pool_says "$job" zone_a "p['ready'] == 0 and p['why'] == 'the budget is used up'"
    wait_for 30 size_is "$job" 1
    as_user selastic show "$job"
    enough "$job"
}
