# SPDX-License-Identifier: GPL-2.0-or-later
"""Checkpoints of torch.distributed.checkpoint ("DCP"): each rank writes its part, into one
directory, and a world of any size reads them.

Rank 0 makes the directory, tells the others where it is, and seals it when all have written. Until
then it has no number: the latest checkpoint stays the one before. See checkpoint.py.

In the background a thread of each rank writes a copy of the state. It talks to the others over a
process group of its own, since two threads must not use one group at once.
"""

from __future__ import annotations

import atexit
import contextlib
import threading
import warnings
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple, Union

from . import _events, _s3, _world, checkpoint
from ._opened import Directory
from ._torch_compat import failures_reach_all_ranks, local

LEAST = (2, 6)  # of PyTorch: before, optimizers' states could not be resharded for all placements
_METADATA = ".metadata"

Place = Union[Path, str]


def _check(objects: Any, place: Place) -> None:
    """Raises ValueError or TypeError for what cannot be saved or loaded."""
    import torch

    found = tuple(int(each) for each in torch.__version__.split("+")[0].split(".")[:2])
    if found < LEAST:
        raise ValueError(
            f"dcp=True needs PyTorch {LEAST[0]}.{LEAST[1]} or newer, this is {torch.__version__}"
        )
    if not isinstance(objects, dict) or not all(isinstance(each, str) for each in objects):
        raise TypeError(
            f"dcp=True with {type(objects).__name__}: must be a dictionary of objects by name, "
            '{"model": model, "optimizer": optimizer, "sampler": sampler}'
        )
    if _s3.is_url(place) and _world.most_nodes() != 1:
        raise ValueError(
            f"dcp=True with {place}: each worker writes its part into one directory, which nodes "
            "do not share. Give a directory that all nodes see, or the job one node at most"
        )


# ---- objects and what they keep ------------------------------------------------------------------


def _is_optimizer(value: Any) -> bool:
    import torch

    return isinstance(value, torch.optim.Optimizer)


def _is_model(value: Any) -> bool:
    import torch

    return isinstance(value, torch.nn.Module)


def _model_of(name: str, optimizer: Any, objects: Dict[str, Any]) -> Any:
    """The model whose parameters an optimizer has: they give its state names."""
    own = {id(each) for group in optimizer.param_groups for each in group["params"]}
    for each in objects.values():
        if _is_model(each) and own <= {id(parameter) for parameter in each.parameters()}:
            return each
    raise ValueError(
        f"{name!r} is an optimizer of parameters that no model among the objects has: make it from "
        "the model as it is now, and give the model, too"
    )


def _state_of(objects: Dict[str, Any]) -> Dict[str, Any]:
    from torch.distributed.checkpoint import state_dict as names

    state = {}
    for name, each in objects.items():
        if _is_model(each):
            state[name] = names.get_model_state_dict(each)
        elif _is_optimizer(each):
            model = _model_of(name, each, objects)
            state[name] = names.get_optimizer_state_dict(model, each)
        elif hasattr(each, "state_dict") and hasattr(each, "load_state_dict"):
            state[name] = each.state_dict()
        else:
            state[name] = each
    return state


def _put(objects: Dict[str, Any], state: Dict[str, Any]) -> None:
    """The counterpart of _state_of()."""
    from torch.distributed.checkpoint import state_dict as names

    for name, each in objects.items():
        if _is_model(each):
            names.set_model_state_dict(each, state[name])
        elif _is_optimizer(each):
            model = _model_of(name, each, objects)
            names.set_optimizer_state_dict(model, each, state[name])
        elif hasattr(each, "state_dict") and hasattr(each, "load_state_dict"):
            each.load_state_dict(state[name])
        else:
            objects[name] = state[name]


def _copy(value: Any) -> Any:
    """A copy in host memory, which training does not change."""
    import torch

    if isinstance(value, torch.Tensor):
        value = value.detach()
        return value.clone() if local(value).device.type == "cpu" else value.cpu()
    if isinstance(value, dict):
        return {key: _copy(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        copies = [_copy(each) for each in value]
        return copies if isinstance(value, list) else tuple(copies)
    return value


# ---- all ranks together --------------------------------------------------------------------------


class _Ranks:
    """The processes that save or load together; of one, if there is no process group."""

    def __init__(self, group: Any = None) -> None:
        import torch.distributed as dist

        self._dist = dist if dist.is_available() and dist.is_initialized() else None
        self.group = group
        self.rank = 0 if self._dist is None else self._dist.get_rank()

    def from_first(self, value: Any) -> Any:
        """What rank 0 gives."""
        if self._dist is None:
            return value
        values = [value]
        self._dist.broadcast_object_list(values, 0, group=self.group)
        return values[0]

    def first_failure(self, failure: str) -> str:
        """The failure of the lowest rank that has one; "" if all is well everywhere."""
        failures = [failure]
        if self._dist is not None:
            failures = [""] * self._dist.get_world_size()
            self._dist.all_gather_object(failures, failure, group=self.group)
        found = ((rank, each) for rank, each in enumerate(failures) if each)
        return next((f"rank {rank}: {each}" for rank, each in found), "")

    def own_group(self) -> Any:
        """For a thread. A collective call of all ranks, the first time."""
        global _group
        if self._dist is None:
            return None
        if _group is None or _group[0] is not self._dist.group.WORLD:
            _group = (self._dist.group.WORLD, self._dist.new_group(backend="gloo"))
        return _group[1]


_group: Optional[Tuple[Any, Any]] = None  # the default group, and ours beside it


def _words(error: BaseException) -> str:
    """One line. DCP raises one error for those of all ranks, with their tracebacks."""
    failures = getattr(error, "failures", None)
    if isinstance(failures, dict) and failures:
        rank, (cause, _) = min(failures.items())
        return f"rank {rank}: {str(cause) or type(cause).__name__}".splitlines()[0]
    return (str(error) or type(error).__name__).splitlines()[0]


# ---- writing -------------------------------------------------------------------------------------


def _write_parts(ranks: _Ranks, state: Dict[str, Any], path: Optional[Path]) -> str:
    """Write to where rank 0 says. Returns what has failed on any rank.

    path  of the checkpoint, on rank 0; None: it has none.
    """
    from torch.distributed import checkpoint as dcp

    path = ranks.from_first(path)
    if path is None:
        return ""
    failure = ""
    with contextlib.ExitStack() as stack:
        try:
            new = stack.enter_context(checkpoint.open_checkpoint(path))
        except FileNotFoundError:
            failure = f"{path.parent} is another directory than rank 0's: all nodes must see one"
        except (OSError, checkpoint.CheckpointError) as error:
            failure = str(error)
        failure = ranks.first_failure(failure)
        if failure:
            return failure
        try:
            with warnings.catch_warnings(), failures_reach_all_ranks():
                warnings.filterwarnings("ignore", message=".*in a single process")
                writer = dcp.FileSystemWriter(new.pin)
                dcp.save(state, storage_writer=writer, process_group=ranks.group)
        except (Exception, dcp.api.CheckpointException) as error:
            return _words(error)
    return ""


def _missing_part(new: Directory) -> str:
    """What DCP says that it has written, and is not here."""
    from torch.distributed.checkpoint import FileSystemReader

    stored = FileSystemReader(new.pin).read_metadata().storage_data or {}
    names = sorted({each.relative_path for each in stored.values()})
    return next((each for each in names if not (new.pin / each).is_file()), "")


def _write(
    ranks: _Ranks, state: Dict[str, Any], place: Place, keep: int, step: Optional[int]
) -> Union[Path, str, None]:
    """On all ranks. Returns the path or the URL on rank 0. Raises OSError on all of them."""
    outcome = ""
    written: List[Place] = []
    if ranks.rank == 0:
        is_told = False
        try:
            with checkpoint.new_directory(place, keep, written, step) as new:
                is_told = True
                failure = _write_parts(ranks, state, new.path)
                if not failure:
                    missing = _missing_part(new)
                    failure = missing and f"{missing} is not on the file system that rank 0 sees"
                if failure:
                    raise OSError(failure)
        except Exception as error:  # the others wait to hear of it
            if not is_told:
                _write_parts(ranks, state, None)
            outcome = _words(error)
    else:
        _write_parts(ranks, state, None)
    outcome = ranks.from_first(outcome)
    if outcome:
        raise OSError(f"no checkpoint: {outcome}")
    return written[0] if ranks.rank == 0 else None


class _Background:
    """A save that a thread makes."""

    def __init__(self, *arguments: Any) -> None:
        self._arguments = arguments
        self._failure: Optional[BaseException] = None
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        try:
            _write(*self._arguments)
        except BaseException as error:
            self._failure = error

    def wait(self) -> None:
        self.thread.join()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure


_under_way: Optional[_Background] = None


def wait() -> None:
    """Wait for a save in the background. Raises what it has raised, once."""
    global _under_way
    found = _under_way
    if found is not None and found.thread is not threading.current_thread():
        _under_way = None
        found.wait()


def _wait_at_exit() -> None:
    try:
        wait()
    except Exception as error:
        checkpoint.say(str(error))


def save(objects: Any, place: Place, keep: int, background: bool) -> Union[Path, str, None]:
    """Of checkpoint.save(). A collective call."""
    global _under_way
    _check(objects, place)
    if keep < 1:
        raise ValueError(f"keep={keep}: must be at least 1")
    wait()
    state, ranks, step = _state_of(objects), _Ranks(), _events.step()
    if not background:
        return _write(ranks, state, place, keep, step)
    ranks.group = ranks.own_group()
    atexit.unregister(_wait_at_exit)
    atexit.register(_wait_at_exit)
    _under_way = _Background(ranks, _copy(state), place, keep, step)
    return None


# ---- reading -------------------------------------------------------------------------------------


def is_one(found: Directory) -> bool:
    """Whether save() here has written a checkpoint."""
    return found.has(_METADATA)


def _find(ranks: _Ranks, directory: Optional[checkpoint.PathLike]) -> Optional[Path]:
    """The latest checkpoint, which rank 0 has compared with its digests for all."""
    found: List[Any] = [None, ""]
    if ranks.rank == 0:
        try:
            found[0] = checkpoint.latest_checkpoint(directory)
        except Exception as error:  # the others wait to hear of it
            found[1] = str(error)
    path, failure = ranks.from_first(found)
    if failure:
        raise checkpoint.CheckpointError(failure)
    return path


def load(
    objects: Any, directory: Optional[checkpoint.PathLike], place: Place
) -> Optional[Dict[str, Any]]:
    """Of checkpoint.load_latest(). A collective call."""
    from torch.distributed import checkpoint as dcp

    _check(objects, place)
    _events.loading()
    wait()
    ranks = _Ranks()
    path = _find(ranks, directory)
    if path is None:
        return None
    with checkpoint.open_checkpoint(path) as opened:
        if not is_one(opened):
            raise checkpoint.CheckpointError(f"{path} was not written by save(dcp=True)")
        state = _state_of(objects)
        try:
            with warnings.catch_warnings(), failures_reach_all_ranks():
                warnings.filterwarnings("ignore", message=".*in a single process")
                dcp.load(state, storage_reader=dcp.FileSystemReader(opened.pin))
        except (Exception, dcp.api.CheckpointException) as error:
            raise checkpoint.CheckpointError(f"{path}: {_words(error)}") from error
    _put(objects, state)
    loaded: Dict[str, Any] = objects
    return loaded
