# SPDX-License-Identifier: GPL-2.0-or-later
#
# client/python/: the package slurm_elastic, pure Python. pip installs it into a user's environment
# from here; `make install` puts it into a directory of its own, for PYTHONPATH.
slurm_elasticdir = $(pkgdatadir)/python/slurm_elastic
dist_slurm_elastic_DATA = \
    client/python/slurm_elastic/__init__.py \
    client/python/slurm_elastic/_boundary.py \
    client/python/slurm_elastic/_buddy.py \
    client/python/slurm_elastic/_buddy_copies.py \
    client/python/slurm_elastic/_certificates.py \
    client/python/slurm_elastic/_copies.py \
    client/python/slurm_elastic/_dcp.py \
    client/python/slurm_elastic/_events.py \
    client/python/slurm_elastic/_final.py \
    client/python/slurm_elastic/_flat.py \
    client/python/slurm_elastic/_generators.py \
    client/python/slurm_elastic/_left_behind.py \
    client/python/slurm_elastic/_listeners.py \
    client/python/slurm_elastic/_manifest.py \
    client/python/slurm_elastic/_membership.py \
    client/python/slurm_elastic/_memory.py \
    client/python/slurm_elastic/_mesh.py \
    client/python/slurm_elastic/_mistakes.py \
    client/python/slurm_elastic/_mounts.py \
    client/python/slurm_elastic/_nccl.py \
    client/python/slurm_elastic/_nodes.py \
    client/python/slurm_elastic/_opened.py \
    client/python/slurm_elastic/_packed.py \
    client/python/slurm_elastic/_parts.py \
    client/python/slurm_elastic/_progress.py \
    client/python/slurm_elastic/_step_time.py \
    client/python/slurm_elastic/_reshard.py \
    client/python/slurm_elastic/_sharded_checkpoint.py \
    client/python/slurm_elastic/_sharded_snapshot.py \
    client/python/slurm_elastic/_sharding.py \
    client/python/slurm_elastic/_sharing.py \
    client/python/slurm_elastic/_s3.py \
    client/python/slurm_elastic/_signature.py \
    client/python/slurm_elastic/_snapshot.py \
    client/python/slurm_elastic/_store.py \
    client/python/slurm_elastic/_suitable.py \
    client/python/slurm_elastic/_torch_compat.py \
    client/python/slurm_elastic/_touched.py \
    client/python/slurm_elastic/_transfer.py \
    client/python/slurm_elastic/_world.py \
    client/python/slurm_elastic/_wrapper.py \
    client/python/slurm_elastic/batches.py \
    client/python/slurm_elastic/checkpoint.py \
    client/python/slurm_elastic/dask.py \
    client/python/slurm_elastic/leaving.py \
    client/python/slurm_elastic/live.py \
    client/python/slurm_elastic/py.typed \
    client/python/slurm_elastic/ray.py \
    client/python/slurm_elastic/roles.py \
    client/python/slurm_elastic/sampler.py
EXTRA_DIST += \
    client/python/README.md \
    client/python/_build.py \
    client/python/pyproject.toml
