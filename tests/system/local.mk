# SPDX-License-Identifier: GPL-2.0-or-later
#
# tests/system/: bats on the testbed, run by scripts/check: EXTRA_DIST += tests/system/x.bats
