# SPDX-License-Identifier: GPL-2.0-or-later
#
# agent/: elasticrun. All but main() is a convenience library, for the tests.
noinst_LTLIBRARIES += agent/libelasticagent.la

agent_libelasticagent_la_SOURCES = \
    agent/allocate.c \
    agent/avoid.c \
    agent/binding.c \
    agent/binding.h \
    agent/change.c \
    agent/claim.c \
    agent/claim.h \
    agent/decide.c \
    agent/event.c \
    agent/event.h \
    agent/exchange.c \
    agent/exchange_internal.h \
    agent/exec_worker.c \
    agent/exec_worker.h \
    agent/extension_argv.c \
    agent/extensions.c \
    agent/group.c \
    agent/hang.c \
    agent/heritage.h \
    agent/keep.c \
    agent/leader.c \
    agent/leader.h \
    agent/leader_internal.h \
    agent/lease.c \
    agent/live.c \
    agent/member.c \
    agent/member.h \
    agent/member_control.c \
    agent/member_internal.h \
    agent/member_join.c \
    agent/member_pmix.c \
    agent/member_reclaim.c \
    agent/memory.c \
    agent/memory.h \
    agent/options.c \
    agent/options.h \
    agent/orphan.c \
    agent/output.c \
    agent/output.h \
    agent/paths.c \
    agent/paths.h \
    agent/pattern.c \
    agent/pattern.h \
    agent/pmix.c \
    agent/pmix.h \
    agent/port.c \
    agent/port.h \
    agent/prepare.c \
    agent/process_tree.c \
    agent/process_tree.h \
    agent/promote.c \
    agent/publish.c \
    agent/question_state.c \
    agent/reclaim.c \
    agent/reclaim.h \
    agent/report.c \
    agent/requeue.c \
    agent/roster.c \
    agent/run_dir.c \
    agent/run_dir.h \
    agent/spare.c \
    agent/spare.h \
    agent/srun.c \
    agent/srun_port.c \
    agent/srun_port.h \
    agent/store.c \
    agent/store_server.c \
    agent/store_server.h \
    agent/submit.c \
    agent/successor.c \
    agent/successor.h \
    agent/supervise.c \
    agent/supervise.h \
    agent/takeover.c \
    agent/tear.c \
    agent/worker_error.c \
    agent/worker_error.h \
    agent/worker_start.c \
    agent/worker_worlds.c \
    agent/workers.c \
    agent/workers.h \
    agent/workers_internal.h
AGENT_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS) $(LIBUV_CFLAGS) $(SODIUM_CFLAGS) $(HWLOC_CFLAGS) \
    -DLIBDIR='"$(libdir)"' -DPKGLIBEXECDIR='"$(pkglibexecdir)"'
agent_libelasticagent_la_CPPFLAGS = $(AGENT_CPPFLAGS)
agent_libelasticagent_la_CFLAGS = $(AM_CFLAGS) $(PROGRAM_CFLAGS)
agent_libelasticagent_la_LIBADD = common/libelasticcommon.la flush/libelasticcheckpoints.la $(HWLOC_LIBS) $(CURL_LIBS)

bin_PROGRAMS += agent/elasticrun
agent_elasticrun_SOURCES = agent/main.c
agent_elasticrun_CPPFLAGS = $(AGENT_CPPFLAGS)
agent_elasticrun_CFLAGS = $(AM_CFLAGS) $(PROGRAM_CFLAGS)
agent_elasticrun_LDFLAGS = $(PROGRAM_LDFLAGS)
agent_elasticrun_LDADD = agent/libelasticagent.la
