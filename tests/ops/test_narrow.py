"""Floats of 16 bits: every operator and gradient is as near to float64 as one rounding allows.

The walk is over the registry, with the arrays of the specimens, also scaled up to the limits of
float16. By default composites and gradients have one measurement, in one dtype and at one scale;
``--every-dtype`` takes all operators, trials, dtypes and scales.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from attrs import frozen

import passkit as pk
from passkit import Entry, ops
from passkit.ast import dt
from tests.ops.specimens import SPECIMENS, Trial
from tests.ops.test_gradients import NO_GRADIENT, floats_of, tame
from tests.ops.test_values import NAMES

NARROW = ("float16", "bfloat16")
SCALES = (1, 300, 7000)
"""Factors of the floats of a specimen; they stay below 60,000."""
COUNT = 70_000
ENOUGH = 300
"""The largest number of elements of the arrays of a trial."""
ULPS = 1.02
"""Allowed error of one rounding of a float32 result."""

CONDITIONED = {
    "Phi_approx": "its slope is y (1 - y), which cancels near 1",
    "bessel_i0e": "its slope is a difference of two close values",
    "bessel_i1": "its slope is a difference of two values beyond float32",
    "bessel_i1e": "its slope is a difference of two close values",
    "binary_cross_entropy": "float32 holds 1 - epsilon, to which probabilities are clipped, badly",
    "celu": "exp(x) - 1 + 1 has lost a small exp(x)",
    "elu": "exp(x) - 1 + 1 has lost a small exp(x)",
    "expm1": "exp(x) - 1 + 1 has lost a small exp(x)",
    "selu": "exp(x) - 1 + 1 has lost a small exp(x)",
    "gelu": "the slope of tanh is 1 - y², which cancels near 1",
    "gru_cell": "the slopes of tanh and sigmoid cancel near 1",
    "lstm_block_cell": "the slopes of tanh and sigmoid cancel near 1",
    "lstm_cell": "the slopes of tanh and sigmoid cancel near 1",
    "simple_rnn_cell": "the slope of tanh is 1 - y², which cancels near 1",
    "sigmoid": "the slope is y (1 - y), which cancels near 1",
    "tanh": "the slope is 1 - y², which cancels near 1",
    "softmax": "dy less its mean cancels where one element has nearly all weight",
    "softmin": "dy less its mean cancels where one element has nearly all weight",
    "softmax_cross_entropy_with_logits": "softmax less labels cancels near 0 and 1",
    "sparse_softmax_cross_entropy_with_logits": "softmax less labels cancels near 0 and 1",
    "logcumsumexp": "the difference of large exponents has few digits left",
    "pinv": "the matrix is nearly singular",
    "prod_others": "products of 20 numbers are beyond float32",
}
"""Operators of which float32 alone is more than one 16-bit ulp away from float64, and why."""

DRAWN = {
    "gumbel_softmax": "it draws with the bits of its dtype",
    "random_categorical": "it draws with the bits of its dtype",
}
"""Operators whose results in two dtypes do not approximate each other, and why."""


@frozen
class Measurement:
    """One operator at some arrays: its results, or with ``gradient`` their gradients."""

    name: str
    trial: Trial
    arrays: tuple[Any, ...]
    gradient: bool

    def results(self, dtype: str) -> list[Any]:
        """Return the results of the interpreter, with the 16-bit arrays cast to ``dtype``."""
        narrow = next(a.dtype for a in self.arrays if is_narrow(a.dtype))
        arrays = [a.astype(dtype) if a.dtype == narrow else a for a in self.arrays]
        renamed = {k: dtype if v == narrow.name else v for k, v in self.trial.params.items()}
        xs = [pk.var(f"x{k}", a.shape, dt.dtype_of(a.dtype)) for k, a in enumerate(arrays)]
        out = pk.get_op(self.name)(*xs, **renamed)
        outs = list(out) if isinstance(out, (tuple, list)) else [out]
        if self.gradient:
            outs = gradients([e for e in outs if floats_of(e)], [e for e in xs if floats_of(e)])
        graph = pk.Graph(outs)
        return pk.interpret(graph, {n.name: arrays[int(n.name[1:])] for n in graph.inputs})


def is_narrow(dtype: Any) -> bool:
    """Return whether the dtype of an array is a float of 16 bits."""
    return dt.dtype_of(dtype).name in NARROW


def gradients(ys: list[Entry], xs: list[Entry]) -> list[Entry]:
    """Return the gradients of ``ys`` by ``xs``, with weights that 16 bits hold exactly."""
    rng = np.random.default_rng(1)
    weights = []
    for y in ys:
        assert y.dtype is not None and y.shape is not None
        drawn = rng.integers(64, 192, tuple(map(int, y.shape))) / 128  # type: ignore[arg-type]
        weights.append(pk.constant(drawn.astype(y.dtype.numpy)))
    return [e for e in pk.gradients(ys, xs, weights) if e is not None] if ys else []


def spacing(values: Any, dtype: Any) -> Any:
    """Return the distances from float64 ``values`` to the next number of a 16-bit ``dtype``."""
    limits = ml_dtypes.finfo(dtype)
    exponent = np.frexp(np.where(np.isfinite(values), values, 0.0))[1] - 1
    return np.maximum(np.ldexp(float(limits.eps), exponent), float(limits.smallest_subnormal))


def mistakes(measurement: Measurement) -> Iterator[str]:
    """Yield a message for each result with an error above one rounding of the float32 result.

    For operators in `CONDITIONED`, twice the error of float32 is allowed in addition.
    """
    single = measurement.results("float32") if measurement.name in CONDITIONED else None
    results = zip(
        measurement.results(str(narrow_of(measurement))),
        measurement.results("float64"),
        strict=True,
    )
    for k, (result, expected) in enumerate(results):
        if not is_narrow(result.dtype) or not result.size:
            continue
        with np.errstate(all="ignore"):
            ulp = spacing(expected, result.dtype)
            off = np.abs(result.astype(np.float64) - expected) / ulp
            top = float(ml_dtypes.finfo(result.dtype).max)
            finite = np.isfinite(expected) & (np.abs(expected) <= top)
            if single is not None:
                base = np.abs(single[k].astype(np.float64) - expected) / ulp
                finite &= np.isfinite(base)
                off -= 2 * base
        worst = np.where(finite, np.where(np.isnan(off), np.inf, off), 0.0).max(initial=0.0)
        if worst > ULPS:
            label = f"gradient by input {k}" if measurement.gradient else f"result {k}"
            shapes = " ".join(str(list(a.shape)) for a in measurement.arrays)
            where = f"{measurement.name} {result.dtype} {shapes} {dict(measurement.trial.params)}"
            yield f"{where}: {label} is off by {worst:.3g} ulp"


def narrow_of(measurement: Measurement) -> Any:
    """Return the 16-bit dtype of a measurement."""
    return next(a.dtype for a in measurement.arrays if is_narrow(a.dtype))


def measurements(name: str, every: bool) -> Iterator[Measurement]:
    """Yield the measurements of an operator: all, or results and gradients at one trial."""
    chance = zlib.crc32(name.encode())
    for k, dtype in enumerate(map(dt.dtype_of, NARROW)):
        if not every and k != chance % 2:
            continue
        for specimen in SPECIMENS[name] if every else SPECIMENS[name][:1]:
            trials = specimen.drawn(dtype) if dtype in specimen.dtypes() else []
            for trial in trials if every else trials[:1]:
                for j, scale in enumerate(SCALES):
                    if every or j == chance // 2 % 3:
                        arrays = scaled(trial, dtype, scale)
                        if every or pk.get_op(name).has_attr("FExpand"):
                            yield Measurement(name, trial, arrays, gradient=False)
                        moves = pk.get_op(name).has_attr("FElement") and not every
                        if name not in NO_GRADIENT and not moves:
                            yield Measurement(name, trial, arrays, gradient=True)


def scaled(trial: Trial, dtype: dt.DType, scale: int) -> tuple[Any, ...]:
    """Return the largest arrays of a trial up to `ENOUGH` elements, scaled and finite."""
    few = [f for f in trial.feeds if sum(a.size for a in f) <= ENOUGH]
    arrays = max(few or trial.feeds[:1], key=lambda f: sum(a.size for a in f))
    with np.errstate(over="ignore"):
        tamed = tame(arrays, np.random.default_rng(0))
    return tuple(
        np.clip(a.astype(np.float64) * scale, -6e4, 6e4).astype(dtype.numpy)
        if a.dtype == dtype.numpy
        else a
        for a in tamed
    )


@pytest.mark.parametrize("name", [n for n in NAMES if n in SPECIMENS and n not in DRAWN])
def test_results_are_rounded_once(name: str, request: pytest.FixtureRequest) -> None:
    """The results and gradients of an operator are those of float32, rounded once."""
    every = bool(request.config.getoption("--every-dtype"))
    wrong = [
        message
        for measurement in measurements(name, every)
        if any(is_narrow(a.dtype) for a in measurement.arrays)
        for message in mistakes(measurement)
    ]

    assert not wrong, "\n".join(wrong[:10])


REDUCTIONS = [
    name
    for name in NAMES
    if {"axis", "keepdims"} <= set(pk.get_op(name).params)
    and pk.get_op(name).num_inputs == 1
    and any("f" in s.kinds for s in SPECIMENS.get(name, ()))
]
"""Names of all reductions of one array over axes."""


@pytest.mark.parametrize(
    "dtype, values",
    [
        ("float16", "equal"),
        ("bfloat16", "large"),
    ],
)
def test_reductions_of_many_elements(dtype: str, values: str) -> None:
    """Every reduction of 70,000 elements, and its gradient, has an error of an ulp at most."""
    rng = np.random.default_rng(0)
    drawn = {
        "equal": np.ones(COUNT),
        "large": rng.choice([-300.0, 300.0, 200.0, -150.0], COUNT),
    }[values]
    x = drawn.astype(dt.dtype_of(dtype).numpy)
    wrong = [
        message
        for name in REDUCTIONS
        for gradient in (False, True)
        for message in mistakes(Measurement(name, Trial(((COUNT,),), {}, ()), (x,), gradient))
    ]

    assert len(REDUCTIONS) >= 20
    assert not wrong, "\n".join(wrong)


def first(e: Entry) -> Entry:
    """Return the first element."""
    return e[:1]


def slope(reduce: Callable[[Entry], Entry]) -> Callable[[Entry], Entry]:
    """Return the gradient of a reduction by its input."""
    return lambda x: pk.gradients(reduce(x), [x])[0]  # type: ignore[return-value]


MANY = np.ones(COUNT, np.float16)
FEW = np.array([300, -300, 500, -200], np.float16)
UNIT = (FEW.astype(np.float64) / 685.5654600401044).astype(np.float16)

LISTED: Sequence[tuple[Callable[[Entry], Entry], Any, Any]] = [
    (lambda x: first(slope(ops.reduce_max)(x)), MANY, 1.43e-5),
    (lambda x: first(slope(ops.reduce_min)(x)), MANY, 1.43e-5),
    (lambda x: first(slope(ops.nanmax)(x)), MANY, 1.43e-5),
    (lambda x: first(slope(ops.reduce_linf)(x)), MANY, 1.43e-5),
    (ops.nanmean, MANY, 1),
    (lambda x: first(slope(ops.reduce_mean)(x)), MANY, 1.43e-5),
    (lambda x: ops.average(x, x), MANY, 1),
    (ops.reduce_l2, FEW, 685.5),
    (ops.vector_norm, FEW, 685.5),
    (lambda v: ops.matrix_norm(ops.reshape(v, shape=(2, 2))), FEW, 685.5),
    (slope(ops.vector_norm), FEW, UNIT),
    (ops.nanstd, FEW, 334.5),
    (ops.std, FEW, 334.5),
    (lambda v: ops.nanvar(v * 0.5), FEW, 27968),
    (lambda v: ops.clip_by_norm(v, clip_norm=1.0), FEW, UNIT),
    (lambda v: ops.global_norm(v, v), FEW, 969.5),
    (lambda v: ops.cosine_similarity(v, v), FEW, 1),
]


@pytest.mark.usefixtures("quick_kernels")
def test_long_sums_and_large_squares() -> None:
    """Sums beyond 2,048 and squares beyond 65,504 are correct, interpreted and compiled."""
    inputs = {id(a): pk.var(f"x{k}", a.shape, "float16") for k, a in enumerate((MANY, FEW))}
    outputs = [build(inputs[id(a)]) for build, a, _ in LISTED]
    expected = [np.float16(value) for _, _, value in LISTED]
    sample = slice(0, None, 2)
    feeds = {"x0": MANY, "x1": FEW}

    for results, reference in (
        (pk.interpret(pk.Graph(outputs), feeds), expected),
        (pk.compile(pk.Graph(outputs[sample]))(feeds), expected[sample]),
    ):
        for k, (result, value) in enumerate(zip(results, reference, strict=True)):
            assert result.dtype == np.float16
            assert (result == value).all(), f"case {k}: {result}, not {value}"
