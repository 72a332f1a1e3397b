# SPDX-License-Identifier: GPL-2.0-or-later
#
# state/: elastic-state, which keeps states of trainings in directories and on S3. It has no part in Slurm, PMIx or the
# agent. All but main() is a library, for the tests.
noinst_LIBRARIES += state/libstate.a
state_libstate_a_SOURCES = \
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
state_libstate_a_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS) $(SODIUM_CFLAGS)
state_libstate_a_CFLAGS = $(AM_CFLAGS) $(PROGRAM_CFLAGS)
STATE_LIBS = state/libstate.a $(CMD_LIBS) $(S3_CLIENT_LIBS) $(JSONC_LIBS) $(SODIUM_LIBS)

pkglibexec_PROGRAMS += state/elastic-state
state_elastic_state_SOURCES = state/main.c
state_elastic_state_CPPFLAGS = $(state_libstate_a_CPPFLAGS)
state_elastic_state_CFLAGS = $(AM_CFLAGS) $(PROGRAM_CFLAGS)
state_elastic_state_LINK = $(PROGRAM_LINK)
state_elastic_state_LDADD = $(STATE_LIBS)

EXTRA_DIST += state/README.md
