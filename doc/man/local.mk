# SPDX-License-Identifier: GPL-2.0-or-later
#
# doc/man/: manual pages, in mdoc(7).
dist_man_MANS += \
    doc/man/elastic.3 \
    doc/man/elastic.conf.5 \
    doc/man/elasticrun.1 \
    doc/man/selastic.1 \
    doc/man/spank_elastic.8
