# SPDX-License-Identifier: GPL-2.0-or-later
"""_torch_compat: no other file touches private names of PyTorch; names of each version."""

import ast
import functools
import glob
import inspect
import itertools
import os
import subprocess
import sys
import tempfile
import types
import unittest
from datetime import timedelta
from pathlib import Path
from unittest import mock

import slurm_elastic
import tap
from slurm_elastic import _torch_compat

PACKAGE = Path(inspect.getfile(slurm_elastic)).parent
COMPAT = "_torch_compat.py"
DASK = "dask.py"  # names that Dask gives to classes like its own; nothing of PyTorch is there
OF_PYTHON = {"_exit", "_run_exitfuncs", "_fields", "_fields_"}


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


def touched(tree):
    """(line, name) of private names of other objects than self and cls: attributes, names that are
    imported from other packages, and names in calls such as getattr().
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
                yield node.lineno, node.attr
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield from ((node.lineno, each.name) for each in node.names if is_private(each.name))
        elif isinstance(node, ast.Call):
            for each in node.args:
                value = each.value if isinstance(each, ast.Constant) else None
                if isinstance(value, str) and is_private(value):
                    yield node.lineno, value


def defined(tree):
    """Private names that a file gives to what is its own."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


@functools.cache
def trees():
    return {path.name: ast.parse(path.read_text()) for path in PACKAGE.glob("*.py")}


@functools.cache
def known():
    """Private names that are the package's own, and those of PyTorch that _torch_compat touches."""
    own = {name for file, each in trees().items() if file != COMPAT for name in defined(each)}
    own |= {Path(name).stem for name in trees()}
    return own, {name for _, name in touched(trees()[COMPAT])}


def strangers(tree):
    """Private names in tree that are neither the package's own nor Python's, or that are PyTorch's
    for all that we know: _torch_compat touches them.
    """
    own, torchs = known()
    return [each for each in touched(tree) if each[1] not in own | OF_PYTHON or each[1] in torchs]


class Names(unittest.TestCase):
    def test_no_other_file_touches_private_names_of_torch(self):
        found = trees()
        self.assertGreater(len(found), 10)
        for name, tree in found.items():
            if name not in (COMPAT, DASK):
                self.assertEqual(strangers(tree), [], name)
        self.assertNotIn("torch", (PACKAGE / DASK).read_text())

    def test_this_would_be_noticed(self):
        for text in (
            "dist.distributed_c10d._pg_map",
            "getattr(group, '_abort', None)",
            "tensor._version",
            "from torch._utils import _flatten_dense_tensors",
            "setattr(torch, '_anything', 1)",
        ):
            with self.subTest(text=text):
                self.assertEqual(len(strangers(ast.parse(text))), 1)


class Versions(unittest.TestCase):
    """Objects in place of PyTorch's, with the names of one version each."""

    def c10d(self, **names):
        return mock.patch.object(_torch_compat, "_c10d", lambda: types.SimpleNamespace(**names))

    def test_abort(self):
        def backend(kind, **names):
            return types.SimpleNamespace(name=lambda: kind, **names)

        newer, older = backend("nccl", abort=mock.Mock()), backend("nccl", _abort=mock.Mock())
        others = [backend("gloo", abort=mock.Mock()), backend("nccl"), object()]
        with mock.patch.object(
            _torch_compat, "group_backends", return_value=[newer, older, *others]
        ):
            self.assertEqual(len(_torch_compat.nccl_backends()), 3)
            _torch_compat.abort_nccl()
        newer.abort.assert_called_once_with()
        older._abort.assert_called_once_with()
        others[0].abort.assert_not_called()

    def test_destroy_groups(self):
        for lost, has_nccl, has_abort in itertools.product((False, True), repeat=3):
            names = {"_abort_process_group": mock.Mock()} if has_abort else {}
            with self.subTest(lost=lost, has_nccl=has_nccl, has_abort=has_abort), self.c10d(
                **names
            ), mock.patch.object(
                _torch_compat, "nccl_backends", return_value=[object()] * has_nccl
            ), mock.patch("torch.distributed.destroy_process_group") as destroy:
                _torch_compat.destroy_groups(lost)
                is_aborted = lost and has_nccl and has_abort
                self.assertEqual(destroy.call_count, not is_aborted)
                for each in names.values():
                    self.assertEqual(each.call_count, is_aborted)

    def test_group_backends(self):
        one, two = object(), object()
        older = types.SimpleNamespace()
        newer = types.SimpleNamespace(
            _device_types=["cuda", "cpu", "other"],
            _get_backend={"cuda": one, "cpu": one, "other": two}.get,
        )
        with self.c10d(_pg_map=[older, newer]):
            self.assertEqual(_torch_compat.group_backends(), [older, one, two])

    @tap.needs_torch
    def test_the_backends_outlive_their_groups(self):
        from slurm_elastic import _membership

        calls = mock.Mock()
        calls.group_backends.return_value = ["backend"]
        with mock.patch.multiple(
            _torch_compat,
            group_backends=calls.group_backends,
            destroy_groups=calls.destroy_groups,
        ), mock.patch("torch.distributed.is_initialized", return_value=True), mock.patch.object(
            _membership, "unwrap"
        ):
            self.assertEqual(_membership.end(None, lost=True), ["backend"])
        self.assertEqual(
            calls.mock_calls, [mock.call.group_backends(), mock.call.destroy_groups(True)]
        )

    def test_reset_group_count(self):
        world = types.SimpleNamespace(group_count=3)
        first, second, third = (
            types.SimpleNamespace(_group_count=3),
            types.SimpleNamespace(_group_count=3, _world=world),
            types.SimpleNamespace(_world=types.SimpleNamespace(group_count=3)),
        )
        for module in (first, second, third):
            with mock.patch.object(_torch_compat, "_c10d", return_value=module):
                _torch_compat.reset_group_count()
        self.assertEqual((first._group_count, second._group_count), (0, 0))
        self.assertEqual((world.group_count, third._world.group_count), (0, 0))
        self.assertFalse(hasattr(third, "_group_count"))

    def test_without_barrier(self):
        barrier = mock.Mock()
        module = types.SimpleNamespace(_store_based_barrier=barrier)
        with mock.patch.object(_torch_compat, "_c10d", return_value=module):
            with self.assertRaises(KeyError), _torch_compat.without_barrier():
                module._store_based_barrier(0, None, None)
                raise KeyError
        barrier.assert_not_called()
        self.assertIs(module._store_based_barrier, barrier)
        with self.c10d(), _torch_compat.without_barrier():
            pass

    def test_has_step_hooks(self):
        newer = types.SimpleNamespace(register_step_post_hook=None)
        self.assertEqual(
            [_torch_compat.has_step_hooks(each) for each in (newer, object())], [True, False]
        )

    def test_after_loader_signals(self):
        name = "torch.utils.data._utils.signal_handling"
        calls = []
        module = types.SimpleNamespace(_set_worker_signal_handlers=lambda: calls.append("torch"))
        with mock.patch.dict(sys.modules, {name: module}):
            _torch_compat.after_loader_signals(lambda: calls.append("after"))
            module._set_worker_signal_handlers()
        self.assertEqual(calls, ["torch", "after"])
        with mock.patch.dict(sys.modules):
            sys.modules.pop(name, None)
            _torch_compat.after_loader_signals(self.fail)

    def test_importing_it_does_not_import_torch(self):
        code = "import sys, slurm_elastic._torch_compat; sys.exit('torch' in sys.modules)"
        subprocess.run([sys.executable, "-c", code], check=True, env=os.environ)


# The other rank does not join the collective. Its tensor is then only the thread's of the group.
TORN = """
import os, sys, time
import torch, torch.distributed as dist
from slurm_elastic import _torch_compat
other, waits = os.pipe()
rank = int(os.fork() == 0)
if rank:
    os.close(waits)
dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=rank, world_size=2)
if rank:
    os.read(other, 1)
    time.sleep(0.5)
    os._exit(0)
tensor = torch.ones(4)
tensor.has_attributes = True
work = dist.all_reduce(tensor, async_op=True)
del tensor, work
backends = _torch_compat.group_backends()
dist.destroy_process_group()
os.close(waits)
backends.clear()
os._exit(0)
"""


@tap.needs_torch
class Installed(unittest.TestCase):
    """The names of the PyTorch that is installed."""

    def test_modules_and_tensors(self):
        import torch

        norm, linear = torch.nn.BatchNorm1d(2), torch.nn.Linear(2, 2)
        for function in (_torch_compat.is_norm, _torch_compat.is_batch_norm):
            self.assertEqual([function(norm), function(linear)], [True, False])
        self.assertEqual(set(_torch_compat.parameters_of(linear)), {"weight", "bias"})
        self.assertIn("running_mean", _torch_compat.buffers_of(norm))
        tensor = torch.zeros(1)
        before = _torch_compat.version_of(tensor)
        tensor += 1
        self.assertEqual(_torch_compat.version_of(tensor), before + 1)

    def test_a_group_that_did_not_form_is_not_counted(self):
        import torch
        import torch.distributed as dist

        with self.assertRaises(RuntimeError):  # the other rank does not come
            dist.init_process_group(
                "gloo", store=dist.HashStore(), rank=0, world_size=2, timeout=timedelta(seconds=1)
            )
        _torch_compat.reset_group_count()
        self.assertEqual(_torch_compat.group_backends(), [])
        with _torch_compat.without_barrier():
            dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        self.assertEqual(len(_torch_compat.group_backends()), 1)
        made = _torch_compat.data_parallel(torch.nn.Linear(1, 1), {}, broadcast=False)
        self.assertIsInstance(made, torch.nn.parallel.DistributedDataParallel)
        del made
        dist.destroy_process_group()
        self.assertEqual(_torch_compat.group_backends(), [])

    def test_a_torn_group_ends_though_its_thread_needs_the_interpreter(self):
        with tempfile.TemporaryDirectory() as directory:
            argv = [sys.executable, "-c", TORN, os.path.join(directory, "store")]
            subprocess.run(argv, check=True, env=os.environ, timeout=280)

    def test_scaler(self):
        import torch

        self.assertEqual(_torch_compat.scaler_tensors(object()), [])
        scaler = types.SimpleNamespace(_scale=torch.ones(1), _growth_tracker=None)
        self.assertEqual(_torch_compat.scaler_tensors(scaler), [scaler._scale])
        scaler._per_optimizer_states = {1: 2}
        _torch_compat.forget_unscaling(scaler)
        self.assertEqual(scaler._per_optimizer_states, {})

    def test_scheduler_class(self):
        import torch

        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
        self.assertIsInstance(scheduler, _torch_compat.scheduler_class())


DEBIANS = glob.glob("/usr/lib/*/libtorch_cpu.so.1.13")


class First(unittest.TestCase):
    """tests/python/first/sitecustomize.py."""

    @unittest.skipUnless(DEBIANS, "needs Debian's PyTorch")
    def test_modules_that_are_executed_late(self):
        program = """if True:
            import sys, torch
            assert "torch.onnx.utils" not in sys.modules
            # Its package imports it, too.
            import torch.utils.data.distributed as inner
            assert inner is sys.modules[inner.__spec__.name] is torch.utils.data.distributed
            assert inner.DistributedSampler is torch.utils.data.DistributedSampler
            from torch.distributions import Normal, normal
            assert Normal is normal.Normal
            assert not hasattr(torch.onnx, "nothing") and torch.onnx.export
            """
        first = Path(__file__).resolve().parent / "first"
        environment = {**os.environ, "PYTHONPATH": str(first)}
        subprocess.run(["/usr/bin/python3", "-B", "-c", program], env=environment, check=True)

    @unittest.skipUnless(DEBIANS, "needs Debian's PyTorch")
    def test_the_import_goes_on_without_gcc_and_readelf(self):
        first = Path(__file__).resolve().parent / "first"
        with tempfile.TemporaryDirectory() as build:
            environment = {"PATH": build, "top_builddir": build, "PYTHONPATH": str(first)}
            program = "import sitecustomize; sitecustomize.load_libraries()"
            subprocess.run([sys.executable, "-B", "-c", program], env=environment, check=True)
            self.assertEqual(os.listdir(build), [])


if __name__ == "__main__":
    tap.main()
