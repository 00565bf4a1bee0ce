"""Templates: how the loops of a kernel are dealt out to blocks, warps and threads, as a text.

    template := schedule+ ;  schedule := IDENT '[' attr (',' attr)* ']' ['S'] ';'
    attr := TYPE | sub ('-' sub)* ;  sub := TYPE '_' INT ;  TYPE := GRID | WARP | CTA | THREAD

    and also, for sizes that only a call knows:  sub := 'GRID_/' INT | 'GRID_~' INT

It is the language of FusionStitching (2019): `reduce_sum_1[GRID_128-WARP_2,WARP,CTA]S;` has an
attribute for each loop of a value. GRID are blocks, WARP rows of a block, CTA its threads, or those
of a warp where one is named, THREAD one after another. A number is how many pieces a level takes,
each of ``ceil(extent / pieces)``; what is left of a numbered loop runs one after another. Blocks of
64 steps each, however many that makes, are ``GRID_/64``, of as many rows as have about 8192 points
together ``GRID_~8192``. S keeps the value for others in the block.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

from attrs import frozen

from passkit.analysis.tilemap import SplitKind, rows_with
from passkit.ast.stage import Level
from passkit.errors import ParseError, ScheduleError, nearest
from passkit.schedule.template_loops import Nest
from passkit.values.size import Extent

WARP_SIZE = 32
LARGEST = 1024
"""The most threads of a block."""


@frozen
class LoopLevel:
    """One level of a loop, and the pieces it cuts it into, or the steps that each of them has.

    Or as many steps as make so many ``points`` with the loops inside. With none of these it takes
    the steps one by one.
    """

    level: Level
    pieces: int | None = None
    chunk: int | None = None
    points: int | None = None

    @property
    def numbered(self) -> bool:
        """Whether something is left for levels further inward."""
        return (self.pieces, self.chunk, self.points) != (None, None, None)

    def steps(self, extent: Extent, inside: Extent = 1) -> Extent:
        """How many steps of a loop a piece has, each of which goes ``inside`` so many points."""
        if self.points is not None:
            return rows_with(self.points, inside)
        if self.pieces is None:
            return 1 if self.chunk is None else self.chunk
        return (extent + (self.pieces - 1)) // self.pieces

    def __str__(self) -> str:
        if self.points is not None:
            return f"{self.level.name}_~{self.points}"
        if self.chunk is not None:
            return f"{self.level.name}_/{self.chunk}"
        return self.level.name if self.pieces is None else f"{self.level.name}_{self.pieces}"


Attr = tuple[LoopLevel, ...]
"""The levels of one loop, outermost first."""


@frozen
class NestPlan:
    """How the loops of one value are dealt out, and whether the block keeps the value."""

    name: str
    attrs: tuple[Attr, ...]
    shared: bool = False

    def part(self, d: int, level: Level) -> LoopLevel | None:
        """What a level takes of loop ``d``, if anything."""
        return next((p for p in self.attrs[d] if p.level is level), None)

    @property
    def grid(self) -> tuple[int, ...]:
        """The loops that are dealt out to blocks."""
        return tuple(d for d in range(len(self.attrs)) if self.part(d, Level.GRID) is not None)

    def __str__(self) -> str:
        attrs = ",".join(shown(a) for a in self.attrs)
        return f"{self.name}[{attrs}]{'S' if self.shared else ''};"


def shown(attr: Attr) -> str:
    """An attribute as the text has it."""
    return "-".join(map(str, attr))


@frozen
class Template:
    """The plan of a kernel: of all its values that have loops, and how it is launched.

    ``cta_num`` is the number of blocks, None for as many as there are pieces; where it is smaller a
    block takes several. ``cta_size`` is the number of threads of a block.
    """

    stages: tuple[NestPlan, ...]
    cta_num: Extent | None = None
    cta_size: int = 256

    def __str__(self) -> str:
        return " ".join(map(str, self.stages))


PIECE = re.compile(r"\s*(?:([A-Za-z_][A-Za-z0-9_.]*(?:[/~][0-9]*)?|[^\s])|$)")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
NUMBER = "0*([1-9][0-9]{0,8})"
PART = re.compile(f"(GRID|WARP|CTA|THREAD)(?:_{NUMBER})?|(GRID)_([/~]){NUMBER}")


def parse_template(text: str, cta_num: Extent | None = None, cta_size: int = 256) -> Template:
    """Read a template; line breaks and blanks between its pieces mean nothing.

    Raises: ParseError with the column, what was expected there, and what was found.
    """
    reader = _Reader(text)
    stages = [reader.nest()]
    while reader.piece:
        stages.append(reader.nest())
    return Template(tuple(stages), cta_num, cta_size)


class _Reader:
    """Goes through a text from left to right; ``piece`` is what comes next, "" at the end."""

    def __init__(self, text: str) -> None:
        self.text, self.end = text, 0
        self.advance()

    def advance(self) -> str:
        """Go past the next piece."""
        last = getattr(self, "piece", "")
        match = PIECE.match(self.text, self.end)
        self.piece = (match.group(1) or "") if match is not None else ""
        self.start = match.start(1) if self.piece and match is not None else len(self.text)
        self.end = self.start + len(self.piece)
        return last

    def fail(self, wanted: str) -> ParseError:
        """What is wrong with the next piece."""
        before = self.text[: self.start]
        line, column = before.count("\n") + 1, self.start - (before.rfind("\n") + 1) + 1
        where = f"line {line}, column {column}" if "\n" in self.text else f"column {column}"
        found = repr(self.piece) if self.piece else "the end"
        return ParseError(f"template, {where}: expected {wanted}, got {found}")

    def expect(self, mark: str, wanted: str) -> None:
        """Go past a mark that must come next."""
        if self.piece != mark:
            raise self.fail(wanted)
        self.advance()

    def accept(self, mark: str) -> bool:
        """Go past a mark if it comes next."""
        if self.piece != mark:
            return False
        self.advance()
        return True

    def nest(self) -> NestPlan:
        """A value's name, its attributes, and whether it is shared."""
        if not NAME.fullmatch(self.piece):
            raise self.fail("the name of a value, such as reduce_sum_1")
        name = self.advance()
        self.expect("[", f"'[' after {name}")
        attrs = [self.attr()]
        while self.accept(","):
            attrs.append(self.attr())
        self.expect("]", "',' or ']' after an attribute")
        shared = self.accept("S")
        self.expect(";", "';'" if shared else "'S' or ';' after ']'")
        return NestPlan(name, tuple(attrs), shared)

    def attr(self) -> Attr:
        """One level with or without a number, or several with one each."""
        parts = [self.sub(several=False)]
        while self.piece == "-":
            if not parts[0].numbered:
                raise self.fail(f"',' or ']' after {parts[0]}, which has no number")
            self.advance()
            parts.append(self.sub(several=True))
        return tuple(parts)

    def sub(self, several: bool) -> LoopLevel:
        """A level; one of several has a number."""
        match = PART.fullmatch(self.piece)
        if match is None or (several and match.lastindex == 1):
            number = " with a number of pieces after '_'" if several or "_" in self.piece else ""
            raise self.fail(f"GRID, WARP, CTA or THREAD{number}")
        self.advance()
        level, pieces, blocks, mark, number = match.groups()
        if blocks is not None:
            own = {"chunk" if mark == "/" else "points": int(number)}
            return LoopLevel(Level[blocks], **own)
        return LoopLevel(Level[level], None if pieces is None else int(pieces))


def check(template: Template, nests: Sequence[Nest], others: Collection[str] = ()) -> None:
    """Check that a template fits a group of these nests; ``others`` are its values without loops.

    Raises: ScheduleError with the value, the loop, what is wrong there, and what is possible.
    """
    if template.cta_size % WARP_SIZE or not 0 < template.cta_size <= LARGEST:
        raise ScheduleError(
            f"a template has blocks of a multiple of {WARP_SIZE} threads up to {LARGEST}, "
            f"got cta_size {template.cta_size}"
        )
    if isinstance(template.cta_num, int) and template.cta_num < 1:
        raise ScheduleError(f"a template has at least one block, got cta_num {template.cta_num}")
    known = {nest.name: nest for nest in nests}
    for name, times in Counter(stage.name for stage in template.stages).items():
        if name not in known:
            raise ScheduleError(_no_such_value(name, known, others))
        if times > 1:
            raise ScheduleError(f"a template has one schedule a value, got {times} of {name}")
    missing = [name for name in known if name not in {s.name for s in template.stages}]
    if missing:
        raise ScheduleError(
            f"a template has a schedule for each value with loops of its own; it lacks "
            f"{', '.join(missing)}"
        )
    for stage in template.stages:
        _check_loops(stage, known[stage.name])
        _check_grid(stage, known[stage.name])


def _no_such_value(name: str, known: Mapping[str, Nest], others: Collection[str]) -> str:
    if name in others:
        return f"{name} is computed where it is read and has no loops; those with: {_list(known)}"
    return f"the group has no value {name!r} with loops; {nearest(name, known)}"


def _list(names: Collection[str]) -> str:
    return ", ".join(names)


def _check_loops(stage: NestPlan, nest: Nest) -> None:
    """Check the rank, the mark S and the order of levels of a nest's template.

    Raises: ScheduleError with the loops of ``nest`` that do not agree.
    """
    if len(stage.attrs) != len(nest.dims):
        raise ScheduleError(
            f"{stage.name} has {len(nest.dims)} loops, {list(nest.dims)}; {stage} has "
            f"{len(stage.attrs)} attributes"
        )
    if stage.shared and not nest.shared:
        raise ScheduleError(f"{stage.name} is kept by {stage} though nothing reads it; drop the S")
    if not stage.shared and not nest.root:
        raise ScheduleError(f"{stage.name} goes nowhere in {stage}; mark it with S, as it is read")
    order = list(Level)
    for attr in stage.attrs:
        levels = [order.index(p.level) for p in attr]
        if any(a >= b for a, b in pairwise(levels)):
            raise ScheduleError(
                f"{stage.name}: the levels of a loop go inward, from GRID over WARP and CTA to "
                f"THREAD, each once; got {shown(attr)}"
            )


def owned_loops(nest: Nest) -> list[int]:
    """The loops that blocks can share out between them: those of more than one step, no fold's."""
    return [d for d in nest.kept if nest.dims[d] != 1 and d not in nest.passed]


def kind_of(stage: NestPlan, nest: Nest) -> SplitKind:
    """ROW where the first loops are dealt out to blocks, or none, COLUMN where the last are.

    Folded ones do not count. Where all are, the one with a number is the innermost.
    """
    loops = owned_loops(nest)
    parts = [part for d in loops if (part := stage.part(d, Level.GRID)) is not None]
    if not parts or stage.part(loops[0], Level.GRID) is None:
        return SplitKind.COLUMN if parts else SplitKind.ROW
    numbered = [p.numbered for p in parts]
    column = len(loops) == len(parts) > 1 and numbered[0] and not any(numbered[1:])
    return SplitKind.COLUMN if column else SplitKind.ROW


def _check_grid(stage: NestPlan, nest: Nest) -> None:
    """Check that a block has consecutive elements, along the first loops or the last ones.

    A reduced loop cannot be distributed over blocks. A value that reduces nothing and that no other
    value reads may be distributed along any loops.

    Raises: ScheduleError with the loop that cannot be.
    """
    for d in stage.grid:
        if d in nest.whole or d in nest.passed:
            verb = "scanned" if d in nest.scanned else "folded"
            raise ScheduleError(
                f"{stage.name}: loop {d} is {verb} and cannot be {shown(stage.attrs[d])}; a block "
                f"has all of it"
            )
    if not nest.shared and not nest.whole:
        return
    row = kind_of(stage, nest) is SplitKind.ROW
    inward = owned_loops(nest) if row else owned_loops(nest)[::-1]
    grid = [k for k, d in enumerate(inward) if d in stage.grid]
    for k in range(grid[-1] if grid else 0):
        d = inward[k]
        part = stage.part(d, Level.GRID)
        if part is None:
            side = "right" if row else "left"
            raise ScheduleError(
                f"{stage.name}: in {stage} a GRID stands {side} of loop {d}, which has none; "
                f"blocks own the first loops or the last"
            )
        if part.numbered and part.pieces != nest.dims[d]:
            raise ScheduleError(
                f"{stage.name}: loop {d} of {nest.dims[d]} is {part}, and loop "
                f"{inward[grid[-1]]} is dealt out, too; write GRID without a number"
            )
