# SPDX-License-Identifier: GPL-2.0-or-later
#
# tests/: what the directories below share.
EXTRA_DIST += \
    tests/README.md \
    tests/tap/run \
    tests/tap/run-one \
    tests/tap/takes
