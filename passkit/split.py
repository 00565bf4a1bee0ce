"""Splits: how the elements of a value are shared out over tiles (FusionStitching 2018)."""

from __future__ import annotations

from enum import Enum

from attrs import frozen

from passkit.size import Extent


class SplitKind(Enum):
    """ROW keeps the dimensions after the split one whole in a tile, COLUMN those before it."""

    ROW = "Row"
    COLUMN = "Column"


@frozen
class Split:
    """The 2018 triple: cut ``split_dim`` into pieces of ``chunk`` elements; the last may be short.

    ``sword``, the number of pieces, is ``ceil(extent / chunk)``.
    """

    split_dim: int
    chunk: Extent
    kind: SplitKind = SplitKind.ROW

    def sword(self, extent: Extent) -> Extent:
        """How many pieces an extent is cut into."""
        return (extent + self.chunk - 1) // self.chunk

    def __str__(self) -> str:
        return f"({self.split_dim}, {self.chunk}, {self.kind.value})"
