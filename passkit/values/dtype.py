"""Element types (dtypes): names, sizes and kinds, NumPy's promotion, and weak Python scalars."""

from __future__ import annotations

from functools import cache
from math import ldexp
from typing import Any

import numpy as np

from passkit.errors import DTypeError, nearest
from passkit.values.arguments import shown


class DType:
    """An element type. There is one object for each, so they are compared by ``is``.

    Attributes:
        name: the name, such as ``"float32"``.
        kind: 'b' (bool), 'i' (signed), 'u' (unsigned), 'f' (float) or 'c' (complex).
        nbytes: the size of an element in bytes.
        short: the name in the text form of graphs, such as ``"f32"``.
        numpy: the equivalent NumPy dtype.
    """

    __slots__ = ("kind", "name", "nbytes", "numpy", "short")

    name: str
    kind: str
    nbytes: int
    short: str
    numpy: np.dtype[Any]

    def __init__(self, name: str, kind: str, nbytes: int, short: str, numpy: np.dtype[Any]) -> None:
        put = object.__setattr__
        put(self, "name", name)
        put(self, "kind", kind)
        put(self, "nbytes", nbytes)
        put(self, "short", short)
        put(self, "numpy", numpy)

    def __setattr__(self, name: str, value: object) -> None:
        """Raise AttributeError: a DType is immutable."""
        raise AttributeError(f"a DType is immutable; cannot set {name!r}")

    def __str__(self) -> str:
        """Return the full name, such as "float32"."""
        return self.name

    __repr__ = __str__

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to pickle a DType: by its name, so that unpickling gives the same object."""
        return dtype_of, (self.name,)

    @property
    def is_float(self) -> bool:
        """Return whether this is a real float type, whose arithmetic rounds."""
        return self.kind == "f"

    @property
    def is_integer(self) -> bool:
        """Return whether this is an integer type, whose arithmetic wraps."""
        return self.kind in "iu"


_BY_NAME: dict[str, DType] = {}


def _define(name: str, kind: str, nbytes: int, short: str) -> DType:
    """Create and register the object for an element type.

    Args:
        name: its name, such as "float32".
        kind: NumPy's letter of its kind, such as "f".
        nbytes: the size of an element.
        short: its name in the text form of graphs, such as "f32".

    Returns: The object, which `_BY_NAME` now has under its name.
    """
    if name == "bfloat16":
        from ml_dtypes import bfloat16  # NumPy has no bfloat16 of its own

        numpy = np.dtype(bfloat16)
    else:
        numpy = np.dtype(name)
    dtype = _BY_NAME[name] = DType(name, kind, nbytes, short, numpy)
    return dtype


bool_ = _define("bool", "b", 1, "bool")
int8 = _define("int8", "i", 1, "i8")
int16 = _define("int16", "i", 2, "i16")
int32 = _define("int32", "i", 4, "i32")
int64 = _define("int64", "i", 8, "i64")
uint8 = _define("uint8", "u", 1, "u8")
uint16 = _define("uint16", "u", 2, "u16")
uint32 = _define("uint32", "u", 4, "u32")
uint64 = _define("uint64", "u", 8, "u64")
float16 = _define("float16", "f", 2, "f16")
float32 = _define("float32", "f", 4, "f32")
float64 = _define("float64", "f", 8, "f64")
complex64 = _define("complex64", "c", 8, "c64")
complex128 = _define("complex128", "c", 16, "c128")

_NAMES = ("bfloat16", *_BY_NAME)
_SHORT = {d.short: d for d in _BY_NAME.values()} | {"pred": bool_}
_BY_NUMPY = {d.numpy: d for d in _BY_NAME.values()}
_PYTHON: dict[type, DType] = {bool: bool_, int: int64, float: float64, complex: complex128}


def _bfloat16() -> DType:
    """Return the object for bfloat16, created at its first use."""
    return _BY_NAME.get("bfloat16") or _define("bfloat16", "f", 2, "bf16")


def dtype_of(value: Any) -> DType:
    """Return the DType of a name, NumPy dtype, scalar type or DType, which is returned itself.

    Strings are passkit's names, full or short, and no others of NumPy's, such as "float" or "<f4".
    The byte order of a NumPy dtype is ignored. A NumPy scalar, or another object with an attribute
    ``dtype``, has the DType of that; an array is refused.

    Raises: DTypeError where passkit has no such element type, also for None.

    >>> dtype_of("f32"), dtype_of(np.int8), dtype_of(bool)
    (float32, int8, bool)
    """
    if isinstance(value, DType):
        return value
    if isinstance(value, str):
        if value in _BY_NAME:
            return _BY_NAME[value]
        if value in _SHORT:
            return _SHORT[value]
        if value in ("bfloat16", "bf16"):
            return _bfloat16()
        # NumPy reads "f4,f4" and evaluates parts of such strings; names from files stay here.
        hint = nearest(value, _NAMES)
        raise DTypeError(f"{shown(value)} is not an element type of passkit; {hint}")
    if isinstance(value, type) and value in _PYTHON:
        return _PYTHON[value]
    try:
        dtype = _BY_NUMPY.get(value)
    except TypeError:  # it cannot be hashed
        dtype = None
    if dtype is not None:
        return dtype
    if value is None:  # NumPy would take it as float64
        raise DTypeError(f"None is not an element type of passkit; {nearest('', _NAMES)}")
    try:
        name = np.dtype(value).name
    except (TypeError, ValueError):
        name = shown(value)
    if name in _BY_NAME:
        return _BY_NAME[name]
    if name == "bfloat16":
        return _bfloat16()
    raise DTypeError(f"{shown(name)} is not an element type of passkit; {nearest(name, _NAMES)}")


@cache
def promote(a: DType, b: DType) -> DType:
    """Return the dtype of ``a + b`` for arrays of two dtypes, as in NumPy 2.

    bfloat16 is promoted as float16 is, but to bfloat16 where that stays float16, and with float16
    to float32.
    """
    if a is b:
        return a
    if {a.name, b.name} == {"float16", "bfloat16"}:
        return float32
    if "bfloat16" in (a.name, b.name):
        other = a if b.name == "bfloat16" else b
        like = promote(float16, other)
        return (a if other is b else b) if like is float16 else like
    return dtype_of(np.promote_types(a.numpy, b.numpy))


def is_narrow(dtype: DType) -> bool:
    """Return whether a dtype is a 16-bit float, for which kernels compute in float32."""
    return dtype.is_float and dtype.nbytes == 2


_FLOAT_FORMATS = {
    "float16": (11, 16, -24),
    "bfloat16": (8, 128, -133),
    "float32": (24, 128, -149),
    "float64": (53, 1024, -1074),
}
"""For each float type: the bits of its significand, the power of two that its finite values stay
below, and the power of two that divides all of them. Source: IEEE 754-2019, table 3.5; bfloat16 has
the exponents of float32."""


def is_lossless(source: DType, target: DType) -> bool:
    """Return whether every value of ``source`` is one of ``target``, also NaN and infinities.

    This is stricter than ``numpy.can_cast(source, target, "safe")``, which calls the conversion of
    int64 to float64 safe although 2**53 + 1 is rounded. It is False between different complex
    types, and between a complex and a real one.
    """
    if source is target:
        return True
    if "c" in (source.kind, target.kind) or target.kind == "b":
        return False
    if source.is_float:
        if not target.is_float:
            return False
        digits, top, step = _FLOAT_FORMATS[source.name]
        target_digits, target_top, target_step = _FLOAT_FORMATS[target.name]
        return digits <= target_digits and top <= target_top and step >= target_step
    if target.is_float:
        return _magnitude_bits(source) <= _FLOAT_FORMATS[target.name][0]
    signs_fit = source.kind != "i" or target.kind == "i"
    return signs_fit and _magnitude_bits(source) <= _magnitude_bits(target)


def largest_finite(dtype: DType) -> float:
    """Return the largest finite number of a real float type. Raises: KeyError for other types."""
    digits, top, _ = _FLOAT_FORMATS[dtype.name]
    return ldexp(1.0 - 2.0**-digits, top)


def _magnitude_bits(dtype: DType) -> int:
    """Return the number of bits of an integer or bool type without its sign."""
    return 1 if dtype.kind == "b" else 8 * dtype.nbytes - (dtype.kind == "i")


def weak_scalar(value: Any, like: DType) -> DType:
    """Return the dtype of an operation between an array of dtype ``like`` and a scalar.

    A Python bool, int, float or complex is weak: it takes the array's dtype, unless it is of a
    higher kind, as NumPy 2 has it (an int array and 0.5 give float64, a float32 array and 1j
    complex64). Beside bfloat16, real numbers are bfloat16 and complex ones complex64. A NumPy
    scalar or array keeps its own dtype and is promoted.

    Raises: DTypeError when a Python int does not fit the array's integer dtype, or ``value`` is no
    number or has a dtype that passkit lacks.
    """
    if isinstance(value, (np.generic, np.ndarray)):
        return promote(like, dtype_of(value.dtype))
    if isinstance(value, (bool, int, float, complex)):
        if like.name == "bfloat16":  # not weak beside a dtype that is not NumPy's own
            return dtype_of("complex64") if isinstance(value, complex) else like
        out = np.result_type(like.numpy, value)
        if isinstance(value, int) and not isinstance(value, bool) and like.is_integer:
            limits = np.iinfo(like.numpy)
            if not limits.min <= value <= limits.max:
                raise DTypeError(
                    f"{shown(value)} does not fit {like}; cast the array to a wider type first"
                )
        return dtype_of(out)
    raise DTypeError(
        f"an operand must be an Entry, a number or an array, got {type(value).__name__}"
    )
