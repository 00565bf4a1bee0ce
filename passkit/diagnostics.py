"""Diagnostics: why something is not possible, or was decided so, with the values it is about.

A diagnostic is a code and the values of its text. Functions return one in place of a result; where
a user must know, an error with its text is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from string import Formatter
from typing import Any

from attrs import field, frozen

from passkit.values.units import bytes_text, seconds_text

TEXTS: dict[str, str] = {
    "action.device": "{action}: on {target} one thread computes a tile, in loops and vectors",
    "axis.closed": "{action}: axis {axis} has no open part, since one took what is left",
    "axis.distributed": "{action}: axis {axis} is tiled or split already",
    "axis.not_adjacent": "axis {inner} is not the next axis of its kind after {outer}: {axes}",
    "axis.several": "axes {axes} are not counted as one; fuse them",
    "axis.size": "{action}: {size} points are not possible; at least 1 is needed",
    "axis.uncovered": "the parts of axis {axis} have {count} points together, of {extent}",
    "axis.unknown": "{action}: the nest has no axis {axis}; {hint}",
    "axis.unknown_rest": "{action}: only a call knows how many of the {extent} steps are left",
    "bind.chunks": "axis {axis} is reduced in chunks; a block goes serially through one",
    "bind.column_rows": "axis {axis} has the part {part}; threads of a column lie along thread_y",
    "bind.columns": "axis {axis} has the part {part}; columns lie along thread_x, and in vectors",
    "bind.fused_vector": "axis {axis} counts several axes, and vectors lie along one",
    "bind.grid": "{action}: the grid follows from the tile; a part is bound to threads or loops",
    "bind.lanes": "{action}: vectors of {target} have {lanes} elements",
    "bind.no_vector": "no axis of {axes} has a vector part",
    "bind.order": "axis {axis} has {parts}; columns are reduced in serial steps, unrolled ones, "
    "and along thread_y",
    "bind.outer": "axis {axis} has the part {part}, and blocks of columns have one point of it",
    "bind.partial_warp": "a block of {threads} threads has a part of a warp of {warp}",
    "bind.points": "axis {axis} has the part {part}; without rows, threads lie along thread_x",
    "bind.power_of_two": "thread_x has {size} threads, which is no power of two",
    "bind.reduced": "axis {axis} is reduced, and has the part {part} in place of thread_x",
    "bind.repeated": "{action}: the axis has a {bind} part already",
    "bind.row_values": "axis {axis} has vectors of row values; only tiles of short rows of one "
    "axis have them",
    "bind.rows": "axis {axis} counts rows and has the part {part}; rows lie along thread_y",
    "bind.serial": "{action}: a serial part takes what is left of a reduced axis; its size is None",
    "bind.serial_rows": "axis {axis} has a serial part, so that {value} does not stay in registers",
    "bind.several_rows": "{rows} rows of {threads} threads in a block; a row of more than {warp} "
    "threads, a warp, has a block of its own",
    "bind.threads": "{threads} threads in a block exceed {limit}",
    "bind.unrolled": "axis {axis} is unrolled; only a last axis of a few elements is, with "
    "vectors along the axis before it",
    "bind.vector_axis": "axis {axis} has the vectors; they lie along the last axis, or along the "
    "one before it with the last one unrolled",
    "bind.vector_inside": "{action}: a vector is the innermost part of an axis",
    "bind.vector_length": "vectors of {width} elements do not divide axis {axis} of {extent}",
    "bind.vector_width": "a vector of {width} elements of {nbytes} bytes is no access: the width "
    "is a power of two, and the bytes are at most {limit}",
    "bind.vectors": "axes {axes} have vectors, and one can",
    "bind.whole": "{action}: a loop takes what is left of an axis; its size is None",
    "block.access": "threads meet in {buffer}, or data says which of its elements they write",
    "block.chunk": "{part} copies {chunk} steps of its operands at a time; a multiple of {width} "
    "is possible, of a product of one head",
    "block.dtype": "{value} is {dtype}; blocks compute matrix products of one dtype, float32 or "
    "float64",
    "block.lanes": "rows of {part} have {lanes} threads; a part of a warp of {warp} is possible",
    "block.order": "a part of the kernel scans, or keeps points of rows along several axes",
    "block.points": "points of {part} have {lanes} threads; a divisor of {most} is possible",
    "block.product": "the tile of {product} is no matrix of known size and strides",
    "block.registers": "no map of the parts fits in the registers of a block",
    "block.rows": "a part of the kernel has no rows of known number and length",
    "block.serial": "{part} keeps points of a row in registers, and a serial loop keeps none",
    "block.step": "{part} adds {step} products in an iteration; all, or a multiple of {width}, are "
    "possible",
    "block.strides": "strides of {buffer} are not known",
    "block.threads": "{part} needs {needed} threads, and a block has {threads}",
    "block.vector": "rows of {part} have vectors of {width} elements; {vector} are possible",
    "cost.apart": "together they take longer than apart",
    "cost.fuel": "one kernel of {operators} would save "
    "{gain:seconds}{measured:measured}{grown:grown}, but nothing was chosen, as fuel is used up",
    "cost.gain": "one kernel of {operators} would save only {gain:seconds} of the {apart:seconds} "
    "of separate kernels{measured:measured}{grown:grown}",
    "cost.others": "one kernel of {operators} would save "
    "{gain:seconds}{measured:measured}{grown:grown}, but others were chosen: {winners}, which save "
    "{winners_gain:seconds}",
    "cost.slower": "one kernel of {operators} would take {loss:seconds} more than the "
    "{apart:seconds} of separate kernels{measured:measured}{grown:grown}",
    "cost.transposed": "the cost model has no estimate for kernels that transpose their inputs",
    "domain.axes": "it reduces other axes than its kernel",
    "domain.elements": "its number of elements differs from the kernel's",
    "domain.extent": "axis {axis} has the extent {extent}; a number is needed",
    "domain.index": "it reads {value} at another index than that of the element it computes",
    "domain.nested_reduction": "its input is already reduced over this axis",
    "domain.nested_scan": "its input is already reduced over the scanned axis",
    "domain.other_chunks": "it reduces other chunks than its kernel",
    "domain.output": "{value} has {count} elements, the kernel's iteration domain {domain}",
    "domain.reduced_shape": "it reduces {shape:shape}, which is not the kernel's iteration domain",
    "domain.reductions": "they reduce over different iteration domains",
    "domain.scan_direction": "another scan of the kernel runs in the opposite direction",
    "domain.scan_directions": "their scans run in different directions",
    "domain.scan_extent": "it scans more elements than the kernel's iteration domain has",
    "domain.scan_nests": "scans have kernels of one iteration domain",
    "domain.shape": "its shape {shape:shape} does not fit the iteration domain {domain:shape}",
    "domain.shapes": "{shape:shape} is not {wanted:shape}",
    "domain.spaces": "the iteration domains {other:shape} and {home:shape} differ",
    "domain.unit_reduction": "it reduces only axes of length 1",
    "domain.unit_scan": "it scans an axis of length 1",
    "domain.value_axes": "{value} reduces other axes than its kernel",
    "domain.value_chunks": "{value} reduces other chunks than its kernel",
    "domain.value_point": "{value} is read at another point than its own",
    "domain.value_reduced": "{value} reduces a value that is already reduced",
    "domain.value_row": "{value} is read at another row than its own",
    "domain.value_scan": "{value} scans in the opposite direction of another scan",
    "domain.value_shape": "{value} reduces {shape:shape}, which is not the kernel's iteration "
    "domain",
    "fuel": "the limit on fusion decisions (fuel) is reached",
    "fused.domain": "one iteration domain",
    "fused.elementwise": "single use, elementwise",
    "fused.gain": "one kernel saves {gain:seconds}{measured:measured}{grown:grown}",
    "fused.joined": "one launch: the last block that stores partial results joins them",
    "fused.keep_together": "keep_together asks for one kernel",
    "fused.packed": "packed into one kernel of {kernels} branches: neither depends on the other",
    "fused.readers": "each kernel that reads it computes it",
    "fused.recomputed": "computed again where it is read, for {nbytes:bytes} less to store",
    "fused.repeated": "repeated where it is read",
    "fused.splits": "their splits agree",
    "fused.strategy": "strategy {strategy!r} has them in one group",
    "fusion.apart": "neither kernel can take in the other",
    "fusion.off": "fusion is 'none'",
    "fusion.strategy": "strategy {strategy!r} has them in two groups",
    "fusion.taken": "it is already in another kernel",
    "graph.control": "a control dependency orders them",
    "graph.control_node": "{node} has control dependences",
    "graph.cycle": "a path through another kernel connects them",
    "graph.cycle_through": "{node} lies between them and is not in the kernel",
    "graph.empty": "it has no elements",
    "graph.empty_member": "one of them has no elements",
    "graph.empty_operand": "it or one of its inputs may have no elements",
    "graph.independent": "neither node depends on the other",
    "graph.multiple_uses": "its value is read {count} times",
    "graph.output": "it is an output of the graph",
    "graph.output_is_input": "an output of the kernel is one of its inputs",
    "graph.repeated_reader": "the kernel repeats an operator that reads it, and so would have to "
    "repeat it, too",
    "graph.state_hazard": "a stitched kernel does not update state in place",
    "group.refused": "{operators} do not form one kernel: {reason}",
    "hint.keep_apart": "the option keep_apart names both",
    "hint.keep_apart_one": "the option keep_apart names it",
    "hint.keep_together": "keep_together names both, but {reason}",
    "hint.no_fuse": "the option no_fuse names one of them",
    "launch.blocks": "{blocks} blocks of {threads} threads on a multiprocessor; 1 to {limit} are "
    "possible",
    "launch.registers": "{blocks} blocks of {threads} threads leave a thread {registers} "
    "registers, and it needs {needed}",
    "limit.arguments": "a kernel has at most {limit} arguments",
    "limit.buffers": "a kernel has at most {limit} inputs",
    "limit.length": "repeated in each kernel that reads it, it has more than {limit} terms",
    "limit.light_ops": "a group has at most {limit} operators, or {light} light ones",
    "limit.ops": "a group has at most {limit} operators",
    "limit.pack_ops": "a packed kernel has at most {limit} operators",
    "limit.registers": "a thread holds elements in {count} registers, and {limit} are possible",
    "limit.unroll": "{count} operations in an unrolled loop exceed {limit}",
    "memory.arrays": "its arrays take {need} bytes of shared memory a tile, above {limit}",
    "memory.guessed": "its arrays take at least {need} bytes of shared memory a tile ({guess} "
    "where unknown sizes are {size}), above {limit}",
    "memory.least": "its arrays take at least {need} bytes of shared memory a tile, above {limit}",
    "memory.nests": "no tiling of its results fits all its loop nests",
    "memory.shared": "{nbytes} bytes of shared memory in a block exceed {limit}",
    "memory.template": "a tile needs {need} bytes of scratch, and there are {limit}; give blocks "
    "fewer rows or columns",
    "memory.unknown": "a tile needs {need} bytes of scratch, and {target} has as much as its "
    "source says; give {sizes} a number",
    "op.call": "the TOpPattern of {op} is OPAQUE: a library call computes it, and the call takes "
    "in no other operator",
    "op.code": "{op} has no FCodeGen, FElement, FReduce or FScan",
    "op.complex": "kernels do not compute with {dtype}",
    "op.composite": "{op} is a composite that stays whole: FExpand gives nothing for this node, or "
    "the fusion strategy keeps it",
    "op.constant_operand": "{op} reads a constant, which has no address",
    "op.dtype": "kernels do not compute with {dtype}",
    "op.expensive": "it is expensive, and each kernel that reads it would compute it",
    "op.host": "{reader} reads it and runs outside of kernels",
    "op.host_library": "the TOpPattern of {op} is OPAQUE: {library} computes it",
    "op.host_program": "the TOpPattern of {op} is OPAQUE: it runs programs of the graphs that it "
    "holds",
    "op.kernel": "{op} of {count} inputs has a kernel of its own (FKernel)",
    "op.large_product": "a product of {steps} steps is left to a library",
    "op.leaf": "it is an input or constant",
    "op.library": "a library call computes {op}, and the call takes in no other operator",
    "op.marked": "the TOpPattern of {op} is OPAQUE",
    "op.no_library": "no library computes {op} of {dtype}",
    "op.pattern": "{op} is not elementwise",
    "op.reduction": "a reduction is the last operator of its kernel",
    "op.removed": "passes before Fusion took it away",
    "op.results": "{op} has {count} results",
    "op.scan": "{op} is a scan, which a nest in registers does not compute",
    "op.state": "{op} reads or writes state",
    "op.target_scan": "kernels of target {target} have no scans",
    "op.ungrouped": "it is in no group",
    "op.unplanned": "the planner has made no kernel for it",
    "pack.arguments": "{parts} parts have {count} arguments together, which exceed {limit}",
    "pack.dependence": "one depends on the other",
    "pack.nests": "{node} has several loop nests or phases; packed kernels have one",
    "pack.part": "part {part} has no schedule of a nest: {reason}",
    "pack.part_nests": "one of its parts has several loop nests",
    "pack.registers": "part {part} counts on {own} threads on a multiprocessor, and the kernel has "
    "{all}",
    "pack.target": "kernels of target {target} have one loop nest each",
    "pack.threads": "part {part} has blocks of {threads} threads, of which a block of {all} has no "
    "whole number, or which are no whole warps",
    "phase.order": "it needs a value that a later phase computes",
    "phase.repeated_reduction": "{value} would be reduced in two phases; make it a result",
    "recompute.followed": "a result lies as {value} does",
    "recompute.operand": "{reader} reads {operand} where it lies",
    "recompute.readers": "the kernels that read {value} compute it again",
    "recompute.value": "{value} is no value of each point, and cannot be computed again",
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
    "storage.mixed": "{value} stays in registers and {other} does not; all values between "
    "stages do, or none",
    "storage.output": "{action}: values lie in outputs where they fit; shared and register are "
    "possible",
    "storage.point": "input {input} is not read at the own point, so no thread has a part of it",
    "storage.reader": "no later stage reads {value}, so that it needs no scope",
    "storage.registers": "{value} cannot stay in registers: that needs short rows of known "
    "length, one after the other, and no scan from their ends",
    "storage.scope": "{action}: a nest keeps nothing in {scope} memory; register is possible",
    "storage.value": "the nest has no value {value}; {hint}",
    "template.loop_nests": "kernels on {target} are loop nests, which templates do not describe; "
    "give the text of a schedule",
    "template.nests": "no text describes the schedule of a kernel of this kind, {composition}: it "
    "has several loop nests, or phases",
    "template.none": "no kernel of it has {asked} here; one like it has {possible}",
    "template.unknown_size": "a tile of {size} lanes has no known size; write GRID_/N",
    "tile.along": "input {input} has no consecutive elements along axis {axis}; it has some along "
    "{axes}",
    "tile.axes": "a tile of {sizes} needs a power of two for each of the axes {axes}, and {points} "
    "points, not {chunk}",
    "tile.block_axis": "a tile has several points of the axes {axis} and {vector_axis}, but no "
    "input is consecutive along {axis}",
    "tile.blocks": "it has no split into {blocks} blocks",
    "tile.chunk": "a tile has {chunk} points of axis {axis}, and its parts {count}",
    "tile.composition": "the kernel consists of several loop nests",
    "tile.conflict": "{value} is needed as {state} by {user} and as {other_state} by {other_user}",
    "tile.count": "{value} has {blocks} blocks, {other} has {other_blocks}",
    "tile.empty": "{value} has no elements",
    "tile.empty_shape": "{shape:shape} may have no elements, for all that is known",
    "tile.larger": "each tile needs more of it than the part that the tile writes",
    "tile.missing": "axis {axis} has no tile; tile it before it is split",
    "tile.no_common_count": "{values} have no number of blocks in common",
    "tile.no_split": "it has no split",
    "tile.none_left": "no split is left",
    "tile.number": "{action}: a tile has a known number of points of this axis",
    "tile.one_step": "a tile has one point of axis {axis}; tile it with 1",
    "tile.operator": "{value} rejects {state}: {reason}",
    "tile.parts": "a tile needs another part of {value} than of {other}, which are computed "
    "together",
    "tile.pitch": "rows of {size} elements are not {pitch} apart",
    "tile.product": "a product is cut into rows, or into columns, not into both",
    "tile.reduced": "axis {axis} is reduced; a tile has all of it",
    "tile.reduced_chunks": "{value} is reduced in chunks",
    "tile.refused": "FSchedule of {op} refuses: {reason}",
    "tile.repeated": "each block would compute {count} elements of it by itself",
    "tile.rows": "cache_tile needs a nest without reductions, and axis {axis} is reduced",
    "tile.short_axis": "axis {axis} has {extent} points, and a tile {chunk}; it needs all of so "
    "few",
    "tile.single_column": "a tile has only one column of {value}",
    "tile.unknown_reads": "what an element of {op} reads is not known; set FSchedule on it",
    "tile.value_blocks": "{value} has no split into {blocks} blocks",
    "tile.vector": "vectors of {width} elements and {lanes} threads along an axis do not divide a "
    "tile of {sizes}; the threads are a power of two",
    "tile.vector_steps": "vectors of {width} elements of {array} are not aligned to their width: "
    "there are {step} elements from one to the next along axis {axis}",
    "tile.whole": "{value} is needed as {state} by {user} in each of {blocks} blocks, and each "
    "element of a result is written by one",
    "tile.window_axis": "no axis of {value} runs along the part of it that a tile has",
    "tile.window_elements": "{value} has no element in the parts that tiles have",
    "tile.window_reader": "{value} is read by other tiles than those that compute it",
    "tile.window_rows": "a tile has a window of an axis inside its rows",
}
"""The text of each code, with the names of its values in braces.

A value may have one of the formats of `FORMATS` behind a colon.
"""

WAYS_OUT: dict[str, str] = {
    "cost.apart": "keep_together=[[{producer!r}, {consumer!r}]]",
    "cost.fuel": "keep_together=[[{producer!r}, {consumer!r}]]",
    "cost.gain": "keep_together=[[{producer!r}, {consumer!r}]]",
    "cost.others": "keep_together=[[{producer!r}, {consumer!r}]]",
    "cost.slower": "keep_together=[[{producer!r}, {consumer!r}]]",
    "domain.shapes": "fusion='stitch'",
    "fuel": "raise fuel",
    "fusion.off": "fusion='stitch'",
    "graph.independent": "keep_together=[[{producer!r}, {consumer!r}]] packs them into one kernel "
    "if possible",
    "graph.multiple_uses": "fusion='stitch'",
    "graph.output": "fusion='stitch'",
    "group.refused": "{reason.way_out}",
    "hint.keep_apart": "take them out of keep_apart",
    "hint.keep_apart_one": "drop the hint",
    "hint.keep_together": "{reason.way_out}",
    "hint.no_fuse": "take it out of no_fuse",
    "op.code": "set FCodeGen on {op} (or FElement, FReduce, FScan, FExpand), and kernels compute "
    "it",
    "op.complex": "compute with its real and imaginary parts",
    "op.composite": "choose fusion='stitch', or let its FExpand cover this case",
    "op.dtype": "cast it to a dtype that kernels have, such as float32",
    "op.expensive": "fusion='stitch'",
    "op.marked": "set another TOpPattern on {op}, if kernels may compute it",
    "op.no_library": "cast it to float32, or choose fusion='stitch', which expands it",
    "op.pattern": "fusion='stitch'",
    "op.reduction": "fusion='stitch'",
    "op.results": "set FExpand on {op}: operators of one result each",
}
"""The way out of a user, for the codes that have one."""


def _shape_text(shape: Sequence[object]) -> str:
    """Return a shape in parentheses, such as ``(n, 512)`` or ``(3,)``."""
    return f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"


FORMATS: dict[str, Callable[[Any], str]] = {
    "bytes": bytes_text,
    "grown": lambda nbytes: f", with {bytes_text(nbytes)} more memory at the peak" * bool(nbytes),
    "measured": lambda measured: ", as measured" * measured,
    "seconds": seconds_text,
    "shape": _shape_text,
}
"""How values become text: bytes and seconds with units; shapes; the memory that a kernel needs more
at the peak, and whether its seconds were measured, as clauses that are empty where that is not so.
"""


class _TextFormatter(Formatter):
    """Formats texts with `FORMATS`."""

    def format_field(self, value: Any, format_spec: str) -> str:
        """Return a value as text."""
        return str(FORMATS[format_spec](value) if format_spec else value)


_formatter = _TextFormatter()


@frozen
class Diagnostic:
    """A reason.

    Attributes:
        code: its code, a key of `TEXTS`.
        data: the values of the text by name; another diagnostic may be one of them.
        at: the names of the operators or values that it is about.
    """

    code: str
    data: Mapping[str, Any] = field(factory=dict, hash=False)
    at: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the text."""
        return _formatter.vformat(TEXTS[self.code], (), self.data)

    @property
    def way_out(self) -> str:
        """Return what a user can do about it, "" if there is nothing to say."""
        return _formatter.vformat(WAYS_OUT.get(self.code, ""), (), self.data)

    @property
    def causes(self) -> tuple[Diagnostic, ...]:
        """Return this reason, the one that it quotes, and so on."""
        inner = self.data.get("reason")
        return (self, *(inner.causes if isinstance(inner, Diagnostic) else ()))
