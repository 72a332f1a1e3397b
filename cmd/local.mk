# SPDX-License-Identifier: GPL-2.0-or-later
#
# cmd/: selastic. What is pure (arguments, JSON to text) is a library of its own, for the unit tests.
noinst_LTLIBRARIES += cmd/libselastic.la
cmd_libselastic_la_SOURCES = \
    cmd/arguments.c \
    cmd/arguments.h \
    cmd/history_file.c \
    cmd/history_file.h \
    cmd/jobs.c \
    cmd/jobs.h \
    cmd/render.c \
    cmd/render.h \
    cmd/shape.c \
    cmd/shape.h \
    cmd/text.c \
    cmd/text.h \
    cmd/timeline.c \
    cmd/timeline.h
cmd_libselastic_la_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
cmd_libselastic_la_LIBADD = lib/libelasticcore.la $(JSONC_LIBS) -lm

bin_PROGRAMS += cmd/selastic
cmd_selastic_SOURCES = \
    cmd/ask.c \
    cmd/ask.h \
    cmd/command.h \
    cmd/deadline.c \
    cmd/deadline.h \
    cmd/history.c \
    cmd/list.c \
    cmd/print.c \
    cmd/query.c \
    cmd/query.h \
    cmd/resize.c \
    cmd/selastic.c \
    cmd/show.c
cmd_selastic_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS) $(LIBUV_CFLAGS)
cmd_selastic_CFLAGS = $(AM_CFLAGS) $(PROGRAM_CFLAGS)
cmd_selastic_LDFLAGS = $(PROGRAM_LDFLAGS)
cmd_selastic_LDADD = cmd/libselastic.la common/libelasticcommon.la $(LIBUV_LIBS) $(JSONC_LIBS)

# bash-completion looks for a file with the name of the command.
completiondir = $(datadir)/bash-completion/completions
completion_DATA = cmd/completion/selastic
CLEANFILES += cmd/completion/selastic
EXTRA_DIST += etc/selastic.bash-completion

cmd/completion/selastic: etc/selastic.bash-completion
	$(AM_V_GEN)$(MKDIR_P) $(@D) && cp $(top_srcdir)/etc/selastic.bash-completion $@
