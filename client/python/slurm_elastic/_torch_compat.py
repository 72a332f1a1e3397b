# SPDX-License-Identifier: GPL-2.0-or-later
"""What this package uses of PyTorch beyond its stable interface: private names, and names that not
every version has.

No other file of the package touches such a name (tests/python/test_torch_compat.py looks). Each
function says which versions have which name. A name that a version lacks is passed over where the
package works without it.

Importing this module does not import torch: scripts without torch use the package, too.
"""

from __future__ import annotations

import contextlib
import importlib.util
import operator
import sys
from typing import Any, BinaryIO, Callable, Dict, Iterator, List

from . import _left_behind

LOADER_SIGNALS = "torch.utils.data._utils.signal_handling"

# ---- tensors and modules -------------------------------------------------------------------------

version_of = operator.attrgetter("_version")
"""The number of changes of a tensor that PyTorch has counted; not those through `.data`. Raises
RuntimeError for an inference tensor. Tensor._version, in 1.x and 2.x."""


def buffers_of(module: Any) -> Dict[str, Any]:
    """The dictionary in which a module has its own buffers, by name; values may be None.

    Module._buffers, in 1.x and 2.x. A scripted module's dictionary has keys() and cannot be
    iterated.
    """
    found: Dict[str, Any] = module._buffers
    return found


def parameters_of(module: Any) -> Dict[str, Any]:
    """The same of its own parameters. Module._parameters, in 1.x and 2.x."""
    found: Dict[str, Any] = module._parameters
    return found


def is_norm(module: Any) -> bool:
    """Whether it keeps running statistics that its kernels change without counting the change.

    The base class of BatchNorm, SyncBatchNorm and InstanceNorm: _NormBase, in 1.x and 2.x.
    """
    import torch

    return isinstance(module, torch.nn.modules.batchnorm._NormBase)


def is_batch_norm(module: Any) -> bool:
    """Whether it is a BatchNorm of any dimension, SyncBatchNorm among them.

    The base class _BatchNorm, in 1.x and 2.x.
    """
    import torch

    return isinstance(module, torch.nn.modules.batchnorm._BatchNorm)


# ---- optimizers, schedulers, scalers -------------------------------------------------------------


def has_step_hooks(optimizer: Any) -> bool:
    """Whether an optimizer calls hooks before and after its step: since 2.0."""
    return hasattr(optimizer, "register_step_post_hook")


def calls_closure_first(optimizer: Any) -> bool:
    """Whether step(closure) calls the closure before it changes a parameter: that of PyTorch's own
    optimizers does, and classes of the script may inherit it. Others may have changed parameters
    before (SAM).
    """
    return f"{type(optimizer).step.__module__}.".startswith("torch.optim.")


def pass_for_step(function: Callable[..., Any], step: Callable[..., Any]) -> None:
    """Make a function look like the optimizer's step() that it replaces, to schedulers.

    Only for versions without step hooks. Those have schedulers that replace step() by a counting
    one, and look for _with_counter so as not to do it twice.
    """
    vars(function).update(_with_counter=getattr(step, "_with_counter", False), __wrapped__=step)


def scheduler_class() -> Any:
    """The base class of schedulers: LRScheduler since 2.0, _LRScheduler before."""
    import torch

    found = torch.optim.lr_scheduler
    return getattr(found, "LRScheduler", None) or found._LRScheduler


def scaler_tensors(scaler: Any) -> List[Any]:
    """The numbers of a GradScaler that are tensors: its scale, and the steps since it last grew.

    _scale and _growth_tracker, in 1.x and 2.x; None before the first use.
    """
    import torch

    found = (getattr(scaler, name, None) for name in ("_scale", "_growth_tracker"))
    return [each for each in found if torch.is_tensor(each)]


def forget_unscaling(scaler: Any) -> None:
    """Make a GradScaler forget that unscale_() was called in this step.

    _per_optimizer_states, in 1.x and 2.x.
    """
    getattr(scaler, "_per_optimizer_states", {}).clear()


# ---- torch.save, torch.load ----------------------------------------------------------------------


def _path_of(file: BinaryIO) -> str:
    """Of an open file, for functions that take no file, or are faster with a path."""
    return f"/proc/self/fd/{file.fileno()}"


def save(state: Any, file: BinaryIO) -> None:
    """torch.save() to a new file."""
    import torch

    torch.save(state, _path_of(file))


def load(file: BinaryIO, map_location: Any) -> Any:
    """torch.load() of anything that torch.save() has written.

    weights_only is there since 1.13. Its default became True in 2.6, which refuses optimizer states
    with numpy in them.
    """
    import inspect

    import torch

    options: Dict[str, Any] = {"map_location": map_location}
    if "weights_only" in inspect.signature(torch.load).parameters:
        options["weights_only"] = False
    return torch.load(_path_of(file), **options)


def load_mapped(file: BinaryIO) -> Any:
    """The same of a file of which only some is needed: it is mapped into memory, not read.

    mmap is there since 2.1.
    """
    import torch

    return torch.load(_path_of(file), map_location="cpu", weights_only=False, mmap=True)


# ---- data loaders --------------------------------------------------------------------------------


def after_loader_signals(function: Callable[[], Any]) -> None:
    """Call this in a DataLoader's process once PyTorch has installed its signal handlers there.

    In this process, and in those that are forked from it. The function that installs them is
    _set_worker_signal_handlers of torch.utils.data._utils.signal_handling, in 1.x and 2.x. A
    process that was not forked from the worker may import that later.
    """

    def patch(handling: Any) -> None:
        install = getattr(handling, "_set_worker_signal_handlers", None)
        if install is None or hasattr(install, "elastic"):
            return

        def install_and_call() -> None:
            install()
            function()

        install_and_call.elastic = True  # type: ignore[attr-defined]
        handling._set_worker_signal_handlers = install_and_call

    if LOADER_SIGNALS in sys.modules:
        patch(sys.modules[LOADER_SIGNALS])
    else:
        sys.meta_path.insert(0, _AfterImport(LOADER_SIGNALS, patch))


def preload_in_forkserver(name: str) -> None:
    """Have the "forkserver" of multiprocessing import this module, beside what it imports anyway.

    Its list can be set, but not read: _forkserver._preload_modules of multiprocessing.forkserver,
    in Python 3.9 to 3.14. Without effect where there is none, and once the server runs.
    """
    from multiprocessing import forkserver

    preloaded = getattr(getattr(forkserver, "_forkserver", None), "_preload_modules", None)
    if isinstance(preloaded, list) and name not in preloaded:
        forkserver.set_forkserver_preload([*preloaded, name])


class _AfterImport:
    """A finder that calls a function with the module of this name when that has been imported."""

    def __init__(self, name: str, function: Callable[[Any], None]) -> None:
        self._name, self._function = name, function

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_call(module: Any) -> None:
                execute(module)
                self._function(module)

            spec.loader.exec_module = execute_and_call  # type: ignore[method-assign]
        return spec


# ---- process groups ------------------------------------------------------------------------------


def store_error() -> Any:
    """What torch raises for its own stores: DistStoreError since 2.0, RuntimeError before."""
    import torch.distributed as dist

    return getattr(dist, "DistStoreError", RuntimeError)


def _c10d() -> Any:
    import torch.distributed as dist

    return dist.distributed_c10d


def group_backends() -> List[Any]:
    """What does the work of all groups of this process. Whoever ends the groups drops these last.

    distributed_c10d._pg_map has the groups, in 1.x and 2.x. In 1.x they do the work themselves.
    Since 2.0 each has a backend for each kind of device: ProcessGroup._get_backend() and
    _device_types. A backend that ends waits for its threads, and a thread may wait for the
    interpreter's lock in order to free a tensor. The group does not release that lock (until 2.13
    at the latest); the backend does where Python drops it last.
    """
    found: List[Any] = []
    for group in _c10d()._pg_map:
        kinds = getattr(group, "_device_types", None)
        for each in [group] if kinds is None else map(group._get_backend, kinds):
            if not any(each is other for other in found):
                found.append(each)
    return found


def reset_group_count() -> None:
    """Count groups from 0 again, as destroy_process_group() does.

    A group that failed to form has been counted all the same, and the count is in the names under
    which ranks meet: they must be equal. distributed_c10d._group_count in 1.x; since 2.0 also
    distributed_c10d._world.group_count.
    """
    c10d = _c10d()
    for holder, name in (
        (c10d, "_group_count"),
        (getattr(c10d, "_world", None), "group_count"),
    ):
        if hasattr(holder, name):
            setattr(holder, name, 0)


@contextlib.contextmanager
def without_barrier() -> Iterator[None]:
    """init_process_group() in here does not end with a barrier over the store.

    The barrier looks every 10 ms. distributed_c10d._store_based_barrier: in 1.x and 2.0 always, in
    later versions if $TORCH_DIST_INIT_BARRIER asks for it.
    """
    c10d = _c10d()
    function = getattr(c10d, "_store_based_barrier", None)
    if function is None:
        yield
        return
    c10d._store_based_barrier = lambda *args, **kwargs: None
    try:
        yield
    finally:
        c10d._store_based_barrier = function


def has_backends_by_device() -> bool:
    """Whether a group can have a backend for each kind of device: ProcessGroup._get_backend(),
    since 2.0.
    """
    import torch.distributed as dist

    return hasattr(dist.ProcessGroup, "_get_backend")


def nccl_backends() -> List[Any]:
    """The NCCL backends of all groups of this process. Backend.name() is there since 2.0."""
    found = [(each, getattr(each, "name", None)) for each in group_backends()]
    return [each for each, name in found if name is not None and name() == "nccl"]


def destroy_groups(lost: bool) -> None:
    """Destroy all process groups.

    lost  a process of theirs was lost. destroy_process_group() would wait for it on the GPU, even
          after an abort. _abort_process_group of distributed_c10d does not, which is there in newer
          versions of 2.x.
    """
    import torch.distributed as dist

    abort = getattr(_c10d(), "_abort_process_group", None)
    if lost and abort is not None and nccl_backends():
        abort()
    else:
        dist.destroy_process_group()


def abort_nccl() -> None:
    """End all operations of NCCL that are under way, of all groups.

    abort() in newer versions of 2.x, _abort() in some before. Without either, nothing happens. Each
    has a thread: one may end only when another group's operations have ended.
    """
    functions = [getattr(each, "abort", getattr(each, "_abort", None)) for each in nccl_backends()]
    threads = [_left_behind.start(each) for each in functions if each is not None]
    for each in threads:
        each.join()


# ---- torch.distributed.checkpoint ----------------------------------------------------------------


@contextlib.contextmanager
def failures_reach_all_ranks() -> Iterator[None]:
    """In here, what fails on one rank while all save or load makes the call fail on all of them.

    The rank sends its exception to the others with the frames of its traceback. Where that cannot
    be pickled, the others wait for ever: from Python 3.13 on frames have code, which newer versions
    of 2.x leave out; and an exception may have anything in it. So its words alone are sent. In
    torch.distributed.checkpoint.utils it is _wrap_exception that makes of an exception what is
    sent, in all 2.x.
    """
    import traceback

    import torch.distributed.checkpoint.utils as utils

    function = getattr(utils, "_wrap_exception", None)
    if function is None:
        yield
        return

    def words_of(error: BaseException) -> Any:
        return RuntimeError(str(error) or type(error).__name__), traceback.StackSummary()

    utils._wrap_exception = words_of
    try:
        yield
    finally:
        utils._wrap_exception = function


# ---- DistributedDataParallel ---------------------------------------------------------------------


def data_parallel(model: Any, options: Dict[str, Any], broadcast: bool = True) -> Any:
    """DistributedDataParallel of a model.

    broadcast  False: without the broadcast of the parameters and buffers of rank 0, for ranks that
               have equal ones already.

    Newer versions of 2.x have the argument init_sync for that. All before make the broadcast by
    _sync_module_states, a name in torch.nn.parallel.distributed since 1.11.
    """
    import inspect

    import torch.nn.parallel.distributed as module

    made = module.DistributedDataParallel
    if broadcast:
        return made(model, **options)
    if "init_sync" in inspect.signature(made).parameters:
        return made(model, **{"init_sync": False, **options})
    function = getattr(module, "_sync_module_states", None)
    if function is None:
        return made(model, **options)
    module._sync_module_states = lambda *args, **kwargs: None
    try:
        return made(model, **options)
    finally:
        module._sync_module_states = function


# ---- sharded models ------------------------------------------------------------------------------


def can_shard() -> bool:
    """Whether there is a fully_shard (FSDP2) that runs on the host, and DTensor.

    Both have public names since 2.6. There fully_shard fails on the host, since torch.cpu.Stream
    has no record_event; in 2.13 it has. FSDP of 1.13 cannot be imported by Python 3.11: ValueError.
    """
    import torch

    if not hasattr(getattr(getattr(torch, "cpu", None), "Stream", None), "record_event"):
        return False
    try:
        from torch.distributed.fsdp import fully_shard  # noqa: F401
        from torch.distributed.tensor import DTensor  # noqa: F401
    except (ImportError, ValueError):
        return False
    return True


def _is_a(value: Any, module: str, name: str) -> bool:
    """Whether it is of a class of a module, which is not imported for that: it takes long."""
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(value, kind)


def is_dtensor(value: Any) -> bool:
    """Whether it is a tensor of which this process has a part."""
    return _is_a(value, "torch.distributed.tensor", "DTensor")


def local(value: Any) -> Any:
    """This process's part of a DTensor; any other tensor itself."""
    import torch

    if not is_dtensor(value):
        return value
    with torch.no_grad():
        return value.detach().to_local()


def dtensor(part: Any, mesh: Any, placements: Any, shape: Any) -> Any:
    """A DTensor of that shape, made of the parts that processes have."""
    import torch
    from torch.distributed.tensor import DTensor

    stride = torch.empty(shape, device="meta").stride()
    with torch.no_grad():
        return DTensor.from_local(
            part, mesh, placements, run_check=False, shape=torch.Size(shape), stride=stride
        )


def set_dtensor(parameter: Any, other: Any) -> None:
    """Give a sharded parameter the part and the mesh of another DTensor of its shape.

    So it stays the object that optimizers have. DTensor._local_tensor and _spec, in all 2.x that
    have DTensor. fully_shard sets them itself where a parameter was given another part.
    """
    parameter._local_tensor, parameter._spec = other._local_tensor, other._spec


def mesh_of_all(device_type: str) -> Any:
    """A mesh of one dimension of all processes, on the default group."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh

    return init_device_mesh(device_type, (dist.get_world_size(),), mesh_dim_names=("data",))


def mesh_line(mesh: Any, dimension: int) -> List[int]:
    """The ranks of all that differ from this process in this dimension of a mesh only.

    DeviceMesh.mesh is a tensor of ranks in all 2.x.
    """
    place = list(mesh.get_coordinate())
    place[dimension] = slice(None)
    found: List[int] = mesh.mesh[tuple(place)].tolist()
    return found


def is_fully_sharded(module: Any) -> bool:
    """Whether fully_shard() was called for this module."""
    return _is_a(module, "torch.distributed.fsdp", "FSDPModule")


def is_compiling() -> bool:
    """Whether torch.compile() looks at what is being called: it takes the answer for a constant.

    torch.compiler.is_compiling, since 2.1.
    """
    import torch

    compiler = getattr(torch, "compiler", None)
    return bool(compiler is not None and compiler.is_compiling())


class Skeleton:
    """What fully_shard() changes in a model beside its parameters: restore() undoes it.

    It changes the classes of modules and adds attributes and hooks, all of which a module has in
    its own dictionary; the names of dictionaries of hooks end with _hooks, or have _hooks_ in them,
    in 2.x. And it adds the modules to _module_state_mapping of torch.distributed._composable_state,
    since 2.0. What the script has added meanwhile goes with it.
    """

    def __init__(self, model: Any) -> None:
        self._modules = [
            (module, type(module), set(vars(module)), self._hooks(module))
            for module in model.modules()
        ]

    @staticmethod
    def _hooks(module: Any) -> Dict[str, List[Any]]:
        return {
            name: list(value)
            for name, value in vars(module).items()
            if isinstance(value, dict) and (name.endswith("_hooks") or "_hooks_" in name)
        }

    def restore(self) -> None:
        """Undo it, and drop what holds on to process groups."""
        import torch.distributed._composable_state as states

        mapping = getattr(states, "_module_state_mapping", {})
        dropped: List[Any] = []
        for module, kind, names, hooks in self._modules:
            if type(module) is not kind:
                module.__class__ = kind
            for name in set(vars(module)) - names:
                dropped.append(vars(module).pop(name))
            for name, before in hooks.items():
                found = vars(module)[name]
                for key in [each for each in found if each not in before]:
                    del found[key]
            mapping.pop(module, None)
        _take_apart(dropped)


def _take_apart(values: List[Any]) -> None:
    """Break the cycles of references among the objects of fully_shard that are found in these.

    They hold on to process groups. To have the garbage collector look for them takes 0.1 s.
    """
    while values:
        value = values.pop()
        if isinstance(value, dict):
            values.extend(value.values())
        elif isinstance(value, (list, tuple, set)):
            values.extend(value)
        elif type(value).__module__.startswith("torch.distributed.fsdp._fully_shard"):
            found = getattr(value, "__dict__", None)
            if found:
                values.extend(found.values())
                found.clear()
