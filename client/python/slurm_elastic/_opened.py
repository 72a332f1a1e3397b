# SPDX-License-Identifier: GPL-2.0-or-later
"""Directories in which others may write, or that others may rename.

A directory of checkpoints is opened once. What is below it is found from its descriptor, one name
after the other, and each entry is judged when it is open: what is read is what was judged, whatever
others put in its place. To read a checkpoint is to run what its writer wants. So an entry counts if
it belongs to this process's user or to root, and if nobody else may write in it.

The owner of the directory of checkpoints counts, too, if nobody else can have put that directory
there: who names /home/anna/checkpoint means anna's. A directory below /tmp is anybody's.

A symlink counts by its owner, and what it leads to is judged as if it were there itself: others may
have renamed a link.

What lies in a file system that another user has mounted (FUSE) is his, whatever it says itself: see
_mounts.

A file system of the network may give what a user makes to somebody else: NFS with all_squash, or
what is root's with root_squash. Then he counts, too. What the user himself has made is not told
from what others have made there.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, Callable, FrozenSet, List, NamedTuple, Optional, Tuple, Union

from . import _mounts

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_ENTRY = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_LINKS_MOST = 40  # as the kernel
_NETWORK = ("nfs", "nfs4", "cifs", "smb3")
_TRIES = 100


def _path_of(fd: int) -> str:
    return f"/proc/self/fd/{fd}"


def _owner(status: os.stat_result, mount: _mounts.Mount) -> int:
    return status.st_uid if mount.user is None else mount.user


def _look(fd: int, known: Optional[_mounts.Mount] = None) -> Tuple[int, Optional[os.stat_result]]:
    """Whose it is, and what. None: only a file system that a stranger has mounted knows."""
    mount = _mounts.of(fd, known)
    if mount.user is not None:
        return mount.user, None
    status = os.fstat(fd)
    return status.st_uid, status


class NotTrustedError(OSError):
    """Somebody else has made it, or may write in it."""


class Directory:
    """An open directory. path is what it is called; it may lead elsewhere by now."""

    def __init__(
        self,
        fd: int,
        path: Path,
        trusted: FrozenSet[int],
        reachable: bool,
        mount: _mounts.Mount,
        note: str = "",
    ) -> None:
        self.fd, self.path, self.trusted, self.mount = fd, path, trusted, mount
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
        return Path(_path_of(self.fd))

    @property
    def identity(self) -> Tuple[int, int]:
        return self.status.st_dev, self.status.st_ino

    @property
    def owner(self) -> int:
        return _owner(self.status, self.mount)

    def names(self) -> List[str]:
        return os.listdir(self.fd)

    def _find(self, name: str) -> int:
        """The entry, to look at it only: no file system is asked that is mounted there."""
        return os.open(name, _ENTRY, dir_fd=self.fd)

    def stranger(self, name: str) -> Optional[int]:
        """Who has made an entry, if he is not trusted; None if he is, or if there is none."""
        try:
            fd = self._find(name)
        except OSError:
            return None
        try:
            uid, _ = _look(fd, self.mount)
        except OSError:
            return None
        finally:
            os.close(fd)
        return None if uid in self.trusted else uid

    def is_at(self, name: str, of: Directory) -> bool:
        """Whether the entry is that directory."""
        with contextlib.suppress(OSError):
            fd = self._find(name)
            try:
                if _mounts.of(fd, of.mount).number == of.mount.number:
                    found = os.fstat(fd)
                    return (found.st_dev, found.st_ino) == of.identity
            finally:
                os.close(fd)
        return False

    # ---- reading ---------------------------------------------------------------------------------

    def _judge(self, name: str, fd: int, reachable: bool) -> _mounts.Mount:
        """reachable  others can get there, so the mode counts."""
        path, mount = self.path / name, _mounts.of(fd, self.mount)
        if mount.user is not None and mount.user not in self.trusted:
            raise NotTrustedError(
                f"{path} belongs to uid {mount.user}, who has mounted it: only what is yours or "
                f"root's is read{self.note}"
            )
        status = os.fstat(fd)
        uid = _owner(status, mount)
        if uid not in self.trusted:
            raise NotTrustedError(
                f"{path} belongs to uid {uid}: only what is yours or root's is read{self.note}"
            )
        if reachable and not stat.S_ISLNK(status.st_mode) and _is_open(status, _path_of(fd)):
            raise NotTrustedError(f"{path}: other users may write in it; chmod go-w {path}")
        return mount

    def _open(self, name: str, flags: int) -> Tuple[int, bool]:
        """The entry, and whether a link has led there."""
        found = self._find(name)
        try:
            self._judge(name, found, False)
            if stat.S_ISLNK(os.fstat(found).st_mode):
                return os.open(os.readlink("", dir_fd=found), flags, dir_fd=self.fd), True
            return _reopen(found, flags, name), False
        finally:
            os.close(found)

    def directory(self, name: str, mode: bool = True) -> Directory:
        """An entry that is a directory. Raises NotTrustedError, or another OSError.

        mode  nobody else may write in it.
        """
        _check_name(name)
        fd, by_link = self._open(name, _DIRECTORY)
        try:
            reachable = by_link or self._is_reachable
            mount = self._judge(name, fd, mode and reachable)
            return Directory(fd, self.path / name, self.trusted, reachable, mount)
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
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise OSError(errno.EINVAL, "it is no regular file", name)
            self._judge(name, fd, by_link or self._is_reachable)
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
        # Of a file system that keeps no modes, it has whatever mode that gives to all.
        return self.directory(found, mode=False)

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
            os.close(self._find(name))
        except FileNotFoundError:
            return False
        return True

    def sync(self) -> None:
        os.fsync(self.fd)

    def remove(self, name: str, only: Optional[Directory] = None) -> None:
        """As far as that is possible. What a stranger has made stays.

        only  what it must be.
        """
        with contextlib.suppress(OSError, RecursionError):  # others may have made it deep
            if self.stranger(name) is None and (only is None or self.is_at(name, only)):
                _remove(self.fd, name)


def _reopen(found: int, flags: int, name: Union[str, Path]) -> int:
    """What was found is what is opened."""
    try:
        return os.open(_path_of(found), flags)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(name)) from error


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


def _has_acl(at: str) -> bool:
    """Whether more than the mode says who may write."""
    try:
        os.getxattr(at, "system.posix_acl_access")
    except OSError as error:
        return error.errno not in (errno.ENODATA, errno.ENOTSUP)
    return True


def _is_alone(status: os.stat_result, at: str) -> bool:
    """Whether the group that may write is the user's own one, with nobody else in it."""
    import grp
    import pwd

    if status.st_mode & 0o002 or status.st_uid != os.geteuid() or _has_acl(at):
        return False
    try:
        user, group = pwd.getpwuid(status.st_uid), grp.getgrgid(status.st_gid)
    except (KeyError, OSError):
        return False
    is_own = user.pw_gid == status.st_gid and group.gr_name == user.pw_name
    return is_own and not set(group.gr_mem) - {user.pw_name}


def _is_open(status: os.stat_result, at: str) -> bool:
    """Whether others may write there; at is a path that leads to it."""
    return bool(status.st_mode & 0o022) and not _is_alone(status, at)


def _is_sticky(status: os.stat_result) -> bool:
    return bool(status.st_mode & stat.S_ISVTX)


class _Step(NamedTuple):
    """A directory or symlink that was passed on the way, and the directory in which it is."""

    uid: int
    is_link: bool
    above: os.stat_result
    owner_above: int
    is_open: bool

    def is_safe(self, known: FrozenSet[int]) -> bool:
        """Whether nobody but those can have put it there, or exchanged it."""
        return self.owner_above in known and (
            not self.is_open or (_is_sticky(self.above) and self.uid in known)
        )


def _walk(path: Path) -> Tuple[int, List[_Step], _mounts.Mount]:
    """Open a directory, one name after the other. What was passed is what has led there."""
    rest = [*reversed(os.path.abspath(path).split("/"))]
    at = os.open("/", _ENTRY)
    steps: List[_Step] = []
    try:
        mount = _mounts.of(at)
        while rest:
            name = rest.pop()
            if name in ("", "."):
                continue
            entry = os.open(name, _ENTRY, dir_fd=at)
            status, above, mount_above = os.fstat(entry), os.fstat(at), mount
            mount = _mounts.of(entry, mount_above)
            is_link = stat.S_ISLNK(status.st_mode)
            if name != "..":
                is_open = _is_open(above, _path_of(at))
                whose = _owner(status, mount), _owner(above, mount_above)
                steps.append(_Step(whose[0], is_link, above, whose[1], is_open))
            if is_link:
                target = os.readlink("", dir_fd=entry)
                os.close(entry)
                if sum(each.is_link for each in steps) > _LINKS_MOST:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
                entry = os.open("/" if target.startswith("/") else ".", _ENTRY, dir_fd=at)
                mount = _mounts.of(entry, mount_above)
                rest.extend(reversed(target.split("/")))
            os.close(at)
            at = entry
        fd = os.open(".", _DIRECTORY, dir_fd=at)
        return fd, steps, _mounts.of(fd, mount)
    finally:
        os.close(at)


def _file_system(fd: int) -> str:
    """Of which type it is."""
    return _mounts.of(fd).kind


def _given_to(fd: int) -> Optional[int]:
    """To whom a network's file system gives what this user makes, such as NFS that squashes."""
    try:
        if _file_system(fd) not in _NETWORK:
            return None
        name = f".new-{os.uname().nodename}-{os.getpid()}-{os.urandom(4).hex()}"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        made = os.open(name, flags, 0o600, dir_fd=fd)
    except (OSError, ValueError):
        return None
    try:
        return os.fstat(made).st_uid
    finally:
        os.close(made)
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=fd)


def open_base(path: Path, make: bool = False) -> Directory:
    """A directory of checkpoints. Raises OSError.

    make  it is made, if it is not there.
    """
    if make:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd, steps, mount = _walk(path)
    try:
        known, owner = frozenset({0, os.geteuid()}), _owner(os.fstat(fd), mount)
        if owner not in known or os.geteuid() == 0:
            given = _given_to(fd)
            known = known if given is None else known | {given}
        for each in steps:
            if each.is_link and each.uid not in known and not each.is_safe(known):
                raise NotTrustedError(f"{path}: a symlink on the way belongs to uid {each.uid}")
        if owner in known:
            return Directory(fd, path, known, True, mount)
        safe = known | {owner}
        # For a sticky directory it takes more: the owner himself could have made it there.
        if all(each.is_safe(safe) and (each.uid in known or not each.is_open) for each in steps):
            return Directory(fd, path, safe, True, mount, f", or of uid {owner}")
        note = f". Of {path}'s owner, uid {owner}, nothing is: others can have put it there"
        return Directory(fd, path, known, True, mount, note)
    except BaseException:
        os.close(fd)
        raise


def danger(base: Directory) -> Optional[str]:
    """What others can do to the checkpoints, and what helps; None if they can do nothing."""
    path = Path(os.path.realpath(base.path))
    at, status = str(base.pin), base.status
    if _is_open(status, at) and not _is_sticky(status):
        return (
            f"other users may write in {path}, and so remove checkpoints: chmod go-w {path}, or "
            f"chmod +t {path} if they shall"
        )
    for where in path.parents:
        at += "/.."
        status = os.stat(at)
        if _is_open(status, at) and not _is_sticky(status):
            return (
                f"other users may write in {where}, and so rename or remove {path}: chmod +t "
                f"{where}, or take another checkpoint directory"
            )
    if base.owner not in (0, os.geteuid()):
        return f"{path} belongs to uid {base.owner}, who can remove checkpoints"
    return None


# ---- what only this user may reach ---------------------------------------------------------------


def _is_private(fd: int, is_type: Callable[[int], bool]) -> bool:
    uid, status = _look(fd)
    return (
        status is not None
        and uid == os.geteuid()
        and is_type(status.st_mode)
        and not status.st_mode & 0o077
    )


def is_private(path: Union[str, Path]) -> bool:
    """Whether it is a directory of this user alone, also where others can write above it."""
    with contextlib.suppress(OSError):
        fd = os.open(path, _ENTRY)
        try:
            return _is_private(fd, stat.S_ISDIR)
        finally:
            os.close(fd)
    return False


def private_file(path: Union[str, Path]) -> BinaryIO:
    """A regular file of this user alone. Raises NotTrustedError, or another OSError."""
    found = os.open(path, _ENTRY)
    try:
        if not _is_private(found, stat.S_ISREG):
            raise NotTrustedError(f"{path} is another user's, or others can read it")
        return os.fdopen(_reopen(found, _FILE, path), "rb")
    finally:
        os.close(found)


def is_there(path: Union[str, Path]) -> bool:
    """Whether there is an entry, which may be anybody's."""
    with contextlib.suppress(OSError):
        os.close(os.open(path, _ENTRY))
        return True
    return False
