# SPDX-License-Identifier: GPL-2.0-or-later
#
# tests/meta/: checks on the tree and on what was built, run by scripts/check.
