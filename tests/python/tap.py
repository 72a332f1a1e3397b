# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the unittest cases of a file and prints TAP. Each test has a time limit."""

import importlib.metadata
import importlib.util
import os
import signal
import sys
import unittest

LIMIT = 300  # seconds for one test

HAS_TORCH = importlib.util.find_spec("torch") is not None
needs_torch = unittest.skipUnless(HAS_TORCH, "PyTorch is not installed")

# Debian builds PyTorch 2 without libuv, and it wants to use it if nobody says that it must not.
if HAS_TORCH and importlib.metadata.version("torch").endswith("+debian"):
    os.environ.setdefault("USE_LIBUV", "0")
# A tenth of the import of PyTorch 1.13 is what it computes with tensors that have no data.
if HAS_TORCH and importlib.metadata.version("torch").startswith("1."):
    os.environ.setdefault("PYTORCH_DISABLE_LIBRARY", "1")


def _too_long(number, frame):
    raise TimeoutError(f"longer than {LIMIT} s")


class _Result(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self._count = 0
        self._subtest_failed = False

    def startTest(self, test):
        super().startTest(test)
        self._subtest_failed = False
        signal.alarm(LIMIT)

    def stopTest(self, test):
        signal.alarm(0)
        super().stopTest(test)

    def _line(self, ok, test, note="", details=""):
        self._count += 1
        name = test.id().split(".", 1)[-1]
        print(f"{'ok' if ok else 'not ok'} {self._count} - {name}{note}", flush=True)
        for line in details.splitlines():
            print(f"# {line}", flush=True)

    def addSuccess(self, test):
        super().addSuccess(test)
        self._line(True, test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._line(True, test, f" # SKIP {reason}")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._line(False, test, details=self.failures[-1][1])

    def addError(self, test, err):
        super().addError(test, err)
        self._line(False, test, details=self.errors[-1][1])

    def addSubTest(self, test, subtest, err):
        """The test that it is part of gets the one line, when its first part fails."""
        super().addSubTest(test, subtest, err)
        if err is not None and not self._subtest_failed:
            self._subtest_failed = True
            self._line(False, test, details=(self.failures + self.errors)[-1][1])


def main():
    signal.signal(signal.SIGALRM, _too_long)
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    print(f"1..{suite.countTestCases()}", flush=True)
    result = _Result()
    suite.run(result)
    sys.exit(not result.wasSuccessful())
