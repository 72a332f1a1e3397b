# SPDX-License-Identifier: GPL-2.0-or-later
#
# tests/meta/: checks on the tree and on what was built and installed, run by scripts/check.
EXTRA_DIST += \
    tests/meta/binaries.bats \
    tests/meta/calls.py \
    tests/meta/check.bats \
    tests/meta/configure.bats \
    tests/meta/docs.bats \
    tests/meta/helpers.bash \
    tests/meta/interfaces.bats \
    tests/meta/interfaces/elastic.h.txt \
    tests/meta/interfaces/help.txt \
    tests/meta/interfaces/python.txt \
    tests/meta/manuals.bats \
    tests/meta/matrix.bats \
    tests/meta/prose.py \
    tests/meta/release.bats \
    tests/meta/rooms.bats \
    tests/meta/setup.bats \
    tests/meta/tree.bats \
    tests/meta/usage.json
