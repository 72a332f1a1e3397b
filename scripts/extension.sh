#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The batch script of every extension job: one elasticrun on each node, which asks the base job's
# leader what to run. It is always the same; what differs comes in the environment
# (doc/admin/pools.md).
#
# The options say what srun would otherwise take from slurm.conf or from MpiDefault: elasticrun is
# its own PMIx server, and the loss of one node must not end the others.

# KEEP logs of extensions that are over stay, and none that is empty. An extension that was submitted
# before this one is over, or it is in ELASTIC_EXTENSIONS.
KEEP=5
clear_logs() {
    local log job
    local -a full=()
    while read -r job; do
        log=$ELASTIC_LOGS/extension-$job.log
        [[ " ${ELASTIC_EXTENSIONS:-} " != *" $job "* ]] && ((job < SLURM_JOB_ID)) || continue
        if [[ -s $log ]]; then full+=("$log"); else rm -f -- "$log"; fi
    done < <(
        shopt -s nullglob
        for log in "$ELASTIC_LOGS"/extension-*.log; do
            log=${log##*/extension-}
            [[ ${log%.log} =~ ^[1-9][0-9]*$ ]] && printf '%s\n' "${log%.log}"
        done | sort -rn
    )
    ((${#full[@]} <= KEEP)) || rm -f -- "${full[@]:KEEP}"
}

# The job's state directory may be gone or read-only. Then what is said here is lost, and no more. The
# log is a new file: nothing is written where a link in its place leads. Without `command` a failed
# exec would end a script of POSIXLY_CORRECT.
umask 077
log=${ELASTIC_LOGS:-}/extension-${SLURM_JOB_ID:-0}.log
set -o noclobber
if [[ -n ${ELASTIC_LOGS:-} ]] && { rm -f -- "$log" && command exec 3>"$log"; } 2>/dev/null; then
    clear_logs 2>/dev/null
    exec >&3 2>&1 3>&-
fi
set +o noclobber

if [[ ! -x ${ELASTIC_RUN:-} ]]; then
    echo "elastic: ${ELASTIC_RUN:-ELASTIC_RUN} is not there on ${SLURMD_NODENAME:-this node};" \
        "install it on every node or on a shared file system. This extension leaves." >&2
    exit 0
fi

# Of replicas of a role: their tasks are not srun's, whose one task on each node gets all that the job
# has there.
gpus=()
if [[ -n ${ELASTIC_EXTENSION_ROLE:-} ]]; then
    # Without a number of its own the step would get the GPUs of one task on each node. Where the nodes
    # differ, no number is right for all of them.
    if [[ -n ${SLURM_GPUS_ON_NODE:-} && $SLURM_TASKS_PER_NODE != *,* ]]; then
        gpus=(--gpus-per-node="$SLURM_GPUS_ON_NODE")
    fi
    unset SLURM_CPUS_PER_TASK SRUN_CPUS_PER_TASK SLURM_GPUS_PER_TASK SLURM_TRES_PER_TASK
fi

exec srun --mpi=none --overlap --no-kill --kill-on-bad-exit=0 --wait=0 --cpu-bind=none \
    --nodes="$SLURM_JOB_NUM_NODES" --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 \
    "${gpus[@]}" --input=none "$ELASTIC_RUN" --extension
