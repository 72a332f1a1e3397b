# SPDX-License-Identifier: GPL-2.0-or-later
#
# plugins/job_submit/: job_submit/elastic, only with the Slurm source. Like spank_elastic it takes
# what it needs by name: slurmctld shall not load libraries that only agents use.
EXTRA_DIST += \
    plugins/job_submit/base_job.c \
    plugins/job_submit/base_job.h \
    plugins/job_submit/drains.c \
    plugins/job_submit/drains.h \
    plugins/job_submit/plugin.c \
    plugins/job_submit/site.c \
    plugins/job_submit/site.h \
    plugins/job_submit/watch.c \
    plugins/job_submit/watch.h

if HAVE_SLURM_SOURCE
slurmplugin_LTLIBRARIES += plugins/job_submit/job_submit_elastic.la
plugins_job_submit_job_submit_elastic_la_SOURCES = \
    plugins/slurmctld.h \
    common/conf_file.c \
    common/files.c \
    lib/admission.c \
    lib/admission.h \
    lib/admission_extension.c \
    lib/admission_job.c \
    lib/admission_private.h \
    lib/admission_roles.c \
    lib/admitted.c \
    lib/admitted.h \
    lib/amount.c \
    lib/conf.c \
    lib/conf_check.c \
    lib/conf_value.c \
    lib/error.c \
    lib/json_get.c \
    lib/json_text.c \
    lib/drain_notices.c \
    lib/drain_notices.h \
    lib/number.c \
    lib/policy.c \
    lib/policy_json.c \
    lib/recovery.c \
    lib/role_time.c \
    lib/role_values.c \
    lib/role_values_json.c \
    lib/roles.c \
    lib/roles_base.c \
    lib/roles_check.c \
    lib/roles_find.c \
    lib/roles_reader.c \
    lib/roles_router.c \
    lib/roles_site.c \
    lib/rollout.c \
    lib/route_by.c \
    lib/s3_place.c \
    lib/s3_policy.c \
    lib/sizes.c \
    lib/slots.c \
    lib/text.c \
    lib/when.c \
    plugins/job_submit/base_job.c \
    plugins/job_submit/base_job.h \
    plugins/job_submit/drains.c \
    plugins/job_submit/drains.h \
    plugins/job_submit/plugin.c \
    plugins/job_submit/site.c \
    plugins/job_submit/site.h \
    plugins/job_submit/watch.c \
    plugins/job_submit/watch.h
plugins_job_submit_job_submit_elastic_la_CPPFLAGS = \
    $(SLURM_PLUGIN_CPPFLAGS) -I$(top_srcdir) $(JSONC_CFLAGS)
# Slurm's headers declare globals of names such as conf, which clang finds shadowed.
plugins_job_submit_job_submit_elastic_la_CFLAGS = $(EXPORTING_FLAGS) -Wno-shadow
plugins_job_submit_job_submit_elastic_la_LDFLAGS = $(PLUGIN_LINKING) -Wl,-z,nodelete \
    -export-symbols-regex '^(plugin_name|plugin_type|plugin_version|init|fini|job_submit|job_modify)$$'
plugins_job_submit_job_submit_elastic_la_LIBADD = $(JSONC_LIBS)
endif

EXTRA_DIST += plugins/README.md plugins/slurmctld.h
