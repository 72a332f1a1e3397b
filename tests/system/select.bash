# SPDX-License-Identifier: GPL-2.0-or-later
# For tests of select/elastic_cons_tres: jobs of whole nodes in which nothing runs, and where they are.
# shellcheck shell=bash

# allocate ARGUMENT...: a job of whole nodes, once it has them; prints its id.
allocate() {
    local text
    text=$(as_user salloc --no-shell --exclusive --time=60 "$@" 2>&1) || {
        printf '%s\n' "$text" >&2
        return 1
    }
    [[ $text =~ Granted\ job\ allocation\ ([0-9]+) ]] || return 1
    printf '%s\n' "${BASH_REMATCH[1]}"
}

# extend BASE NODES: an extension of it.
extend() {
    allocate -N "$2" -p elastic --elastic-extend="$1" --comment="elastic-extension-of=$1.0"
}

at() { on_testbed squeue -h -j "$1" -o %N; }

# is_at ID NODES
is_at() {
    local nodes
    nodes=$(at "$1")
    [[ $nodes == "$2" ]] || {
        printf 'job %s is on %s instead of %s\n' "$1" "$nodes" "$2" >&2
        show_cluster >&2
        return 1
    }
}

log() { cat "$TB_DIR/log/slurmctld.log"; }

# Since 23.11 slurmctld starts anew for this, and asks all nodes. Until a node has answered it is
# unknown, and no job gets it.
reconfigure() {
    on_testbed scontrol reconfigure
    wait_for 30 all_respond
}

all_respond() {
    local states
    states=$(on_testbed sinfo -h -N -o %T) && ! grep -qE '[*]|unknown' <<<"$states"
}

# SelectType, and which nodes there are, is read by a new slurmctld only.
restart() {
    "$TESTBED" stop-controller --dir "$TB_DIR"
    "$TESTBED" start-controller --dir "$TB_DIR"
    wait_for 30 nodes_are 0 unknown
}
