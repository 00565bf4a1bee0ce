"""The text of the schedule of a loop nest.

::

    schedule := 'schedule' NAME 'for' TARGET [threads] '{' nest tile | pack '}'
    threads  := 'threads' INT 'x' INT 'blocks' INT
    pack     := 'pack' '{' (nest threads tile)* '}'
    nest     := 'nest' NAME '(' axis,… ')' (',' NAME '(' axis,… ')')* ':' value,…
    axis     := NAME ':' EXTENT ['chunks'] ['reduce'] ['chunk' EXTENT]
    tile     := 'tile' NAME '[' AXIS '/' EXTENT (',' AXIS '/' EXTENT)* ['row'] ']' '{' item* '}'
    item     := 'map' NAME map (';' map)*
              | 'cache_read' INPUT 'in' SCOPE
              | 'cache_rows' 'vector' INT 'pitch' INT
              | 'cache_tile' INT… 'lanes' INT 'pitch' INT (INPUT 'along' AXIS)…
              | 'in' SCOPE value,…
              | 'in' OUTPUT value
              | 'recompute' value,…
              | 'stream' OUTPUT,…
              | 'stage' NAME ':' ['reduce' v,…] ['keep' v,…] ['rows' v,…] [stores]
    stores   := 'store' v '->' OUTPUT (',' v '->' OUTPUT)*
    map      := AXIS '=' part ('-' part)*
    part     := ('thread_y' | 'thread_x' | 'serial' | 'unroll' | 'vector') ['_' INT]
    AXIS     := NAME ('*' NAME)*; v is a value

Threads are Y x X, blocks those of a multiprocessor; a CPU has neither, and one thread computes a
tile. Parts stand outer to inner; one without a number takes what is left. On a CPU an axis without
parts is a serial loop. ``row`` says that the tile has whole rows of the axes that are not listed.
Values between stages lie in a scope, or in the buffer of an output. The stages follow from the
operators; they are printed for readers, and compared when a text is read.

A pack has the nests of a kernel whose blocks they share out, ``n0``, ``n1``, … in the order of the
parts. Nests that have equal values, stages and maps are listed together; the tile has the name of
the first, and is that of each. Threads and blocks of the pack are those of the kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from passkit.ast.stage import Place
from passkit.ir.loop import Bind, LaunchShape
from passkit.schedule.actions import SplitAxis, Tile
from passkit.schedule.apply_tiles import TileShape, tile_actions
from passkit.schedule.legality import axis_name
from passkit.schedule.loop_nest import NEST, LoopNest, groups_of
from passkit.schedule.nest import AxisPart, NestSchedule
from passkit.schedule.pack import PackSchedule
from passkit.schedule.schedule import Schedule, StagePlan
from passkit.target import Target

_SCOPES = {Place.SHARED: "shared", Place.LANES: "register"}
"""The words for the storage of values between stages, if not in an output."""


def schedule_text(schedule: NestSchedule, nest: LoopNest, target: Target) -> str:
    """Return the text of a schedule of a nest on a target.

    `passkit.schedule.parse.parse_schedule` makes the schedule of it again.
    """
    lines = [
        f"schedule {list(nest.values)[-1]} for {target.name} {launch_text(schedule.launch)} {{",
        f"  nest {nest_head(nest)}: {', '.join(nest.values)}",
        *(f"  {line}" for line in _tile(schedule, nest, NEST)),
        "}",
    ]
    return "\n".join(lines)


def tile_schedule_text(schedule: Schedule, nest: LoopNest, target: Target) -> str:
    """Return the text of a schedule of a nest that runs tile by tile on a CPU.

    `passkit.schedule.parse_tiles.parse_tiles` makes the schedule of it again.
    """
    shape = TileShape(schedule.composition, schedule.split, schedule.width)
    chunks: list[str] = []
    maps: list[str] = []
    for action in tile_actions(nest, shape, target):
        if isinstance(action, Tile):
            chunks.append(f"{action.axis}/{action.chunk}")
        elif isinstance(action, SplitAxis):
            maps.append(f"{action.axis} = {AxisPart(action.bind, action.size)}")
    is_row = schedule.width is None and bool(chunks)
    items = [f"map {NEST} {'; '.join(maps)}"]
    recomputed = _recomputed(schedule, nest)
    if recomputed:
        items.append(f"recompute {', '.join(recomputed)}")
    items += [f"in {place} {', '.join(names)}" for place, names in _places(schedule, nest)]
    if schedule.stream:
        items.append(f"stream {', '.join(f'y{k}' for k in schedule.stream)}")
    items += [f"stage {NEST}: {stage_text(s, nest)}" for s in schedule.stages]
    return "\n".join(
        [
            f"schedule {list(nest.values)[-1]} for {target.name} {{",
            f"  nest {nest_head(nest)}: {', '.join(nest.values)}",
            f"  tile {NEST}[{', '.join(chunks)}{' row' * is_row}] {{",
            *(f"    {item}" for item in items),
            "  }",
            "}",
        ]
    )


def _recomputed(schedule: Schedule, nest: LoopNest) -> list[str]:
    """Return the values that would lie in outputs or scratch memory, but are computed again."""
    if any(k.place is Place.LANES for k in schedule.staged):
        return []
    stored, recomputed = {k.value for k in schedule.staged}, frozenset[int]()
    while True:
        _, staged = nest.stage_plan(None, recomputed)
        missing = {k.value for k in staged} - stored
        if not missing:
            return [nest.value_names[k] for k in sorted(recomputed)]
        recomputed |= missing


def _places(schedule: Schedule, nest: LoopNest) -> list[tuple[str, list[str]]]:
    """Return the scopes and outputs in which values lie between stages, with their values."""
    places: dict[str, list[str]] = {}
    for k in schedule.staged:
        place = f"y{k.output}" if k.place is Place.GLOBAL else _SCOPES[k.place]
        places.setdefault(place, []).append(nest.value_names[k.value])
    return list(places.items())


def pack_text(pack: PackSchedule, nests: Sequence[LoopNest], target: Target) -> str:
    """Return the text of a schedule of several nests in one kernel.

    `passkit.schedule.parse_pack.parse_pack` makes the schedule of it again.
    """
    alike: dict[tuple[str, ...], list[int]] = {}
    for number, (schedule, nest) in enumerate(zip(pack.parts, nests, strict=True)):
        key = (launch_text(schedule.launch), *nest.values, *_tile(schedule, nest, NEST))
        alike.setdefault(key, []).append(number)
    name = list(nests[-1].values)[-1]
    lines = [f"schedule {name} for {target.name} {launch_text(pack.launch)} {{", "  pack {"]
    for numbers in alike.values():
        first = numbers[0]
        heads = ", ".join(nest_head(nests[k], f"n{k}") for k in numbers)
        lines += [
            f"    nest {heads}: {', '.join(nests[first].values)}",
            f"    {launch_text(pack.parts[first].launch)}",
            *(f"    {line}" for line in _tile(pack.parts[first], nests[first], f"n{first}")),
        ]
    return "\n".join([*lines, "  }", "}"])


def launch_text(launch: LaunchShape) -> str:
    """Return the threads of a block and the blocks of a multiprocessor as text."""
    return f"threads {launch.y}x{launch.x} blocks {launch.blocks}"


def nest_head(nest: LoopNest, name: str = NEST) -> str:
    """Return the name of a nest and its axes as text."""
    return f"{name} ({', '.join(map(str, nest.axes))})"


def _tile(schedule: NestSchedule, nest: LoopNest, name: str) -> list[str]:
    """Return the lines of a tile with its braces."""
    lines = tile_lines(schedule, nest, name)
    return [f"tile {name}[{_tile_text(schedule, nest)}] {{", *(f"  {x}" for x in lines), "}"]


def tile_lines(schedule: NestSchedule, nest: LoopNest, name: str = NEST) -> list[str]:
    """Return the lines of a tile of the text of a schedule: its items and the nest's stages."""
    plan, _ = nest.stage_plan(None, frozenset(schedule.recomputed))
    stages = [f"stage {name}: {stage_text(s, nest)}" for s in plan]
    return [*_items(schedule, nest, name), *stages]


def _tile_text(schedule: NestSchedule, nest: LoopNest) -> str:
    """Return the axes of a tile with their chunks, as text."""
    kept, columns = schedule.kept, schedule.columns
    text = f"{axis_name(nest, kept)}/{kept.chunk}"
    if columns is None:
        has_whole_rows = kept.axes == tuple(range(len(kept.axes)))
        return f"{text} row" if has_whole_rows else text
    tile = f"{axis_name(nest, columns)}/{columns.chunk}"
    return f"{text}, {tile}" if kept.axes else tile


def _items(schedule: NestSchedule, nest: LoopNest, name: str) -> Iterable[str]:
    """Yield the items of a tile in front of the stages."""
    maps = []
    for _, group in groups_of(schedule):
        parts = "-".join(str(p) for p in group.parts if p.bind is not Bind.GRID)
        if parts:
            maps.append(f"{axis_name(nest, group)} = {parts}")
    if maps:
        yield f"map {name} {'; '.join(maps)}"
    for number in schedule.cached:
        yield f"cache_read x{number} in register"
    if schedule.tile is not None:
        yield f"cache_rows vector {schedule.tile.vector} pitch {schedule.tile.pitch}"
    if schedule.transpose is not None:
        tile = schedule.transpose
        sizes = " ".join(map(str, tile.sizes))
        inputs = " ".join(f"x{k} along {nest.axes[axis].name}" for k, axis in tile.inputs)
        yield f"cache_tile {sizes} lanes {tile.lanes} pitch {tile.pitch} {inputs}"
    if schedule.recomputed:
        yield f"recompute {', '.join(nest.value_names[k] for k in schedule.recomputed)}"
    if schedule.staged:
        yield f"in register {', '.join(nest.value_names[k] for k in schedule.staged)}"


def stage_text(stage: StagePlan, nest: LoopNest) -> str:
    """Return what a stage reduces, keeps, computes once per row, and stores, as text."""
    names = nest.value_names
    position = {n: k for k, n in enumerate(nest.graph.nodes)}
    outputs = [names[position[e.node]] for e in nest.graph.outputs]
    clauses = [
        ("reduce", [names[k] for k in stage.reduces]),
        ("keep", [names[k] for k in stage.staged]),
        ("rows", [names[k] for k in stage.row_values]),
        ("store", [f"{outputs[k]} -> y{k}" for k in stage.stores]),
    ]
    return " ".join(f"{word} {', '.join(values)}" for word, values in clauses if values)
