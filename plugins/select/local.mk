# SPDX-License-Identifier: GPL-2.0-or-later
#
# plugins/select/: select/elastic_cons_tres, only with the Slurm source. It takes of lib/ and common/
# what it calls, as job_submit/elastic does.
EXTRA_DIST += \
    plugins/select/cluster.c \
    plugins/select/cluster.h \
    plugins/select/compat.h \
    plugins/select/jobs.c \
    plugins/select/jobs.h \
    plugins/select/plugin.c \
    plugins/select/power.c \
    plugins/select/power.h \
    plugins/select/preempt.c \
    plugins/select/preempt.h \
    plugins/select/resources.c \
    plugins/select/resources.h \
    plugins/select/stock.c \
    plugins/select/stock.h \
    plugins/select/switches.c \
    plugins/select/switches.h \
    plugins/select/waiting.c \
    plugins/select/waiting.h

if HAVE_SLURM_SOURCE
slurmplugin_LTLIBRARIES += plugins/select/select_elastic_cons_tres.la
plugins_select_select_elastic_cons_tres_la_SOURCES = \
    plugins/slurmctld.h \
    plugins/select/cluster.c \
    plugins/select/cluster.h \
    plugins/select/compat.h \
    plugins/select/jobs.c \
    plugins/select/jobs.h \
    plugins/select/plugin.c \
    plugins/select/power.c \
    plugins/select/power.h \
    plugins/select/preempt.c \
    plugins/select/preempt.h \
    plugins/select/resources.c \
    plugins/select/resources.h \
    plugins/select/stock.c \
    plugins/select/stock.h \
    plugins/select/switches.c \
    plugins/select/switches.h \
    plugins/select/waiting.c \
    plugins/select/waiting.h
plugins_select_select_elastic_cons_tres_la_CPPFLAGS = \
    $(SLURM_PLUGIN_CPPFLAGS) -I$(top_srcdir) $(JSONC_CFLAGS)
# Slurm's headers declare globals of names such as conf, which clang finds shadowed.
plugins_select_select_elastic_cons_tres_la_CFLAGS = $(EXPORTING_FLAGS) -Wno-shadow
plugins_select_select_elastic_cons_tres_la_LDFLAGS = $(PLUGIN_LINKING) \
    -export-symbols-regex '^(plugin_(name|type|version|id)|init|fini|select_p_[a-z_]+)$$'
plugins_select_select_elastic_cons_tres_la_LIBADD = $(JSONC_LIBS)
EXTRA_plugins_select_select_elastic_cons_tres_la_DEPENDENCIES = $(PLUGIN_ARCHIVES)
endif
