# SPDX-License-Identifier: GPL-2.0-or-later
"""A file system that another user has mounted. Only root can play that, where there is FUSE."""

import ctypes
import os
import signal
import stat
import struct

_LIBC = ctypes.CDLL(None, use_errno=True)
_NEWNS, _PRIVATE, _NOSUID_NODEV, _DETACH = 0x20000, 0x44000, 0x6, 0x2
_GETATTR, _FORGET, _INIT, _OPENDIR, _READDIR, _BATCH_FORGET = 3, 2, 26, 27, 28, 42
_PR_SET_PDEATHSIG = 1


def is_there():
    """Whether it can be mounted: in a mount namespace that this process has from here on."""
    if os.geteuid() != 0 or not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return False
    return _LIBC.unshare(_NEWNS) == 0 and _LIBC.mount(b"none", b"/", None, _PRIVATE, None) == 0


class Fuse:
    """On a directory, until close().

    uid     who has mounted it.
    claims  to whom it says that its root belongs, which is all that there is in it. None: it never
            answers.
    others  open to all (allow_other).
    """

    def __init__(self, path, uid, claims=None, others=False, mode=0o755):
        self._path, self._pid = os.fsencode(path), 0
        self._fd = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={self._fd},rootmode=40000,user_id={uid},group_id={uid}"
        options += ",allow_other" if others else ""
        if _LIBC.mount(b"x", self._path, b"fuse", _NOSUID_NODEV, options.encode()):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)
        if claims is None:
            return
        self._pid = os.fork()
        if self._pid == 0:
            try:
                _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
                while True:
                    self._answer(claims, stat.S_IFDIR | mode)
            finally:
                os._exit(0)

    def _answer(self, uid, mode):
        request = os.read(self._fd, 1 << 20)
        _, what, unique = struct.unpack_from("<IIQ", request)
        answers = {
            _INIT: struct.pack("<IIIIHHII36x", 7, 31, 65536, 0, 12, 12, 65536, 1),
            _GETATTR: struct.pack(
                "<QII6Q10I", 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, mode, 2, uid, uid, 0, 4096, 0
            ),
            _OPENDIR: bytes(16),
            _READDIR: b"",
        }
        if what not in (_FORGET, _BATCH_FORGET):
            body = answers.get(what, b"")
            error = 0 if what in answers else -2
            os.write(self._fd, struct.pack("<IiQ", 16 + len(body), error, unique) + body)

    def close(self):
        if self._fd < 0:
            return
        _LIBC.umount2(self._path, _DETACH)
        os.close(self._fd)
        self._fd = -1
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
