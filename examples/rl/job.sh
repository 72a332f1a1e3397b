#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#SBATCH --job-name=cartpole
#SBATCH --elastic-roles=rl.yaml
#SBATCH --nodes=1 --exclusive
#SBATCH --time=30

# The matrices are small. More threads of BLAS would only wait for each other, and take a CPU for that.
export OMP_NUM_THREADS=1
srun elasticrun
