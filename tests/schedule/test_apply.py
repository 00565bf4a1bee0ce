"""Actions on loop nests: what they do, and the reason why some are not legal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest

import passkit as pk
from passkit.diagnostics import Diagnostic
from passkit.schedule.actions import (
    Action,
    Bind,
    CacheRead,
    CacheRows,
    CacheTile,
    Fuse,
    LaunchBlocks,
    Recompute,
    SetScope,
    SplitAxis,
    StorageScope,
    Tile,
)
from passkit.schedule.apply import actions_of, apply
from passkit.schedule.nest import NestSchedule
from tests.schedule.nests import CUDA, SOFTMAX, nest_of

POINTS = "x: f32[64, 33]; b: f32[33]; return add(x, b)"
SHORT = (
    "x: f32[7, 40]; e = exp(sub(x, reduce_max(x, axis=1, keepdims=true)));"
    "return div(e, reduce_sum(e, axis=1, keepdims=true))"
)
LONG = "x: f32[9, 4097]; return reduce_sum(x, axis=1)"
COLUMNS = "x: f32[3, 70, 64]; return reduce_max(exp(x), axis=1)"
CHUNKS = "x: f32[1000000]; return reduce_sum(x, axis=0)"
TURNED = "x: f32[96, 200]; y: f32[200, 96]; return add(transpose(x, axes=(1, 0)), y)"
WIDE_TURNED = (
    "x: f64[96, 200]; y: f32[200, 96];"
    'return add(cast(transpose(x, axes=(1, 0)), dtype="float32"), y)'
)
FOLDED = "x: f32[4, 6, 8, 16]; return sub(x, reduce_mean(x, axis=(1, 3), keepdims=true))"
UNKNOWN = "x: f32[m, 6*n]; return softmax(x, axis=1)"
X, Y, V, U, S = Bind.THREAD_X, Bind.THREAD_Y, Bind.VECTOR, Bind.UNROLL, Bind.SERIAL
KEEP = SetScope("exp_1", StorageScope.REGISTER)
READ = CacheRead("x0", StorageScope.REGISTER)
ROWS = (Tile("i0", 4), SplitAxis("i0", 4, Y))
ROW = (SplitAxis("i1", 4, V), SplitAxis("i1", 32, X), SplitAxis("i1", None, U))
FUSE = Fuse("i0", "i1")
STEPS = SplitAxis("i1", None, S)
COLUMN = (Tile("i2", 64), SplitAxis("i2", 2, V), SplitAxis("i2", 32, X))
FLAT = (FUSE, Tile("i0*i1", 512), SplitAxis("i0*i1", 4, V), SplitAxis("i0*i1", None, X))


def result(graph: str, *actions: Action) -> NestSchedule | Diagnostic:
    """Return what actions make of the nest of a graph."""
    return apply(nest_of(graph)[0], CUDA, actions)


def test_actions_make_the_schedule_of_a_rule() -> None:
    """The actions of the row schedule of a softmax make the schedule that its rule makes."""
    _, schedule = nest_of(SOFTMAX)

    assert result(SOFTMAX, *ROWS, *ROW, READ, KEEP, LaunchBlocks(8)) == schedule


def test_blocks_follow_from_registers() -> None:
    """Without LaunchBlocks a multiprocessor has as many blocks as the held registers allow."""
    few = result(SOFTMAX, *ROWS, *ROW, READ, KEEP)
    many = result(POINTS, *FLAT)

    assert isinstance(few, NestSchedule) and few.launch.blocks == 8
    assert isinstance(many, NestSchedule) and many.launch.blocks == 16


WIDE = (*ROWS, SplitAxis("i1", 4, V), SplitAxis("i1", 32, X))
ILLEGAL: list[tuple[str, str, tuple[Any, ...], str]] = [
    ("axis.unknown", SOFTMAX, (Tile("i2", 4),), r"tile i2 4: the nest has no axis i2; known: i0"),
    ("axis.unknown", SOFTMAX, (Fuse("i0", "k"),), r"fuse i0 k: the nest has no axis k; known"),
    ("axis.unknown", SOFTMAX, (Fuse("k", "i0"),), r"fuse k i0: the nest has no axis k; known"),
    (
        "axis.unknown",
        SOFTMAX,
        (SplitAxis("k", 4, V),),
        r"split k 4 vector: the nest has no axis k;",
    ),
    ("axis.size", SOFTMAX, (Tile("i0", 0),), r"tile i0 0: 0 points are not possible"),
    ("axis.size", SOFTMAX, (SplitAxis("i1", -1, X),), r"split i1 -1 thread_x: -1 points are not"),
    ("axis.not_adjacent", SOFTMAX, (FUSE,), r"axis i1 is not the next axis of its kind after i0"),
    ("axis.not_adjacent", FOLDED, (Fuse("i2", "i0"),), r"axis i0 is not the next .* i2: i0 i2"),
    ("axis.distributed", POINTS, (Tile("i0", 4), FUSE), r"fuse i0 i1: axis i0 is tiled or split"),
    ("axis.distributed", POINTS, (Tile("i0", 4), Tile("i0", 4)), r"tile i0 4: axis i0 is tiled"),
    ("axis.several", POINTS, (Tile("i0", 4),), r"axes i0 i1 are not counted as one; fuse them"),
    (
        "axis.closed",
        SOFTMAX,
        (*ROW, SplitAxis("i1", 2, S)),
        r"split i1 2 serial: axis i1 has no open",
    ),
    ("axis.uncovered", SOFTMAX, WIDE, r"the parts of axis i1 have 128 points together, of 1024"),
    ("axis.uncovered", UNKNOWN, WIDE, r"the parts of axis i1 have 128 points together, of 6\*n"),
    (
        "axis.unknown_rest",
        UNKNOWN,
        (SplitAxis("i1", None, X),),
        r"split i1 rest thread_x: only a call knows how many of the 6\*n steps are left",
    ),
    (
        "bind.vector_length",
        UNKNOWN,
        (*ROWS, *ROW[:2], STEPS, Recompute("exp_1")),
        r"vectors of 4 elements do not divide axis i1 of 6",
    ),
    (
        "recompute.value",
        SOFTMAX,
        (Recompute("reduce_max_1"),),
        r"reduce_max_1 is no value of each point",
    ),
    (
        "storage.reader",
        SOFTMAX,
        (*ROWS, *ROW, READ, KEEP, Recompute("exp_1")),
        r"no later stage reads exp_1",
    ),
    (
        "tile.number",
        POINTS,
        (FUSE, Tile("i0*i1", pk.Size({"n": 1}))),
        r"tile i0\*i1 n: a tile has a known number of points",
    ),
    ("tile.reduced", SOFTMAX, (Tile("i1", 4),), r"axis i1 is reduced; a tile has all of it"),
    ("tile.missing", SOFTMAX, (SplitAxis("i0", 4, Y),), r"axis i0 has no tile; tile it before"),
    ("tile.missing", SOFTMAX, ROW, r"axis i0 has no tile"),
    (
        "tile.chunk",
        SOFTMAX,
        (Tile("i0", 8), *ROWS[1:], *ROW),
        r"8 points of axis i0, and its parts",
    ),
    (
        "bind.grid",
        SOFTMAX,
        (SplitAxis("i1", 4, Bind.GRID),),
        r"split i1 4 grid: the grid follows from",
    ),
    (
        "bind.repeated",
        SOFTMAX,
        (*WIDE, SplitAxis("i1", 8, X)),
        r"the axis has a thread_x part already",
    ),
    (
        "bind.vector_inside",
        SOFTMAX,
        (*WIDE, SplitAxis("i1", 8, V)),
        r"split i1 8 vector: a vector is t",
    ),
    (
        "bind.points",
        POINTS,
        (FUSE, Tile("i0*i1", 64), SplitAxis("i0*i1", 32, X), SplitAxis("i0*i1", 2, Y)),
        r"axis i0\*i1 has the part thread_y_2",
    ),
    (
        "bind.rows",
        SOFTMAX,
        (Tile("i0", 4), SplitAxis("i0", 4, U), *ROW, KEEP),
        r"axis i0 counts rows and has the part unroll_4",
    ),
    (
        "bind.reduced",
        SOFTMAX,
        (*ROWS, *ROW[:2], SplitAxis("i1", 8, Y), KEEP),
        r"axis i1 is reduced, and has the part thread_y_8",
    ),
    (
        "bind.power_of_two",
        SOFTMAX,
        (*ROWS, ROW[0], SplitAxis("i1", 48, X), ROW[2], KEEP),
        r"thread_x has 48 threads",
    ),
    (
        "bind.threads",
        SOFTMAX,
        (Tile("i0", 64), SplitAxis("i0", None, Y), *ROW, KEEP),
        r"2048 threads in a block exceed 1024",
    ),
    (
        "bind.partial_warp",
        SOFTMAX,
        (Tile("i0", 1), ROW[0], SplitAxis("i1", 16, X), ROW[2], KEEP),
        r"a block of 16 threads has a part of a warp of 32",
    ),
    (
        "bind.several_rows",
        SOFTMAX,
        (*ROWS, ROW[0], SplitAxis("i1", 64, X), ROW[2], KEEP),
        r"4 rows of 64 threads in a block",
    ),
    (
        "bind.vector_width",
        SOFTMAX,
        (*ROWS, SplitAxis("i1", 8, V), *ROW[1:], KEEP),
        r"a vector of 8 elements of 4 bytes is no access: .* at most 16",
    ),
    (
        "bind.vector_length",
        LONG,
        (Tile("i0", 1), ROW[0], SplitAxis("i1", 256, X), SplitAxis("i1", None, S)),
        r"vectors of 4 elements do not divide axis i1 of 4097",
    ),
    (
        "bind.serial",
        SOFTMAX,
        (SplitAxis("i1", 8, S),),
        r"split i1 8 serial: a serial part takes what",
    ),
    (
        "bind.serial",
        POINTS,
        (FUSE, Tile("i0*i1", 8), SplitAxis("i0*i1", None, S)),
        r"rest serial: a ser",
    ),
    (
        "bind.serial_rows",
        SOFTMAX,
        (*ROWS, *ROW[:2], SplitAxis("i1", None, S), READ, KEEP),
        r"axis i1 has a serial part, so that exp_1 does not stay in registers",
    ),
    (
        "bind.chunks",
        CHUNKS,
        (Tile("i0", 1), SplitAxis("i1", 32, X), SplitAxis("i1", None, U)),
        r"axis i1 is reduced in chunks; a block goes serially through one",
    ),
    (
        "bind.outer",
        COLUMNS,
        (Tile("i0", 4), SplitAxis("i0", 4, Y), STEPS, *COLUMN),
        r"axis i0 has the part thread_y_4, and blocks of columns",
    ),
    (
        "bind.column_rows",
        COLUMNS,
        (Tile("i0", 1), SplitAxis("i1", 32, X), STEPS, *COLUMN),
        r"axis i1 has the part thread_x_32; threads of a column lie along",
    ),
    (
        "bind.columns",
        COLUMNS,
        (Tile("i0", 1), STEPS, Tile("i2", 64), SplitAxis("i2", 32, X), SplitAxis("i2", 2, U)),
        r"axis i2 has the part unroll_2; columns lie along thread_x",
    ),
    (
        "bind.order",
        COLUMNS,
        (Tile("i0", 1), SplitAxis("i1", 2, U), SplitAxis("i1", 8, Y), STEPS, *COLUMN),
        r"axis i1 has serial-thread_y_8-unroll_2; columns are reduced",
    ),
    (
        "bind.order",
        COLUMNS,
        (Tile("i0", 1), SplitAxis("i1", None, U), *COLUMN),
        r"axis i1 has unroll_70; columns are reduced in serial steps",
    ),
    (
        "tile.missing",
        COLUMNS,
        (Tile("i0", 1), STEPS),
        r"axis i2 has no tile",
    ),
    (
        "limit.registers",
        LONG,
        (
            Tile("i0", 2),
            SplitAxis("i0", 2, Y),
            SplitAxis("i1", 16, X),
            SplitAxis("i1", None, U),
            READ,
        ),
        r"a thread holds elements in 257 registers, and 223 are possible",
    ),
    (
        "limit.unroll",
        POINTS,
        (FUSE, Tile("i0*i1", 32 * 4097), SplitAxis("i0*i1", 32, X), SplitAxis("i0*i1", None, U)),
        r"4097 operations in an unrolled loop exceed 4096",
    ),
    (
        "launch.blocks",
        SOFTMAX,
        (*ROWS, *ROW, KEEP, LaunchBlocks(17)),
        r"17 blocks of 128 threads on a multiprocessor; 1 to 16",
    ),
    (
        "launch.registers",
        SOFTMAX,
        (*ROWS, *ROW, READ, KEEP, LaunchBlocks(16)),
        r"16 blocks of 128 threads leave a thread 32 registers, and it needs 48",
    ),
    (
        "storage.input",
        SOFTMAX,
        (CacheRead("x1", StorageScope.REGISTER),),
        r"the nest has no input x1; kno",
    ),
    (
        "storage.point",
        POINTS,
        (CacheRead("x1", StorageScope.REGISTER),),
        r"input x1 is not read at the own",
    ),
    (
        "storage.scope",
        SOFTMAX,
        (CacheRead("x0", StorageScope.SHARED),),
        r"cache_read x0 shared: a nest",
    ),
    (
        "storage.scope",
        SOFTMAX,
        (SetScope("exp_1", StorageScope.SHARED),),
        r"set_scope exp_1 shared: a nest",
    ),
    (
        "storage.value",
        SOFTMAX,
        (SetScope("exp", StorageScope.REGISTER),),
        r"no value exp; did you mean 'exp_",
    ),
    (
        "storage.reader",
        SOFTMAX,
        (SetScope("sub_1", StorageScope.REGISTER),),
        r"no later stage reads sub_1",
    ),
    ("storage.missing", SOFTMAX, (*ROWS, *ROW), r"a later stage reads exp_1, which has no scope"),
]
SHORT_ROWS = (
    Tile("i0", 64),
    SplitAxis("i0", 16, X),
    SplitAxis("i0", 4, Y),
    SplitAxis("i1", 4, V),
    SplitAxis("i1", 5, U),
    SplitAxis("i1", 2, X),
    READ,
    KEEP,
)


def _with(actions: Sequence[Action], *changes: tuple[int, Action]) -> tuple[Action, ...]:
    """Return actions, some of which are replaced, by position."""
    changed = dict(changes)
    return tuple(changed.get(k, a) for k, a in enumerate(actions))


ILLEGAL += [
    ("rows.none", POINTS, (*FLAT, CacheRows(4, 4)), r"cache_rows needs rows, and the nest reduces"),
    (
        "rows.apart",
        FOLDED,
        (
            Fuse("i0", "i2"),
            Tile("i0*i2", 32),
            SplitAxis("i0*i2", 32, X),
            Fuse("i1", "i3"),
            SplitAxis("i1*i3", None, U),
            CacheRows(4, 96),
        ),
        r"not of axes i0:4 i1:6 reduce i2:8 i3:16 reduce",
    ),
    (
        "rows.parts",
        SHORT,
        (*_with(SHORT_ROWS, (4, SplitAxis("i1", 6, U))), CacheRows(4, 24)),
        r"equal parts of a row of 40 elements, and 2 threads have 24 each",
    ),
    (
        "rows.order",
        SHORT,
        (
            *_with(SHORT_ROWS, (4, SplitAxis("i1", 2, X)), (5, SplitAxis("i1", 5, U))),
            CacheRows(4, 20),
        ),
        r"the outermost part of axis i1 is thread_x",
    ),
    (
        "rows.warp",
        SHORT,
        (*_with(SHORT_ROWS, (0, Tile("i0", 32)), (1, SplitAxis("i0", 8, X))), CacheRows(4, 20)),
        r"a warp of 32 threads along thread_x, not 16",
    ),
    ("bind.vector_width", SHORT, (*SHORT_ROWS, CacheRows(16, 20)), r"a vector of 16 elements"),
    (
        "rows.vector",
        SHORT.replace("40", "42"),
        (
            *_with(SHORT_ROWS, (3, SplitAxis("i1", 21, U)), (4, SplitAxis("i1", 1, U))),
            CacheRows(4, 21),
        ),
        r"vectors of 4 elements do not divide rows of 42",
    ),
    ("rows.pitch", SHORT, (*SHORT_ROWS, CacheRows(4, 22)), r"parts of 20 elements .* not 22 apart"),
    ("rows.pitch", SHORT, (*SHORT_ROWS, CacheRows(4, 16)), r"parts of 20 elements .* not 16 apart"),
    ("memory.shared", SHORT, (*SHORT_ROWS, CacheRows(4, 2000)), r"1024000 bytes of shared memory"),
]


SQUARE = (FUSE, Tile("i0*i1", 1024), SplitAxis("i0*i1", 4, V), SplitAxis("i0*i1", None, X))
ALONG = (("x0", "i0"),)
ILLEGAL += [
    ("storage.input", TURNED, (CacheTile((("x2", "i0"),), (32, 32), 8, 33),), r"no input x2; kno"),
    (
        "tile.along",
        TURNED,
        (CacheTile((("x0", "i1"),), (32, 32), 8, 33),),
        r"input x0 has no consecutive elements along axis i1; it has some along i0",
    ),
    (
        "tile.along",
        TURNED,
        (CacheTile((("x1", "i0"),), (32, 32), 8, 33),),
        r"input x1 has no consecutive elements along axis i0; it has some along none",
    ),
    (
        "tile.axes",
        TURNED,
        (*SQUARE, CacheTile(ALONG, (16, 32), 8, 33)),
        r"a tile of 16 x 32 needs .* axes i0\*i1, and 1024 points, not 512",
    ),
    ("tile.axes", TURNED, (*SQUARE, CacheTile(ALONG, (1024,), 8, 33)), r"a tile of 1024 needs a"),
    (
        "tile.vector",
        TURNED,
        (*SQUARE, CacheTile(ALONG, (512, 2), 8, 33)),
        r"vectors of 4 elements and 8 threads .* a tile of 512 x 2;",
    ),
    (
        "tile.vector",
        TURNED,
        (*SQUARE, CacheTile(ALONG, (32, 32), 6, 33)),
        r"vectors of 4 elements and 6 threads",
    ),
    (
        "tile.pitch",
        TURNED,
        (*SQUARE, CacheTile(ALONG, (32, 32), 8, 31)),
        r"rows of 32 elements are not 31 apart",
    ),
    (
        "tile.vector_steps",
        TURNED.replace("96", "98"),
        (*SQUARE, CacheTile(ALONG, (32, 32), 8, 33)),
        r"vectors of 4 elements of outputs .* there are 98 elements .* along axis i1",
    ),
    (
        "tile.vector_steps",
        TURNED.replace("200", "201"),
        (*SQUARE, CacheTile(ALONG, (32, 32), 8, 33)),
        r"vectors of 4 elements of x0 .* there are 201 elements .* along axis i1",
    ),
    (
        "tile.rows",
        "x: f32[96, 200]; y: f32[200, 96]; return reduce_sum(add(transpose(x), y), axis=1)",
        (*ROWS, *ROW, CacheTile((), (1,), 1, 1)),
        r"cache_tile needs a nest without reductions, and axis i1 is reduced",
    ),
    (
        "bind.vector_width",
        WIDE_TURNED,
        (*SQUARE, CacheTile(ALONG, (32, 32), 8, 33)),
        r"a vector of 4 elements of 8 bytes is no access",
    ),
    (
        "memory.shared",
        TURNED,
        (*SQUARE, CacheTile(ALONG, (32, 32), 8, 4000)),
        r"512000 bytes of shared memory",
    ),
]


@pytest.mark.parametrize(("code", "graph", "actions", "message"), ILLEGAL)
def test_actions_that_are_not_legal_have_a_reason(
    code: str, graph: str, actions: tuple[Action, ...], message: str
) -> None:
    """The first reason names the axis, value or action, and the numbers that were compared."""
    problem = result(graph, *actions)

    assert isinstance(problem, Diagnostic)
    assert (problem.code, bool(re.search(message, str(problem)))) == (code, True), str(problem)


def test_short_rows_go_through_shared_memory() -> None:
    """CacheRows makes the schedule of short rows that the built-in rule makes."""
    _, schedule = nest_of(SHORT)

    blocks = LaunchBlocks(schedule.launch.blocks)
    assert result(SHORT, *SHORT_ROWS, CacheRows(4, 20), blocks) == schedule


def test_tiles_are_turned_in_shared_memory() -> None:
    """CacheTile makes the schedule of a transposed input that the built-in rule makes."""
    _, schedule = nest_of(TURNED)
    tile = schedule.transpose
    assert tile is not None
    actions = actions_of(nest_of(TURNED)[0], schedule)
    read = CacheRead("x1", StorageScope.REGISTER)

    assert str(actions[-2]) == "cache_tile 32 32 lanes 8 pitch 33 x0 along i0"
    assert result(TURNED, *SQUARE, read, *actions[-2:]) == schedule
