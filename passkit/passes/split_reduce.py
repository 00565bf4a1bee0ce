"""SplitReduce: long folds with few results become two, so that all cores share the first.

What is split depends on the folded axes and on who reads the result, never on how many results
there are nor on the machine: the bits of a row are the same in any company.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import prod

from passkit.ast import Chunks, Reduce
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node
from passkit.graph.op import FReduce
from passkit.graph.rules import reduce_of
from passkit.passes.base import register_pass
from passkit.passes.context import PassContext
from passkit.space.partial import JOIN, PARTIAL, split
from passkit.values.size import Extent, Shape, Size, numel, substitute

ROW_CHUNK, COLUMN_CHUNK = 1 << 15, 128
"""Elements that one chunk of a result folds: along the lanes, or across them."""
ROW_LENGTH, COLUMN_LENGTH = 1 << 16, 512
"""From how many elements on a fold is split whose result nothing broadcasts back."""
ROW_LONGEST, COLUMN_LONGEST = 1 << 18, 4096
"""The same where the elements are needed again: splitting parts what would be one kernel."""
TYPICAL = 64
"""What an unknown extent is taken to be where that decides."""
NEARBY = 64
"""How many operators before and behind a reduction are looked at."""


@register_pass(
    "SplitReduce",
    depends="complete",
    preserves="functional",
    changes_graph=True,
    target_dependent=True,
)
def split_reduce(graph: Graph, context: PassContext) -> Graph:
    """Split reductions over many elements into chunks and what joins them.

    y = reduce_sum(x[1000000])    becomes    p = partial(x) [31 sums]; y = join(p)
    """
    if not any(n.op is not None and FReduce.get(n.op.name) is not None for n in graph.nodes):
        return graph
    # What the caller wants in one kernel stays whole: chunks would be joined by another.
    whole = {n for names in context.keep_together for n in names}
    cuts = {
        n: cut
        for n in graph.nodes
        if (cut := chunks_of(graph, n)) is not None and graph.names[n] not in whole
    }
    if not cuts:
        return graph
    made: dict[Node, Chunks] = dict(cuts)

    def change(node: Node, inputs: tuple[Entry, ...]) -> Sequence[Entry] | None:
        cut = made.get(node)
        if cut is None or not context.spend(f"SplitReduce: {node.where}"):
            return None
        return split(node if inputs == node.inputs else node.replaced(inputs), cut).entries

    return graph.rebuild(change)


def chunks_of(graph: Graph, node: Node) -> Chunks | None:
    """How a reduction is split, or None where it had better stay whole."""
    found = reduce_of(node)
    if found is None or node.op in (PARTIAL, JOIN):
        return None
    shape = graph.shape(node.inputs[0])
    if 0 in shape or not found.axes:
        return None
    last = max((k for k, n in enumerate(shape) if n != 1), default=-1)
    row = last in found.axes
    count = _typical(numel(shape[k] for k in found.axes))
    least = ROW_LENGTH if row else COLUMN_LENGTH
    if count < least and not _open(shape, found):
        return None
    if len(found.axes) < len(shape) or count < least:
        longest = ROW_LONGEST if row else COLUMN_LONGEST
        if count < longest and _is_part(graph, node, shape):
            return None
    return _cut(shape, found, ROW_CHUNK if row else COLUMN_CHUNK)


def _open(shape: Shape, found: Reduce) -> bool:
    return any(isinstance(shape[k], Size) for k in found.axes)


def _typical(extent: Extent) -> int:
    if isinstance(extent, int):
        return extent
    return int(substitute(extent, dict.fromkeys(extent.symbols, TYPICAL)))


def _cut(shape: Shape, found: Reduce, elements: int) -> Chunks | None:
    """The chunks along the outermost axis that has enough steps for them, if one has."""
    for k in found.axes:
        inner = [shape[j] for j in found.axes if j != k]
        if any(isinstance(n, Size) for n in inner):
            continue
        length = max(1, elements // prod(n for n in inner if isinstance(n, int)))
        extent = shape[k]
        if isinstance(extent, Size) or extent >= 2 * length:
            return Chunks(k, length)
    return None


def _is_part(graph: Graph, node: Node, shape: Shape) -> bool:
    """Whether a row goes on after this fold, or has had one before: softmax, variance.

    Something near that the result goes into has as many elements as are folded, or what is folded
    comes from another fold of as many.
    """
    total = numel(shape)

    def after(n: Node) -> Iterator[Node]:
        for entry in n.entries:
            yield from graph.users.get(entry, ())

    def folds_as_many(n: Node) -> bool:
        return reduce_of(n) is not None and numel(graph.shape(n.inputs[0])) == total

    behind = _near(node, after)
    if any(numel(graph.shape(e)) == total for n in behind for e in n.entries):
        return True
    return any(map(folds_as_many, _near(node, lambda n: (e.node for e in n.inputs))))


def _near(node: Node, step: Callable[[Node], Iterable[Node]]) -> set[Node]:
    """The first nodes that ``step`` leads to from ``node``, again and again."""
    seen, todo = set[Node](), [node]
    while todo and len(seen) < NEARBY:
        for other in step(todo.pop(0)):
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return seen
