# SPDX-License-Identifier: GPL-2.0-or-later
#
# client/: libelastic.so and elastic.h, what training code calls. With the first source comes:
#
#   include_HEADERS += client/elastic.h
#   lib_LTLIBRARIES += client/libelastic.la
#   client_libelastic_la_SOURCES = client/elastic.c ...
#   client_libelastic_la_CFLAGS = $(EXPORTING_FLAGS)
#   client_libelastic_la_LDFLAGS = -version-info 0:0:0 -export-symbols-regex '^elastic_' $(MODULE_LDFLAGS)
