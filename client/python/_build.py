# SPDX-License-Identifier: GPL-2.0-or-later
"""What pip calls to build the package: setuptools, on a copy of the source.

setuptools writes beside the files that it packs. The source may belong to somebody else.
"""

import gzip
import os
import shutil
import tarfile
import tempfile
from contextlib import contextmanager
from typing import Any, Iterator, List, Optional

from setuptools import build_meta

PACKAGE = "slurm_elastic"
# The licence is at the top of the tree, and beside these files in a source archive.
LICENCES = ["COPYING", os.path.join("..", "..", "COPYING")]


@contextmanager
def _copy() -> Iterator[None]:
    source = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="slurm-elastic-") as tree:
        os.mkdir(os.path.join(tree, PACKAGE))
        files = [os.path.join(PACKAGE, name) for name in os.listdir(PACKAGE)]
        for name in ["pyproject.toml", "_build.py", *filter(os.path.isfile, files)]:
            shutil.copyfile(name, os.path.join(tree, name))  # without its mode: it may be read-only
        for name in [*filter(os.path.isfile, LICENCES)][:1]:
            shutil.copyfile(name, os.path.join(tree, "COPYING"))
        with open(os.path.join(tree, "MANIFEST.in"), "w") as manifest:
            manifest.write("include COPYING _build.py\n")
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
        name = str(build_meta.build_sdist(sdist_directory, config_settings))
    if "SOURCE_DATE_EPOCH" in os.environ:
        _date(os.path.join(sdist_directory, name), int(os.environ["SOURCE_DATE_EPOCH"]))
    return name


def _date(path: str, seconds: int) -> None:
    """Give all in a .tar.gz one date and no owner: the same source makes the same bytes."""
    with tarfile.open(path) as old:
        members = [(member, old.extractfile(member)) for member in old.getmembers()]
        with open(path + ".new", "wb") as raw:
            with gzip.GzipFile("", "wb", mtime=seconds, fileobj=raw) as packed, tarfile.open(
                fileobj=packed, mode="w"
            ) as new:
                for member, content in sorted(members, key=lambda pair: pair[0].name):
                    member.mtime, member.pax_headers = seconds, {}
                    member.uid = member.gid = 0
                    member.uname = member.gname = ""
                    new.addfile(member, content)
    os.replace(path + ".new", path)


if hasattr(build_meta, "build_editable"):  # pip install -e: in the tree itself
    build_editable = build_meta.build_editable
    get_requires_for_build_editable = build_meta.get_requires_for_build_editable
