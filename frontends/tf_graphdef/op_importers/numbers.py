"""Numbers as others: other element types, their bits, and complex numbers and their parts."""

from __future__ import annotations

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.operators import ops
from passkit.frontends.tf_graphdef.table import Result, row, same_inputs
from passkit.frontends.tf_graphdef.value import Call, Value
from passkit.graph.node import Entry
from passkit.values.dtype import DType

same_inputs(
    1, {"Angle": "angle", "ComplexAbs": "abs", "Conj": "conj", "Imag": "imag", "Real": "real"}
)
same_inputs(2, {"Complex": "complex"})


@row("Cast")
def _cast(call: Call, x: Value) -> Result:
    """Of a complex number the real part counts, and a real one has no imaginary part.

    Raises: ModelError for floats that are to be cut and not rounded.
    """
    to = call.dtype("DstT")
    if call.attr("Truncate", "b", False) and to.is_float and x.dtype.nbytes > to.nbytes:
        raise ModelError(
            f"{call.where} needs Truncate=False, since floats are rounded here, got True for "
            f"{x.dtype} as {to}"
        )
    if to.kind == "c":
        return _as_complex(x, to, call.name)
    if x.dtype.kind == "c" and to.kind == "b":
        return ops.not_equal(x.entry, ops.zeros_like(x.entry), name=call.name)
    entry = ops.real(x.entry) if x.dtype.kind == "c" else x.entry
    return ops.cast(entry, dtype=to.name, name=call.name)


def _as_complex(x: Value, to: DType, name: str) -> Entry:
    if x.dtype is to:
        return x.entry
    part = f"float{4 * to.nbytes}"
    is_complex = x.dtype.kind == "c"
    real = ops.cast(ops.real(x.entry) if is_complex else x.entry, dtype=part)
    imag = ops.cast(ops.imag(x.entry), dtype=part) if is_complex else ops.zeros_like(real)
    return ops.complex(real, imag, name=name)  # type: ignore[no-any-return]


@row("Bitcast")
def _bitcast(call: Call, x: Value) -> Result:
    """The same bytes as another type. Raises: ModelError for types of another width."""
    to = call.dtype("type")
    if x.dtype.nbytes != to.nbytes or "b" in (x.dtype.kind, to.kind):
        raise ModelError(
            f"{call.where} needs a type of {x.dtype.nbytes} bytes, as {x.dtype} has, got {to}"
        )
    return ops.bitcast(x.entry, dtype=to.name, name=call.name)
