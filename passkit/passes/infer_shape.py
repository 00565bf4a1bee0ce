"""InferShape: the shape of every entry, from the inputs forward and from the uses backward.

Source: NNVM's InferShape. Where NNVM has 0 for a dimension, sizes are symbols here, and two sizes
that must be equal are unified: the symbol is replaced everywhere, the equality is kept as a guard
that a call checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from passkit.errors import ShapeError
from passkit.graph import rules
from passkit.graph.graph import Annotation, Graph
from passkit.graph.infer import broadcast_shapes, collect_guards, infer_shapes, show_shape
from passkit.graph.node import Entry, Node
from passkit.graph.op import FInferShapeBack, OpPattern
from passkit.passes.base import register_pass
from passkit.passes.spread import Spread
from passkit.values.size import Extent, Shape, Size, divide_exactly, substitute, symbols_of

Guard = tuple[Extent, Extent, str]


@register_pass("InferShape", provides=("shape", "shape_guards", "shape_num_unknown"), implied=True)
def infer_shape(graph: Graph) -> Graph:
    """Map each entry to its shape, None where even the rank stays unknown.

    ``shape_guards`` are the equalities of sizes that only a call can check, with where they come
    from; those that the graph had already are kept. ``shape_num_unknown`` counts entries.

    x: f32[?]; y: f32[2,3]; z = add(exp(x), y)    becomes    shape[x] = (2, 3)

    Raises: ShapeError naming node, operator and shapes that do not fit.
    """
    shapes, guards, _ = find_shapes(graph)
    unknown = sum(s is None for s in shapes.values())
    return graph.with_attrs(
        shape=Annotation("shape", shapes), shape_guards=tuple(guards), shape_num_unknown=unknown
    )


def find_shapes(
    graph: Graph,
) -> tuple[dict[Entry, Shape | None], list[Guard], dict[str, Extent]]:
    """The shapes of all entries, the equalities that a call must check, and what they settle."""
    known: dict[Entry, Shape | None] = {e: e.shape for n in graph.nodes for e in n.entries}
    if None in known.values():
        _find_ranks(graph, known)
    guards: dict[Guard, None] = dict.fromkeys(graph.attrs.get("shape_guards", ()))
    values = solve(guards, {})
    while True:
        shapes, found = _forward(graph, known, values)
        guards |= dict.fromkeys(found)
        before = len(values)
        values = solve(guards, values)
        if len(values) == before:
            return shapes, list(guards), values


def _find_ranks(graph: Graph, known: dict[Entry, Shape | None]) -> None:
    spread = Spread(graph, known)

    def visit(node: Node) -> None:
        shapes = [known[e] for e in node.inputs]
        for entry, shape in zip(node.entries, infer_shapes(node, shapes), strict=False):
            spread.learn(entry, shape)
        if None in shapes and not joins(node):
            conclude(node, shapes)

    def guess(node: Node) -> None:
        if joins(node):
            conclude(node, [known[e] for e in node.inputs])

    def conclude(node: Node, shapes: Sequence[Shape | None]) -> None:
        outs = [known[e] for e in node.entries]
        for entry, shape in zip(node.inputs, _backward(node, shapes, outs), strict=True):
            spread.learn(entry, shape)

    spread.settle(visit, guess)


def joins(node: Node) -> bool:
    """Whether a node joins several inputs elementwise: any of them may be broadcast.

    What it says of an input of unknown rank is a guess, so that whatever is certain goes first.
    """
    assert node.op is not None
    return node.op.pattern <= OpPattern.BROADCAST and len(node.inputs) > 1


def _backward(
    node: Node, shapes: Sequence[Shape | None], outs: Sequence[Shape | None]
) -> Sequence[Shape | None]:
    assert node.op is not None
    if FInferShapeBack.get(node.op.name) is not None:
        return rules.shapes_back(node, shapes, outs)
    if node.op.pattern is not OpPattern.ELEMWISE and not joins(node):
        return [None] * len(shapes)
    # What is joined elementwise has one shape, if nothing says otherwise (NNVM).
    known = [s for s in shapes if s is not None]
    whole = outs[0] if outs[0] is not None or not known else broadcast_shapes(node, known)
    return [whole if s is None else s for s in shapes]


def _forward(
    graph: Graph, known: dict[Entry, Shape | None], values: dict[str, Extent]
) -> tuple[dict[Entry, Shape | None], list[Guard]]:
    """Shapes by the forward rules alone, with ``values`` put in for symbols."""
    shapes: dict[Entry, Shape | None] = {}
    guards: list[Guard] = []
    for node in graph.nodes:
        if node.op is None:
            entry = node.entries[0]
            shapes[entry] = put_in(known[entry], values)
            continue
        inputs = [shapes[e] for e in node.inputs]
        if all(s is e.shape and _is_static(s) for s, e in zip(inputs, node.inputs, strict=True)):
            for entry in node.entries:
                shapes[entry] = put_in(known[entry], values)
            continue
        with collect_guards() as found:
            outs = infer_shapes(with_values(node, values), inputs)
            for k, entry in enumerate(node.entries):
                told = put_in(known[entry], values)
                shapes[entry] = _both(entry, outs[k] if k < len(outs) else None, told, found)
        guards += found
    return shapes, guards


def _is_static(shape: Shape | None) -> bool:
    return shape is not None and all(type(d) is int for d in shape)


def put_in(shape: Shape | None, values: dict[str, Extent]) -> Shape | None:
    """``shape`` with values put in for its symbols."""
    if not values or shape is None or _is_static(shape):
        return shape
    return tuple(substitute(d, values) for d in shape)


def with_values(node: Node, values: dict[str, Extent]) -> Node:
    """``node`` with values put in for symbols in its parameters."""
    params = {k: _put(v, values) for k, v in node.params.items()} if values else node.params
    if all(params[k] is v for k, v in node.params.items()):
        return node
    return Node(node.op, node.inputs, params, node.name, node.control)


def _put(value: Any, values: dict[str, Extent]) -> Any:
    """A parameter with values put in; the same object when there are none."""
    if isinstance(value, Size):
        found = substitute(value, values)
        return value if found == value else found
    if isinstance(value, tuple):
        parts = tuple(_put(v, values) for v in value)
        return value if all(a is b for a, b in zip(parts, value, strict=True)) else parts
    return value


def _both(entry: Entry, a: Shape | None, b: Shape | None, guards: list[Guard]) -> Shape | None:
    """The shape that two ways of inference agree on."""
    if a is None or b is None or a == b:
        return b if a is None else a
    where = entry.node.where
    if len(a) != len(b) or any(
        isinstance(c, int) and isinstance(d, int) and c != d for c, d in zip(a, b, strict=True)
    ):
        raise ShapeError(
            f"{where} has shape {show_shape(a)} by its inputs and {show_shape(b)} by its uses; "
            f"change the shape of one of its inputs"
        )
    guards += [
        (c, d, f"{where}: dimension {k}")
        for k, (c, d) in enumerate(zip(a, b, strict=True))
        if c != d
    ]
    return tuple(d if isinstance(d, int) else c for c, d in zip(a, b, strict=True))


def solve(guards: Iterable[Guard], values: dict[str, Extent]) -> dict[str, Extent]:
    """Values for symbols that follow from equalities, as far as they follow by themselves.

    Raises: ShapeError when an equality can never hold.
    """
    values = dict(values)
    for a, b, where in guards:
        left, right = substitute(a, values), substitute(b, values)
        difference = left - right
        if isinstance(difference, int):
            if difference:
                raise ShapeError(f"{where} must agree, got {_said(a, left)} and {_said(b, right)}")
            continue
        found = _isolate(difference, where)
        if found is not None:
            name, value = found
            values = {s: substitute(v, {name: value}) for s, v in values.items()}
            values[name] = value
    return values


def _said(size: Extent, value: Extent) -> str:
    return str(size) if size == value else f"{size} (= {value})"


def _isolate(difference: Size, where: str) -> tuple[str, Extent] | None:
    """The symbol that ``difference == 0`` settles, with its value.

    The last symbol by name that stands alone gives way, so that the choice is the same always.
    """
    for name in sorted(difference.symbols, reverse=True):
        alone = [c for m, c in difference.terms if m == (name,)]
        rest = difference - Size.symbol(name) * alone[0] if alone else difference
        if not alone or name in symbols_of([rest]):
            continue
        value = divide_exactly(-1 * rest, alone[0])
        if value is not None and not (isinstance(value, int) and value < 0):
            return name, value
        if isinstance(rest, int):
            raise ShapeError(
                f"{where} must agree, which needs {name} = {-rest}/{alone[0]}: no such size"
            )
    return None
