# SPDX-License-Identifier: GPL-2.0-or-later
#
# tests/python/: unittest files that print TAP, run by `make check`. One name in PYTHON_TESTS each.
PYTHON_TESTS =

EXTRA_DIST += $(PYTHON_TESTS)
# A sanitized library cannot be loaded into an interpreter that is not.
if !SANITIZERS
TESTS += $(PYTHON_TESTS)
endif
