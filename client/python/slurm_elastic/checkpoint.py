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
import os
import pickle
import re
import sys
from pathlib import Path
from typing import Any, BinaryIO, Callable, Dict, Iterator, List, Optional, Set, Tuple, Union

from . import _events, _flat, _manifest, _s3, _torch_compat, _world, sampler
from ._manifest import Written, uses_digests, written_by
from ._opened import Directory, NotTrustedError, danger, open_base
from ._world import generation, incarnation, rank_and_size

PathLike = Union[str, "os.PathLike[str]"]

_TEMPORARY = ".new-"
_NUMBER = re.compile(r"[0-9]{8,18}")
_MOST = 99999999999999999  # of the numbers that are given; elasticrun has the same
# What a rename says if somebody else has taken the name: with a directory, a file, for good, or
# with what he has mounted.
_TAKEN = (
    errno.EEXIST,
    errno.ENOTEMPTY,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EPERM,
    errno.EACCES,
    errno.EBUSY,
)


class CheckpointError(RuntimeError):
    """There are checkpoints, and none of them can be used."""


def checkpoint_dir(default: PathLike = "checkpoint") -> Path:
    """The job's checkpoint directory: $ELASTIC_CHECKPOINT_DIR, else `default`.

    It is the same in each generation and after a requeue. It need not exist. Waits as init() does:
    the world before must have written what is there.
    """
    _events.loading()
    return Path(_world.value("ELASTIC_CHECKPOINT_DIR") or default)


def place_of(directory: Optional[PathLike]) -> Union[Path, str]:
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
    sampler.tell_if_left_out(state)
    if dcp:
        if rank is not None:
            raise ValueError("rank beside dcp=True: torch.distributed knows the ranks")
        return _by_ranks().save(state, place_of(directory), keep, background)
    if background:
        raise ValueError("background=True goes with dcp=True only")
    if (rank_and_size()[0] if rank is None else rank) != 0:
        return None
    place = place_of(directory)
    written: List[Union[Path, str]] = []
    with new_directory(place, keep, written) as new:
        if "torch" in sys.modules:
            with new.create("state.pt") as file:
                _torch_compat.save(state, file)
        else:
            with new.create("state.pickle") as file:
                pickle.dump(state, file, protocol=4)
    return written[0]


def _by_ranks() -> Any:
    """What only states of many ranks need. It imports this module."""
    from . import _dcp

    return _dcp


def wait_for_save() -> None:
    """Wait until what save(background=True) writes, if anything, is the latest checkpoint.

    Raises what save() raises.
    """
    _by_ranks().wait()


_said: Set[str] = set()


def say(line: str) -> None:
    print(f"slurm_elastic: {line}", file=sys.stderr, flush=True)


def say_once(line: str) -> None:
    if line not in _said:
        _said.add(line)
        say(line)


def _warn(base: Directory) -> None:
    """Of what others can do to the checkpoints: once in a job, as a rule."""
    if rank_and_size()[0] == 0:
        with contextlib.suppress(OSError):
            found = danger(base)
            if found is not None:
                say_once(found)


@contextlib.contextmanager
def new_checkpoint(directory: Optional[PathLike] = None, *, keep: int = 2) -> Iterator[Path]:
    """A directory to write any files into, which becomes the latest checkpoint when the block ends
    without an exception. For formats of one's own; one process at a time writes.

        with slurm_elastic.new_checkpoint() as path:
            numpy.savez(path / "model.npz", **parameters)
    """
    with new_directory(place_of(directory), keep) as new:
        yield new.path


@contextlib.contextmanager
def new_directory(
    place: Union[Path, str],
    keep: int,
    written: Optional[List[Union[Path, str]]] = None,
    step: Optional[int] = None,
) -> Iterator[Directory]:
    """The same, open.

    written  gets the path, or the URL on S3.
    step     of the state; now by default.
    """
    if keep < 1:
        raise ValueError(f"keep={keep}: must be at least 1")
    written = [] if written is None else written
    if isinstance(place, str):
        with _s3.new_directory() as temporary, open_base(temporary) as new:
            yield new
            _seal(new, step)
            written.append(_s3.push(temporary, place, keep))
            _drop_flushed(new)
        return
    _wait_for_other()
    with open_base(place, make=True) as base:
        _warn(base)
        _remove_leftovers(base)
        with base.make(f"{_TEMPORARY}{os.uname().nodename}-{os.getpid()}") as new:
            try:
                yield new
                _seal(new, step)
                number = _publish(base, new)
            except BaseException:
                base.remove(new.path.name, new)
                raise
        _point_latest(base, number)
        _prune(base, number, keep)
        written.append(base.path / _name(number))


def _wait_for_other() -> None:
    """A save in the background is still at work in the same directory."""
    module = sys.modules.get(f"{__package__}._dcp")
    try:
        if module is not None:
            module.wait()
    except OSError as error:
        say(str(error))


def _drop_flushed(newer: Directory) -> None:
    """Remove what was flushed from the memory of nodes, of the same job, before this checkpoint."""
    key = key_of(newer)
    path = _world.value("ELASTIC_CHECKPOINT_DIR")
    if key is None or not _world.value("ELASTIC_CHECKPOINT_URL") or not path:
        return
    with contextlib.suppress(OSError), open_base(Path(path)) as base:
        for number in _numbers(_makers(base)):
            with contextlib.suppress(OSError), base.directory(_name(number)) as each:
                before = key_of(each)
                if before is not None and before[0] == key[0] and before < key:
                    base.remove(_name(number))


def _prune(base: Directory, number: int, keep: int) -> None:
    """Remove checkpoints before this number that have `keep` newer usable ones.

    Whether a checkpoint is usable is judged by what this process knows.
    """
    usable = 0
    for each in _newest_first(base, _numbers(_makers(base))):
        if usable >= keep and each < number:
            base.remove(_name(each))
        elif _is_usable(base, _name(each)):
            usable += 1


def _is_usable(base: Directory, name: str) -> bool:
    try:
        with base.directory(name) as found:
            content, known = _manifest.read(found)
            return known not in _bad and _manifest.lacking(found, content) is None
    except _manifest.UNUSABLE:
        return False


def _name(number: int) -> str:
    return f"{number:08d}"


def _makers(base: Directory) -> Dict[str, Optional[int]]:
    """The names that are numbers, and which stranger has made each; None if nobody strange has.

    Each costs a question to the file system, and others may have made many.
    """
    return {name: base.stranger(name) for name in base.names() if _is_number(name)}


def _numbers(makers: Dict[str, Optional[int]]) -> List[int]:
    """Numbers of the checkpoints, the newest first; of those that strangers have made none."""
    return sorted((int(name) for name, uid in makers.items() if uid is None), reverse=True)


def _is_number(name: str) -> bool:
    return _NUMBER.fullmatch(name) is not None and _name(int(name)) == name


def _pass_over_strangers(base: Directory, makers: Dict[str, Optional[int]]) -> None:
    """Say what others have put there.

    Raises CheckpointError if there is nothing else, and the directory is somebody else's, too: then
    it was named for what is in it.
    """
    strange = [(name, uid) for name, uid in sorted(makers.items()) if uid is not None]
    if not strange:
        return
    more = f", and {len(strange) - 1} more" if len(strange) > 1 else ""
    first = f"{base.path / strange[0][0]} of uid {strange[0][1]}"
    line = f"{first} is left aside{more}: only what is yours or root's is read{base.note}"
    if len(strange) == len(makers) and base.owner not in base.trusted:
        raise CheckpointError(f"{line}. Copy it to go on from it")
    say_once(line)


def remove_tree(path: Path) -> None:
    """As far as that is possible."""
    import shutil

    shutil.rmtree(path, ignore_errors=True)


def _seal(new: Directory, step: Optional[int]) -> None:
    """Flush all files to the disk, and write the list of them last.

    Digests are computed meanwhile, while the files are still in memory.
    """
    step = _events.step() if step is None else step
    place = {"incarnation": incarnation(), "generation": generation(), "step": step}
    _manifest.write(new, place)


def _publish(base: Directory, new: Directory) -> int:
    """Give the directory the next free number."""
    taken = set(base.names())
    largest = max(_numbers(_makers(base)), default=0)
    number = largest + 1
    while True:
        if number > _MOST:
            raise OSError(
                f"{base.path}: there is a checkpoint with the number {largest}, and larger ones "
                f"than {_MOST} are not made"
            )
        name = _name(number)
        if name not in taken:
            try:
                base.rename(new.path.name, name)
                break
            except OSError as error:
                if error.errno not in _TAKEN or not base.has(name):
                    raise
        number += 1  # somebody else writes, too
    base.sync()
    if not base.is_at(name, new):
        raise OSError(f"{base.path / name} is another directory than the one that was written")
    return number


def _newest_first(base: Directory, numbers: List[int]) -> List[int]:
    """Checkpoints by their number, except those that a world wrote too late.

    A world wrote too late if a later world of the same job had written already. Such checkpoints
    come last.
    """
    written = {number: _written(base, number) for number in sorted(numbers)}
    newest: Dict[str, Written] = {}
    late = set()
    for number, each in written.items():
        if each is not None:
            newest[each.job] = max(newest.get(each.job, each), each)
            if each < newest[each.job]:
                late.add(number)
    return sorted(written, key=lambda number: (number not in late, number), reverse=True)


def _written(base: Directory, number: int) -> Optional[Written]:
    with contextlib.suppress(OSError), base.directory(_name(number)) as found:
        return written_by(found)
    return None


def _point_latest(base: Directory, number: int) -> None:
    link = base.link(_name(number), f"{_TEMPORARY}latest-{os.uname().nodename}-{os.getpid()}")
    try:
        base.replace(link, "latest")
    except OSError:
        base.remove(link)
        uid = base.stranger("latest")
        if uid is None:
            raise
        say_once(f"{base.path}/latest is left aside: uid {uid} has put it there")
    base.sync()


def _remove_leftovers(base: Directory) -> None:
    """Remove what a writer that was killed has left.

    A generation begins when the one before has ended. A process that still writes here is a
    mistake: it had better fail than replace what comes now.
    """
    for name in base.names():
        if name.startswith(_TEMPORARY):
            base.remove(name)


# ---- reading -------------------------------------------------------------------------------------


def latest_checkpoint(directory: Optional[PathLike] = None) -> Optional[Path]:
    """The directory of the latest complete checkpoint; None if there is no checkpoint yet.

    Its files are compared with their digests, once per process: 1 s for each GB, nothing with
    $ELASTIC_CHECKPOINT_DIGEST=0.

    Raises CheckpointError if there are checkpoints and no complete one: a new start would lose
    them.
    """
    found = open_latest(directory)
    if found is None:
        return None
    with found:
        return found.path


def open_latest(directory: Optional[PathLike] = None) -> Optional[Directory]:
    """The same, open: what is read from it is what was looked at. The caller closes it."""
    _events.loading()
    place = place_of(directory)
    if not isinstance(place, str):
        return _latest(place)
    return _newer(_copy_of(place), None if directory is not None else _flushed())


def _copy_of(url: str) -> Optional[Directory]:
    """The copy of the latest checkpoint on S3; None if there is no checkpoint yet."""
    damage: Optional[str] = None
    for _ in range(2):  # a copy that was there already, and is damaged, is made again
        try:
            path = _s3.pull(url)
        except OSError as error:
            raise CheckpointError(str(error)) from error
        if path is None:
            return None
        copy = open_checkpoint(path)
        damage = _corrupt(copy) if uses_digests() else None
        if damage is None:
            return copy
        say(f"{path} is copied again: {damage}")
        copy.close()
        remove_tree(path)
    raise CheckpointError(f"{url}: the copy on this node is damaged each time: {damage}")


def _flushed() -> Optional[Directory]:
    """What elasticrun has brought from the memory of nodes to the file system, if it is usable."""
    base = _world.value("ELASTIC_CHECKPOINT_DIR")
    try:
        return _latest(Path(base)) if base else None
    except CheckpointError as error:
        say(str(error))
        return None


Key = Tuple[str, int, int, float]


def key_of(found: Directory) -> Optional[Key]:
    """Job, restarts, generation and step of a checkpoint; None if unknown."""
    written = written_by(found)
    return None if written is None else (*written, _manifest.step(found))


def _newer(far: Optional[Directory], near: Optional[Directory]) -> Optional[Directory]:
    """The checkpoint on S3, or the one that was flushed. Of two jobs the flushed one is ours."""
    if far is None or near is None:
        return far or near
    there, here = key_of(far), key_of(near)
    job = (incarnation() or "").split(".")[0]
    is_near = (
        here is not None and here[0] == job and (there is None or there[0] != job or here > there)
    )
    (far if is_near else near).close()
    return near if is_near else far


def _latest(path: Path) -> Optional[Directory]:
    """The newest of a directory that can be used, open."""
    try:
        base = open_base(path)
    except FileNotFoundError:
        return None
    with base:
        _warn(base)
        makers = _makers(base)
        _pass_over_strangers(base, makers)
        return _newest_usable(base, _numbers(makers))


def _newest_usable(base: Directory, numbers: List[int]) -> Optional[Directory]:
    latest = _pointed_to(base)
    if latest is not None:
        numbers = [number for number in numbers if number <= latest]
    reasons: List[str] = []
    for number in _newest_first(base, numbers):
        path = base.path / _name(number)
        try:
            found = base.directory(path.name)
        except OSError as error:
            reasons.append(f"{path} is not complete: {error}")
            continue
        reason = _unusable(found)
        if reason is None:
            for skipped in reasons:
                say(f"{skipped}: using {path}")
            return found
        found.close()
        reasons.append(f"{path} {reason}")
    if reasons:
        raise CheckpointError("; ".join(reasons))
    return None


def _pointed_to(base: Directory) -> Optional[int]:
    """The number that the link `latest` names. One that a stranger has made says nothing."""
    if base.stranger("latest") is None:
        with contextlib.suppress(OSError):
            found = os.readlink("latest", dir_fd=base.fd)
            return int(found) if re.fullmatch("[0-9]{1,18}", found) else None
    return None


def _unusable(found: Directory) -> Optional[str]:
    reason = _manifest.incomplete(found)
    if reason is not None:
        return f"is not complete: {reason}"
    damage = _corrupt(found) if uses_digests() else None
    return None if damage is None else f"is corrupt: {damage}"


def open_checkpoint(path: Path) -> Directory:
    """The directory of a checkpoint. Raises CheckpointError if others may have written in it."""
    try:
        with open_base(path.parent) as base:
            return base.directory(path.name)
    except NotTrustedError as error:
        raise CheckpointError(str(error)) from error


# Manifests, by this process. A new checkpoint may have the inode of one that was removed, but not
# its time.
_verified: Set[_manifest.Identity] = set()
_bad: Set[_manifest.Identity] = set()


def _corrupt(found: Directory) -> Optional[str]:
    """What is wrong with the files of a complete checkpoint; None if nothing is."""
    try:
        content, known = _manifest.read(found)
        damage = None if known in _verified else _manifest.damage(found, content)
    except _manifest.UNUSABLE as error:
        return str(error)
    if damage is not None:
        _bad.add(known)
        return damage
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
        state = _by_ranks().load(into, directory, place_of(directory))
        _events.training()
        return state
    found = open_latest(directory)
    if found is None:
        _events.training()
        return None
    with found:
        state = read_state(found, map_location)
    _events.training()
    return state


def _pickled(file: BinaryIO, _: Any) -> Any:
    return pickle.load(file)


# How what save() writes, or snapshot(), is read.
_STATES: Dict[str, Callable[[BinaryIO, Any], Any]] = {
    "state.pt": _torch_compat.load,
    "state.flat": _flat.read,
    "state.pickle": _pickled,
}


def read_state(found: Directory, map_location: Any = "cpu") -> Any:
    """What save() has written to a checkpoint."""
    try:
        for name, read in _STATES.items():
            if found.has(name):
                with found.file(name) as file:
                    return read(file, map_location)
    except NotTrustedError as error:
        raise CheckpointError(str(error)) from error
    if _by_ranks().is_one(found):
        raise CheckpointError(
            f"{found.path} was written by save(dcp=True): read it by "
            "load_latest(into={...}, dcp=True)"
        )
    raise CheckpointError(
        f"{found.path}: has none of {', '.join(_STATES)}: was not written by save()"
    )
