# SPDX-License-Identifier: GPL-2.0-or-later
# Helpers of the system tests that call prolog and epilog as slurmd does. Load after helpers.
# shellcheck shell=bash

uid() { id -u "$TB_USER"; }

# find_hook: for setup_file; sets HOOK to the script that the testbed runs.
find_hook() {
    HOOK=$(find "$TB_DIR/etc/epilog.d/" -name 50-elastic)
    export HOOK
}

# hook CONTEXT JOB RESTARTS NODE [NAME=VALUE...]: calls it as slurmd does.
hook() {
    local context=$1 job=$2 restarts=$3 node=$4 conf
    shift 4
    conf=$(as_user sh -c 'echo $SLURM_CONF')
    env -i SLURM_SCRIPT_CONTEXT="${context}_slurmd" SLURM_JOB_ID="$job" SLURM_JOB_UID="$(uid)" \
        SLURM_JOB_GID="$(id -g "$TB_USER")" SLURM_JOB_RESTART_COUNT="$restarts" \
        SLURMD_NODENAME="$node" \
        SLURM_NODELIST="$node" SLURM_CONF="$conf" "$@" "$HOOK"
}
