# SPDX-License-Identifier: GPL-2.0-or-later
#
# tests/unit/: cmocka programs, run by `make check`. A test of lib/ is one name in UNIT_TESTS and two lines:
#
#   tests_unit_test_sizes_SOURCES = tests/unit/test_sizes.c
#   tests_unit_test_sizes_LDADD = $(UNIT_LIBS)
UNIT_LIBS = lib/libelasticcore.la $(CMOCKA_LIBS)

UNIT_TESTS =

UNIT_TESTS += tests/unit/test_plan
tests_unit_test_plan_SOURCES = tests/unit/test_plan.c
tests_unit_test_plan_LDADD = $(UNIT_LIBS)

if HAVE_CMOCKA
check_PROGRAMS += $(UNIT_TESTS)
TESTS += $(UNIT_TESTS)
endif
