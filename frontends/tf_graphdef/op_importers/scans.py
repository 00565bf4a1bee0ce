"""Importers of cumulative sums and products."""

from __future__ import annotations

from passkit import ops
from passkit.frontends.tf_graphdef.imported_value import ImportCall, ImportedValue
from passkit.frontends.tf_graphdef.registry import ImportResult, op_importer

SCANS = {"Cumsum": "cumsum", "Cumprod": "cumprod", "CumulativeLogsumexp": "logcumsumexp"}


@op_importer(*SCANS)
def _scan(call: ImportCall, x: ImportedValue, axis: ImportedValue) -> ImportResult:
    """Import Cumsum, Cumprod and CumulativeLogsumexp along ``axis``, known during import.

    The attribute ``exclusive`` leaves out each element itself, ``reverse`` accumulates from the
    end; both are False by default. ``call`` is the node.

    Raises:
        ModelError: If ``axis`` is not one integer known during import, an attribute is of another
            kind, or ``x`` is known during import and has symbolic sizes and more than 16 elements.
        ShapeError: If it is out of range.
        DTypeError: If ``x`` is of bools or complex, or for CumulativeLogsumexp not of floats.
    """
    return getattr(ops, SCANS[call.node.op])(
        x.entry,
        axis=call.integer(axis, "axis"),
        exclusive=call.attr("exclusive", "b", False),
        reverse=call.attr("reverse", "b", False),
        name=call.name,
    )
