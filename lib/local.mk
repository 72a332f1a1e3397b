# SPDX-License-Identifier: GPL-2.0-or-later
#
# lib/: the pure core, a convenience library for everything else. Standard headers only.
noinst_LTLIBRARIES += lib/libelasticcore.la

lib_libelasticcore_la_SOURCES =
