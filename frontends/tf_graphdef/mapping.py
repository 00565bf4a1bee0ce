"""The table: what each TensorFlow operator is in passkit.

A row is a function of the call and its input values; how many inputs it takes is how many it
names. What is known when the model is loaded, sizes of unknown dimensions included, is computed
by `shape_arithmetic` instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from attrs import frozen

from passkit import ops
from passkit.dtype import dtype_of
from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.shape_arithmetic import fold, is_shape, numpy_index, squeezed
from passkit.frontends.tf_graphdef.tensor import array_from
from passkit.frontends.tf_graphdef.value import Call, Value, value_of
from passkit.infer import show_shape
from passkit.node import Entry
from passkit.size import numel

Result: TypeAlias = Any
"""A Value, the Entry that an operator of passkit returned, or a tuple of them."""


@frozen
class Row:
    """How one TensorFlow operator is built, from ``low`` to ``high`` inputs; None is any number."""

    build: Callable[..., Result]
    low: int
    high: int | None


TABLE: dict[str, Row] = {}
_NODE_NBYTES = 600
"""About what one more node takes, for operators that become as many as a model says."""


def build(call: Call, inputs: Sequence[Value]) -> tuple[Value, ...]:
    """The results of one node. Raises: ModelError when it has another number of inputs."""
    row = TABLE[call.node.op]
    if len(inputs) < row.low or (row.high is not None and len(inputs) > row.high):
        wanted = str(row.low) if row.high == row.low else f"at least {row.low}"
        raise ModelError(f"{call.where} needs {wanted} input(s), got {len(inputs)}")
    folded = fold(call, inputs)
    if folded is not None:
        return (folded,)
    made = row.build(call, *inputs)
    found = made if isinstance(made, tuple) else (made,)
    return tuple(m if isinstance(m, Value) else value_of(m) for m in found)


def row(*names: str) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Enter a function into the table, for one or more TensorFlow operators."""

    def enter(function: Callable[..., Result]) -> Callable[..., Result]:
        code = function.__code__
        low = code.co_argcount - 1
        many = bool(code.co_flags & 0x04)  # has *inputs
        for name in names:
            TABLE[name] = Row(function, low + many, None if many else low)
        return function

    return enter


ELEMENTWISE = {
    "Abs": "abs",
    "Add": "add",
    "AddV2": "add",
    "Ceil": "ceil",
    "Cos": "cos",
    "Equal": "equal",
    "Erf": "erf",
    "Exp": "exp",
    "Expm1": "expm1",
    "Floor": "floor",
    "Greater": "greater",
    "GreaterEqual": "greater_equal",
    "Less": "less",
    "LessEqual": "less_equal",
    "Log": "log",
    "Log1p": "log1p",
    "LogicalAnd": "logical_and",
    "LogicalNot": "logical_not",
    "LogicalOr": "logical_or",
    "Maximum": "maximum",
    "Minimum": "minimum",
    "Mul": "mul",
    "Neg": "neg",
    "NotEqual": "not_equal",
    "OnesLike": "ones_like",
    "Pow": "pow",
    "RealDiv": "div",
    "Reciprocal": "reciprocal",
    "Relu": "relu",
    "Rint": "rint",
    "Rsqrt": "rsqrt",
    "SelectV2": "where",
    "Sigmoid": "sigmoid",
    "Sign": "sign",
    "Sin": "sin",
    "Sqrt": "sqrt",
    "Square": "square",
    "Sub": "sub",
    "Tanh": "tanh",
    "ZerosLike": "zeros_like",
}
"""TensorFlow operators that passkit has under another name, with the same inputs."""

REDUCTIONS = {
    "Sum": "reduce_sum",
    "Mean": "reduce_mean",
    "Max": "reduce_max",
    "Min": "reduce_min",
    "Prod": "reduce_prod",
    "Any": "reduce_any",
    "All": "reduce_all",
}


def _enter_elementwise(theirs: str, ours: str) -> None:
    op = getattr(ops, ours)

    def make(call: Call, *values: Value) -> Entry:
        made: Entry = op(*(v.entry for v in values), name=call.name)
        return made

    TABLE[theirs] = Row(make, op.num_inputs, op.num_inputs)


for _theirs, _ours in ELEMENTWISE.items():
    _enter_elementwise(_theirs, _ours)


@row("Div")
def _div(call: Call, x: Value, y: Value) -> Result:
    """For integers it rounds toward zero, which passkit's division does not."""
    if not x.dtype.is_float:
        raise ModelError(f"{call.where} needs floats, got {x.dtype}; use FloorDiv for integers")
    return ops.div(x.entry, y.entry, name=call.name)


@row("FloorDiv")
def _floor_div(call: Call, x: Value, y: Value) -> Result:
    if x.dtype.is_float:
        return ops.floor(ops.div(x.entry, y.entry), name=call.name)
    return ops.floor_div(x.entry, y.entry, name=call.name)


@row("SquaredDifference")
def _squared_difference(call: Call, x: Value, y: Value) -> Result:
    return ops.square(ops.sub(x.entry, y.entry), name=call.name)


@row("Relu6")
def _relu6(call: Call, x: Value) -> Result:
    return ops.minimum(ops.relu(x.entry), 6, name=call.name)


@row("Cast")
def _cast(call: Call, x: Value) -> Result:
    return ops.cast(x.entry, dtype=call.dtype("DstT").name, name=call.name)


@row("Select")
def _select(call: Call, condition: Value, x: Value, y: Value) -> Result:
    """A condition of rank 1 chooses rows: it is aligned at the front, unlike in broadcasting."""
    chosen, rank = condition.entry, len(call.shape(x))
    if len(call.shape(condition)) == 1 and rank > 1:
        chosen = ops.expand_dims(chosen, axis=tuple(range(1, rank)))
    return ops.where(chosen, x.entry, y.entry, name=call.name)


def _enter_reduction(theirs: str, ours: str) -> None:
    def reduction(call: Call, x: Value, axes: Value) -> Entry:
        made: Entry = getattr(ops, ours)(
            x.entry,
            axis=call.ints(axes, "axes"),
            keepdims=call.attr("keep_dims", "b", False),
            name=call.name,
        )
        return made

    row(theirs)(reduction)


for _theirs, _ours in REDUCTIONS.items():
    _enter_reduction(_theirs, _ours)


@row("Softmax", "LogSoftmax")
def _softmax(call: Call, x: Value) -> Result:
    op = ops.softmax if call.node.op == "Softmax" else ops.log_softmax
    return op(x.entry, axis=-1, name=call.name)


@row("MatMul")
def _matmul(call: Call, a: Value, b: Value) -> Result:
    return ops.matmul(
        a.entry,
        b.entry,
        transpose_a=call.attr("transpose_a", "b", False),
        transpose_b=call.attr("transpose_b", "b", False),
        name=call.name,
    )


@row("BatchMatMul", "BatchMatMulV2")
def _batch_matmul(call: Call, a: Value, b: Value) -> Result:
    return ops.matmul(
        a.entry,
        b.entry,
        transpose_a=call.attr("adj_x", "b", False),
        transpose_b=call.attr("adj_y", "b", False),
        name=call.name,
    )


@row("BiasAdd")
def _bias_add(call: Call, x: Value, bias: Value) -> Result:
    added, rank = bias.entry, len(call.shape(x))
    data_format = call.attr("data_format", "s", b"NHWC")
    if data_format not in (b"NHWC", b"NCHW"):
        raise ModelError(f"{call.where} needs the data_format NHWC or NCHW, got {data_format!r}")
    if data_format == b"NCHW" and rank > 2:
        added = ops.expand_dims(added, axis=tuple(range(1, rank - 1)))
    return ops.add(x.entry, added, name=call.name)


@row("Reshape")
def _reshape(call: Call, x: Value, shape: Value) -> Result:
    wanted = tuple(call.extents(shape, "shape"))
    return ops.reshape(x.entry, shape=wanted, name=call.name)


@row("Transpose")
def _transpose(call: Call, x: Value, axes: Value) -> Result:
    return ops.transpose(x.entry, axes=call.ints(axes, "permutation"), name=call.name)


@row("BroadcastTo")
def _broadcast_to(call: Call, x: Value, shape: Value) -> Result:
    wanted = tuple(call.extents(shape, "shape"))
    return ops.broadcast_to(x.entry, shape=wanted, name=call.name)


@row("Fill")
def _fill(call: Call, shape: Value, x: Value) -> Result:
    wanted = tuple(call.extents(shape, "shape"))
    return ops.broadcast_to(x.entry, shape=wanted, name=call.name)


@row("ExpandDims")
def _expand_dims(call: Call, x: Value, axis: Value) -> Result:
    at = call.integer(axis, "axis")
    return ops.expand_dims(x.entry, axis=at, name=call.name)


@row("Squeeze")
def _squeeze(call: Call, x: Value) -> Result:
    return ops.squeeze(x.entry, axis=squeezed(call, x), name=call.name)


@row("ConcatV2")
def _concat_v2(call: Call, *values: Value) -> Result:
    return _concat(call, values[:-1], values[-1])


@row("Concat")
def _concat_v1(call: Call, *values: Value) -> Result:
    return _concat(call, values[1:], values[0])


def _concat(call: Call, values: Sequence[Value], axis: Value) -> Result:
    at = call.integer(axis, "axis")
    return ops.concat(*(v.entry for v in values), axis=at, name=call.name)


@row("Pack")
def _pack(call: Call, *values: Value) -> Result:
    axis = call.attr("axis", "i", 0)
    call.budget.take(_NODE_NBYTES * len(values), call.where)
    rows = [ops.expand_dims(v.entry, axis=axis) for v in values]
    return ops.concat(*rows, axis=axis, name=call.name)


@row("Slice")
def _slice(call: Call, x: Value, begin: Value, size: Value) -> Result:
    return ops.slice(
        x.entry,
        begin=tuple(call.extents(begin, "begin")),
        size=tuple(call.extents(size, "size")),
        name=call.name,
    )


@row("StridedSlice")
def _strided_slice(call: Call, x: Value, begin: Value, end: Value, strides: Value) -> Result:
    call.shape(x)
    return x.entry[numpy_index(call, begin, end, strides)]


@row("Identity", "StopGradient", "PreventGradient", "Snapshot")
def _identity(call: Call, x: Value) -> Result:
    return x


@row("IdentityN")
def _identity_n(call: Call, *values: Value) -> Result:
    return values


@row("Split")
def _split(call: Call, axis: Value, x: Value) -> Result:
    parts = call.attr("num_split", "i")
    return _parts(call, x, call.integer(axis, "axis"), parts)


@row("Unpack")
def _unpack(call: Call, x: Value) -> Result:
    axis = call.attr("axis", "i", 0)
    parts = _parts(call, x, axis, call.attr("num", "i"))
    return tuple(ops.squeeze(part, axis=axis) for part in parts)


def _parts(call: Call, x: Value, axis: int, count: int) -> tuple[Entry, ...]:
    """``count`` equal parts. Raises: ModelError for more of them than TensorFlow would make."""
    shape = call.shape(x)
    extent = shape[axis] if -len(shape) <= axis < len(shape) else 0
    if not 0 < count <= (extent if isinstance(extent, int) else 0):
        raise ModelError(
            f"{call.where} needs {count} part(s) of axis {axis}, and the shape of "
            f"{short(x.name)} is {show_shape(shape)}"
        )
    call.budget.take(2 * _NODE_NBYTES * count, call.where)
    return ops.split(x.entry, count, axis)


@row("PlaceholderWithDefault")
def _default(call: Call, x: Value) -> Result:
    """The default: an input of a compiled program has to be given in every call."""
    return x


@row("Const")
def _const(call: Call) -> Result:
    array = array_from(call.attr("value", "tensor"), call.where, call.budget)
    return Value(call.name, dtype_of(array.dtype), known=array)


@row("Shape")
def _shape(call: Call, x: Value) -> Result:
    return call.known(call.index_type("out_type"), list(call.shape(x)))


@row("Size")
def _size(call: Call, x: Value) -> Result:
    return call.known(call.index_type("out_type"), numel(call.shape(x)))


@row("Rank")
def _rank(call: Call, x: Value) -> Result:
    return call.known(dtype_of("int32"), len(call.shape(x)))


@row("Gather", "GatherV2", "Range")
def _only_shapes(call: Call, *values: Value) -> Result:
    unknown = next((v for v in values if not is_shape(v)), values[0])
    raise ModelError(
        f"{call.where} is read only as arithmetic on shapes, and {short(unknown.name)} is not "
        f"that: it is {unknown.dtype} of shape {show_shape(unknown.shape)}"
    )
