# SPDX-License-Identifier: GPL-2.0-or-later
#
# state/: elastic-state, which keeps states of trainings in directories and on S3. It has no part in Slurm, PMIx or the
# agent. All but main() is a library, for the tests.
noinst_LTLIBRARIES += state/libstate.la
state_libstate_la_SOURCES = \
    state/choose.c \
    state/command.h \
    state/digest.c \
    state/digest.h \
    state/mirror.c \
    state/mirror_files.c \
    state/mirror_files.h \
    state/mirror_list.c \
    state/mirror_list.h \
    state/partial.c \
    state/partial.h \
    state/place.c \
    state/place.h \
    state/place_bucket.c \
    state/place_directory.c \
    state/place_private.h \
    state/pull.c \
    state/push.c \
    state/show.c \
    state/tree.c \
    state/tree.h
state_libstate_la_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS) $(SODIUM_CFLAGS)
state_libstate_la_CFLAGS = $(AM_CFLAGS) $(PROGRAM_CFLAGS)
state_libstate_la_LIBADD = cmd/libselastic.la common/libelastics3client.la $(JSONC_LIBS) $(SODIUM_LIBS)

pkglibexec_PROGRAMS += state/elastic-state
state_elastic_state_SOURCES = state/main.c
state_elastic_state_CPPFLAGS = $(state_libstate_la_CPPFLAGS)
state_elastic_state_CFLAGS = $(AM_CFLAGS) $(PROGRAM_CFLAGS)
state_elastic_state_LDFLAGS = $(PROGRAM_LDFLAGS)
state_elastic_state_LDADD = state/libstate.la

EXTRA_DIST += state/README.md
