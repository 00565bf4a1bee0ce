"""How far a correct kernel may be from `pk.interpret`: every value with a bound of its error.

A bound of 0 demands equal bits; it spreads by what operators do to intervals, so that a graph of
exact operators is compared exactly, and a long one of others no more loosely than it must be. An
infinite bound says that the element may be anything: a comparison of values too close to tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import product
from typing import Any

import numpy as np
from attrs import frozen

from passkit.ast import Binary, Call, Cast, Const, Expr, Select, SizeOf, Unary, Var
from passkit.dtype import DType, dtype_of, int64
from passkit.graph import Graph
from passkit.node import Entry, Node
from passkit.op import FCodeGen, FCompute, FContract, FElement, FExpand, FReduce
from passkit.runtime.evaluate import BINARY, EXACT, IN_DOUBLE, UNARY, call_array, cast_array
from passkit.runtime.interpret import compute, concrete, derive
from passkit.size import evaluate

ULPS = 5
"""A function's error: 4 ulp of the kernel's, and less than 1 of NumPy's."""
SIGN = 5e-324
"""The bound of a zero whose sign is open."""


@frozen(eq=False)
class Value:
    """An array, and the largest error of each element; None is 0 everywhere."""

    array: Any
    error: Any = None

    @property
    def bound(self) -> Any:
        """The error as an array of float64."""
        if self.error is None:
            return np.zeros(np.shape(self.array))
        return self.error


def bounded(
    graph: Graph, feeds: Mapping[str, Any], sizes: Mapping[str, int], state: dict[str, Value]
) -> list[Value]:
    """The outputs of a graph without writes but updates, which go to ``state``."""
    values: dict[Entry, Value] = {}
    names = graph.names
    for node in graph.nodes:
        if node.is_variable:
            held = state.get(node.name) if node.params.get("state") else Value(feeds[names[node]])
            assert held is not None
            values[node.entries[0]] = held
        else:
            found = apply(node, [values[e] for e in node.inputs], sizes)
            values.update(zip(node.entries, found, strict=True))
    for variable, entry in graph.updates:
        state[variable.name] = values[entry]
    return [values[e] for e in graph.outputs]


def apply(node: Node, inputs: Sequence[Value], sizes: Mapping[str, int]) -> list[Value]:
    """The results of one operator."""
    op = node.op
    assert op is not None
    arrays = [v.array for v in inputs]
    known = concrete(node, arrays, sizes)
    if op.name in FExpand.rows and not any(
        op.name in t.rows for t in (FCompute, FElement, FReduce, FContract, FCodeGen)
    ):
        return _expanded(known, inputs)
    with np.errstate(all="ignore"):
        if FReduce.get(op.name) is not None:
            found = [_reduced(known, inputs[0])]
        elif FContract.get(op.name) is not None:
            found = [_contracted(known, *inputs)]
        elif FCodeGen.get(op.name) is not None:
            names = [f"x{k}" for k in range(len(inputs))]
            dtypes = [dtype_of(a.dtype) for a in arrays]
            code = FCodeGen.get(op.name)(known, *map(Var, names, dtypes))
            wide = _spread(node, arrays, inputs)
            values = dict(zip(names, wide, strict=True))
            many = (code,) if isinstance(code, Expr) else code
            found = [expression(x, values) for x in many]
        else:
            found = _moved(known, inputs)
    exact = compute(node, arrays, sizes)
    return [Value(a, _shaped(v.error, a)) for a, v in zip(exact, found, strict=True)]


def _shaped(error: Any, array: Any) -> Any:
    if error is None or not np.any(error):
        return None
    return np.broadcast_to(error, array.shape)


def _spread(node: Node, arrays: Sequence[Any], inputs: Sequence[Value]) -> list[Value]:
    return [Value(np.asarray(a), v.error) for a, v in zip(arrays, inputs, strict=True)]


def _expanded(node: Node, inputs: Sequence[Value]) -> list[Value]:
    """A composite by its primitives."""
    variables = [
        Node(None, (), {"shape": v.array.shape, "dtype": dtype_of(v.array.dtype)}, f"x{k}")
        for k, v in enumerate(inputs)
    ]
    made = FExpand.get(node.op.name)(node, *(n.entries[0] for n in variables))  # type: ignore[union-attr]
    heads = [made] if isinstance(made, Entry) else list(made)
    values = {n.entries[0]: v for n, v in zip(variables, inputs, strict=True)}
    for inner in Graph(heads).nodes:
        if not inner.is_variable:
            found = apply(inner, [values[e] for e in inner.inputs], {})
            values.update(zip(inner.entries, found, strict=True))
    return [values[e] for e in heads]


def _moved(node: Node, inputs: Sequence[Value]) -> list[Value]:
    """An operator that only moves elements moves their errors."""
    assert node.op is not None
    own = FCompute.get(node.op.name)
    if all(v.error is None for v in inputs):
        return [Value(None) for _ in node.entries]
    errors = [v.bound for v in inputs]
    moved = own(node, *errors) if own is not None else derive(node, *errors)
    return [Value(None, e) for e in (moved if isinstance(moved, tuple) else (moved,))]


# Expressions: one rule for each kind.


def expression(x: Expr, values: Mapping[str, Value]) -> Value:
    """The value of an expression, each operation rounded, with its error."""
    match x:
        case Const():
            return Value(np.asarray(x.value))
        case SizeOf(size):
            return Value(np.asarray(evaluate(size, {}), np.int64))
        case Var(name):
            return values[name]
        case Select(condition, a, b):
            return _chosen(*(expression(part, values) for part in (condition, a, b)))
        case Cast(a, dtype):
            return _primitive("cast", [expression(a, values)], dtype)
        case Unary(op, a):
            return _primitive(op, [expression(a, values)], x.dtype, unary=True)
        case Binary(op, a, b):
            return _primitive(op, [expression(a, values), expression(b, values)], x.dtype)
        case Call(name, args):
            return _primitive(name, [expression(a, values) for a in args], x.dtype)
    raise AssertionError(f"no rule for {type(x).__name__}")


def _evaluate(name: str, dtype: DType, unary: bool, args: Sequence[Any]) -> Any:
    if name == "cast":
        return cast_array(args[0], dtype)
    if unary:
        return UNARY[name](*args)
    if name in BINARY:
        return BINARY[name](*args)
    return call_array(name, dtype, *args)


def _primitive(name: str, args: list[Value], dtype: DType, unary: bool = False) -> Value:
    array = np.asarray(_evaluate(name, dtype, unary, [a.array for a in args]))
    ulps = ULPS if name in IN_DOUBLE else 0
    if all(a.error is None for a in args):
        error = ulps * _spacing(array) if ulps else None
        if name in ("maximum", "minimum") and array.dtype.kind == "f":
            a, b = (np.signbit(v.array) for v in args)
            error = np.where((array == 0) & (a != b), SIGN, 0.0)
        return Value(array, error)
    if any(a.error is not None and a.array.dtype.kind != "f" for a in args):
        bounds = [a.bound for a in args]
        return Value(array, np.where(reduce(np.maximum, bounds) > 0, np.inf, 0.0))
    off = np.zeros(array.shape)
    wide = [(np.asarray(a.array, np.float64), a.bound) for a in args]
    for signs in product((-1, 1), repeat=len(args)):
        corner = _evaluate_wide(
            name, dtype, unary, [v + s * e for s, (v, e) in zip(signs, wide, strict=True)]
        )
        off = np.maximum(off, _difference(corner, array))
    errors = [np.broadcast_to(e, array.shape) for _, e in wide]
    if name in ("sin", "cos"):
        off = np.maximum(off, errors[0])
    pole = {"/": 1, "rsqrt": 0, "pow": 0}.get(name)
    if pole is not None:
        value, e = wide[pole]
        off = np.where((np.abs(value) <= e) & (e > 0), np.inf, off)
    if name == "cast" and dtype.name == "bool":  # only 0 is false, and it may lie in between
        off = np.where((np.abs(wide[0][0]) <= errors[0]) & (errors[0] > 0), np.inf, off)
    off = np.where(reduce(np.maximum, errors) == np.inf, np.inf, off)
    if array.dtype.kind == "f":
        touched = reduce(np.maximum, errors) > 0
        most = (np.abs(array) + off).astype(array.dtype)
        rounding = np.where(touched, max(ulps, 1), ulps) * _spacing(most)
        off = np.where(np.isfinite(array), off + rounding, off)
    else:
        off = np.where(off > 0, np.inf, 0.0)
    return Value(array, off)


def _evaluate_wide(name: str, dtype: DType, unary: bool, args: Sequence[Any]) -> Any:
    """As `_evaluate`, in float64 as far as it goes; what is too large for ``dtype`` is infinite."""
    if name == "cast":
        return cast_array(args[0], dtype)
    if not unary and name not in BINARY:
        function = EXACT.get(name) or IN_DOUBLE[name]
        out = function(*args)
    else:
        out = _evaluate(name, dtype, unary, args)
    if dtype.is_float and np.asarray(out).dtype.kind == "f":
        out = np.where(np.isinf(np.asarray(out).astype(dtype.numpy)), np.sign(out) * np.inf, out)
    return out


def _difference(a: Any, b: Any) -> Any:
    """How far ``a`` is from ``b``; infinite where only one is finite or a number."""
    a, b = np.asarray(a), np.asarray(b)
    if b.dtype.kind != "f":
        return np.where(a != b, np.inf, 0.0)
    a, b = a.astype(np.float64), b.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    off = np.abs(a - b)
    return np.where(same, 0.0, np.where(np.isfinite(off), off, np.inf))


def _spacing(x: Any) -> Any:
    """The distance of neighbouring floats at ``x``, in the dtype of ``x`` or wider values."""
    dtype = np.asarray(x).dtype
    tiny = np.finfo(dtype).tiny
    size = np.where(np.isfinite(x), np.maximum(np.abs(x), tiny), tiny)
    return np.spacing(size.astype(dtype)).astype(np.float64)


def _chosen(condition: Value, a: Value, b: Value) -> Value:
    array = np.where(condition.array, a.array, b.array)
    if condition.error is None and a.error is None and b.error is None:
        return Value(array)
    error = np.where(condition.array, a.bound, b.bound)
    apart = _difference(a.array, b.array) + a.bound + b.bound
    return Value(array, np.where(condition.bound > 0, apart, error))


# Reductions and products: the error of sums in any order.


def _reduced(node: Node, x: Value) -> Value:
    assert node.op is not None
    fold = FReduce.get(node.op.name)(node)
    acc = fold.identity.dtype
    if fold.prepare is not None:
        x = expression(fold.prepare(Var("x", dtype_of(x.array.dtype))), {"x": x})
    axes, keep = fold.axes, fold.keepdims
    count = int(np.prod([x.array.shape[k] for k in axes], dtype=np.int64))
    error: Any = None
    kind = fold.combine.op if isinstance(fold.combine, Binary) else fold.combine.name  # type: ignore[attr-defined]
    open_ = x.error is not None and np.sum(x.error, axis=axes, keepdims=keep)
    if not acc.is_float:
        error = np.where(open_ > 0, np.inf, 0.0) if x.error is not None else None
        if kind in "&|" and x.error is not None:
            error = _certain(kind, x, axes, keep)
        total = None
    elif kind == "+":
        total, error = _summed(x, axes, keep, acc, count)
    elif kind == "*":
        total, error = _multiplied(x, axes, keep, acc, count)
    else:
        initial = fold.identity.value
        ufunc = np.maximum if kind == "maximum" else np.minimum
        total = ufunc.reduce(x.array, axis=axes, keepdims=keep, initial=initial)
        error = np.max(x.bound, axis=axes, keepdims=keep, initial=0.0)
        negative = np.signbit(x.array)
        zero = x.array == 0
        both = np.any(zero & negative, axis=axes, keepdims=keep) & np.any(
            zero & ~negative, axis=axes, keepdims=keep
        )
        error = np.where((total == 0) & both, np.maximum(error, SIGN), error)
    if fold.finish is None or total is None:
        return Value(None, error)
    ending = fold.finish(Var("total", acc), Var("count", int64))
    with_count = {"total": Value(np.asarray(total).astype(acc.numpy), error)}
    return expression(ending, {**with_count, "count": Value(np.asarray(count, np.int64))})


def _certain(kind: str, x: Value, axes: tuple[int, ...], keep: bool) -> Any:
    """Infinite where what is open decides whether any, or all, hold."""
    ufunc = np.logical_and if kind == "&" else np.logical_or
    found = [
        ufunc.reduce(np.where(x.bound > 0, value, x.array), axis=axes, keepdims=keep)
        for value in (False, True)
    ]
    return np.where(found[0] != found[1], np.inf, 0.0)


def _unit(dtype: DType) -> float:
    return float(np.finfo(dtype.numpy).eps) / 2


def _is_grid(x: Any, quantum: float) -> bool:
    return bool(np.all(x / quantum == np.rint(x / quantum)))


def _summed(
    x: Value, axes: tuple[int, ...], keep: bool, acc: DType, count: int
) -> tuple[Any, Any]:
    """Error n*u*sum|x|, and none where every partial sum is exact."""
    wide = x.array.astype(np.float64)
    total = np.sum(wide, axis=axes, keepdims=keep)
    finite = np.where(np.isfinite(wide), np.abs(wide), 0.0)
    size = np.sum(finite, axis=axes, keepdims=keep)
    e = np.sum(x.bound, axis=axes, keepdims=keep)
    limit = 1 / _unit(acc)
    for quantum in (1.0, 2.0**-8):
        if _is_grid(finite, quantum):
            error = np.where(size / quantum < limit, 0.0, count * _unit(acc) * size * 1.1)
            break
    else:
        error = count * _unit(acc) * size * 1.1
    error = np.where(e > 0, e + count * _unit(acc) * 1.1 * (size + e), error)
    return total, np.where(size + e > float(np.finfo(acc.numpy).max) / 2, np.inf, error)


def _multiplied(
    x: Value, axes: tuple[int, ...], keep: bool, acc: DType, count: int
) -> tuple[Any, Any]:
    """Error n*u*prod|x|, and none for small integers; open where a partial product may overflow."""
    wide = x.array.astype(np.float64)
    total = np.prod(wide, axis=axes, keepdims=keep)
    size = np.where(np.isfinite(wide), np.abs(wide), 1.0)
    most = np.prod(np.maximum(size + x.bound, 1.0), axis=axes, keepdims=keep)
    least = np.prod(np.where(size > 0, np.minimum(size, 1.0), 1.0), axis=axes, keepdims=keep)
    whole = np.prod(size + x.bound, axis=axes, keepdims=keep)
    error = np.abs(whole - np.prod(size, axis=axes, keepdims=keep))
    error = error + count * _unit(acc) * 1.1 * whole
    if _is_grid(size, 1.0):
        exact = (most < 1 / _unit(acc)) & ~np.any(x.bound > 0, axis=axes, keepdims=keep)
        error = np.where(exact, 0.0, error)
    info = np.finfo(acc.numpy)
    far = (most > float(info.max) / 2) | (least < float(info.tiny) * 2)
    return total, np.where(far, np.inf, error)


def _contracted(node: Node, a: Value, b: Value) -> Value:
    assert node.op is not None
    found = FContract.get(node.op.name)(node)

    def side(v: Value, flip: bool) -> tuple[Any, Any]:
        parts = np.abs(v.array.astype(np.float64)), v.bound
        return (np.swapaxes(p, -1, -2) for p in parts) if flip else parts  # type: ignore[return-value]

    (left, e_left), (right, e_right) = side(a, found.transpose_a), side(b, found.transpose_b)
    spread = e_left @ right + left @ e_right + e_left @ e_right
    dtype = dtype_of(a.array.dtype)
    if not dtype.is_float:
        return Value(None, np.where(spread > 0, np.inf, 0.0))
    size = left @ right
    k = left.shape[-1]
    rounding = (k + 1) * _unit(dtype) * 1.1 * (size + spread)
    if _is_grid(left, 1.0) and _is_grid(right, 1.0):
        rounding = np.where((size < 1 / _unit(dtype)) & (spread == 0), 0.0, rounding)
    error = spread + rounding
    far = ~np.isfinite(size + spread) | (size > float(np.finfo(dtype.numpy).max) / 2)
    return Value(None, np.where(far, np.inf, error))


def mismatch(found: Any, wanted: Value) -> str | None:
    """How an array breaks the bounds of a value; None when it keeps them."""
    a, b = np.asarray(found), np.asarray(wanted.array)
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"is {a.dtype}{list(a.shape)}, not {b.dtype}{list(b.shape)}"
    if a.dtype.kind != "f":
        bad = a != b
    else:
        same = ((a == b) & (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b))
        bad = ~same
    if wanted.error is not None and bad.any():
        with np.errstate(all="ignore"):
            off = _difference(a, b) if a.dtype.kind == "f" else np.where(bad, np.inf, 0.0)
            near = (off <= wanted.error * 1.0001) & (wanted.error > 0)
        bad = bad & ~near
    if not bad.any():
        return None
    at = tuple(int(i[0]) for i in np.nonzero(bad))
    error = float(np.broadcast_to(wanted.bound, b.shape)[at])
    return (
        f"differs in {int(bad.sum())} of {bad.size} elements, first at {at}: {a[at]!r}, "
        f"not {b[at]!r} (± {error:.3g})"
    )


def openness(value: Value) -> tuple[int, int, int]:
    """How many elements must agree in every bit, up to a bound, and not at all."""
    bound = np.broadcast_to(value.bound, np.shape(value.array))
    return int(np.sum(bound == 0)), int(np.sum((bound > 0) & (bound < np.inf))), int(
        np.sum(bound == np.inf)
    )
