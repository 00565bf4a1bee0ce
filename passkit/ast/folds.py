"""Descriptions of reductions, scans, matrix products and convolutions.

The attribute functions FReduce, FScan and FContract return them. Together with the elementwise
expressions of FCodeGen and FElement they define an operator for the planner.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

from attrs import frozen

from passkit.ast.expr import Binary, Const, Expr, Var
from passkit.values import arguments
from passkit.values.dtype import DType
from passkit.values.size import Extent


def left(dtype: DType) -> Var:
    """Return the variable of the first operand in `Reduce.combine`, the accumulator."""
    return Var("a", dtype)


def right(dtype: DType) -> Var:
    """Return the variable of the second operand in `Reduce.combine`."""
    return Var("b", dtype)


def is_sum(combine: Expr, dtype: DType) -> bool:
    """Return whether ``combine`` is the sum of `left` and `right` of ``dtype``, in either order."""
    a, b = left(dtype), right(dtype)
    return combine in (Binary("+", a, b, dtype), Binary("+", b, a, dtype))


def _check_axes(where: str, axes: tuple[int, ...]) -> None:
    """Raise an ArgumentError, naming ``where``, unless ``axes`` are increasing numbers from 0."""
    is_valid = isinstance(axes, tuple) and all(type(k) is int and k >= 0 for k in axes)
    if not is_valid or any(a >= b for a, b in pairwise(axes)):
        arguments.refuse(where, axes, "a tuple of increasing numbers from 0")


def _check_fold(kind: str, fold: Reduce | Scan) -> None:
    """Check the expressions and functions of a reduction or scan; ``kind`` is its class's name.

    Raises: ArgumentError where the identity is no literal, ``combine`` no expression, or
    ``prepare`` or ``finish`` neither None nor a function.
    """
    need = "a literal, such as pk.ast.const(0, dtype)"
    arguments.instance(f"ast.{kind}: identity", fold.identity, Const, need)
    arguments.instance(f"ast.{kind}: combine", fold.combine, Expr, "an expression")
    for name in ("prepare", "finish"):
        function = getattr(fold, name)
        if function is not None:
            arguments.function(f"ast.{kind}: {name}", function)


@frozen
class Chunks:
    """A split of a reduction into parts of ``length`` elements along ``axis``.

    Raises:
        ArgumentError: ``axis`` is no int or negative, or ``length`` is no int or below 1.
    """

    axis: int
    length: int

    def __attrs_post_init__(self) -> None:
        """Check the axis and the length. Raises: ArgumentError for wrong ones."""
        _check_axes("ast.Chunks: (axis,)", (self.axis,))
        if type(self.length) is not int or self.length < 1:
            arguments.refuse("ast.Chunks: length", self.length, "a whole number of at least 1")


@frozen
class Reduce:
    """A reduction, the result of FReduce: combine ``prepare(x)`` over ``axes``, then ``finish``.

    Attributes:
        axes: the axes that are reduced, non-negative and sorted.
        keepdims: whether reduced axes stay, with length 1.
        identity: the identity element; its dtype is that of the accumulator.
        combine: an expression of `left` and `right`, both of the accumulator's dtype.
        prepare: maps an input element to what is combined; by default a cast.
        finish: maps the total and the number of elements (int64) to the result.
        chunks: if set, each chunk is reduced by itself, and a new first axis counts chunks.

    Raises:
        ArgumentError: ``axes`` are not increasing numbers from 0, ``identity`` is no literal,
            ``combine`` no expression, or ``prepare`` or ``finish`` neither None nor a function.
            Other fields are not checked.
    """

    axes: tuple[int, ...]
    keepdims: bool
    identity: Const
    combine: Expr
    prepare: Callable[[Expr], Expr] | None = None
    finish: Callable[[Expr, Expr], Expr] | None = None
    chunks: Chunks | None = None

    def __attrs_post_init__(self) -> None:
        """Check all fields but ``keepdims`` and ``chunks``.

        Raises: ArgumentError for one of another type, or axes that do not increase from 0.
        """
        _check_axes("ast.Reduce: axes", self.axes)
        _check_fold("Reduce", self)


@frozen
class Scan:
    """A scan, the result of FScan: at each element the reduction of all up to it along ``axis``.

    Attributes:
        axis: the axis of the scan, non-negative.
        identity: the identity element; its dtype is that of the accumulator.
        combine: an expression of `left` and `right`, both of the accumulator's dtype.
        exclusive: whether the element itself is left out.
        reverse: whether the scan runs from the last element to the first.
        prepare: maps an input element to what is combined; by default a cast.
        finish: maps the total so far to the result.

    Raises:
        ArgumentError: ``axis`` is no int or negative, ``identity`` is no literal, ``combine`` no
            expression, or ``prepare`` or ``finish`` neither None nor a function. Other fields are
            not checked.
    """

    axis: int
    identity: Const
    combine: Expr
    exclusive: bool = False
    reverse: bool = False
    prepare: Callable[[Expr], Expr] | None = None
    finish: Callable[[Expr], Expr] | None = None

    def __attrs_post_init__(self) -> None:
        """Check all fields but ``exclusive`` and ``reverse``.

        Raises: ArgumentError for one of another type, or a negative axis.
        """
        _check_axes("ast.Scan: (axis,)", (self.axis,))
        _check_fold("Scan", self)


@frozen
class Contract:
    """A batched matrix product (m, k) x (k, n), a result of FContract.

    Attributes:
        batch: the extents of the batch axes.
        m: the rows of the first operand.
        n: the columns of the second operand.
        k: the extent that is summed over.
        transpose_a: whether the first operand is stored as (k, m).
        transpose_b: whether the second operand is stored as (n, k).
    """

    batch: tuple[Extent, ...]
    m: Extent
    n: Extent
    k: Extent
    transpose_a: bool = False
    transpose_b: bool = False


class Convolution(NamedTuple):
    """A convolution over three spatial axes, channels last: a result of FContract.

    Shapes: (batch, *size, channels), (*window, channels / groups, filters) -> (batch, *result,
    filters). Result element i reads from ``i * stride - before``, in steps of ``dilation``; what
    lies outside is zero.
    """

    batch: Extent
    size: tuple[Extent, ...]
    channels: int
    filters: int
    window: tuple[int, ...]
    result: tuple[Extent, ...]
    stride: tuple[int, ...]
    before: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int
