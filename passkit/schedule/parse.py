"""parse_schedule: reads a schedule from its text, whose grammar is in `passkit.schedule.text`.

A text is read into actions, which are carried out one by one, so that a reason why one is not legal
has the line and column of its item.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NoReturn

from attrs import frozen

from passkit.diagnostics import Diagnostic
from passkit.errors import ScheduleError, nearest
from passkit.ir.loop import Bind, StorageScope
from passkit.schedule.actions import (
    Action,
    CacheRead,
    CacheRows,
    CacheTile,
    Fuse,
    LaunchBlocks,
    Recompute,
    SetScope,
    SplitAxis,
    Tile,
)
from passkit.schedule.apply import ScheduleBuilder
from passkit.schedule.loop_nest import NEST, AxisRole, LoopNest
from passkit.schedule.nest import NestSchedule
from passkit.schedule.schedule import StagePlan
from passkit.schedule.text import stage_text
from passkit.target import Target

_TOKEN = re.compile(r"(?P<space>\s+|#[^\n]*)|(?P<token>\d+x\d+|->|//|[A-Za-z_][\w.]*|\d+|.)")
_PART = re.compile(r"(thread_y|thread_x|serial|unroll|vector)(?:_(\d+))?")
_SCOPES = tuple(s.value for s in StorageScope)


@frozen
class ScheduleToken:
    """A word, number or sign, and where it begins. The last token of a text is empty."""

    text: str
    line: int
    column: int


def parse_schedule(text: str, nest: LoopNest, target: Target) -> NestSchedule:
    """Return the schedule that a text describes.

    Args:
        text: the text, in the grammar of `passkit.schedule.text`.
        nest: the nest that it is a schedule of.
        target: the GPU that it is for.

    Raises: ScheduleError with line and column if the text does not follow the grammar, names what
    the nest does not have, or describes a schedule that is not legal.
    """
    return ScheduleParser(text, nest, target).schedule()


def _tokens(text: str) -> list[ScheduleToken]:
    """Return the tokens of a text, and an empty one at its end."""
    tokens = []
    line, begin = 1, 0
    for match in _TOKEN.finditer(text):
        if match["token"]:
            tokens.append(ScheduleToken(match["token"], line, match.start() - begin + 1))
        newlines = match[0].count("\n")
        if newlines:
            line, begin = line + newlines, match.start() + match[0].rindex("\n") + 1
    return [*tokens, ScheduleToken("", line, len(text) - begin + 1)]


class ScheduleParser:
    """A text that is being read, and the schedule that is made of it.

    Attributes:
        ITEMS: the words that items of a tile begin with; each has a method ``_WORD_item``.
    """

    ITEMS: tuple[str, ...] = (
        "map",
        "cache_read",
        "cache_rows",
        "cache_tile",
        "recompute",
        "in",
        "stage",
    )

    def __init__(self, text: str, nest: LoopNest, target: Target) -> None:
        self.tokens, self.at = _tokens(text), 0
        self.target = target
        self.begin(nest, NEST)

    def begin(self, nest: LoopNest, name: str) -> None:
        """Let what is read next be the schedule of a nest, which is called ``name`` there."""
        self.nest, self.name = nest, name
        self.builder = self.new_builder()
        self.stages = 0

    def new_builder(self) -> Any:
        """Return the builder of the schedule that is read next."""
        return ScheduleBuilder(self.nest, self.target)

    @property
    def expected_stages(self) -> tuple[StagePlan, ...]:
        """The stages that the text must have."""
        return self.nest.stage_plan(None, frozenset(self.builder.recomputed))[0]

    # Tokens.

    @property
    def token(self) -> ScheduleToken:
        """Return the token that is to be read next."""
        return self.tokens[self.at]

    def _refuse(self, message: str, token: ScheduleToken | None = None) -> NoReturn:
        """Raise a ScheduleError at a token, by default the next one."""
        token = token or self.token
        raise ScheduleError(f"schedule: line {token.line}, column {token.column}: {message}")

    def _next(self) -> str:
        """Read a token and return its text."""
        text = self.token.text
        self.at += text != ""
        return text

    def _takes(self, text: str) -> bool:
        """Read the next token if it has this text, and return whether it has."""
        if self.token.text != text:
            return False
        self.at += 1
        return True

    def _expect(self, *texts: str) -> None:
        """Read tokens of these texts."""
        for text in texts:
            if not self._takes(text):
                self._refuse(f"{text!r} is needed, got {self.token.text or 'the end'!r}")

    def _word(self, need: str) -> str:
        """Read a name; ``need`` says of what."""
        if not re.fullmatch(r"[A-Za-z_][\w.]*", self.token.text):
            self._refuse(f"a name ({need}) is needed, got {self.token.text or 'the end'!r}")
        return self._next()

    def _known(self, need: str, names: Iterable[str]) -> str:
        """Read one of some names; ``need`` says of what."""
        token, name = self.token, self._word(need)
        names = list(names)
        if name not in names:
            self._refuse(f"there is no {need} {name!r}; {nearest(name, names)}", token)
        return name

    def _number(self) -> int:
        """Read a number."""
        if not self.token.text.isdecimal():
            self._refuse(f"a number is needed, got {self.token.text or 'the end'!r}")
        return int(self._next())

    def _names(self, need: str, names: Iterable[str]) -> list[str]:
        """Read names of a list that are separated by commas."""
        names = list(names)
        values = [self._known(need, names)]
        while self._takes(","):
            values.append(self._known(need, names))
        return values

    def _do(self, action: Action, token: ScheduleToken) -> None:
        """Carry an action out, which stands at a token."""
        problem = self.builder.do(action)
        if problem is not None:
            self._refuse(str(problem), token)

    # The grammar.

    def schedule(self) -> NestSchedule:
        """Read all of the text."""
        self._head()
        threads, blocks = self._launch()
        self._do(LaunchBlocks(int(blocks.text)), blocks)
        self._expect("{", "nest", NEST)
        self._axes()
        self._values()
        self._tile()
        self._expect("}")
        self._end()
        return self._finished(threads, self.tokens[0])

    def _head(self) -> None:
        """Read the name of the schedule, and the target."""
        self._expect("schedule")
        self._word("operator")
        self._expect("for")
        if self._word("target") != self.target.name:
            self._refuse(f"the target is {self.target.name}", self.tokens[self.at - 1])

    def _launch(self) -> tuple[ScheduleToken, ScheduleToken]:
        """Read the threads of a block, and the blocks of a multiprocessor."""
        self._expect("threads")
        threads = self.token
        if not re.fullmatch(r"\d+x\d+", threads.text):
            self._refuse(f"threads YxX are needed, got {threads.text or 'the end'!r}")
        self._next()
        self._expect("blocks")
        blocks = self.token
        self._number()
        return threads, blocks

    def _end(self) -> None:
        """Read the end of the text."""
        if self.token.text:
            self._refuse(f"the schedule ends before {self.token.text!r}")

    def _finished(self, threads: ScheduleToken, begin: ScheduleToken) -> NestSchedule:
        """Return the schedule of the nest, which has ``threads`` and stands at ``begin``."""
        schedule = self.builder.schedule()
        if isinstance(schedule, Diagnostic):
            self._refuse(str(schedule), begin)
        assert isinstance(schedule, NestSchedule)
        launch = f"{schedule.launch.y}x{schedule.launch.x}"
        if launch != threads.text:
            self._refuse(f"the maps have {launch} threads, not {threads.text}", threads)
        return schedule

    def _axes(self) -> None:
        """Read the axes of the nest, which must be those of the operators."""
        self._section("(" + ", ".join(map(str, self.nest.axes)) + ")", "axes")

    def _values(self) -> None:
        """Read the values of the nest, which must be those of the operators."""
        self._expect(":")
        self._section(", ".join(self.nest.values), "values")

    def _section(self, text: str, what: str) -> None:
        """Read tokens that must be those of a text; ``what`` names it in a message."""
        for token in _tokens(text)[:-1]:
            if not self._takes(token.text):
                needed, got = token.text, self.token.text or "the end"
                self._refuse(f"the nest has the {what} {text}; {needed!r} is needed, got {got!r}")

    def _axis(self) -> tuple[str, ScheduleToken]:
        """Read an axis, or several that are counted as one."""
        token = self.token
        names = [n for role in AxisRole for n in self.nest.axis_names(role)]
        parts = [self._known("axis", names)]
        while self._takes("*"):
            parts.append(self._known("axis", names))
        axis = parts[0]
        for part in parts[1:]:
            fused = f"{axis}*{part}"
            if not any(f"{a.name}*".startswith(f"{fused}*") for a in self.builder.axes):
                self._do(Fuse(axis, part), token)
            axis = fused
        return axis, token

    def _tile(self) -> None:
        """Read the tile with its items."""
        self._expect("tile", self.name, "[")
        while True:
            axis, token = self._axis()
            self._expect("/")
            self._do(Tile(axis, self._number()), token)
            if not self._takes(","):
                break
        self._takes("row")
        self._expect("]", "{")
        while not self._takes("}"):
            token = self.token
            word = self._known("item", self.ITEMS)
            getattr(self, f"_{word}_item")(token)
        if self.stages != len(self.expected_stages):
            message = f"the nest has {len(self.expected_stages)} stages, got {self.stages}"
            self._refuse(message, self.tokens[self.at - 1])

    def _map_item(self, _: ScheduleToken) -> None:
        """Read how the points of axes are distributed."""
        self._expect(self.name)
        while True:
            axis, token = self._axis()
            self._expect("=")
            parts = [self._part()]
            while self._takes("-"):
                parts.append(self._part())
            for bind, size in reversed(parts):
                self._do(SplitAxis(axis, size, bind), token)
            if not self._takes(";"):
                return

    def _part(self) -> tuple[Bind, int | None]:
        """Read a part of an axis map."""
        token = self.token
        word = self._word("part")
        match = _PART.fullmatch(word)
        if match is None:
            binds = [b.value for b in Bind if b is not Bind.GRID]
            self._refuse(f"there is no part {word!r}; {nearest(word, binds)}", token)
        return Bind(match[1]), None if match[2] is None else int(match[2])

    def _scope(self) -> StorageScope:
        """Read a scope."""
        return StorageScope(self._known("scope", _SCOPES))

    def _cache_read_item(self, token: ScheduleToken) -> None:
        """Read an input that is loaded first."""
        name = self._known("input", self.nest.inputs)
        self._expect("in")
        self._do(CacheRead(name, self._scope()), token)

    def _cache_rows_item(self, token: ScheduleToken) -> None:
        """Read how short rows move through shared memory."""
        self._expect("vector")
        vector = self._number()
        self._expect("pitch")
        self._do(CacheRows(vector, self._number()), token)

    def _cache_tile_item(self, token: ScheduleToken) -> None:
        """Read the tile in which inputs are loaded along their own axes."""
        sizes = [self._number()]
        while self.token.text != "lanes":
            sizes.append(self._number())
        self._expect("lanes")
        lanes = self._number()
        self._expect("pitch")
        pitch = self._number()
        axes = [a.name for a in self.nest.axes]
        inputs: list[tuple[str, str]] = []
        while not inputs or self.token.text in self.nest.inputs:
            name = self._known("input", self.nest.inputs)
            self._expect("along")
            inputs.append((name, self._known("axis", axes)))
        self._do(CacheTile(tuple(inputs), tuple(sizes), lanes, pitch), token)

    def _recompute_item(self, token: ScheduleToken) -> None:
        """Read values that are computed again where they are read."""
        for name in self._names("value", self.nest.values):
            self._do(Recompute(name), token)

    def _in_item(self, token: ScheduleToken) -> None:
        """Read where values are between stages."""
        scope = self._scope()
        for name in self._names("value", self.nest.values):
            self._do(SetScope(name, scope), token)

    def _stage_item(self, token: ScheduleToken) -> None:
        """Read a stage, which must be that of the operators."""
        self._expect(self.name, ":")
        if self.stages == len(self.expected_stages):
            self._refuse(f"the nest has {self.stages} stages only", token)
        self._section(stage_text(self.expected_stages[self.stages], self.nest), "stage")
        self.stages += 1
