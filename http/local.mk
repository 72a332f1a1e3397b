# SPDX-License-Identifier: GPL-2.0-or-later
#
# http/: elasticrun-http, the HTTP interface of a job with roles. All but main() is a library, for the tests.
EXTRA_DIST += http/README.md
if HAVE_MICROHTTPD
noinst_LIBRARIES += http/libhttp.a
http_libhttp_a_SOURCES = \
    http/desk.c \
    http/desk.h \
    http/door.c \
    http/door.h \
    http/fits.c \
    http/fits.h \
    http/server.c \
    http/server.h
http_libhttp_a_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS) $(LIBUV_CFLAGS) $(SODIUM_CFLAGS) $(MICROHTTPD_CFLAGS)
http_libhttp_a_CFLAGS = $(AM_CFLAGS) $(PROGRAM_CFLAGS)
HTTP_LIBS = http/libhttp.a $(COMMON_LIBS) $(MICROHTTPD_LIBS)

pkglibexec_PROGRAMS += http/elasticrun-http
http_elasticrun_http_SOURCES = http/main.c
http_elasticrun_http_CPPFLAGS = $(http_libhttp_a_CPPFLAGS)
http_elasticrun_http_CFLAGS = $(AM_CFLAGS) $(PROGRAM_CFLAGS)
http_elasticrun_http_LINK = $(PROGRAM_LINK)
http_elasticrun_http_LDADD = $(HTTP_LIBS)

pkglibexec_PROGRAMS += http/elastic-exporter
http_elastic_exporter_SOURCES = http/exporter.c
http_elastic_exporter_CPPFLAGS = $(http_libhttp_a_CPPFLAGS)
http_elastic_exporter_CFLAGS = $(AM_CFLAGS) $(PROGRAM_CFLAGS)
http_elastic_exporter_LINK = $(PROGRAM_LINK)
http_elastic_exporter_LDADD = $(HTTP_LIBS) $(COMMON_LIBS) $(LIBUV_LIBS) $(MICROHTTPD_LIBS)

pkglibexec_PROGRAMS += http/elastic-page
http_elastic_page_SOURCES = http/page.c
nodist_http_elastic_page_SOURCES = http/page_files.h
http_elastic_page_CPPFLAGS = $(http_libhttp_a_CPPFLAGS)
http_elastic_page_CFLAGS = $(AM_CFLAGS) $(PROGRAM_CFLAGS)
http_elastic_page_LINK = $(PROGRAM_LINK)
http_elastic_page_LDADD = $(HTTP_LIBS) $(COMMON_LIBS) $(LIBUV_LIBS) $(MICROHTTPD_LIBS)

http/page_files.h: $(PAGE_FILES) http/page/embed
	$(AM_V_GEN)$(MKDIR_P) http && $(SHELL) $(srcdir)/http/page/embed $(srcdir)/http/page >$@.new && mv $@.new $@
BUILT_SOURCES += http/page_files.h
CLEANFILES += http/page_files.h
endif
PAGE_FILES = http/page/index.html http/page/page.css http/page/page.js http/page/icon.svg
EXTRA_DIST += $(PAGE_FILES) http/page/embed
