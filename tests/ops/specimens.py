"""Specimens: calls of every operator, and the same operator in NumPy as a reference.

A specimen draws trials: a graph with symbolic extents, which is compiled once, and arrays of
several shapes to call it with. `test_values.py` and `test_gradients.py` iterate over the registry,
so an operator without a specimen fails.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import field, frozen

import passkit as pk
from passkit import Entry
from passkit.ast import dt

Array = Any
Draw = Callable[[np.random.Generator, tuple[int, ...]], Array]

BY_KIND = {
    "b": ("bool",),
    "i": ("int32", "int64", "int8", "int16"),
    "u": ("uint8", "uint16", "uint32", "uint64"),
    "f": ("float32", "float64", "float16", "bfloat16"),
    "w": ("float32", "float64"),
    "c": ("complex64", "complex128"),
}
"""The dtypes of each kind; "w" are floats of at least 32 bits, "c" runs in NumPy only."""


@frozen
class Trial:
    """A call of an operator with symbolic extents, and the arrays that are fed to it.

    Attributes:
        shapes: the shapes of the variables, None for a symbolic extent.
        params: parameters of the call.
        feeds: the arrays of each run, one for each variable.
    """

    shapes: tuple[tuple[int | None, ...], ...]
    params: Mapping[str, Any]
    feeds: tuple[tuple[Array, ...], ...] = field(repr=False)

    def entries(self, prefix: str) -> list[Entry]:
        """Return a variable for each input, named by ``prefix`` and a number."""
        return [
            pk.var(f"{prefix}_{k}", s, dt.dtype_of(a.dtype))
            for k, (s, a) in enumerate(zip(self.shapes, self.feeds[0], strict=True))
        ]


@frozen
class Specimen:
    """An operator, its reference in NumPy, and how near a target must come to that.

    Attributes:
        op: name of the operator.
        kinds: the kinds of dtype that it is tested with, see `BY_KIND`.
        reference: ``reference(*arrays, **params)`` returns the expected result.
        trials: ``trials(dtype, rng)`` draws the trials.
        ulps: allowed error in units in the last place of each element. With neither ``ulps`` nor
            ``slack``, bits must be equal, the sign of zero too.
        slack: allowed error in units of eps times the largest magnitude of the result.
        of_inputs: whether that is the largest magnitude of the inputs, if it is larger, as sums may
            cancel.
    """

    op: str
    kinds: str
    reference: Callable[..., Any] = field(repr=False)
    trials: Callable[[dt.DType, np.random.Generator], list[Trial]] = field(repr=False)
    ulps: float = 0
    slack: float = 0
    of_inputs: bool = False

    def drawn(self, dtype: dt.DType) -> list[Trial]:
        """Draw the trials for one dtype; the same each time."""
        seed = zlib.crc32(f"{self.op} {dtype}".encode())
        return self.trials(dtype, np.random.default_rng(seed))

    def dtypes(self) -> list[dt.DType]:
        """Return the dtypes that it is tested with."""
        return [dt.dtype_of(n) for kind in self.kinds for n in BY_KIND[kind]]

    def build(self, trial: Trial, prefix: str) -> tuple[Entry, ...]:
        """Apply the operator to the variables of a trial and return its outputs."""
        out = pk.get_op(self.op)(*trial.entries(prefix), **trial.params)
        return tuple(out) if isinstance(out, (tuple, list)) else (out,)

    def expected(self, arrays: Sequence[Array], params: Mapping[str, Any]) -> tuple[Array, ...]:
        """Return the results of the reference, computed in float64 and rounded once to floats."""
        narrow = [d for a in arrays if (d := dt.dtype_of(a.dtype)).is_float and d.nbytes < 8]
        wide = [
            a.astype(np.float64) if dt.dtype_of(a.dtype).is_float and narrow else a for a in arrays
        ]
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of what is empty or all NaN
            out = self.reference(*wide, **params)
            results = [np.asarray(x) for x in (out if isinstance(out, tuple) else (out,))]
            return tuple(
                x.astype(narrow[0].numpy) if narrow and x.dtype.kind == "f" else x for x in results
            )


SPECIMENS: dict[str, list[Specimen]] = {}
"""All specimens by the name of the operator."""


def _register(specimen: Specimen) -> Specimen:
    SPECIMENS.setdefault(pk.get_op(specimen.op).name, []).append(specimen)
    return specimen


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draw numbers of both signs, mostly below 4 in magnitude."""
    return rng.normal(size=shape) * 2


def positive(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draw numbers from 0.1 to about 10."""
    return np.exp(rng.uniform(-2.3, 2.3, shape))


def between(low: float, high: float) -> Draw:
    """Return a function that draws uniform numbers from ``low`` to ``high``."""
    return lambda rng, shape: rng.uniform(low, high, shape)


unit = between(0.02, 0.98)
"""Draws numbers strictly between 0 and 1."""


def cast(values: Array, dtype: dt.DType) -> Array:
    """Return drawn values in a dtype: rounded for integers, without sign for unsigned ones."""
    if dtype.kind == "b":
        return np.asarray(values > 0.5)
    if dtype.kind == "u":
        values = np.abs(values)
    if dtype.is_integer:
        return np.rint(values * 5).astype(np.int64).astype(dtype.numpy)
    return np.asarray(values).astype(dtype.numpy)


def specials(dtype: dt.DType) -> Array:
    """Return NaN, infinities, zeros of both signs and range ends; for integers the limits."""
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.is_integer:
        limits = np.iinfo(dtype.numpy)
        return np.array([limits.min, limits.max, 0, 1, 2, limits.max - 1], dtype.numpy)
    tiny, huge = (2.0**-14, 65504.0) if dtype.nbytes == 2 else (1.2e-38, 3.3e38)
    values = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, tiny, -tiny, huge, -huge]
    return np.array(values).astype(dtype.numpy)


ROWS = ((0, 3), (1, 1), (5, 7), (37, 90))
"""Shapes that one graph of rank 2 is called with; the last also with strides."""


def elementwise(
    name: str,
    reference: Callable[..., Any],
    *draws: Draw,
    kinds: str = "f",
    ulps: float = 0,
    params: Mapping[str, Any] | None = None,
    special: bool = True,
) -> Specimen:
    """Register the specimen of an elementwise operator, called at all of `ROWS` and as scalars.

    Args:
        name: name of the operator.
        reference: the operator in NumPy.
        *draws: a function for each input that draws its numbers; default: `normal`.
        kinds: the kinds of dtype.
        ulps: allowed error, see `Specimen`.
        params: parameters of the calls.
        special: whether NaN, infinities and limits are fed too; not where NumPy itself is wrong.
    """
    arity = len(draws) or pk.get_op(name).num_inputs or 1
    input_draws = list(draws) or [normal] * arity
    call_params = dict(params or {})

    def trials(dtype: dt.DType, rng: np.random.Generator) -> list[Trial]:
        def draw(*shapes: tuple[int, ...]) -> tuple[Array, ...]:
            return tuple(cast(d(rng, s), dtype) for d, s in zip(input_draws, shapes, strict=True))

        rows = [draw(*[s] * arity) for s in ROWS]
        rows.append(tuple(a[::2, ::-3] for a in rows[-1]))
        if special:
            combinations = np.meshgrid(*[specials(dtype)] * arity, indexing="ij")
            rows.append(tuple(a.reshape(1, -1) for a in combinations))
        drawn = [Trial(((None, None),) * arity, call_params, tuple(rows))]
        drawn.append(Trial(((),) * arity, call_params, (draw(*[()] * arity),)))
        if arity > 1:
            broadcast = ((None, None), *[(None,)] * (arity - 1))
            feeds = tuple(draw((n, m), *[(m,)] * (arity - 1)) for n, m in ((4, 5), (33, 70)))
            drawn.append(Trial(broadcast, call_params, feeds))
        return drawn

    return _register(Specimen(name, kinds, reference, trials, ulps))


REDUCTIONS: tuple[tuple[int, Any, bool], ...] = (
    (0, None, False),
    (1, None, True),
    (2, 0, False),
    (2, -1, True),
    (2, None, False),
    (3, (0, 2), True),
    (3, 1, False),
)
"""Rank, axis and keepdims of the trials of a reduction."""

EXTENTS: tuple[tuple[int, ...], ...] = ((1, 1, 1), (2, 3, 7), (5, 40, 33), (3, 1000, 2))


def reduction(
    name: str,
    reference: Callable[..., Any],
    draw: Draw = normal,
    kinds: str = "f",
    slack: float = 0,
    empty: bool = True,
    params: Mapping[str, Any] | None = None,
) -> Specimen:
    """Register the specimen of a reduction, called with all of `REDUCTIONS`.

    Args:
        name: name of the operator.
        reference: the operator in NumPy, called with ``axis`` and ``keepdims``.
        draw: draws the input.
        kinds: the kinds of dtype.
        slack: allowed error, see `Specimen`.
        empty: whether axes of length 0 are reduced too.
        params: further parameters of the calls.
    """
    call_params = dict(params or {})

    def trials(dtype: dt.DType, rng: np.random.Generator) -> list[Trial]:
        drawn = []
        for rank, axis, keepdims in REDUCTIONS:
            shapes = [s[-rank:] if rank else () for s in EXTENTS[: 4 if rank else 1]]
            if empty and rank:
                shapes += [(0,) * rank, (*(3,) * (rank - 1), 0)]
            feeds = [(cast(draw(rng, s), dtype),) for s in shapes]
            if rank == 2:
                feeds.append((feeds[2][0][::2, ::-3],))
                if dtype.kind != "c":
                    feeds.append((np.stack([specials(dtype)] * 2),))
            params = {**call_params, "axis": axis, "keepdims": keepdims}
            drawn.append(Trial(((None,) * rank,), params, tuple(feeds)))
        return drawn

    return _register(Specimen(name, kinds, reference, trials, slack=slack))


@frozen
class Call:
    """Inputs and parameters of one call, for any dtype."""

    inputs: tuple[Any, ...]
    params: Mapping[str, Any]


def call(*inputs: Any, **params: Any) -> Call:
    """Return a call of `calls`.

    Args:
        *inputs: for each input its shape, an array, or a function (rng, dtype) that returns one.
        **params: parameters of the call.
    """
    return Call(inputs, params)


def calls(
    name: str,
    reference: Callable[..., Any],
    listed: Sequence[Call],
    kinds: str = "f",
    ulps: float = 0,
    slack: float = 0,
    draw: Draw = normal,
) -> Specimen:
    """Register the specimen of an operator by its calls.

    Args:
        name: name of the operator.
        reference: the operator in NumPy; it returns a tuple for several outputs.
        listed: the calls.
        kinds: the kinds of dtype.
        ulps: allowed error, see `Specimen`.
        slack: allowed error, see `Specimen`.
        draw: draws the inputs of which a call states the shape.
    """

    def trials(dtype: dt.DType, rng: np.random.Generator) -> list[Trial]:
        drawn = []
        for c in listed:
            arrays = tuple(_input_array(x, rng, dtype, draw) for x in c.inputs)
            drawn.append(Trial(tuple(a.shape for a in arrays), c.params, (arrays,)))
        return drawn

    return _register(Specimen(name, kinds, reference, trials, ulps, slack))


def _input_array(spec: Any, rng: np.random.Generator, dtype: dt.DType, draw: Draw) -> Array:
    """Return the array of an input of `call`."""
    if isinstance(spec, tuple):
        return cast(draw(rng, spec), dtype)
    return np.asarray(spec(rng, dtype) if callable(spec) else spec)


def mistakes(
    specimen: Specimen, where: str, result: Any, expected: Any, arrays: Sequence[Any] = ()
) -> Iterator[str]:
    """Yield a message if a result has another dtype or shape, or elements beyond the tolerance."""
    if result.dtype != expected.dtype or result.shape != expected.shape:
        yield f"{where}: {result.dtype}{result.shape}, not {expected.dtype}{expected.shape}"
        return
    if not expected.size:
        return
    is_float = expected.dtype.kind == "c" or dt.dtype_of(expected.dtype).is_float
    if not is_float:
        differs = result != expected
    else:
        wide = np.complex128 if expected.dtype.kind == "c" else np.float64
        a, b = result.astype(wide), expected.astype(wide)
        with np.errstate(all="ignore"):
            near = np.abs(a - b) <= _allowed_error(specimen, expected, arrays)
        differs = ~(near | (a == b) | (np.isnan(a) & np.isnan(b)))
        if not (specimen.ulps or specimen.slack) and wide is np.float64:
            differs |= (np.signbit(a) != np.signbit(b)) & ~np.isnan(b)
    if differs.any():
        first = tuple(int(k[0]) for k in np.nonzero(differs)) if differs.ndim else ()
        yield (
            f"{where}: {np.count_nonzero(differs)} of {differs.size} elements are off, such as "
            f"{result[first]!r} at {first} for {expected[first]!r}"
        )


def _allowed_error(specimen: Specimen, expected: Any, arrays: Sequence[Any]) -> Any:
    """Return the error that is allowed of each element."""
    import ml_dtypes

    limits = ml_dtypes.finfo(expected.dtype)
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    magnitudes = np.abs(expected.astype(wide))
    largest = _largest_finite(magnitudes)
    if specimen.of_inputs:
        floats = (a for a in arrays if a.dtype == expected.dtype)
        largest = max([largest, *(_largest_finite(np.abs(a).astype(np.float64)) for a in floats)])
    relative = (specimen.ulps * magnitudes + specimen.slack * largest) * float(limits.eps)
    return relative + bool(specimen.ulps) * float(limits.smallest_subnormal)


def _largest_finite(magnitudes: Any) -> float:
    """Return the largest finite magnitude; 0 where there is none."""
    finite = magnitudes[np.isfinite(magnitudes)]
    return float(finite.max()) if finite.size else 0.0
