#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What Python processes of tests do first, so that PyTorch 1.13 of Debian is imported in less time.

    sitecustomize.py DIRECTORY

A sixth of an import, and of the end of a process, is the search for garbage among all objects. It
finds nothing. And libtorch_cpu.so asks for OpenCV, FFmpeg and databases, which ask for 220 more
libraries. It uses no symbol of them: they were for caffe2. Empty libraries of these names take
their places. If PyTorch did use a symbol of them, it would not load: it binds all of them at once.

The empty libraries lie beside this file (jobs of system tests) or in the build directory. As a
program, it makes a directory of them.
"""

import atexit
import contextlib
import gc
import os
import sys

USELESS = r"lib(opencv_.*|av.*|sw.*|zmq|lmdb|leveldb|snappy)\.so.*"


class BeforeTorch:
    @staticmethod
    def find_spec(name, *_):
        # Other interpreters than Debian's have other PyTorches.
        if name == "torch" and sys.prefix == "/usr":
            load_libraries()


def load_libraries():
    import ctypes

    directory = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libraries")
    if "top_builddir" in os.environ and not os.path.isdir(directory):
        directory = os.path.abspath(os.path.join(os.environ["top_builddir"], "tests", "libraries"))
        if not os.path.isdir(directory):
            import subprocess

            # Without gcc or readelf the import takes longer, and no more.
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                make_libraries(directory)
    if os.path.isdir(directory):
        for entry in os.scandir(directory):
            ctypes.CDLL(entry.path)


def make_libraries(directory):
    """An empty one for each that PyTorch asks for and does not use; none for another PyTorch."""
    import re
    import subprocess
    import tempfile

    names = re.findall(r"\(NEEDED\).*\[(.*)\]", asks_for())
    os.makedirs(os.path.dirname(directory), exist_ok=True)
    parent = tempfile.mkdtemp(dir=os.path.dirname(directory))
    try:
        os.chmod(parent, 0o755)
        for name in names:
            if re.fullmatch(USELESS, name):
                path = os.path.join(parent, name)
                command = ["gcc", "-shared", "-nostdlib", "-s", f"-Wl,-soname,{name}", "-o", path]
                subprocess.run([*command, "-x", "c", "/dev/null"], check=True)
        os.rename(parent, directory)
    except (OSError, subprocess.SubprocessError):
        import shutil

        shutil.rmtree(parent)
        if not os.path.isdir(directory):  # else another process was first
            raise


def asks_for():
    """What readelf says of Debian's libtorch_cpu.so."""
    import glob
    import subprocess

    paths = glob.glob("/usr/lib/*/libtorch_cpu.so.1.13")
    command = ["readelf", "--dynamic", *paths]
    return (
        subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        if paths
        else ""
    )


if __name__ == "__main__":
    make_libraries(os.path.abspath(sys.argv[1]))
else:
    sys.meta_path.insert(0, BeforeTorch)
    gc.set_threshold(20000, 20, 20)
    # The last of all such functions: the end of the interpreter searches, too.
    atexit.register(gc.freeze)
