# SPDX-License-Identifier: GPL-2.0-or-later
#
# agent/: elasticrun. All but main() is a convenience library, for the tests.
noinst_LTLIBRARIES += agent/libelasticagent.la
EXTRA_DIST += agent/leader/README.md

agent_libelasticagent_la_SOURCES = \
    agent/container.c \
    agent/container.h \
    agent/farewell.c \
    agent/farewell.h \
    agent/handover.h \
    agent/job_policy.c \
    agent/job_policy.h \
    agent/leader_places.c \
    agent/leader_places.h \
    agent/listen.c \
    agent/listen.h \
    agent/options.c \
    agent/options.h \
    agent/node_room.c \
    agent/node_room.h \
    agent/output.c \
    agent/output.h \
    agent/paths.c \
    agent/paths.h \
    agent/pattern.c \
    agent/pattern.h \
    agent/place.c \
    agent/place.h \
    agent/port.c \
    agent/port.h \
    agent/reserve_file.c \
    agent/reserve_file.h \
    agent/agent.c \
    agent/agent.h \
    agent/run_dir.c \
    agent/run_dir.h \
    agent/srun_port.c \
    agent/srun_port.h \
    agent/state_dir.c \
    agent/state_dir.h \
    agent/successor.c \
    agent/successor.h \
    agent/program_signals.c \
    agent/program_signals.h \
    agent/supervise.c \
    agent/supervise.h \
    agent/term_file.c \
    agent/term_file.h \
    agent/leader/act.c \
    agent/leader/act.h \
    agent/leader/allocation.c \
    agent/leader/allocation.h \
    agent/leader/argv.c \
    agent/leader/argv.h \
    agent/leader/control.c \
    agent/leader/control.h \
    agent/leader/control_roles.c \
    agent/leader/control_service.c \
    agent/leader/control_service.h \
    agent/leader/control_roles.h \
    agent/leader/costs.c \
    agent/leader/costs.h \
    agent/leader/decide.c \
    agent/leader/decide.h \
    agent/leader/end.c \
    agent/leader/end.h \
    agent/leader/exclude.c \
    agent/leader/exclude.h \
    agent/leader/extension_argv.c \
    agent/leader/extension_argv.h \
    agent/leader/extensions.c \
    agent/leader/extensions.h \
    agent/leader/facts.c \
    agent/leader/facts.h \
    agent/leader/gangs.c \
    agent/leader/gangs.h \
    agent/leader/hang_watch.c \
    agent/leader/hang_watch.h \
    agent/leader/heritage.c \
    agent/leader/heritage.h \
    agent/leader/inherit.c \
    agent/leader/inherit.h \
    agent/leader/job_pools.c \
    agent/leader/job_pools.h \
    agent/leader/leader.c \
    agent/leader/leader.h \
    agent/leader/leader_internal.c \
    agent/leader/leader_internal.h \
    agent/leader/leader_roles.c \
    agent/leader/leader_roles.h \
    agent/leader/leader_service.c \
    agent/leader/leader_service.h \
    agent/leader/role_requests.c \
    agent/leader/role_requests.h \
    agent/leader/role_tasks.c \
    agent/leader/role_tasks.h \
    agent/leader/lease.c \
    agent/leader/lease.h \
    agent/leader/market.c \
    agent/leader/market.h \
    agent/leader/members.c \
    agent/leader/members.h \
    agent/leader/messages.c \
    agent/leader/messages.h \
    agent/leader/planning.c \
    agent/leader/planning.h \
    agent/leader/pmix_publish.c \
    agent/leader/pmix_publish.h \
    agent/leader/pmix_query.c \
    agent/leader/pmix_query.h \
    agent/leader/pmix_relay.c \
    agent/leader/pmix_relay.h \
    agent/leader/pmix_world.c \
    agent/leader/pmix_world.h \
    agent/leader/power_look.c \
    agent/leader/power_look.h \
    agent/leader/post.c \
    agent/leader/post.h \
    agent/leader/price_list.c \
    agent/leader/price_list.h \
    agent/leader/promote.c \
    agent/leader/promote.h \
    agent/leader/report.c \
    agent/leader/report.h \
    agent/leader/requeue.c \
    agent/leader/requeue.h \
    agent/leader/role_holds.c \
    agent/leader/role_holds.h \
    agent/leader/role_orders.c \
    agent/leader/role_orders.h \
    agent/leader/role_reports.c \
    agent/leader/role_reports.h \
    agent/leader/role_sizes.c \
    agent/leader/role_sizes.h \
    agent/leader/roles_view.c \
    agent/leader/roles_world.c \
    agent/leader/roles_world.h \
    agent/leader/roles_view.h \
    agent/leader/roster.c \
    agent/leader/route_waiters.c \
    agent/leader/route_waiters.h \
    agent/leader/service_act.c \
    agent/leader/service_act.h \
    agent/leader/service_scan.c \
    agent/leader/service_scan.h \
    agent/leader/service_shell.c \
    agent/leader/service_shell.h \
    agent/leader/service_store.c \
    agent/leader/service_store.h \
    agent/leader/service_text.c \
    agent/leader/service_text.h \
    agent/leader/roster.h \
    agent/leader/no_wake.c \
    agent/leader/no_wake.h \
    agent/leader/operators.c \
    agent/leader/operators.h \
    agent/leader/scancel.c \
    agent/leader/scancel.h \
    agent/leader/slurm_look.c \
    agent/leader/slurm_look.h \
    agent/leader/slurm_update.c \
    agent/leader/slurm_update.h \
    agent/leader/srun_lost.c \
    agent/leader/srun_lost.h \
    agent/leader/srun_notify.c \
    agent/leader/srun_notify.h \
    agent/leader/submit.c \
    agent/leader/submit.h \
    agent/leader/world_store.c \
    agent/leader/world_store.h \
    agent/member/api.c \
    agent/member/api.h \
    agent/member/flush_snapshot.c \
    agent/member/group.c \
    agent/member/http.c \
    agent/member/http.h \
    agent/member/job_control.c \
    agent/member/join.c \
    agent/member/late.c \
    agent/member/late.h \
    agent/member/member.c \
    agent/member/member.h \
    agent/member/member_internal.h \
    agent/member/member_messages.c \
    agent/member/member_output.c \
    agent/member/member_pmix.c \
    agent/member/member_reclaim.c \
    agent/member/member_replicas.c \
    agent/member/pmix.c \
    agent/member/pmix.h \
    agent/member/probe.c \
    agent/member/probe.h \
    agent/member/reclaim.c \
    agent/member/reclaim.h \
    agent/member/replica.c \
    agent/member/replica.h \
    agent/member/replica_order.c \
    agent/member/replica_order.h \
    agent/member/replica_ports.c \
    agent/member/replica_ports.h \
    agent/member/replica_private.h \
    agent/member/replica_task.c \
    agent/member/replicas.c \
    agent/member/replicas.h \
    agent/member/shared_dir.c \
    agent/member/shared_dir.h \
    agent/member/store_server.c \
    agent/member/store_server.h \
    agent/member/tail.c \
    agent/member/tail.h \
    agent/workers/binding.c \
    agent/workers/binding.h \
    agent/workers/event.c \
    agent/workers/event.h \
    agent/workers/exec_worker.c \
    agent/workers/exec_worker.h \
    agent/workers/process_tree.c \
    agent/workers/process_tree.h \
    agent/workers/worker_error.c \
    agent/workers/worker_error.h \
    agent/workers/worker_signals.c \
    agent/workers/worker_start.c \
    agent/workers/worker_worlds.c \
    agent/workers/workers.c \
    agent/workers/workers.h \
    agent/workers/workers_internal.h
AGENT_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS) $(LIBUV_CFLAGS) $(SODIUM_CFLAGS) $(HWLOC_CFLAGS) \
    -DLIBDIR='"$(libdir)"' -DPKGLIBEXECDIR='"$(pkglibexecdir)"' \
    -DPKGDATADIR='"$(pkgdatadir)"'
agent_libelasticagent_la_CPPFLAGS = $(AGENT_CPPFLAGS)
agent_libelasticagent_la_CFLAGS = $(AM_CFLAGS) $(PROGRAM_CFLAGS)
agent_libelasticagent_la_LIBADD = common/libelasticcommon.la common/libelasticcheckpoints.la $(HWLOC_LIBS) $(CURL_LIBS)

bin_PROGRAMS += agent/elasticrun
agent_elasticrun_SOURCES = agent/main.c
agent_elasticrun_CPPFLAGS = $(AGENT_CPPFLAGS)
agent_elasticrun_CFLAGS = $(AM_CFLAGS) $(PROGRAM_CFLAGS)
agent_elasticrun_LDFLAGS = $(PROGRAM_LDFLAGS)
agent_elasticrun_LDADD = agent/libelasticagent.la

EXTRA_DIST += \
    agent/README.md \
    agent/member/README.md \
    agent/workers/README.md
