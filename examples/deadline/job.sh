#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#SBATCH --job-name=deadline
#SBATCH --elastic=1:8
#SBATCH --exclusive
#SBATCH --time=3-00:00:00
# Spot nodes first. On-demand nodes when the deadline needs them.
#SBATCH --elastic-pool=spot,on-demand
#SBATCH --elastic-deadline=now+60hours
#SBATCH --elastic-fallback=deadline
# In the currency of the site's prices. When it is used up, the job goes on with MIN nodes.
#SBATCH --elastic-budget=400
# After its time limit, or a failure, the job goes on from its checkpoint.
#SBATCH --elastic-requeue=limit,fault

srun elasticrun python3 train.py "$@"
