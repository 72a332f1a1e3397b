#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The batch script of every extension job: one elasticrun on each node, which asks the base job's
# leader what to run. It is always the same; what differs comes in the environment
# (doc/admin/pools.md).
#
# The options say what srun would otherwise take from slurm.conf or from MpiDefault: elasticrun is
# its own PMIx server, and the loss of one node must not end the others.

if [[ ! -x ${ELASTIC_RUN:-} ]]; then
    echo "elastic: ${ELASTIC_RUN:-ELASTIC_RUN} is not there on ${SLURMD_NODENAME:-this node};" \
        "install it on every node or on a shared file system. This extension leaves." >&2
    exit 0
fi

exec srun --mpi=none --overlap --no-kill --kill-on-bad-exit=0 --wait=0 --cpu-bind=none \
    --nodes="$SLURM_JOB_NUM_NODES" --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 \
    --input=none "$ELASTIC_RUN" --extension
