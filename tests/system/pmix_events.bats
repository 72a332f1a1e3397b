#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Programs that know PMIx and nothing else of us: events between processes and from the job, signals to each other.
# Takes 40 s

load helpers
load elastic

GRACE=300

setup_file() {
    testbed_up --nodes 3 --grace "$GRACE"
    patient
    compile gcc pmix/checkpointer.c "$TB_WORK/checkpointer" pmix
    compile gcc pmix/peers.c "$TB_WORK/peers" pmix
}

teardown_file() { testbed_down; }

teardown() {
    [[ -z ${HERE:-} ]] || tail -n 20 "$HERE"/log-* "$TB_WORK/$job.out"
    cancel_all
}

# What the process of that rank has logged, a word for each line.
log_of() { awk '{ printf "%s ", $1 }' "$TB_WORK/saved/log-$1"; }

log_is() { [[ $(log_of "$1") == "$2" ]]; }

@test "the alert comes before a node is taken, and who answers that it has saved is not waited for" {
    as_user mkdir "$TB_WORK/saved"
    job=$(submit --elastic=2:3 --elastic-grow-delay=2 -N2 --ntasks-per-node=1 --exclusive -t 30 --wrap \
        "srun elasticrun $TB_WORK/checkpointer $TB_WORK/saved 0.3")
    wait_for 60 size_is "$job" 3
    wait_for 60 says "$TB_WORK/saved/log-2" '^declared 0$'
    # To grow it was asked to save, and not told that it is being preempted.
    wait_for 20 log_is 0 'begins declared asked saved begins declared '
    rival=$(submit -N1 --exclusive -t 30 --wrap 'sleep 1800')
    wait_for 60 job_is "$rival" RUNNING
    waited_less "$rival" $((GRACE / 3))
    wait_for 60 size_is "$job" 2
    wait_for 60 says "$TB_WORK/saved/log-0" '^begins [1-9]'
    tail -n 20 "$TB_WORK"/saved/log-* "$TB_WORK/$job.out"
    wait_for 20 log_is 2 'begins declared alert asked saved '
    [[ $(log_of 0) == 'begins declared asked saved begins declared alert asked saved begins '* ]]
    # It was told for how long, and goes on where it has saved.
    left=$(awk '$1 == "alert" { print $2 }' "$TB_WORK/saved/log-2")
    ((left > 1 && left <= GRACE))
    [[ $(awk '$1 == "saved" { saved = $2 } $1 == "begins" && $2 != saved + 0 { print "lost" }' "$TB_WORK/saved/log-0") == "" ]]
    [[ $(sizes_of "$job") == 2,3,2 ]]
    as_user scancel "$job"
    wait_for 30 nothing_is_left_of "$job"
}

# Ranks 0 and 1 on the first node, 2 and 3 on the second.
peers() {
    HERE=$(as_user mktemp -d "$TB_WORK/peers.XXXX")
    job=$(submit --elastic=2:2 -N2 --ntasks-per-node=2 --exclusive -t 30 --wrap "srun elasticrun $TB_WORK/peers $HERE")
    all_begin 1
}

# all_begin GENERATION
all_begin() {
    for rank in 0 1 2 3; do
        wait_for 60 says "$HERE/log-$rank" "^begins $1 "
    done
}

order() { as_user sh -c "echo '${*:2}' >>$HERE/orders-$1"; }

# hears RANK LABEL SENDER
hears() { wait_for 30 says "$HERE/log-$1" "^event $2 of $3\$"; }

# How many events with that label have come to that rank.
count_of() {
    local before
    before=$(grep -c '^count' "$HERE/log-$1")
    order "$1" count "$2"
    wait_for 30 more_counts "$1" "$before"
    sed -n "s/^count $2 //p" "$HERE/log-$1" | tail -n 1
}

more_counts() { (($(grep -c '^count' "$HERE/log-$1") > $2)); }

all_have_come() { [[ $(count_of "$1" "$2") == "$3" ]]; }

@test "an event of a process reaches those of other nodes that its range names; a flood stays on its node" {
    peers
    order 0 notify 3 world # PMIX_RANGE_NAMESPACE
    for rank in 1 2 3; do
        hears "$rank" world 0
    done
    order 3 notify 4 session # PMIX_RANGE_SESSION
    order 2 notify 2 node    # PMIX_RANGE_LOCAL
    order 2 notify to:0 named
    hears 0 session 3
    hears 0 named 2
    hears 3 node 2
    # Each node's events come in their order, so what should not have come would be there.
    order 2 notify 3 last
    for rank in 0 1 3; do
        hears "$rank" last 2
    done
    run ! grep -h '^event node' "$HERE/log-0" "$HERE/log-1"
    run ! grep -h '^event named' "$HERE/log-1" "$HERE/log-3"

    # 500 at once and 100 a second go to other nodes, all of them to those of the same.
    SECONDS=0
    order 1 notify 3 flood 3000
    wait_for 60 says "$HERE/log-1" '^notify flood: SUCCESS'
    wait_for 60 all_have_come 0 flood 3000
    order 0 notify 3 behind
    hears 1 behind 0
    came=$(count_of 2 flood)
    echo "$came events have come to the other node in $SECONDS s"
    ((came >= 490 && came <= 500 + 100 * (SECONDS + 1)))
    size_is "$job" 2
    # … and that is over.
    wait_for 30 relays_again
}

# An event gets to the other node.
relays_again() {
    ATTEMPT=$((${ATTEMPT:-0} + 1))
    order 0 notify 3 "again$ATTEMPT"
    says "$HERE/log-3" '^event again'
}

@test "who is told of: pids and the program, on all nodes" {
    peers
    order 0 table pmix.qry.ptable
    wait_for 30 says "$HERE/log-0" '^table: SUCCESS'
    order 3 table pmix.qry.lptable
    wait_for 30 says "$HERE/log-3" '^table: SUCCESS'
    for rank in 0 1 2 3; do
        pid=$(sed -n 's/^begins 1 pid //p' "$HERE/log-$rank")
        says "$HERE/log-0" "^process $rank on n$((1 + rank / 2)) pid $pid of $TB_WORK/peers\$"
    done
    [[ $(grep '^process' "$HERE/log-3" | sort) == $(grep '^process [23]' "$HERE/log-0" | sort) ]]
}

@test "signals: to one, to those of other nodes, to all, and to nobody else" {
    peers
    order 0 control 10 3
    wait_for 30 says "$HERE/log-3" '^signal 10'
    order 0 control 10 1,2
    wait_for 30 says "$HERE/log-1" '^signal 10'
    wait_for 30 says "$HERE/log-2" '^signal 10'
    order 0 control 10 none # whoever it does not name is meant
    wait_for 30 says "$HERE/log-0" '^signal 10'
    wait_for 30 says "$HERE/log-0" '^control 10 none'
    for order in '10 4' '10 strangers' '0 1' '99 1' '9999 1' '19 1' '17 1' 'pause 1' 'resume 1' 'both 1'; do
        order 2 control "$order"
    done
    wait_for 30 says "$HERE/log-2" '^control both'
    cat "$HERE"/log-*
    [[ $(grep '^control' "$HERE/log-0") == 'control 10 3: SUCCESS
control 10 1,2: SUCCESS
control 10 none: SUCCESS' ]]
    # "0" is no action at all.
    [[ $(grep '^control' "$HERE/log-2") == 'control 10 4: NOT-FOUND
control 10 strangers: NOT-FOUND
control 0 1: SUCCESS
control 99 1: BAD-PARAM
control 9999 1: BAD-PARAM
control 19 1: NOT-SUPPORTED
control 17 1: NOT-SUPPORTED
control pause 1: NOT-SUPPORTED
control resume 1: NOT-SUPPORTED
control both 1: BAD-PARAM' ]]
    size_is "$job" 2
}

@test "a process that another one kills or terminates is a failure of its world; all of them are the end of the job" {
    peers
    order 0 control kill 3
    all_begin 2
    order 3 control terminate 1
    all_begin 3
    [[ $(history_json "$job" | json_value '[g["kind"] for g in s["generations"]]') == "['start', 'fault', 'fault']" ]]
    order 2 control terminate all
    wait_for 60 job_is "$job" FAILED
    [[ $(job_field "$job" ExitCode) == 143:0 ]]
    says "$TB_WORK/$job.out" 'rank 2 has asked for it'
    wait_for 30 nothing_is_left_of "$job"
}
