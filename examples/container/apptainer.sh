#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Usage: apptainer.sh IMAGE COMMAND...
#
# Runs the command in a container of apptainer (for singularity, change the word), with what
# elasticrun names in ELASTIC_BIND. Add --nv or --rocm for GPUs.
exec apptainer exec --bind "$ELASTIC_BIND" "$@"
