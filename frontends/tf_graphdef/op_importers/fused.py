"""Importers of the fused operators that grappler creates in frozen models."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.imported_value import ImportCall, ImportedValue
from passkit.frontends.tf_graphdef.node_windows import channels_first
from passkit.frontends.tf_graphdef.op_importers.convolutions import convolved, depthwise_convolved
from passkit.frontends.tf_graphdef.op_importers.linalg import check_bias
from passkit.frontends.tf_graphdef.operators import ops
from passkit.frontends.tf_graphdef.registry import ImportResult, op_importer
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
"""Activations by their names in ``fused_ops``."""


@op_importer("_FusedConv2D")
def _fused_conv(
    call: ImportCall, x: ImportedValue, filters: ImportedValue, *args: ImportedValue
) -> ImportResult:
    """Import _FusedConv2D: a convolution followed by the operators of the attribute ``fused_ops``.

    Args:
        call: The node.
        x: Images, in the node's data format.
        filters: Filter of shape (height, width, channels, filters).
        args: Inputs of the following operators, in their order.

    Returns:
        The result of the last following operator, in the node's data format.

    Raises:
        ModelError: If the attribute ``filter_format`` is not HWIO, ``fused_ops`` is missing, or an
            operator of it is unknown or lacks an input, inputs are no floats, ranks or channels do
            not fit, or ``padding`` is missing or an attribute invalid.
        ShapeError: If the images are smaller than a window without padding, a summand does not
            broadcast, or a bias or statistic is no vector of one element for each channel.
        DTypeError: If only one of ``x`` and ``filters`` is float64, a bias or summand is complex,
            or statistics of a batch norm have another dtype than the convolution.
    """
    filter_format = call.attr("filter_format", "s", b"HWIO")
    if filter_format != b"HWIO":
        raise ModelError(f"{call.where} needs the filter_format HWIO, got {filter_format!r}")
    axis = 1 if channels_first(call, 2) else 3
    return _apply_fused_ops(call, convolved(call, x, filters, 2), args, axis)


@op_importer("_FusedDepthwiseConv2dNative")
def _fused_depthwise(
    call: ImportCall, x: ImportedValue, filters: ImportedValue, *args: ImportedValue
) -> ImportResult:
    """Import _FusedDepthwiseConv2dNative: a depthwise convolution followed by ``fused_ops``.

    Args:
        call: The node.
        x: Images, in the node's data format.
        filters: Filter of shape (height, width, channels, multiplier).
        args: Inputs of the following operators, in their order.

    Returns:
        The result of the last following operator, in the node's data format.

    Raises:
        ModelError: If ``fused_ops`` is missing, or an operator of it is unknown or lacks an input,
            inputs are no floats, a rank is not 4, or ``padding`` is missing or an attribute
            invalid.
        ShapeError: If the numbers of channels differ or are 0, the images are smaller than a window
            without padding, a summand does not broadcast, or a bias or statistic is no vector of
            one element for each channel.
        DTypeError: If only one of ``x`` and ``filters`` is float64, a bias or summand is complex,
            or statistics of a batch norm have another dtype than the convolution.
    """
    axis = 1 if channels_first(call, 2) else 3
    return _apply_fused_ops(call, depthwise_convolved(call, x, filters), args, axis)


@op_importer("_FusedMatMul")
def _fused_matmul(
    call: ImportCall, a: ImportedValue, b: ImportedValue, *args: ImportedValue
) -> ImportResult:
    """Import _FusedMatMul: a matrix product, then ``fused_ops``, which take ``args`` in order.

    Args:
        call: The node; the attributes ``transpose_a`` and ``transpose_b`` transpose the matrices.
        a: Left matrix.
        b: Right matrix.
        args: Inputs of the following operators, such as a bias of the columns.

    Raises:
        ModelError: If ``fused_ops`` is missing, or an operator of it is unknown or lacks an input,
            or an attribute is of another kind.
        ShapeError: If the matrices do not fit, ``a`` or ``b`` has fewer than two axes, a summand
            does not broadcast, or a bias or statistic is no vector of one element for each column.
        DTypeError: If ``a`` and ``b`` differ in dtype or are bools or complex, a bias or summand is
            complex, statistics of a batch norm have another dtype than the product, or an
            activation needs floats and the product has integers.
    """
    transposes = {f"transpose_{k}": call.attr(f"transpose_{k}", "b", False) for k in "ab"}
    return _apply_fused_ops(call, ops.matmul(a.entry, b.entry, **transposes), args, 1)


def _apply_fused_ops(call: ImportCall, y: Entry, args: Sequence[ImportedValue], axis: int) -> Entry:
    """Apply each operator of the attribute ``fused_ops`` to ``y``; they take ``args`` in order.

    Args:
        call: The node. FusedBatchNorm reads its attribute ``epsilon`` (1e-4 by default), LeakyRelu
            ``leakyrelu_alpha`` (0.2).
        y: Result of the convolution or product.
        args: Biases, summands and statistics of batch norms; those that are left over are ignored.
        axis: Axis of the channels of ``y``.

    Raises:
        ModelError: If the attribute is missing, an operator is unknown, an input is missing, or an
            attribute is of another kind.
        ShapeError: If a bias or statistic is no vector of one element for each channel, or a
            summand does not broadcast with ``y``.
        DTypeError: If a bias or summand is complex, others being promoted with ``y``; if statistics
            have another dtype than ``y``; or an activation needs floats and ``y`` has integers.
    """
    names = [n.decode(errors="replace") for n in call.attr("fused_ops", "list").s]
    remaining = list(args)

    def take(count: int, name: str) -> list[Entry]:
        if len(remaining) < count:
            raise ModelError(
                f"{call.where} needs {count} more input(s) for its {name}, got {len(remaining)}"
            )
        return [remaining.pop(0).entry for _ in range(count)]

    other_axes = tuple(k for k in range(len(y.shape or ())) if k != axis)
    for name in names:
        if name == "BiasAdd":
            (bias,) = take(1, name)
            check_bias(call, bias, y.shape, axis)
            y = y + ops.expand_dims(bias, axis=other_axes)
        elif name == "Add":
            y = y + take(1, name)[0]
        elif name == "FusedBatchNorm":
            epsilon = call.attr("epsilon", "f", 1e-4)
            y = ops.batch_norm(y, *take(4, name), epsilon=epsilon, axis=axis)
        elif name in FOLLOWING:
            y = FOLLOWING[name](y, call.attr("leakyrelu_alpha", "f", 0.2))
        else:
            supported = ", ".join(["BiasAdd", "Add", "FusedBatchNorm", *FOLLOWING])
            raise ModelError(f"{call.where} needs fused_ops among {supported}, got {name[:50]!r}")
    return y
