#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A batch script that changes its size by submitting itself anew: resubmit.sh MIN MAX COMMAND...
#
# On SIGTERM, when Slurm preempts it, or on SIGUSR1 the training saves and leaves with status 3. Then
# this goes on with MIN nodes if it has MAX, and with MAX if it has MIN. "stop" beside it ends that.

self=$PWD/resubmit.sh min=$1 max=$2
MASTER_PORT=$((28000 + SLURM_JOB_ID % 1000)) srun bash -c \
    'RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS MASTER_ADDR=127.0.0.1 exec "$@"' - "${@:3}"
if (($? == 3)) && [[ ! -e stop ]]; then
    next=$max
    ((SLURM_NNODES != max)) || next=$min
    exec sbatch --nodes="$next" --partition="$SLURM_JOB_PARTITION" --exclusive --time=20 \
        --job-name="$SLURM_JOB_NAME" --output="$PWD/%j.out" "$self" "$@"
fi
