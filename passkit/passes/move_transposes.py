"""MoveTransposes: move transposes behind the operators that use them, where they cancel others.

    y = transpose(relu(transpose(x)))    becomes    y = relu(x)

Convolutions compute with channels last, and frontends whose images have channels first transpose
each operand and result of them. Kernels read a transpose in place, but between two kernels it
decides in which order a value lies in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

from passkit.graph.attribute_calls import reduce_of
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node, known_shape
from passkit.graph.op import FCodeGen, FElement, OpPattern, TOpPattern, TStateful, get_op
from passkit.passes.base import register_pass
from passkit.passes.context import PassContext
from passkit.passes.fusion_hints import HINTED
from passkit.values.size import Extent, Shape, at_least, numel

SMALL = 16
"""An operand whose elements are this many times fewer than those of the result may be transposed,
so that another one need not be."""

Axes = tuple[int, ...]


@register_pass("MoveTransposes", depends="expanded", preserves="functional", changes_graph=True)
def move_transposes(graph: Graph, context: PassContext) -> Graph:
    """Move transposes behind elementwise operators, reductions, slices and concatenations.

    The graph stays as it is unless it has fewer transposes afterwards. Operators keep their names,
    and transposes that a fusion hint names stay where they are. Each operator that a transpose
    passes takes fuel of ``context``.
    """
    if not any(_is_transpose(node) for node in graph.nodes):
        return graph
    hinted = graph.attrs.get(HINTED, frozenset())
    if _count(graph.rebuild(_Mover(lambda decision: True, hinted).change)) >= _count(graph):
        return graph
    return graph.rebuild(_Mover(context.spend, hinted).change)


def _is_transpose(node: Node) -> bool:
    return node.op is not None and node.op.name == "transpose" and not node.control


def _count(graph: Graph) -> int:
    """Return the number of transposes that move elements, of more than a vector, in memory."""
    return sum(
        _is_transpose(node) and not _is_reshape(known_shape(node.inputs[0]), transpose_axes(node))
        for node in graph.nodes
    )


def transpose_axes(node: Node) -> Axes:
    """Return the axes of the operand of a transpose in the order of the result, from 0 on."""
    rank = len(known_shape(node.inputs[0]))
    axes = node.params["axes"]
    return tuple(range(rank))[::-1] if axes is None else tuple(a % rank for a in axes)


def _is_reshape(shape: Shape, axes: Axes) -> bool:
    """Return whether a transpose of this shape keeps elements in their order in memory."""
    order = [a for a in axes if shape[a] != 1]
    return order == sorted(order)


class _Mover:
    """Rebuilds nodes of a graph with transposes behind them.

    Attributes:
        spend: called with each decision; returns whether it may be taken.
        hinted: the names of nodes in fusion hints.
    """

    def __init__(self, spend: Callable[[str], bool], hinted: Set[str]) -> None:
        self.spend, self.hinted = spend, hinted
        self.transposed: dict[tuple[Entry, Axes], Entry] = {}
        """Small operands that were transposed, by the entry and the axes."""

    def change(self, node: Node, inputs: tuple[Entry, ...]) -> Sequence[Entry] | None:
        """Return the entries of a node with transposes behind it; None for a node that stays.

        ``inputs`` are the node's inputs in the new graph.
        """
        if node.op is None or node.control or len(node.entries) > 1 or not inputs:
            return None
        if TStateful.get(node.op.name) or any(e.shape is None for e in node.inputs):
            return None
        if _is_transpose(node):
            if node.name in self.hinted or inputs[0].node.name in self.hinted:
                return None
            merged = _transposed(inputs[0], transpose_axes(node))
            return None if merged.node.inputs == inputs else (merged,)
        transposes = [e.node for e in inputs if _is_transpose(e.node)]
        axes = next((transpose_axes(n) for n in transposes if n.name not in self.hinted), None)
        if axes is None:
            return None
        moved = self._moved(node, inputs, axes)
        if moved is None or not self.spend(f"MoveTransposes: {node.where}"):
            return None
        return (moved,)

    def _moved(self, node: Node, inputs: tuple[Entry, ...], axes: Axes) -> Entry | None:
        """Return the result of a node that computes before a transpose; None if it cannot.

        ``axes`` are those of the first transpose among ``inputs``.
        """
        assert node.op is not None
        name, pattern = node.op.name, TOpPattern.get(node.op.name)
        is_elementwise = FCodeGen.get(name) is not None and FElement.get(name) is None
        if pattern is not None and pattern <= OpPattern.BROADCAST and is_elementwise:
            result = known_shape(node.entries[0])
            if len(axes) != len(result):
                return None
            operands = _complete([self._operand(e, axes, result) for e in inputs])
            if operands is None:
                return None
            return _transposed(node.replaced(operands, ()).entries[0], axes)
        operands = _complete([self._source(e, axes) for e in inputs])
        if operands is None:
            return None
        if name == "concat":
            axis = axes[node.params["axis"] % len(axes)]
            moved = Node(node.op, operands, {**node.params, "axis": axis}, node.name)
            return _transposed(moved.entries[0], axes)
        if name == "slice":
            return _moved_slice(node, operands, axes)
        if set(node.params) == {"axis", "keepdims"}:
            return _moved_reduction(node, operands, axes)
        return None

    def _source(self, entry: Entry, axes: Axes) -> Entry | None:
        """Return the entry whose transpose by ``axes`` is ``entry``; None if there is none."""
        node = entry.node
        if not _is_transpose(node) or node.name in self.hinted or transpose_axes(node) != axes:
            return None
        return node.inputs[0]

    def _operand(self, entry: Entry, axes: Axes, result: Shape) -> Entry | None:
        """Return an operand of an elementwise operator in the order before a transpose.

        It is what is transposed by the same axes, or an operand that is small beside ``result``,
        the operator's shape, or of few axes. None for another one.
        """
        source = self._source(entry, axes)
        if source is not None:
            return source
        shape = known_shape(entry)
        long_axes = [n for n in shape if n != 1]
        if not long_axes:
            return entry
        padded = (1,) * (len(axes) - len(shape)) + shape
        inverse = tuple(axes.index(k) for k in range(len(axes)))
        is_reshape = _is_reshape(padded, inverse)
        if not is_reshape and not at_least(numel(result), SMALL * numel(shape)):
            return None
        key = entry, inverse
        if key not in self.transposed:
            if is_reshape:
                moved = _reshaped(entry, tuple(padded[a] for a in inverse))
            else:
                moved = _transposed(entry if padded == shape else _reshaped(entry, padded), inverse)
            self.transposed[key] = moved
        return self.transposed[key]


def _complete(entries: Sequence[Entry | None]) -> list[Entry] | None:
    """Return the entries as a list; None if one of them is None."""
    present = [e for e in entries if e is not None]
    return present if len(present) == len(entries) else None


def _moved_slice(node: Node, operands: Sequence[Entry], axes: Axes) -> Entry | None:
    """Return a slice before a transpose; None if it has no parameter for each axis."""
    params: dict[str, tuple[Extent, ...] | None] = {}
    for name in ("begin", "size", "step"):
        values = node.params[name]
        if values is None:
            params[name] = None
            continue
        if len(values) != len(axes):
            return None
        params[name] = tuple(values[axes.index(k)] for k in range(len(axes)))
    return _transposed(Node(node.op, operands, params, node.name).entries[0], axes)


def _moved_reduction(node: Node, operands: Sequence[Entry], axes: Axes) -> Entry | None:
    """Return a reduction before a transpose; None for another operator, or one over all axes.

    The axes that are left, or all with length 1 for those reduced, are transposed behind it.
    """
    reduction = reduce_of(node)
    if reduction is None or len(reduction.axes) == len(axes):
        return None
    params = {**node.params, "axis": tuple(sorted(axes[a] for a in reduction.axes))}
    moved = Node(node.op, operands, params, node.name).entries[0]
    if reduction.keepdims:
        return _transposed(moved, axes)
    left = [axes[k] for k in range(len(axes)) if k not in reduction.axes]
    return _transposed(moved, tuple(sorted(left).index(a) for a in left))


def _transposed(entry: Entry, axes: Axes) -> Entry:
    """Return the transpose of an entry; transposes of transposes are merged."""
    if _is_transpose(entry.node):
        inner = transpose_axes(entry.node)
        entry, axes = entry.node.inputs[0], tuple(inner[a] for a in axes)
    if axes == tuple(range(len(axes))):
        return entry
    return Node(get_op("transpose"), (entry,), {"axes": axes}).entries[0]


def _reshaped(entry: Entry, shape: Shape) -> Entry:
    return Node(get_op("reshape"), (entry,), {"shape": shape}).entries[0]
