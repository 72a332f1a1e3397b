# SPDX-License-Identifier: GPL-2.0-or-later
#
# spank/: the SPANK plugin. It is loaded into every sbatch, srun and slurmstepd, so it takes from
# lib/ and common/ only what it calls, and is not linked with all that those are linked with.
slurmplugin_LTLIBRARIES += spank/spank_elastic.la
spank_spank_elastic_la_SOURCES = \
    spank/client.c \
    spank/client.h \
    spank/environment.c \
    spank/environment.h \
    spank/options.c \
    spank/options.h \
    spank/plugin.c \
    spank/stepd.c \
    spank/stepd.h
spank_spank_elastic_la_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS) $(YAML_CFLAGS)
spank_spank_elastic_la_CFLAGS = $(EXPORTING_FLAGS)
spank_spank_elastic_la_LDFLAGS = $(PLUGIN_LINKING) -Wl,-lyaml -export-symbols-regex '^(slurm_spank_|plugin_)'
spank_spank_elastic_la_LIBADD = $(JSONC_LIBS) $(YAML_LIBS)
EXTRA_spank_spank_elastic_la_DEPENDENCIES = $(PLUGIN_ARCHIVES)

EXTRA_DIST += spank/README.md
