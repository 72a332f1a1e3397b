# SPDX-License-Identifier: GPL-2.0-or-later
#
# cmd/: selastic. With the first source comes:
#
#   bin_PROGRAMS += cmd/selastic
#   cmd_selastic_SOURCES = cmd/main.c ...
#   cmd_selastic_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS) $(LIBUV_CFLAGS) ...
#   cmd_selastic_CFLAGS = $(AM_CFLAGS) $(PROGRAM_CFLAGS)
#   cmd_selastic_LDFLAGS = $(PROGRAM_LDFLAGS)
#   cmd_selastic_LDADD = common/libelasticcommon.la
