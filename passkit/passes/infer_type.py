"""InferType: infer the dtype of every entry, forward from inputs and backward from uses.

Source: NNVM's InferType. An unknown dtype is inferred if exactly one fits the operator's rule and
the dtypes around it.
"""

from __future__ import annotations

from passkit.errors import DTypeError
from passkit.graph.graph import Annotation, Graph
from passkit.graph.infer import infer_dtypes
from passkit.graph.node import Entry, Node
from passkit.passes.base import register_pass
from passkit.passes.propagation import Propagation
from passkit.values.dtype import DType, dtype_of

CANDIDATES = tuple(
    dtype_of(name)
    for name in (
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
    )
)
"""The dtypes that are tried for an unknown one."""


@register_pass("InferType", provides=("dtype", "dtype_num_unknown"), implied=True)
def infer_type(graph: Graph) -> Graph:
    """Map each entry to its dtype, None where it stays unknown.

    The annotation ``dtype_num_unknown`` is the number of entries whose dtype is unknown.

    x: ?[4]; y: f64[4]; z = add(x, y)    becomes    dtype[x] = float64

    Raises: DTypeError naming the node, its operator and the dtypes that do not fit; RuleError if
    FInferType or FCodeGen returns something else than it must; GraphError or ShapeError if one of
    these functions refuses a parameter.
    """
    dtypes: dict[Entry, DType | None] = {e: e.dtype for n in graph.nodes for e in n.entries}
    if None in dtypes.values():
        _infer_unknown(graph, dtypes)
    num_unknown = sum(d is None for d in dtypes.values())
    return graph.with_attrs(dtype=Annotation("dtype", dtypes), dtype_num_unknown=num_unknown)


def _infer_unknown(graph: Graph, dtypes: dict[Entry, DType | None]) -> None:
    """Infer unknown dtypes, None in ``dtypes``, from known ones in both directions, in place.

    What cannot be inferred stays None.

    Raises: DTypeError if the inputs of a node do not fit its operator or the uses of its outputs;
    RuleError, GraphError or ShapeError from an operator's rule for dtypes.
    """
    propagation = Propagation(graph, dtypes)

    def infer(node: Node) -> None:
        """Infer the unknown dtypes of a node's inputs, then of its outputs.

        All unknown inputs get one dtype, or none. Raises: DTypeError where known ones do not fit;
        RuleError, GraphError or ShapeError from the operator's rule for dtypes.
        """
        inputs = [dtypes[e] for e in node.inputs]
        if None in inputs:
            common = only_fitting_dtype(node, inputs, [dtypes[e] for e in node.entries])
            for entry in node.inputs:
                propagation.set_fact(entry, common)
        inputs = [dtypes[e] for e in node.inputs]
        for entry, dtype in zip(node.entries, infer_dtypes(node, inputs), strict=False):
            propagation.set_fact(entry, dtype)

    propagation.run(infer, lambda node: None)
    for node in graph.nodes:
        if node.op is not None and any(e.dtype is None for e in (*node.inputs, *node.entries)):
            _check(node, dtypes)


def only_fitting_dtype(
    node: Node, inputs: list[DType | None], outputs: list[DType | None]
) -> DType | None:
    """Return the one dtype that all unknown inputs can have, None if none or several fit.

    ``inputs`` and ``outputs`` have the dtype of each input and output of ``node``, None where it is
    unknown. `CANDIDATES`, which lack bfloat16, are tried; one that raises a DTypeError does not
    fit. Raises: RuleError, GraphError or ShapeError from the operator's rule for dtypes.
    """
    fitting: list[DType] = []
    for candidate in CANDIDATES:
        try:
            inferred = infer_dtypes(node, [d or candidate for d in inputs])
        except DTypeError:
            continue
        if all(a is None or b is None or a is b for a, b in zip(inferred, outputs, strict=False)):
            fitting.append(candidate)
    return fitting[0] if len(fitting) == 1 else None


def _check(node: Node, dtypes: dict[Entry, DType | None]) -> None:
    """Check ``dtypes``, inferred dtypes by entry, of a node against the operator's rule.

    Raises: DTypeError where the inputs do not fit the operator, or give a result another dtype than
    ``dtypes`` has; RuleError, GraphError or ShapeError from the operator's rule for dtypes.
    """
    inputs = [dtypes[e] for e in node.inputs]
    for entry, dtype in zip(node.entries, infer_dtypes(node, inputs), strict=False):
        if dtype is not None and dtype is not dtypes[entry]:
            raise DTypeError(
                f"{node.where} has dtype {dtype} by its inputs and {dtypes[entry]} by its uses; "
                f"insert pk.ops.cast(…, '{dtypes[entry]}')"
            )
