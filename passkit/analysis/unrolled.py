"""Short reductions: a few elements, reduced at the point that needs them, without a loop.

Where lanes lie across what is folded, a loop over a handful of steps costs more than its steps: its
totals wait in memory. Written out, a short reduction is like any other operator that reads a few
elements of its input, as pools do that slide a window of 3 x 3.
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

MAX_LENGTH, MAX_OPERATORS = 64, 512
"""How many elements a short reduction has at most, and how many operators it repeats in all."""
MAX_STRIDE = 8
"""The longest rows that lanes may step over, each through one of its own."""
MIN_RESULTS = 64
"""Fewer results than this are no work for lanes that lie across."""

UNROLLED_REDUCE = register_op(
    "small_fold",
    num_inputs=1,
    params={"of": REQUIRED, "given": ()},
    doc="A reduction over a few elements, in one expression.",
)


def unrolled_graphs(graph: Graph) -> Iterator[Graph]:
    """The graph with its small reductions written out, and with some of them; the first is best.

    Longer reductions stay. What they fold may come from small ones, which then have no loop inside
    the loop of the longer one, as the squared distances of points have that forces are summed of.
    Where all reductions are small, such inner ones may be the only ones that can be written out.
    """
    folds = [n for n in graph.nodes if n.op is not None and FReduce.get(n.op.name) is not None]
    if not folds or any(n.op is not None and n.op.has_attr("FScan") for n in graph.nodes):
        return
    small = [n for n in folds if _can_unroll(n)]
    inner = _without_producers(graph, folds)
    for some in (small, [n for n in small if n in inner]):
        if some and (some is small or len(some) < len(small)):
            steps = max(prod(_reduced_extents(n)) for n in some)
            if steps * len(graph.nodes) <= MAX_OPERATORS:
                yield _with_unrolled(graph, set(some))


def _without_producers(graph: Graph, folds: Collection[Node]) -> set[Node]:
    """The reductions that come from no other."""
    behind, inner = set[Node](), set[Node]()
    for node in graph.nodes:
        if any(e.node in behind for e in node.inputs):
            behind.add(node)
        elif node in folds:
            behind.add(node)
            inner.add(node)
    return inner


def _with_unrolled(graph: Graph, folds: Collection[Node]) -> Graph:
    def change(node: Node, inputs: tuple[Entry, ...]) -> tuple[Entry, ...] | None:
        if node not in folds:
            return None
        assert node.op is not None
        given = {"of": node.op.name, "given": tuple(sorted(node.params.items()))}
        return Node(UNROLLED_REDUCE, inputs, given, node.name).entries

    return graph.rebuild(change)


def _can_unroll(node: Node) -> bool:
    """Whether a reduction has few steps, each of which mentions the total once."""
    found, results = _reduction_of(node), numel(known_shape(node.entries[0]))
    if found.chunks is not None or (isinstance(results, int) and results < MIN_RESULTS):
        return False
    taps = _reduced_extents(node)
    total = ast.left(found.identity.dtype)
    once = sum(x == total for x in walk(found.combine)) == 1
    return bool(taps) and 2 <= prod(taps) <= MAX_LENGTH and once


def _reduced_extents(node: Node) -> tuple[int, ...]:
    """The extents that a reduction folds; nothing where one is unknown."""
    shape = known_shape(node.inputs[0])
    found = [shape[k] for k in _reduction_of(node).axes]
    known = tuple(n for n in found if isinstance(n, int))
    return known if len(known) == len(found) else ()


def _reduction_of(node: Node) -> Reduce:
    fold = reduce_of(node)
    assert fold is not None
    return fold


def _original(node: Node) -> Node:
    source = node.inputs[0]
    assert source.dtype is not None
    return original_reduction(node, known_shape(source), source.dtype)


def unrolled_length(node: Node) -> int:
    """How many elements an operator folds at the point that needs them; 1 for any other."""
    return prod(_reduced_extents(_original(node))) if node.op is UNROLLED_REDUCE else 1


def _element(node: Node, index: Index, read: Reader) -> Expr:
    """Source: combine(combine(combine(identity, x0), x1), ...), from the first element on."""
    whole = _original(node)
    found, shape = _reduction_of(whole), known_shape(node.inputs[0])
    folded = dict.fromkeys(found.axes)
    kept = iter(i for k, i in enumerate(index) if not found.keepdims or k not in folded)
    at = [ast.size_of(0) if k in folded else next(kept) for k in range(len(shape))]
    total: Expr | None = found.identity if _starts_with_identity(found) else None
    for taps in product(*(range(n) for n in _reduced_extents(whole))):
        for k, tap in zip(found.axes, taps, strict=True):
            at[k] = ast.size_of(tap)
        value = read(*at)
        value = value if found.prepare is None else found.prepare(value)
        total = value if total is None else _combined(found, total, value)
    assert total is not None
    count = ast.const(prod(_reduced_extents(whole)), dt.int64)
    return total if found.finish is None else found.finish(total, count)


def _starts_with_identity(found: Reduce) -> bool:
    """Whether the identity takes part: zeros of either sign add up to 0 in any kernel."""
    return found.identity.dtype.is_float and ast.is_sum(found.combine, found.identity.dtype)


def _combined(found: Reduce, total: Expr, value: Expr) -> Expr:
    """The total with one more element."""
    dtype = found.identity.dtype
    sides = {ast.left(dtype): total, ast.right(dtype): value}

    def change(x: Expr) -> Expr:
        return sides[x] if x in sides else replace_children(x, change)

    return change(found.combine)


def _shape(node: Node, shape: Shape) -> Shape:
    return known_shape(_original(node).entries[0])


def _type(node: Node, dtype: DType) -> DType:
    found = original_reduction(node, known_shape(node.inputs[0]), dtype).entries[0].dtype
    assert found is not None
    return found


UNROLLED_REDUCE.set_attr("FElement", _element)
UNROLLED_REDUCE.set_attr("FInferShape", _shape)
UNROLLED_REDUCE.set_attr("FInferType", _type)
UNROLLED_REDUCE.set_attr("TOpPattern", OpPattern.INJECTIVE)
UNROLLED_REDUCE.set_attr("TOpCost", "expensive")
