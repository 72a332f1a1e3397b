# SPDX-License-Identifier: GPL-2.0-or-later
#
# notice/: elastic-notice, which the epilog starts. It has no part in Slurm.
pkglibexec_PROGRAMS += notice/elastic-notice
notice_elastic_notice_SOURCES = \
    agent/member/http.c \
    agent/member/http.h \
    common/conf_file.c \
    common/conf_file.h \
    common/files.c \
    common/files.h \
    common/local_service.c \
    common/local_service.h \
    common/log.c \
    common/log.h \
    common/stop.c \
    common/stop.h \
    common/tcp_sockets.c \
    common/tcp_sockets.h \
    notice/main.c
notice_elastic_notice_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS) $(LIBUV_CFLAGS)
notice_elastic_notice_CFLAGS = $(AM_CFLAGS) $(PROGRAM_CFLAGS)
notice_elastic_notice_LINK = $(PROGRAM_LINK)
# It always asks. From it, packages know that they need libcurl, which other programs load when they need it.
notice_elastic_notice_LDADD = $(CORE_LIBS) $(JSONC_LIBS) $(LIBUV_LIBS) $(CURL_LIBS)

EXTRA_DIST += notice/README.md
