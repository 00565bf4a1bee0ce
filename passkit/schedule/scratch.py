"""Scratch: one array of a tile, and what it is for."""

from __future__ import annotations

from enum import Enum

from attrs import frozen

from passkit.values.dtype import DType
from passkit.values.size import Extent


class BufferContent(Enum):
    """What a scratch array is for.

    VALUE: a node's value, kept for a later stage. TOTAL: the running total of a reduction or scan,
    a node too. RESULT: an output, by its position, gathered for a tile before it is streamed.
    """

    VALUE = "value"
    TOTAL = "total"
    RESULT = "result"


@frozen
class TileBuffer:
    """One scratch array: what it holds, of which node or output, and its elements.

    One that is ``like`` an output of a stitched kernel's part, by its position, lies as that one's
    array does; it is there for all rows of a tile, where those of a row have the others.
    """

    holds: BufferContent
    number: int
    dtype: DType
    extent: Extent
    like: int | None = None
