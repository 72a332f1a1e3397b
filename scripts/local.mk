# SPDX-License-Identifier: GPL-2.0-or-later
#
# scripts/: what an admin or a developer runs; the script of extension jobs; prolog and epilog parts,
# which an admin links into the directories that slurm.conf names.
dist_pkglibexec_SCRIPTS += scripts/elastic-mail scripts/extension.sh scripts/successor.sh
prologdir = $(pkglibexecdir)/prolog.d
dist_prolog_SCRIPTS = scripts/prolog.d/50-elastic
epilogdir = $(pkglibexecdir)/epilog.d
dist_epilog_SCRIPTS = scripts/epilog.d/50-elastic

EXTRA_DIST += \
    scripts/README.md \
    scripts/build.sh \
    scripts/check \
    scripts/demo \
    scripts/faults \
    scripts/fuzz \
    scripts/interfaces \
    scripts/matrix \
    scripts/matrix.d/slurms.sh \
    scripts/matrix.d/systems.sh \
    scripts/package \
    scripts/python-style \
    scripts/python-style.txt \
    scripts/root.sh \
    scripts/setup \
    scripts/soak \
    scripts/testbed \
    scripts/testbed.d/cloud.sh \
    scripts/testbed.d/commands.sh \
    scripts/testbed.d/common.sh \
    scripts/testbed.d/config.sh \
    scripts/testbed.d/database.sh \
    scripts/testbed.d/install.sh \
    scripts/testbed.d/isolation.sh \
    scripts/testbed.d/namespace.sh \
    scripts/testbed.d/nodes.sh \
    scripts/testbed.d/own-mounts \
    scripts/testbed.d/processes.sh
