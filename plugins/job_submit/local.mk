# SPDX-License-Identifier: GPL-2.0-or-later
#
# plugins/job_submit/: job_submit/elastic, only with the Slurm source. Like spank_elastic it takes
# of lib/ and common/ what it calls: slurmctld shall not load libraries that only agents use.
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
EXTRA_plugins_job_submit_job_submit_elastic_la_DEPENDENCIES = $(PLUGIN_ARCHIVES)
endif

EXTRA_DIST += plugins/README.md plugins/slurmctld.h
