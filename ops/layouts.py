"""Data formats (channels first or last) and casts, which operators on images share.

Operators compute with channels last. With channels first the input is transposed to channels last
and the result back. The transposes fuse with the neighbours, and those between two such operators
cancel out.
"""

from __future__ import annotations

from collections.abc import Callable

from passkit.errors import GraphError, ShapeError
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.ops.helpers import make
from passkit.values.dtype import dtype_of
from passkit.values.size import numel

FIRST = {
    1: ("NCW", "NCL"),
    2: ("NCHW",),
    3: ("NCDHW",),
}
"""Data formats with channels first, by the number of spatial axes."""

LAST = {
    1: ("NWC", "NLC"),
    2: ("NHWC",),
    3: ("NDHWC",),
}
"""Data formats with channels last, by the number of spatial axes."""


def channels_first(node: Node, count: int) -> bool:
    """Return whether the parameter ``data_format`` puts channels first.

    Args:
        node: A node with this parameter: "channels_first", "channels_last", or with one to three
            spatial axes a format such as "NCHW".
        count: Number of spatial axes.

    Raises:
        GraphError: If the format is none for this number of axes.
    """
    data_format = node.params["data_format"]
    first = (*FIRST.get(count, ()), "channels_first")
    last = (*LAST.get(count, ()), "channels_last")
    if data_format not in (*first, *last):
        raise GraphError(
            f"{node.where} needs {last[0]!r} or {first[0]!r} as data_format, got {data_format!r}"
        )
    return data_format in first


def to_last(x: Entry, first: bool) -> Entry:
    """Return an image ``x`` with channels last; ``first`` says whether axis 1 has them.

    Returns ``x`` itself if they are last. Raises: ShapeError if the rank of ``x`` is unknown.
    """
    rank = len(known_shape(x))
    return make("transpose", x, axes=(0, *range(2, rank), 1)) if first else x


def from_last(x: Entry, first: bool) -> Entry:
    """Return an image ``x``, which has channels last, with channels in axis 1 if ``first``.

    Returns ``x`` itself otherwise. Raises: ShapeError if the rank of ``x`` is unknown.
    """
    rank = len(known_shape(x))
    return make("transpose", x, axes=(0, rank - 1, *range(1, rank - 1))) if first else x


def by_channel(x: Entry, first: bool) -> tuple[Entry, Callable[[Entry], Entry]]:
    """Prepare the input of an operator that computes each channel independently.

    With channels first each plane becomes an image with one channel, so that nothing is transposed.
    But if ``x`` is a transpose, such as that behind a convolution, it is transposed back, which
    cancels out.

    Args:
        x: An image.
        first: Whether its channels are first; if not, it is returned itself.

    Returns:
        The image with channels last, and a function that converts a result back.

    Raises:
        ShapeError: If the rank of ``x`` is unknown.
    """
    is_transposed = x.node.op is not None and x.node.op.name == "transpose"
    if not first or is_transposed:
        return to_last(x, first), lambda y: from_last(y, first)
    batch, channels, *size = known_shape(x)
    planes = make("reshape", x, shape=(numel((batch, channels)), *size, 1))
    return planes, lambda y: make("reshape", y, shape=(batch, channels, *known_shape(y)[1:-1]))


def widened(x: Entry) -> Entry:
    """Return floats of 16 bits as float32, in which they are accumulated.

    Entries of other or unknown dtype are returned unchanged.
    """
    is_narrow = x.dtype is not None and x.dtype.is_float and x.dtype.nbytes == 2
    return make("cast", x, dtype="float32") if is_narrow else x


def as_dtype(x: Entry, like: Entry) -> Entry:
    """Return ``x`` cast to the dtype of ``like``; unchanged if that is unknown or the same.

    Raises: DTypeError if one of two different dtypes is complex.
    """
    if like.dtype is None or x.dtype is like.dtype:
        return x
    return make("cast", x, dtype=dtype_of(like.dtype).name)


def check_spatial_rank(node: Node, x: Entry, count: int) -> None:
    """Check that ``x`` has ``count`` spatial axes besides batch and channels.

    Raises: ShapeError, which names ``node``, if its rank is not ``count`` + 2, or unknown.
    """
    if len(known_shape(x)) != count + 2:
        raise ShapeError(
            f"{node.where} needs an input of rank {count + 2}, got {show_shape(known_shape(x))}"
        )
