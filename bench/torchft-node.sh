#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# One node under torchft, as srun starts it: a replica group, with a torchrun of its own.
#
# Usage: torchft-node.sh base|added LIGHTHOUSE PYTHON COMMAND...
#
# In a base job a lighthouse runs beside the first group; LIGHTHOUSE is its port and its options.

set -eu
role=$1 python=$3
read -ra lighthouse <<<"$2"
shift 3
export PYTHONPATH=${python%/bin/*}/torchft${PYTHONPATH:+:$PYTHONPATH}
export TORCHFT_LIGHTHOUSE=http://127.0.0.1:${lighthouse[0]}
REPLICA_GROUP_ID=$SLURM_JOB_ID
if [[ $role == base ]]; then
    REPLICA_GROUP_ID=$SLURM_PROCID # the lowest of all
    if ((SLURM_PROCID == 0)); then
        "${PYTHONPATH%%:*}/bin/torchft_lighthouse" --bind "[::]:${lighthouse[0]}" \
            "${lighthouse[@]:1}" >lighthouse.log 2>&1 &
    fi
fi
export REPLICA_GROUP_ID
exec "$python" -m torch.distributed.run --standalone --nnodes=1 --nproc_per_node=1 \
    --max_restarts=1000 --log_dir="$PWD/torchrun" -r 1 -t 2 "$@"
