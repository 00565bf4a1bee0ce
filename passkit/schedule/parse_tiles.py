"""parse_tiles: reads the schedule of a nest on a CPU from its text.

The grammar is in `passkit.schedule.text`. Tiles have known numbers of points in a text that can be
read.
"""

from __future__ import annotations

from functools import cached_property

from attrs import evolve

from passkit.ast.stage import Place
from passkit.diagnostics import Diagnostic
from passkit.schedule.apply_tiles import TileBuilder
from passkit.schedule.loop_nest import NEST, LoopNest
from passkit.schedule.parse import ScheduleParser, ScheduleToken
from passkit.schedule.schedule import Schedule, StagePlan
from passkit.target import Target


def parse_tiles(text: str, nest: LoopNest, target: Target) -> Schedule:
    """Return the schedule that a text describes.

    Args:
        text: the text, in the grammar of `passkit.schedule.text`.
        nest: the nest that it is a schedule of.
        target: the CPU that it is for.

    Raises: ScheduleError with line and column if the text does not follow the grammar, names what
    the nest does not have, or describes a schedule that is not legal.
    """
    return _TileParser(text, nest, target).read()


class _TileParser(ScheduleParser):
    """A text that is being read, and the schedule that is made of it.

    The schedule is built at the first stage, behind all items that decide it.
    """

    ITEMS = ("map", "recompute", "in", "stream", "stage")

    def __init__(self, text: str, nest: LoopNest, target: Target) -> None:
        self.in_outputs: list[tuple[str, int, ScheduleToken]] = []
        self.streamed: list[int] = []
        super().__init__(text, nest, target)

    def new_builder(self) -> TileBuilder:
        """Return the builder of the schedule."""
        return TileBuilder(self.nest, self.target)

    @property
    def expected_stages(self) -> tuple[StagePlan, ...]:
        """The stages that the text must have: those of the schedule."""
        return self._built.stages

    def read(self) -> Schedule:
        """Read all of the text."""
        self._head()
        self._expect("{", "nest", NEST)
        self._axes()
        self._values()
        self._tile()
        self._expect("}")
        self._end()
        places = {k.value: k.output for k in self._built.staged if k.place is Place.GLOBAL}
        for name, output, token in self.in_outputs:
            if places.get(self.nest.values[name]) != output:
                self._refuse(f"{name} does not lie in y{output}", token)
        return evolve(self._built, stream=tuple(self.streamed))

    @cached_property
    def _built(self) -> Schedule:
        """Return the schedule of the actions so far."""
        schedule = self.builder.schedule()
        if isinstance(schedule, Diagnostic):
            self._refuse(str(schedule), self.tokens[0])
        assert isinstance(schedule, Schedule)
        return schedule

    def _in_item(self, token: ScheduleToken) -> None:
        """Read where values are between stages: in a scope, or in an output."""
        outputs = self._outputs
        if self.token.text in outputs:
            output = outputs.index(self._next())
            for name in self._names("value", self.nest.values):
                self.in_outputs.append((name, output, token))
        else:
            super()._in_item(token)

    def _stream_item(self, _: ScheduleToken) -> None:
        """Read the outputs that are stored past the caches."""
        self.streamed += [self._outputs.index(y) for y in self._names("output", self._outputs)]

    @property
    def _outputs(self) -> list[str]:
        """The names of the outputs."""
        return [f"y{k}" for k in range(len(self.nest.graph.outputs))]
