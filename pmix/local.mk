# SPDX-License-Identifier: GPL-2.0-or-later
#
# pmix/: elasticrun-pmix, the PMIx server of a node. Its accept() has to be found by libpmix (accept.c).
pkglibexec_PROGRAMS += pmix/elasticrun-pmix
pmix_elasticrun_pmix_SOURCES = \
    pmix/accept.c \
    pmix/allocate.c \
    pmix/compat.h \
    pmix/control.c \
    pmix/environment.c \
    pmix/environment.h \
    pmix/events.c \
    pmix/exchange.c \
    pmix/host.h \
    pmix/library.c \
    pmix/library.h \
    pmix/log_lines.c \
    pmix/main.c \
    pmix/publish_calls.c \
    pmix/query.c \
    pmix/space.c \
    pmix/space.h
pmix_elasticrun_pmix_CPPFLAGS = $(AM_CPPFLAGS) $(PMIX_CFLAGS) $(JSONC_CFLAGS) $(LIBUV_CFLAGS) $(SODIUM_CFLAGS)
pmix_elasticrun_pmix_CFLAGS = $(AM_CFLAGS) $(PROGRAM_CFLAGS)
pmix_elasticrun_pmix_LINK = $(PROGRAM_LINK) -Wl,--export-dynamic-symbol=accept
pmix_elasticrun_pmix_LDADD = $(COMMON_LIBS) $(PMIX_LIBS)

EXTRA_DIST += pmix/README.md
