# SPDX-License-Identifier: GPL-2.0-or-later
#
# plugins/job_submit/: job_submit/elastic, only with the Slurm source. With the first source comes:
#
#   EXTRA_DIST += the sources: without the conditional they would not be in the archive
#   if HAVE_SLURM_SOURCE
#   slurmplugin_LTLIBRARIES += plugins/job_submit/job_submit_elastic.la
#   plugins_job_submit_job_submit_elastic_la_SOURCES = plugins/job_submit/plugin.c ...
#   plugins_job_submit_job_submit_elastic_la_CPPFLAGS = $(SLURM_PLUGIN_CPPFLAGS) -I$(top_srcdir)
#   plugins_job_submit_job_submit_elastic_la_CFLAGS = $(EXPORTING_FLAGS)
#   plugins_job_submit_job_submit_elastic_la_LDFLAGS = $(PLUGIN_LINKING) \
#       -export-symbols-regex '^(plugin_name|plugin_type|plugin_version|init|fini|job_submit|job_modify)$$'
#   plugins_job_submit_job_submit_elastic_la_LIBADD = lib/libelasticcore.la
#   endif
