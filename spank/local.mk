# SPDX-License-Identifier: GPL-2.0-or-later
#
# spank/: the SPANK plugin. With the first source comes:
#
#   slurmplugin_LTLIBRARIES += spank/spank_elastic.la
#   spank_spank_elastic_la_SOURCES = spank/plugin.c ...
#   spank_spank_elastic_la_CFLAGS = $(EXPORTING_FLAGS)
#   spank_spank_elastic_la_LDFLAGS = $(PLUGIN_LINKING) -export-symbols-regex '^(slurm_spank_|plugin_)'
#   spank_spank_elastic_la_LIBADD = lib/libelasticcore.la
