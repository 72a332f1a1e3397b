# SPDX-License-Identifier: GPL-2.0-or-later
"""What pip calls to build the package: setuptools, on a copy of the source.

setuptools writes beside the files that it packs. The source may belong to somebody else.
"""

import os
import shutil
import tempfile
from contextlib import contextmanager
from typing import Any, Iterator, List, Optional

from setuptools import build_meta

PACKAGE = "slurm_elastic"


@contextmanager
def _copy() -> Iterator[None]:
    source = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="slurm-elastic-") as tree:
        os.mkdir(os.path.join(tree, PACKAGE))
        files = [os.path.join(PACKAGE, name) for name in os.listdir(PACKAGE)]
        for name in ["pyproject.toml", *filter(os.path.isfile, files)]:
            shutil.copyfile(name, os.path.join(tree, name))  # without its mode: it may be read-only
        os.chdir(tree)
        try:
            yield
        finally:
            os.chdir(source)


def get_requires_for_build_wheel(config_settings: Optional[Any] = None) -> List[str]:
    """Name what setuptools needs for a wheel, without asking it: it would write for that."""
    return ["wheel"]


def build_wheel(
    wheel_directory: str,
    config_settings: Optional[Any] = None,
    metadata_directory: Optional[str] = None,
) -> str:
    """Write a wheel into the directory; return its name (PEP 517)."""
    wheel_directory = os.path.abspath(wheel_directory)
    with _copy():
        return str(build_meta.build_wheel(wheel_directory, config_settings))


def build_sdist(sdist_directory: str, config_settings: Optional[Any] = None) -> str:
    """Write a source archive into the directory; return its name (PEP 517)."""
    sdist_directory = os.path.abspath(sdist_directory)
    with _copy():
        return str(build_meta.build_sdist(sdist_directory, config_settings))


if hasattr(build_meta, "build_editable"):  # pip install -e: in the tree itself
    build_editable = build_meta.build_editable
    get_requires_for_build_editable = build_meta.get_requires_for_build_editable
