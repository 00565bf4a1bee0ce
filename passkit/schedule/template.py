"""Templates: texts that say how the loops of a kernel are distributed over blocks and threads.

    template := schedule+ ;  schedule := IDENT '[' attr (',' attr)* ']' ['S'] ';'
    attr := TYPE | sub ('-' sub)* ;  sub := TYPE '_' INT ;  TYPE := GRID | WARP | CTA | THREAD

and, for sizes that are known at the call only:

    sub := 'GRID_/' INT | 'GRID_~' INT

A schedule such as `reduce_sum_1[GRID_128-WARP_2,WARP,CTA]S;` has an attribute for each loop of a
value. GRID stands for blocks, WARP for the rows of a block, CTA for the threads of a block, or of a
warp if there is one, and THREAD for iterations one after another. A number n means n chunks of
``ceil(extent / n)`` iterations each; iterations that no level takes run one after another.
``GRID_/64`` means chunks of 64 iterations, ``GRID_~8192`` as many rows as have about 8192 points.
S marks a value that the block keeps for other values.

Source: FusionStitching (2019).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import pairwise

from attrs import frozen

from passkit.analysis.tilemap import SplitKind, rows_with
from passkit.ast.stage import Level
from passkit.errors import ParseError, ScheduleError, nearest
from passkit.schedule.template_loops import ValueLoops
from passkit.values.size import Extent

WARP_SIZE = 32
"""The threads of a warp in templates."""

MAX_BLOCK_SIZE = 1024
"""The most threads of a block."""


@frozen
class LoopLevel:
    """One level of a loop.

    At most one of the numbers is given. Without any, the level takes all iterations.

    Attributes:
        level: the blocks or threads that share the iterations.
        pieces: the number of chunks that the iterations are divided into.
        chunk: the iterations of a chunk.
        points: the points of a chunk, with those of the loops inside.
    """

    level: Level
    pieces: int | None = None
    chunk: int | None = None
    points: int | None = None

    @property
    def numbered(self) -> bool:
        """Whether the level has a number, so that other levels can follow."""
        return (self.pieces, self.chunk, self.points) != (None, None, None)

    def steps(self, extent: Extent, row_points: Extent = 1) -> Extent:
        """Return the iterations of a chunk of a loop.

        Args:
            extent: the iterations of the loop.
            row_points: the points of one iteration, with those of the loops inside.
        """
        if self.points is not None:
            return rows_with(self.points, row_points)
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
class ValueTemplate:
    """The distribution of the loops of one value.

    Attributes:
        name: the name of the value.
        attrs: the levels of each loop, outermost first.
        shared: whether the block keeps the value for others.
    """

    name: str
    attrs: tuple[Attr, ...]
    shared: bool = False

    def part(self, d: int, level: Level) -> LoopLevel | None:
        """Return the level of loop ``d`` of this type; None if there is none."""
        return next((p for p in self.attrs[d] if p.level is level), None)

    @property
    def grid(self) -> tuple[int, ...]:
        """The loops that are distributed over blocks."""
        return tuple(d for d in range(len(self.attrs)) if self.part(d, Level.GRID) is not None)

    def __str__(self) -> str:
        attrs = ",".join(attr_text(a) for a in self.attrs)
        return f"{self.name}[{attrs}]{'S' if self.shared else ''};"


def attr_text(attr: Attr) -> str:
    """Return the text of the levels of one loop."""
    return "-".join(map(str, attr))


@frozen
class Template:
    """The distribution of the loops of a kernel, and its launch.

    Attributes:
        values: the templates of all values with loops.
        cta_num: the number of blocks, which take several chunks each if it is smaller than their
            number; None for one block per chunk.
        cta_size: the threads of a block.
    """

    values: tuple[ValueTemplate, ...]
    cta_num: Extent | None = None
    cta_size: int = 256

    def __str__(self) -> str:
        return " ".join(map(str, self.values))


TOKEN = re.compile(r"\s*(?:([A-Za-z_][A-Za-z0-9_.]*(?:[/~][0-9]*)?|[^\s])|$)")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
NUMBER = "0*([1-9][0-9]{0,8})"
LEVEL = re.compile(f"(GRID|WARP|CTA|THREAD)(?:_{NUMBER})?|(GRID)_([/~]){NUMBER}")


@frozen
class ScheduleText:
    """A schedule that is given in place of a template: a text in the grammar of schedules.

    `passkit.schedule.text` describes the grammar. A text is read when its loop nest is known.
    """

    text: str

    def __str__(self) -> str:
        return self.text


def parse_choice(text: str) -> Template | ScheduleText:
    """Return what a text of the option ``templates`` gives: a schedule, or a template.

    Raises: ParseError for a text that is neither.
    """
    is_schedule = text.split(maxsplit=1)[:1] == ["schedule"]
    return ScheduleText(text) if is_schedule else parse_template(text)


def parse_template(text: str, cta_num: Extent | None = None, cta_size: int = 256) -> Template:
    """Return the template of a text; white space between tokens has no meaning.

    Args:
        text: the text.
        cta_num: the number of blocks; None for one per chunk.
        cta_size: the threads of a block.

    Raises: ParseError with the column, the expected token and the given one.
    """
    reader = _Reader(text)
    values = [reader.value()]
    while reader.token:
        values.append(reader.value())
    return Template(tuple(values), cta_num, cta_size)


class _Reader:
    """A recursive-descent parser of templates; ``token`` is the next token, "" at the end."""

    def __init__(self, text: str) -> None:
        self.text, self.end = text, 0
        self.token = ""
        self.advance()

    def advance(self) -> str:
        """Return the next token and read the one behind it."""
        last = self.token
        match = TOKEN.match(self.text, self.end)
        self.token = (match.group(1) or "") if match is not None else ""
        self.start = match.start(1) if self.token and match is not None else len(self.text)
        self.end = self.start + len(self.token)
        return last

    def error(self, expected: str) -> ParseError:
        """Return an error about the next token, which names what was expected."""
        before = self.text[: self.start]
        line, column = before.count("\n") + 1, self.start - (before.rfind("\n") + 1) + 1
        where = f"line {line}, column {column}" if "\n" in self.text else f"column {column}"
        token = repr(self.token) if self.token else "the end"
        return ParseError(f"template, {where}: expected {expected}, got {token}")

    def expect(self, mark: str, expected: str) -> None:
        """Read a mark, which an error describes as ``expected``.

        Raises: ParseError if another token comes next.
        """
        if self.token != mark:
            raise self.error(expected)
        self.advance()

    def accept(self, mark: str) -> bool:
        """Read a mark if it comes next, and return whether it does."""
        if self.token != mark:
            return False
        self.advance()
        return True

    def value(self) -> ValueTemplate:
        """Return the template of one value.

        Raises: ParseError for a token that the grammar does not allow.
        """
        if not NAME.fullmatch(self.token):
            raise self.error("the name of a value, such as reduce_sum_1")
        name = self.advance()
        self.expect("[", f"'[' after {name}")
        attrs = [self.attr()]
        while self.accept(","):
            attrs.append(self.attr())
        self.expect("]", "',' or ']' after an attribute")
        shared = self.accept("S")
        self.expect(";", "';'" if shared else "'S' or ';' after ']'")
        return ValueTemplate(name, tuple(attrs), shared)

    def attr(self) -> Attr:
        """Return the levels of a loop: one with or without a number, or several with numbers.

        Raises: ParseError for a token that the grammar does not allow.
        """
        levels = [self.level(needs_number=False)]
        while self.token == "-":
            if not levels[0].numbered:
                raise self.error(f"',' or ']' after {levels[0]}, which has no number")
            self.advance()
            levels.append(self.level(needs_number=True))
        return tuple(levels)

    def level(self, needs_number: bool) -> LoopLevel:
        """Return one level, which one of several levels of a loop needs a number for.

        Raises: ParseError if the next token is no level, or lacks its number.
        """
        match = LEVEL.fullmatch(self.token)
        if match is None or (needs_number and match.lastindex == 1):
            has_mark = needs_number or "_" in self.token
            number = " with a number of pieces after '_'" if has_mark else ""
            raise self.error(f"GRID, WARP, CTA or THREAD{number}")
        self.advance()
        level, pieces, grid, mark, number = match.groups()
        if grid is not None:
            size = {"chunk" if mark == "/" else "points": int(number)}
            return LoopLevel(Level[grid], **size)
        return LoopLevel(Level[level], None if pieces is None else int(pieces))


def check(template: Template, values: Sequence[ValueLoops], others: Collection[str] = ()) -> None:
    """Check that a template fits the loops of a group.

    Args:
        template: the template.
        values: the values of the group with loops.
        others: the names of its values without loops.

    Raises: ScheduleError with the value, the loop, the fault and the way out.
    """
    if template.cta_size % WARP_SIZE or not 0 < template.cta_size <= MAX_BLOCK_SIZE:
        raise ScheduleError(
            f"a template has blocks of a multiple of {WARP_SIZE} threads up to {MAX_BLOCK_SIZE}, "
            f"got cta_size {template.cta_size}"
        )
    if isinstance(template.cta_num, int) and template.cta_num < 1:
        raise ScheduleError(f"a template has at least one block, got cta_num {template.cta_num}")
    loops = {value.name: value for value in values}
    for name, times in Counter(value.name for value in template.values).items():
        if name not in loops:
            raise ScheduleError(_no_such_value(name, loops, others))
        if times > 1:
            raise ScheduleError(f"a template has one schedule a value, got {times} of {name}")
    missing = [name for name in loops if name not in {v.name for v in template.values}]
    if missing:
        raise ScheduleError(
            f"a template has a schedule for each value with loops of its own; it lacks "
            f"{', '.join(missing)}"
        )
    for value in template.values:
        _check_levels(value, loops[value.name])
        _check_grid(value, loops[value.name])


def _no_such_value(name: str, loops: Collection[str], others: Collection[str]) -> str:
    """Return the message for a name that is not among the values with ``loops``."""
    if name in others:
        return (
            f"{name} is computed where it is read and has no loops; those with: {', '.join(loops)}"
        )
    return f"the group has no value {name!r} with loops; {nearest(name, loops)}"


def _check_levels(template: ValueTemplate, value: ValueLoops) -> None:
    """Check the number of loops, the mark S and the order of levels of a value's template.

    Raises: ScheduleError with the loops of ``value`` that do not agree.
    """
    name = template.name
    if len(template.attrs) != len(value.extents):
        raise ScheduleError(
            f"{name} has {len(value.extents)} loops, {list(value.extents)}; {template} has "
            f"{len(template.attrs)} attributes"
        )
    if template.shared and not value.shared:
        raise ScheduleError(f"{name} is marked S in {template} though nothing reads it; drop the S")
    if not template.shared and not value.is_output:
        raise ScheduleError(f"{name} is no output in {template}; mark it with S, as it is read")
    order = list(Level)
    for attr in template.attrs:
        levels = [order.index(p.level) for p in attr]
        if any(a >= b for a, b in pairwise(levels)):
            raise ScheduleError(
                f"{name}: the levels of a loop go inward, from GRID over WARP and CTA to "
                f"THREAD, each once; got {attr_text(attr)}"
            )


def distributable_loops(value: ValueLoops) -> list[int]:
    """Return the loops that can be distributed over blocks.

    They have more than one iteration, and no value of the kernel is reduced over them.
    """
    return [
        d for d in value.unreduced if value.extents[d] != 1 and d not in value.reduced_by_others
    ]


def split_kind_of(template: ValueTemplate, value: ValueLoops) -> SplitKind:
    """Return whether blocks have rows or columns of a value.

    Returns: ROW if the first loops, or none, are distributed over blocks, COLUMN if the last are.
    If all are, the one with a number is the innermost.
    """
    loops = distributable_loops(value)
    levels = [level for d in loops if (level := template.part(d, Level.GRID)) is not None]
    if not levels or template.part(loops[0], Level.GRID) is None:
        return SplitKind.COLUMN if levels else SplitKind.ROW
    numbered = [level.numbered for level in levels]
    is_column = len(loops) == len(levels) > 1 and numbered[0] and not any(numbered[1:])
    return SplitKind.COLUMN if is_column else SplitKind.ROW


def _check_grid(template: ValueTemplate, value: ValueLoops) -> None:
    """Check that the first or the last loops of a value are distributed over blocks.

    Reduced and scanned loops cannot be. A value that reduces nothing and that no other value reads
    may have any loops distributed.

    Raises: ScheduleError with the loop that cannot be distributed.
    """
    name = template.name
    for d in template.grid:
        if d in value.carried or d in value.reduced_by_others:
            verb = "scanned" if d in value.scanned else "reduced"
            raise ScheduleError(
                f"{name}: loop {d} is {verb} and cannot be {attr_text(template.attrs[d])}; a block "
                f"has all of it"
            )
    if not value.shared and not value.carried:
        return
    is_row = split_kind_of(template, value) is SplitKind.ROW
    inward = distributable_loops(value) if is_row else distributable_loops(value)[::-1]
    grid = [k for k, d in enumerate(inward) if d in template.grid]
    for k in range(grid[-1] if grid else 0):
        d = inward[k]
        level = template.part(d, Level.GRID)
        if level is None:
            side = "right" if is_row else "left"
            raise ScheduleError(
                f"{name}: in {template} a GRID stands {side} of loop {d}, which has none; "
                f"blocks own the first loops or the last"
            )
        if level.numbered and level.pieces != value.extents[d]:
            raise ScheduleError(
                f"{name}: loop {d} of {value.extents[d]} is {level}, and loop {inward[grid[-1]]} "
                f"is distributed, too; write GRID without a number"
            )
