"""Buffer maps: the buffers of the values of a group, and the indices of their elements there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from passkit.analysis.accesses import Index
from passkit.analysis.domain import Domain, ValueKind
from passkit.analysis.tile_layout import TileLayout
from passkit.ast import Expr, Var, size_of
from passkit.ast.index import Sum, ravel
from passkit.graph.graph import Graph
from passkit.graph.node import Node, known_shape

StoredElement = tuple[str, Sum]
"""A buffer and the index of an element in it."""


class BufferMap:
    """The buffers of a kernel of one nest: inputs and results are row-major parameters."""

    def __init__(self, graph: Graph, domain: Domain) -> None:
        self.graph, self.domain = graph, domain
        self.inputs = {n: f"x{k}" for k, n in enumerate(graph.inputs)}

    def input(self, node: Node, index: Index) -> StoredElement:
        """Return the buffer and index of the element of an input."""
        return self.inputs[node], ravel(index, known_shape(node.entries[0]), self.domain.extents)

    def outputs(self, k: int, kind: ValueKind) -> list[StoredElement]:
        """Return the buffers and indices of the element of a result at the current point or row."""
        return [
            (f"y{k}", self.domain.point_index if kind is ValueKind.POINT else self.domain.row_index)
        ]


@frozen
class ScratchArray:
    """A scratch array that holds a tile's part of a value, whose window begins at ``first``."""

    name: str
    layout: TileLayout
    first: Var | None

    def place(self, index: Sequence[Expr], domain: Domain) -> StoredElement:
        """Return the array and the position of the element at an index."""
        first: Expr = size_of(0) if self.first is None else self.first
        return self.name, self.layout.local(index, first, domain.extents)


class TileBufferMap(BufferMap):
    """The buffers of one of several nests.

    Attributes:
        inputs: the name of the parameter or array of each input.
        results: the parameters and arrays of each result.
    """

    def __init__(
        self,
        graph: Graph,
        domain: Domain,
        inputs: Mapping[Node, str | ScratchArray],
        results: Sequence[Sequence[str | ScratchArray]],
    ) -> None:
        super().__init__(graph, domain)
        self.inputs = {n: x if isinstance(x, str) else x.name for n, x in inputs.items()}
        self.arrays = {n: x for n, x in inputs.items() if isinstance(x, ScratchArray)}
        self.results = results

    def input(self, node: Node, index: Index) -> StoredElement:
        """Return the buffer and index of the element of an input."""
        array = self.arrays.get(node)
        return super().input(node, index) if array is None else array.place(index, self.domain)

    def outputs(self, k: int, kind: ValueKind) -> list[StoredElement]:
        """Return the buffers and indices of the element of a result at the current point or row."""
        whole = super().outputs(k, kind)[0][1]
        index = self.domain.index(kind, known_shape(self.graph.outputs[k]))
        return [
            (x, whole) if isinstance(x, str) else x.place(index, self.domain)
            for x in self.results[k]
        ]
