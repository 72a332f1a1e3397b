#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#SBATCH --job-name=fit-digits
#SBATCH --elastic-roles=fit.yaml
#SBATCH --nodes=1 --exclusive
#SBATCH --time=60

srun elasticrun
