"""The halves of a reduction that is split: chunks folded by themselves, and what joins them.

Both say with parameters which reduction they are halves of, so that a graph that holds them can be
stored. Sums of float32 are joined in float64 and rounded once.
"""

from __future__ import annotations

from attrs import evolve

from passkit import ast
from passkit.ast import Chunks, Const, Expr, Reduce
from passkit.graph.attribute_calls import reduce_of
from passkit.graph.node import Entry, Node, known_shape
from passkit.graph.op import REQUIRED, OpPattern, get_op, register_op
from passkit.values.dtype import DType, dtype_of, float32, float64
from passkit.values.size import Shape

PARTIAL_REDUCE = register_op(
    "partial",
    num_inputs=1,
    params={"of": REQUIRED, "given": (), "axis": 0, "length": 1},
    doc="A reduction, each `length` steps of `axis` by themselves; a first axis counts them.",
)
COMBINE_PARTIALS = register_op(
    "join",
    num_inputs=1,
    params={"of": REQUIRED, "given": (), "shape": (), "dtype": "float32"},
    doc="The rest of a reduction of `dtype` and `shape`, from what its chunks came to.",
)


def split_reduction(node: Node, chunks: Chunks) -> Node:
    """The join of the partial results of a reduction, in place of it."""
    assert node.op is not None
    source = node.inputs[0]
    half = {"of": node.op.name, "given": tuple(sorted(node.params.items()))}
    cut = {"axis": chunks.axis, "length": chunks.length}
    whole = {"shape": known_shape(source), "dtype": str(source.dtype)}
    part = Node(PARTIAL_REDUCE, (source,), {**half, **cut}, node.name and f"{node.name}_part")
    return Node(COMBINE_PARTIALS, part.entries, {**half, **whole}, node.name, node.control)


def original_reduction(node: Node, shape: Shape, dtype: DType) -> Node:
    """The reduction that ``node`` is a half of, on an input of its own."""
    source = Node(None, (), {"shape": shape, "dtype": dtype}, "x")
    return Node(get_op(node.params["of"]), source.entries, dict(node.params["given"]), node.name)


def _reduction_of(whole: Node) -> Reduce:
    fold = reduce_of(whole)
    assert fold is not None
    return fold


def _dtype(entry: Entry) -> DType:
    assert entry.dtype is not None
    return entry.dtype


def _partial_reduction(node: Node) -> Reduce:
    source = node.inputs[0]
    fold = _reduction_of(original_reduction(node, known_shape(source), _dtype(source)))
    chunks = Chunks(node.params["axis"], node.params["length"])
    return evolve(fold, finish=None, chunks=chunks)


def _partial_shape(node: Node, shape: Shape) -> Shape:
    whole = original_reduction(node, shape, _dtype(node.inputs[0]))
    count = (shape[node.params["axis"]] + (node.params["length"] - 1)) // node.params["length"]
    return (count, *known_shape(whole.entries[0]))


def _partial_type(node: Node, dtype: DType) -> DType:
    return _reduction_of(
        original_reduction(node, known_shape(node.inputs[0]), dtype)
    ).identity.dtype


def _combining_reduction(node: Node) -> Reduce:
    """The same combination along the first axis, and the finish of the whole."""
    fold = _reduction_of(_combined_original(node))
    narrow = fold.identity.dtype
    wide = float64 if narrow is float32 and ast.is_sum(fold.combine, float32) else narrow
    shape = node.params["shape"]

    def ending(total: Expr, count: Expr) -> Expr:
        total = ast.cast(total, narrow)
        if fold.finish is None:
            return total
        whole: Expr = ast.size_of(1)
        for k in fold.axes:
            whole = whole * ast.size_of(shape[k])
        return fold.finish(total, whole)

    return Reduce(
        axes=(0,),
        keepdims=False,
        identity=_widened(fold.identity, wide),
        combine=fold.combine if wide is narrow else ast.left(wide) + ast.right(wide),
        prepare=None if wide is narrow else lambda x: ast.cast(x, wide),
        finish=None if wide is narrow and fold.finish is None else ending,
    )


def _widened(identity: Const, dtype: DType) -> Const:
    return identity if identity.dtype is dtype else ast.const(identity.value, dtype)


def _combined_original(node: Node) -> Node:
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
