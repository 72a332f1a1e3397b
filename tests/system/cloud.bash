# SPDX-License-Identifier: GPL-2.0-or-later
# Nodes of clouds, and the metadata services that tell them of their end.

# zone ZONE KEY=VALUE...: changes a zone of the testbed, and prints it.
zone() { "$TESTBED" zone --dir "$TB_DIR" "$@"; }

# Nodes of the clouds that are powered down are hidden (before Slurm 23.02), or idle~.
all_off() { ! on_testbed sinfo -h -N -p owners -o %T | grep -qv '~'; }

# boots_are_seen: Slurm looks every 30 s whether the nodes of a job have booted, and at the end of its
# PrologSlurmctld. From now on each job has one, which ends when they have, or will not.
boots_are_seen() {
    cat >"$TB_DIR/etc/booted" <<SH
#!/bin/sh
export SLURM_CONF=$TB_DIR/etc/slurm.conf PATH=$(dirname "$(on_testbed command -v scontrol)"):/usr/bin:/bin
left=100
# One that is powered down is hidden.
boots() {
    case \$(scontrol show node "\$1" | sed -n 's/^ *State=\([^ ]*\).*/\1/p') in
    DOWN*) return 1 ;;
    '' | *POWER* | *NOT_RESPONDING*) left=\$((left - 1)) && [ \$left -gt 0 ] ;;
    *) return 1 ;;
    esac
}
for node in \$(scontrol show hostnames "\$SLURM_JOB_NODELIST"); do
    while boots "\$node"; do sleep 0.3; done
done
SH
    chmod 0755 "$TB_DIR/etc/booted"
    echo "PrologSlurmctld=$TB_DIR/etc/booted" >>"$TB_DIR/etc/slurm.conf"
    # It looks for one only when it starts.
    "$TESTBED" stop-controller --dir "$TB_DIR"
    "$TESTBED" start-controller --dir "$TB_DIR"
}

# metadata_up: metadata services for all nodes, at $ENDPOINT; they read and write $CLOUD.
metadata_up() {
    export CLOUD=$TB_HOME/cloud
    mkdir "$CLOUD"
    /usr/bin/python3 "$TREE/tests/system/metadata.py" "$CLOUD" 3>&- >"$CLOUD/said" 2>&1 &
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
