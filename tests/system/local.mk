# SPDX-License-Identifier: GPL-2.0-or-later
#
# tests/system/: bats on the testbed, run by scripts/check: EXTRA_DIST += tests/system/x.bats
EXTRA_DIST += \
    tests/system/helpers.bash \
    tests/system/selastic.bats \
    tests/system/testbed.bats

check_PROGRAMS += tests/system/fake_leader
tests_system_fake_leader_SOURCES = tests/system/fake_leader.c
tests_system_fake_leader_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS) $(LIBUV_CFLAGS)
tests_system_fake_leader_LDADD = common/libelasticcommon.la $(LIBUV_LIBS) $(JSONC_LIBS)
