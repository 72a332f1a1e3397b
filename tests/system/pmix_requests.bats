#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Allocation requests at awkward moments: what other runtimes got wrong.
# Takes 55 s

load helpers
load elastic

setup_file() {
    testbed_up --nodes 5
    patient
    compile gcc pmix/asker.c "$TB_WORK/asker" pmix
    long_kill_wait
}

teardown_file() { testbed_down; }

teardown() { cancel_all; }

# A job of 2 to 5 nodes that starts on two and wants no more until it asks.
asker() {
    HERE=$(as_user mktemp -d "$TB_WORK/asker.XXXX")
    LOG=$HERE/log
    job=$(submit --elastic=2:5 --elastic-grow=ask --elastic-grow-delay=1 -N2 --ntasks-per-node=1 --exclusive -t 20 --wrap \
        "srun elasticrun --max-restarts=0 $TB_WORK/asker $HERE/orders $LOG")
    wait_for 60 says "$LOG" '^begins 2 nodes'
}

no_extensions() { [[ -z $(extensions_of "$job") ]]; }

order() { as_user sh -c "echo '$*' >>$HERE/orders"; }

# The log, but for a world in between where two nodes have not joined together.
log_is() {
    [[ $(sed -z 's/begins 4 nodes\nbegins 5 nodes/begins 5 nodes/' "$LOG") == "$1" ]] || { cat "$LOG"; return 1; }
}

# fill COUNT [SBATCH-OPTION...]: so many nodes are somebody else's.
fill() {
    filler=$(submit -N"$1" --exclusive -t 20 "${@:2}" --wrap 'sleep 1200')
    wait_for 30 job_is "$filler" RUNNING
}

@test "a name that is no UTF-8 is refused, and what follows is heard" {
    asker
    order extend 1 "$(printf 'l\344bel')"
    wait_for 30 says "$LOG" 'bel: BAD-PARAM' # in a UTF-8 locale no . of grep is the byte before it
    order extend 1 first
    wait_for 60 says "$LOG" '^ready first'
}

@test "a release during growth waits for it; success is said when the nodes are at work; a released node comes back" {
    asker
    [[ $(show_json "$job" | json_value 's["why_not_more"]') == 'nobody has asked for more (--elastic-grow=ask, MAX is 5)' ]]
    order extend 1 first
    wait_for 60 says "$LOG" '^ready first'
    fill 2
    order extend 2 second
    wait_for 30 says "$LOG" '^extend second: SUCCESS'
    order release 1 third
    wait_for 30 says "$LOG" '^release third: SUCCESS'
    wait_for 30 has_pending_extension "$job"
    size_is "$job" 3 # it is not carried out yet
    as_user scancel "$filler"
    wait_for 60 says "$LOG" '^ready second'
    wait_for 60 says "$LOG" '^ready third'
    # All there is, and what has just been given back.
    order extend 1 fourth
    wait_for 60 says "$LOG" '^ready fourth'
    wait_for 60 size_is "$job" 5
    log_is 'begins 2 nodes
extend first: SUCCESS
begins 3 nodes
ready first: -
extend second: SUCCESS
release third: SUCCESS
begins 5 nodes
ready second: -
begins 4 nodes
ready third: -
extend fourth: SUCCESS
begins 5 nodes
ready fourth: -'
    # By name, and again at once.
    gone=$(show_json "$job" | json_value '[m["node"] for m in s["members"] if m["role"] == "extension"][0]')
    order release "$gone" fifth
    order extend 1 sixth
    wait_for 60 says "$LOG" '^ready fifth'
    wait_for 60 says "$LOG" '^ready sixth'
    wait_for 60 size_is "$job" 5
    as_user scancel "$job"
    wait_for 30 nothing_is_left_of "$job"
}

@test "an extension that is cancelled behind the job's back: the request fails once, and leaves no trace" {
    asker
    fill 3
    order extend 1 lost
    wait_for 30 has_pending_extension "$job"
    as_user scancel "$(extensions_of "$job")"
    wait_for 60 says "$LOG" '^failed lost: extension job [0-9]* ended before it could join'
    # Nothing is asked for any more, until somebody asks.
    wait_for 30 no_extensions
    [[ $(show_json "$job" | json_value 's["target"]') == 2 ]]
    order extend 1 waits
    wait_for 30 has_pending_extension "$job"
    order cancel waits
    wait_for 30 says "$LOG" '^failed waits'
    wait_for 30 no_extensions
    order cancel waits
    wait_for 30 says "$LOG" '^cancel waits: NOT-FOUND'
    as_user scancel "$filler"
    order extend 1 again
    wait_for 60 says "$LOG" '^ready again'
    [[ $(grep -c '^failed' "$LOG") == 2 ]]
    wait_for 30 size_is "$job" 3
    # Nodes that are not the job's, or not its to give.
    order release elsewhere foreign
    order release n1 base
    order release 2 much
    wait_for 30 says "$LOG" '^release much: BAD-PARAM'
    says "$LOG" '^release foreign: NOT-FOUND'
    says "$LOG" '^release base: BAD-PARAM'
    size_is "$job" 3
    # What is still asked for when the job is told to end is answered as well.
    fill 2 --exclude="$(job_field "$(running_extensions_of "$job")" NodeList)"
    order extend 1 late
    wait_for 30 has_pending_extension "$job"
    as_user scancel "$job"
    wait_for 30 says "$LOG" '^failed late: the job is ending'
    wait_for 30 nothing_is_left_of "$job"
}

@test "a job that ends while it grows leaves nothing, and has its own status" {
    asker
    fill 2
    order extend 2 half
    wait_for 30 has_pending_extension "$job"
    order exit 7
    wait_for 30 job_is "$job" FAILED
    [[ $(job_field "$job" ExitCode) == 7:0 ]]
    wait_for 30 nothing_is_left_of "$job"
}
