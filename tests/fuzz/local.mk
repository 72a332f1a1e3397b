# SPDX-License-Identifier: GPL-2.0-or-later
#
# tests/fuzz/: fuzz targets. `make check` runs each on its corpus, with a main of our own; scripts/fuzz links them
# with libFuzzer instead. A target is one name in FUZZ_TARGETS and its two lines.
FUZZ_MAIN = tests/fuzz/libreplay.a
check_LIBRARIES += tests/fuzz/libreplay.a
tests_fuzz_libreplay_a_SOURCES = tests/fuzz/replay.c
noinst_HEADERS += tests/fuzz/fuzz.h tests/fuzz/write_policy.h

FUZZ_TARGETS = \
    tests/fuzz/fuzz_admission \
    tests/fuzz/fuzz_conf \
    tests/fuzz/fuzz_doctor \
    tests/fuzz/fuzz_frame \
    tests/fuzz/fuzz_history \
    tests/fuzz/fuzz_http \
    tests/fuzz/fuzz_json \
    tests/fuzz/fuzz_leader \
    tests/fuzz/fuzz_ledger \
    tests/fuzz/fuzz_link \
    tests/fuzz/fuzz_models \
    tests/fuzz/fuzz_notice \
    tests/fuzz/fuzz_options \
    tests/fuzz/fuzz_policy \
    tests/fuzz/fuzz_prices \
    tests/fuzz/fuzz_roles \
    tests/fuzz/fuzz_router \
    tests/fuzz/fuzz_shapes \
    tests/fuzz/fuzz_shards \
    tests/fuzz/fuzz_sizes \
    tests/fuzz/fuzz_snapshot \
    tests/fuzz/fuzz_states \
    tests/fuzz/fuzz_values \
    tests/fuzz/fuzz_world
check_PROGRAMS += $(FUZZ_TARGETS)
TESTS += $(FUZZ_TARGETS)

FUZZ_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS) $(SODIUM_CFLAGS)
FUZZ_LIBS = $(CORE_LIBS) $(FUZZ_MAIN)
tests_fuzz_fuzz_admission_SOURCES = tests/fuzz/fuzz_admission.c
tests_fuzz_fuzz_admission_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_admission_LDADD = $(FUZZ_LIBS)
tests_fuzz_fuzz_conf_SOURCES = tests/fuzz/fuzz_conf.c
tests_fuzz_fuzz_conf_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_conf_LDADD = $(FUZZ_LIBS)
tests_fuzz_fuzz_doctor_SOURCES = tests/fuzz/fuzz_doctor.c
tests_fuzz_fuzz_doctor_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_doctor_LDADD = $(FUZZ_LIBS)
tests_fuzz_fuzz_frame_SOURCES = tests/fuzz/fuzz_frame.c
tests_fuzz_fuzz_frame_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_frame_LDADD = $(FUZZ_LIBS) $(SODIUM_LIBS)
tests_fuzz_fuzz_history_SOURCES = tests/fuzz/fuzz_history.c
tests_fuzz_fuzz_history_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_history_LDADD = $(CMD_LIBS) $(FUZZ_LIBS) $(JSONC_LIBS)
tests_fuzz_fuzz_http_SOURCES = tests/fuzz/fuzz_http.c
tests_fuzz_fuzz_http_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_http_LDADD = $(FUZZ_LIBS) $(JSONC_LIBS)
tests_fuzz_fuzz_json_SOURCES = tests/fuzz/fuzz_json.c
tests_fuzz_fuzz_json_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_json_LDADD = $(FUZZ_LIBS) $(JSONC_LIBS)
tests_fuzz_fuzz_leader_SOURCES = tests/fuzz/fuzz_leader.c tests/fuzz/quiet.c tests/sim/clock.c tests/sim/shared.c
tests_fuzz_fuzz_leader_CPPFLAGS = $(AGENT_CPPFLAGS)
# What the target defines instead of Slurm, files and connections comes first.
tests_fuzz_fuzz_leader_LINK = $(LINK) -Wl,--allow-multiple-definition
tests_fuzz_fuzz_leader_LDADD = $(AGENT_LIBS) $(FUZZ_LIBS) $(LIBUV_LIBS) $(SODIUM_LIBS) \
    $(JSONC_LIBS)
tests_fuzz_fuzz_ledger_SOURCES = tests/fuzz/fuzz_ledger.c
tests_fuzz_fuzz_ledger_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_ledger_LDADD = $(FUZZ_LIBS)

tests_fuzz_fuzz_link_SOURCES = tests/fuzz/fuzz_link.c tests/fuzz/quiet.c
tests_fuzz_fuzz_link_CPPFLAGS = $(FUZZ_CPPFLAGS) $(LIBUV_CFLAGS) $(MUNGE_CFLAGS)
tests_fuzz_fuzz_link_LDADD = $(COMMON_LIBS) $(FUZZ_LIBS) $(LIBUV_LIBS) $(SODIUM_LIBS) \
    $(JSONC_LIBS)
tests_fuzz_fuzz_notice_SOURCES = tests/fuzz/fuzz_notice.c
tests_fuzz_fuzz_notice_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_notice_LDADD = $(FUZZ_LIBS)
tests_fuzz_fuzz_options_SOURCES = tests/fuzz/fuzz_options.c tests/fuzz/quiet.c agent/options.c agent/pattern.c
tests_fuzz_fuzz_options_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_options_LDADD = $(CMD_LIBS) $(COMMON_LIBS) $(FUZZ_LIBS)
tests_fuzz_fuzz_policy_SOURCES = tests/fuzz/fuzz_policy.c
tests_fuzz_fuzz_policy_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_policy_LDADD = $(FUZZ_LIBS) $(JSONC_LIBS)
tests_fuzz_fuzz_prices_SOURCES = tests/fuzz/fuzz_prices.c
tests_fuzz_fuzz_prices_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_prices_LDADD = $(FUZZ_LIBS)
tests_fuzz_fuzz_roles_SOURCES = tests/fuzz/fuzz_roles.c
tests_fuzz_fuzz_roles_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_roles_LDADD = $(COMMON_LIBS) $(FUZZ_LIBS) $(JSONC_LIBS)
tests_fuzz_fuzz_models_SOURCES = tests/fuzz/fuzz_models.c
tests_fuzz_fuzz_models_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_models_LDADD = $(FUZZ_LIBS) $(JSONC_LIBS)
tests_fuzz_fuzz_router_SOURCES = tests/fuzz/fuzz_router.c
tests_fuzz_fuzz_router_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_router_LDADD = $(FUZZ_LIBS) $(JSONC_LIBS)
tests_fuzz_fuzz_shapes_SOURCES = tests/fuzz/fuzz_shapes.c
tests_fuzz_fuzz_shapes_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_shapes_LDADD = $(FUZZ_LIBS)
tests_fuzz_fuzz_shards_SOURCES = tests/fuzz/fuzz_shards.c
tests_fuzz_fuzz_shards_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_shards_LDADD = $(FUZZ_LIBS) $(JSONC_LIBS)
tests_fuzz_fuzz_sizes_SOURCES = tests/fuzz/fuzz_sizes.c
tests_fuzz_fuzz_sizes_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_sizes_LDADD = $(FUZZ_LIBS)
tests_fuzz_fuzz_snapshot_SOURCES = tests/fuzz/fuzz_snapshot.c
tests_fuzz_fuzz_snapshot_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_snapshot_LDADD = $(FUZZ_LIBS) $(JSONC_LIBS)
tests_fuzz_fuzz_states_SOURCES = tests/fuzz/fuzz_states.c
tests_fuzz_fuzz_states_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_states_LDADD = $(S3_ANSWER_LIBS) $(FUZZ_LIBS)
tests_fuzz_fuzz_values_SOURCES = tests/fuzz/fuzz_values.c
tests_fuzz_fuzz_values_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_values_LDADD = $(FUZZ_LIBS) $(JSONC_LIBS)
tests_fuzz_fuzz_world_SOURCES = tests/fuzz/fuzz_world.c
tests_fuzz_fuzz_world_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_world_LDADD = $(FUZZ_LIBS) $(JSONC_LIBS)

# A directory is copied as it is.
EXTRA_DIST += tests/fuzz/corpus
