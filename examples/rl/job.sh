#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#SBATCH --job-name=cartpole
#SBATCH --elastic-roles=rl.yaml
#SBATCH --nodes=1 --exclusive
#SBATCH --time=30

srun elasticrun
