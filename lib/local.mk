# SPDX-License-Identifier: GPL-2.0-or-later
#
# lib/: the pure core, a convenience library for everything else. Standard headers, json-c and libsodium.
# What is loaded into Slurm's processes (spank/, plugins/) takes the files that it needs by name instead.
noinst_LTLIBRARIES += lib/libelasticcore.la

lib_libelasticcore_la_SOURCES = \
    lib/admission.c \
    lib/admission.h \
    lib/admitted.c \
    lib/admitted.h \
    lib/change.c \
    lib/change.h \
    lib/change_abort.c \
    lib/change_decide.c \
    lib/change_form.c \
    lib/change_gone.c \
    lib/change_hold.c \
    lib/change_live.c \
    lib/change_next.c \
    lib/change_private.h \
    lib/change_read.c \
    lib/change_takeover.c \
    lib/conf.c \
    lib/conf.h \
    lib/cover.c \
    lib/cover.h \
    lib/error.c \
    lib/error.h \
    lib/frame.c \
    lib/frame.h \
    lib/gather.c \
    lib/gather.h \
    lib/hang.c \
    lib/hang.h \
    lib/job_record.c \
    lib/job_record.h \
    lib/leftover.c \
    lib/leftover.h \
    lib/json_get.c \
    lib/json_get.h \
    lib/json_text.c \
    lib/json_text.h \
    lib/look.c \
    lib/look.h \
    lib/machine.c \
    lib/machine.h \
    lib/machine_json.c \
    lib/names.c \
    lib/names.h \
    lib/nearest.c \
    lib/nearest.h \
    lib/notice.c \
    lib/notice.h \
    lib/drain_notices.c \
    lib/drain_notices.h \
    lib/number.c \
    lib/number.h \
    lib/pci.c \
    lib/pci.h \
    lib/pieces.c \
    lib/pieces.h \
    lib/placement.c \
    lib/placement.h \
    lib/plan.c \
    lib/plan.h \
    lib/plan_drop.c \
    lib/plan_private.h \
    lib/policy.c \
    lib/policy.h \
    lib/policy_json.c \
    lib/policy_options.h \
    lib/pools.c \
    lib/pools.h \
    lib/promotion.c \
    lib/promotion.h \
    lib/publish.c \
    lib/publish.h \
    lib/recovery.c \
    lib/recovery.h \
    lib/requests.c \
    lib/requests.h \
    lib/retry.c \
    lib/retry.h \
    lib/setbacks.c \
    lib/setbacks.h \
    lib/shapes.c \
    lib/shapes.h \
    lib/sizes.c \
    lib/sizes.h \
    lib/sleepers.c \
    lib/sleepers.h \
    lib/slurm_words.c \
    lib/slurm_words.h \
    lib/snapshot.c \
    lib/snapshot.h \
    lib/speed.c \
    lib/speed.h \
    lib/spending.c \
    lib/spending.h \
    lib/store.c \
    lib/store.h \
    lib/strangers.c \
    lib/strangers.h \
    lib/succession.c \
    lib/succession.h \
    lib/switch_tree.c \
    lib/switch_tree.h \
    lib/tasks.c \
    lib/tasks.h \
    lib/text.c \
    lib/text.h \
    lib/tree_order.c \
    lib/tree_order.h \
    lib/wake.c \
    lib/wake.h \
    lib/world.c \
    lib/world.h \
    lib/world_env.c \
    lib/world_names.c \
    lib/world_names.h \
    lib/world_list.c
lib_libelasticcore_la_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS) $(SODIUM_CFLAGS)
lib_libelasticcore_la_LIBADD = $(JSONC_LIBS) $(SODIUM_LIBS) -lm

EXTRA_DIST += lib/README.md
