# SPDX-License-Identifier: GPL-2.0-or-later
#
# router/: elastic-router, the address of a service. All but main() is a library, for the tests.
noinst_LIBRARIES += router/librouter.a
router_librouter_a_SOURCES = \
    router/driver.c \
    router/driver.h \
    router/driver_private.h \
    router/driver_steps.c \
    router/haproxy.c \
    router/haproxy.h \
    router/home.c \
    router/home.h \
    router/leader.c \
    router/leader.h \
    router/router_arguments.c \
    router/router_arguments.h \
    router/sources.c \
    router/sources.h \
    router/status.c \
    router/status.h \
    router/talk.c \
    router/talk.h \
    router/watch.c \
    router/watch.h
router_librouter_a_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS) $(LIBUV_CFLAGS) $(SODIUM_CFLAGS)
router_librouter_a_CFLAGS = $(AM_CFLAGS) $(PROGRAM_CFLAGS)
ROUTER_LIBS = router/librouter.a common/libelasticcheckpoints.a $(COMMON_LIBS) $(LIBUV_LIBS) \
    $(JSONC_LIBS) $(SODIUM_LIBS)

pkglibexec_PROGRAMS += router/elastic-router
router_elastic_router_SOURCES = router/main.c
router_elastic_router_CPPFLAGS = $(router_librouter_a_CPPFLAGS)
router_elastic_router_CFLAGS = $(AM_CFLAGS) $(PROGRAM_CFLAGS)
router_elastic_router_LINK = $(PROGRAM_LINK)
router_elastic_router_LDADD = $(ROUTER_LIBS)

EXTRA_DIST += router/README.md
