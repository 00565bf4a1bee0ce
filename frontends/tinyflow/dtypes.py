"""Element types by TensorFlow's names."""

from __future__ import annotations

from typing import Any

from passkit.values.dtype import DType, dtype_of

NAMES = (
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "complex64",
    "complex128",
)
"""The element types that have the same name in TensorFlow and in passkit."""

_ALIASES = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "int": "int32",
}


def as_dtype(value: Any) -> DType:
    """Convert a name, a NumPy dtype, a Python type or a `DType` to a `DType`.

    As in TensorFlow, ``"float"`` and `float` are float32, and ``int`` is int32.

    Raises:
        DTypeError: If there is no such element type.
    """
    if value is float:
        return dtype_of("float32")
    if value is int:
        return dtype_of("int32")
    if isinstance(value, str):
        return dtype_of(_ALIASES.get(value, value))
    return dtype_of(value)


def exported() -> dict[str, DType]:
    """Return the element types that are attributes of ``tf``, by name: `NAMES` and three more."""
    dtypes = {name: dtype_of(name) for name in NAMES}
    return {
        **dtypes,
        "bool": dtype_of("bool"),
        "double": dtypes["float64"],
        "half": dtypes["float16"],
    }
