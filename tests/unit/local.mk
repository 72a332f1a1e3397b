# SPDX-License-Identifier: GPL-2.0-or-later
#
# tests/unit/: cmocka programs, run by `make check`. A test of lib/ is one name in UNIT_TESTS and two lines:
#
#   tests_unit_test_sizes_SOURCES = tests/unit/test_sizes.c
#   tests_unit_test_sizes_LDADD = $(UNIT_LIBS)
UNIT_LIBS = $(CORE_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS =
noinst_HEADERS += tests/unit/fuse.h tests/unit/support.h tests/unit/test_dir.h tests/unit/test_root.h

# What several tests need. They stand first in LDADD.
tests_unit_libfixtures_a_SOURCES = \
    tests/unit/change_fixture.c \
    tests/unit/change_fixture.h \
    tests/unit/cloud.c \
    tests/unit/cloud.h \
    tests/unit/event_fixture.c \
    tests/unit/event_fixture.h \
    tests/unit/link_fixture.c \
    tests/unit/link_fixture.h \
    tests/unit/own_network.h \
    tests/unit/plan_fixture.c \
    tests/unit/plan_fixture.h \
    tests/unit/selastic_fixture.c \
    tests/unit/selastic_fixture.h \
    tests/unit/workers_fixture.c \
    tests/unit/workers_fixture.h
tests_unit_libfixtures_a_CPPFLAGS = $(AGENT_CPPFLAGS) $(MUNGE_CFLAGS)
# Libelastic, with what it does not export.
tests_unit_libclient_a_SOURCES = \
    client/elastic.c \
    client/event.c \
    client/nodes.c \
    client/snapshot.c \
    client/sockets.c \
    client/store.c \
    client/term_guard.c \
    client/term_signal.c
tests_unit_libclient_a_CPPFLAGS = $(AGENT_CPPFLAGS) $(PMIX_CFLAGS)

UNIT_TESTS += tests/unit/test_text
tests_unit_test_text_SOURCES = tests/unit/test_text.c
tests_unit_test_text_LDADD = $(UNIT_LIBS)

UNIT_TESTS += \
    tests/unit/test_conf \
    tests/unit/test_error \
    tests/unit/test_files \
    tests/unit/test_frame \
    tests/unit/test_manuals \
    tests/unit/test_policy \
    tests/unit/test_sizes
tests_unit_test_conf_SOURCES = tests/unit/test_conf.c
tests_unit_test_conf_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_conf_LDADD = $(UNIT_LIBS)
tests_unit_test_error_SOURCES = tests/unit/test_error.c
tests_unit_test_error_LDADD = $(UNIT_LIBS)
tests_unit_test_files_SOURCES = tests/unit/test_files.c
tests_unit_test_files_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_files_LINK = $(LINK) -Wl,--wrap=unlinkat
tests_unit_test_files_LDADD = $(COMMON_LIBS) $(UNIT_LIBS)
tests_unit_test_frame_SOURCES = tests/unit/test_frame.c
tests_unit_test_frame_CPPFLAGS = $(AM_CPPFLAGS) $(SODIUM_CFLAGS)
tests_unit_test_frame_LDADD = $(UNIT_LIBS) $(SODIUM_LIBS)
tests_unit_test_manuals_SOURCES = tests/unit/test_manuals.c
tests_unit_test_manuals_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_manuals_LDADD = $(UNIT_LIBS)
tests_unit_test_policy_SOURCES = tests/unit/test_policy.c
tests_unit_test_policy_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_policy_LDADD = $(UNIT_LIBS) $(JSONC_LIBS)
tests_unit_test_sizes_SOURCES = tests/unit/test_sizes.c
tests_unit_test_sizes_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_admission tests/unit/test_admission_roles
tests_unit_test_admission_roles_SOURCES = tests/unit/test_admission_roles.c
tests_unit_test_admission_roles_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_admission_roles_LDADD = $(UNIT_LIBS)
tests_unit_test_admission_SOURCES = tests/unit/test_admission.c
tests_unit_test_admission_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_admission_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_model_load
tests_unit_test_model_load_SOURCES = tests/unit/test_model_load.c
tests_unit_test_model_load_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_model_load_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_admitted
tests_unit_test_admitted_SOURCES = tests/unit/test_admitted.c
tests_unit_test_admitted_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_change tests/unit/test_change_roles tests/unit/test_change_table
tests_unit_test_change_SOURCES = tests/unit/test_change.c
tests_unit_test_change_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_change_LDADD = tests/unit/libfixtures.a $(UNIT_LIBS) $(JSONC_LIBS)

tests_unit_test_change_roles_SOURCES = tests/unit/test_change_roles.c
tests_unit_test_change_roles_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_change_roles_LDADD = tests/unit/libfixtures.a $(UNIT_LIBS) $(JSONC_LIBS)

tests_unit_test_change_table_SOURCES = tests/unit/test_change_table.c
tests_unit_test_change_table_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_change_table_LDADD = $(UNIT_LIBS) $(JSONC_LIBS)

UNIT_TESTS += tests/unit/test_names
tests_unit_test_names_SOURCES = tests/unit/test_names.c
tests_unit_test_names_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_wake
tests_unit_test_wake_SOURCES = tests/unit/test_wake.c
tests_unit_test_wake_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_roles tests/unit/test_roles_base tests/unit/test_roles_keys \
    tests/unit/test_job_plan tests/unit/test_yaml_file
ROLES_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
ROLES_LIBS = $(COMMON_LIBS) $(UNIT_LIBS) $(JSONC_LIBS)
tests_unit_test_roles_SOURCES = tests/unit/test_roles.c
tests_unit_test_roles_CPPFLAGS = $(ROLES_CPPFLAGS)
tests_unit_test_roles_LDADD = $(ROLES_LIBS)
tests_unit_test_roles_base_SOURCES = tests/unit/test_roles_base.c
tests_unit_test_roles_base_CPPFLAGS = $(ROLES_CPPFLAGS)
tests_unit_test_roles_base_LDADD = $(ROLES_LIBS)
tests_unit_test_job_plan_SOURCES = tests/unit/test_job_plan.c
tests_unit_test_job_plan_CPPFLAGS = $(ROLES_CPPFLAGS)
tests_unit_test_job_plan_LDADD = $(CMD_LIBS) $(ROLES_LIBS)
tests_unit_test_roles_keys_SOURCES = tests/unit/test_roles_keys.c
tests_unit_test_roles_keys_CPPFLAGS = $(ROLES_CPPFLAGS)
tests_unit_test_roles_keys_LDADD = $(ROLES_LIBS)
tests_unit_test_yaml_file_SOURCES = tests/unit/test_yaml_file.c
tests_unit_test_yaml_file_CPPFLAGS = $(ROLES_CPPFLAGS)
tests_unit_test_yaml_file_LDADD = $(ROLES_LIBS)

UNIT_TESTS += tests/unit/test_goodput tests/unit/test_metrics
EXTRA_DIST += tests/unit/metrics/job.json
tests_unit_test_goodput_SOURCES = tests/unit/test_goodput.c
tests_unit_test_goodput_LDADD = $(UNIT_LIBS)
tests_unit_test_metrics_SOURCES = tests/unit/test_metrics.c
tests_unit_test_metrics_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_metrics_LDADD = $(UNIT_LIBS) $(JSONC_LIBS)

UNIT_TESTS += tests/unit/test_mlflow
tests_unit_test_mlflow_SOURCES = tests/unit/test_mlflow.c
tests_unit_test_mlflow_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_mlflow_LDADD = $(UNIT_LIBS) $(JSONC_LIBS)

UNIT_TESTS += tests/unit/test_straggler
tests_unit_test_straggler_SOURCES = tests/unit/test_straggler.c
tests_unit_test_straggler_LDADD = $(UNIT_LIBS) -lm

UNIT_TESTS += tests/unit/test_words
tests_unit_test_words_SOURCES = tests/unit/test_words.c
tests_unit_test_words_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_look
tests_unit_test_look_SOURCES = tests/unit/test_look.c
tests_unit_test_look_LDADD = $(UNIT_LIBS)

# Of base_job.c only what the test calls is linked: the rest needs slurmctld.
EXTRA_DIST += tests/unit/test_base_job.c
if HAVE_SLURM_SOURCE
UNIT_TESTS += tests/unit/test_base_job
tests_unit_test_base_job_SOURCES = tests/unit/test_base_job.c plugins/job_submit/base_job.c
tests_unit_test_base_job_CPPFLAGS = $(SLURM_PLUGIN_CPPFLAGS) -I$(top_srcdir) $(JSONC_CFLAGS)
tests_unit_test_base_job_CFLAGS = $(AM_CFLAGS) -ffunction-sections -Wno-shadow
tests_unit_test_base_job_LINK = $(LINK) -Wl,--gc-sections
tests_unit_test_base_job_LDADD = $(UNIT_LIBS)
endif

EXTRA_DIST += tests/unit/test_job_submit.c
if HAVE_SLURM_SOURCE
UNIT_TESTS += tests/unit/test_job_submit
tests_unit_test_job_submit_SOURCES = tests/unit/test_job_submit.c plugins/job_submit/plugin.c
tests_unit_test_job_submit_CPPFLAGS = $(SLURM_PLUGIN_CPPFLAGS) -I$(top_srcdir) $(JSONC_CFLAGS)
tests_unit_test_job_submit_CFLAGS = $(AM_CFLAGS) -ffunction-sections -Wno-shadow
tests_unit_test_job_submit_LINK = $(LINK) -Wl,--gc-sections
tests_unit_test_job_submit_LDADD = $(UNIT_LIBS) $(SLURM_LIBS) -lpthread
endif

EXTRA_DIST += tests/unit/test_siblings.c
if HAVE_SLURM_SOURCE
UNIT_TESTS += tests/unit/test_siblings
tests_unit_test_siblings_SOURCES = tests/unit/test_siblings.c plugins/job_submit/base_job.c
tests_unit_test_siblings_CPPFLAGS = $(SLURM_PLUGIN_CPPFLAGS) -I$(top_srcdir) $(JSONC_CFLAGS)
tests_unit_test_siblings_CFLAGS = $(AM_CFLAGS) -ffunction-sections -Wno-shadow
tests_unit_test_siblings_LINK = $(LINK) -Wl,--gc-sections
tests_unit_test_siblings_LDADD = $(UNIT_LIBS) $(SLURM_LIBS)
endif

EXTRA_DIST += tests/unit/test_drains.c tests/unit/test_watch.c
if HAVE_SLURM_SOURCE
UNIT_TESTS += tests/unit/test_drains tests/unit/test_watch
tests_unit_test_drains_SOURCES = tests/unit/test_drains.c plugins/job_submit/drains.c
tests_unit_test_drains_CPPFLAGS = $(SLURM_PLUGIN_CPPFLAGS) -I$(top_srcdir) $(JSONC_CFLAGS)
tests_unit_test_drains_CFLAGS = $(AM_CFLAGS) -Wno-shadow
tests_unit_test_drains_LINK = $(LINK)
tests_unit_test_drains_LDADD = $(UNIT_LIBS) $(SLURM_LIBS)
tests_unit_test_watch_SOURCES = tests/unit/test_watch.c plugins/job_submit/watch.c
tests_unit_test_watch_CPPFLAGS = $(SLURM_PLUGIN_CPPFLAGS) -I$(top_srcdir) $(JSONC_CFLAGS)
tests_unit_test_watch_CFLAGS = $(AM_CFLAGS) -Wno-shadow
tests_unit_test_watch_LINK = $(LINK)
tests_unit_test_watch_LDADD = $(UNIT_LIBS) $(SLURM_LIBS) -lpthread
endif

EXTRA_DIST += tests/unit/test_select_jobs.c
if HAVE_SLURM_SOURCE
UNIT_TESTS += tests/unit/test_select_jobs
tests_unit_test_select_jobs_SOURCES = \
    tests/unit/test_select_jobs.c \
    plugins/select/jobs.c \
    plugins/select/resources.c
tests_unit_test_select_jobs_CPPFLAGS = $(SLURM_PLUGIN_CPPFLAGS) -I$(top_srcdir) $(JSONC_CFLAGS)
tests_unit_test_select_jobs_CFLAGS = $(AM_CFLAGS) -Wno-shadow
tests_unit_test_select_jobs_LINK = $(LINK) -Wl,--wrap=slurm_bit_or
tests_unit_test_select_jobs_LDADD = $(UNIT_LIBS) $(SLURM_LIBS)
endif

EXTRA_DIST += tests/unit/test_waiting.c
if HAVE_SLURM_SOURCE
UNIT_TESTS += tests/unit/test_waiting
tests_unit_test_waiting_SOURCES = tests/unit/test_waiting.c plugins/select/waiting.c
tests_unit_test_waiting_CPPFLAGS = $(SLURM_PLUGIN_CPPFLAGS) -I$(top_srcdir) $(JSONC_CFLAGS)
tests_unit_test_waiting_CFLAGS = $(AM_CFLAGS) -Wno-shadow
tests_unit_test_waiting_LINK = $(LINK)
tests_unit_test_waiting_LDADD = $(UNIT_LIBS) $(SLURM_LIBS)
endif

UNIT_TESTS += tests/unit/test_cover
tests_unit_test_cover_SOURCES = tests/unit/test_cover.c
tests_unit_test_cover_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_pools
tests_unit_test_pools_SOURCES = tests/unit/test_pools.c
tests_unit_test_pools_LDADD = tests/unit/libfixtures.a $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_ledger tests/unit/test_speed tests/unit/test_spending
tests_unit_test_ledger_SOURCES = tests/unit/test_ledger.c
tests_unit_test_ledger_LDADD = $(UNIT_LIBS)
tests_unit_test_speed_SOURCES = tests/unit/test_speed.c
tests_unit_test_speed_LDADD = $(UNIT_LIBS)
tests_unit_test_spending_SOURCES = tests/unit/test_spending.c
tests_unit_test_spending_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_amount tests/unit/test_prices tests/unit/test_when \
    tests/unit/test_usage
tests_unit_test_amount_SOURCES = tests/unit/test_amount.c
tests_unit_test_amount_LDADD = $(UNIT_LIBS)
tests_unit_test_prices_SOURCES = tests/unit/test_prices.c
tests_unit_test_prices_LDADD = $(UNIT_LIBS)
tests_unit_test_usage_SOURCES = tests/unit/test_usage.c
tests_unit_test_usage_LDADD = $(UNIT_LIBS)
tests_unit_test_when_SOURCES = tests/unit/test_when.c
tests_unit_test_when_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_tasks
tests_unit_test_tasks_SOURCES = tests/unit/test_tasks.c
tests_unit_test_tasks_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_slurm_words
tests_unit_test_slurm_words_SOURCES = tests/unit/test_slurm_words.c
tests_unit_test_slurm_words_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_switch_tree
tests_unit_test_switch_tree_SOURCES = tests/unit/test_switch_tree.c
tests_unit_test_switch_tree_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_tree_order
tests_unit_test_tree_order_SOURCES = tests/unit/test_tree_order.c
tests_unit_test_tree_order_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_hang
tests_unit_test_hang_SOURCES = tests/unit/test_hang.c
tests_unit_test_hang_LDADD = $(UNIT_LIBS) -lm

UNIT_TESTS += tests/unit/test_notice
tests_unit_test_notice_SOURCES = tests/unit/test_notice.c
tests_unit_test_notice_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_gather
tests_unit_test_gather_SOURCES = tests/unit/test_gather.c
tests_unit_test_gather_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_pieces
tests_unit_test_pieces_SOURCES = tests/unit/test_pieces.c
tests_unit_test_pieces_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_pieces_LDADD = $(UNIT_LIBS) $(JSONC_LIBS)

UNIT_TESTS += \
    tests/unit/test_nearest \
    tests/unit/test_placement \
    tests/unit/test_shapes
tests_unit_test_nearest_SOURCES = tests/unit/test_nearest.c
tests_unit_test_nearest_LDADD = $(UNIT_LIBS)
tests_unit_test_placement_SOURCES = tests/unit/test_placement.c
tests_unit_test_placement_LDADD = $(UNIT_LIBS)
tests_unit_test_shapes_SOURCES = tests/unit/test_shapes.c
tests_unit_test_shapes_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_container
tests_unit_test_container_SOURCES = tests/unit/test_container.c
tests_unit_test_container_LDADD = $(AGENT_LIBS) $(UNIT_LIBS) $(LIBUV_LIBS)

UNIT_TESTS += tests/unit/test_pattern
tests_unit_test_pattern_SOURCES = tests/unit/test_pattern.c
tests_unit_test_pattern_LDADD = $(AGENT_LIBS) $(UNIT_LIBS) $(LIBUV_LIBS)

UNIT_TESTS += tests/unit/test_tail
tests_unit_test_tail_SOURCES = tests/unit/test_tail.c
tests_unit_test_tail_LDADD = $(AGENT_LIBS) $(UNIT_LIBS) $(LIBUV_LIBS)

UNIT_TESTS += tests/unit/test_reclaim
tests_unit_test_reclaim_SOURCES = tests/unit/test_reclaim.c
tests_unit_test_reclaim_LDADD = $(AGENT_LIBS) $(UNIT_LIBS) $(LIBUV_LIBS)

UNIT_TESTS += tests/unit/test_succession
tests_unit_test_succession_SOURCES = tests/unit/test_succession.c
tests_unit_test_succession_LDADD = $(UNIT_LIBS) -lm

UNIT_TESTS += tests/unit/test_recovery
tests_unit_test_recovery_SOURCES = tests/unit/test_recovery.c
tests_unit_test_recovery_LDADD = $(UNIT_LIBS) -lm

UNIT_TESTS += tests/unit/test_leftover
tests_unit_test_leftover_SOURCES = tests/unit/test_leftover.c
tests_unit_test_leftover_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_callers
tests_unit_test_callers_SOURCES = tests/unit/test_callers.c
tests_unit_test_callers_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_guest_pace
tests_unit_test_guest_pace_SOURCES = tests/unit/test_guest_pace.c
tests_unit_test_guest_pace_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_strangers
tests_unit_test_strangers_SOURCES = tests/unit/test_strangers.c
tests_unit_test_strangers_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_job_record
tests_unit_test_job_record_SOURCES = tests/unit/test_job_record.c
tests_unit_test_job_record_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_state_dir
tests_unit_test_state_dir_SOURCES = tests/unit/test_state_dir.c
tests_unit_test_state_dir_CPPFLAGS = $(AGENT_CPPFLAGS)
tests_unit_test_state_dir_LDADD = $(AGENT_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += tests/unit/test_release
tests_unit_test_release_SOURCES = tests/unit/test_release.c
tests_unit_test_release_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_release_LDADD = $(UNIT_LIBS) $(JSONC_LIBS)

UNIT_TESTS += tests/unit/test_retry
tests_unit_test_retry_SOURCES = tests/unit/test_retry.c
tests_unit_test_retry_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_requests
tests_unit_test_requests_SOURCES = tests/unit/test_requests.c
tests_unit_test_requests_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_pmix_accept
tests_unit_test_pmix_accept_SOURCES = \
    tests/unit/test_pmix_accept.c \
    pmix/accept.c
tests_unit_test_pmix_accept_LDADD = $(COMMON_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += tests/unit/test_pmix_environment
tests_unit_test_pmix_environment_SOURCES = \
    tests/unit/test_pmix_environment.c \
    pmix/environment.c
tests_unit_test_pmix_environment_LDADD = $(CMOCKA_LIBS)

UNIT_TESTS += tests/unit/test_slurm_queue
tests_unit_test_slurm_queue_SOURCES = tests/unit/test_slurm_queue.c tests/unit/support.h
tests_unit_test_slurm_queue_CPPFLAGS = $(AGENT_CPPFLAGS)
tests_unit_test_slurm_queue_LDADD = $(COMMON_LIBS) $(LIBUV_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += tests/unit/test_srun_port
tests_unit_test_srun_port_SOURCES = tests/unit/test_srun_port.c agent/srun_port.c
tests_unit_test_srun_port_LDADD = $(CMOCKA_LIBS)

UNIT_TESTS += tests/unit/test_tcp_sockets
tests_unit_test_tcp_sockets_SOURCES = tests/unit/test_tcp_sockets.c
tests_unit_test_tcp_sockets_LDADD = $(CMOCKA_LIBS)

UNIT_TESTS += tests/unit/test_plan tests/unit/test_plan_drop tests/unit/test_plan_units
UNIT_TESTS += tests/unit/test_setbacks
tests_unit_test_plan_SOURCES = tests/unit/test_plan.c
tests_unit_test_plan_LDADD = tests/unit/libfixtures.a $(UNIT_LIBS)
tests_unit_test_plan_drop_SOURCES = tests/unit/test_plan_drop.c
tests_unit_test_plan_drop_LDADD = tests/unit/libfixtures.a $(UNIT_LIBS)
tests_unit_test_plan_units_SOURCES = tests/unit/test_plan_units.c
tests_unit_test_plan_units_LDADD = tests/unit/libfixtures.a $(UNIT_LIBS)
tests_unit_test_setbacks_SOURCES = tests/unit/test_setbacks.c
tests_unit_test_setbacks_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_drain_notices
tests_unit_test_drain_notices_SOURCES = tests/unit/test_drain_notices.c
tests_unit_test_drain_notices_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_publish
tests_unit_test_publish_SOURCES = tests/unit/test_publish.c
tests_unit_test_publish_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_promotion
tests_unit_test_promotion_SOURCES = tests/unit/test_promotion.c
tests_unit_test_promotion_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_promotion_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_fit
tests_unit_test_fit_SOURCES = tests/unit/test_fit.c
tests_unit_test_fit_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_fit_LDADD = $(UNIT_LIBS)

# At each write of a record the process ends, before it and after it.
UNIT_TESTS += tests/unit/test_fit_files tests/unit/test_fit_crash tests/unit/test_fit_grant \
    tests/unit/test_fit_guests tests/unit/test_fit_s3
FIT_TEST_CPPFLAGS = $(AM_CPPFLAGS) $(ACL_CFLAGS) $(JSONC_CFLAGS) $(SODIUM_CFLAGS)
tests_unit_test_fit_files_SOURCES = tests/unit/test_fit_files.c
tests_unit_test_fit_files_CPPFLAGS = $(FIT_TEST_CPPFLAGS)
tests_unit_test_fit_files_LINK = $(LINK) -Wl,--wrap=kill
tests_unit_test_fit_files_LDADD = $(FIT_LIBS) $(UNIT_LIBS)
tests_unit_test_fit_grant_SOURCES = tests/unit/test_fit_grant.c
tests_unit_test_fit_grant_CPPFLAGS = $(FIT_TEST_CPPFLAGS)
tests_unit_test_fit_grant_LINK = $(LINK) -Wl,--wrap=fstatat -Wl,--wrap=acl_set_fd -Wl,--wrap=entry_next
tests_unit_test_fit_grant_LDADD = $(FIT_LIBS) $(ACL_LIBS) $(UNIT_LIBS)
tests_unit_test_fit_guests_SOURCES = tests/unit/test_fit_guests.c
tests_unit_test_fit_guests_CPPFLAGS = $(FIT_TEST_CPPFLAGS)
tests_unit_test_fit_guests_LDADD = $(FIT_LIBS) $(UNIT_LIBS)
tests_unit_test_fit_s3_SOURCES = tests/unit/test_fit_s3.c
tests_unit_test_fit_s3_CPPFLAGS = $(FIT_TEST_CPPFLAGS)
tests_unit_test_fit_s3_LINK = $(LINK) -Wl,--wrap=s3_open -Wl,--wrap=s3_close -Wl,--wrap=s3_put_file \
    -Wl,--wrap=s3_put_text -Wl,--wrap=s3_get_text -Wl,--wrap=s3_get -Wl,--wrap=s3_list \
    -Wl,--wrap=s3_list_all -Wl,--wrap=s3_delete -Wl,--wrap=s3_give_up_below -Wl,--wrap=s3_lane \
    -Wl,--wrap=s3_session_begin -Wl,--wrap=s3_bucket_give -Wl,--wrap=states_weigh
tests_unit_test_fit_s3_LDADD = $(FIT_LIBS) $(SODIUM_LIBS) $(UNIT_LIBS)
tests_unit_test_fit_crash_SOURCES = tests/unit/test_fit_crash.c
tests_unit_test_fit_crash_CPPFLAGS = $(FIT_TEST_CPPFLAGS)
tests_unit_test_fit_crash_LINK = $(LINK) -Wl,--wrap=home_record_write -Wl,--wrap=foreign_take \
    -Wl,--wrap=dir_remove_so -Wl,--wrap=clock_gettime
tests_unit_test_fit_crash_LDADD = $(FIT_LIBS) $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_server_call
tests_unit_test_server_call_SOURCES = tests/unit/test_server_call.c
tests_unit_test_server_call_CPPFLAGS = $(FIT_TEST_CPPFLAGS)
tests_unit_test_server_call_LINK = $(LINK) -Wl,--wrap=tcp_listener_at -Wl,--wrap=getuid
tests_unit_test_server_call_LDADD = $(FIT_LIBS) $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_checkpoints
tests_unit_test_checkpoints_SOURCES = tests/unit/test_checkpoints.c
tests_unit_test_checkpoints_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_checkpoints_LDADD = common/libelasticcheckpoints.a $(COMMON_LIBS) $(UNIT_LIBS) $(JSONC_LIBS)

UNIT_TESTS += tests/unit/test_state_place
tests_unit_test_state_place_SOURCES = tests/unit/test_state_place.c
tests_unit_test_state_place_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_state_place_LDADD = $(STATE_LIBS) $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_stop
tests_unit_test_stop_SOURCES = tests/unit/test_stop.c
tests_unit_test_stop_LDADD = common/libelasticcheckpoints.a $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_s3_remove
tests_unit_test_s3_remove_SOURCES = tests/unit/test_s3_remove.c
tests_unit_test_s3_remove_CPPFLAGS = $(AM_CPPFLAGS) $(CURL_CFLAGS)
tests_unit_test_s3_remove_LINK = $(LINK) -Wl,--wrap=s3_ask -Wl,--wrap=curl_easy_setopt
tests_unit_test_s3_remove_LDADD = $(S3_CLIENT_LIBS) $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_crew
tests_unit_test_crew_SOURCES = tests/unit/test_crew.c
tests_unit_test_crew_LDADD = $(S3_CLIENT_LIBS) $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_s3_text tests/unit/test_states
tests_unit_test_s3_text_SOURCES = tests/unit/test_s3_text.c
tests_unit_test_s3_text_LDADD = $(S3_ANSWER_LIBS) $(UNIT_LIBS)
tests_unit_test_states_SOURCES = tests/unit/test_states.c
tests_unit_test_states_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_states_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_snapshot
tests_unit_test_snapshot_SOURCES = tests/unit/test_snapshot.c
tests_unit_test_snapshot_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_snapshot_LDADD = $(UNIT_LIBS) $(JSONC_LIBS)

UNIT_TESTS += tests/unit/test_store
tests_unit_test_store_SOURCES = tests/unit/test_store.c
tests_unit_test_store_LDADD = $(UNIT_LIBS)

UNIT_TESTS += \
    tests/unit/test_selastic_arguments \
    tests/unit/test_selastic_ask \
    tests/unit/test_selastic_deadline \
    tests/unit/test_selastic_history \
    tests/unit/test_selastic_jobs \
    tests/unit/test_selastic_render \
    tests/unit/test_selastic_roles \
    tests/unit/test_selastic_samples \
    tests/unit/test_selastic_top \
    tests/unit/test_selastic_usage \
    tests/unit/test_selastic_wait
SELASTIC_LIBS = $(CMD_LIBS) $(UNIT_LIBS)
tests_unit_test_selastic_arguments_SOURCES = tests/unit/test_selastic_arguments.c
tests_unit_test_selastic_arguments_LDADD = $(SELASTIC_LIBS)
tests_unit_test_selastic_ask_SOURCES = tests/unit/test_selastic_ask.c cmd/ask.c
tests_unit_test_selastic_ask_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS) $(LIBUV_CFLAGS)
tests_unit_test_selastic_ask_LDADD = $(SELASTIC_LIBS) $(LIBUV_LIBS)
tests_unit_test_selastic_deadline_SOURCES = tests/unit/test_selastic_deadline.c
tests_unit_test_selastic_deadline_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_selastic_deadline_LDADD = $(SELASTIC_LIBS)
tests_unit_test_selastic_history_SOURCES = tests/unit/test_selastic_history.c
tests_unit_test_selastic_history_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_selastic_history_LDADD = $(SELASTIC_LIBS) $(JSONC_LIBS)
tests_unit_test_selastic_top_SOURCES = tests/unit/test_selastic_top.c
tests_unit_test_selastic_top_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_selastic_top_LDADD = tests/unit/libfixtures.a $(SELASTIC_LIBS) $(JSONC_LIBS)
tests_unit_test_selastic_usage_SOURCES = tests/unit/test_selastic_usage.c
tests_unit_test_selastic_usage_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_selastic_usage_LDADD = tests/unit/libfixtures.a $(SELASTIC_LIBS) $(JSONC_LIBS)
tests_unit_test_selastic_wait_SOURCES = tests/unit/test_selastic_wait.c
tests_unit_test_selastic_wait_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_selastic_wait_LDADD = $(SELASTIC_LIBS) $(JSONC_LIBS)
tests_unit_test_selastic_jobs_SOURCES = tests/unit/test_selastic_jobs.c
tests_unit_test_selastic_jobs_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_selastic_jobs_LDADD = $(SELASTIC_LIBS)

UNIT_TESTS += \
    tests/unit/test_machine \
    tests/unit/test_topology
tests_unit_test_machine_SOURCES = tests/unit/test_machine.c
tests_unit_test_machine_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS) $(HWLOC_CFLAGS)
tests_unit_test_machine_LDADD = $(MACHINE_LIBS) $(COMMON_LIBS) $(UNIT_LIBS) $(JSONC_LIBS) $(HWLOC_LIBS)
tests_unit_test_topology_SOURCES = tests/unit/test_topology.c
tests_unit_test_topology_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_topology_LDADD = $(MACHINE_LIBS) $(SELASTIC_LIBS) $(JSONC_LIBS)
EXTRA_DIST += \
    tests/unit/machines/dual-socket-8gpu.xml \
    tests/unit/machines/four-numa.xml \
    tests/unit/machines/hybrid.xml \
    tests/unit/machines/one-package.xml

noinst_HEADERS += tests/unit/fit_fixture.h
noinst_HEADERS += tests/unit/roles_fixture.h
tests_unit_test_selastic_render_SOURCES = tests/unit/test_selastic_render.c
tests_unit_test_selastic_render_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_selastic_render_LDADD = tests/unit/libfixtures.a $(SELASTIC_LIBS)
tests_unit_test_selastic_roles_SOURCES = tests/unit/test_selastic_roles.c
tests_unit_test_selastic_roles_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_selastic_roles_LDADD = tests/unit/libfixtures.a $(SELASTIC_LIBS)
tests_unit_test_selastic_samples_SOURCES = tests/unit/test_selastic_samples.c
tests_unit_test_selastic_samples_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_selastic_samples_LDADD = $(UNIT_LIBS) $(JSONC_LIBS)
EXTRA_DIST += \
    tests/unit/selastic/endpoints.haproxy \
    tests/unit/selastic/endpoints.hosts \
    tests/unit/selastic/endpoints.out.json \
    tests/unit/selastic/endpoints.prometheus.json \
    tests/unit/selastic/endpoints.txt \
    tests/unit/selastic/history-later.txt \
    tests/unit/selastic/history.json \
    tests/unit/selastic/history.jsonl \
    tests/unit/selastic/history.jsonl.out.json \
    tests/unit/selastic/history.jsonl.txt \
    tests/unit/selastic/history.txt \
    tests/unit/selastic/list-100.txt \
    tests/unit/selastic/list.json \
    tests/unit/selastic/list.txt \
    tests/unit/selastic/replicas-hostile.txt \
    tests/unit/selastic/replicas-rollout.txt \
    tests/unit/selastic/replicas.out.json \
    tests/unit/selastic/replicas.txt \
    tests/unit/selastic/reports.json \
    tests/unit/selastic/reports.out.json \
    tests/unit/selastic/reports.txt \
    tests/unit/selastic/roles-example.json \
    tests/unit/selastic/roles-hostile.json \
    tests/unit/selastic/roles-hostile.txt \
    tests/unit/selastic/roles.json \
    tests/unit/selastic/roles.out.json \
    tests/unit/selastic/roles.txt \
    tests/unit/selastic/state-growing-60.txt \
    tests/unit/selastic/state-growing.json \
    tests/unit/selastic/state-growing.out.json \
    tests/unit/selastic/state-growing.txt \
    tests/unit/selastic/state-roles.json \
    tests/unit/selastic/state-roles.txt \
    tests/unit/selastic/state-hostile.json \
    tests/unit/selastic/state-hostile.out.json \
    tests/unit/selastic/state-hostile.txt \
    tests/unit/selastic/state-nothing.txt \
    tests/unit/selastic/state-shrunk.json \
    tests/unit/selastic/timeline-chart.txt \
    tests/unit/selastic/timeline-gap.txt \
    tests/unit/selastic/timeline.txt

UNIT_TESTS += \
    tests/unit/test_farewell \
    tests/unit/test_link \
    tests/unit/test_link_faults \
    tests/unit/test_link_find \
    tests/unit/test_link_ipv6 \
    tests/unit/test_link_pair \
    tests/unit/test_link_ports \
    tests/unit/test_link_relay \
    tests/unit/test_link_users
LINK_TEST_CPPFLAGS = \
    $(AM_CPPFLAGS) \
    $(JSONC_CFLAGS) \
    $(LIBUV_CFLAGS) \
    $(MUNGE_CFLAGS) \
    $(SODIUM_CFLAGS)
LINK_TEST_LIBS = $(COMMON_LIBS) $(UNIT_LIBS)
UNIT_TESTS += tests/unit/test_member
tests_unit_test_member_SOURCES = tests/unit/test_member.c
tests_unit_test_member_CPPFLAGS = $(AGENT_CPPFLAGS) $(MUNGE_CFLAGS)
tests_unit_test_member_LDADD = tests/unit/libfixtures.a $(AGENT_LIBS) $(LINK_TEST_LIBS) $(LIBUV_LIBS) \
    $(JSONC_LIBS) $(SODIUM_LIBS)
tests_unit_test_farewell_SOURCES = tests/unit/test_farewell.c
tests_unit_test_farewell_CPPFLAGS = $(LINK_TEST_CPPFLAGS)
tests_unit_test_farewell_LDADD = tests/unit/libfixtures.a $(AGENT_LIBS) $(LINK_TEST_LIBS)
tests_unit_test_link_SOURCES = tests/unit/test_link.c
tests_unit_test_link_CPPFLAGS = $(LINK_TEST_CPPFLAGS)
tests_unit_test_link_LDADD = tests/unit/libfixtures.a $(LINK_TEST_LIBS)
tests_unit_test_link_faults_SOURCES = tests/unit/test_link_faults.c
tests_unit_test_link_faults_CPPFLAGS = $(LINK_TEST_CPPFLAGS)
tests_unit_test_link_faults_LDADD = tests/unit/libfixtures.a $(LINK_TEST_LIBS)
tests_unit_test_link_faults_LINK = $(LINK) -Wl,--wrap=tcp_caller
tests_unit_test_link_find_SOURCES = tests/unit/test_link_find.c
tests_unit_test_link_find_CPPFLAGS = $(LINK_TEST_CPPFLAGS)
tests_unit_test_link_find_LDADD = tests/unit/libfixtures.a $(LINK_TEST_LIBS)
tests_unit_test_link_ipv6_SOURCES = tests/unit/test_link_ipv6.c
tests_unit_test_link_ipv6_CPPFLAGS = $(LINK_TEST_CPPFLAGS)
tests_unit_test_link_ipv6_LDADD = tests/unit/libfixtures.a $(LINK_TEST_LIBS)
tests_unit_test_link_pair_SOURCES = tests/unit/test_link_pair.c
tests_unit_test_link_pair_CPPFLAGS = $(LINK_TEST_CPPFLAGS)
tests_unit_test_link_pair_LDADD = tests/unit/libfixtures.a $(LINK_TEST_LIBS)
tests_unit_test_link_ports_SOURCES = tests/unit/test_link_ports.c
tests_unit_test_link_ports_CPPFLAGS = $(LINK_TEST_CPPFLAGS)
tests_unit_test_link_ports_LDADD = $(LINK_TEST_LIBS)
tests_unit_test_link_relay_SOURCES = tests/unit/test_link_relay.c
tests_unit_test_link_relay_CPPFLAGS = $(LINK_TEST_CPPFLAGS)
tests_unit_test_link_relay_LDADD = tests/unit/libfixtures.a $(LINK_TEST_LIBS)
tests_unit_test_link_users_SOURCES = tests/unit/test_link_users.c
tests_unit_test_link_users_CPPFLAGS = $(LINK_TEST_CPPFLAGS)
tests_unit_test_link_users_LDADD = tests/unit/libfixtures.a $(LINK_TEST_LIBS)

UNIT_TESTS += \
    tests/unit/test_extension_argv \
    tests/unit/test_options
tests_unit_test_extension_argv_SOURCES = tests/unit/test_extension_argv.c
tests_unit_test_extension_argv_CPPFLAGS = $(AGENT_CPPFLAGS)
tests_unit_test_extension_argv_LDADD = $(AGENT_LIBS) $(CMOCKA_LIBS)
tests_unit_test_options_SOURCES = tests/unit/test_options.c
tests_unit_test_options_CPPFLAGS = $(AGENT_CPPFLAGS)
tests_unit_test_options_LDADD = $(AGENT_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += tests/unit/test_world
tests_unit_test_world_SOURCES = tests/unit/test_world.c tests/unit/support.h
tests_unit_test_world_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_world_LDADD = $(UNIT_LIBS) $(JSONC_LIBS)

UNIT_TESTS += \
    tests/unit/test_binding \
    tests/unit/test_event_agent \
    tests/unit/test_leader_places \
    tests/unit/test_memory \
    tests/unit/test_node_room \
    tests/unit/test_output \
    tests/unit/test_port \
    tests/unit/test_scribe \
    tests/unit/test_store_server \
    tests/unit/test_supervise
tests_unit_test_binding_SOURCES = tests/unit/test_binding.c tests/unit/support.h
tests_unit_test_binding_CPPFLAGS = $(AGENT_CPPFLAGS)
tests_unit_test_binding_LDADD = $(AGENT_LIBS) $(HWLOC_LIBS) $(CMOCKA_LIBS)
tests_unit_test_event_agent_SOURCES = tests/unit/test_event_agent.c tests/unit/support.h
tests_unit_test_event_agent_CPPFLAGS = $(AGENT_CPPFLAGS)
tests_unit_test_event_agent_LDADD = $(AGENT_LIBS) $(CMOCKA_LIBS)
tests_unit_test_leader_places_SOURCES = tests/unit/test_leader_places.c tests/unit/support.h
tests_unit_test_leader_places_CPPFLAGS = $(AGENT_CPPFLAGS)
tests_unit_test_leader_places_LDADD = $(AGENT_LIBS) $(CMOCKA_LIBS)
tests_unit_test_node_room_SOURCES = tests/unit/test_node_room.c tests/unit/support.h
tests_unit_test_node_room_CPPFLAGS = $(AGENT_CPPFLAGS)
tests_unit_test_node_room_LDADD = $(AGENT_LIBS) $(CMOCKA_LIBS)
tests_unit_test_memory_SOURCES = tests/unit/test_memory.c tests/unit/support.h
tests_unit_test_memory_CPPFLAGS = $(AGENT_CPPFLAGS)
tests_unit_test_memory_LDADD = $(AGENT_LIBS) $(CMOCKA_LIBS)
tests_unit_test_port_SOURCES = tests/unit/test_port.c tests/unit/own_network.h tests/unit/support.h
tests_unit_test_port_CPPFLAGS = $(AGENT_CPPFLAGS)
tests_unit_test_port_LDADD = $(AGENT_LIBS) $(CMOCKA_LIBS)
tests_unit_test_supervise_SOURCES = tests/unit/test_supervise.c tests/unit/support.h
tests_unit_test_supervise_CPPFLAGS = $(AGENT_CPPFLAGS)
tests_unit_test_supervise_LDADD = $(AGENT_LIBS) $(CMOCKA_LIBS)
tests_unit_test_store_server_SOURCES = tests/unit/test_store_server.c tests/unit/support.h
tests_unit_test_store_server_CPPFLAGS = $(AGENT_CPPFLAGS)
tests_unit_test_store_server_LDADD = $(AGENT_LIBS) $(LIBUV_LIBS) $(JSONC_LIBS) \
    $(CMOCKA_LIBS)
tests_unit_test_scribe_SOURCES = tests/unit/test_scribe.c tests/unit/support.h
tests_unit_test_scribe_CPPFLAGS = $(AGENT_CPPFLAGS)
# Its file system comes first.
tests_unit_test_scribe_LINK = $(LINK) -Wl,--allow-multiple-definition
tests_unit_test_scribe_LDADD = $(AGENT_LIBS) $(LIBUV_LIBS) $(CMOCKA_LIBS)
tests_unit_test_output_SOURCES = tests/unit/test_output.c tests/unit/support.h
tests_unit_test_output_CPPFLAGS = $(AGENT_CPPFLAGS)
tests_unit_test_output_LDADD = $(AGENT_LIBS) $(LIBUV_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += \
    tests/unit/test_probe \
    tests/unit/test_owned \
    tests/unit/test_replica_ports \
    tests/unit/test_replicas \
    tests/unit/test_worker_faults \
    tests/unit/test_workers
tests_unit_test_probe_SOURCES = tests/unit/test_probe.c
tests_unit_test_probe_CPPFLAGS = $(AGENT_CPPFLAGS)
tests_unit_test_probe_LDADD = tests/unit/libfixtures.a $(AGENT_LIBS) $(LIBUV_LIBS) $(CMOCKA_LIBS)
tests_unit_test_owned_SOURCES = tests/unit/test_owned.c tests/unit/support.h
tests_unit_test_owned_CPPFLAGS = $(AGENT_CPPFLAGS)
tests_unit_test_owned_LDADD = $(AGENT_LIBS) $(LIBUV_LIBS) $(JSONC_LIBS) $(CMOCKA_LIBS)
tests_unit_test_replica_ports_SOURCES = tests/unit/test_replica_ports.c
tests_unit_test_replica_ports_CPPFLAGS = $(AGENT_CPPFLAGS)
tests_unit_test_replica_ports_LDADD = $(AGENT_LIBS) $(LIBUV_LIBS) $(JSONC_LIBS) $(CMOCKA_LIBS)
tests_unit_test_replicas_SOURCES = tests/unit/test_replicas.c
tests_unit_test_replicas_CPPFLAGS = $(AGENT_CPPFLAGS)
tests_unit_test_replicas_LDADD = tests/unit/libfixtures.a $(AGENT_LIBS) $(LIBUV_LIBS) $(JSONC_LIBS) $(CMOCKA_LIBS)
tests_unit_test_worker_faults_SOURCES = tests/unit/test_worker_faults.c
tests_unit_test_worker_faults_CPPFLAGS = $(AGENT_CPPFLAGS)
tests_unit_test_worker_faults_LDADD = tests/unit/libfixtures.a $(AGENT_LIBS) $(LIBUV_LIBS) $(CMOCKA_LIBS)
tests_unit_test_workers_SOURCES = tests/unit/test_workers.c
tests_unit_test_workers_CPPFLAGS = $(AGENT_CPPFLAGS)
tests_unit_test_workers_LDADD = tests/unit/libfixtures.a $(AGENT_LIBS) $(LIBUV_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += \
    tests/unit/test_event \
    tests/unit/test_event_page \
    tests/unit/test_event_worlds
tests_unit_test_event_SOURCES = tests/unit/test_event.c
tests_unit_test_event_CPPFLAGS = $(AGENT_CPPFLAGS) $(PMIX_CFLAGS)
tests_unit_test_event_LDADD = tests/unit/libfixtures.a tests/unit/libclient.a $(AGENT_LIBS) $(CMOCKA_LIBS)
tests_unit_test_event_page_SOURCES = tests/unit/test_event_page.c
tests_unit_test_event_page_CPPFLAGS = $(AGENT_CPPFLAGS) $(PMIX_CFLAGS)
tests_unit_test_event_page_LDADD = tests/unit/libfixtures.a tests/unit/libclient.a $(AGENT_LIBS) $(CMOCKA_LIBS)
tests_unit_test_event_worlds_SOURCES = tests/unit/test_event_worlds.c
tests_unit_test_event_worlds_CPPFLAGS = $(AGENT_CPPFLAGS) $(PMIX_CFLAGS)
tests_unit_test_event_worlds_LDADD = tests/unit/libfixtures.a tests/unit/libclient.a $(AGENT_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += tests/unit/test_entry
tests_unit_test_entry_SOURCES = tests/unit/test_entry.c tests/unit/support.h
tests_unit_test_entry_LDADD = common/libelasticcheckpoints.a $(CORE_LIBS) $(JSONC_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += tests/unit/test_guard
tests_unit_test_guard_SOURCES = tests/unit/test_guard.c flush/guard.c flush/guard.h
tests_unit_test_guard_LDADD = common/libelasticcheckpoints.a $(CORE_LIBS) $(JSONC_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += tests/unit/test_run_dir
tests_unit_test_run_dir_CPPFLAGS = $(AGENT_CPPFLAGS)
tests_unit_test_run_dir_LDADD = $(AGENT_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += tests/unit/test_snapshot_client
tests_unit_test_snapshot_client_SOURCES = tests/unit/test_snapshot_client.c
tests_unit_test_snapshot_client_CPPFLAGS = $(AGENT_CPPFLAGS) $(PMIX_CFLAGS)
tests_unit_test_snapshot_client_LDADD = tests/unit/libclient.a $(AGENT_LIBS) $(CMOCKA_LIBS) $(SODIUM_LIBS)

UNIT_TESTS += tests/unit/test_sockets
tests_unit_test_sockets_SOURCES = tests/unit/test_sockets.c
tests_unit_test_sockets_LDADD = tests/unit/libclient.a $(CMOCKA_LIBS)

UNIT_TESTS += tests/unit/test_shield_environment
tests_unit_test_shield_environment_SOURCES = tests/unit/test_shield_environment.c
tests_unit_test_shield_environment_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_shield
check_PROGRAMS += tests/unit/shield_program
tests_unit_test_shield_SOURCES = tests/unit/test_shield.c tests/unit/support.h
tests_unit_test_shield_LDADD = $(CMOCKA_LIBS)
tests_unit_shield_program_SOURCES = tests/unit/shield_program.c
tests_unit_shield_program_CFLAGS = $(PLAIN_FLAGS)
# A shared AddressSanitizer would have to come before the library that is preloaded.
tests_unit_shield_program_LINK = $(CCLD) $(AM_CFLAGS) $(CFLAGS) $(LDFLAGS) -o $@
tests_unit_shield_program_LDADD = -lpthread

UNIT_TESTS += tests/unit/test_store_client
tests_unit_test_store_client_SOURCES = tests/unit/test_store_client.c
tests_unit_test_store_client_LDADD = tests/unit/libclient.a $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_worlds
tests_unit_test_worlds_SOURCES = tests/unit/test_worlds.c
tests_unit_test_worlds_CPPFLAGS = $(AGENT_CPPFLAGS)
tests_unit_test_worlds_LDADD = tests/unit/libclient.a $(AGENT_LIBS) $(CMOCKA_LIBS)

if HAVE_CMOCKA
check_LIBRARIES += tests/unit/libclient.a tests/unit/libfixtures.a
check_PROGRAMS += $(UNIT_TESTS)
TESTS += $(UNIT_TESTS)
endif

UNIT_TESTS += tests/unit/test_role_needs
tests_unit_test_role_needs_SOURCES = tests/unit/test_role_needs.c
tests_unit_test_role_needs_CPPFLAGS = $(ROLES_CPPFLAGS)
tests_unit_test_role_needs_LDADD = $(ROLES_LIBS)

UNIT_TESTS += tests/unit/test_role_task
tests_unit_test_role_task_SOURCES = tests/unit/test_role_task.c
tests_unit_test_role_task_CPPFLAGS = $(ROLES_CPPFLAGS)
tests_unit_test_role_task_LDADD = $(ROLES_LIBS)

UNIT_TESTS += tests/unit/test_majority
tests_unit_test_majority_SOURCES = tests/unit/test_majority.c
tests_unit_test_majority_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_survey_plan
tests_unit_test_survey_plan_SOURCES = tests/unit/test_survey_plan.c
tests_unit_test_survey_plan_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_survey_plan_LDADD = $(UNIT_LIBS) $(JSONC_LIBS)

UNIT_TESTS += tests/unit/test_slots
tests_unit_test_slots_SOURCES = tests/unit/test_slots.c
tests_unit_test_slots_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_reconcile tests/unit/test_reconcile_random
tests_unit_test_reconcile_SOURCES = tests/unit/test_reconcile.c
tests_unit_test_reconcile_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_reconcile_LDADD = $(UNIT_LIBS)
tests_unit_test_reconcile_random_SOURCES = tests/unit/test_reconcile_random.c
tests_unit_test_reconcile_random_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_reconcile_random_LDADD = $(UNIT_LIBS)

# The brain of a service with shards of models.
UNIT_TESTS += tests/unit/test_haproxy_text tests/unit/test_rollout tests/unit/test_shard_commands \
    tests/unit/test_shard_commands_random tests/unit/test_shard_plan \
    tests/unit/test_roles_shards tests/unit/test_service_gone tests/unit/test_service_handover \
    tests/unit/test_service_random tests/unit/test_service_models tests/unit/test_service_program \
    tests/unit/test_service_scale
tests_unit_test_service_models_SOURCES = tests/unit/test_service_models.c
tests_unit_test_service_models_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_service_models_LDADD = $(UNIT_LIBS) $(JSONC_LIBS)
tests_unit_test_service_program_SOURCES = tests/unit/test_service_program.c
tests_unit_test_service_program_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_service_program_LDADD = $(UNIT_LIBS) $(JSONC_LIBS)
tests_unit_test_service_scale_SOURCES = tests/unit/test_service_scale.c
tests_unit_test_service_scale_LDADD = $(UNIT_LIBS)
tests_unit_test_roles_shards_SOURCES = tests/unit/test_roles_shards.c
tests_unit_test_roles_shards_CPPFLAGS = $(ROLES_CPPFLAGS)
tests_unit_test_roles_shards_LDADD = $(ROLES_LIBS)
tests_unit_test_service_gone_SOURCES = tests/unit/test_service_gone.c
tests_unit_test_service_gone_LDADD = $(UNIT_LIBS)
tests_unit_test_service_handover_SOURCES = tests/unit/test_service_handover.c
tests_unit_test_service_handover_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_service_handover_LDADD = $(UNIT_LIBS) $(JSONC_LIBS)
tests_unit_test_service_random_SOURCES = tests/unit/test_service_random.c
tests_unit_test_service_random_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_service_random_LDADD = $(UNIT_LIBS) $(JSONC_LIBS)
tests_unit_test_shard_commands_SOURCES = tests/unit/test_shard_commands.c
tests_unit_test_shard_commands_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_shard_commands_LDADD = $(UNIT_LIBS) $(JSONC_LIBS)
EXTRA_DIST += \
    tests/unit/serve/1-first.txt \
    tests/unit/serve/2-update-and-add.txt \
    tests/unit/serve/3-version.txt \
    tests/unit/serve/4-move.txt \
    tests/unit/serve/5-remove.txt \
    tests/unit/serve/6-application.txt \
    tests/unit/serve/7-last.txt \
    tests/unit/serve/8-nothing.txt \
    tests/unit/serve/across.txt \
    tests/unit/serve/application.txt \
    tests/unit/serve/failed.txt \
    tests/unit/serve/flush.txt \
    tests/unit/serve/full.txt \
    tests/unit/serve/haproxy.cfg \
    tests/unit/serve/leaves.txt \
    tests/unit/serve/measured.txt \
    tests/unit/serve/merge.txt \
    tests/unit/serve/mixed.txt \
    tests/unit/serve/move-by-hand.txt \
    tests/unit/serve/not-ready.txt \
    tests/unit/serve/place-by-hand.txt \
    tests/unit/serve/repack.txt \
    tests/unit/serve/replaced.txt \
    tests/unit/serve/on-demand.txt \
    tests/unit/serve/takeover.txt
UNIT_TESTS += tests/unit/test_haproxy_answers tests/unit/test_route_table tests/unit/test_router_plan
tests_unit_test_haproxy_answers_SOURCES = tests/unit/test_haproxy_answers.c
tests_unit_test_haproxy_answers_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_haproxy_answers_LDADD = $(UNIT_LIBS)
tests_unit_test_route_table_SOURCES = tests/unit/test_route_table.c
tests_unit_test_route_table_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS) $(LIBUV_CFLAGS)
tests_unit_test_route_table_LDADD = $(ROUTER_LIBS) $(UNIT_LIBS) $(JSONC_LIBS)
tests_unit_test_router_plan_SOURCES = tests/unit/test_router_plan.c
tests_unit_test_router_plan_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_router_plan_LDADD = $(UNIT_LIBS) $(JSONC_LIBS)
UNIT_TESTS += tests/unit/test_router_files
tests_unit_test_router_files_SOURCES = tests/unit/test_router_files.c
tests_unit_test_router_files_CPPFLAGS = $(AM_CPPFLAGS) $(LIBUV_CFLAGS)
tests_unit_test_router_files_LINK = $(LINK) -Wl,--wrap=getuid
tests_unit_test_router_files_LDADD = $(ROUTER_LIBS) $(UNIT_LIBS) $(LIBUV_LIBS)
UNIT_TESTS += tests/unit/test_router_sources
tests_unit_test_router_sources_SOURCES = tests/unit/test_router_sources.c
tests_unit_test_router_sources_CPPFLAGS = $(LINK_TEST_CPPFLAGS)
tests_unit_test_router_sources_LDADD = tests/unit/libfixtures.a $(ROUTER_LIBS) $(LINK_TEST_LIBS) $(LIBUV_LIBS) \
    $(JSONC_LIBS) $(SODIUM_LIBS)
tests_unit_test_haproxy_text_SOURCES = tests/unit/test_haproxy_text.c
tests_unit_test_haproxy_text_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_haproxy_text_LDADD = $(UNIT_LIBS)
tests_unit_test_rollout_SOURCES = tests/unit/test_rollout.c
tests_unit_test_rollout_LDADD = $(UNIT_LIBS)
tests_unit_test_shard_commands_random_SOURCES = tests/unit/test_shard_commands_random.c
tests_unit_test_shard_commands_random_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
tests_unit_test_shard_commands_random_LDADD = $(UNIT_LIBS) $(JSONC_LIBS)
tests_unit_test_shard_plan_SOURCES = tests/unit/test_shard_plan.c
tests_unit_test_shard_plan_LDADD = $(UNIT_LIBS)

# The HTTP interface of jobs with roles.
UNIT_TESTS += \
    tests/unit/test_api_call \
    tests/unit/test_api_request \
    tests/unit/test_di \
    tests/unit/test_fit_http \
    tests/unit/test_http_table \
    tests/unit/test_reports
tests_unit_test_api_call_SOURCES = tests/unit/test_api_call.c
tests_unit_test_api_call_CPPFLAGS = $(ROLES_CPPFLAGS)
tests_unit_test_api_call_LDADD = $(ROLES_LIBS)
tests_unit_test_api_request_SOURCES = tests/unit/test_api_request.c
tests_unit_test_api_request_CPPFLAGS = $(ROLES_CPPFLAGS)
tests_unit_test_api_request_LDADD = $(ROLES_LIBS)
tests_unit_test_fit_http_SOURCES = tests/unit/test_fit_http.c
tests_unit_test_fit_http_CPPFLAGS = $(ROLES_CPPFLAGS)
tests_unit_test_fit_http_LDADD = $(ROLES_LIBS)
tests_unit_test_http_table_SOURCES = tests/unit/test_http_table.c
tests_unit_test_http_table_CPPFLAGS = $(ROLES_CPPFLAGS)
tests_unit_test_http_table_LDADD = $(ROLES_LIBS)
tests_unit_test_di_SOURCES = tests/unit/test_di.c
tests_unit_test_di_CPPFLAGS = $(ROLES_CPPFLAGS)
tests_unit_test_di_LDADD = $(ROLES_LIBS)
tests_unit_test_reports_SOURCES = tests/unit/test_reports.c
tests_unit_test_reports_CPPFLAGS = $(ROLES_CPPFLAGS)
tests_unit_test_reports_LDADD = $(ROLES_LIBS)
if HAVE_MICROHTTPD
UNIT_TESTS += tests/unit/test_http
endif
tests_unit_test_http_SOURCES = tests/unit/test_http.c
tests_unit_test_http_CPPFLAGS = $(AGENT_CPPFLAGS) $(MUNGE_CFLAGS)
tests_unit_test_http_LDADD = tests/unit/libfixtures.a $(HTTP_LIBS) $(AGENT_LIBS) $(LINK_TEST_LIBS) $(LIBUV_LIBS) \
    $(JSONC_LIBS) $(SODIUM_LIBS)

UNIT_TESTS += tests/unit/test_doctor
tests_unit_test_doctor_SOURCES = tests/unit/test_doctor.c
tests_unit_test_doctor_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_program
tests_unit_test_program_SOURCES = tests/unit/test_program.c
tests_unit_test_program_LDADD = $(COMMON_LIBS) $(UNIT_LIBS)
