"""Errors of operators that are read by their results only: their inputs are disturbed.

An operator in NumPy gives the same bits for the same inputs. For inputs with an error, and for
one with a kernel or library of its own, which may round each step, the results for a few
disturbed inputs tell how far apart two right answers may be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from passkit.errors import PasskitError
from passkit.graph.node import Node
from passkit.graph.op import FCompute
from passkit.graph.registry import tables
from passkit.runtime.interpret import compute
from passkit.values.dtype import dtype_of, float64
from tests.error_bounds.values import Value, difference, is_float, spacing, unit_of

SAMPLES = 6
"""Disturbed inputs that are tried."""
MARGIN = 8.0
"""How much further than they, two right answers may be apart."""
NATIVE = frozenset({"FContract", "FReduce", "FScan", "TLibraryCall"})
"""Attributes that say that an operator need not run in NumPy."""
STEPS = 8.0
"""Roundings of an input that a kernel of its own may be worth."""


def disturbed(node: Node, inputs: Sequence[Value], exact: Sequence[Any]) -> list[Value]:
    """The errors of the results of an operator; None where it runs in NumPy on exact inputs."""
    own = _has_kernel(node)
    if not own and all(v.error is None for v in inputs):
        return [Value(None) for _ in exact]
    if any(np.any(v.bound > 0) for v in inputs if not is_float(v.array)):
        return [Value(None, np.inf) for _ in exact]
    moved = [_moves(v, own) for v in inputs]
    if not any(np.any(m > 0) for m in moved):
        return [Value(None) for _ in exact]
    rng = np.random.default_rng(0)
    off = [np.zeros(np.shape(x)) for x in exact]
    for k in range(SAMPLES):
        arrays = [_shifted(v, m, k, rng) for v, m in zip(inputs, moved, strict=True)]
        try:
            results = _results(node, arrays)
        except PasskitError:  # it refuses what the inputs may as well be
            return [Value(None, np.full(np.shape(x), np.inf)) for x in exact]
        for total, result, x in zip(off, results, exact, strict=True):
            np.maximum(total, difference(result, x), out=total)
    inexact = any(v.error is not None for v in inputs)
    return [_error(o, x, inexact) for o, x in zip(off, exact, strict=True)]


def convolved(node: Node, inputs: Sequence[Value], exact: Any) -> Value:
    """The result of a convolution or its gradient, whose products are summed in any order.

    Where it is not finite, it may be anything: a filter's infinity may meet zeros of padding.
    """
    sides = [np.abs(np.asarray(v.array, np.float64)) for v in inputs]
    bounds = [np.where(np.isfinite(v.bound), v.bound, 0) for v in inputs]
    far = [a + b for a, b in zip(sides, bounds, strict=True)]
    (size,), (farthest,) = _results(node, sides), _results(node, far)
    (counts,) = _results(node, [np.ones_like(a) for a in sides])
    rounding = (np.max(counts, initial=0.0) + 1) * unit_of(dtype_of(exact.dtype)) * 1.1
    error = (farthest - size) + rounding * farthest
    is_known = all(np.all(np.isfinite(v.bound)) for v in inputs)
    known = np.isfinite(exact) & np.isfinite(error)
    return Value(exact, np.where(known & is_known, error, np.inf))


def _has_kernel(node: Node) -> bool:
    assert node.op is not None
    name = node.op.name
    return FCompute.get(name) is None or any(name in t.rows for t in tables() if t.key in NATIVE)


def _moves(v: Value, own: bool) -> Any:
    """How far each element of an input may move."""
    if not is_float(v.array):
        return np.zeros(np.shape(v.array))
    wide = np.abs(np.where(np.isfinite(v.array), v.array, 0).astype(np.float64))
    return v.bound + (STEPS * unit_of(dtype_of(v.array.dtype)) * wide if own else 0.0)


def _shifted(v: Value, by: Any, number: int, rng: np.random.Generator) -> Any:
    """An input with each element moved: all up, all down, then at random."""
    if not is_float(v.array):
        return v.array
    signs = (1.0, -1.0)[number] if number < 2 else rng.choice((-1.0, 1.0), np.shape(v.array))
    return np.asarray(v.array, np.float64) + signs * np.where(np.isfinite(by), by, 0.0)


def _results(node: Node, arrays: Sequence[Any]) -> list[Any]:
    """The results in float64; in the operator's own dtype, where it takes no other."""
    try:
        return _run(node, arrays, [dtype_of(a.dtype) for a in arrays])
    except PasskitError:
        dtypes = [e.dtype for e in node.inputs]
        narrow = [
            a.astype(d.numpy) if d is not None and a.dtype == float64.numpy else a
            for a, d in zip(arrays, dtypes, strict=True)
        ]
        return _run(node, narrow, [dtype_of(a.dtype) for a in narrow])


def _run(node: Node, arrays: Sequence[Any], dtypes: Sequence[Any]) -> list[Any]:
    variables = [
        Node(None, (), {"shape": a.shape, "dtype": d}, f"x{k}").entries[0]
        for k, (a, d) in enumerate(zip(arrays, dtypes, strict=True))
    ]
    sizes: Mapping[str, int] = {}
    with np.errstate(all="ignore"):
        return compute(Node(node.op, variables, node.params, node.name), arrays, sizes)


def _error(off: Any, exact: Any, inexact: bool) -> Value:
    if not (is_float(exact) or np.asarray(exact).dtype.kind == "c"):
        return Value(None, np.full(np.shape(exact), np.inf if inexact else 0.0))
    dtype = dtype_of(np.real(exact).dtype)
    size = np.abs(exact)
    bound = MARGIN * off + 2 * spacing(size, dtype)
    is_bounded = np.isfinite(size) & np.isfinite(bound)
    return Value(None, np.where(is_bounded, bound, np.where(off > 0, np.inf, bound)))
