# SPDX-License-Identifier: GPL-2.0-or-later
#
# doc/: dist_man_MANS += doc/man/elasticrun.1 ..., EXTRA_DIST += doc/....md

include doc/man/local.mk

EXTRA_DIST += \
    README.md \
    doc/architecture.md \
    doc/fuzzing.md \
    doc/benchmarks.md \
    doc/faults.md \
    doc/internals/change.md \
    doc/live.md \
    doc/placement.md \
    doc/pmix.md \
    doc/shapes.md \
    doc/takeover.md \
    doc/testbed.md
