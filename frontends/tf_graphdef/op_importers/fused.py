"""What grappler makes of frozen models: products with what follows them, as one operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.op_importers.convolutions import convolved, depthwise_convolved
from passkit.frontends.tf_graphdef.operators import ops
from passkit.frontends.tf_graphdef.table import Result, row
from passkit.frontends.tf_graphdef.value import Call, Value
from passkit.frontends.tf_graphdef.windows import channels_first
from passkit.graph.node import Entry

FOLLOWING: dict[str, Callable[[Entry, float], Entry]] = {
    "Relu": lambda y, slope: ops.relu(y),
    "Relu6": lambda y, slope: ops.minimum(ops.relu(y), 6),
    "Elu": lambda y, slope: ops.elu(y),
    "LeakyRelu": lambda y, slope: ops.leaky_relu(y, alpha=slope),
    "Tanh": lambda y, slope: ops.tanh(y),
    "Sigmoid": lambda y, slope: ops.sigmoid(y),
    "GeluApproximate": lambda y, slope: ops.gelu(y, approximate="tanh"),
    "GeluExact": lambda y, slope: ops.gelu(y),
}
"""Activations by the names that ``fused_ops`` has for them."""


@row("_FusedConv2D")
def _fused_conv(call: Call, x: Value, filters: Value, *args: Value) -> Result:
    form = call.attr("filter_format", "s", b"HWIO")
    if form != b"HWIO":
        raise ModelError(f"{call.where} needs the filter_format HWIO, got {form!r}")
    axis = 1 if channels_first(call, 2) else 3
    return _followed(call, convolved(call, x, filters, 2), args, axis)


@row("_FusedDepthwiseConv2dNative")
def _fused_depthwise(call: Call, x: Value, filters: Value, *args: Value) -> Result:
    axis = 1 if channels_first(call, 2) else 3
    return _followed(call, depthwise_convolved(call, x, filters), args, axis)


@row("_FusedMatMul")
def _fused_matmul(call: Call, a: Value, b: Value, *args: Value) -> Result:
    turned = {f"transpose_{k}": call.attr(f"transpose_{k}", "b", False) for k in "ab"}
    return _followed(call, ops.matmul(a.entry, b.entry, **turned), args, 1)


def _followed(call: Call, y: Entry, args: Sequence[Value], axis: int) -> Entry:
    """``y`` with each of ``fused_ops`` applied; they take ``args`` in order."""
    names = [n.decode(errors="replace") for n in call.attr("fused_ops", "list").s]
    rest = list(args)

    def take(count: int, name: str) -> list[Entry]:
        if len(rest) < count:
            raise ModelError(f"{call.where} needs {count} more input(s) for its {name}")
        return [rest.pop(0).entry for _ in range(count)]

    others = tuple(k for k in range(len(y.shape or ())) if k != axis)
    for name in names:
        if name == "BiasAdd":
            y = y + ops.expand_dims(take(1, name)[0], axis=others)
        elif name == "Add":
            y = y + take(1, name)[0]
        elif name == "FusedBatchNorm":
            epsilon = call.attr("epsilon", "f", 1e-4)
            y = ops.batch_norm(y, *take(4, name), epsilon=epsilon, axis=axis)
        elif name in FOLLOWING:
            y = FOLLOWING[name](y, call.attr("leakyrelu_alpha", "f", 0.2))
        else:
            known = ", ".join(["BiasAdd", "Add", "FusedBatchNorm", *FOLLOWING])
            raise ModelError(f"{call.where} needs fused_ops among {known}, got {name[:50]!r}")
    return y
