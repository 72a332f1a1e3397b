# SPDX-License-Identifier: GPL-2.0-or-later
"""Python processes that need not import PyTorch: forked from one that has it, which has done
nothing else. Importing takes most of the time of a short test.

A worker becomes a child of the test, as with subprocess: its father ends at once, and the test
takes its place (PR_SET_CHILD_SUBREAPER).
"""

import contextlib
import ctypes
import gc
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import time
import types

PR_SET_CHILD_SUBREAPER = 36
MODULES = ("torch", "torch.distributed", "torch.utils.data", "numpy")

_server = None


class Worker:
    """What subprocess.Popen would return for `python3 ARGUMENT...`, as far as tests use it.

    argv: ["-c", CODE, ARGUMENT...] or [SCRIPT, ARGUMENT...]. stdout, stderr: None, subprocess.PIPE
    or an open file.
    """

    def __init__(self, argv, env, stdout=None, stderr=None, text=False):
        self.returncode = None
        self.stdout, output = _pipe(stdout, 1, text)
        self.stderr, errors = _pipe(stderr, 2, text)
        try:
            self.pid = _ask(argv, env, output, errors)
        finally:
            for kind, fd in ((stdout, output), (stderr, errors)):
                if kind == subprocess.PIPE:
                    os.close(fd)

    def poll(self):
        return self._reap(os.WNOHANG)

    def wait(self, timeout=None):
        limit = time.monotonic() + (timeout or float("inf"))
        if timeout is None:
            return self._reap(0)
        while self.poll() is None:
            if time.monotonic() > limit:
                raise subprocess.TimeoutExpired(f"worker {self.pid}", timeout)
            time.sleep(0.005)
        return self.returncode

    def kill(self):
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def communicate(self, timeout=None):
        """One pipe at most: with two, the worker could wait for the one that is not read."""
        assert self.stdout is None or self.stderr is None
        said = [pipe.read() if pipe else None for pipe in (self.stdout, self.stderr)]
        self.wait(timeout)
        return tuple(said)

    def _reap(self, options):
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, options)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


def _pipe(kind, fd, text):
    """(the test's end or None, the worker's descriptor)"""
    if kind != subprocess.PIPE:
        return None, fd if kind is None else kind.fileno()
    reader, writer = os.pipe()
    return open(reader, "r" if text else "rb"), writer


def _ask(argv, env, output, errors):
    """Returns the pid."""
    request = json.dumps({"argv": argv, "env": env, "cwd": os.getcwd()}).encode()
    theirs, ours = socket.socketpair()
    with theirs, ours:
        socket.send_fds(_socket(), [b"w"], [output, errors, theirs.fileno()])
        ours.sendall(len(request).to_bytes(8, "little") + request)
        pid = int.from_bytes(ours.recv(8), "little")
    if pid:
        _socket().recv(1)  # its father has been reaped: the worker is this process's child now
    if not pid:
        raise OSError("the process that has PyTorch has ended")
    return pid


def _socket():
    """To the server, which ends when this process does."""
    global _server
    if _server is None:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "PR_SET_CHILD_SUBREAPER")
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with theirs:
            subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()]
            )
        _server = ours
    return _server


# --- in the process that has PyTorch --------------------------------------------------------------


def _serve(server):
    while True:
        message, fds, _, _ = socket.recv_fds(server, 1, 3)
        if not message:
            return None
        father = os.fork()
        if father == 0:
            server.close()
            request = _receive(socket.socket(fileno=fds[2]))
            if request is None:
                os._exit(0)
            os.dup2(fds[0], 1)
            os.dup2(fds[1], 2)
            for fd in fds[:2]:
                if fd > 2:
                    os.close(fd)
            return request
        for fd in fds:
            os.close(fd)
        os.waitpid(father, 0)
        server.sendall(b"r")


def _receive(peer):
    """Reads the request in the process that ends; what is returned is returned in the worker."""
    data = b""
    while len(data) < 8 or len(data) < 8 + int.from_bytes(data[:8], "little"):
        data += peer.recv(65536)
    pid = os.fork()
    if pid:
        peer.sendall(pid.to_bytes(8, "little"))
        return None
    peer.close()
    return json.loads(data[8:])


def _become(request):
    """Run what `python3 ARGUMENT...` would run."""
    argv = request["argv"]
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    if argv[0] == "-c":
        sys.argv = ["-c", *argv[2:]]
        sys.path[0] = ""
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(argv[1], "<string>", "exec"), main.__dict__)
    else:
        sys.argv = list(argv)
        sys.path[0] = os.path.dirname(os.path.abspath(argv[0]))
        runpy.run_path(argv[0], run_name="__main__")


def _main():
    # A quarter of an import is the work of the garbage collector, which finds nothing. What is
    # frozen is not looked at, or copied for that, in each worker.
    gc.disable()
    for name in MODULES:
        __import__(name)
    with contextlib.suppress(ImportError):
        __import__("torch._dynamo")  # which PyTorch 2 imports when it is first needed: 1.3 s
    gc.freeze()
    gc.enable()
    request = _serve(socket.socket(fileno=int(sys.argv[1])))
    if request is not None:
        _become(request)


if __name__ == "__main__":
    _main()
