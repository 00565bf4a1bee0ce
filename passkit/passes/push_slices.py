"""PushSlices: compute only the elements that a slice reads of a result that nothing else reads.

    y = slice(exp(x) * 2)    becomes    y = exp(slice(x)) * 2

Operation streams apply it to what they execute, so that reading ``x[i, j]`` of a pending array
computes one element. It is no pass of the default pipeline: in a model, a slice of a result is
usually as large as the result, and a slice that stays behind a product keeps its epilogue fused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node
from passkit.graph.op import FCodeGen, OpPattern, TOpPattern, TStateful
from passkit.passes.base import register_pass
from passkit.passes.context import PassContext
from passkit.passes.move_transposes import transpose_axes
from passkit.values.size import Extent, Shape


class AxisRange(NamedTuple):
    """The part of an axis that a slice reads.

    Attributes:
        begin: the first element.
        size: the number of elements.
        step: the distance of two elements, not 0.
    """

    begin: Extent
    size: Extent
    step: int


Ranges = tuple[AxisRange, ...]
"""A range for each axis."""


@register_pass("PushSlices", depends="expanded", preserves="functional", changes_graph=True)
def push_slices(graph: Graph, context: PassContext) -> Graph:
    """Move slices before the operators that compute what they read.

    A slice passes elementwise operators, broadcasts, transpositions, inserted axes, reductions over
    other axes, and matrix products, as long as nothing else reads their results. Each slice that
    moves takes fuel of ``context``.
    """
    pusher = _Pusher(graph)

    def change(node: Node, inputs: tuple[Entry, ...]) -> Sequence[Entry] | None:
        """Return the entries of a slice that was moved; None for any other node.

        ``inputs`` are the node's inputs in the new graph, which are recorded.
        """
        pusher.inputs[node] = inputs
        ranges = _ranges_of(node, graph)
        if ranges is None or not pusher.passes(node.inputs[0]):
            return None
        if not context.spend(f"PushSlices: {node.where}"):
            return None
        pusher.slice = node
        return (pusher.pushed(node.inputs[0], inputs[0], ranges),)

    return graph.rebuild(change)


def _ranges_of(node: Node, graph: Graph) -> Ranges | None:
    """Return what a slice reads of each axis; None if the node is no slice that can be moved.

    That is any other operator, one with control dependencies, and a slice whose parameters do not
    have a number for each axis, or whose ``size`` has a -1.
    """
    if node.op is None or node.op.name != "slice" or node.control:
        return None
    begin, size, step = (node.params[name] for name in ("begin", "size", "step"))
    rank = len(graph.shape(node.inputs[0]))
    steps = (1,) * rank if step is None else step
    if any(len(p) != rank for p in (begin, size, steps)) or any(n == -1 for n in size):
        return None
    return tuple(map(AxisRange, begin, size, steps))


class _Pusher:
    """Moves the slices of a graph.

    Attributes:
        inputs: the inputs in the new graph of each node that was visited.
        slice: the slice that is moved.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.inputs: dict[Node, tuple[Entry, ...]] = {}
        self.slice: Node

    def passes(self, entry: Entry) -> bool:
        """Return whether a slice of ``entry`` may move before the operator that computes it.

        The entry must be its only result, read once and no output; the operator must have a rule,
        no state and no control dependencies.
        """
        node, graph = entry.node, self._graph
        if node.op is None or node.control or len(node.entries) > 1 or entry in graph.heads:
            return False
        if len(graph.users.get(entry, ())) != 1 or TStateful.get(node.op.name):
            return False
        return _rule(node) is not None

    def pushed(self, entry: Entry, rebuilt: Entry, ranges: Ranges) -> Entry:
        """Return the elements in ``ranges`` of an entry of the old graph.

        Args:
            entry: the entry.
            rebuilt: the same in the new graph.
            ranges: what is read of each axis. If that is everything, ``rebuilt`` is returned.
        """
        shape = self._graph.shape(entry)
        if all(r == (0, n, 1) for r, n in zip(ranges, shape, strict=True)):
            return rebuilt
        node = entry.node
        if self.passes(entry):
            rule = _rule(node)
            assert rule is not None
            operand_ranges = rule(node, self._graph, ranges)
            if operand_ranges is not None:
                inputs = [
                    new if each is None else self.pushed(old, new, each)
                    for old, new, each in zip(
                        node.inputs, self.inputs[node], operand_ranges, strict=True
                    )
                ]
                return _with_inputs(node, inputs, ranges).entries[0]
        return _sliced(self.slice, rebuilt, ranges)


def _sliced(node: Node, x: Entry, ranges: Ranges) -> Entry:
    """Return a slice of ``x`` by an operator like the slice ``node``."""
    params = {
        "begin": tuple(r.begin for r in ranges),
        "size": tuple(r.size for r in ranges),
        "step": tuple(r.step for r in ranges),
    }
    return Node(node.op, (x,), params).entries[0]


def _with_inputs(node: Node, inputs: Sequence[Entry], ranges: Ranges) -> Node:
    """Return a node like another one, without its name, that computes part of its result.

    Args:
        node: the other node.
        inputs: the parts of its inputs that it reads.
        ranges: the elements of its result to compute.
    """
    assert node.op is not None
    if node.op.name == "broadcast_to":
        return Node(node.op, inputs, {**node.params, "shape": tuple(r.size for r in ranges)})
    return node.replaced(inputs, name="")


OperandRanges = Sequence[Ranges | None]
"""The ranges that are read of each operand; None for operands that are read whole."""
RangeRule = Callable[[Node, Graph, Ranges], OperandRanges | None]
"""``rule(node, graph, ranges)`` returns what a node reads to compute the elements in ``ranges`` of
its result; None if that cannot be told."""


def _rule(node: Node) -> RangeRule | None:
    """Return the rule of a node's operator, which is no variable's; None if slices stay behind it.

    Elementwise operators and broadcasts with FCodeGen have one, reductions whose only parameters
    are axis and keepdims, and those in `_RULES`.
    """
    assert node.op is not None
    name = node.op.name
    if name in _RULES:
        return _RULES[name]
    pattern = TOpPattern.get(name)
    if pattern is None or not node.inputs:
        return None
    if pattern <= OpPattern.BROADCAST and FCodeGen.get(name) is not None:
        return _broadcast_ranges
    if pattern == OpPattern.REDUCE and set(node.params) == {"axis", "keepdims"}:
        return _reduction_ranges
    return None


def _aligned(shape: Shape, result: Shape, ranges: Ranges) -> Ranges | None:
    """Return what is read of an operand of this shape, which is broadcast to ``result``.

    Returns: None if an extent is symbolic and not that of the result, so that it may be 1.
    """
    first = len(result) - len(shape)
    operand_ranges = []
    for n, m, r in zip(shape, result[first:], ranges[first:], strict=True):
        if n == m:
            operand_ranges.append(r)
        elif n == 1:
            operand_ranges.append(AxisRange(0, 1, 1))
        else:
            return None
    return tuple(operand_ranges)


def _broadcast_ranges(node: Node, graph: Graph, ranges: Ranges) -> OperandRanges | None:
    """Return what an elementwise operator or a broadcast reads of each operand.

    None if that cannot be told of one of them, whose extent is symbolic.
    """
    result = graph.shape(node.entries[0])
    operands = [_aligned(graph.shape(e), result, ranges) for e in node.inputs]
    return None if any(r is None for r in operands) else operands


def _transposed_ranges(node: Node, graph: Graph, ranges: Ranges) -> OperandRanges | None:
    """Return what a transposition reads of its only operand for ``ranges`` of its result.

    The result is never None.
    """
    axes = transpose_axes(node)
    return [tuple(ranges[axes.index(k)] for k in range(len(axes)))]


def _inserted_axis_ranges(node: Node, graph: Graph, ranges: Ranges) -> OperandRanges | None:
    """Return what is read of an operand that gets axes of length 1; these are read whole.

    None if a range of such an axis is not all of it.
    """
    axis = node.params["axis"]
    axes = {a % len(ranges) for a in (axis if isinstance(axis, (tuple, list)) else (axis,))}
    if any(ranges[a][:2] != (0, 1) for a in axes):
        return None
    return [tuple(r for k, r in enumerate(ranges) if k not in axes)]


def _first_operand_ranges(node: Node, graph: Graph, ranges: Ranges) -> OperandRanges | None:
    """Return what is read by an operator whose result is its first operand: ``ranges`` of that.

    The others are read whole, for which None stands in the list; the result itself is never None.
    """
    return [ranges, *[None] * (len(node.inputs) - 1)]


def _reduction_ranges(node: Node, graph: Graph, ranges: Ranges) -> OperandRanges | None:
    """Return what a reduction reads of its only operand for ``ranges`` of its result.

    Those are the axes that it reduces whole, and of the others ``ranges``. The parameter "axis"
    None is all axes. The result is never None.
    """
    shape = graph.shape(node.inputs[0])
    axis = node.params["axis"]
    if axis is None:
        axes = set(range(len(shape)))
    else:
        axes = {a % len(shape) for a in (axis if isinstance(axis, (tuple, list)) else (axis,))}
    rest = iter(ranges)
    operand_ranges = []
    for k, n in enumerate(shape):
        if k not in axes:
            operand_ranges.append(next(rest))
            continue
        operand_ranges.append(AxisRange(0, n, 1))
        if node.params["keepdims"]:
            next(rest)
    return [tuple(operand_ranges)]


def _product_ranges(node: Node, graph: Graph, ranges: Ranges) -> OperandRanges | None:
    """Return what a matrix product of two operands of equal batch axes reads.

    None for other operands: of different ranks, of a rank below 2, or with other batch axes.
    """
    a, b = (graph.shape(e) for e in node.inputs)
    if len(node.inputs) != 2 or len(a) != len(b) or len(a) < 2 or a[:-2] != b[:-2]:
        return None
    *batch, rows, columns = ranges
    is_a_transposed, is_b_transposed = node.params["transpose_a"], node.params["transpose_b"]
    inner = AxisRange(0, a[-2] if is_a_transposed else a[-1], 1)
    first = (inner, rows) if is_a_transposed else (rows, inner)
    second = (columns, inner) if is_b_transposed else (inner, columns)
    return [(*batch, *first), (*batch, *second)]


_RULES: dict[str, RangeRule] = {
    "broadcast_to": _broadcast_ranges,
    "transpose": _transposed_ranges,
    "expand_dims": _inserted_axis_ranges,
    "sized_by": _first_operand_ranges,
    "matmul": _product_ranges,
}
"""The rules of operators that are neither elementwise nor reductions, by name."""
