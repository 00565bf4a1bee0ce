"""Products of matrices and tensors: matmul, tensordot and einsum."""

from __future__ import annotations

from typing import Any

import numpy as np

from passkit.errors import SettingError
from passkit.frontends.tinyflow.argument_checks import (
    reject_arguments,
)
from passkit.frontends.tinyflow.deferred_calls import (
    defer_call,
    is_unranked,
    runtime_size,
)
from passkit.frontends.tinyflow.reductions import parse_axes
from passkit.frontends.tinyflow.shapes import (
    require_shape,
)
from passkit.frontends.tinyflow.tensors import (
    Tensor,
    as_entry,
    call_operator,
    convert_to_tensor,
    unique_name,
)


@reject_arguments(
    "a product of real matrices", "adjoint_a", "adjoint_b", "a_is_sparse", "b_is_sparse"
)
@reject_arguments("a product has the dtype of its factors", "output_type", "grad_a", "grad_b")
def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    output_type: Any = None,
    grad_a: bool = False,
    grad_b: bool = False,
    name: str | None = None,
) -> Tensor:
    """Multiply matrices, or batches of them.

    Args:
        a: A tensor of shape (…, m, k). Beside a matrix, a tensor of unknown rank is taken as a
            matrix.
        b: A tensor of shape (…, k, n), whose leading axes broadcast with those of ``a``.
        transpose_a: Whether the last two axes of ``a`` are exchanged first; False by default.
        transpose_b: Whether the last two axes of ``b`` are exchanged first; False by default.
        adjoint_a: Unsupported; only the default is accepted.
        adjoint_b: Unsupported; only the default is accepted.
        a_is_sparse: Unsupported; only the default is accepted.
        b_is_sparse: Unsupported; only the default is accepted.
        output_type: Unsupported; only the default is accepted.
        grad_a: Unsupported; only the default is accepted.
        grad_b: Unsupported; only the default is accepted.
        name: The name of the result; "MatMul" by default.

    Returns:
        A tensor of shape (…, m, n).

    Raises:
        ShapeError: If the inner lengths differ, leading axes do not broadcast, or a factor has less
            than two axes.
        DTypeError: If the dtypes differ, or are bool or complex; for a tensor of text.
        SettingError: If an unsupported argument is set.
        GraphError: If ``transpose_a`` or ``transpose_b`` is no bool.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    operands = [convert_to_tensor(v) for v in (a, b)]
    params = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    ranks = [None if is_unranked(s) else len(require_shape(s.entry)) for s in operands]
    flags_are_bools = isinstance(transpose_a, bool) and isinstance(transpose_b, bool)
    # Beside a matrix, TensorFlow takes the other for one, too.
    if None in ranks and 2 in ranks and flags_are_bools:
        full_name = unique_name(name, "MatMul")
        transposed = (transpose_a, transpose_b)
        sizes = [
            runtime_size(full_name, k)
            if ranks[k] is None
            else require_shape(s.entry)[k ^ transposed[k]]
            for k, s in enumerate(operands)
        ]
        arguments = {"a": operands[0], "b": operands[1], **params}
        return defer_call(matmul, arguments, [(tuple(sizes), operands[0].dtype)], full_name)[0]
    return call_operator("matmul", "MatMul", name, *(s.entry for s in operands), **params)


def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> Tensor:
    """Contract axes of two tensors: multiply along them, and sum.

    Args:
        a: A tensor of any shape.
        b: A tensor of any shape.
        axes: An int for that many last axes of ``a`` and first axes of ``b``; or a pair, list,
            array or constant, with the axes of ``a`` and those of ``b``, an int or a list each.
        name: The name of the result; "Tensordot" by default.

    Returns:
        A tensor with the remaining axes of ``a``, then those of ``b``.

    Raises:
        ShapeError: If an axis is no int, does not exist or is named twice, or the lengths of
            contracted axes differ.
        DTypeError: If the dtypes differ, or are bool or complex; for a tensor of text.
        GraphError: If ``axes`` is neither an int nor two equal numbers of axes.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    entries = as_entry(a), as_entry(b)
    return call_operator("tensordot", "Tensordot", name, *entries, axes=_contracted_axes(axes))


def _contracted_axes(axes: Any) -> Any:
    """Convert the axes argument of `tensordot`: lists, arrays and constants to tuples of tuples.

    Other values are returned as they are, for the operator to refuse.
    """
    static_value = getattr(axes, "static_value", None)
    listed = static_value if static_value is not None else axes
    if isinstance(listed, np.ndarray):
        listed = listed.tolist()
    if not isinstance(listed, (list, tuple)):
        return listed
    parsed = [parse_axes(part) for part in listed]
    return tuple(part if isinstance(part, tuple) else (part,) for part in parsed)


def einsum(equation: str, *inputs: Any, **kwargs: Any) -> Tensor:
    """Compute a sum of products in Einstein notation, as `np.einsum` does.

    Args:
        equation: The labels of the axes, such as "ij,jk->ik". Labels that the result lacks are
            summed over. Without an arrow, the result has the labels that occur once, sorted.
        *inputs: A tensor for each operand of the equation.
        **kwargs: Only ``name``, the name of the result; "einsum" by default.

    Returns:
        A tensor with the axes behind the arrow.

    Raises:
        SettingError: For another keyword.
        GraphError: If the equation is no text, cannot be read, or names another number of tensors
            or axes, and if there are no tensors.
        ShapeError: If a label has two lengths.
        DTypeError: If the dtypes differ, or are bool or complex; for a tensor of text.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    unknown = [k for k in kwargs if k != "name"]
    if unknown:
        raise SettingError(f"einsum takes the keyword name, got {unknown[0]!r}")
    name = kwargs.get("name")
    return call_operator("einsum", "einsum", name, *map(as_entry, inputs), equation=equation)
