"""Every operator's gradient against central differences, over the specimens, in dt.float64.

The walk is over the registry. An operator without a useful derivative stands in `NO_GRADIENT`, with
the mathematical reason; one that is constant in pieces does not: its gradient is 0.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit import Entry
from passkit.ast import dt
from passkit.errors import FeedError
from tests.ops.central import Measured, differences
from tests.ops.specimens import SPECIMENS, Specimen, Trial
from tests.ops.test_values import NAMES
from tests.together import compiled

NO_GRADIENT: dict[str, str] = {
    "betainc": "by a and b no function of the library, by x: test_special_functions",
    "igamma": "by a no function of the library, by x: test_special_functions",
    "igammac": "by a no function of the library, by x: test_special_functions",
    "stop_gradient": "it is there to have none",
    "zeta": "by x no function of the library, by q: test_special_functions",
}

SAMPLE = 8
"""One operator in so many has its gradients compiled, unless ``--every-dtype`` is set."""
ENOUGH = 200
"""The largest number of elements of the inputs that are differentiated."""


def differentiable(trial: Trial) -> bool:
    """Return whether a trial has a dt.float64 input."""
    return any(dt.dtype_of(a.dtype) is dt.float64 for a in trial.feeds[0])


def tame(arrays: tuple[Any, ...], rng: np.random.Generator) -> tuple[Any, ...]:
    """Return the arrays with small numbers in place of NaN, infinities and huge numbers."""
    return tuple(
        np.where(np.abs(a) < 1e6, a, rng.normal(size=a.shape)).astype(a.dtype)
        if floats(a)
        else np.clip(a, 0 if a.dtype.kind == "u" else -300, 300).astype(a.dtype)
        if a.dtype.kind in "iu"
        else a
        for a in arrays
    )


def floats(array: Any) -> bool:
    """Return whether an array is of floats."""
    return dt.dtype_of(array.dtype).is_float


def chosen(trial: Trial) -> list[tuple[Any, ...]]:
    """Return feeds to differentiate: without elements, the smallest, and the largest of few."""
    by_size = {sum(a.size for a in arrays): arrays for arrays in reversed(trial.feeds)}
    sizes = sorted(by_size)
    some = [n for n in sizes if n]
    few = [n for n in some if n <= ENOUGH]
    return [by_size[n] for n in sorted({sizes[0], *some[:1], *few[-1:]})]


def moved(arrays: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Yield the arrays, then with floats moved to domains where operators may be smooth."""
    for move in (
        lambda a: a,
        lambda a: np.abs(a) + 0.1,
        lambda a: np.abs(a) % 0.8 + 0.1,
        lambda a: np.abs(a) + 1.1,
    ):
        yield tuple(move(a) if floats(a) else a for a in arrays)


def compared(
    outs: tuple[Entry, ...], arrays: tuple[Any, ...], rng: np.random.Generator
) -> list[str]:
    """Return where gradients differ at or near ``arrays``, where all is finite and smooth.

    If the results are nowhere finite, as with a mask of infinities, only the finite ones count.
    """
    first: Measured | None = None
    for candidate in moved(tame(arrays, rng)):
        one = measured(outs, candidate, rng)
        first = first or one
        if one is not None and one.finite and "rough" not in (messages := one.mistakes()):
            return messages
    assert first is not None
    rough = ["nowhere finite and smooth; give the specimen draws in its domain"]
    return rough if first.finite else first.mistakes()


def mistakes(specimen: Specimen, trial: Trial, rng: np.random.Generator) -> Iterator[str]:
    """Yield a message for each wrong gradient of one trial."""
    outs = specimen.build(trial, "x")
    if not any(floats_of(e) for e in outs):
        return
    for arrays in chosen(trial):
        messages = compared(outs, arrays, rng)
        shapes = " ".join(str(list(a.shape)) for a in arrays)
        yield from (f"{specimen.op} {shapes} {dict(trial.params)}: {m}" for m in messages)


def measured(
    outs: tuple[Entry, ...], arrays: tuple[Any, ...], rng: np.random.Generator
) -> Measured | None:
    """Return the gradients at arrays; None where the operator refuses them, as singular ones."""
    with suppress(FeedError):
        return Measured(outs, {f"x_{k}": a for k, a in enumerate(arrays)}, rng)
    return None


def floats_of(entry: Entry) -> bool:
    """Return whether a result is of floats."""
    return entry.dtype is not None and entry.dtype.is_float


@pytest.mark.parametrize("name", [n for n in NAMES if n in SPECIMENS and n not in NO_GRADIENT])
def test_gradients_agree_with_central_differences(name: str) -> None:
    """Gradients by all float inputs agree with central differences."""
    wrong = [
        message
        for specimen in SPECIMENS[name]
        if "f" in specimen.kinds
        for k, trial in enumerate(specimen.drawn(dt.float64))
        if differentiable(trial)
        for message in mistakes(specimen, trial, np.random.default_rng(k))
    ]

    assert not wrong, "\n".join(wrong[:10])


def test_few_operators_have_no_gradient() -> None:
    """The list of operators without gradients is short, and names operators of the library."""
    assert len(NO_GRADIENT) <= 25
    assert set(NO_GRADIENT) <= set(NAMES)


def test_wrong_gradients_are_detected() -> None:
    """A gradient with a small error, a missing term, or NaN is reported."""
    op = pk.register_op("test_wrong_rule", num_inputs=2)
    op.set_attr("FCodeGen", lambda node, x, y: x * y)
    op.set_attr("TOpPattern", pk.OpPattern.BROADCAST)
    drawn = np.random.default_rng(0).normal(size=(3, 9))
    for rule, message in (
        (lambda node, dy: [dy * node.inputs[1] * 1.0001, dy * node.inputs[0]], "by x0: "),
        (lambda node, dy: [dy * node.inputs[1], None], "by x1: 0.0, and central differences"),
        (lambda node, dy: [dy * np.nan, dy * node.inputs[0]], "by x0: NaN"),
    ):
        op.set_attr("FGradient", rule)

        reports = differences(lambda x, y: op(x, y), drawn, drawn + 1)
        assert reports and message in reports[0]


@pytest.mark.usefixtures("quick_kernels")
def test_compiled_gradients_agree_with_interpreted_ones(request: pytest.FixtureRequest) -> None:
    """Compiled gradients of a sample of operators agree with interpreted ones."""
    share = 1 if request.config.getoption("--every-dtype") else SAMPLE
    names = [n for n in NAMES if n not in NO_GRADIENT and zlib.crc32(n.encode()) % share == 0]
    graphs, feeds = [], []
    for specimen in [SPECIMENS[n][0] for n in names if n in SPECIMENS]:
        trial = specimen.drawn(dt.float32 if "f" in specimen.kinds else specimen.dtypes()[0])[0]
        arrays = tame(chosen(trial)[-1], np.random.default_rng(0))
        outs = [e for e in specimen.build(trial, "x") if floats_of(e)]
        xs = [n.entries[0] for n in pk.Graph(outs).inputs if floats_of(n.entries[0])]
        if outs and xs:
            weights = [pk.ops.cos(e * 1.7) for e in outs]  # with ones much would cancel
            graphs.append(pk.Graph(pk.gradients(outs, xs, weights)))
            feeds.append({f"x_{k}": a for k, a in enumerate(arrays)})

    wrong = []
    for graph, fed, exe in zip(graphs, feeds, compiled(graphs), strict=True):
        results = exe({i.name: fed[i.name] for i in exe.inputs})
        expected = pk.interpret(graph, {n.name: fed[n.name] for n in graph.inputs})
        for a, b in zip(results, expected, strict=True):
            top = np.abs(b[np.isfinite(b)]).max(initial=1e-3)
            if not np.allclose(a, b, rtol=1e-3, atol=1e-4 * top, equal_nan=True):
                wrong.append(f"{pk.to_text(graph)}: {np.abs(a - b).max()} of {top}")
    assert not wrong, "\n".join(wrong)
    assert len(graphs) >= len(names) // 3
