"""Diagnostics: why something is not possible, or was decided so, with the values it is about.

A diagnostic is a code and the values of its text. Functions return one in place of a result; where
a user must know, an error with its text is raised.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

TEXTS: dict[str, str] = {
    "axis.closed": "{action}: axis {axis} has no open part, since one took what is left",
    "axis.distributed": "{action}: axis {axis} is tiled or split already",
    "axis.not_adjacent": "axis {inner} is not the next axis of its kind after {outer}: {axes}",
    "axis.several": "axes {axes} are not counted as one; fuse them",
    "axis.size": "{action}: {size} points are not possible; at least 1 is needed",
    "axis.uncovered": "the parts of axis {axis} have {count} points together, of {extent}",
    "axis.unknown": "{action}: the nest has no axis {axis}; {hint}",
    "bind.chunks": "axis {axis} is reduced in chunks; a block goes serially through one",
    "bind.column_rows": "axis {axis} has the part {part}; threads of a column lie along thread_y",
    "bind.columns": "axis {axis} has the part {part}; columns lie along thread_x, and in vectors",
    "bind.grid": "{action}: the grid follows from the tile; a part is bound to threads or loops",
    "bind.order": "axis {axis} has {parts}; columns are reduced in serial steps, unrolled ones, "
    "and along thread_y",
    "bind.outer": "axis {axis} has the part {part}, and blocks of columns have one point of it",
    "bind.partial_warp": "a block of {threads} threads has a part of a warp of {warp}",
    "bind.points": "axis {axis} has the part {part}; without rows, threads lie along thread_x",
    "bind.power_of_two": "thread_x has {size} threads, which is no power of two",
    "bind.reduced": "axis {axis} is reduced, and has the part {part} in place of thread_x",
    "bind.repeated": "{action}: the axis has a {bind} part already",
    "bind.rows": "axis {axis} counts rows and has the part {part}; rows lie along thread_y",
    "bind.serial": "{action}: a serial part takes what is left of a reduced axis; its size is None",
    "bind.serial_rows": "axis {axis} has a serial part, and the rows are read more than once",
    "bind.several_rows": "{rows} rows of {threads} threads in a block; a row of more than "
    "{warp} threads, a warp, has a block of its own",
    "bind.threads": "{threads} threads in a block exceed {limit}",
    "bind.vector_inside": "{action}: a vector is the innermost part of an axis",
    "bind.vector_length": "vectors of {width} elements do not divide axis {axis} of {extent}",
    "bind.vector_width": "a vector of {width} elements of {nbytes} bytes is no access: the width "
    "is a power of two, and the bytes are at most {limit}",
    "domain.chunks": "chunks of a reduction are read more than once, or have several axes",
    "domain.extent": "axis {axis} has the extent {extent}; a number is needed",
    "domain.order": "the last axis is not reduced, and points are read more than once or stored",
    "launch.blocks": "{blocks} blocks of {threads} threads on a multiprocessor; 1 to {limit} are "
    "possible",
    "launch.registers": "{blocks} blocks of {threads} threads leave a thread {registers} "
    "registers, and it needs {needed}",
    "limit.registers": "a thread holds elements in {count} registers, and {limit} are possible",
    "limit.unroll": "{count} operations in an unrolled loop exceed {limit}",
    "memory.registers": "a row of {length} elements does not fit in the registers of a block",
    "memory.shared": "{nbytes} bytes of shared memory in a block exceed {limit}",
    "op.scan": "{op} is a scan, which a nest in registers does not compute",
    "pack.arguments": "{parts} parts have {count} arguments together, which exceed {limit}",
    "pack.part": "part {part} has no schedule of a nest: {reason}",
    "pack.registers": "part {part} counts on {own} threads on a multiprocessor, and the kernel has "
    "{all}",
    "pack.threads": "part {part} has blocks of {threads} threads, of which a block of {all} has no "
    "whole number, or which are no whole warps",
    "rows.apart": "cache_rows needs rows that are consecutive in memory, not of axes {axes}",
    "rows.none": "cache_rows needs rows, and the nest reduces nothing",
    "rows.order": "cache_rows needs consecutive elements in a thread: the outermost part of axis "
    "{axis} is thread_x",
    "rows.parts": "cache_rows needs equal parts of a row of {length} elements, and {lanes} threads "
    "have {elements} each",
    "rows.pitch": "parts of {elements} elements in vectors of {inner} are not {pitch} apart",
    "rows.vector": "vectors of {width} elements do not divide rows of {length}",
    "rows.warp": "cache_rows needs a warp of {warp} threads along thread_x, not {threads}",
    "rule.illegal": "schedule rule {rule}: {reason}; the nest has the axes {axes} and computes "
    "{values}",
    "rule.none": "no schedule rule for {target} applies to the nest",
    "storage.input": "the nest has no input {input}; {hint}",
    "storage.missing": "a later stage reads {value}, which has no scope; set_scope gives it one",
    "storage.point": "input {input} is not read at the own point, so no thread has a part of it",
    "storage.reader": "no later stage reads {value}, so that it needs no scope",
    "storage.scope": "{action}: a nest keeps nothing in {scope} memory; register is possible",
    "storage.value": "the nest has no value {value}; {hint}",
    "template.given": "the kernel has the template that was given or measured",
    "tile.along": "input {input} has no consecutive elements along axis {axis}; it has some along "
    "{axes}",
    "tile.axes": "a tile of {sizes} needs a power of two for each of the axes {axes}, and {points} "
    "points, not {chunk}",
    "tile.chunk": "a tile has {chunk} points of axis {axis}, and its parts {count}",
    "tile.composition": "the kernel consists of several loop nests",
    "tile.missing": "axis {axis} has no tile; tile it before it is split",
    "tile.pitch": "rows of {size} elements are not {pitch} apart",
    "tile.reduced": "axis {axis} is reduced; a tile has all of it",
    "tile.rows": "cache_tile needs a nest without reductions, and axis {axis} is reduced",
    "tile.vector": "vectors of {width} elements and {lanes} threads along an axis do not divide a "
    "tile of {sizes}; the threads are a power of two",
    "tile.vector_steps": "vectors of {width} elements of {array} are not aligned to their width: "
    "there are {step} elements from one to the next along axis {axis}",
}
"""The text of each code, with the names of its values in braces."""


@frozen
class Diagnostic:
    """A reason.

    Attributes:
        code: its code, a key of `TEXTS`.
        data: the values of the text by name.
        at: the names of the operators or values that it is about.
    """

    code: str
    data: Mapping[str, Any] = field(factory=dict)
    at: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the text."""
        return TEXTS[self.code].format(**self.data)
