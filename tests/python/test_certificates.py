#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Certificates of one cluster: its programs know each other, and nobody else."""

import os
import ssl
import stat
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import tap
from slurm_elastic import _certificates, roles


class Certificates(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.dir = Path(directory.name)

    def authority(self, name):
        (self.dir / name).mkdir()
        return _certificates.make_authority(str(self.dir / name))

    def member(self, name, authority, *names):
        (self.dir / name).mkdir()
        _certificates.make_member(str(self.dir / name), authority, list(names))
        return self.dir / name

    @staticmethod
    def meet(server, client, name):
        """Both shake hands, and the server reads a byte. Each demands a certificate."""
        inward, outward = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=server / "ca.crt")
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(server / "own.crt", server / "own.key")
        one = context.wrap_bio(inward, outward, server_side=True)
        context = ssl.create_default_context(cafile=client / "ca.crt")
        context.load_cert_chain(client / "own.crt", client / "own.key")
        two = context.wrap_bio(outward, inward, server_hostname=name)
        steps = [two.do_handshake, one.do_handshake, two.do_handshake, one.do_handshake]
        for step in [*steps, lambda: two.write(b"x")]:
            try:
                step()
            except ssl.SSLWantReadError:
                pass
        return one.read(1)

    def test_one_cluster(self):
        authority = self.authority("authority")
        self.assertEqual(sorted(authority), ["crt", "key"])
        head = self.member("head", authority, "192.0.2.1", "::1", "localhost", "192.0.2.1")
        worker = self.member("worker", authority, "192.0.2.2")
        for name in ("192.0.2.1", "::1", "localhost"):
            self.assertEqual(self.meet(head, worker, name), b"x")
        with self.assertRaises(ssl.SSLCertVerificationError):
            self.meet(head, worker, "192.0.2.2")
        for each in (head, worker):
            self.assertEqual(stat.S_IMODE((each / "own.key").stat().st_mode), 0o600)
            self.assertFalse((each / "ca.key").exists())

    def test_another_cluster(self):
        members = [
            self.member(name, self.authority(f"of-{name}"), "192.0.2.1") for name in ("old", "new")
        ]
        for one, two in (members, reversed(members)):
            with self.assertRaises(ssl.SSLCertVerificationError):
                self.meet(one, two, "192.0.2.1")

    def test_without_openssl(self):
        with mock.patch.dict(os.environ, {"PATH": str(self.dir)}):
            with self.assertRaisesRegex(roles.RolesError, "openssl, which makes the certificates"):
                self.authority("authority")
        # What it says is in the line.
        with self.assertRaisesRegex(roles.RolesError, "openssl ca, .* failed: .*ca.key"):
            self.member("member", {"crt": "", "key": ""}, "a")


if __name__ == "__main__":
    tap.main()
