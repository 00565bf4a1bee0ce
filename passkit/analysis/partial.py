"""Split reductions: partial reductions of chunks, and an operator that combines their results.

Parameters of both operators name the original reduction, so that graphs with them can be stored.
Sums of float32 are combined in float64 and rounded once.
"""

from __future__ import annotations

from attrs import evolve, frozen

from passkit import ast
from passkit.ast import Chunks, Const, Expr, Reduce
from passkit.graph.attribute_calls import reduce_of
from passkit.graph.node import Node, known_dtype, known_shape
from passkit.graph.op import REQUIRED, OpPattern, get_op, register_op
from passkit.values.dtype import DType, dtype_of, float32, float64
from passkit.values.size import Shape

PARTIAL_REDUCE = register_op(
    "partial_reduce",
    num_inputs=1,
    params={"of": REQUIRED, "given": (), "axis": 0, "length": 1},
    doc="A reduction in chunks of `length` steps of `axis`; axis 0 of the result counts them.",
)
COMBINE_PARTIALS = register_op(
    "combine_partials",
    num_inputs=1,
    params={"of": REQUIRED, "given": (), "shape": (), "dtype": "float32"},
    doc="The result of a reduction of `dtype` and `shape`, combined from those of its chunks.",
)


@frozen
class ReductionSplit:
    """How a reduction is split.

    Attributes:
        shape: the shape in which the operand is reduced. It has the operand's rank and elements;
            adjacent reduced axes may be one, beside axes of extent 1.
        chunks: the axis of ``shape`` that is divided, and the length of a chunk.
    """

    shape: Shape
    chunks: Chunks


def split_reduction(node: Node, split: ReductionSplit) -> Node:
    """Return a node that combines the partial results of a reduction in chunks."""
    assert node.op is not None
    source, chunks = node.inputs[0], split.chunks
    if split.shape != known_shape(source):
        source = Node(get_op("reshape"), (source,), {"shape": split.shape}).entries[0]
    original = {"of": node.op.name, "given": tuple(sorted(node.params.items()))}
    chunk = {"axis": chunks.axis, "length": chunks.length}
    operand = {"shape": known_shape(source), "dtype": str(source.dtype)}
    name = node.name and f"{node.name}_part"
    partial = Node(PARTIAL_REDUCE, (source,), original | chunk, name)
    return Node(COMBINE_PARTIALS, partial.entries, original | operand, node.name, node.control)


def original_reduction(node: Node, shape: Shape, dtype: DType) -> Node:
    """Return the reduction of which a node's parameters have the name and the parameters.

    Args:
        node: a partial, combining or unrolled reduction.
        shape: the shape of the operand, which is a new variable.
        dtype: its dtype.
    """
    source = Node(None, (), {"shape": shape, "dtype": dtype}, "x")
    return Node(get_op(node.params["of"]), source.entries, dict(node.params["given"]), node.name)


def _reduction_of(original: Node) -> Reduce:
    """Return how a reduction is computed."""
    reduction = reduce_of(original)
    assert reduction is not None
    return reduction


def _partial_reduction(node: Node) -> Reduce:
    """Return how a partial reduction is computed: as the original one, in chunks, unfinished."""
    source = node.inputs[0]
    reduction = _reduction_of(original_reduction(node, known_shape(source), known_dtype(source)))
    chunks = Chunks(node.params["axis"], node.params["length"])
    return evolve(reduction, finish=None, chunks=chunks)


def _partial_shape(node: Node, shape: Shape) -> Shape:
    """Return the shape of partial results: the number of chunks, and the shape of the original."""
    original = original_reduction(node, shape, known_dtype(node.inputs[0]))
    count = (shape[node.params["axis"]] + (node.params["length"] - 1)) // node.params["length"]
    return (count, *known_shape(original.entries[0]))


def _partial_type(node: Node, dtype: DType) -> DType:
    """Return the dtype of partial results."""
    original = original_reduction(node, known_shape(node.inputs[0]), dtype)
    return _reduction_of(original).identity.dtype


def _combining_reduction(node: Node) -> Reduce:
    """Return how partial results are combined: along the first axis, and then finished."""
    reduction = _reduction_of(_combined_original(node))
    narrow = reduction.identity.dtype
    wide = float64 if narrow is float32 and ast.is_sum(reduction.combine, float32) else narrow
    shape = node.params["shape"]

    def finish(total: Expr, count: Expr) -> Expr:
        """Return the result for a total, by the number of elements of the original reduction."""
        total = ast.cast(total, narrow)
        if reduction.finish is None:
            return total
        length: Expr = ast.size_of(1)
        for k in reduction.axes:
            length = length * ast.size_of(shape[k])
        return reduction.finish(total, length)

    return Reduce(
        axes=(0,),
        keepdims=False,
        identity=_widened(reduction.identity, wide),
        combine=reduction.combine if wide is narrow else ast.left(wide) + ast.right(wide),
        prepare=None if wide is narrow else lambda x: ast.cast(x, wide),
        finish=None if wide is narrow and reduction.finish is None else finish,
    )


def _widened(identity: Const, dtype: DType) -> Const:
    """Return an identity as a constant of a dtype."""
    return identity if identity.dtype is dtype else ast.const(identity.value, dtype)


def _combined_original(node: Node) -> Node:
    """Return the original reduction of a node that combines partial results."""
    return original_reduction(node, node.params["shape"], dtype_of(node.params["dtype"]))


PARTIAL_REDUCE.set_attr("FReduce", _partial_reduction)
PARTIAL_REDUCE.set_attr("FInferShape", _partial_shape)
PARTIAL_REDUCE.set_attr("FInferType", _partial_type)
COMBINE_PARTIALS.set_attr("FReduce", _combining_reduction)
COMBINE_PARTIALS.set_attr(
    "FInferShape", lambda node, shape: known_shape(_combined_original(node).entries[0])
)
COMBINE_PARTIALS.set_attr(
    "FInferType", lambda node, dtype: _combined_original(node).entries[0].dtype
)
for _op in (PARTIAL_REDUCE, COMBINE_PARTIALS):
    _op.set_attr("TOpPattern", OpPattern.REDUCE)
    _op.set_attr("TOpCost", "expensive")
