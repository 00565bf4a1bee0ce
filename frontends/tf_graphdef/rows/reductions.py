"""Reductions over axes, and softmax."""

from __future__ import annotations

from passkit import ops
from passkit.frontends.tf_graphdef.table import Result, row
from passkit.frontends.tf_graphdef.value import Call, Value
from passkit.node import Entry

REDUCTIONS = {
    "Sum": "reduce_sum",
    "Mean": "reduce_mean",
    "Max": "reduce_max",
    "Min": "reduce_min",
    "Prod": "reduce_prod",
    "Any": "reduce_any",
    "All": "reduce_all",
}


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
