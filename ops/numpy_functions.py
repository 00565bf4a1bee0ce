"""NumPy's functions for entries: those of the methods of `Entry`, and others by NumPy's protocols.

They have NumPy's signatures and its rules for dtypes: integers are summed in 64 bits, and means of
integers are float64. NumPy's functions that are not here are refused with the operator to call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from passkit.errors import GraphError
from passkit.graph.call import convert
from passkit.graph.node import Entry, as_entry, known_shape
from passkit.graph.op import TCounterparts, get_op, load_operators
from passkit.values.dtype import DType, bool_, dtype_of, float64, int64, uint64
from passkit.values.size import Extent, numel


def _op(name: str, *inputs: Any, **params: Any) -> Entry:
    """Apply an operator."""
    return get_op(name)(*inputs, **params)  # type: ignore[no-any-return]


def _in_dtype(x: Any, dtype: Any) -> Entry:
    """Return an entry converted to a dtype; None keeps it."""
    entry = as_entry(x)
    return entry if dtype is None else convert(entry, dtype_of(dtype))


def _floats(x: Any, dtype: Any) -> Entry:
    """Return an entry converted to a dtype; None converts integers and booleans to float64."""
    entry = _in_dtype(x, dtype)
    is_float = entry.dtype is None or entry.dtype.is_float or entry.dtype.kind == "c"
    return entry if is_float else convert(entry, float64)


def _truth(x: Any) -> Entry:
    """Return whether each element is true."""
    entry = as_entry(x)
    return entry if entry.dtype is bool_ else _op("not_equal", entry, 0)


# Reductions.


def sum(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Entry:
    """Build the sum along axes."""
    return _op("reduce_sum", _accumulated(a, dtype), axis=axis, keepdims=keepdims)


def prod(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Entry:
    """Build the product along axes."""
    return _op("reduce_prod", _accumulated(a, dtype), axis=axis, keepdims=keepdims)


def _accumulated(x: Any, dtype: Any) -> Entry:
    """Return an entry in a dtype; None converts integers and booleans to 64 bits."""
    entry = _in_dtype(x, dtype)
    if dtype is None and entry.dtype is not None and entry.dtype.kind in "biu":
        return convert(entry, uint64 if entry.dtype.kind == "u" else int64)
    return entry


def mean(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Entry:
    """Build the mean along axes."""
    return _op("reduce_mean", _floats(a, dtype), axis=axis, keepdims=keepdims)


def max(a: Any, axis: Any = None, *, keepdims: bool = False) -> Entry:
    """Build the largest element along axes."""
    entry = as_entry(a)
    name = "reduce_any" if entry.dtype is bool_ else "reduce_max"
    return _op(name, entry, axis=axis, keepdims=keepdims)


def min(a: Any, axis: Any = None, *, keepdims: bool = False) -> Entry:
    """Build the smallest element along axes."""
    entry = as_entry(a)
    name = "reduce_all" if entry.dtype is bool_ else "reduce_min"
    return _op(name, entry, axis=axis, keepdims=keepdims)


def any(a: Any, axis: Any = None, *, keepdims: bool = False) -> Entry:
    """Build whether any element along axes is true."""
    return _op("reduce_any", _truth(a), axis=axis, keepdims=keepdims)


def all(a: Any, axis: Any = None, *, keepdims: bool = False) -> Entry:
    """Build whether all elements along axes are true."""
    return _op("reduce_all", _truth(a), axis=axis, keepdims=keepdims)


def argmax(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Entry:
    """Build the position of the largest element."""
    return _op("argmax", a, axis=axis, keepdims=keepdims)


def argmin(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Entry:
    """Build the position of the smallest element."""
    return _op("argmin", a, axis=axis, keepdims=keepdims)


def var(
    a: Any, axis: Any = None, dtype: Any = None, *, ddof: float = 0, keepdims: bool = False
) -> Entry:
    """Build the variance along axes."""
    return _op("var", _floats(a, dtype), axis=axis, correction=ddof, keepdims=keepdims)


def std(
    a: Any, axis: Any = None, dtype: Any = None, *, ddof: float = 0, keepdims: bool = False
) -> Entry:
    """Build the standard deviation along axes."""
    return _op("std", _floats(a, dtype), axis=axis, correction=ddof, keepdims=keepdims)


# Scans.


def _scan(name: str, a: Any, axis: int | None, dtype: Any) -> Entry:
    """Build a scan, along all elements in row-major order if ``axis`` is None."""
    entry = _accumulated(a, dtype)
    if axis is None:
        entry, axis = ravel(entry), 0
    return _op(name, entry, axis=axis)


def cumsum(a: Any, axis: int | None = None, dtype: Any = None) -> Entry:
    """Build the sums so far."""
    return _scan("cumulative_sum", a, axis, dtype)


def cumprod(a: Any, axis: int | None = None, dtype: Any = None) -> Entry:
    """Build the products so far."""
    return _scan("cumulative_prod", a, axis, dtype)


# Shapes.


def size(a: Any) -> Extent:
    """Return the number of elements. Raises: ShapeError if the rank is unknown."""
    return numel(known_shape(as_entry(a)))


def shape(a: Any) -> tuple[Extent, ...]:
    """Return the shape. Raises: ShapeError if the rank is unknown."""
    return known_shape(as_entry(a))


def ndim(a: Any) -> int:
    """Return the rank. Raises: ShapeError if it is unknown."""
    return len(shape(a))


def reshape(a: Any, shape: Any) -> Entry:
    """Build a reshape."""
    return _op("reshape", a, shape=shape if isinstance(shape, (tuple, list)) else (shape,))


def transpose(a: Any, axes: Any = None) -> Entry:
    """Build a permutation of axes, by default in reverse order."""
    return _op("transpose", a, axes=axes)


def matrix_transpose(x: Any) -> Entry:
    """Build matrices transposed."""
    return _op("matrix_transpose", x)


def swapaxes(a: Any, axis1: int, axis2: int) -> Entry:
    """Build an entry with two axes swapped."""
    return _op("swapaxes", a, axis1=axis1, axis2=axis2)


def moveaxis(a: Any, source: Any, destination: Any) -> Entry:
    """Build an entry with axes moved."""
    return _op("moveaxis", a, source=source, destination=destination)


def squeeze(a: Any, axis: Any = None) -> Entry:
    """Build an entry without axes of length 1."""
    return _op("squeeze", a, axis=axis)


def ravel(a: Any) -> Entry:
    """Build the elements along one axis."""
    return _op("ravel", a)


def expand_dims(a: Any, axis: Any) -> Entry:
    """Build an entry with more axes of length 1."""
    return _op("expand_dims", a, axis=axis)


def broadcast_to(array: Any, shape: Any) -> Entry:
    """Build a broadcast."""
    return _op("broadcast_to", array, shape=shape)


def flip(m: Any, axis: Any = None) -> Entry:
    """Build the elements in reverse order."""
    return _op("flip", m, axis=axis)


def roll(a: Any, shift: Any, axis: Any = None) -> Entry:
    """Build the elements shifted."""
    return _op("roll", a, shift=shift, axis=axis)


def tile(A: Any, reps: Any) -> Entry:  # noqa: N803 (NumPy's name)
    """Build repetitions of the entry."""
    return _op("tile", A, repetitions=reps if isinstance(reps, (tuple, list)) else (reps,))


def repeat(a: Any, repeats: Any, axis: int | None = None) -> Entry:
    """Build repetitions of each element."""
    return _op("repeat", a, repeats=repeats, axis=axis)


def take(a: Any, indices: Any, axis: int | None = None) -> Entry:
    """Build the parts at indices."""
    return _op("take", a, indices, axis=axis)


def concatenate(arrays: Any, axis: int = 0) -> Entry:
    """Build entries joined along an axis, in their common dtype."""
    return _op("concat", *_promoted(arrays), axis=axis)


def stack(arrays: Any, axis: int = 0) -> Entry:
    """Build entries stacked along a new axis, in their common dtype."""
    return _op("stack", *_promoted(arrays), axis=axis)


def _promoted(operands: Any) -> list[Entry]:
    """Return operands as entries of their common dtype, where the dtypes are known."""
    entries = [as_entry(x) for x in operands]
    dtypes = [e.dtype.numpy for e in entries if e.dtype is not None]
    if len(dtypes) < len(entries):
        return entries
    dtype = dtype_of(np.result_type(*dtypes))
    return [convert(e, dtype) for e in entries]


# Elementwise, and products.


def astype(x: Any, dtype: Any) -> Entry:
    """Build a conversion to a dtype; all but 0 is true."""
    target = dtype_of(dtype)
    return _truth(x) if target is bool_ else convert(as_entry(x), target)


def clip(a: Any, a_min: Any = None, a_max: Any = None) -> Entry:
    """Build the elements limited to an interval."""
    entry = as_entry(a)
    if a_min is not None:
        entry = _binary("maximum", entry, a_min)
    return entry if a_max is None else _binary("minimum", entry, a_max)


def _binary(name: str, x: Any, y: Any) -> Entry:
    """Apply an operator to two operands; a Python number takes the dtype of the other."""
    return _op(name, *_resolved(getattr(np, name), (x, y)))


def round(a: Any, decimals: int = 0) -> Entry:
    """Build the elements rounded to a number of decimals."""
    entry = as_entry(a)
    is_integer = entry.dtype is not None and entry.dtype.kind in "biu"
    if is_integer and decimals >= 0:
        return _op("identity", entry)
    if not decimals:
        return _op("rint", entry)
    scale = 10.0 ** abs(decimals)
    if decimals > 0:
        return _op("rint", entry * scale) / scale
    rounded = _op("rint", _floats(entry, None) / scale) * scale
    return convert(rounded, entry.dtype) if is_integer and entry.dtype is not None else rounded


def dot(a: Any, b: Any) -> Entry:
    """Build the product of vectors, matrices or numbers."""
    return _op("dot", *_promoted([a, b]))


def matmul(x1: Any, x2: Any) -> Entry:
    """Build the product of matrices or vectors."""
    left, right = _promoted([x1, x2])
    is_row, is_column = len(known_shape(left)) == 1, len(known_shape(right)) == 1
    left = _op("expand_dims", left, axis=0) if is_row else left
    right = _op("expand_dims", right, axis=1) if is_column else right
    product = _op("matmul", left, right)
    product = _op("squeeze", product, axis=-1) if is_column else product
    return _op("squeeze", product, axis=-1 if is_column else -2) if is_row else product


def conj(x: Any) -> Entry:
    """Build the complex conjugates."""
    return _op("conj", x)


def where(condition: Any, x: Any, y: Any) -> Entry:
    """Build a choice between elements."""
    return _op("where", _truth(condition), *_resolved(np.add, (x, y)))


def zeros_like(a: Any) -> Entry:
    """Build zeros of the shape and dtype of an entry."""
    return _op("zeros_like", a)


def ones_like(a: Any) -> Entry:
    """Build ones of the shape and dtype of an entry."""
    return _op("ones_like", a)


def tril(m: Any, k: int = 0) -> Entry:
    """Build matrices with zeros above a diagonal."""
    return _op("tril", m, k=k)


def triu(m: Any, k: int = 0) -> Entry:
    """Build matrices with zeros below a diagonal."""
    return _op("triu", m, k=k)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "all": all,
    "amax": max,
    "amin": min,
    "any": any,
    "argmax": argmax,
    "argmin": argmin,
    "astype": astype,
    "broadcast_to": broadcast_to,
    "clip": clip,
    "concatenate": concatenate,
    "cumprod": cumprod,
    "cumsum": cumsum,
    "dot": dot,
    "expand_dims": expand_dims,
    "flip": flip,
    "matrix_transpose": matrix_transpose,
    "max": max,
    "mean": mean,
    "min": min,
    "moveaxis": moveaxis,
    "ndim": ndim,
    "ones_like": ones_like,
    "prod": prod,
    "ravel": ravel,
    "repeat": repeat,
    "reshape": reshape,
    "roll": roll,
    "round": round,
    "shape": shape,
    "size": size,
    "squeeze": squeeze,
    "stack": stack,
    "std": std,
    "sum": sum,
    "swapaxes": swapaxes,
    "take": take,
    "tile": tile,
    "transpose": transpose,
    "tril": tril,
    "triu": triu,
    "var": var,
    "where": where,
    "zeros_like": zeros_like,
}
"""The functions that NumPy calls for entries, by NumPy's names."""


# NumPy's protocols.


def apply_function(function: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Return what a function of NumPy that is no ufunc returns for entries.

    Raises: GraphError if it is none of `FUNCTIONS`, or is called with an argument that these lack;
        the message names the operator to call.
    """
    own = FUNCTIONS.get(function.__name__) if function.__module__ == "numpy" else None
    name = f"{function.__module__}.{function.__name__}"
    if own is None:
        _refuse(name, "")
    try:
        return own(*args, **params)
    except TypeError as error:
        if f"{function.__name__}()" not in str(error) and f"{own.__name__}()" not in str(error):
            raise
        _refuse(name, f": {str(error).partition('() ')[2]}")


def apply_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Return what a ufunc of NumPy returns for entries: an operator on operands of NumPy's dtypes.

    Raises: GraphError for other methods than calls, for further arguments, and for ufuncs without
        an operator; the message names the operator to call, if there is one.
    """
    name = f"numpy.{ufunc.__name__}"
    if method != "__call__":
        _refuse(f"{name}.{method}", "")
    if params:
        _refuse(name, f": it takes no argument {next(iter(params))!r} here")
    if ufunc is np.matmul:
        return matmul(*inputs)
    operator = _operators().get(_ALIASES.get(ufunc.__name__, name))
    if operator is None or ufunc.nout > 1:
        _refuse(name, "")
    return _op(operator, *_resolved(ufunc, inputs))


_ALIASES = {"remainder": "numpy.mod", "degrees": "numpy.rad2deg", "radians": "numpy.deg2rad"}
"""Names under which operators list NumPy's ufuncs, where these have others."""


def _resolved(ufunc: Any, operands: tuple[Any, ...]) -> list[Entry]:
    """Return operands as entries of the dtypes in which NumPy computes a ufunc of them."""
    numbers = [type(x) if type(x) in (bool, int, float) else None for x in operands]
    entries = [as_entry(x) if n is None else None for x, n in zip(operands, numbers, strict=True)]
    kinds: list[Any] = [
        number if entry is None else (None if entry.dtype is None else entry.dtype.numpy)
        for number, entry in zip(numbers, entries, strict=True)
    ]
    if [k for k in kinds if k is None]:  # a float64 equals None
        return list(operands)
    dtypes = _loop(ufunc, kinds)
    return [
        as_entry(np.asarray(x, dtype.numpy)) if entry is None else convert(entry, dtype)
        for x, entry, dtype in zip(operands, entries, dtypes, strict=True)
    ]


def _loop(ufunc: Any, kinds: list[Any]) -> list[DType]:
    """Return the dtypes of the operands for which NumPy has a loop of a ufunc.

    Args:
        ufunc: the ufunc.
        kinds: for each operand its NumPy dtype, or the type of a Python number. Types that NumPy
            lacks, such as bfloat16, stay as they are, and numbers take them.
    """
    own = [k for k in kinds if not isinstance(k, type) and k.num > 255]
    if own:
        return [dtype_of(own[0])] * len(kinds)
    weak = [
        {bool: np.dtype(bool), int: int, float: float}[k] if isinstance(k, type) else k
        for k in kinds
    ]
    return [dtype_of(d) for d in ufunc.resolve_dtypes((*weak, *[None] * ufunc.nout))[: len(kinds)]]


_operators_by_name: dict[str, str] = {}


def _operators() -> dict[str, str]:
    """Return the operators by the full names of NumPy's equivalents."""
    if not _operators_by_name:
        load_operators()
        for operator, setting in TCounterparts.rows.items():
            name = setting.value.get("NumPy")
            if name and (name not in _operators_by_name or operator == name.partition(".")[2]):
                _operators_by_name[name] = operator
    return _operators_by_name


_REPLACEMENTS = {
    "numpy.add.reduce": "reduce_sum",
    "numpy.linalg.norm": "vector_norm",
    "numpy.maximum.reduce": "reduce_max",
    "numpy.minimum.reduce": "reduce_min",
    "numpy.multiply.reduce": "reduce_prod",
}
"""Operators to call in place of functions of NumPy that are no equivalent of one."""


def _refuse(name: str, reason: str) -> NoReturn:
    """Raise a GraphError for a function of NumPy, with the operator to call instead."""
    operator = _REPLACEMENTS.get(name) or _operators().get(name)
    short = name.replace("numpy", "np", 1)
    way_out = f"call pk.ops.{operator}" if operator else "docs/operators.md lists the operators"
    raise GraphError(f"{short} does not take an Entry of a graph like this{reason}; {way_out}")
