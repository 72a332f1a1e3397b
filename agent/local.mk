# SPDX-License-Identifier: GPL-2.0-or-later
#
# agent/: elasticrun. With the first source comes:
#
#   bin_PROGRAMS += agent/elasticrun
#   agent_elasticrun_SOURCES = agent/main.c ...
#   agent_elasticrun_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS) $(LIBUV_CFLAGS) $(HWLOC_CFLAGS) ...
#   agent_elasticrun_CFLAGS = $(AM_CFLAGS) $(PROGRAM_CFLAGS)
#   agent_elasticrun_LDFLAGS = $(PROGRAM_LDFLAGS)
#   agent_elasticrun_LDADD = common/libelasticcommon.la $(HWLOC_LIBS) ...
