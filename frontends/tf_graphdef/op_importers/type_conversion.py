"""Importers of casts, bitcasts, and complex numbers."""

from __future__ import annotations

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.imported_value import ImportCall, ImportedValue
from passkit.frontends.tf_graphdef.operators import ops
from passkit.frontends.tf_graphdef.registry import ImportResult, op_importer, register_renamed
from passkit.graph.node import Entry
from passkit.values.dtype import DType

register_renamed(
    1, {"Angle": "angle", "ComplexAbs": "abs", "Conj": "conj", "Imag": "imag", "Real": "real"}
)
register_renamed(2, {"Complex": "complex"})


@op_importer("Cast")
def _cast(call: ImportCall, x: ImportedValue) -> ImportResult:
    """Import Cast to the attribute ``DstT``; the imaginary part of complex numbers is dropped.

    A cast of complex numbers to bool says which of them are not 0. ``call`` is the node, ``x`` its
    input.

    Raises:
        ModelError: If the attribute ``DstT`` is missing or a type that passkit does not have,
            ``Truncate`` is set for a float type of fewer bytes than that of ``x``, or an attribute
            is of another kind.
    """
    target = call.dtype("DstT")
    if call.attr("Truncate", "b", False) and target.is_float and x.dtype.nbytes > target.nbytes:
        raise ModelError(
            f"{call.where} needs Truncate=False, since passkit rounds floats, got True for a cast "
            f"of {x.dtype} to {target}"
        )
    if target.kind == "c":
        return _as_complex(x, target, call.name)
    if x.dtype.kind == "c" and target.kind == "b":
        return ops.not_equal(x.entry, ops.zeros_like(x.entry), name=call.name)
    entry = ops.real(x.entry) if x.dtype.kind == "c" else x.entry
    return ops.cast(entry, dtype=target.name, name=call.name)


def _as_complex(x: ImportedValue, target: DType, name: str) -> Entry:
    """Return a real or complex value in a complex dtype; real ones get an imaginary part of 0.

    Args:
        x: The value, returned as it is if it has the dtype.
        target: Complex dtype.
        name: Name of the new node.
    """
    if x.dtype is target:
        return x.entry
    part_dtype = f"float{4 * target.nbytes}"
    is_complex = x.dtype.kind == "c"
    real = ops.cast(ops.real(x.entry) if is_complex else x.entry, dtype=part_dtype)
    imag = ops.cast(ops.imag(x.entry), dtype=part_dtype) if is_complex else ops.zeros_like(real)
    return ops.complex(real, imag, name=name)  # type: ignore[no-any-return]


@op_importer("Bitcast")
def _bitcast(call: ImportCall, x: ImportedValue) -> ImportResult:
    """Import Bitcast: the bits of ``x`` as elements of the attribute ``type``, of the same width.

    ``call`` is the node.

    Raises:
        ModelError: If the attribute ``type`` is missing or a type that passkit does not have, the
            types differ in width, or one is bool.
        DTypeError: If one is complex.
    """
    target = call.dtype("type")
    if x.dtype.nbytes != target.nbytes or "b" in (x.dtype.kind, target.kind):
        raise ModelError(
            f"{call.where} needs types of the same width other than bool, got {x.dtype} and "
            f"{target}"
        )
    return ops.bitcast(x.entry, dtype=target.name, name=call.name)
