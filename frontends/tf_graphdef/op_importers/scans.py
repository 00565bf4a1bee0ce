"""Cumulative sums and products."""

from __future__ import annotations

from passkit import ops
from passkit.frontends.tf_graphdef.table import Result, row
from passkit.frontends.tf_graphdef.value import Call, Value

SCANS = {"Cumsum": "cumsum", "Cumprod": "cumprod", "CumulativeLogsumexp": "logcumsumexp"}


@row(*SCANS)
def _scan(call: Call, x: Value, axis: Value) -> Result:
    return getattr(ops, SCANS[call.node.op])(
        x.entry,
        axis=call.integer(axis, "axis"),
        exclusive=call.attr("exclusive", "b", False),
        reverse=call.attr("reverse", "b", False),
        name=call.name,
    )
