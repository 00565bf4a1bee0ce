"""parse_pack: reads the schedule of several nests in one kernel from its text.

The grammar is in `passkit.schedule.text`.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from passkit.diagnostics import Diagnostic
from passkit.schedule.actions import LaunchBlocks
from passkit.schedule.compose import check_pack, compose
from passkit.schedule.loop_nest import LoopNest
from passkit.schedule.nest import NestSchedule
from passkit.schedule.pack import PackSchedule
from passkit.schedule.parse import ScheduleParser
from passkit.target import Target


def parse_pack(text: str, nests: Sequence[LoopNest], target: Target) -> PackSchedule:
    """Return the schedule of several nests that a text describes.

    Args:
        text: the text, in the grammar of `passkit.schedule.text`.
        nests: the nests, in the order of the parts.
        target: the GPU that it is for.

    Raises: ScheduleError with line and column if the text does not follow the grammar, names what
    the nests do not have, or describes a schedule that is not legal.
    """
    return _PackParser(text, nests, target).pack()


class _PackParser(ScheduleParser):
    """A text that is being read, and the schedules that are made of it."""

    def __init__(self, text: str, nests: Sequence[LoopNest], target: Target) -> None:
        super().__init__(text, nests[0], target)
        self.nests = {f"n{k}": nest for k, nest in enumerate(nests)}
        self.schedules: dict[str, NestSchedule] = {}

    def pack(self) -> PackSchedule:
        """Read all of the text."""
        self._head()
        threads, blocks = self._launch()
        self._expect("{", "pack", "{")
        while not self._takes("}"):
            self._body()
        missing = [name for name in self.nests if name not in self.schedules]
        if missing:
            self._refuse(f"there is no tile of {missing[0]}", self.tokens[self.at - 1])
        self._expect("}")
        self._end()
        nests = list(self.nests.values())
        pack = compose([self.schedules[name] for name in self.nests], nests)
        if isinstance(pack, Diagnostic):
            self._refuse(str(pack), self.tokens[0])
        launch = f"{pack.launch.y}x{pack.launch.x}"
        if launch != threads.text:
            self._refuse(f"the nests have {launch} threads, not {threads.text}", threads)
        pack = evolve(pack, launch=evolve(pack.launch, blocks=int(blocks.text)))
        problem = check_pack(pack, nests)
        if problem is not None:
            self._refuse(str(problem), blocks)
        return pack

    def _body(self) -> None:
        """Read nests that have equal schedules, and their tile."""
        begin = self.token
        self._expect("nest")
        names = [self._nest_head()]
        while self._takes(","):
            names.append(self._nest_head())
        values = self.at
        for name in names:
            self.at = values
            self.begin(self.nests[name], names[0])
            self._values()
        threads, blocks = self._launch()
        tile = self.at
        for name in names:
            self.at = tile
            self.begin(self.nests[name], names[0])
            self._do(LaunchBlocks(int(blocks.text)), blocks)
            self._tile()
            self.schedules[name] = self._finished(threads, begin)

    def _nest_head(self) -> str:
        """Read the name of a nest and its axes."""
        token, name = self.token, self._known("nest", self.nests)
        if name in self.schedules:
            self._refuse(f"nest {name} has a tile already", token)
        self.begin(self.nests[name], name)
        self._axes()
        return name
