#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#SBATCH --job-name=container
#SBATCH --elastic=1:4
#SBATCH --time=10

# The package of the node; the container's Python needs no package of its own for it.
python=$(dirname "$(command -v elasticrun)")/../share/slurm-elastic/python
export PYTHONPATH=${PYTHONPATH:-$(readlink -f "$python")}

# elasticrun runs on the node, and starts the container for each worker.
srun elasticrun ./bubblewrap.sh "${IMAGE:-/}" python3 train.py
