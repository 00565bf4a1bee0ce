"""Features of random graphs: operators, dtypes, shapes and structures that a case covers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from passkit.graph.graph import Graph
from passkit.graph.node import Node, known_shape
from passkit.graph.op import FReduce, op_group
from passkit.values.size import Size
from tests.random_graphs.arrays import DTYPES
from tests.random_graphs.case import FUSIONS, Case
from tests.random_graphs.registry import NOT_DRAWN, standard_ops


def covered(case: Case) -> set[str]:
    """The kinds of graph that a case is one of."""
    graph = case.graph
    features = {f"fusion {case.fusion}"}
    if case.differentiated:
        features.add("differentiated")
    for node in graph.nodes:
        features.update(_of_node(node))
    shapes = [a.shape for f in case.feeds for a in f.values()]
    features |= {"zero size" for s in shapes if 0 in s}
    features |= {"size 1" for s in shapes if 1 in s}
    features |= {"odd size" for s in shapes for n in s if n % 2 and n > 2}
    features |= {"row over 16" for s in shapes if s and s[-1] > 16}
    features |= {"row over 64" for s in shapes if s and s[-1] > 64}
    users = graph.users
    outputs = list(graph.outputs)
    if len(set(outputs)) > 1:
        features.add("several outputs")
    if len(set(outputs)) < len(outputs):
        features.add("one output twice")
    if any(users.get(e) and not e.node.is_variable for e in outputs):
        features.add("fetched intermediate")
    if any(e.node.is_variable for e in outputs):
        features.add("output that is an input")
    if len(case.feeds) > 1:
        features.add("unknown size")
    if any(isinstance(n, Size) and "." in str(n) for e in graph.inputs for n in e.entries[0].shape):
        features.add("unknown size of its own")
    if _has_diamond(graph):
        features.add("diamond")
    return features


def _of_node(node: Node) -> Iterable[str]:
    if node.op is None:
        yield "state" if node.params.get("state") else "input"
        yield f"dtype {node.entries[0].dtype}"
        return
    yield f"op {node.op.name}"
    yield f"dtype {node.entries[0].dtype}"
    if node.control:
        yield "control edge"
    if len(set(node.inputs)) < len(node.inputs):
        yield "repeated input"
    if FReduce.get(node.op.name) is not None:
        yield from _of_reduction(node)
    elif node.op in op_group("elementwise").members and len(node.inputs) > 1:
        shapes = [known_shape(e) for e in node.inputs]
        whole = known_shape(node.entries[0])
        yield from ("broadcast of a scalar" for s in shapes if s == () != whole)
        yield from ("broadcast of ranks" for s in shapes if 0 < len(s) < len(whole))
        yield from ("broadcast of a size 1" for s in shapes if len(s) == len(whole) and s != whole)
        yield from ("no broadcast" for s in shapes if s == whole)


def _of_reduction(node: Node) -> Iterable[str]:
    fold = FReduce.get(node.op.name)(node)  # type: ignore[union-attr]
    rank = len(known_shape(node.inputs[0]))
    yield "reduction with keepdims" if fold.keepdims else "reduction without keepdims"
    match fold.axes:
        case ():
            yield "reduction of no axis"
        case axes if len(axes) == rank > 1:
            yield "reduction of all axes"
        case axes if len(axes) > 1:
            yield "reduction of several axes"
        case (axis,) if axis == rank - 1:
            yield "reduction of the last axis"
        case (0,):
            yield "reduction of the first axis"
        case _:
            yield "reduction of a middle axis"


def _has_diamond(graph: Graph) -> bool:
    """Whether two different operators read one value, and one operator reads both of them."""
    users = graph.users
    for readers in users.values():
        distinct = list(dict.fromkeys(readers))
        after = [{u for e in r.entries for u in users.get(e, ())} for r in distinct]
        if any(a & b for k, a in enumerate(after) for b in after[k + 1 :]):
            return True
    return False


def expected() -> list[str]:
    """Every kind that many graphs together must have."""
    features = (
        "differentiated, input, state, control edge, repeated input, diamond, "
        "zero size, size 1, odd size, row over 16, row over 64, several outputs, "
        "one output twice, fetched intermediate, "
        "output that is an input, unknown size, unknown size of its own, no broadcast, "
        "broadcast of a scalar, broadcast of ranks, broadcast of a size 1, "
        "reduction with keepdims, reduction without keepdims, reduction of no axis, "
        "reduction of all axes, reduction of several axes, reduction of the last axis, "
        "reduction of the first axis, reduction of a middle axis"
    )
    kinds = [*features.split(", "), *(f"dtype {d}" for d in DTYPES), "op assign", "op constant"]
    kinds += [f"fusion {f}" for f in FUSIONS]
    return kinds + [f"op {n}" for n in standard_ops() if n not in NOT_DRAWN]


def coverage(cases: Iterable[Case]) -> Counter[str]:
    """How many of the cases have each kind; kinds that are expected are there even at 0."""
    count = Counter(dict.fromkeys(expected(), 0))
    for case in cases:
        count.update(covered(case))
    return count


def table(count: Mapping[str, int]) -> str:
    """Coverage as lines of text."""
    rows = [f"{n:6d}  {kind}" for kind, n in sorted(count.items())]
    third = -(-len(rows) // 3)
    columns = [rows[k * third : (k + 1) * third] for k in range(3)]
    lines = ["".join(c[k].ljust(36) for c in columns if k < len(c)).rstrip() for k in range(third)]
    return "\n".join(lines)
