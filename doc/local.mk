# SPDX-License-Identifier: GPL-2.0-or-later
#
# doc/: user/ for people who train, admin/ for sites, internals/ for who changes the code, man/, and
# run/: the run that is drawn in README.md. All of it is installed below $(docdir), in the same
# folders, so that links lead somewhere.

include doc/man/local.mk

nobase_dist_doc_DATA += \
    CONTRIBUTING.md \
    NEWS \
    README.md \
    doc/admin/configure.md \
    doc/admin/faults.md \
    doc/admin/install.md \
    doc/admin/load.md \
    doc/admin/metrics.md \
    doc/admin/others.md \
    doc/admin/placement.md \
    doc/admin/pools.md \
    doc/admin/shapes.md \
    doc/admin/upgrade.md \
    doc/admin/versions.md \
    doc/admin/versions-slurm.md \
    doc/glossary.md \
    doc/internals/architecture.md \
    doc/internals/benchmarks.md \
    doc/internals/change.md \
    doc/internals/flush.md \
    doc/internals/http.md \
    doc/internals/fuzzing.md \
    doc/internals/live.md \
    doc/internals/mlflow.md \
    doc/internals/pmix.md \
    doc/internals/pools.md \
    doc/internals/protocol.md \
    doc/internals/roles.md \
    doc/internals/serve.md \
    doc/internals/takeover.md \
    doc/internals/signals.md \
    doc/internals/states.md \
    doc/internals/fit.md \
    doc/internals/testbed.md \
    doc/stability.md \
    doc/run/demo.svg \
    doc/run/history.jsonl \
    doc/user/containers.md \
    doc/user/mlflow.md \
    doc/user/mpi.md \
    doc/user/page.png \
    doc/user/picture.svg \
    doc/user/pools.md \
    doc/user/roles.md \
    doc/user/router.md \
    doc/user/serve.md \
    doc/user/usage.svg \
    doc/user/frameworks.md \
    doc/user/script.md \
    doc/user/states.md \
    doc/user/fit.md \
    doc/user/tutorial.md \
    doc/user/watching.md
