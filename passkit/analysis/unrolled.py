"""Unrolled reductions: a few elements that are reduced where they are read, without a loop.

If vectors run across the reduced axis, a loop of a few steps costs more than its steps, as its
totals are stored between them. An unrolled reduction is one expression, as any other operator that
reads a few elements of its input. Examples are pools with a window of 3 x 3.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import product
from math import prod

from passkit import ast
from passkit.analysis.accesses import Index, Reader
from passkit.analysis.partial import original_reduction
from passkit.ast import Expr, Reduce
from passkit.ast.tidy import replace_children
from passkit.ast.walk import walk
from passkit.graph.attribute_calls import reduce_of
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node, known_shape
from passkit.graph.op import REQUIRED, FReduce, OpPattern, register_op
from passkit.values import dtype as dt
from passkit.values.dtype import DType
from passkit.values.size import Shape, numel

MAX_LENGTH = 64
"""The most elements that an unrolled reduction reduces."""
MAX_OPERATORS = 512
"""The most operators that unrolling repeats in a graph, each as often as there are elements."""
MAX_STRIDE = 8
"""The longest rows of which a vector may read one element each."""
MIN_RESULTS = 64
"""The fewest results of an unrolled reduction, over which vectors run."""

UNROLLED_REDUCE = register_op(
    "unrolled_reduce",
    num_inputs=1,
    params={"of": REQUIRED, "given": ()},
    doc="A reduction over a few elements, in one expression.",
)


def unrolled_graphs(graph: Graph) -> Iterator[Graph]:
    """Yield the graph with all short reductions unrolled, then with those without reduced operands.

    Longer reductions remain loops. Their operands may be made of short reductions, which then need
    no loop inside the longer one: forces between points are sums over squared distances, which are
    short sums themselves. Nothing is yielded for a graph with a scan, or if too many operators
    would be repeated.
    """
    reductions = [n for n in graph.nodes if n.op is not None and FReduce.get(n.op.name) is not None]
    if not reductions or any(n.op is not None and n.op.has_attr("FScan") for n in graph.nodes):
        return
    short = [n for n in reductions if _can_unroll(n)]
    innermost = _innermost(graph, reductions)
    for chosen in (short, [n for n in short if n in innermost]):
        if chosen and (chosen is short or len(chosen) < len(short)):
            length = max(prod(_reduced_extents(n)) for n in chosen)
            if length * len(graph.nodes) <= MAX_OPERATORS:
                yield _with_unrolled(graph, set(chosen))


def _innermost(graph: Graph, reductions: Collection[Node]) -> set[Node]:
    """Return the reductions that do not depend on another one."""
    dependent, innermost = set[Node](), set[Node]()
    for node in graph.nodes:
        if any(e.node in dependent for e in node.inputs):
            dependent.add(node)
        elif node in reductions:
            dependent.add(node)
            innermost.add(node)
    return innermost


def _with_unrolled(graph: Graph, reductions: Collection[Node]) -> Graph:
    """Return the graph with some reductions unrolled."""

    def change(node: Node, inputs: tuple[Entry, ...]) -> tuple[Entry, ...] | None:
        """Return the result of an unrolled reduction; None for other nodes."""
        if node not in reductions:
            return None
        assert node.op is not None
        params = {"of": node.op.name, "given": tuple(sorted(node.params.items()))}
        return Node(UNROLLED_REDUCE, inputs, params, node.name).entries

    return graph.rebuild(change)


def _can_unroll(node: Node) -> bool:
    """Return whether a reduction has few elements, and uses its total once for each."""
    reduction, results = _reduction_of(node), numel(known_shape(node.entries[0]))
    if reduction.chunks is not None or (isinstance(results, int) and results < MIN_RESULTS):
        return False
    extents = _reduced_extents(node)
    total = ast.left(reduction.identity.dtype)
    uses_total_once = sum(x == total for x in walk(reduction.combine)) == 1
    return bool(extents) and 2 <= prod(extents) <= MAX_LENGTH and uses_total_once


def _reduced_extents(node: Node) -> tuple[int, ...]:
    """Return the extents of the reduced dimensions; nothing if one is unknown."""
    shape = known_shape(node.inputs[0])
    extents = [shape[k] for k in _reduction_of(node).axes]
    integers = tuple(n for n in extents if isinstance(n, int))
    return integers if len(integers) == len(extents) else ()


def _reduction_of(node: Node) -> Reduce:
    """Return how a reduction is computed."""
    reduction = reduce_of(node)
    assert reduction is not None
    return reduction


def _original(node: Node) -> Node:
    """Return the reduction that was unrolled, on an input of its own."""
    source = node.inputs[0]
    assert source.dtype is not None
    return original_reduction(node, known_shape(source), source.dtype)


def unrolled_length(node: Node) -> int:
    """Return the number of elements that an unrolled reduction reduces; 1 for another operator."""
    return prod(_reduced_extents(_original(node))) if node.op is UNROLLED_REDUCE else 1


def _element(node: Node, index: Index, read: Reader) -> Expr:
    """Return combine(combine(combine(identity, x0), x1), ...), beginning with the first element."""
    original = _original(node)
    reduction, shape = _reduction_of(original), known_shape(node.inputs[0])
    axes = dict.fromkeys(reduction.axes)
    kept = iter(i for k, i in enumerate(index) if not reduction.keepdims or k not in axes)
    at = [ast.size_of(0) if k in axes else next(kept) for k in range(len(shape))]
    total: Expr | None = reduction.identity if _starts_with_identity(reduction) else None
    for coordinates in product(*(range(n) for n in _reduced_extents(original))):
        for k, coordinate in zip(reduction.axes, coordinates, strict=True):
            at[k] = ast.size_of(coordinate)
        value = read(*at)
        value = value if reduction.prepare is None else reduction.prepare(value)
        total = value if total is None else _combined(reduction, total, value)
    assert total is not None
    count = ast.const(prod(_reduced_extents(original)), dt.int64)
    return total if reduction.finish is None else reduction.finish(total, count)


def _starts_with_identity(reduction: Reduce) -> bool:
    """Return whether totals start with the identity, so that a sum of negative zeros is 0."""
    dtype = reduction.identity.dtype
    return dtype.is_float and ast.is_sum(reduction.combine, dtype)


def _combined(reduction: Reduce, total: Expr, value: Expr) -> Expr:
    """Return the combination of a total with one more element."""
    dtype = reduction.identity.dtype
    operands = {ast.left(dtype): total, ast.right(dtype): value}

    def change(x: Expr) -> Expr:
        """Return an expression with the total and the element in place of the operands."""
        return operands[x] if x in operands else replace_children(x, change)

    return change(reduction.combine)


def _shape(node: Node, shape: Shape) -> Shape:
    """Return the shape of the result."""
    return known_shape(_original(node).entries[0])


def _type(node: Node, dtype: DType) -> DType:
    """Return the dtype of the result for an input of a dtype."""
    original = original_reduction(node, known_shape(node.inputs[0]), dtype)
    result_dtype = original.entries[0].dtype
    assert result_dtype is not None
    return result_dtype


UNROLLED_REDUCE.set_attr("FElement", _element)
UNROLLED_REDUCE.set_attr("FInferShape", _shape)
UNROLLED_REDUCE.set_attr("FInferType", _type)
UNROLLED_REDUCE.set_attr("TOpPattern", OpPattern.INJECTIVE)
UNROLLED_REDUCE.set_attr("TOpCost", "expensive")
