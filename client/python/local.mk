# SPDX-License-Identifier: GPL-2.0-or-later
#
# client/python/: the package slurm_elastic, pure Python. pip installs it into a user's environment
# from here; `make install` puts it into a directory of its own, for PYTHONPATH. With the first module:
#
#   slurm_elasticdir = $(pkgdatadir)/python/slurm_elastic
#   dist_slurm_elastic_DATA = client/python/slurm_elastic/__init__.py ...
#   EXTRA_DIST += client/python/pyproject.toml
