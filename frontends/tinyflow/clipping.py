"""Clipping of values and norms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from passkit.frontends.tinyflow.argument_checks import require_float, require_list
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
        t: A tensor or numbers, integers or floats, of any shape.
        clip_value_min: The smallest value, a number, an array or a tensor that broadcasts.
        clip_value_max: The largest value, a number, an array or a tensor that broadcasts.
        name: The name of the result; "clip_by_value" by default.

    Returns:
        A tensor of the broadcast shape, in the dtype of ``t``.

    Raises:
        ShapeError: If the shapes do not broadcast.
        DTypeError: If a bound is a tensor of another dtype than ``t``, or numbers of a higher kind,
            such as 0.5 for integers; or if ``t`` holds bools or complex numbers or text.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    entry = as_entry(t)
    low, high = (as_operand(v, entry.dtype) for v in (clip_value_min, clip_value_max))
    return call_operator("clip", "clip_by_value", name, entry, low, high)


def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """Scale a tensor down to an L2 norm of at most ``clip_norm``.

    Args:
        t: A tensor of floats.
        clip_norm: The largest norm, a number.
        axes: The axis or axes over which a norm is taken; by default the tensor is one vector.
        name: The name of the result; "clip_by_norm" by default.

    Returns:
        A tensor of the shape and dtype of ``t``; one of a smaller norm is unchanged.

    Raises:
        SettingError: If ``clip_norm`` is no number; a tensor is none.
        GraphError: If ``clip_norm`` is negative.
        ShapeError: If an axis is no int, or does not exist.
        DTypeError: If ``t`` holds no floats.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    params = {
        "clip_norm": require_float("clip_by_norm", "clip_norm", clip_norm),
        "axis": parse_axes(axes),
    }
    return call_operator("clip_by_norm", "clip_by_norm", name, as_entry(t), **params)


def global_norm(t_list: Sequence[Any], name: str | None = None) -> Tensor:
    """Return the L2 norm of all elements of several tensors.

    Args:
        t_list: Tensors of floats of one dtype, of any shapes; None is left out.
        name: The name of the result; "global_norm" by default.

    Returns:
        A scalar tensor: the square root of the sum of all squares.

    Raises:
        ShapeError: If there are no tensors.
        DTypeError: If a tensor holds no floats, or the dtypes differ.
        GraphError: If ``t_list`` is no list, such as a single tensor.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    tensors = require_list("global_norm", "t_list", t_list)
    entries = [as_entry(t) for t in tensors if t is not None]
    return call_operator("global_norm", "global_norm", name, *entries)


def clip_by_global_norm(
    t_list: Sequence[Any], clip_norm: Any, use_norm: Any = None, name: str | None = None
) -> tuple[list[Tensor | None], Tensor]:
    """Scale tensors down together to a global norm of at most ``clip_norm``.

    Args:
        t_list: Tensors of floats; None stays None.
        clip_norm: The largest global norm, a number.
        use_norm: The global norm, if it is computed already; by default that of ``t_list``.
        name: The name of the results; "clip_by_global_norm" by default.

    Returns:
        A list of the scaled tensors, in order; and their global norm before, a scalar tensor.

    Raises:
        SettingError: If ``clip_norm`` is no number, such as a tensor.
        ShapeError: If there are no tensors and ``use_norm`` is None, or ``use_norm`` has axes that
            do not broadcast with a tensor.
        DTypeError: If a tensor holds no floats, or the dtypes of the tensors and of ``use_norm``
            differ.
        GraphError: If ``t_list`` is no list, such as a single tensor, or ``clip_norm`` is negative.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    limit = require_float("clip_by_global_norm", "clip_norm", clip_norm)
    tensors = require_list("clip_by_global_norm", "t_list", t_list)
    norm = global_norm(tensors) if use_norm is None else convert_to_tensor(use_norm)
    full_name = unique_name(name, "clip_by_global_norm")
    clipped = [
        None
        if t is None
        else as_tensor(
            get_op("scale_by_global_norm")(norm.entry, as_entry(t), clip_norm=limit),
            full_name,
            index=k,
        )
        for k, t in enumerate(tensors)
    ]
    return clipped, norm
