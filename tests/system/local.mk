# SPDX-License-Identifier: GPL-2.0-or-later
#
# tests/system/: bats on the testbed, run by scripts/check: EXTRA_DIST += tests/system/x.bats
EXTRA_DIST += \
    tests/system/arithmetic.bats \
    tests/system/arithmetic.py \
    tests/system/browser.py \
    tests/system/bad_input.bats \
    tests/system/cloud.bats \
    tests/system/dask.bats \
    tests/system/dask_program.py \
    tests/system/di_client.py \
    tests/system/di_names.py \
    tests/system/di_program.py \
    tests/system/digits.bats \
    tests/system/doctor.bats \
    tests/system/early.py \
    tests/system/early_start.bats \
    tests/system/cloud.bash \
    tests/system/elastic.bash \
    tests/system/endings.bats \
    tests/system/environments.bats \
    tests/system/exporter.bats \
    tests/system/fault_table.bats \
    tests/system/faults.bash \
    tests/system/faults.bats \
    tests/system/faults/catalogue.py \
    tests/system/faults/job.py \
    tests/system/faults/run.py \
    tests/system/faults/table.py \
    tests/system/faults/table.txt \
    tests/system/faults/training.py \
    tests/system/fit.bash \
    tests/system/fit_example.bats \
    tests/system/fit_faults.bats \
    tests/system/fit_http.bats \
    tests/system/fit_kills.bats \
    tests/system/fit_multi.bats \
    tests/system/fit.bats \
    tests/system/fit_replace.bats \
    tests/system/fit_roles.bash \
    tests/system/fit_roles.bats \
    tests/system/fit_s3.bats \
    tests/system/fit_world.bats \
    tests/system/flush.bats \
    tests/system/gpus.bats \
    tests/system/helpers.bash \
    tests/system/hook.bash \
    tests/system/hooks.bats \
    tests/system/hosts.bats \
    tests/system/hosts.py \
    tests/system/json_value.py \
    tests/system/level0.bats \
    tests/system/live.bats \
    tests/system/live_faults.bats \
    tests/system/live_c.bats \
    tests/system/live.py \
    tests/system/live_faults.py \
    tests/system/main_path.bats \
    tests/system/metrics.bats \
    tests/system/metadata.py \
    tests/system/mixed.bats \
    tests/system/mpi.bats \
    tests/system/mpi/collectives.c \
    tests/system/mpi/collectives.py \
    tests/system/mpi/names.c \
    tests/system/package.bats \
    tests/system/radosgw \
    tests/system/s3.bash \
    tests/system/s3.bats \
    tests/system/s3_object.py \
    tests/system/s3_proxy.py \
    tests/system/terminal.py \
    tests/system/states.bats \
    tests/system/pmix_publish.bats \
    tests/system/pmix_faults.bats \
    tests/system/pmix_tools.bats \
    tests/system/controller.bats \
    tests/system/phases.bats \
    tests/system/pmix_allocate.bats \
    tests/system/pmix_events.bats \
    tests/system/pmix_library.bats \
    tests/system/pmix_requests.bats \
    tests/system/pools.bats \
    tests/system/qos.bats \
    tests/system/queue.bats \
    tests/system/reclaim.bats \
    tests/system/restarts.bats \
    tests/system/takeover.bash \
    tests/system/takeover.bats \
    tests/system/takeover_nodes.bats \
    tests/system/slow.bash \
    tests/system/soak.py \
    tests/system/time_limits.bats \
    tests/system/snapshots.c \
    tests/system/snapshots.py \
    tests/system/slow_rank.py \
    tests/system/steps.py \
    tests/system/epilog.bats \
    tests/system/selastic.bats \
    tests/system/serve.bash \
    tests/system/serve.bats \
    tests/system/serve_load.bats \
    tests/system/serve_storm.bats \
    tests/system/storm.py \
    tests/system/lora_server.py \
    tests/system/serve_demand.bats \
    tests/system/serve_handover.bats \
    tests/system/serve_http.bats \
    tests/system/serve_handover_faults.bats \
    tests/system/openai_client.cjs \
    tests/system/openai_fits.cjs \
    tests/system/rl.bats \
    tests/system/roles.bats \
    tests/system/roles.bash \
    tests/system/roles_faults.bats \
    tests/system/roles_gpus.bats \
    tests/system/roles_di.bats \
    tests/system/roles_grow.bats \
    tests/system/roles_sbatch.bats \
    tests/system/roles_http.bats \
    tests/system/roles_reports.bats \
    tests/system/roles_users.bats \
    tests/system/roles_world.bats \
    tests/system/router.bats \
    tests/system/router_greedy.py \
    tests/system/router_replica.py \
    tests/system/rpc.bats \
    tests/system/select.bash \
    tests/system/select.bats \
    tests/system/select_changes.bats \
    tests/system/shield.bats \
    tests/system/signals.bats \
    tests/system/replica.py \
    tests/system/reporter.py \
    tests/system/fit_program.py \
    tests/system/light.py \
    tests/system/fit_role.py \
    tests/system/fit_stop.c \
    tests/system/serve_program.py \
    tests/system/signals.py \
    tests/system/slurm_client.bats \
    tests/system/spank.bats \
    tests/system/state.bats \
    tests/system/store.bats \
    tests/system/stragglers.bats \
    tests/system/store.py \
    tests/system/stranger.py \
    tests/system/submit.bats \
    tests/system/testbed.bats \
    tests/system/topology.bats \
    tests/system/wake.bats

check_PROGRAMS += tests/system/become
tests_system_become_SOURCES = tests/system/become.c
tests_system_become_LDADD =

check_PROGRAMS += tests/system/fake_leader
tests_system_fake_leader_SOURCES = tests/system/fake_leader.c
tests_system_fake_leader_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS) $(LIBUV_CFLAGS)
tests_system_fake_leader_LDADD = $(COMMON_LIBS) $(LIBUV_LIBS) $(JSONC_LIBS)

# Programs of another release: the same objects, but for the one that says which release it is.
OTHER_RELEASE_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
check_PROGRAMS += tests/system/other/elasticrun
tests_system_other_elasticrun_SOURCES = tests/system/other_release.c
tests_system_other_elasticrun_CPPFLAGS = $(OTHER_RELEASE_CPPFLAGS)
tests_system_other_elasticrun_LDADD = $(agent_elasticrun_OBJECTS) $(agent_elasticrun_LDADD)
check_PROGRAMS += tests/system/other/elasticrun-pmix
tests_system_other_elasticrun_pmix_SOURCES = tests/system/other_release.c
tests_system_other_elasticrun_pmix_CPPFLAGS = $(OTHER_RELEASE_CPPFLAGS)
tests_system_other_elasticrun_pmix_LINK = $(pmix_elasticrun_pmix_LINK)
tests_system_other_elasticrun_pmix_LDADD = \
    $(pmix_elasticrun_pmix_OBJECTS) $(pmix_elasticrun_pmix_LDADD)
check_PROGRAMS += tests/system/other/selastic
tests_system_other_selastic_SOURCES = tests/system/other_release.c
tests_system_other_selastic_CPPFLAGS = $(OTHER_RELEASE_CPPFLAGS)
tests_system_other_selastic_LDADD = $(cmd_selastic_OBJECTS) $(cmd_selastic_LDADD)

check_PROGRAMS += tests/system/forge
tests_system_forge_SOURCES = tests/system/forge.c
tests_system_forge_LDADD = $(SLURM_LIBS)

check_PROGRAMS += tests/system/router
tests_system_router_SOURCES = tests/system/router.c
tests_system_router_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_system_router_LDADD = $(CORE_LIBS)

check_PROGRAMS += tests/system/placement_model
tests_system_placement_model_SOURCES = tests/system/placement_model.c
tests_system_placement_model_LDADD = $(CORE_LIBS)

# Compiled by the tests themselves.
EXTRA_DIST += \
    tests/system/pmix/asker.c \
    tests/system/pmix/checkpointer.c \
    tests/system/pmix/library.c \
    tests/system/pmix/library.py \
    tests/system/pmix/notes.h \
    tests/system/pmix/peers.c \
    tests/system/pmix/program.h \
    tests/system/pmix/resizer.c \
    tests/system/pmix/words.h

check_PROGRAMS += tests/system/slurm_client_probe
tests_system_slurm_client_probe_SOURCES = tests/system/slurm_client_probe.c
tests_system_slurm_client_probe_LDADD = $(COMMON_LIBS)

check_PROGRAMS += tests/system/pmix_publish
tests_system_pmix_publish_SOURCES = tests/system/pmix/publish.c
tests_system_pmix_publish_CPPFLAGS = $(AM_CPPFLAGS) $(PMIX_CFLAGS)
tests_system_pmix_publish_LDADD = $(PMIX_LIBS)

check_PROGRAMS += tests/system/pmix/probe
tests_system_pmix_probe_SOURCES = tests/system/pmix/probe.c
tests_system_pmix_probe_CPPFLAGS = $(AM_CPPFLAGS) $(PMIX_CFLAGS)
tests_system_pmix_probe_LDADD = $(PMIX_LIBS)

check_PROGRAMS += tests/system/s3_session
tests_system_s3_session_SOURCES = tests/system/s3_session.c
tests_system_s3_session_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS) $(SODIUM_CFLAGS)
tests_system_s3_session_LDADD = $(S3_CLIENT_LIBS) $(SODIUM_LIBS)
