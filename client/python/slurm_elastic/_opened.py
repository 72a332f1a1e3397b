# SPDX-License-Identifier: GPL-2.0-or-later
"""Directories in which others may write, or that others may rename.

A directory of checkpoints is opened once. What is below it is found from its descriptor, one name
after the other, and each entry is judged when it is open: what is read is what was judged, whatever
others put in its place. To read a checkpoint is to run what its writer wants. So an entry counts if
it belongs to this process's user or to root, and if nobody else may write in it.

The owner of the directory of checkpoints counts, too, if nobody else can have put that directory
there: who names /home/anna/checkpoint means anna's. A directory below /tmp is anybody's.

A symlink counts by its owner. It leads wherever he wants.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, Callable, FrozenSet, Iterator, List, Optional, Tuple

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_ENTRY = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_LINKS_MOST = 40  # as the kernel
_TRIES = 100


class NotTrustedError(OSError):
    """Somebody else has made it, or may write in it."""


class Directory:
    """An open directory. path is what it is called; it may lead elsewhere by now."""

    def __init__(
        self, fd: int, path: Path, trusted: FrozenSet[int], reachable: bool, note: str = ""
    ) -> None:
        self.fd, self.path, self.trusted = fd, path, trusted
        self.status = os.fstat(fd)
        self._is_reachable = reachable and bool(self.status.st_mode & 0o077)
        self.note = note

    def __enter__(self) -> Directory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1

    @property
    def pin(self) -> Path:
        """A path that leads to it for this process, while it is open."""
        return Path(f"/proc/self/fd/{self.fd}")

    @property
    def identity(self) -> Tuple[int, int]:
        return self.status.st_dev, self.status.st_ino

    def names(self) -> List[str]:
        return os.listdir(self.fd)

    def stranger(self, name: str) -> Optional[int]:
        """Who has made an entry, if he is not trusted; None if he is, or if there is none."""
        try:
            uid = os.stat(name, dir_fd=self.fd, follow_symlinks=False).st_uid
        except OSError:
            return None
        return None if uid in self.trusted else uid

    def is_at(self, name: str, of: Directory) -> bool:
        """Whether the entry is that directory."""
        with contextlib.suppress(OSError):
            found = os.stat(name, dir_fd=self.fd, follow_symlinks=False)
            return (found.st_dev, found.st_ino) == of.identity
        return False

    # ---- reading ---------------------------------------------------------------------------------

    def _judge(self, name: str, status: os.stat_result) -> None:
        path = self.path / name
        if status.st_uid not in self.trusted:
            raise NotTrustedError(
                f"{path} belongs to uid {status.st_uid}: only what is yours or root's is "
                f"read{self.note}"
            )
        if (
            self._is_reachable
            and status.st_mode & 0o022
            and not stat.S_ISLNK(status.st_mode)
            and not _is_alone(status)
        ):
            raise NotTrustedError(f"{path}: other users may write in it; chmod go-w {path}")

    def _follow(self, name: str, flags: int) -> int:
        """Open where a link leads."""
        link = os.open(name, _ENTRY, dir_fd=self.fd)
        try:
            status = os.fstat(link)
            if not stat.S_ISLNK(status.st_mode):
                raise OSError(errno.ELOOP, "it has become another entry", name)
            self._judge(name, status)
            return os.open(os.readlink("", dir_fd=link), flags, dir_fd=self.fd)
        finally:
            os.close(link)

    def _open(self, name: str, flags: int) -> Tuple[int, bool]:
        """The entry, and whether a link has led there."""
        try:
            return os.open(name, flags | os.O_NOFOLLOW, dir_fd=self.fd), False
        except OSError as error:
            # A link instead of a directory is no directory.
            if error.errno not in (errno.ELOOP, errno.ENOTDIR):
                raise
            status = os.stat(name, dir_fd=self.fd, follow_symlinks=False)
            if not stat.S_ISLNK(status.st_mode):
                raise
        return self._follow(name, flags), True

    def directory(self, name: str) -> Directory:
        """An entry that is a directory. Raises NotTrustedError, or another OSError."""
        _check_name(name)
        fd, by_link = self._open(name, _DIRECTORY)
        try:
            status = os.fstat(fd)
            trusted = self.trusted
            if by_link:
                trusted |= {status.st_uid}
            else:
                self._judge(name, status)
            return Directory(fd, self.path / name, trusted, by_link or self._is_reachable)
        except BaseException:
            os.close(fd)
            raise

    def below(self, name: str) -> Directory:
        """The same, below directories if there is "/" in the name."""
        first, _, rest = name.partition("/")
        if not rest:
            return self.directory(name)
        with self.directory(first) as found:
            return found.below(rest)

    def file(self, name: str) -> BinaryIO:
        """A regular file, below directories if there is "/" in the name."""
        above, _, last = name.rpartition("/")
        if above:
            with self.below(above) as found:
                return found.file(last)
        _check_name(name)
        fd, by_link = self._open(name, _FILE)
        try:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, "it is no regular file", name)
            if not by_link:
                self._judge(name, status)
            return os.fdopen(fd, "rb")
        except BaseException:
            with contextlib.suppress(OSError):
                os.close(fd)
            raise

    # ---- writing ---------------------------------------------------------------------------------

    def create(self, name: str) -> BinaryIO:
        """A new file."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.fdopen(os.open(name, flags, 0o644, dir_fd=self.fd), "wb")

    def make(self, name: str) -> Directory:
        """A new directory of that name, or of one like it if somebody else has taken that."""
        found = self._free(name, lambda each: os.mkdir(each, 0o700, dir_fd=self.fd))
        return self.directory(found)

    def link(self, target: str, name: str) -> str:
        """A new symlink of that name, or of one like it. Returns its name."""
        return self._free(name, lambda each: os.symlink(target, each, dir_fd=self.fd))

    @staticmethod
    def _free(name: str, make: Callable[[str], None]) -> str:
        for tried in range(_TRIES):
            each = f"{name}-{os.urandom(4).hex()}" if tried else name
            try:
                make(each)
                return each
            except FileExistsError:
                if tried == _TRIES - 1:
                    raise
        raise AssertionError

    def rename(self, name: str, to: str) -> None:
        os.rename(name, to, src_dir_fd=self.fd, dst_dir_fd=self.fd)

    def replace(self, name: str, to: str) -> None:
        os.replace(name, to, src_dir_fd=self.fd, dst_dir_fd=self.fd)

    def has(self, name: str) -> bool:
        try:
            os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def sync(self) -> None:
        os.fsync(self.fd)

    def remove(self, name: str, only: Optional[Directory] = None) -> None:
        """As far as that is possible. What a stranger has made stays.

        only  what it must be.
        """
        with contextlib.suppress(OSError):
            if self.stranger(name) is None and (only is None or self.is_at(name, only)):
                _remove(self.fd, name)


def _check_name(name: str) -> None:
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise OSError(errno.EINVAL, "it is no name of an entry", name)


def _remove(fd: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=fd)
        return
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno not in (errno.EISDIR, errno.EPERM):
            raise
    below = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
    try:
        for each in os.listdir(below):
            with contextlib.suppress(OSError):
                _remove(below, each)
    finally:
        os.close(below)
    os.rmdir(name, dir_fd=fd)


# ---- the way to a directory ----------------------------------------------------------------------


def _is_alone(status: os.stat_result) -> bool:
    """Whether the group that may write is the user's own one, with nobody else in it."""
    import grp
    import pwd

    if status.st_mode & 0o002 or status.st_uid != os.geteuid():
        return False
    try:
        user, group = pwd.getpwuid(status.st_uid), grp.getgrgid(status.st_gid)
    except (KeyError, OSError):
        return False
    is_own = user.pw_gid == status.st_gid and group.gr_name == user.pw_name
    return is_own and not set(group.gr_mem) - {user.pw_name}


def _is_open(status: os.stat_result) -> bool:
    return bool(status.st_mode & 0o022) and not _is_alone(status)


def _is_sticky(status: os.stat_result) -> bool:
    return bool(status.st_mode & stat.S_ISVTX)


def _up(fd: int) -> List[os.stat_result]:
    """An open directory, and all above it."""
    found = [os.fstat(fd)]
    for depth in range(1, 1000):
        above = os.stat("/".join([".."] * depth), dir_fd=fd)
        if (above.st_dev, above.st_ino) == (found[-1].st_dev, found[-1].st_ino):
            break
        found.append(above)
    return found


def _links(path: Path) -> Iterator[Tuple[int, os.stat_result]]:
    """Owners of the links on the way, and the directories in which these are."""
    at, rest = "/", [*reversed(os.path.abspath(path).split("/"))]
    count = 0
    while rest:
        name = rest.pop()
        if name in ("", "."):
            continue
        if name == "..":
            at = os.path.dirname(at)
            continue
        status = os.lstat(os.path.join(at, name))
        if not stat.S_ISLNK(status.st_mode):
            at = os.path.join(at, name)
            continue
        count += 1
        if count > _LINKS_MOST:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
        yield status.st_uid, os.stat(at)
        target = os.readlink(os.path.join(at, name))
        at = "/" if target.startswith("/") else at
        rest.extend(reversed(target.split("/")))


def _is_evident(path: Path, fd: int) -> bool:
    """Whether nobody but its owner, root and this user can have led the path to this directory."""
    known = {0, os.geteuid()}
    up = _up(fd)
    owner = up[0].st_uid
    for below, above in zip(up, up[1:]):
        if above.st_uid not in known | {owner}:
            return False
        if _is_open(above) and not (_is_sticky(above) and below.st_uid in known):
            return False
    return all(
        uid in known and (not _is_open(where) or _is_sticky(where)) for uid, where in _links(path)
    )


def open_base(path: Path, make: bool = False) -> Directory:
    """A directory of checkpoints. Raises OSError.

    make  it is made, if it is not there.
    """
    if make:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd = os.open(path, _DIRECTORY)
    try:
        known, owner = frozenset({0, os.geteuid()}), os.fstat(fd).st_uid
        if owner in known:
            return Directory(fd, path, known, True)
        if _is_evident(path, fd):
            return Directory(fd, path, known | {owner}, True, f", or of uid {owner}")
        note = f". Of {path}'s owner, uid {owner}, nothing is: others can have put it there"
        return Directory(fd, path, known, True, note)
    except BaseException:
        os.close(fd)
        raise


def danger(base: Directory) -> Optional[str]:
    """What others can do to the checkpoints, and what helps; None if they can do nothing."""
    path = Path(os.path.realpath(base.path))
    up = _up(base.fd)
    if _is_open(up[0]) and not _is_sticky(up[0]):
        return (
            f"other users may write in {path}, and so remove checkpoints: chmod go-w {path}, or "
            f"chmod +t {path} if they shall"
        )
    for status, where in zip(up[1:], path.parents):
        if _is_open(status) and not _is_sticky(status):
            return (
                f"other users may write in {where}, and so rename or remove {path}: chmod +t "
                f"{where}, or take another checkpoint directory"
            )
    if up[0].st_uid not in (0, os.geteuid()):
        return f"{path} belongs to uid {up[0].st_uid}, who can remove checkpoints"
    return None
