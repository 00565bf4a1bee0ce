"""Specimens: the table that proves the operators. Each says how to call one, and what NumPy gives.

A specimen makes trials: a graph with unknown sizes, which is compiled once, and arrays of several
shapes to call it with. The walkers in `test_values.py` and `test_gradients.py` go through the
registry, so an operator without a specimen fails.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import field, frozen

import passkit as pk
from passkit.graph.node import Entry
from passkit.values.dtype import DType, dtype_of

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
"""The dtypes of each kind; "w" are floats that are no narrower, "c" runs in NumPy only."""


@frozen
class Trial:
    """One graph of an operator and the arrays it is called with.

    ``shapes`` are those of its variables, None where the size is unknown.
    """

    shapes: tuple[tuple[int | None, ...], ...]
    params: Mapping[str, Any]
    feeds: tuple[tuple[Array, ...], ...] = field(repr=False)

    def entries(self, prefix: str) -> list[Entry]:
        """A variable for each input."""
        return [
            pk.var(f"{prefix}_{k}", s, dtype_of(a.dtype))
            for k, (s, a) in enumerate(zip(self.shapes, self.feeds[0], strict=True))
        ]


@frozen
class Specimen:
    """An operator, what it means in NumPy, and how near a target must come.

    ``ulps`` count units in the last place of each element, ``slack`` units of eps times the
    largest magnitude of a result, or ``of_inputs`` where that is more, as sums may cancel; with
    neither, bits must be equal, the sign of zero too.
    """

    op: str
    kinds: str
    reference: Callable[..., Any] = field(repr=False)
    trials: Callable[[DType, np.random.Generator], list[Trial]] = field(repr=False)
    ulps: float = 0
    slack: float = 0
    of_inputs: bool = False

    def drawn(self, dtype: DType) -> list[Trial]:
        """The trials for one dtype; the same each time."""
        seed = zlib.crc32(f"{self.op} {dtype}".encode())
        return self.trials(dtype, np.random.default_rng(seed))

    def dtypes(self) -> list[DType]:
        """The dtypes that it is for."""
        return [dtype_of(n) for kind in self.kinds for n in BY_KIND[kind]]

    def build(self, trial: Trial, prefix: str) -> tuple[Entry, ...]:
        """The operator on variables named after ``prefix``."""
        out = pk.get_op(self.op)(*trial.entries(prefix), **trial.params)
        return tuple(out) if isinstance(out, (tuple, list)) else (out,)

    def expected(self, arrays: Sequence[Array], params: Mapping[str, Any]) -> tuple[Array, ...]:
        """What the reference gives: for floats below 64 bits in double, then rounded once."""
        narrow = [d for a in arrays if (d := dtype_of(a.dtype)).is_float and d.nbytes < 8]
        wide = [
            a.astype(np.float64) if dtype_of(a.dtype).is_float and narrow else a for a in arrays
        ]
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of what is empty or all NaN
            out = self.reference(*wide, **params)
            many = out if isinstance(out, tuple) else (out,)
            found = [np.asarray(x) for x in many]
            return tuple(
                x.astype(narrow[0].numpy) if narrow and x.dtype.kind == "f" else x for x in found
            )


SPECIMENS: dict[str, list[Specimen]] = {}
"""All specimens by operator."""


def _add(made: Specimen) -> Specimen:
    SPECIMENS.setdefault(pk.get_op(made.op).name, []).append(made)
    return made


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Both signs, mostly below 4 in magnitude."""
    return rng.normal(size=shape) * 2


def positive(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """From 0.1 to about 10."""
    return np.exp(rng.uniform(-2.3, 2.3, shape))


def between(low: float, high: float) -> Draw:
    """Uniform from ``low`` to ``high``."""
    return lambda rng, shape: rng.uniform(low, high, shape)


unit = between(0.02, 0.98)
"""Strictly between 0 and 1."""


def cast(values: Array, dtype: DType) -> Array:
    """Drawn values in a dtype: whole for integers, without sign for unsigned ones."""
    if dtype.kind == "b":
        return np.asarray(values > 0.5)
    if dtype.kind == "u":
        values = np.abs(values)
    if dtype.is_integer:
        return np.rint(values * 5).astype(np.int64).astype(dtype.numpy)
    return np.asarray(values).astype(dtype.numpy)


def specials(dtype: DType) -> Array:
    """NaN, infinities, zeros of both signs and the ends of the range; limits of integers."""
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.is_integer:
        limits = np.iinfo(dtype.numpy)
        return np.array([limits.min, limits.max, 0, 1, 2, limits.max - 1], dtype.numpy)
    tiny, huge = (2.0**-14, 65504.0) if dtype.nbytes == 2 else (1.2e-38, 3.3e38)
    values = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, tiny, -tiny, huge, -huge]
    return np.array(values).astype(dtype.numpy)


ROWS = ((0, 3), (1, 1), (5, 7), (37, 90))
"""Shapes that one graph of rank 2 is called with; the last is read with strides too."""


def elementwise(
    name: str,
    reference: Callable[..., Any],
    *draws: Draw,
    kinds: str = "f",
    ulps: float = 0,
    params: Mapping[str, Any] | None = None,
    special: bool = True,
) -> Specimen:
    """An elementwise operator: one draw for each input, at all standard shapes.

    Without ``special`` NaN, infinities and limits are left out: where NumPy itself is wrong there.
    """
    arity = len(draws) or pk.get_op(name).num_inputs or 1
    given = list(draws) or [normal] * arity
    more = dict(params or {})

    def trials(dtype: DType, rng: np.random.Generator) -> list[Trial]:
        def draw(*shapes: tuple[int, ...]) -> tuple[Array, ...]:
            return tuple(cast(d(rng, s), dtype) for d, s in zip(given, shapes, strict=True))

        rows = [draw(*[s] * arity) for s in ROWS]
        rows.append(tuple(a[::2, ::-3] for a in rows[-1]))
        if special:
            every = np.meshgrid(*[specials(dtype)] * arity, indexing="ij")
            rows.append(tuple(a.reshape(1, -1) for a in every))
        made = [Trial(((None, None),) * arity, more, tuple(rows))]
        made.append(Trial(((),) * arity, more, (draw(*[()] * arity),)))
        if arity > 1:
            short = ((None, None), *[(None,)] * (arity - 1))
            feeds = tuple(draw((n, m), *[(m,)] * (arity - 1)) for n, m in ((4, 5), (33, 70)))
            made.append(Trial(short, more, feeds))
        return made

    return _add(Specimen(name, kinds, reference, trials, ulps))


FOLDS: tuple[tuple[int, Any, bool], ...] = (
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
    """A reduction, called with axis and keepdims; ``empty`` says that nothing can be folded."""
    more = dict(params or {})

    def trials(dtype: DType, rng: np.random.Generator) -> list[Trial]:
        made = []
        for rank, axis, keepdims in FOLDS:
            shapes = [s[-rank:] if rank else () for s in EXTENTS[: 4 if rank else 1]]
            if empty and rank:
                shapes += [(0,) * rank, (*(3,) * (rank - 1), 0)]
            feeds = [(cast(draw(rng, s), dtype),) for s in shapes]
            if rank == 2:
                feeds.append((feeds[2][0][::2, ::-3],))
                if dtype.kind != "c":
                    feeds.append((np.stack([specials(dtype)] * 2),))
            params = {**more, "axis": axis, "keepdims": keepdims}
            made.append(Trial(((None,) * rank,), params, tuple(feeds)))
        return made

    return _add(Specimen(name, kinds, reference, trials, slack=slack))


@frozen
class Call:
    """Inputs and parameters of one call, before dtypes are chosen."""

    inputs: tuple[Any, ...]
    params: Mapping[str, Any]


def call(*inputs: Any, **params: Any) -> Call:
    """One call: a shape is drawn, an array stays as it is, a function (rng, dtype) makes one."""
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
    """An operator at the calls ``listed``; several results are a tuple of the reference's."""

    def trials(dtype: DType, rng: np.random.Generator) -> list[Trial]:
        made = []
        for c in listed:
            arrays = tuple(_made(x, rng, dtype, draw) for x in c.inputs)
            made.append(Trial(tuple(a.shape for a in arrays), c.params, (arrays,)))
        return made

    return _add(Specimen(name, kinds, reference, trials, ulps, slack))


def _made(what: Any, rng: np.random.Generator, dtype: DType, draw: Draw) -> Array:
    if isinstance(what, tuple):
        return cast(draw(rng, what), dtype)
    return np.asarray(what(rng, dtype) if callable(what) else what)


def mistakes(
    specimen: Specimen, where: str, found: Any, wanted: Any, arrays: Sequence[Any] = ()
) -> Iterator[str]:
    """What is wrong with one result: its dtype, shape, or elements further off than allowed."""
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        yield f"{where}: {found.dtype}{found.shape}, not {wanted.dtype}{wanted.shape}"
        return
    if not wanted.size:
        return
    is_float = wanted.dtype.kind == "c" or dtype_of(wanted.dtype).is_float
    if not is_float:
        off = found != wanted
    else:
        wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
        a, b = found.astype(wide), wanted.astype(wide)
        with np.errstate(all="ignore"):
            near = np.abs(a - b) <= _allowed(specimen, wanted, arrays)
        off = ~(near | (a == b) | (np.isnan(a) & np.isnan(b)))
        if not (specimen.ulps or specimen.slack) and wide is np.float64:
            off |= (np.signbit(a) != np.signbit(b)) & ~np.isnan(b)
    if off.any():
        first = tuple(int(k[0]) for k in np.nonzero(off)) if off.ndim else ()
        yield (
            f"{where}: {np.count_nonzero(off)} of {off.size} elements are off, such as "
            f"{found[first]!r} at {first} for {wanted[first]!r}"
        )


def _allowed(specimen: Specimen, wanted: Any, arrays: Sequence[Any]) -> Any:
    import ml_dtypes

    eps = float(ml_dtypes.finfo(wanted.dtype).eps)
    least = float(ml_dtypes.finfo(wanted.dtype).smallest_subnormal)
    size = np.abs(wanted.astype(np.complex128 if wanted.dtype.kind == "c" else np.float64))
    top = _largest(size)
    if specimen.of_inputs:
        floats = (a for a in arrays if a.dtype == wanted.dtype)
        top = max([top, *(_largest(np.abs(a).astype(np.float64)) for a in floats)])
    return (specimen.ulps * size + specimen.slack * top) * eps + bool(specimen.ulps) * least


def _largest(sizes: Any) -> float:
    """The largest finite one; 0 where there is none."""
    finite = sizes[np.isfinite(sizes)]
    return float(finite.max()) if finite.size else 0.0
