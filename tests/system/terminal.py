#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Uses a program in a terminal of 24 lines with 80 columns: terminal.py COMMAND... < STEPS

A step is a line: `see TEXT` waits until the program has written TEXT since the step before, `press
TEXT` types it (\\e: Escape, \\r: Enter). The exit status is the program's, 124 where a text does
not come within 120 seconds."""

import fcntl
import os
import pty
import select
import struct
import sys
import termios
import time

LIMIT = 120


class Terminal:
    def __init__(self, command):
        self._seen = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
            os.environ["TERM"] = "xterm"
            os.execvp(command[0], command)

    def _read(self, seconds):
        """False: the program has ended."""
        if not select.select([self.fd], [], [], max(seconds, 0))[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self._seen += data
        return bool(data)

    def see(self, text):
        end = time.monotonic() + LIMIT
        while text not in self._seen:
            if not self._read(end - time.monotonic()) or time.monotonic() > end:
                sys.stderr.write(f"not seen: {text!r}; but {self._seen[-3000:]!r}\n")
                os.kill(self.pid, 9)
                sys.exit(124)
        self._seen = b""

    def press(self, text):
        os.write(self.fd, text)

    def end(self):
        end = time.monotonic() + LIMIT
        while self._read(end - time.monotonic()) and time.monotonic() < end:
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def main():
    terminal = Terminal(sys.argv[1:])
    for line in sys.stdin:
        action, _, text = line.rstrip("\n").partition(" ")
        data = text.replace("\\e", "\x1b").replace("\\r", "\r").encode()
        terminal.see(data) if action == "see" else terminal.press(data)
    return terminal.end()


if __name__ == "__main__":
    sys.exit(main())
