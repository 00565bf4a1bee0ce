"""Schedules of loop nests on CPUs: actions, the rules that return them, and their texts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.diagnostics import Diagnostic
from passkit.planner.cpu import RULES
from passkit.program.plan_cache import plan_key
from passkit.program.planning import planned
from passkit.schedule.actions import (
    Action,
    Bind,
    CacheRead,
    Fuse,
    LaunchBlocks,
    Recompute,
    SetScope,
    SplitAxis,
    StorageScope,
    Tile,
)
from passkit.schedule.apply_tiles import TileShape, apply_tiles, tile_actions
from passkit.schedule.parse_tiles import parse_tiles
from passkit.schedule.rules import remove_schedule_rule
from passkit.schedule.schedule import Schedule
from passkit.schedule.text import tile_schedule_text
from tests.libraries import quickly
from tests.planned import feeds_of, plan
from tests.schedule.nests import CPU, rule, tile_nest_of
from tests.schedule.test_rules import square_plus
from tests.together import together

V, U, S = Bind.VECTOR, Bind.UNROLL, Bind.SERIAL
SHARED, REGISTER = StorageScope.SHARED, StorageScope.REGISTER
POINTS = "x: f32[100, 33]; b: f32[33]; return add(exp(x), b)"
VECTOR = "x: f32[5000]; return exp(x)"
ROWS = (
    "x: f32[64, 1000]; e = exp(sub(x, reduce_max(x, axis=1, keepdims=true)));"
    "return div(e, reduce_sum(e, axis=1, keepdims=true))"
)
SHORT = ROWS.replace("1000", "40")
COLUMNS = "x: f32[3, 70, 640]; return reduce_max(exp(x), axis=1)"
TURNED = "x: f32[96, 200]; y: f32[200, 96]; return add(transpose(x, axes=(1, 0)), y)"
NARROW = "x: f32[3, 500]; y: f32[500, 3]; return add(transpose(x, axes=(1, 0)), y)"
CUBE = "x: f32[6, 50, 40]; y: f32[40, 6, 50]; return add(transpose(x, axes=(2, 0, 1)), y)"
THREE = "x: f32[6, 50, 40]; y: f32[50, 1]; z: f32[6, 1, 40]; return add(mul(x, y), z)"
SCANNED = (
    "x: f32[64, 40]; c = cumsum(x, axis=1, reverse=true);"
    "return sub(c, reduce_max(c, axis=1, keepdims=true))"
)
OF_ROWS = (
    "x: f32[36]; b = broadcast_to(reduce_max(x, axis=0, keepdims=true), shape=(36,));"
    "w = exp(add(mul(b, b), 1)); t = reduce_sum(mul(w, x), axis=0, keepdims=true);"
    "return add(w, mul(t, x))"
)
GRAPHS = (
    POINTS,
    VECTOR,
    ROWS,
    SHORT,
    COLUMNS,
    TURNED,
    NARROW,
    CUBE,
    SCANNED,
    THREE,
    "x: f32[60, 70]; e = exp(x); return div(e, reduce_sum(e, axis=1, keepdims=true)), neg(e)",
    "x: f16[4, 6, 8, 24]; return sub(x, reduce_mean(x, axis=(1, 3), keepdims=true))",
    "x: f64[7, 300]; return reduce_sum(mul(x, x), axis=0)",
    "x: f32[300]; return reduce_sum(x, axis=0)",
    OF_ROWS,
)


def small_rows(nest: Any, target: Any) -> Any:
    """Return actions for rows of two axes: five of them in a tile."""
    if len(nest.axes) != 2:
        return None
    return [Tile("i0", 5), SplitAxis("i1", target.lanes, Bind.VECTOR)]


def result(graph: str, *actions: Action) -> Schedule | Diagnostic:
    """Return what actions make of the first nest of a graph on the CPU."""
    return apply_tiles(tile_nest_of(graph)[0], CPU, actions)


def kernel(graph: Any) -> pk.Kernel:
    """Return the only kernel of a graph for the CPU."""
    (only,) = plan(graph).attrs["kernel"].values()
    return only  # type: ignore[no-any-return]


def compiled(graph: pk.Graph, feeds: dict[str, Any]) -> list[Any]:
    """Return the results of a graph on the CPU, of kernels that are compiled quickly."""
    with quickly():
        return list(pk.compile(graph)(feeds))


# Rules.


def test_the_rule_of_an_operator_makes_its_kernel() -> None:
    """FScheduleRule decides the tiles of the CPU's kernel, which computes the same."""
    x = pk.var("x", (3000,))
    asked: list[str] = []

    def thousand(node: Any, nest: Any, target: Any) -> Any:
        asked.append(target.name)
        return [Tile("i0", 1000), SplitAxis("i0", target.lanes, Bind.VECTOR)]

    usual = square_plus("test_tiles_usual")
    own = square_plus("test_tiles_own", FScheduleRule=thousand)
    graphs = [pk.Graph([op(x)]) for op in (usual, own)]

    assert [kernel(g).grid for g in graphs] == [1, 3]
    assert {*asked} == {"cpu"}
    data = np.random.default_rng(0).standard_normal(3000, dtype=np.float32)
    np.testing.assert_allclose(
        compiled(graphs[1], {"x": data})[0], data * data + data, rtol=1e-6, atol=1e-6
    )


def test_a_registered_rule_comes_before_the_built_in_ones() -> None:
    """A rule of the user is tried first, by the name of the target or of its dialect."""
    before = kernel(ROWS)
    for target in ("cpu", "cxx"):
        with rule(small_rows, target=target):
            (group,) = pk.templates(pk.parse(ROWS))
            assert group.nest.rule == "test_rule" and "tile n0[i0/5 row]" in str(group)
            assert group.why == "schedule rule test_rule made it"
            assert kernel(ROWS).grid == 13 != before.grid
    assert kernel(ROWS).source == before.source


def test_a_rule_replaces_a_built_in_one_of_its_name() -> None:
    """Rules before the name's place are tried first."""
    with rule(small_rows, "rows", "cpu"):
        assert kernel(ROWS).grid == 13
        assert kernel(SHORT).grid == 4
    with rule(small_rows, "elementwise", "cpu"):
        assert kernel(ROWS).grid != 13
        assert kernel(POINTS).grid == 20


def test_a_rule_must_make_a_legal_schedule() -> None:
    """The error has the name of the rule, the reason, and the axes and values of the nest."""
    message = r"schedule rule test_rule: no axis of i0 has a vector part; .* the axes i0:5000 and"
    with (
        rule(lambda nest, target: [Tile("i0", 7)], target="cpu"),
        pytest.raises(pk.ScheduleError, match=message),
    ):
        kernel(VECTOR)


def test_a_built_in_rule_is_tried_at_the_end() -> None:
    """A rule in its place may leave nests to it: a diagnostic or None is no schedule."""
    text = "x: f32[123]; return exp(x)"
    for nothing in (None, Diagnostic("domain.axes")):
        with rule(lambda nest, target, nothing=nothing: nothing, "elementwise", "cpu"):
            (group,) = pk.templates(pk.parse(text))
            assert group.nest.rule == "elementwise"


def test_a_target_with_vectors_has_the_rules_of_cpus() -> None:
    """The built-in rules of another dialect, whose threads it does not have, are not tried."""
    mixed = evolve(CPU, name="test_mixed", dialect="cuda")
    planned = plan(POINTS, "SchedulePlan", target=mixed)

    assert [s.rule for s in planned.attrs["schedule"].values()] == ["elementwise"]


def test_targets_without_rules_are_refused() -> None:
    """OpenCL has no schedule rules; the message names the targets and dialects that have some."""
    with pytest.raises(pk.SettingError, match=r"opencl has no schedule rules; .*cpu, cuda, cxx"):
        pk.register_schedule_rule("opencl", "wide", small_rows)


def test_plans_by_rules_of_the_user_are_not_kept() -> None:
    """No file tells what a rule does, so that there is no key for plans on disk."""
    graph = pk.parse(POINTS)

    assert plan_key(graph, {}) is not None
    with rule(small_rows, target="cpu"):
        assert plan_key(graph, {}) is None
    assert plan_key(graph, {}) is not None


# Actions.


def test_the_actions_of_built_in_rules_make_their_schedules() -> None:
    """Each schedule is made again by the actions that its loops have, and by its rule's name."""
    names = set()
    for graph in GRAPHS:
        nest, schedule = tile_nest_of(graph)
        shape = TileShape(schedule.composition, schedule.split, schedule.width)
        scopes: list[Action] = [
            SetScope(nest.value_names[k.value], REGISTER)
            for k in schedule.staged
            if k.place.value == "lanes"
        ]
        if graph == OF_ROWS:
            scopes = [Recompute("exp_1")]
            assert not schedule.staged and nest.staged
        again = apply_tiles(nest, CPU, [*tile_actions(nest, shape, CPU), *scopes])
        assert again == evolve(schedule, stream=()), graph
        names.add(schedule.rule)

    assert names == {name for name, _ in RULES}


def test_values_are_computed_again_or_kept_where_actions_say() -> None:
    """Recompute and SetScope decide what a later stage does for a value."""
    loops = (Tile("i0", 8), SplitAxis("i1", 16, V))
    usual, again = result(ROWS, *loops), result(ROWS, *loops, Recompute("exp_1"))
    scratch = result(ROWS, *loops, SetScope("exp_1", SHARED))
    assert isinstance(usual, Schedule) and isinstance(again, Schedule)
    assert isinstance(scratch, Schedule)
    assert [k.place.value for k in usual.staged] == ["global"]
    assert again.staged == ()
    assert [(k.place.value, k.output) for k in scratch.staged] == [("shared", -1)]

    rows = (Tile("i0", 8), SplitAxis("i1", 16, V))
    registers = result(SHORT, *rows, SetScope("exp_1", REGISTER))
    assert isinstance(registers, Schedule)
    assert {k.place.value for k in registers.staged} == {"lanes"}


TEXTS = [
    (
        ROWS,
        """\
schedule div_1 for cpu {
  nest n0 (i0:64, i1:1000 reduce): reduce_max_1, sub_1, exp_1, reduce_sum_1, div_1
  tile n0[i0/8 row] {
    map n0 i1 = vector_16
    in y0 exp_1
    stage n0: reduce reduce_max_1 rows reduce_max_1
    stage n0: reduce reduce_sum_1 keep exp_1 rows reduce_sum_1
    stage n0: store div_1 -> y0
  }
}""",
    ),
    (
        SHORT,
        """\
  tile n0[i0/16 row] {
    map n0 i0 = vector_16; i1 = vector_16
    in shared exp_1
""",
    ),
    (COLUMNS, "  tile n0[i0/1, i2/224] {\n    map n0 i2 = vector_16\n"),
    (TURNED, "  tile n0[i0/64, i1/256] {\n    map n0 i1 = vector_16\n"),
    (NARROW, "  tile n0[i0/1360] {\n    map n0 i1 = unroll; i0 = vector_16\n"),
    (VECTOR, "  tile n0[i0/8192] {\n    map n0 i0 = vector_16\n"),
]


@pytest.mark.parametrize(("graph", "text"), TEXTS)
def test_schedules_have_texts(graph: str, text: str) -> None:
    """The text names the tile, the axes with vectors, where values lie, and the stages."""
    nest, schedule = tile_nest_of(graph)

    assert text in tile_schedule_text(schedule, nest, CPU)


@pytest.mark.parametrize("graph", GRAPHS)
def test_texts_are_read_again(graph: str) -> None:
    """The texts of the usual schedule, and of random legal ones, are read as these schedules."""
    nest, usual = tile_nest_of(graph)
    rng = np.random.default_rng(len(graph) + 1)
    for schedule in (usual, *(s for _, s in legal_schedules(graph, rng, 12))):
        text = tile_schedule_text(schedule, nest, CPU)
        assert parse_tiles(text, nest, CPU) == schedule, text
        assert parse_tiles(" ".join(text.split()), nest, CPU) == schedule, text


WRONG_TEXTS = [
    ("i0/8 row", "i0/n row", r"line 3, column 14: a number is needed, got 'n'"),
    ("vector_16", "vector_4", r"line 4, column 12: split i1 4 vector: vectors of cpu have 16"),
    ("vector_16", "vektor", r"there is no part 'vektor'; did you mean 'vector'"),
    ("in y0 exp_1", "in register exp_1", r"line 1, column 1: exp_1 cannot stay in registers"),
    ("in y0 exp_1", "in shared exp_1 in y0 exp_1", r"line 5, column 21: exp_1 does not lie in y0"),
    ("in y0 exp_1", "in heap exp_1", r"there is no scope 'heap'"),
    ("in y0 exp_1", "recompute div_2", r"there is no value 'div_2'; did you mean 'div_1'"),
    ("in y0 exp_1", "recompute reduce_max_1", r"reduce_max_1 is no value of each point"),
    ("in y0 exp_1", "stream y1", r"there is no output .y1.; known: y0"),
    ("in y0 exp_1", "cache_read x0 in register", r"there is no item 'cache_read'"),
    ("keep exp_1 rows", "rows", r"the nest has the stage reduce reduce_sum_1 keep exp_1"),
    ("    stage n0: store div_1 -> y0\n", "", r"the nest has 3 stages, got 2"),
    ("for cpu", "for cuda", r"the target is cpu"),
]


@pytest.mark.parametrize(("old", "new", "message"), WRONG_TEXTS)
def test_wrong_texts_are_refused(old: str, new: str, message: str) -> None:
    """The error has line and column, what was needed, and what was found."""
    text = TEXTS[0][1]
    assert text.count(old) == 1 or old == "vector_16"

    with pytest.raises(pk.ScheduleError, match=message):
        parse_tiles(text.replace(old, new), tile_nest_of(ROWS)[0], CPU)


ILLEGAL: list[tuple[str, str, Sequence[Action], str]] = [
    (
        "action.device",
        VECTOR,
        [CacheRead("x0", REGISTER)],
        r"cache_read x0 register: on cpu one thread computes a tile",
    ),
    ("action.device", VECTOR, [LaunchBlocks(4)], r"launch_blocks 4: on cpu one thread"),
    (
        "action.device",
        VECTOR,
        [SplitAxis("i0", 32, Bind.THREAD_X)],
        r"split i0 32 thread_x: on cpu one thread",
    ),
    ("axis.unknown", VECTOR, [SplitAxis("i1", 16, V)], r"split i1 16 vector: .* no axis i1"),
    ("axis.size", VECTOR, [Tile("i0", 0)], r"tile i0 0: 0 points are not possible"),
    ("axis.several", THREE, [Tile("i0", 3), SplitAxis("i2", 16, V)], r"axes i0 i1 are not counted"),
    (
        "tile.one_step",
        THREE,
        [Tile("i0", 3), Tile("i1", 4), Tile("i2", 16), SplitAxis("i2", 16, V)],
        r"a tile has one point of axis i1; tile it with 1",
    ),
    (
        "tile.block_axis",
        THREE,
        [Fuse("i0", "i1"), Tile("i0*i1", 3), Tile("i2", 16), SplitAxis("i2", 16, V)],
        r"no input is consecutive along i0\*i1",
    ),
    (
        "axis.several",
        THREE.replace("return", "return reduce_sum(") + ", axis=2)",
        [Tile("i0", 3), SplitAxis("i2", 16, V)],
        r"axes i0 i1 are not counted as one",
    ),
    ("bind.grid", VECTOR, [SplitAxis("i0", 4, Bind.GRID)], r"split i0 4 grid: the grid follows"),
    (
        "bind.repeated",
        ROWS,
        [SplitAxis("i1", 16, V), SplitAxis("i1", 16, V)],
        r"split i1 16 vector: the axis has a vector part already",
    ),
    (
        "axis.closed",
        NARROW,
        [SplitAxis("i1", None, U), SplitAxis("i1", None, S)],
        r"split i1 rest serial: axis i1 has no open part",
    ),
    ("bind.lanes", VECTOR, [SplitAxis("i0", 4, V)], r"split i0 4 vector: vectors of cpu have 16"),
    ("bind.whole", NARROW, [SplitAxis("i1", 2, U)], r"split i1 2 unroll: a loop takes what is"),
    ("bind.no_vector", POINTS, [Tile("i0", 8)], r"no axis of i0 i1 has a vector part"),
    (
        "bind.fused_vector",
        POINTS,
        [Fuse("i0", "i1"), Tile("i0*i1", 64), SplitAxis("i0*i1", 16, V)],
        r"axis i0\*i1 counts several axes",
    ),
    (
        "bind.vector_axis",
        POINTS,
        [Tile("i0", 32), SplitAxis("i0", 16, V)],
        r"axis i0 has the vectors; they lie along the last axis",
    ),
    (
        "bind.vectors",
        POINTS,
        [Tile("i0", 32), SplitAxis("i0", 16, V), SplitAxis("i1", 16, V)],
        r"axes i0 i1 have vectors, and one can",
    ),
    (
        "bind.unrolled",
        POINTS,
        [Tile("i0", 32), SplitAxis("i0", 16, V), SplitAxis("i1", None, U)],
        r"axis i1 is unrolled; only a last axis of a few elements is",
    ),
    (
        "bind.row_values",
        ROWS,
        [Tile("i0", 32), SplitAxis("i0", 16, V), SplitAxis("i1", 16, V)],
        r"axis i0 has vectors of row values; only tiles of short rows",
    ),
    ("tile.missing", ROWS, [SplitAxis("i1", 16, V)], r"axis i0 has no tile"),
    ("tile.missing", VECTOR, [SplitAxis("i0", 16, V)], r"axis i0 has no tile"),
    ("tile.missing", POINTS, [SplitAxis("i1", 16, V)], r"axis i0 has no tile"),
    ("tile.reduced", ROWS, [Tile("i1", 16)], r"axis i1 is reduced; a tile has all of it"),
    (
        "tile.one_step",
        COLUMNS,
        [Tile("i0", 2), Tile("i2", 64), SplitAxis("i2", 16, V)],
        r"a tile has one point of axis i0; tile it with 1",
    ),
    (
        "tile.number",
        VECTOR,
        [Tile("i0", pk.Size({"n": 1})), SplitAxis("i0", 16, V)],
        r"tile i0 n: a tile has a known number of points",
    ),
    (
        "tile.block_axis",
        POINTS,
        [Tile("i0", 32), Tile("i1", 16), SplitAxis("i1", 16, V)],
        r"several points of the axes i0 and i1, but no input is consecutive along i0",
    ),
    (
        "tile.short_axis",
        "x: f32[500, 9]; y: f32[9, 500]; return add(transpose(x, axes=(1, 0)), y)",
        [Tile("i0", 4), Tile("i1", 64), SplitAxis("i1", 16, V)],
        r"axis i0 has 9 points, and a tile 4; it needs all of so few",
    ),
    (
        "storage.value",
        ROWS,
        [SetScope("exp_2", SHARED)],
        r"the nest has no value exp_2; did you mean 'exp_1'",
    ),
    ("storage.value", ROWS, [Recompute("xp_1")], r"no value xp_1; did you mean 'exp_1'"),
    (
        "storage.output",
        ROWS,
        [SetScope("exp_1", StorageScope.GLOBAL)],
        r"set_scope exp_1 global: values lie in outputs where they fit",
    ),
    (
        "recompute.value",
        ROWS,
        [Recompute("reduce_max_1")],
        r"reduce_max_1 is no value of each point",
    ),
    (
        "storage.reader",
        ROWS,
        [Tile("i0", 8), SplitAxis("i1", 16, V), SetScope("div_1", SHARED)],
        r"no later stage reads div_1",
    ),
    (
        "storage.mixed",
        SHORT,
        [
            Tile("i0", 8),
            SplitAxis("i1", 16, V),
            SetScope("exp_1", REGISTER),
            SetScope("sub_1", SHARED),
        ],
        r"exp_1 stays in registers and sub_1 does not",
    ),
    (
        "storage.registers",
        ROWS,
        [Tile("i0", 8), SplitAxis("i1", 16, V), SetScope("exp_1", REGISTER)],
        r"exp_1 cannot stay in registers: that needs short rows",
    ),
]


@pytest.mark.parametrize(("code", "graph", "actions", "message"), ILLEGAL)
def test_illegal_actions(code: str, graph: str, actions: Sequence[Action], message: str) -> None:
    """Each reason has its code, and a text with the names and sizes of the nest."""
    diagnostic = result(graph, *actions)

    assert isinstance(diagnostic, Diagnostic)
    assert diagnostic.code == code
    assert re.search(message, str(diagnostic)), str(diagnostic)


# Random schedules.


def random_actions(nest: Any, rng: Any) -> list[Action]:
    """Return actions for a nest that are legal now and then."""
    sizes = (1, 2, 3, 5, 16, 17, 48, 64, 100, 512, 5000)
    last = nest.axes[-1].name
    *others, _ = [a.name for a in nest.axes]
    kept = [a.name for a in nest.axes if a.role.value != "reduced"] or ["one"]
    vector = last if rng.random() < 0.8 or not others else others[-1]
    actions: list[Action] = []
    tiled = [a for a in kept if a != vector]
    if len(tiled) > 1 and rng.random() < 0.6:
        for axis in tiled[1:]:
            actions.append(Fuse(tiled[0], axis))
            tiled = [f"{tiled[0]}*{axis}", *tiled[2:]]
        tiled = tiled[:1]
    for axis in tiled:
        if axis != last:
            actions.append(Tile(axis, int(rng.choice(sizes)) if rng.random() < 0.7 else 1))
    if vector in kept and rng.random() < 0.7:
        actions.append(Tile(vector, int(rng.choice(sizes))))
    if vector != last:
        actions.append(SplitAxis(last, None, U))
    if tiled and vector not in kept and rng.random() < 0.4:
        actions.append(SplitAxis(tiled[0], 16, V))
    actions.append(SplitAxis(vector, 16, V))
    for k in nest.staged:
        name, choice = nest.value_names[k.value], rng.random()
        if choice < 0.5:
            scope = REGISTER if choice < 0.2 else SHARED
            actions.append(Recompute(name) if choice > 0.4 else SetScope(name, scope))
    return actions


def legal_schedules(graph: str, rng: Any, count: int = 5) -> Iterator[tuple[Any, Schedule]]:
    """Yield different legal schedules of a graph, with their actions."""
    nest, _ = tile_nest_of(graph)
    seen: list[Schedule] = []
    for _ in range(2000):
        actions = random_actions(nest, rng)
        schedule = apply_tiles(nest, CPU, actions)
        if isinstance(schedule, Schedule) and schedule not in seen:
            seen.append(schedule)
            yield actions, schedule
        if len(seen) == count:
            return


@pytest.mark.parametrize("graph", GRAPHS)
def test_legal_schedules_compute_the_same(graph: str) -> None:
    """Kernels of random legal schedules agree with the interpreter."""
    rng = np.random.default_rng(len(graph))
    parsed = pk.parse(graph)
    feeds = feeds_of(parsed, rng)
    expected = pk.interpret(parsed, feeds)
    values = list(tile_nest_of(graph)[0].values)
    schedules, plans = [], []
    for actions, schedule in legal_schedules(graph, rng):

        def fixed(nest: Any, target: Any, actions: Any = actions) -> Any:
            return actions if list(nest.values) == values else None

        pk.register_schedule_rule("cpu", "test_random", fixed)
        try:
            plans.append(planned(parsed, "CodeGen"))
            schedules.append(schedule)
        finally:
            remove_schedule_rule("cpu", "test_random")
    assert len(plans) >= 2
    together(plans)  # by one process of the compiler
    for schedule, plan_of_it in zip(schedules, plans, strict=True):
        for output, value in zip(compiled(plan_of_it, feeds), expected, strict=True):
            tolerance = 2e-3 if value.dtype == np.float16 else 2e-6
            np.testing.assert_allclose(
                output, value, rtol=tolerance, atol=10 * tolerance, err_msg=str(schedule)
            )
