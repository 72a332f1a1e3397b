# SPDX-License-Identifier: GPL-2.0-or-later
#
# packaging/: Debian packages and RPMs, made by scripts/package.
EXTRA_DIST += \
    packaging/README.md \
    packaging/debian/changelog \
    packaging/debian/control \
    packaging/debian/copyright \
    packaging/debian/libelastic-dev.install \
    packaging/debian/libelastic0.install \
    packaging/debian/libelastic0.symbols \
    packaging/debian/python3-slurm-elastic.install \
    packaging/debian/rules \
    packaging/debian/slurm-elastic-plugins.install \
    packaging/debian/slurm-elastic.README.Debian \
    packaging/debian/slurm-elastic.install \
    packaging/debian/slurm-elastic.lintian-overrides \
    packaging/debian/slurm-elastic.postinst \
    packaging/debian/slurm-elastic.postrm \
    packaging/debian/slurm-elastic.prerm \
    packaging/debian/source/format \
    packaging/in-root \
    packaging/rpm/rpmlint.toml \
    packaging/rpm/slurm-elastic.spec \
    packaging/test
