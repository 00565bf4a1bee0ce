"""InferType: the dtype of every entry, from the inputs forward and from the uses backward.

Source: NNVM's InferType. An unknown dtype is settled when exactly one fits the operator's rule and
what is known around it.
"""

from __future__ import annotations

from passkit.errors import DTypeError
from passkit.graph.graph import Annotation, Graph
from passkit.graph.infer import infer_dtypes
from passkit.graph.node import Entry, Node
from passkit.passes.base import register_pass
from passkit.passes.spread import Spread
from passkit.values.dtype import DType, dtype_of

CANDIDATES = tuple(
    map(
        dtype_of,
        (
            "float32",
            "float64",
            "float16",
            "int64",
            "int32",
            "int16",
            "int8",
            "uint64",
            "uint32",
            "uint16",
            "uint8",
            "bool",
            "complex64",
            "complex128",
        ),
    )
)


@register_pass("InferType", provides=("dtype", "dtype_num_unknown"), implied=True)
def infer_type(graph: Graph) -> Graph:
    """Map each entry to its dtype, None where it stays unknown; ``dtype_num_unknown`` counts those.

    x: ?[4]; y: f64[4]; z = add(x, y)    becomes    dtype[x] = float64

    Raises: DTypeError naming node, operator and dtypes that do not fit.
    """
    known: dict[Entry, DType | None] = {e: e.dtype for n in graph.nodes for e in n.entries}
    if None in known.values():
        _find(graph, known)
    unknown = sum(d is None for d in known.values())
    return graph.with_attrs(dtype=Annotation("dtype", known), dtype_num_unknown=unknown)


def _find(graph: Graph, known: dict[Entry, DType | None]) -> None:
    spread = Spread(graph, known)

    def visit(node: Node) -> None:
        dtypes = [known[e] for e in node.inputs]
        if None in dtypes:
            found = only_fit(node, dtypes, [known[e] for e in node.entries])
            for entry in node.inputs:
                spread.learn(entry, found)
        dtypes = [known[e] for e in node.inputs]
        for entry, dtype in zip(node.entries, infer_dtypes(node, dtypes), strict=False):
            spread.learn(entry, dtype)

    spread.settle(visit, lambda node: None)
    for node in graph.nodes:
        if node.op is not None and any(e.dtype is None for e in (*node.inputs, *node.entries)):
            _check(node, known)


def only_fit(node: Node, dtypes: list[DType | None], outs: list[DType | None]) -> DType | None:
    """The one dtype that all unknown inputs can have, or None when none or several fit."""
    fit: list[DType] = []
    for candidate in CANDIDATES:
        try:
            found = infer_dtypes(node, [d or candidate for d in dtypes])
        except DTypeError:
            continue
        if all(a is None or b is None or a is b for a, b in zip(found, outs, strict=False)):
            fit.append(candidate)
    return fit[0] if len(fit) == 1 else None


def _check(node: Node, known: dict[Entry, DType | None]) -> None:
    """Check what was concluded in pieces against the operator's rule."""
    dtypes = [known[e] for e in node.inputs]
    for entry, dtype in zip(node.entries, infer_dtypes(node, dtypes), strict=False):
        if dtype is not None and dtype is not known[entry]:
            raise DTypeError(
                f"{node.where} gives {dtype} by its inputs, and its uses need {known[entry]}; "
                f"insert pk.ops.cast(…, '{known[entry]}')"
            )
