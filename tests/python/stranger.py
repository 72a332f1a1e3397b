# SPDX-License-Identifier: GPL-2.0-or-later
"""A program of another user that listens on a port. Only root can start one."""

import ctypes
import os
import signal
import socket

NOBODY = 65534
PR_SET_PDEATHSIG = 1


class Stranger:
    """It listens from the beginning on, and ends with close(). What it is sent it keeps."""

    def __init__(self, address="127.0.0.1"):
        self._read, write = os.pipe()
        ready, listening = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            try:
                os.setgid(NOBODY)
                os.setuid(NOBODY)
                ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
                with socket.create_server((address, 0)) as server:
                    os.write(listening, str(server.getsockname()[1]).encode())
                    while True:
                        with server.accept()[0] as one:
                            one.settimeout(0.5)
                            try:
                                os.write(write, one.recv(1000))
                            except OSError:
                                pass
            finally:
                os._exit(1)
        os.close(listening)
        os.close(write)
        self.port = int(os.read(ready, 10))
        os.close(ready)

    def close(self):
        """Ends it. Returns what it has been sent."""
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
            self._pid = 0
            with open(self._read, "rb") as file:
                self._sent = file.read()
        return self._sent
