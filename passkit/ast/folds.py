"""Folds: what the attributes of reductions and contractions say, beside elementwise expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from attrs import frozen

from passkit.ast.expr import Binary, Const, Expr, Var
from passkit.values.dtype import DType
from passkit.values.size import Extent


def left(dtype: DType) -> Var:
    """The first operand in `Reduce.combine`."""
    return Var("a", dtype)


def right(dtype: DType) -> Var:
    """The second operand in `Reduce.combine`."""
    return Var("b", dtype)


def is_sum(combine: Expr, dtype: DType) -> bool:
    """Whether a combination is the sum of its two operands of ``dtype``."""
    a, b = left(dtype), right(dtype)
    return combine in (Binary("+", a, b, dtype), Binary("+", b, a, dtype))


@frozen
class Chunks:
    """A fold in parts: ``length`` steps of ``axis`` at a time."""

    axis: int
    length: int


@frozen
class Reduce:
    """What an FReduce says: fold ``prepare(x)`` over ``axes``, then ``finish(total, count)``.

    ``axes`` are non-negative and sorted; ``combine`` is an expression of `left` and `right` of the
    accumulator's dtype, which is ``identity.dtype``; ``count`` is the int64 number of elements.
    With ``chunks`` every chunk is folded by itself, and a new first axis counts them.
    """

    axes: tuple[int, ...]
    keepdims: bool
    identity: Const
    combine: Expr
    prepare: Callable[[Expr], Expr] | None = None
    finish: Callable[[Expr, Expr], Expr] | None = None
    chunks: Chunks | None = None


@frozen
class Scan:
    """What an FScan says: at each step along ``axis`` the fold so far, then ``finish(total)``.

    Folded is ``prepare(x)``, this step's too unless ``exclusive``; in ``reverse`` the steps are
    taken from the last to the first. As for `Reduce`, ``identity`` says what is accumulated in.
    """

    axis: int
    identity: Const
    combine: Expr
    exclusive: bool = False
    reverse: bool = False
    prepare: Callable[[Expr], Expr] | None = None
    finish: Callable[[Expr], Expr] | None = None


@frozen
class Contract:
    """What an FContract says: batched (m, k) x (k, n), with either operand stored transposed."""

    batch: tuple[Extent, ...]
    m: Extent
    n: Extent
    k: Extent
    transpose_a: bool = False
    transpose_b: bool = False


class Convolution(NamedTuple):
    """What an FContract of a convolution says, over three spatial axes, channels last.

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
