"""InferShape: infer the shape of every entry, forward from inputs and backward from uses.

Source: NNVM's InferShape. Where NNVM has 0 for a dimension, sizes are symbols here, and two sizes
that must be equal are unified: the symbol is replaced everywhere, the equality is kept as a guard
that a call checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from passkit.errors import ShapeError
from passkit.graph import attribute_calls
from passkit.graph.graph import Annotation, Graph
from passkit.graph.infer import broadcast_shapes, collect_guards, infer_shapes, show_shape
from passkit.graph.node import Entry, Node
from passkit.graph.op import FInferShapeBack, OpPattern
from passkit.passes.base import register_pass
from passkit.passes.propagation import Propagation
from passkit.values.size import Extent, Shape, Size, divide_exactly, substitute, symbols_of

Guard = tuple[Extent, Extent, str]
"""Two sizes that must be equal in every call, and the operator and dimension they come from."""


@register_pass("InferShape", provides=("shape", "shape_guards", "shape_num_unknown"), implied=True)
def infer_shape(graph: Graph) -> Graph:
    """Map each entry to its shape, None where even the rank stays unknown.

    The annotation ``shape_guards`` lists the equalities of sizes that only a call can check, with
    their origin; those that the graph has already are kept. ``shape_num_unknown`` is the number of
    entries whose rank is unknown.

    x: f32[?]; y: f32[2,3]; z = add(exp(x), y)    becomes    shape[x] = (2, 3)

    Raises: ShapeError naming the node, its operator and the shapes that do not fit, or if a guard
    can never hold; RuleError if FInferShape or FInferShapeBack returns something else than it must;
    GraphError or DTypeError if it refuses a parameter.
    """
    shapes, guards, _ = infer_graph_shapes(graph)
    unknown = sum(s is None for s in shapes.values())
    return graph.with_attrs(
        shape=Annotation("shape", shapes), shape_guards=tuple(guards), shape_num_unknown=unknown
    )


def infer_graph_shapes(
    graph: Graph,
) -> tuple[dict[Entry, Shape | None], list[Guard], dict[str, Extent]]:
    """Infer the shapes of all entries of a graph, forward from inputs and backward from uses.

    Guards in the annotation ``shape_guards`` are included.

    Returns:
        The shape of each entry, None where its rank remains unknown; the guards, conditions on
        symbolic sizes that a call checks; and by symbol the values that the guards determine.

    Raises: ShapeError if shapes do not fit, or if a guard can never hold; RuleError if FInferShape
    or FInferShapeBack returns something else than it must; GraphError or DTypeError if it refuses a
    parameter.
    """
    declared: dict[Entry, Shape | None] = {e: e.shape for n in graph.nodes for e in n.entries}
    if None in declared.values():
        _infer_ranks(graph, declared)
    guards: dict[Guard, None] = dict.fromkeys(graph.attrs.get("shape_guards", ()))
    values = solve_guards(guards, {})
    while True:
        shapes, new_guards = _forward(graph, declared, values)
        guards |= dict.fromkeys(new_guards)
        num_solved = len(values)
        values = solve_guards(guards, values)
        if len(values) == num_solved:
            return shapes, list(guards), values


def _infer_ranks(graph: Graph, shapes: dict[Entry, Shape | None]) -> None:
    """Infer unknown shapes, None in ``shapes``, from known ones in both directions, in place.

    Raises: ShapeError if shapes do not fit; RuleError if FInferShape or FInferShapeBack returns
    something else than it must; GraphError or DTypeError if it refuses a parameter.
    """
    propagation = Propagation(graph, shapes)

    def infer(node: Node) -> None:
        """Infer the shapes of a node's outputs, and of inputs unless these may be broadcast.

        Raises: ShapeError if the shapes do not fit; RuleError, GraphError or DTypeError from the
        operator's rules for shapes.
        """
        inputs = [shapes[e] for e in node.inputs]
        for entry, shape in zip(node.entries, infer_shapes(node, inputs), strict=False):
            propagation.set_fact(entry, shape)
        if None in inputs and not joins_inputs(node):
            infer_back(node, inputs)

    def guess(node: Node) -> None:
        """Infer the shapes of inputs that may be broadcast; do nothing for other operators.

        Raises: ShapeError if the shapes do not fit; RuleError if FInferShapeBack returns something
        else than it must.
        """
        if joins_inputs(node):
            infer_back(node, [shapes[e] for e in node.inputs])

    def infer_back(node: Node, inputs: Sequence[Shape | None]) -> None:
        """Infer unknown shapes of a node's inputs from known shapes of inputs and outputs.

        ``inputs`` are the shapes of the inputs so far, None where unknown.

        Raises: ShapeError if the shapes do not fit; RuleError if FInferShapeBack returns something
        else than it must.
        """
        outputs = [shapes[e] for e in node.entries]
        for entry, shape in zip(node.inputs, _backward(node, inputs, outputs), strict=True):
            propagation.set_fact(entry, shape)

    propagation.run(infer, guess)


def joins_inputs(node: Node) -> bool:
    """Return whether an operator combines several inputs elementwise, so that any may be broadcast.

    ``node`` is no variable. Such an operator has two inputs or more, and the TOpPattern ELEMWISE or
    BROADCAST. The shape that its output implies for an input of unknown rank is a guess only.
    """
    assert node.op is not None
    return node.op.pattern <= OpPattern.BROADCAST and len(node.inputs) > 1


def _backward(
    node: Node, inputs: Sequence[Shape | None], outputs: Sequence[Shape | None]
) -> Sequence[Shape | None]:
    """Return the shapes of a node's inputs that follow from those of its inputs and outputs.

    The input of an elementwise operator, and unknown inputs that are combined elementwise, have the
    shape of the output, or if that is unknown the one that the known inputs broadcast to; an
    operator with FInferShapeBack decides itself. The result has a shape for each input, None where
    nothing follows.

    Raises: ShapeError if inputs that are combined elementwise do not broadcast; RuleError if
    FInferShapeBack returns something else than a shape or None for each input; what it raises.
    """
    assert node.op is not None
    if FInferShapeBack.get(node.op.name) is not None:
        return attribute_calls.call_infer_shape_back(node, inputs, outputs)
    if node.op.pattern is not OpPattern.ELEMWISE and not joins_inputs(node):
        return [None] * len(inputs)
    # Inputs that are combined elementwise have the shape of the output, by default (NNVM).
    known_shapes = [s for s in inputs if s is not None]
    result = outputs[0]
    if result is None and known_shapes:
        result = broadcast_shapes(node, known_shapes)
    return [result if s is None else s for s in inputs]


def _forward(
    graph: Graph, declared: dict[Entry, Shape | None], values: dict[str, Extent]
) -> tuple[dict[Entry, Shape | None], list[Guard]]:
    """Infer the shapes of all entries by forward rules alone.

    Args:
        graph: the graph.
        declared: the shapes that entries were created with or that uses imply.
        values: extents to put in place of symbols.

    Returns: The shapes, None where unknown, and the guards that the rules recorded.

    Raises: ShapeError if shapes do not fit; RuleError if FInferShape returns no shape for each
    result; GraphError or DTypeError if it refuses a parameter.
    """
    shapes: dict[Entry, Shape | None] = {}
    guards: list[Guard] = []
    for node in graph.nodes:
        if node.op is None:
            entry = node.entries[0]
            shapes[entry] = substitute_shape(declared[entry], values)
            continue
        inputs = [shapes[e] for e in node.inputs]
        if all(s is e.shape and _is_static(s) for s, e in zip(inputs, node.inputs, strict=True)):
            for entry in node.entries:
                shapes[entry] = substitute_shape(declared[entry], values)
            continue
        with collect_guards() as node_guards:
            outputs = infer_shapes(with_values(node, values), inputs)
            for k, entry in enumerate(node.entries):
                inferred = outputs[k] if k < len(outputs) else None
                expected = substitute_shape(declared[entry], values)
                shapes[entry] = _unify(entry, inferred, expected, node_guards)
        guards += node_guards
    return shapes, guards


def _is_static(shape: Shape | None) -> bool:
    """Return whether every extent is a number; False for None, an unknown rank."""
    return shape is not None and all(type(d) is int for d in shape)


def substitute_shape(shape: Shape | None, values: dict[str, Extent]) -> Shape | None:
    """Return a shape with ``values`` in place of its symbols; None, an unknown shape, stays.

    Raises: ShapeError if a size then divides by zero.
    """
    if not values or shape is None or _is_static(shape):
        return shape
    return tuple(substitute(d, values) for d in shape)


def with_values(node: Node, values: dict[str, Extent]) -> Node:
    """Return a node with ``values``, by name, in place of the symbols in its parameters.

    It is the node itself if no parameter changes.

    Raises: ShapeError if a size then divides by zero.
    """
    params = (
        {k: _substitute_param(v, values) for k, v in node.params.items()} if values else node.params
    )
    if all(params[k] is v for k, v in node.params.items()):
        return node
    return Node(node.op, node.inputs, params, node.name, node.control)


def _substitute_param(value: Any, values: dict[str, Extent]) -> Any:
    """Return a parameter with values in place of symbols, in tuples too.

    It is the same object if nothing in it changes. Raises: ShapeError if a size then divides by
    zero.
    """
    if isinstance(value, Size):
        size = substitute(value, values)
        return value if size == value else size
    if isinstance(value, tuple):
        parts = tuple(_substitute_param(v, values) for v in value)
        return value if all(a is b for a, b in zip(parts, value, strict=True)) else parts
    return value


def _unify(entry: Entry, a: Shape | None, b: Shape | None, guards: list[Guard]) -> Shape | None:
    """Return the shape of an entry that is ``a`` by its inputs and ``b`` by its uses.

    None is an unknown shape; the result is None if both are. Where extents differ and one is
    symbolic, that they must be equal is appended to ``guards``; the result has the number if one of
    them is a number, else that of ``a``.

    Raises: ShapeError if ranks differ, or extents that are both numbers.
    """
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


def solve_guards(guards: Iterable[Guard], values: dict[str, Extent]) -> dict[str, Extent]:
    """Return ``values`` with those of further symbols that follow from equalities, one by one.

    Args:
        guards: the equalities.
        values: extents of symbols that are solved already; it is not changed.

    Returns: A new dict. Equalities that determine no symbol are passed over.

    Raises: ShapeError if both sides are different numbers, or would need a size that is no whole
    number of at least 0.
    """
    values = dict(values)
    for a, b, where in guards:
        left, right = substitute(a, values), substitute(b, values)
        difference = left - right
        if isinstance(difference, int):
            if difference:
                raise ShapeError(
                    f"{where} must agree, got {_shown(a, left)} and {_shown(b, right)}"
                )
            continue
        solution = _isolate(difference, where)
        if solution is not None:
            name, value = solution
            values = {s: substitute(v, {name: value}) for s, v in values.items()}
            values[name] = value
    return values


def _shown(size: Extent, value: Extent) -> str:
    """Return a size as text, followed by ``(= value)`` if ``value`` differs from it."""
    return str(size) if size == value else f"{size} (= {value})"


def _isolate(difference: Size, where: str) -> tuple[str, Extent] | None:
    """Solve ``difference == 0`` for one symbol; return the symbol and its value, None if none can.

    Of the symbols that occur linearly and in one term only, and whose value is exact, the last by
    name is solved for, so that the choice is deterministic. ``where`` says in errors what must
    agree.

    Raises: ShapeError if there is only one symbol and its value is not a natural number.
    """
    for name in sorted(difference.symbols, reverse=True):
        coefficients = [c for monomial, c in difference.terms if monomial == (name,)]
        if not coefficients:
            continue
        coefficient = coefficients[0]
        rest = difference - Size.symbol(name) * coefficient
        if name in symbols_of([rest]):
            continue
        value = divide_exactly(-1 * rest, coefficient)
        if value is not None and not (isinstance(value, int) and value < 0):
            return name, value
        if isinstance(rest, int):
            raise ShapeError(
                f"{where} must agree, which needs {name} = {-rest}/{coefficient}, and a size is a "
                f"whole number of at least 0"
            )
    return None
