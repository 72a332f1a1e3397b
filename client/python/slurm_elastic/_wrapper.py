# SPDX-License-Identifier: GPL-2.0-or-later
"""The DistributedDataParallel of a training state: each world makes a new one.

The old one must be gone before the next process group forms.
"""

from __future__ import annotations

import gc
import weakref
from typing import Any

from . import _torch_compat


def wrap(state: Any, is_shared: bool) -> None:
    """Set state.ddp to a new DistributedDataParallel of state.model.

    is_shared  all ranks have equal parameters and buffers already: rank 0 does not send its own.
    """
    state.ddp = _torch_compat.data_parallel(
        state.model, state._ddp_options, broadcast=not is_shared
    )
    state._clock.watch(state.ddp, state.model)


def unwrap(state: Any) -> None:
    """Set state.ddp to state.model, and destroy the wrapper's reducer.

    The reducer has hooks in the parameters and holds on to the process group.
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
    if reference() is not None:  # a cycle of references holds it; collecting takes 0.1 s
        gc.collect()
