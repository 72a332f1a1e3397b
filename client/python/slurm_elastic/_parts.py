# SPDX-License-Identifier: GPL-2.0-or-later
"""What kind of object a part of a training state is: known by what the object can do."""

from __future__ import annotations

from typing import Any

from ._torch_compat import scheduler_class


def is_optimizer(part: Any) -> bool:
    """An optimizer of PyTorch, or an object that behaves like one."""
    return hasattr(part, "param_groups") and hasattr(part, "zero_grad") and hasattr(part, "step")


def is_scheduler(part: Any) -> bool:
    """A scheduler whose step() needs no argument: any but ReduceLROnPlateau."""
    import torch

    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau
    return isinstance(part, scheduler_class()) and not isinstance(part, plateau)


def is_scaler(part: Any) -> bool:
    """A GradScaler of PyTorch, or an object that behaves like one."""
    return all(hasattr(part, name) for name in ("scale", "unscale_", "get_scale", "step", "update"))
