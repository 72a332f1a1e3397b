#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# torchrun on one node of a base job or of a job that adds nodes, as srun starts it.
#
# Usage: torchrun-node.sh base|added NNODES ENDPOINT RDZV_CONF PYTHON LAUNCHER-ARGUMENT... -- COMMAND...
#
# Each torchrun would find out by its host name whether it is to serve the rendezvous. All nodes of a
# testbed have the same name, so it is told. Without -r and -t Debian 12's torchrun ends at its start.

set -eu
role=$1 nodes=$2 endpoint=$3 conf=$4 python=$5
shift 5
launcher=()
while [[ $1 != -- ]]; do
    launcher+=("$1")
    shift
done
shift
host=0
[[ $role != base || $SLURM_PROCID != 0 ]] || host=1
# Else newer workers meet in the store of the agents, under the number of their restarts. Agents that
# came later count fewer, and find addresses of workers that are gone.
export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1
exec "$python" "${launcher[@]}" --nnodes="$nodes" --nproc_per_node=1 --max_restarts=1000 \
    --rdzv_backend=c10d --rdzv_endpoint="$endpoint" --rdzv_id=bench \
    --rdzv_conf="is_host=$host${conf:+,$conf}" --log_dir="$PWD/torchrun" -r 1 -t 2 "$@"
