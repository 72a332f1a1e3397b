#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# What an elastic job costs slurmctld, by its own count (sdiag). lib/look.c and tests/sim have the
# rates; here is whether a question is one request, and whether nothing else asks.
# Takes 160 s

load helpers
load elastic

setup_file() {
    testbed_up --nodes 4
    # Without job_submit/elastic the testbed has leaders ask for all nodes, which this is not about.
    sed -i '/^drain_look/d' "$TB_DIR/etc/elastic.conf"
    cp "$TREE/tests/system/steps.py" "$TB_WORK/"
}

teardown_file() { testbed_down; }

teardown() { cancel_all; }

# counts: requests of each type since sdiag -r, of all users; the user's own are USER.
counts() {
    on_testbed sdiag | awk -v user="$TB_USER" '
        /^Remote Procedure Call statistics by user/ { by_user = 1 }
        /^Pending RPC/ { exit }
        match($0, /count:[0-9]+/) {
            number = substr($0, RSTART + 6, RLENGTH - 6)
            if (!by_user)
                print $1, number
            else if ($1 == user)
                print "USER", number
        }'
}

# count TYPE <<<COUNTS
count() { awk -v type="$1" '$1 == type { sum += $2 } END { print sum + 0 }'; }

reset_counts() {
    on_testbed sdiag -r >/dev/null
    since=$EPOCHREALTIME
}

# at_most COUNT SECONDS <<<COUNTS: the user's requests in that time. It was longer if this machine is slow.
at_most() {
    local took
    took=$(seconds_since "$since")
    (($(count USER) * $2 <= $1 * (took > $2 ? took : $2)))
}

# What the tests themselves ask, they ask as root: it is not counted.
has_size() {
    [[ $(on_testbed selastic show "$1" --json 2>/dev/null | json_value 's["size"]' 2>/dev/null) == "$2" ]]
}

has_pending() {
    [[ $(on_testbed squeue -h -t PD -o '%k') == *"elastic-extension-of=$1."* ]]
}

# running_extension BASE: asked for as root.
running_extension() {
    on_testbed squeue -h -t R -o '%A %k' | awk -v mark="elastic-extension-of=$1." 'index($2, mark) == 1 { print $1; exit }'
}

has_none_pending() { ! has_pending "$1"; }

# nothing_listed COUNTS: nobody has asked for all nodes, all partitions, all jobs of a user.
nothing_listed() {
    local type
    for type in REQUEST_NODE_INFO REQUEST_PARTITION_INFO REQUEST_JOB_INFO REQUEST_JOB_USER_INFO; do
        [[ $(count "$type" <<<"$1") == 0 ]] || return 1
    done
}

@test "a job costs little as it starts, less while an extension waits, and next to nothing at rest" {
    reset_counts
    job=$(train 2:8 100000 0.2 -- -N2)
    wait_for 60 has_size "$job" 4
    sleep 10
    first=$(counts)
    echo "start: $first"
    at_most 60 30 <<<"$first"
    (($(count REQUEST_JOB_USER_INFO <<<"$first") == 0))

    wait_for 40 has_pending "$job"
    sleep 20
    reset_counts
    sleep 30
    waiting=$(counts) # its second minute; by the simulator: six in a minute
    echo "waiting, 30 s: $waiting"
    at_most 6 30 <<<"$waiting"
    (($(count REQUEST_JOB_USER_INFO <<<"$waiting") == 0))

    as_user selastic resize "$job" 4
    wait_for 30 has_none_pending "$job"
    sleep 4
    reset_counts
    sleep 35 # by the simulator: two a minute
    rest=$(counts)
    echo "at rest, 35 s: $rest"
    at_most 2 35 <<<"$rest"
    nothing_listed "$rest"
    goes_on "$job"

    # Without the plugin each node is asked for in its turn, once in 40 s: faults.md.
    has_plugin job_submit_elastic || return 0
    # It might just be this node's turn, once in 160 s: so the log has to say it, too.
    extension=$(running_extension "$job")
    node=$(job_nodes "$extension" | head -1)
    reset_counts
    on_testbed scontrol update nodename="$node" state=drain reason=test
    wait_for 40 job_ended "$extension"
    drained=$(counts)
    on_testbed scontrol update nodename="$node" state=resume
    echo "a node is drained: $drained"
    wait_for 20 grep -F "job $extension is told that one of its nodes is drained" "$TB_DIR/log/slurmctld.log"
    (($(count REQUEST_NODE_INFO_SINGLE <<<"$drained") <= 2))
    at_most 15 30 <<<"$drained"
    nothing_listed "$drained"
    goes_on "$job"
}

# The leaders of the jobs ask in the name of the same user, now and then, and all of them soon after
# they have started: so a second list may be needed to see what the list alone asks.
lists_with_few_requests() {
    reset_counts
    as_user selastic list --json >"$TB_WORK/list"
    listed=$(counts)
    echo "$listed"
    (($(count USER <<<"$listed") <= 10))
}

@test "selastic list asks Slurm no more for many jobs than for a few" {
    for _ in 1 2 3 4 5 6 7 8; do
        job=$(submit --elastic=1:1 -n1 -t 10 --wrap 'srun elasticrun sleep 600')
    done
    wait_for 60 job_is "$job" RUNNING
    wait_for 60 has_size "$job" 1
    wait_for 20 lists_with_few_requests
    [[ $(json_value 'len(s["jobs"])' <"$TB_WORK/list") == 8 ]]
    (($(count REQUEST_NODE_INFO <<<"$listed") == 1))
}
