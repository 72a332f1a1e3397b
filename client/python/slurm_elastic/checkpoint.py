# SPDX-License-Identifier: GPL-2.0-or-later
"""Checkpoints of which the latest is always complete.

    checkpoint/
        latest -> 00000012      switched by rename, after all below it is on the disk
        00000012/complete.json  names, sizes and BLAKE2b of the files
        00000012/state.pt       torch.save(); state.pickle if the script does not use torch;
                                state.flat by snapshot()
        00000011/...            the one before

A directory gets its number by rename, when all its files are written and flushed. So a number is a
complete checkpoint, and what is being written when the power fails has none. complete.json is
there for file systems and people that copy half a directory, and for bits that are not what they
were; and it tells the world that has written, so that one that was believed dead, and writes last,
is not taken for the newest.

Checkpoints on S3 (s3://BUCKET/PREFIX) are states: doc/user/states.md. What elasticrun flushes from
the memory of nodes stays in STATE_DIR until the next checkpoint is on S3.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import pickle
import stat
import sys
from pathlib import Path
from typing import (
    Any,
    Dict,
    Iterable,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Set,
    TextIO,
    Tuple,
    Union,
)

from . import _events, _flat, _s3, _torch_compat, _world
from ._world import generation, incarnation, rank_and_size

PathLike = Union[str, "os.PathLike[str]"]

_FORMAT = 1
_MANIFEST = "complete.json"
_MANIFEST_MAX = 16 << 20  # bytes
_TEMPORARY = ".new-"
# In the manifest, beside "files", whose values packages before this one read as sizes.
_DIGESTS = "blake2b"
_PIECE = 4 << 20
_STATES = ("state.pt", "state.flat", "state.pickle")


class CheckpointError(RuntimeError):
    """There are checkpoints, and none of them can be used."""


def checkpoint_dir(default: PathLike = "checkpoint") -> Path:
    """The job's checkpoint directory: $ELASTIC_CHECKPOINT_DIR, else `default`.

    It is the same in each generation and after a requeue. It need not exist. Waits as init() does:
    the world before must have written what is there.
    """
    _events.loading()
    return Path(_world.value("ELASTIC_CHECKPOINT_DIR") or default)


def _place(directory: Optional[PathLike]) -> Union[Path, str]:
    """Where checkpoints are: a directory, or a URL of S3."""
    if directory is None:
        return _world.value("ELASTIC_CHECKPOINT_URL") or checkpoint_dir()
    if isinstance(directory, Path) and str(directory).startswith("s3:"):
        raise ValueError(f"{directory}: a URL of S3 is text; a Path of it loses a slash")
    return str(directory) if _s3.is_url(directory) else Path(directory)


# ---- writing -------------------------------------------------------------------------------------


def save(
    state: Any,
    directory: Optional[PathLike] = None,
    *,
    keep: int = 2,
    rank: Optional[int] = None,
    dcp: bool = False,
    background: bool = False,
) -> Union[Path, str, None]:
    """Write `state` as the latest checkpoint. Only rank 0 does, and gets the path. No collective.

    state      anything that torch.save() can write; without torch, anything that pickle can write.
    directory  checkpoint_dir() by default; created if needed. Or s3://BUCKET/PREFIX, which
               `elasticrun --checkpoint-dir` makes the default; rank 0 gets the URL then.
    keep       number of complete checkpoints to keep, the new one included. While it is written
               there
               is one more.
    rank       this process's rank, if it is not that of torch.distributed or $RANK.
    dcp        True: by torch.distributed.checkpoint, for a state of which each rank has a part. All
               ranks call it: a collective. `state` is a dictionary of objects by name: models as
               they are, optimizers of their parameters, others with state_dict(), and plain values.
               load_latest(dcp=True) reads it in a world of any size. Needs PyTorch 2.6.
    background  True, with dcp: return when the state is copied, in host memory; a thread writes it.
               The next save(), leave() and the end of the process wait for it; so does
               wait_for_save(), which says whether it has failed.

    Raises OSError, for a full disk for example. The latest checkpoint is then still the one before.
    With dcp it is raised on all ranks, and ValueError by a PyTorch that is too old.
    """
    if dcp:
        if rank is not None:
            raise ValueError("rank beside dcp=True: torch.distributed knows the ranks")
        return _by_ranks().save(state, _place(directory), keep, background)
    if background:
        raise ValueError("background=True goes with dcp=True only")
    if (rank_and_size()[0] if rank is None else rank) != 0:
        return None
    place = _place(directory)
    written: List[str] = []
    with _new_checkpoint(place, keep, written) as path:
        if "torch" in sys.modules:
            sys.modules["torch"].save(state, str(path / "state.pt"))
        else:
            with open(path / "state.pickle", "wb") as file:
                pickle.dump(state, file, protocol=4)
    return written[0] if isinstance(place, str) else _latest(place, verify=False)


def _by_ranks() -> Any:
    """What only states of many ranks need. It imports this module."""
    from . import _dcp

    return _dcp


def wait_for_save() -> None:
    """Wait until what save(background=True) writes, if anything, is the latest checkpoint.

    Raises what save() raises.
    """
    _by_ranks().wait()


def say(line: str) -> None:
    print(f"slurm_elastic: {line}", file=sys.stderr, flush=True)


def new_checkpoint(
    directory: Optional[PathLike] = None, *, keep: int = 2
) -> contextlib.AbstractContextManager[Path]:
    """A directory to write any files into, which becomes the latest checkpoint when the block ends
    without an exception. For formats of one's own; one process at a time writes.

        with slurm_elastic.new_checkpoint() as path:
            numpy.savez(path / "model.npz", **parameters)
    """
    return _new_checkpoint(_place(directory), keep, [])


@contextlib.contextmanager
def _new_checkpoint(
    place: Union[Path, str], keep: int, written: List[str], step: Optional[int] = None
) -> Iterator[Path]:
    """`written` gets the URL of what was written to S3. step: of the state, now by default."""
    if keep < 1:
        raise ValueError(f"keep={keep}: must be at least 1")
    if isinstance(place, str):
        with _s3.new_directory() as temporary:
            yield temporary
            _seal(temporary, step)
            written.append(_s3.push(temporary, place, keep))
            _drop_flushed(temporary)
        return
    _wait_for_other()
    base = place
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    _remove_leftovers(base)
    temporary = base / f"{_TEMPORARY}{os.uname().nodename}-{os.getpid()}"
    temporary.mkdir(mode=0o700)
    try:
        yield temporary
        _seal(temporary, step)
        number = _publish(base, temporary)
    except BaseException:
        remove_tree(temporary)
        raise
    _point_latest(base, number)
    _prune(base, number, keep)


def _wait_for_other() -> None:
    """A save in the background is still at work in the same directory."""
    module = sys.modules.get(f"{__package__}._dcp")
    try:
        if module is not None:
            module.wait()
    except OSError as error:
        say(str(error))


def _drop_flushed(newer: Path) -> None:
    """Remove what was flushed from the memory of nodes, of the same job, before this checkpoint."""
    key = _key(newer)
    base = _world.value("ELASTIC_CHECKPOINT_DIR")
    if key is None or not _world.value("ELASTIC_CHECKPOINT_URL") or not base:
        return
    for number in _numbers(Path(base)):
        path = Path(base) / _name(number)
        before = _key(path)
        if before is not None and before[0] == key[0] and before < key:
            remove_tree(path)


def _prune(base: Path, number: int, keep: int) -> None:
    """Remove checkpoints before this number that have `keep` newer usable ones.

    Whether a checkpoint is usable is judged by what this process knows.
    """
    usable = 0
    for each in _newest_first(base, _numbers(base)):
        path = base / _name(each)
        if usable >= keep and each < number:
            remove_tree(path)
        elif str(path.absolute()) not in _bad and _incomplete(path) is None:
            usable += 1


def _name(number: int) -> str:
    return f"{number:08d}"


def _numbers(base: Path) -> List[int]:
    """Numbers of the checkpoints, the newest first."""
    try:
        return sorted((int(n) for n in os.listdir(base) if n.isdecimal()), reverse=True)
    except FileNotFoundError:
        return []


def remove_tree(path: Path) -> None:
    """As far as that is possible."""
    import shutil

    shutil.rmtree(path, ignore_errors=True)


def _flush(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _digest(path: Path) -> str:
    found = hashlib.blake2b(digest_size=32)
    with open(path, "rb", buffering=0) as file:
        for piece in iter(lambda: file.read(_PIECE), b""):
            found.update(piece)
    return found.hexdigest()


def _uses_digests() -> bool:
    return os.environ.get("ELASTIC_CHECKPOINT_DIGEST") != "0"


def _seal(path: Path, step: Optional[int]) -> None:
    """Flush all files to the disk, and write the list of them last.

    Digests are computed meanwhile, while the files are still in memory.
    """
    import concurrent.futures

    files: Dict[str, int] = {}
    digests: Dict[str, concurrent.futures.Future[str]] = {}
    with concurrent.futures.ThreadPoolExecutor(max_workers=1) as reader:
        for folder, _, names in os.walk(path):
            for name in names:
                file = Path(folder, name)
                key = str(file.relative_to(path))
                if _uses_digests():
                    digests[key] = reader.submit(_digest, file)
                _flush(file)
                files[key] = file.stat().st_size
            _flush(Path(folder))
        found = {name: each.result() for name, each in digests.items()}
    if not files:
        raise ValueError("a checkpoint without files")
    with open(path / _MANIFEST, "w") as manifest:
        step = _events.step() if step is None else step
        place = {"incarnation": incarnation(), "generation": generation(), "step": step}
        json.dump(
            {"format": _FORMAT, **place, "files": files, **({_DIGESTS: found} if found else {})},
            manifest,
        )
        manifest.flush()
        os.fsync(manifest.fileno())
    _flush(path)


def _publish(base: Path, temporary: Path) -> int:
    """Give the directory the next free number."""
    number = max(_numbers(base), default=0) + 1
    while True:
        try:
            os.rename(temporary, base / _name(number))
            break
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
            number += 1  # somebody else writes, too
    _flush(base)
    return number


class _Written(NamedTuple):
    """By which world a checkpoint was written."""

    job: str
    restarts: int
    generation: int


def _open_manifest(path: Path) -> TextIO:
    """Of a directory that anybody may have made: nobody waits for it, and it is not long."""
    file = open(
        path / _MANIFEST, opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK, 0)
    )
    status = os.fstat(file.fileno())
    is_one = stat.S_ISREG(status.st_mode) and status.st_size <= _MANIFEST_MAX
    if is_one and status.st_uid in _trusted(path.parent):
        return file
    file.close()
    raise ValueError(f"{_MANIFEST} is no manifest, or another user's")


def _written(path: Path) -> Optional[_Written]:
    """The world that has written a checkpoint; None if unknown, or not of an elastic job."""
    try:
        with _open_manifest(path) as file:
            manifest = json.load(file)
        job, restarts = manifest["incarnation"].split(".")
        return _Written(job, int(restarts), int(manifest["generation"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _newest_first(base: Path, numbers: List[int]) -> List[int]:
    """Checkpoints by their number, except those that a world wrote too late.

    A world wrote too late if a later world of the same job had written already. Such checkpoints
    come last.
    """
    written = {number: _written(base / _name(number)) for number in sorted(numbers)}
    newest: Dict[str, _Written] = {}
    late = set()
    for number, each in written.items():
        if each is not None:
            newest[each.job] = max(newest.get(each.job, each), each)
            if each < newest[each.job]:
                late.add(number)
    return sorted(written, key=lambda number: (number not in late, number), reverse=True)


def _point_latest(base: Path, number: int) -> None:
    link = base / f"{_TEMPORARY}latest-{os.uname().nodename}-{os.getpid()}"
    with contextlib.suppress(FileNotFoundError):
        link.unlink()
    os.symlink(_name(number), link)
    os.replace(link, base / "latest")
    _flush(base)


def _remove_leftovers(base: Path) -> None:
    """Remove what a writer that was killed has left.

    A generation begins when the one before has ended. A process that still writes here is a
    mistake: it had better fail than replace what comes now.
    """
    for name in os.listdir(base):
        if name.startswith(_TEMPORARY):
            path = base / name
            if path.is_dir() and not path.is_symlink():
                remove_tree(path)
            else:
                with contextlib.suppress(OSError):
                    path.unlink()


# ---- reading -------------------------------------------------------------------------------------


def latest_checkpoint(directory: Optional[PathLike] = None) -> Optional[Path]:
    """The directory of the latest complete checkpoint; None if there is no checkpoint yet.

    Its files are compared with their digests, once per process: 1 s for each GB, nothing with
    $ELASTIC_CHECKPOINT_DIGEST=0.

    Raises CheckpointError if there are checkpoints and no complete one: a new start would lose
    them.
    """
    _events.loading()
    place = _place(directory)
    if not isinstance(place, str):
        return _latest(place, verify=_uses_digests())
    return _newer(_copy_of(place), None if directory is not None else _flushed())


def _copy_of(url: str) -> Optional[Path]:
    """The copy of the latest checkpoint on S3; None if there is no checkpoint yet."""
    damage: Optional[str] = None
    for _ in range(2):  # a copy that was there already, and is damaged, is made again
        try:
            copy = _s3.pull(url)
        except OSError as error:
            raise CheckpointError(str(error)) from error
        damage = _corrupt(copy) if copy is not None and _uses_digests() else None
        if copy is None or damage is None:
            return copy
        print(f"slurm_elastic: {copy} is copied again: {damage}", file=sys.stderr, flush=True)
        _bad.discard(str(copy.absolute()))
        remove_tree(copy)
    raise CheckpointError(f"{url}: the copy on this node is damaged each time: {damage}")


def _flushed() -> Optional[Path]:
    """What elasticrun has brought from the memory of nodes to the file system, if it is usable."""
    base = _world.value("ELASTIC_CHECKPOINT_DIR")
    try:
        return _latest(Path(base), verify=_uses_digests()) if base else None
    except CheckpointError as error:
        print(f"slurm_elastic: {error}", file=sys.stderr, flush=True)
        return None


def _key(path: Path) -> Optional[Tuple[str, int, int, float]]:
    """Job, restarts, generation and step of a checkpoint; None if unknown."""
    written = _written(path)
    if written is None:
        return None
    with contextlib.suppress(OSError, ValueError, TypeError, AttributeError, KeyError):
        step = json.loads((path / _MANIFEST).read_text())["step"]
        return (*written, float("inf") if step is None else float(step))
    return (*written, float("inf"))


def _newer(far: Optional[Path], near: Optional[Path]) -> Optional[Path]:
    """The checkpoint on S3, or the one that was flushed. Of two jobs the flushed one is ours."""
    if far is None or near is None:
        return far or near
    there, here = _key(far), _key(near)
    job = (incarnation() or "").split(".")[0]
    if here is None or here[0] != job:
        return far
    return near if there is None or there[0] != job or here > there else far


def _latest(base: Path, verify: bool) -> Optional[Path]:
    numbers = _numbers(base)
    with contextlib.suppress(OSError, ValueError):
        latest = int(os.readlink(base / "latest"))
        numbers = [number for number in numbers if number <= latest]
    reasons: List[str] = []
    for number in _newest_first(base, numbers):
        path = base / _name(number)
        reason = _incomplete(path)
        damage = None if reason is not None or not verify else _corrupt(path)
        if reason is None and damage is None:
            for skipped in reasons:
                print(f"slurm_elastic: {skipped}: using {path}", file=sys.stderr, flush=True)
            return path
        reasons.append(
            f"{path} is not complete: {reason}"
            if reason is not None
            else f"{path} is corrupt: {damage}"
        )
    if reasons:
        raise CheckpointError("; ".join(reasons))
    return None


def _stranger(path: Path, base: Path, names: Iterable[str]) -> Optional[str]:
    """Whose a checkpoint is, if neither the user's, nor root's, nor that of who owns the directory.

    Who may write there is not trusted for that: to read a checkpoint may be to run a program. A
    link of the user's own leads wherever he wants.
    """
    status = path.lstat()
    found = {status.st_uid}
    if not stat.S_ISLNK(status.st_mode):
        found |= {(path / name).lstat().st_uid for name in names}
    for uid in sorted(found - _trusted(base)):
        return f"it belongs to uid {uid}: only what is yours, root's or of {base}'s owner is read"
    return None


def _trusted(base: Path) -> Set[int]:
    return {os.geteuid(), 0, base.stat().st_uid}


def _open_trusted(path: Path) -> int:
    """The directory of a checkpoint, open; or the one to which a link of the user's leads."""
    flags, trusted = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, _trusted(path.parent)
    fd = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(fd)
        if status.st_uid not in trusted:
            raise CheckpointError(f"{path} belongs to uid {status.st_uid}")
        if stat.S_ISLNK(status.st_mode):
            return os.open(path.parent / os.readlink("", dir_fd=fd), flags)
        if status.st_mode & 0o022 and path.parent.stat().st_mode & 0o077:
            raise CheckpointError(f"{path}: other users may write in it; chmod go-w {path}")
        return os.open(f"/proc/self/fd/{fd}", flags)
    finally:
        os.close(fd)


@contextlib.contextmanager
def pinned(path: Path) -> Iterator[Path]:
    """The same checkpoint, by a name that leads to it whatever others put in its place meanwhile.

    Raises CheckpointError if others than its owner may have put files into it.
    """
    fd = _open_trusted(path)
    try:
        yield Path(f"/proc/self/fd/{fd}")
    finally:
        os.close(fd)


def _incomplete(path: Path, base: Optional[Path] = None) -> Optional[str]:
    """Why the checkpoint cannot be used; None if it can. base: the directory of checkpoints."""
    try:
        stranger = _stranger(path, base or path.parent, (_MANIFEST,))
        if stranger is not None:
            return stranger
        text = (path / _MANIFEST).read_text()
        if not text:
            return f"{_MANIFEST} is empty"
        manifest = json.loads(text)
        if manifest["format"] != _FORMAT:
            return f"format {manifest['format']!r}, this package reads {_FORMAT}"
        for name, size in manifest["files"].items():
            found = (path / name).stat().st_size
            if found != size:
                return f"{name} has {found} bytes of {size}"
        return _stranger(path, base or path.parent, manifest["files"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return str(error)


# By this process.
_verified: Set[Tuple[str, int, int]] = set()
_bad: Set[str] = set()


def _corrupt(path: Path) -> Optional[str]:
    """What is wrong with the files of a complete checkpoint; None if nothing is."""
    try:
        with open(path / _MANIFEST) as file:
            status = os.fstat(file.fileno())
            digests = json.load(file).get(_DIGESTS, {})
        known = (str(path.absolute()), status.st_ino, status.st_mtime_ns)
        if known in _verified:
            return None
        for name, digest in digests.items():
            if _digest(path / name) != digest:
                _bad.add(known[0])
                return f"{name} is not what was written, its BLAKE2b is another"
    except (OSError, ValueError, TypeError, AttributeError) as error:
        return str(error)
    _verified.add(known)
    return None


def load_latest(
    directory: Optional[PathLike] = None,
    *,
    map_location: Any = "cpu",
    into: Optional[Dict[str, Any]] = None,
    dcp: bool = False,
) -> Optional[Any]:
    """The state that save() has written last; None if there is none yet. Call it on every rank.

    directory     checkpoint_dir() by default.
    map_location  of torch.load(). With the default, ranks do not fill the device from which rank 0
                  has
                  saved; load_state_dict() moves tensors to where the model is.

    dcp           True: what save(dcp=True) has written. A collective call of all ranks.
    into          with dcp: a dictionary like the one that was saved, with the model as it is now,
                  sharded for this world. Its objects get their state, its plain values are
                  replaced. It is returned, too.

    Raises CheckpointError if there are checkpoints and no complete one. As with any pickle, load
    only what you trust.
    """
    if dcp or into is not None:
        if not dcp or into is None:
            raise ValueError(
                "load_latest(): dcp=True goes with into={...}, and the other way round"
            )
        state = _by_ranks().load(into, directory, _place(directory))
        _events.training()
        return state
    path = latest_checkpoint(directory)
    if path is None:
        _events.training()
        return None
    return load_from(path, map_location)


def load_from(path: Path, map_location: Any = "cpu") -> Any:
    """The state of that checkpoint, which latest_checkpoint() has returned."""
    with pinned(path) as found:
        state = _read_state(path, found, map_location)
    _events.training()
    return state


def _read_state(name: Path, path: Path, map_location: Any) -> Any:
    if (path / "state.pt").exists():
        return _torch_compat.load(str(path / "state.pt"), map_location)
    if (path / "state.flat").exists():
        with open(path / "state.flat", "rb") as file:
            return _flat.read(file, map_location)
    if (path / "state.pickle").exists():
        with open(path / "state.pickle", "rb") as file:
            return pickle.load(file)
    if _by_ranks().is_one(path):
        raise CheckpointError(
            f"{name} was written by save(dcp=True): read it by load_latest(into={{...}}, dcp=True)"
        )
    raise CheckpointError(f"{name}: has none of {', '.join(_STATES)}: was not written by save()")
