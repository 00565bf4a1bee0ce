"""The scratch buffers of one tile."""

from __future__ import annotations

from enum import Enum

from attrs import frozen

from passkit.values.dtype import DType
from passkit.values.size import Extent


class BufferContent(Enum):
    """The content of a scratch buffer.

    Attributes:
        VALUE: a value that a stage stores for later stages.
        TOTAL: the result of a reduction or scan so far.
        RESULT: a tile of an output, which is collected before it is streamed to memory.
    """

    VALUE = "value"
    TOTAL = "total"
    RESULT = "result"


@frozen
class TileBuffer:
    """One scratch buffer of a tile.

    Attributes:
        holds: the kind of the content.
        number: the position of the node in the group's graph, or of the output for RESULT.
        dtype: the type of an element.
        extent: the number of elements.
        like: for a nest of several, the position of the nest's output that has the same layout.
            Such a buffer has all rows of the tile, others have one row.
    """

    holds: BufferContent
    number: int
    dtype: DType
    extent: Extent
    like: int | None = None
