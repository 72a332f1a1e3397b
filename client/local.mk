# SPDX-License-Identifier: GPL-2.0-or-later
#
# client/: libelastic.so and elastic.h, what training code calls. It needs libc only: it is loaded into
# users' own programs, environments and containers. libpmix and libsodium are opened when they are needed (nodes.c,
# snapshot.c), never linked.
include_HEADERS += client/elastic.h
lib_LTLIBRARIES += client/libelastic.la
client_libelastic_la_SOURCES = \
    common/memory.c \
    common/memory.h \
    client/elastic.c \
    client/event.c \
    client/event.h \
    client/event_page.h \
    client/nodes.c \
    client/nodes.h \
    client/snapshot.c \
    client/snapshot.h \
    client/sockets.c \
    client/sockets.h \
    client/store.c \
    client/store.h \
    client/term_guard.c \
    client/term_guard.h \
    client/term_signal.c \
    client/term_signal.h
client_libelastic_la_CPPFLAGS = $(AM_CPPFLAGS) $(PMIX_CFLAGS) $(SODIUM_CFLAGS)
client_libelastic_la_CFLAGS = $(EXPORTING_FLAGS)
client_libelastic_la_LDFLAGS = -version-info 0:0:0 -export-symbols-regex '^elastic_' $(MODULE_LDFLAGS)

# For programs that know nothing of it: LD_PRELOAD names it. A folder of its own, since nobody links with it. It has
# to be loaded into programs without the sanitizers' libraries, too.
shielddir = $(libdir)/libelastic
shield_LTLIBRARIES = client/libelastic-shield.la
client_libelastic_shield_la_SOURCES = \
    client/shield.c \
    client/term_signal.c \
    client/term_signal.h
client_libelastic_shield_la_CFLAGS = $(PLAIN_FLAGS)
client_libelastic_shield_la_LDFLAGS = -module -avoid-version -shared $(MODULE_LDFLAGS) \
    -export-symbols-regex '^(__sysv_signal|bsd_signal|sigaction|sigignore|signal|siginterrupt|sigset|ssignal|sysv_signal)$$'

# For programs that are linked with it: pkg-config --cflags --libs libelastic
pkgconfigdir = $(libdir)/pkgconfig
pkgconfig_DATA = client/libelastic.pc
CLEANFILES += client/libelastic.pc
client/libelastic.pc: $(srcdir)/client/libelastic.pc.in Makefile
	$(AM_V_GEN)$(MKDIR_P) client && sed -e 's|@prefix[@]|$(prefix)|; s|@VERSION[@]|$(VERSION)|' \
	    -e 's|@libdir[@]|$(libdir)|; s|@includedir[@]|$(includedir)|' \
	    $(srcdir)/client/libelastic.pc.in >$@.tmp && mv $@.tmp $@

EXTRA_DIST += client/README.md client/libelastic.pc.in
