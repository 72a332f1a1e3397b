#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# successor.sh JOB OPTION...: submit the batch script of a job once more, with these options of sbatch,
# and print the number of the new job. The leader of a service runs it before its job's time is over
# (doc/internals/serve.md).
#
# The environment is that of the job without what Slurm and elasticrun have put there: it would change
# what sbatch, srun and elasticrun do.
set -eu
umask 077

job=$1
shift
dir=$(mktemp -d "${TMPDIR:-/tmp}/elastic-successor.XXXXXX")
trap 'rm -rf -- "$dir"' EXIT
scontrol write batch_script "$job" "$dir/script" >/dev/null
# A relative name in the script means what it meant before.
[[ ! -d ${SLURM_SUBMIT_DIR:-} ]] || cd -- "$SLURM_SUBMIT_DIR"

while read -r name; do
    case $name in
    SLURM_CONF | ELASTIC_CONF | ELASTIC_DEBUG) ;;
    SLURM* | SBATCH_* | SRUN_* | SALLOC_* | ELASTIC_* | PMI_* | PMI2_* | PMIX_* | OMPI_* | HYDRA_*) unset "$name" ;;
    CUDA_VISIBLE_DEVICES | ROCR_VISIBLE_DEVICES | GPU_DEVICE_ORDINAL | ZE_AFFINITY_MASK) unset "$name" ;;
    esac
done < <(compgen -e)
export ELASTIC_HANDOVER_OF=$job

sbatch --parsable "$@" "$dir/script"
