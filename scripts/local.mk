# SPDX-License-Identifier: GPL-2.0-or-later
#
# scripts/: what an admin or a developer runs, and the prolog and epilog parts, which are installed:
#
#   dist_pkglibexec_SCRIPTS += scripts/extension.sh
#   prologdir = $(pkglibexecdir)/prolog.d
#   dist_prolog_SCRIPTS = scripts/prolog.d/...
#   epilogdir = $(pkglibexecdir)/epilog.d
#   dist_epilog_SCRIPTS = scripts/epilog.d/...
EXTRA_DIST += \
    scripts/check \
    scripts/setup \
    scripts/testbed \
    scripts/testbed.d/commands.sh \
    scripts/testbed.d/common.sh \
    scripts/testbed.d/config.sh \
    scripts/testbed.d/database.sh \
    scripts/testbed.d/install.sh \
    scripts/testbed.d/processes.sh
