# SPDX-License-Identifier: GPL-2.0-or-later
#
# tests/pypi/: bats on the testbed, run by scripts/check --pypi: EXTRA_DIST += tests/pypi/x.bats
EXTRA_DIST += \
    tests/pypi/frameworks.bats \
    tests/pypi/frameworks.py \
    tests/pypi/losses.py \
    tests/pypi/mlflow.bats \
    tests/pypi/mlflow_client.py \
    tests/pypi/newer_torch.bats \
    tests/pypi/ray.bats \
    tests/pypi/ray_program.py \
    tests/pypi/sharded.bats \
    tests/pypi/units.bats
