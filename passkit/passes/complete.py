"""Complete: give the entries of a graph the shapes and dtypes that inference found.

Operators' rules read ``entry.shape``, which was set when the node was created. Where inference
knows more, variables are created anew with their inferred shape and dtype, and so are all nodes
that depend on them.
"""

from __future__ import annotations

from collections.abc import Sequence

from passkit.errors import DTypeError, PasskitError, ShapeError
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node
from passkit.graph.op import FCodeGen
from passkit.passes.base import register_pass
from passkit.passes.infer_shape import infer_graph_shapes, infer_shape, with_values
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
    """Give every entry its shape and dtype; a graph whose entries have them keeps its nodes.

    x: f32[?]; y: f32[2,3]; z = add(x, y)    becomes    x: f32[2,3]; y: f32[2,3]; z = add(x, y)

    Raises: ShapeError or DTypeError naming the variables whose shape or dtype must be given, or the
    operator from whose inputs they do not follow; ShapeError if shapes do not fit; RuleError if a
    rule of inference returns something else than it must, GraphError if it refuses a parameter.
    """
    shapes, dtypes = graph.attrs["shape"], graph.attrs["dtype"]
    _require_known(graph, "shape", [e for e, s in shapes.items() if s is None], ShapeError)
    _require_known(graph, "dtype", [e for e, d in dtypes.items() if d is None], DTypeError)
    if all(e.shape == s and e.dtype is dtypes[e] for e, s in shapes.items()):
        return graph.with_attrs(complete=True)
    _, guards, values = infer_graph_shapes(graph)

    def with_inferred(node: Node) -> Sequence[Entry] | None:
        """Return the entries of ``node`` with inferred values, None for a variable that has them.

        Symbols in the parameters of an operator get their values, in a new node unless there are
        none; a variable gets its shape and dtype, in a new node.
        """
        if node.op is not None:
            return with_values(node, values).entries
        entry = node.entries[0]
        if entry.shape == shapes[entry] and entry.dtype is dtypes[entry]:
            return None
        params = {**node.params, "shape": shapes[entry], "dtype": dtypes[entry]}
        return Node(None, (), params, node.name).entries

    out = graph.transform(with_inferred)
    entries = [e for n in out.nodes for e in n.entries]
    _require_known(out, "shape", [e for e in entries if e.shape is None], ShapeError)
    _require_known(out, "dtype", [e for e in entries if e.dtype is None], DTypeError)
    substituted = [(substitute(a, values), substitute(b, values), where) for a, b, where in guards]
    unsolved = tuple((a, b, where) for a, b, where in substituted if a != b)
    out = out.with_attrs(complete=True, shape_guards=unsolved)
    return infer_type(infer_shape(out))


def _require_known(
    graph: Graph, fact: str, unknown: list[Entry], error: type[PasskitError]
) -> None:
    """Raise ``error`` with a way out if there are entries of unknown shape or dtype.

    It names the variables among them, or if there are none the first operator.

    Args:
        graph: the graph.
        fact: "shape" or "dtype".
        unknown: the entries for which it is unknown; if empty, nothing is raised.
        error: the class of the error: ShapeError or DTypeError.
    """
    if not unknown:
        return
    unknown_nodes = {e.node for e in unknown}
    variables = [n.name for n in graph.nodes if n in unknown_nodes and n.is_variable]
    if variables:
        names = ", ".join(map(repr, variables[:8])) + (", …" if len(variables) > 8 else "")
        example = "(None, 8)" if fact == "shape" else "…, dtype='float32'"
        raise error(
            f"{len(unknown)} value(s) have no {fact}; give a {fact} to the variable(s) {names}: "
            f"pk.var({variables[0]!r}, {example})"
        )
    node = next(n for n in graph.nodes if n in unknown_nodes)
    assert node.op is not None
    rule = "FInferShape" if fact == "shape" else "FInferType"
    way_out = f"set_attr({rule!r}, …) on op {node.op.name} gives the rule"
    if fact == "shape" and FCodeGen.get(node.op.name) is not None:
        way_out += "; that of an elementwise operator follows from its TOpPattern, ELEMWISE"
    raise error(f"the {fact} of {node.where} does not follow from its inputs; {way_out}")
