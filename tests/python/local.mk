# SPDX-License-Identifier: GPL-2.0-or-later
#
# tests/python/: unittest files that print TAP, run by `make check`: TESTS += tests/python/test_x.py,
# EXTRA_DIST += the same.
