"""Layouts: where channels lie, and dtypes in which sums are taken.

Operators compute with channels last. With channels first an input is transposed there and the
result back, which fuses with what stands around: between two such operators nothing is left of it.
"""

from __future__ import annotations

from collections.abc import Callable

from passkit.errors import GraphError, ShapeError
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.ops.helpers import make
from passkit.values.dtype import dtype_of
from passkit.values.size import numel

FIRST = {1: ("NCW", "NCL"), 2: ("NCHW",), 3: ("NCDHW",)}
LAST = {1: ("NWC", "NLC"), 2: ("NHWC",), 3: ("NDHWC",)}


def channels_first(node: Node, count: int) -> bool:
    """Whether data_format says so. Raises: GraphError for one that means nothing here."""
    given = node.params["data_format"]
    if given in (*FIRST[count], "channels_first"):
        return True
    if given in (*LAST[count], "channels_last"):
        return False
    raise GraphError(
        f"{node.where} needs {LAST[count][0]!r} or {FIRST[count][0]!r} as data_format, got "
        f"{given!r}"
    )


def to_last(x: Entry, first: bool) -> Entry:
    """``x`` with channels last."""
    rank = len(known_shape(x))
    return make("transpose", x, axes=(0, *range(2, rank), 1)) if first else x


def from_last(x: Entry, first: bool) -> Entry:
    """``x``, whose channels are last, as a node's data_format has them."""
    rank = len(known_shape(x))
    return make("transpose", x, axes=(0, rank - 1, *range(1, rank - 1))) if first else x


def by_channel(x: Entry, first: bool) -> tuple[Entry, Callable[[Entry], Entry]]:
    """``x`` with channels last, and what undoes that, for an operator on each channel by itself.

    Where channels come first each plane becomes an image of one channel: nothing is transposed. But
    what a transposition gives, such as a convolution's, is taken as it lies in memory.
    """
    turned = x.node.op is not None and x.node.op.name == "transpose"
    if not first or turned:
        return to_last(x, first), lambda y: from_last(y, first)
    batch, channels, *size = known_shape(x)
    planes = make("reshape", x, shape=(numel((batch, channels)), *size, 1))
    return planes, lambda y: make(
        "reshape", y, shape=(batch, channels, *known_shape(y)[1:-1])
    )


def wide(x: Entry) -> Entry:
    """Floats of 16 bits as float32, in which their products are added."""
    narrow = x.dtype is not None and x.dtype.is_float and x.dtype.nbytes == 2
    return make("cast", x, dtype="float32") if narrow else x


def as_dtype(x: Entry, like: Entry) -> Entry:
    """``x`` in the dtype of ``like``."""
    if like.dtype is None or x.dtype is like.dtype:
        return x
    return make("cast", x, dtype=dtype_of(like.dtype).name)


def ranked(node: Node, x: Entry, count: int) -> None:
    """Check that ``x`` has ``count`` spatial axes. Raises: ShapeError where it has others."""
    if len(known_shape(x)) != count + 2:
        raise ShapeError(
            f"{node.where} needs an input of rank {count + 2}, got {show_shape(known_shape(x))}"
        )
