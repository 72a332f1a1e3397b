#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What Python processes of tests do first, so that PyTorch 1.13 of Debian is imported in less time.

    sitecustomize.py DIRECTORY

A sixth of an import, and of the end of a process, is the search for garbage among all objects. It
finds nothing. And libtorch_cpu.so asks for OpenCV, FFmpeg and databases, which ask for 220 more
libraries. It uses no symbol of them: they were for caffe2. Empty libraries of these names take
their places. If PyTorch did use a symbol of them, it would not load: it binds all of them at once.

A third of what is left is modules of Python that PyTorch imports and hardly anybody uses, such as
torch.onnx. Each of these is executed when somebody first asks for one of its names.

The empty libraries lie beside this file (jobs of system tests) or in the build directory. As a
program, it makes a directory of them. Where there are none, all modules are executed at once, too.
"""

import atexit
import gc
import os
import sys

USELESS = r"lib(opencv_.*|av.*|sw.*|zmq|lmdb|leveldb|snappy)\.so.*"
# The last of them tells C++ of tensors without memory.
LATE = frozenset(
    [
        "numpy.ma",
        "numpy.polynomial",
        "numpy.random",
        "torch.ao",
        "torch.distributions",
        "torch.hub",
        "torch.masked",
        "torch.nn.intrinsic",
        "torch.nn.qat",
        "torch.nn.quantizable",
        "torch.nn.quantized",
        "torch.onnx",
        "torch.profiler",
        "torch.quantization",
        "torch.testing",
        "torch.utils.data",
        "torch._meta_registrations",
    ]
)


class BeforeTorch:
    late: frozenset[str] = frozenset()

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        # Other interpreters than Debian's have other PyTorches.
        if name == "torch" and sys.prefix == "/usr" and load_libraries():
            cls.late = LATE
        if not cls.late or "." not in name:
            return None
        from importlib.machinery import ModuleSpec, PathFinder

        parent = sys.modules.get(name.rpartition(".")[0])
        if isinstance(parent, LateModule):
            parent.execute()
            if name in sys.modules:
                return ModuleSpec(name, Again(sys.modules[name]))
        if name not in cls.late:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec:
            spec.loader = Later(spec.loader)
        return spec


class LateModule(type(sys)):
    def __getattr__(self, name):
        if name.startswith("__") and name != "__all__":  # what is asked of all modules
            raise AttributeError(name)
        self.execute()
        if isinstance(self, LateModule):  # it has begun, and asks for its own names
            raise AttributeError(name)
        return getattr(self, name)

    def execute(self):
        import _frozen_importlib

        # Of two threads that ask, one waits, as if both imported it.
        with _frozen_importlib._ModuleLockManager(self.__name__):
            loader = self.__spec__.loader
            if isinstance(loader, Later):
                self.__spec__.loader = self.__loader__ = loader.loader
                loader.loader.exec_module(self)
                self.__class__ = type(sys)


class Later:
    """Loads a module that is executed later."""

    def __init__(self, loader):
        self.loader = loader

    def create_module(self, _):
        return None

    def exec_module(self, module):
        module.__class__ = LateModule


class Again:
    """Loads a module that its package has imported when that was executed."""

    def __init__(self, module):
        self.module, self.spec = module, module.__spec__
        module.__spec__ = None  # else Python would take that one

    def create_module(self, _):
        return self.module

    def exec_module(self, module):
        module.__spec__ = self.spec


def load_libraries():
    """Whether there are some: there are none for another PyTorch."""
    import ctypes

    directory = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libraries")
    if "top_builddir" in os.environ and not os.path.isdir(directory):
        directory = os.path.abspath(os.path.join(os.environ["top_builddir"], "tests", "libraries"))
        if not os.path.isdir(directory):
            import contextlib
            import subprocess

            # Without gcc or readelf the import takes longer, and no more.
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                make_libraries(directory)
    entries = list(os.scandir(directory)) if os.path.isdir(directory) else []
    for entry in entries:
        ctypes.CDLL(entry.path)
    return bool(entries)


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
