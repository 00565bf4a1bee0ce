"""Clipping of values and norms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from passkit.frontends.tinyflow.argument_checks import (
    require_float,
)
from passkit.frontends.tinyflow.reductions import parse_axes
from passkit.frontends.tinyflow.tensors import (
    Tensor,
    as_entry,
    as_operand,
    as_tensor,
    call_operator,
    convert_to_tensor,
    unique_name,
)
from passkit.graph.op import get_op


def clip_by_value(
    t: Any, clip_value_min: Any, clip_value_max: Any, name: str | None = None
) -> Tensor:
    """Limit the elements to a range.

    Args:
        t: A tensor.
        clip_value_min: The smallest value, a number or a tensor.
        clip_value_max: The largest value, a number or a tensor.
        name: The name of the result.
    """
    entry = as_entry(t)
    low, high = (as_operand(v, entry.dtype) for v in (clip_value_min, clip_value_max))
    return call_operator("clip", "clip_by_value", name, entry, low, high)


def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """Scale a tensor down to an L2 norm of at most ``clip_norm``.

    Args:
        t: A tensor.
        clip_norm: A number.
        axes: The axes over which the norm is taken; all by default.
        name: The name of the result.
    """
    params = {
        "clip_norm": require_float("clip_by_norm", "clip_norm", clip_norm),
        "axis": parse_axes(axes),
    }
    return call_operator("clip_by_norm", "clip_by_norm", name, as_entry(t), **params)


def global_norm(t_list: Sequence[Any], name: str | None = None) -> Tensor:
    """Return the L2 norm of all elements of several tensors.

    Args:
        t_list: Tensors; None is left out.
        name: The name of the result.
    """
    entries = [as_entry(t) for t in t_list if t is not None]
    return call_operator("global_norm", "global_norm", name, *entries)


def clip_by_global_norm(
    t_list: Sequence[Any], clip_norm: Any, use_norm: Any = None, name: str | None = None
) -> tuple[list[Tensor | None], Tensor]:
    """Scale tensors down together to a global norm of at most ``clip_norm``.

    Args:
        t_list: Tensors; None stays None.
        clip_norm: A number.
        use_norm: The global norm, if it is computed already.
        name: The name of the result.

    Returns:
        The tensors, and their global norm before.
    """
    limit = require_float("clip_by_global_norm", "clip_norm", clip_norm)
    norm = global_norm(t_list) if use_norm is None else convert_to_tensor(use_norm)
    full_name = unique_name(name, "clip_by_global_norm")
    clipped = [
        None
        if t is None
        else as_tensor(
            get_op("scale_by_global_norm")(norm.entry, as_entry(t), clip_norm=limit),
            full_name,
            index=k,
        )
        for k, t in enumerate(t_list)
    ]
    return clipped, norm
