# SPDX-License-Identifier: GPL-2.0-or-later
"""The DistributedDataParallel of a training state (live.State): made anew in each world, and gone
before the next.
"""

from __future__ import annotations

import gc
import inspect
import weakref
from typing import Any

import torch.nn.parallel.distributed as ddp_module
from torch.nn.parallel import DistributedDataParallel


def wrap(state: Any, is_shared: bool) -> None:
    """Make DistributedDataParallel, without its broadcast of what the ranks have already."""
    options = dict(state._ddp_options)
    function = getattr(ddp_module, "_sync_module_states", None)
    # Newer releases.
    if is_shared and "init_sync" in inspect.signature(DistributedDataParallel).parameters:
        options.setdefault("init_sync", False)
    elif is_shared and function is not None:
        ddp_module._sync_module_states = lambda *args, **kwargs: None
    try:
        state.ddp = DistributedDataParallel(state.model, **options)
    finally:
        if function is not None:
            ddp_module._sync_module_states = function


def unwrap(state: Any) -> None:
    """Drop it. Its reducer has hooks in the parameters and holds on to the group: it must be gone
    before the next one.
    """
    wrapper, state.ddp = state.ddp, state.model
    reducer = getattr(wrapper, "reducer", None)
    if reducer is None:
        return
    reference = weakref.ref(reducer)
    del reducer
    for name in ("reducer", "logger", "process_group"):
        wrapper.__dict__.pop(name, None)
    del wrapper
    if reference() is not None:  # held in a cycle: looking for these takes a tenth of a second
        gc.collect()
