# SPDX-License-Identifier: GPL-2.0-or-later
#
# flush/: elastic-flush, which the epilog starts to make a snapshot durable. It has no part in Slurm, PMIx or the agent,
# which reads checkpoint directories in the same way.
pkglibexec_PROGRAMS += flush/elastic-flush
flush_elastic_flush_SOURCES = \
    flush/attempt.c \
    flush/attempt.h \
    flush/buffer.c \
    flush/buffer.h \
    flush/clear.c \
    flush/clear.h \
    flush/guard.c \
    flush/guard.h \
    flush/keep.c \
    flush/keep.h \
    flush/lock.c \
    flush/lock.h \
    flush/main.c \
    flush/mount.c \
    flush/mount.h \
    flush/process.c \
    flush/process.h \
    flush/target.c \
    flush/target.h \
    flush/workers.c \
    flush/workers.h
flush_elastic_flush_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS) $(SODIUM_CFLAGS)
flush_elastic_flush_CFLAGS = $(AM_CFLAGS) $(PROGRAM_CFLAGS)
flush_elastic_flush_LINK = $(PROGRAM_LINK)
flush_elastic_flush_LDADD = common/libelasticcheckpoints.a $(CORE_LIBS) $(JSONC_LIBS) $(SODIUM_LIBS)

# What prolog and epilog start, as root.
pkglibexec_PROGRAMS += flush/elastic-runs
flush_elastic_runs_SOURCES = \
    flush/bounds.c \
    flush/bounds.h \
    flush/clear.c \
    flush/clear.h \
    flush/end.c \
    flush/end.h \
    flush/guard.c \
    flush/guard.h \
    flush/lock.c \
    flush/lock.h \
    flush/mount.c \
    flush/mount.h \
    flush/place.c \
    flush/place.h \
    flush/process.c \
    flush/process.h \
    flush/runs.c \
    flush/slot.c \
    flush/slot.h \
    flush/start.c \
    flush/start.h \
    flush/sweep.c \
    flush/sweep.h \
    flush/users.c \
    flush/users.h
flush_elastic_runs_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS) $(SODIUM_CFLAGS)
flush_elastic_runs_CFLAGS = $(AM_CFLAGS) $(PROGRAM_CFLAGS)
flush_elastic_runs_LINK = $(PROGRAM_LINK)
flush_elastic_runs_LDADD = common/libelasticcheckpoints.a $(CORE_LIBS) $(JSONC_LIBS) $(SODIUM_LIBS)

# What Slurm starts as prolog and epilog. It needs nothing: an admin copies it.
pkglibexec_PROGRAMS += flush/elastic-hook
flush_elastic_hook_SOURCES = flush/hook.c
flush_elastic_hook_CPPFLAGS = $(AM_CPPFLAGS) -DPKGLIBEXECDIR='"$(pkglibexecdir)"'
flush_elastic_hook_CFLAGS = $(AM_CFLAGS) $(PROGRAM_CFLAGS)
flush_elastic_hook_LINK = $(PROGRAM_LINK)
flush_elastic_hook_LDADD =

# Whose code a process cannot read that process is not traced by others of its user: it may run for users outside of their jobs.
install-exec-hook:
	chmod 0711 $(DESTDIR)$(pkglibexecdir)/elastic-flush $(DESTDIR)$(pkglibexecdir)/elastic-fit

EXTRA_DIST += flush/README.md
