"""Reductions over axes, softmax, and cross entropies."""

from __future__ import annotations

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.operators import ops
from passkit.frontends.tf_graphdef.table import Result, row
from passkit.frontends.tf_graphdef.value import Call, Value
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


def _enter_reduction(theirs: str, ours: str) -> None:
    def reduction(call: Call, x: Value, axes: Value) -> Entry:
        wanted = call.ints(axes, "axes")
        keep = call.attr("keep_dims", "b", False)
        if theirs == "Mean" and x.dtype.is_integer:
            return _whole_mean(call, x, wanted, keep)
        made: Entry = getattr(ops, ours)(x.entry, axis=wanted, keepdims=keep, name=call.name)
        return made

    row(theirs)(reduction)


for _theirs, _ours in REDUCTIONS.items():
    _enter_reduction(_theirs, _ours)


def _whole_mean(call: Call, x: Value, axes: tuple[int, ...], keep: bool) -> Entry:
    """Integers have a mean that is rounded toward 0. Raises: ModelError for an unknown count."""
    shape = call.shape(x)
    total = ops.reduce_sum(x.entry, axis=axes, keepdims=keep)  # refuses axes that there are not
    count = numel(shape[a] for a in axes)
    if isinstance(count, Size) or count == 0:
        raise ModelError(
            f"{call.where} needs a known number of {x.dtype} to take the mean of, got {count}; "
            f"give load the whole shape of its input in shapes="
        )
    return ops.trunc_div(total, ops.full_like(total, count), name=call.name)  # type: ignore[no-any-return]


@row("L2Loss")
def _l2_loss(call: Call, x: Value) -> Result:
    return ops.reduce_sum(ops.square(x.entry)) * 0.5


@row("Softmax", "LogSoftmax")
def _softmax(call: Call, x: Value) -> Result:
    op = ops.softmax if call.node.op == "Softmax" else ops.log_softmax
    return op(x.entry, axis=-1, name=call.name)


@row("SoftmaxCrossEntropyWithLogits")
def _cross_entropy(call: Call, logits: Value, labels: Value) -> Result:
    """The loss of each row, and its gradient for the logits; both inputs broadcast."""
    call.rank(logits, 2)
    call.rank(labels, 2)
    x, wanted = ops.broadcast_arrays(logits.entry, labels.entry)
    loss = ops.softmax_cross_entropy_with_logits(wanted, x, name=call.name)
    return loss, ops.softmax(x) - wanted


@row("SparseSoftmaxCrossEntropyWithLogits")
def _sparse_cross_entropy(call: Call, logits: Value, labels: Value) -> Result:
    """As above, for labels that are classes; which ones there are is not checked."""
    classes = call.rank(logits, 2)[1]
    loss = ops.sparse_softmax_cross_entropy_with_logits(
        labels.entry, logits.entry, name=call.name
    )
    wanted = ops.one_hot(labels.entry, depth=classes, dtype=logits.dtype.name)
    return loss, ops.softmax(logits.entry) - wanted
