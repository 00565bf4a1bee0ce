"""The text of the schedule of a stitched kernel on a GPU, printed and read.

::

    schedule := 'schedule' NAME 'for' TARGET 'threads' '1x'INT 'blocks' INT '{' part* operands '}'
    part     := 'contract' NAME [INT'x']INT'x'INT'x'INT ':'
                'm' '=' 'unroll_'INT'-thread_'INT ';' 'n' '=' 'unroll_'INT'-thread_'INT ';'
                'k' '=' 'serial' ['-chunk_'INT'-serial'] '-unroll_'INT
              | 'rows' NAME INT'x'INT ':' 'row' '=' 'serial-thread' ';'
                'column' '=' ('unroll' | 'serial') '-thread_'INT'-vector_'INT
              | 'points' NAME INT'x'INT ':' 'point' '=' 'serial-thread' ';'
                'step' '=' 'serial-thread_'INT
    operands := 'operands' ('early' | 'late') ['flat']

A line is a part, in order, with its extents in a tile: heads, if there are several, m, n and k of a
product, or the number and length of rows, or of points. ``operands early`` says that those of all
products are loaded at the begin, ``flat`` that arrays have no room for more rows and columns than
there are. What lies in shared memory, and where, follows from the maps.
"""

from __future__ import annotations

import re
from typing import NoReturn

from passkit.diagnostics import Diagnostic
from passkit.errors import ScheduleError
from passkit.schedule.block import BlockMap, BlockSchedule, PointMap, ProductMap, RowMap
from passkit.schedule.block_legality import check_block
from passkit.schedule.block_memory import with_arrays
from passkit.schedule.block_nest import BlockNest, BlockPart, ProductPart, RowPart
from passkit.target import Target

_HEAD = re.compile(r"schedule ([\w.]+) for (\w+) threads 1x(\d+) blocks (\d+) \{")
_CONTRACT = re.compile(
    r"contract (p\d+ [\dx]+): m = unroll_(\d+)-thread_(\d+); "
    r"n = unroll_(\d+)-thread_(\d+); k = serial(?:-chunk_(\d+)-serial)?-unroll_(\d+)"
)
_ROWS = re.compile(
    r"rows (p\d+ \d+x\d+): row = serial-thread; "
    r"column = (?:unroll|(serial))-thread_(\d+)-vector_(\d+)"
)
_POINTS = re.compile(r"points (p\d+ \d+x\d+): point = serial-thread; step = serial-thread_(\d+)")
_OPERANDS = re.compile(r"operands (early|late)( flat)?")

_PARTS = {"contract": _CONTRACT, "rows": _ROWS, "points": _POINTS}


def block_text(schedule: BlockSchedule, nest: BlockNest, name: str, target: str) -> str:
    """Return the text of a schedule.

    Args:
        schedule: the schedule.
        nest: the parts of the kernel.
        name: the name of the kernel's last operator.
        target: the name of the target.
    """
    lines = [
        f"schedule {name} for {target} threads 1x{schedule.threads} blocks {schedule.blocks} {{"
    ]
    for number, (part, own) in enumerate(zip(nest.parts, schedule.parts, strict=True)):
        lines.append(f"  {_word(part)} {_extents(number, part)}: {own}")
    operands = f"  operands {'early' if schedule.is_early else 'late'}"
    return "\n".join([*lines, operands + " flat" * schedule.is_flat, "}"])


def _word(part: BlockPart) -> str:
    """Return the word for the kind of a part."""
    if isinstance(part, ProductPart):
        return "contract"
    return "rows" if isinstance(part, RowPart) else "points"


def _extents(number: int, part: BlockPart) -> str:
    """Return the name and the extents of a part in a tile."""
    if isinstance(part, ProductPart):
        heads = f"{part.heads}x" if part.heads > 1 else ""
        return f"p{number} {heads}{part.rows}x{part.columns}x{part.steps}"
    length = part.length if isinstance(part, RowPart) else part.columns
    return f"p{number} {part.rows}x{length}"


def parse_block(text: str, nest: BlockNest, target: Target) -> BlockSchedule:
    """Return the schedule of a kernel that a text describes.

    Args:
        text: the text.
        nest: the parts of the kernel.
        target: the GPU.

    Raises: ScheduleError with the line if the text does not follow the grammar, describes other
    parts than the kernel's, or a schedule that is not legal.
    """
    lines = [line.strip() for line in text.strip().splitlines()] or [""]
    head = _HEAD.fullmatch(lines[0])
    if head is None or head[2] != target.name:
        _refuse(1, f"schedule NAME for {target.name} threads 1xN blocks N {{", lines[0])
    if len(lines) != len(nest.parts) + 3:
        raise ScheduleError(
            f"schedule: the kernel has {len(nest.parts)} parts, and the text {len(lines) - 3}"
        )
    maps: list[BlockMap] = []
    for number, (part, line) in enumerate(zip(nest.parts, lines[1:-2], strict=True)):
        word, extents = _word(part), _extents(number, part)
        match = _PARTS[word].fullmatch(line)
        if match is None or match[1] != extents:
            _refuse(number + 2, f"{word} {extents}: …", line)
        is_serial = "serial" in match.groups()
        numbers = [int(x) for x in match.groups()[1:] if x not in (None, "serial")]
        if isinstance(part, ProductPart):
            rows, down, columns, across, *chunk, step = numbers
            maps.append(ProductMap(rows, columns, down, across, step, *chunk))
        elif isinstance(part, RowPart):
            lanes, vector = numbers
            maps.append(RowMap(lanes, vector, is_serial))
        else:
            maps.append(PointMap(*numbers))
    operands = _OPERANDS.fullmatch(lines[-2])
    if operands is None:
        _refuse(len(lines) - 1, "operands early or operands late, and flat or not", lines[-2])
    if lines[-1] != "}":
        _refuse(len(lines), "}", lines[-1])
    threads, blocks = int(head[3]), int(head[4])
    schedule = BlockSchedule(
        threads,
        blocks,
        tuple(maps),
        is_early=operands[1] == "early",
        is_flat=operands[2] is not None,
    )
    problem = check_block(schedule, nest, target)
    if isinstance(problem, Diagnostic):
        raise ScheduleError(f"schedule: {problem}")
    return with_arrays(nest, schedule)


def _refuse(line: int, need: str, text: str) -> NoReturn:
    """Raise a ScheduleError at a line."""
    raise ScheduleError(f"schedule: line {line}: {need!r} is needed, got {text!r}")
