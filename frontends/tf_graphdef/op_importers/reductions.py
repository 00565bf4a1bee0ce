"""Importers of reductions over axes, softmax, and cross entropies."""

from __future__ import annotations

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.imported_value import ImportCall, ImportedValue
from passkit.frontends.tf_graphdef.operators import ops
from passkit.frontends.tf_graphdef.registry import ImportResult, op_importer
from passkit.graph.node import Entry
from passkit.values.size import Size, numel

REDUCTIONS = {
    "Sum": "reduce_sum",
    "Mean": "reduce_mean",
    "Max": "reduce_max",
    "Min": "reduce_min",
    "Prod": "reduce_prod",
    "Any": "reduce_any",
    "All": "reduce_all",
    "EuclideanNorm": "reduce_l2",
}
"""passkit's names of TensorFlow's reductions."""


def _register_reduction(theirs: str, ours: str) -> None:
    """Register the importer of a reduction over axes that are known during import.

    The importer raises ModelError for axes that are not known, a ``keep_dims`` that is no bool, or
    a mean of no or an unknown number of integers; ShapeError for axes out of range, listed twice,
    or empty where the reduction is a maximum or minimum; and DTypeError for a dtype that the
    reduction does not take.

    Args:
        theirs: Operator name in TensorFlow.
        ours: Name in ``passkit.ops``.
    """

    def reduction(call: ImportCall, x: ImportedValue, axes: ImportedValue) -> Entry:
        axis_list = call.ints(axes, "axes")
        keepdims = call.attr("keep_dims", "b", False)
        if theirs == "Mean" and x.dtype.is_integer:
            return _integer_mean(call, x, axis_list, keepdims)
        reduced: Entry = getattr(ops, ours)(
            x.entry, axis=axis_list, keepdims=keepdims, name=call.name
        )
        return reduced

    op_importer(theirs)(reduction)


for _theirs, _ours in REDUCTIONS.items():
    _register_reduction(_theirs, _ours)


def _integer_mean(call: ImportCall, x: ImportedValue, axes: tuple[int, ...], keep: bool) -> Entry:
    """Return a mean of integers, truncated toward zero.

    Args:
        call: The node.
        x: Integers.
        axes: Axes to reduce.
        keep: Whether reduced axes stay, with length 1.

    Raises:
        ModelError: If the rank of ``x`` or the number of elements is unknown, or there are none.
        ShapeError: If an axis is out of range or listed twice.
    """
    shape = call.shape(x)
    total = ops.reduce_sum(x.entry, axis=axes, keepdims=keep)  # refuses axes out of range
    count = numel(shape[a] for a in axes)
    if isinstance(count, Size) or count == 0:
        raise ModelError(
            f"{call.where} needs a known, positive number of {x.dtype} elements for a mean, got "
            f"{count}; "
            f"give load the full shape of its input in shapes="
        )
    return ops.trunc_div(total, ops.full_like(total, count), name=call.name)  # type: ignore[no-any-return]


@op_importer("L2Loss")
def _l2_loss(call: ImportCall, x: ImportedValue) -> ImportResult:
    """Import L2Loss: half the sum of all squares, a scalar; float64 for integers.

    ``call`` is the node, ``x`` its input.

    Raises:
        DTypeError: If the input is of bools or complex.
    """
    return ops.reduce_sum(ops.square(x.entry)) * 0.5


@op_importer("Softmax", "LogSoftmax")
def _softmax(call: ImportCall, x: ImportedValue) -> ImportResult:
    """Import Softmax and LogSoftmax, over the last axis.

    ``call`` is the node.

    Raises:
        ShapeError: If ``x`` is a scalar.
        DTypeError: If it is not of floats.
    """
    op = ops.softmax if call.node.op == "Softmax" else ops.log_softmax
    return op(x.entry, axis=-1, name=call.name)


@op_importer("SoftmaxCrossEntropyWithLogits")
def _cross_entropy(call: ImportCall, logits: ImportedValue, labels: ImportedValue) -> ImportResult:
    """Import SoftmaxCrossEntropyWithLogits, of labels that are probabilities.

    Args:
        call: The node.
        logits: Shape (batch, classes).
        labels: Probabilities (batch, classes), which broadcast with the logits.

    Returns:
        The loss of each row, (batch,), and its gradient for the logits.

    Raises:
        ModelError: If an input has not two axes, or an unknown rank.
        ShapeError: If the shapes do not broadcast.
        DTypeError: If the dtypes differ or are not floats.
    """
    call.rank(logits, 2)
    call.rank(labels, 2)
    x, label_rows = ops.broadcast_arrays(logits.entry, labels.entry)
    loss = ops.softmax_cross_entropy_with_logits(label_rows, x, name=call.name)
    return loss, ops.softmax(x) - label_rows


@op_importer("SparseSoftmaxCrossEntropyWithLogits")
def _sparse_cross_entropy(
    call: ImportCall, logits: ImportedValue, labels: ImportedValue
) -> ImportResult:
    """Import SparseSoftmaxCrossEntropyWithLogits, of labels that are class numbers.

    Args:
        call: The node.
        logits: Shape (batch, classes).
        labels: Class numbers (batch,), whose range is not checked.

    Returns:
        The loss of each row, (batch,), and its gradient for the logits.

    Raises:
        ModelError: If ``logits`` has not two axes, or an unknown rank.
        ShapeError: If ``labels`` is not a vector of as many elements as ``logits`` has rows.
        DTypeError: If ``logits`` are not floats, or ``labels`` not integers.
    """
    classes = call.rank(logits, 2)[1]
    loss = ops.sparse_softmax_cross_entropy_with_logits(labels.entry, logits.entry, name=call.name)
    one_hot = ops.one_hot(labels.entry, depth=classes, dtype=logits.dtype.name)
    return loss, ops.softmax(logits.entry) - one_hot
