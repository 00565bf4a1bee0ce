"""Element types by TensorFlow's names."""

from __future__ import annotations

from typing import Any

from passkit.values.dtype import DType, dtype_of

NAMES = (
    *("float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64", "complex64", "complex128"),
)
"""The element types that are called alike in both."""

_OTHERS = {"float": "float32", "double": "float64", "half": "float16", "int": "int32"}


def as_dtype(given: Any) -> DType:
    """The element type of a name, a NumPy dtype, a Python type or a type itself.

    As in TensorFlow ``"float"`` and ``float`` are float32, ``int`` is int32.
    """
    if given is float:
        return dtype_of("float32")
    if given is int:
        return dtype_of("int32")
    if isinstance(given, str):
        return dtype_of(_OTHERS.get(given, given))
    return dtype_of(given)


def exported() -> dict[str, DType]:
    """Name and element type of each that ``tf`` has."""
    found = {name: dtype_of(name) for name in NAMES}
    return {**found, "bool": dtype_of("bool"), "double": found["float64"], "half": found["float16"]}
