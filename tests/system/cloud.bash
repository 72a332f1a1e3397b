# SPDX-License-Identifier: GPL-2.0-or-later
# Nodes of clouds, and the metadata services that tell them of their end.

# zone ZONE KEY=VALUE...: changes a zone of the testbed, and prints it.
zone() { "$TESTBED" zone --dir "$TB_DIR" "$@"; }

# Nodes of the clouds that are powered down are hidden (before Slurm 23.02), or idle~.
all_off() { ! on_testbed sinfo -h -N -p owners -o %T | grep -qv '~'; }

# metadata_up: metadata services for all nodes, at $ENDPOINT; they read and write $CLOUD.
metadata_up() {
    export CLOUD=$TB_HOME/cloud
    mkdir "$CLOUD"
    python3 "$TREE/tests/system/metadata.py" "$CLOUD" 3>&- >"$CLOUD/said" 2>&1 &
    export CLOUD_PID=$!
    wait_for 30 test -e "$CLOUD/port"
    ENDPOINT=http://127.0.0.1:$(<"$CLOUD/port")
    export ENDPOINT
}

metadata_down() { kill "$CLOUD_PID"; }

# notice NODE SECONDS: the node's cloud takes it in so many seconds; sets given, the time. $CLOUD/NODE is there until somebody
# removes it.
notice() {
    echo "$2" >"$CLOUD/new"
    mv "$CLOUD/new" "$CLOUD/$1"
    given=$EPOCHREALTIME
}

# says_of_growth JOB PATTERN: whether selastic show has a line like that.
says_of_growth() { as_user selastic show "$1" 2>/dev/null | grep -qE "$2"; }
