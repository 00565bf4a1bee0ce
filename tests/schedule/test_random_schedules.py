"""Random schedules: each list of actions that is legal makes a kernel that computes the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.diagnostics import Diagnostic
from passkit.schedule.actions import (
    Action,
    Bind,
    CacheRead,
    CacheRows,
    CacheTile,
    Recompute,
    SetScope,
    StorageScope,
)
from passkit.schedule.apply import actions_of, apply, distribution
from passkit.schedule.loop_nest import AxisRole
from passkit.schedule.nest import AxisPart, NestSchedule
from passkit.schedule.parse import parse_schedule
from passkit.schedule.rules import remove_schedule_rule
from passkit.schedule.text import schedule_text
from tests.emulator.device import EmulatedDevice
from tests.emulator.programs import emulated
from tests.planned import feeds_of
from tests.schedule.nests import CUDA, nest_of

GRAPHS = (
    "x: f32[7, 40]; e = exp(x); return div(e, reduce_sum(e, axis=1, keepdims=true))",
    "x: f32[3, 528]; b: f32[528]; return sub(mul(x, b), reduce_max(x, axis=1, keepdims=true))",
    "x: f32[4, 6, 8, 16]; return sub(x, reduce_mean(x, axis=(1, 3), keepdims=true))",
    "x: f32[300]; return reduce_sum(x, axis=0)",
    "x: f64[5, 6, 7]; y: f64[6, 1]; return add(mul(x, x), y)",
    "x: f16[1000]; return mul(x, x)",
    "x: f32[2, 70, 66]; return reduce_max(exp(x), axis=1)",
    "x: f32[100, 32]; y: f32[32]; return reduce_sum(mul(x, y), axis=0)",
    "x: f32[3, 1001]; return reduce_sum(exp(x), axis=1)",
    "x: f32[3, 70, 24]; return softmax(x, axis=1)",
    "x: f16[45, 20]; w: f16[20]; return mul(sub(x, reduce_mean(x, axis=0)), exp(w))",
    "x: f32[5, 517]; return softmax(x)",
    (
        "x: f32[3, 45, 16]; w: f32[3, 1, 1]; m = tanh(reduce_mean(x, axis=1, keepdims=true));"
        "t = mul(m, tanh(m)); c = sub(x, t); return mul(c, exp(w)), add(c, exp(w)), m, sub(m, t)"
    ),
    "x: f32[37, 33]; b: f32[33]; return add(exp(x), b), sub(x, b)",
    "x: f32[36, 72]; y: f32[72, 36]; return add(transpose(x, axes=(1, 0)), y)",
    "x: f16[3, 40, 24]; y: f16[24, 3, 40]; return mul(transpose(x, axes=(2, 0, 1)), y)",
)
KERNELS = 6
"""The schedules of each graph that are run."""


def random_actions(nest: Any, rng: Any) -> tuple[Action, ...]:
    """Return actions for a nest that are legal now and then."""

    def parts(*binds: Bind) -> list[AxisPart]:
        sizes = [int(rng.choice([1, 1, 2, 3, 4, 8, 16, 32, 64])) for _ in binds]
        return [AxisPart(b, n) for b, n in zip(binds, sizes, strict=True) if n > 1]

    if nest.is_column:
        rows = [AxisPart(Bind.SERIAL, None), *parts(Bind.UNROLL, Bind.THREAD_Y)]
        return (
            *distribution(nest, AxisRole.KEPT, ()),
            *distribution(nest, AxisRole.REDUCED, rows),
            *distribution(nest, AxisRole.COLUMN, parts(Bind.THREAD_X, Bind.VECTOR)),
            *registers(nest, rng, 0.7),
        )
    if not nest.is_reduced:
        if nest.traffic.transposed and rng.random() < 0.8:
            return tile_actions(nest, rng)
        inner = parts(Bind.UNROLL, Bind.THREAD_X, Bind.VECTOR)
        return (*distribution(nest, AxisRole.KEPT, inner), *registers(nest, rng, 0.7))
    if rng.random() < 0.3:
        return short_row_actions(nest, rng)
    inner = parts(Bind.THREAD_X, Bind.UNROLL, Bind.VECTOR)
    outer = Bind.UNROLL if rng.random() < 0.7 else Bind.SERIAL
    count = int(np.prod([p.size for p in inner if p.bind is not outer], dtype=int))
    if outer is Bind.SERIAL or count < nest.row_length:
        inner = [AxisPart(outer, None), *(p for p in inner if p.bind is not outer)]
    actions = (
        *distribution(nest, AxisRole.KEPT, parts(Bind.THREAD_Y, Bind.THREAD_X)),
        *distribution(nest, AxisRole.REDUCED, inner),
    )
    return (*actions, *registers(nest, rng, 0.7))


def registers(nest: Any, rng: Any, share: float) -> tuple[Action, ...]:
    """Return actions for all values between stages, and for some inputs at the own point.

    A ``share`` of the inputs is cached. Values stay in registers, or are all computed again.
    """
    cached = [k for k in nest.traffic.streams if rng.random() < share]
    names = nest.value_names
    values: list[Action] = [SetScope(names[k], StorageScope.REGISTER) for k in nest.traffic.staged]
    if rng.random() < 0.5:
        values = [Recompute(names[k]) for k in nest.all_recomputed]
    return (*(CacheRead(f"x{k}", StorageScope.REGISTER) for k in cached), *values)


def tile_actions(nest: Any, rng: Any) -> tuple[Action, ...]:
    """Return actions for tiles that are turned in shared memory."""
    sizes = tuple(int(rng.choice([1, 2, 8, 16, 32, 64])) for _ in nest.axes)
    threads, vector = int(rng.choice([32, 64, 128])), int(rng.choice([1, 2, 4, 8]))
    rest = int(np.prod(sizes)) // (threads * vector)
    sized = ((Bind.UNROLL, rest), (Bind.THREAD_X, threads), (Bind.VECTOR, vector))
    inner = [AxisPart(b, n) for b, n in sized if n > 1]
    reads = {(f"x{r.input}", nest.axes[r.axis].name) for r in nest.traffic.transposed}
    lanes, padding = int(rng.choice([1, 4, 8, 32])), int(rng.integers(0, 4))
    return (
        *distribution(nest, AxisRole.KEPT, inner),
        *registers(nest, rng, 0.7),
        CacheTile(tuple(reads), sizes, lanes, sizes[-1] + padding),
    )


def short_row_actions(nest: Any, rng: Any) -> tuple[Action, ...]:
    """Return actions for rows of which each thread has a part, or one."""
    share, vector, width = (int(rng.choice([1, 2, 4])) for _ in range(3))
    elements = nest.row_length // share
    inner = [AxisPart(Bind.UNROLL, elements // vector), AxisPart(Bind.VECTOR, vector)]
    if share > 1:
        inner.insert(0, AxisPart(Bind.THREAD_X, share))
    rows = [
        AxisPart(Bind.THREAD_Y, int(rng.choice([1, 2, 4, 8]))),
        AxisPart(Bind.THREAD_X, 32 // share),
    ]
    return (
        *distribution(nest, AxisRole.KEPT, rows),
        *distribution(nest, AxisRole.REDUCED, inner),
        *registers(nest, rng, 0.9),
        CacheRows(width, elements + int(rng.integers(0, 5))),
    )


def legal_schedules(graph: str, rng: Any) -> Iterator[tuple[Sequence[Action], NestSchedule]]:
    """Yield different legal schedules of a graph, with their actions."""
    nest, _ = nest_of(graph)
    seen: list[NestSchedule] = []
    for _ in range(20_000):
        actions = random_actions(nest, rng)
        schedule = apply(nest, CUDA, actions)
        if not isinstance(schedule, Diagnostic) and schedule not in seen:
            seen.append(schedule)
            yield actions, schedule
        if len(seen) == KERNELS:
            return


def for_nests_of(graph: str, actions: Sequence[Action]) -> Any:
    """Return a rule that has actions for the nest of a graph, and none for parts of it."""
    values = list(nest_of(graph)[0].values)
    return lambda nest, target: actions if list(nest.values) == values else None


@pytest.mark.parametrize("graph", GRAPHS)
def test_texts_of_legal_schedules_are_read_again(graph: str) -> None:
    """The text of each random legal schedule is read as this schedule, and so are its actions."""
    nest, _ = nest_of(graph)
    for _, schedule in legal_schedules(graph, np.random.default_rng(len(graph) + 1)):
        text = schedule_text(schedule, nest, CUDA)
        assert parse_schedule(text, nest, CUDA) == schedule, text
        assert apply(nest, CUDA, actions_of(nest, schedule)) == schedule, text


@pytest.mark.parametrize("graph", GRAPHS)
def test_legal_schedules_compute_the_same(graph: str) -> None:
    """Kernels of random legal schedules agree with the interpreter."""
    rng = np.random.default_rng(len(graph))
    parsed = pk.parse(graph)
    feeds = feeds_of(parsed, rng)
    expected = pk.interpret(parsed, feeds)
    with emulated(EmulatedDevice()) as device:
        programs = []
        try:
            for actions, schedule in legal_schedules(graph, rng):
                pk.register_schedule_rule("cuda", "test_random", for_nests_of(graph, actions))
                programs.append((schedule, pk.compile(parsed, target="cuda")))
        finally:
            remove_schedule_rule("cuda", "test_random")
        device.prepare(k for _, program in programs for k in program.kernels)
        assert len(programs) >= 3
        for schedule, program in programs:
            for output, value in zip(program(feeds), expected, strict=True):
                tolerance = 2e-3 if value.dtype == np.float16 else 2e-6
                np.testing.assert_allclose(
                    output, value, rtol=tolerance, atol=10 * tolerance, err_msg=str(schedule)
                )
