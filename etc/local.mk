# SPDX-License-Identifier: GPL-2.0-or-later
#
# etc/: examples for a site, installed under $(examplesdir): dist_examples_DATA += etc/...
dist_examples_DATA += etc/elastic.conf
