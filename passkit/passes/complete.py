"""Complete: a graph whose entries carry the shapes and dtypes that inference found.

Operators' rules read ``entry.shape``, which is what was known when a node was made. Where inference
found more, variables are made anew with it, and all that depends on them.
"""

from __future__ import annotations

from collections.abc import Sequence

from passkit.errors import DTypeError, PasskitError, ShapeError
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node
from passkit.graph.op import FCodeGen
from passkit.passes.base import register_pass
from passkit.passes.infer_shape import find_shapes, infer_shape, with_values
from passkit.passes.infer_type import infer_type
from passkit.values.size import substitute


@register_pass(
    "Complete",
    depends=("shape", "dtype"),
    provides="complete",
    preserves=(
        "shape",
        "shape_num_unknown",
        "dtype",
        "dtype_num_unknown",
        "functional",
        "expanded",
    ),
    changes_graph=True,
    implied=True,
)
def complete(graph: Graph) -> Graph:
    """Give every entry its shape and dtype; a graph whose entries have them stays as it is.

    x: f32[?]; y: f32[2,3]; z = add(x, y)    becomes    x: f32[2,3]; y: f32[2,3]; z = add(x, y)

    Raises: ShapeError or DTypeError naming the variables that must be given one.
    """
    shapes, dtypes = graph.attrs["shape"], graph.attrs["dtype"]
    _demand(graph, "shape", [e for e, s in shapes.items() if s is None], ShapeError)
    _demand(graph, "dtype", [e for e, d in dtypes.items() if d is None], DTypeError)
    if all(e.shape == s and e.dtype is dtypes[e] for e, s in shapes.items()):
        return graph.with_attrs(complete=True)
    _, guards, values = find_shapes(graph)

    def change(node: Node) -> Sequence[Entry] | None:
        if node.op is not None:
            return with_values(node, values).entries
        entry = node.entries[0]
        if entry.shape == shapes[entry] and entry.dtype is dtypes[entry]:
            return None
        found = {"shape": shapes[entry], "dtype": dtypes[entry]}
        return Node(None, (), {**node.params, **found}, node.name).entries

    out = graph.transform(change)
    entries = [e for n in out.nodes for e in n.entries]
    _demand(out, "shape", [e for e in entries if e.shape is None], ShapeError)
    _demand(out, "dtype", [e for e in entries if e.dtype is None], DTypeError)
    left = [
        guard
        for a, b, where in guards
        if (guard := (substitute(a, values), substitute(b, values), where))[0] != guard[1]
    ]
    out = out.with_attrs(complete=True, shape_guards=tuple(left))
    return infer_type(infer_shape(out))


def _demand(graph: Graph, what: str, unknown: list[Entry], error: type[PasskitError]) -> None:
    """Raise what says how to make unknown shapes or dtypes known."""
    if not unknown:
        return
    lacking = {e.node for e in unknown}
    variables = [n.name for n in graph.nodes if n in lacking and n.is_variable]
    if variables:
        names = ", ".join(map(repr, variables[:8])) + (", …" if len(variables) > 8 else "")
        example = "(None, 8)" if what == "shape" else "…, dtype='float32'"
        raise error(
            f"{len(unknown)} value(s) have no {what}; give a {what} to the variable(s) {names}: "
            f"pk.var({variables[0]!r}, {example})"
        )
    node = next(n for n in graph.nodes if n in lacking)
    assert node.op is not None
    rule = "FInferShape" if what == "shape" else "FInferType"
    way_out = f"set_attr({rule!r}, …) on op {node.op.name} gives the rule"
    if what == "shape" and FCodeGen.get(node.op.name) is not None:
        way_out += "; that of an elementwise operator follows from its TOpPattern, ELEMWISE"
    raise error(f"the {what} of {node.where} does not follow from its inputs; {way_out}")
