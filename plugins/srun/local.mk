# SPDX-License-Identifier: GPL-2.0-or-later
#
# plugins/srun/: elastic-node-fail, only with the Slurm source: no plugin, but like them it is built for one version of Slurm.
EXTRA_DIST += plugins/srun/node_fail.c

if HAVE_SLURM_SOURCE
pkglibexec_PROGRAMS += plugins/srun/elastic-node-fail
plugins_srun_elastic_node_fail_SOURCES = plugins/srun/node_fail.c
plugins_srun_elastic_node_fail_CPPFLAGS = $(SLURM_PLUGIN_CPPFLAGS)
plugins_srun_elastic_node_fail_CFLAGS = $(AM_CFLAGS) $(PROGRAM_CFLAGS) -Wno-shadow
plugins_srun_elastic_node_fail_LINK = $(PROGRAM_LINK)
plugins_srun_elastic_node_fail_LDADD = $(SLURM_LIBS)
endif
