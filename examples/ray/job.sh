#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#SBATCH --job-name=primes
#SBATCH --elastic-roles=ray.yaml
#SBATCH --nodes=1 --exclusive
#SBATCH --time=10

srun elasticrun
