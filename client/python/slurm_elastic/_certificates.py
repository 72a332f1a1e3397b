# SPDX-License-Identifier: GPL-2.0-or-later
"""Certificates that programs of one cluster know each other by: an authority, and what it signs.

Whoever has the key of the authority belongs to the cluster. The authority is made for one cluster,
and ends with it. So its certificates have no end, and begin before any clock of a node.

Needed besides the standard library: the program openssl.
"""

from __future__ import annotations

import ipaddress
import os
import subprocess
from typing import Dict, List

from slurm_elastic import roles

_BEGIN, _END = "20000101000000Z", "99991231235959Z"  # RFC 5280, 4.1.2.5: no end that is known
_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
_CONFIGURATION = """
[ca]
default_ca = own
[own]
database = index
new_certs_dir = .
rand_serial = yes
default_md = sha256
policy = any
[any]
commonName = supplied
[req]
distinguished_name = any
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
subjectKeyIdentifier = hash
[member]
basicConstraints = critical, CA:FALSE
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
"""


def make_authority(directory: str) -> Dict[str, str]:
    """A new one, as PEM: its certificate, and its key. It is made in that directory of its own."""
    _prepare(directory, _CONFIGURATION)
    _sign(directory, "ca", ["-selfsign", "-extensions", "authority"])
    return {name: _read(directory, f"ca.{name}") for name in ("crt", "key")}


def make_member(directory: str, authority: Dict[str, str], names: List[str]) -> None:
    """Makes own.crt and own.key of a program that is called by these addresses and names of hosts.

    ca.crt is put beside them. Only the directory keeps other users away from them.
    """
    names = [f"{'IP' if _is_address(each) else 'DNS'}:{each}" for each in dict.fromkeys(names)]
    _prepare(directory, f"{_CONFIGURATION}subjectAltName = {', '.join(names)}\n")
    for name, text in authority.items():
        _write(directory, f"ca.{name}", text)
    _sign(directory, "own", ["-cert", "ca.crt", "-extensions", "member"])
    os.unlink(os.path.join(directory, "ca.key"))


def _prepare(directory: str, configuration: str) -> None:
    _write(directory, "index", "")
    _write(directory, "openssl.cnf", configuration)


def _sign(directory: str, name: str, options: List[str]) -> None:
    """NAME.key, and NAME.crt, which ca.key signs."""
    request, key = f"{name}.csr", f"{name}.key"
    _openssl(directory, ["req", "-new", *_KEY, "-subj", f"/CN={name}"], key, request)
    options = ["-in", request, "-startdate", _BEGIN, "-enddate", _END, "-notext", *options]
    _openssl(directory, ["ca", "-batch", *options], "ca.key", f"{name}.crt")


def _openssl(directory: str, arguments: List[str], key: str, made: str) -> None:
    command, *options = arguments
    key_option = "-keyout" if command == "req" else "-keyfile"
    options += ["-config", "openssl.cnf", key_option, key, "-out", made]
    try:
        ended = subprocess.run(
            ["openssl", command, *options],
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise roles.RolesError(f"openssl, which makes the certificates for TLS: {error}") from None
    if ended.returncode:
        text = " ".join(ended.stderr.decode(errors="replace").split())
        raise roles.RolesError(f"openssl {command}, which makes certificates, failed: {text}")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _write(directory: str, name: str, text: str) -> None:
    path = os.path.join(directory, name)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


def _read(directory: str, name: str) -> str:
    with open(os.path.join(directory, name), encoding="ascii") as file:
        return file.read()
