"""Errors of kernel expressions: what each operation does to intervals, and what it rounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import product
from typing import Any

import numpy as np

from passkit.ast import Binary, Call, Cast, Const, Expr, Load, Select, SizeOf, Unary, Var
from passkit.runtime.evaluate import BINARY, EXACT, IN_DOUBLE, UNARY, call_array, cast_array
from passkit.values.dtype import DType, dtype_of
from passkit.values.size import evaluate
from tests.error_bounds.values import SIGN, Value, difference, is_float, largest, spacing

Known = Mapping[str, Value]
FUNCTION_ULPS = 5
"""A function's error: 4 ulp of the kernel's, and less than 1 of NumPy's."""

WIDER = dict.fromkeys(("lgamma", "tgamma", "digamma", "trigamma", "erfinv", "erfcinv"), 32)
WIDER |= dict.fromkeys(("igamma", "igammac", "betainc", "zeta"), 32)
"""Functions within 16 ulp of the true value, and so of each other; but for `TERMS`."""


def _sine(x: Any) -> Any:
    """The magnitude of sin(pi x), not 0, for the reflection of what is below 1/2."""
    return np.maximum(np.abs(np.sin(np.pi * (x - np.rint(x)))), 1e-300)


TERMS: dict[str, Callable[..., Any]] = {
    "lgamma": lambda x: 1 + np.abs(x) * (1 + np.log1p(np.abs(x))) + np.abs(np.log(_sine(x))),
    "digamma": lambda x: 1 + np.log1p(np.abs(x)) + np.where(x < 0.5, np.pi / _sine(x), 0),
    "trigamma": lambda x: 1 + np.where(x < 0.5, (np.pi / _sine(x)) ** 2, 0),
    **dict.fromkeys(("igamma", "igammac", "betainc"), lambda a, *x: np.ones(a.shape)),
    "zeta": lambda s, q: np.where(q < 0, np.maximum(np.abs(q - np.rint(q)), 1e-300) ** -s, 0),
}
"""The largest terms of sums that vanish somewhere: their roundings stay there."""
NEAR = 16
"""So many places of an argument are as good as none where a function grows over all bounds."""
TERM_ERROR = 8e-15
"""The error of a function and that of its meaning in NumPy, in units of the largest term."""


def expression(x: Expr, values: Known, buffers: Known | None = None) -> Value:
    """The value of an expression, each operation rounded, with its error.

    ``buffers`` are what loads read, in one dimension. An arm of a select that is not chosen may
    load from anywhere.
    """
    return _Rules(values, buffers or {}).value(x)


class _Rules:
    """One rule for each kind of expression; what occurs twice is computed once."""

    def __init__(self, values: Known, buffers: Known) -> None:
        self.values, self.buffers = values, buffers
        self.done: dict[int, Value] = {}

    def value(self, x: Expr) -> Value:
        """The value of an expression, kept."""
        if id(x) not in self.done:
            self.done[id(x)] = self.evaluated(x)
        return self.done[id(x)]

    def evaluated(self, x: Expr) -> Value:
        """The value of an expression by its parts."""
        match x:
            case Const():
                return Value(np.asarray(x.value))
            case SizeOf(size):
                return Value(np.asarray(evaluate(size, {}), np.int64))
            case Var(name):
                return self.values[name]
            case Load(buffer, at):
                return self.loaded(self.buffers[buffer], self.value(at))
            case Select(condition, a, b):
                return _chosen(*map(self.value, (condition, a, b)))
            case Cast(a, dtype):
                return _primitive("cast", [self.value(a)], dtype)
            case Unary(op, a):
                return _primitive(op, [self.value(a)], x.dtype, unary=True)
            case Binary(op, a, b):
                return _primitive(op, [self.value(a), self.value(b)], x.dtype)
            case Call(name, args):
                return _primitive(name, [self.value(a) for a in args], x.dtype)
        raise AssertionError(f"no rule for {type(x).__name__}")

    def loaded(self, data: Value, at: Value) -> Value:
        """Elements of a buffer; any of them, where the index itself is open."""
        if not data.array.size:
            return Value(np.zeros(at.array.shape, data.array.dtype))
        index = np.clip(at.array, 0, data.array.size - 1)
        if data.error is None and at.error is None:
            return Value(data.array[index])
        return Value(data.array[index], np.where(at.bound > 0, np.inf, data.bound[index]))


def _evaluate(name: str, dtype: DType, unary: bool, args: Sequence[Any]) -> Any:
    if name == "cast":
        return cast_array(args[0], dtype)
    if unary:
        return UNARY[name](*args)
    if name in BINARY:
        return BINARY[name](*args)
    return call_array(name, dtype, *args)


def _primitive(name: str, args: list[Value], dtype: DType, unary: bool = False) -> Value:
    result = _computed(name, args, dtype, unary)
    if name not in ("copysign", "signbit"):
        return result
    nan = np.isnan(args[-1].array)  # whose sign is nobody's: machines choose it
    if not nan.any():
        return result
    open_ = np.where(nan, np.inf if dtype.name == "bool" else 2 * np.abs(result.array), 0.0)
    return Value(result.array, np.maximum(result.bound, open_))


def _computed(name: str, args: list[Value], dtype: DType, unary: bool) -> Value:
    result = _interval(name, args, dtype, unary)
    if name in ("maximum", "minimum") and is_float(result.array):
        a, b = (np.signbit(v.array) for v in args)
        either = np.where((result.array == 0) & (a != b), SIGN, 0.0)
        return Value(result.array, np.maximum(result.bound, either))
    if result.error is None or not is_float(result.array):
        return result
    near = _overflow_near(name, args, dtype, unary, result)
    return Value(result.array, np.where(near & (result.error > 0), np.inf, result.error))


def _overflow_near(name: str, args: list[Value], dtype: DType, unary: bool, result: Value) -> Any:
    """Where rounding decides whether a result is infinite, on either side of the largest number."""
    most = largest(dtype_of(result.array.dtype))
    near = np.isfinite(result.array) & (
        np.abs(result.array.astype(np.float64)) + result.error > most
    )
    infinite = np.isinf(result.array)
    if not infinite.any():
        return near
    for signs in product((-1, 1), repeat=len(args)):
        moved = [_moved(a.array, s * NEAR) for s, a in zip(signs, args, strict=True)]
        value = np.abs(np.asarray(_evaluate(name, dtype, unary, moved)).astype(np.float64))
        near = near | infinite & (value > most / 2) & np.isfinite(value)  # else it is a pole
    return near


def _moved(x: Any, places: int) -> Any:
    """Finite floats some places further; others stay."""
    if not is_float(x):
        return x
    far = (x.astype(np.float64) + places * spacing(x)).astype(x.dtype)
    return np.where(np.isfinite(x), far, x)


def _interval(name: str, args: list[Value], dtype: DType, unary: bool) -> Value:
    array = np.asarray(_evaluate(name, dtype, unary, [a.array for a in args]))
    ulps = WIDER.get(name, FUNCTION_ULPS if name in IN_DOUBLE else 0)
    more: Any = 0.0
    if name in TERMS:
        more = TERM_ERROR * TERMS[name](*(np.asarray(a.array, np.float64) for a in args))
    if all(a.error is None for a in args):
        return Value(array, ulps * spacing(array) + more if ulps else None)
    if any(a.error is not None and not is_float(a.array) for a in args):
        bounds = [a.bound for a in args]
        return Value(array, np.where(reduce(np.maximum, bounds) > 0, np.inf, 0.0))
    off = np.zeros(array.shape)
    wide = [(np.asarray(a.array, np.float64), a.bound) for a in args]
    for signs in product((-1, 1), repeat=len(args)):
        corner = _evaluate_wide(
            name, dtype, unary, [v + s * e for s, (v, e) in zip(signs, wide, strict=True)]
        )
        off = np.maximum(off, difference(corner, array))
    errors = [np.broadcast_to(e, array.shape) for _, e in wide]
    if name in ("sin", "cos"):
        off = np.maximum(off, errors[0])
    if name == "fmod":
        off = np.maximum(off, _jump(*wide))
    pole = {"/": 1, "rsqrt": 0, "pow": 0}.get(name)
    if pole is not None:
        value, e = wide[pole]
        off = np.where((np.abs(value) <= e) & (e > 0), np.inf, off)
    if name == "cast" and dtype.name == "bool":  # only 0 is false, and it may lie in between
        off = np.where((np.abs(wide[0][0]) <= errors[0]) & (errors[0] > 0), np.inf, off)
    off = np.where(reduce(np.maximum, errors) == np.inf, np.inf, off)
    if is_float(array):
        touched = reduce(np.maximum, errors) > 0
        most = (np.abs(array) + off).astype(array.dtype)
        rounding = np.where(touched, max(ulps, 1), ulps) * spacing(most) + more
        off = np.where(np.isfinite(array), off + rounding, off)
    else:
        off = np.where(off > 0, np.inf, 0.0)
    return Value(array, off)


def _jump(x: tuple[Any, Any], y: tuple[Any, Any]) -> Any:
    """How far a remainder of x by y moves where errors change the quotient: anywhere up to y.

    A quotient beyond the digits of float64 is changed by any error.
    """
    (a, e), (b, f) = x, y
    with np.errstate(all="ignore"):
        ends = [np.trunc((a + s * e) / (b + t * f)) for s, t in product((-1, 1), repeat=2)]
        kept = reduce(np.logical_and, (end == ends[0] for end in ends))
        open_ = ~kept | (np.abs(ends[0]) >= 2.0**52)
    return np.where(open_ & (np.maximum(e, f) > 0), np.abs(b) + f, 0.0)


def _evaluate_wide(name: str, dtype: DType, unary: bool, args: Sequence[Any]) -> Any:
    """As `_evaluate`, in float64 as far as it goes; what is too large for ``dtype`` is infinite."""
    if name == "cast":
        return cast_array(args[0], dtype)
    if not unary and name not in BINARY:
        function = EXACT.get(name) or IN_DOUBLE[name]
        out = function(*args)
    else:
        out = _evaluate(name, dtype, unary, args)
    if dtype.is_float and is_float(out):
        out = np.where(np.isinf(np.asarray(out).astype(dtype.numpy)), np.sign(out) * np.inf, out)
    return out


def _chosen(condition: Value, a: Value, b: Value) -> Value:
    array = np.where(condition.array, a.array, b.array)
    if condition.error is None and a.error is None and b.error is None:
        return Value(array)
    error = np.where(condition.array, a.bound, b.bound)
    apart = difference(a.array, b.array) + a.bound + b.bound
    return Value(array, np.where(condition.bound > 0, apart, error))
