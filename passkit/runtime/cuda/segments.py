"""Steps that follow each other on a CUDA device: one by one at first, then as graphs.

A graph has addresses in it. It is launched where all of them, those of inner results and of what
libraries need besides included, are those of memory that the call has for itself, in the stream in
which everything else is done: so a graph holds no memory between calls, and writes to none that
another call, which comes before or behind it in the stream, counts on.
"""

from __future__ import annotations

import gc
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any
from weakref import finalize

from passkit.errors import DeviceError
from passkit.runtime.cuda.copied import Copied
from passkit.runtime.cuda.device import Device
from passkit.runtime.cuda.driver import DriverError, RoomError, Task, Trouble
from passkit.runtime.cuda.enqueued import Enqueued, Part
from passkit.runtime.cuda.footprint import Footprint
from passkit.runtime.cuda.scratch import Scratch
from passkit.runtime.cuda.start import Start
from passkit.runtime.device.memory import Memory, Place
from passkit.runtime.device.run import Action
from passkit.runtime.program import Ref

if TYPE_CHECKING:
    from passkit.runtime.cuda.run import Bound

REPLAYS = "graph_replays"
CAPTURES = "graphs_made"
MOST_GRAPHS = 8
"""As many sets of addresses are remembered: feeds that take turns have one each."""

Addresses = tuple[int, ...]


def in_graphs(bound: Bound) -> list[Action]:
    """What a call does: steps of the device that follow each other together, the rest alone."""
    runs = list(_runs(bound))
    users: dict[Place, set[int]] = {}
    for number, run in enumerate(runs):
        for refs in run.values():
            for ref in refs:
                users.setdefault(ref.place, set()).add(number)
    found: list[Action] = []
    for run in runs:
        steps = [a for a in run if isinstance(a, Enqueued)]
        if len(steps) < 2 or not bound.device.driver.graphs:
            found += run
            continue
        kind = Launches if all(isinstance(s, Start) for s in steps) else Captured
        found.append(kind(bound, steps, {p for p, own in users.items() if len(own) == 1}))
    return found


def _runs(bound: Bound) -> Iterator[dict[Action, Collection[Ref]]]:
    """Actions with what they read and write: those that may be a graph, and each of the others."""
    run: dict[Action, Collection[Ref]] = {}
    known: set[Place] = set()
    for action, step in zip(bound.actions, bound.program.steps, strict=True):
        if action is None:
            continue
        if isinstance(action, Enqueued):
            refs = *action.reads, *action.writes
            if not isinstance(action, Copied) or action.stays_there(known):
                run[action] = refs
                known.update(r.place for r in refs)
                continue
        if run:
            yield run
        yield {action: (*step.reads, *step.writes)}
        run, known = {}, set()
    if run:
        yield run


class Made:
    """A graph, which is given back when nobody holds it. ``scratch`` is an address in it."""

    def __init__(self, device: Device, graph: Any, scratch: int = 0) -> None:
        self.graph, self.scratch = graph, scratch
        finalize(self, _dropped(device, graph)).atexit = False


def _dropped(device: Device, graph: Any) -> Callable[[], None]:
    """What gives a graph back, whichever thread drops it."""

    def drop() -> None:
        with suppress(DriverError), device.driver.current():
            device.driver.drop(graph)

    return drop


class Segment(ABC):
    """Steps one after the other, which are one call of the driver where their addresses fit.

    ``alone`` are the places that no other action of the program has.
    """

    def __init__(self, bound: Bound, steps: Sequence[Enqueued], alone: Collection[Place]) -> None:
        self.bound, self.device, self.steps = bound, bound.device, steps
        self.footprint = Footprint(steps, bound, alone.__contains__)

    def __call__(self, memory: Memory) -> None:
        """Enqueue all of it."""
        addresses = self.footprint.addresses(memory)
        with self.device.lock:
            self.run(addresses, memory)
        self.footprint.done(memory)

    @abstractmethod
    def run(self, addresses: Addresses, memory: Memory) -> None:
        """Enqueue all of it, at a call's addresses."""

    def replay(self, made: Made, memory: Memory) -> None:
        """Enqueue a graph, which lasts until it has run, whoever forgets it."""
        memory.held.append(made)
        driver, stream = self.device.driver, memory.queue.stream
        self.bound.table.pool.again(lambda: driver.replay(made.graph, stream), (RoomError,))
        self.bound.table.counts[REPLAYS] += 1

    def kept(self, graph: Any, scratch: int = 0) -> Made:
        """A new graph, which is counted."""
        self.bound.table.counts[CAPTURES] += 1
        return Made(self.device, graph, scratch)


class Launches(Segment):
    """Kernels alone: the second call makes a graph of them, which later ones use.

    Where a call's addresses are others, the nodes of their launches are changed.
    """

    def __init__(self, bound: Bound, steps: Sequence[Enqueued], alone: Collection[Place]) -> None:
        super().__init__(bound, steps, alone)
        self.tasks: list[Task] = []
        self.addresses: Addresses = ()
        self.made: Made | None = None
        self.called = False

    def run(self, addresses: Addresses, memory: Memory) -> None:
        """Launch the graph, or one by one; a driver that makes no graphs is not asked again."""
        driver = self.device.driver
        if self.made is None or addresses != self.addresses:
            self.footprint.spread(memory, addresses)
            tasks = [s.placed(memory) for s in self.steps]
            if self.called and driver.graphs and self.made is None:
                self.made, self.tasks = self._made(tasks), tasks
            if self.made is None:
                for step, task in zip(self.steps, tasks, strict=True):
                    step.enqueue(task, memory.pool, memory.queue.stream)
                self.called = True
                return
            self._change(self.made, tasks)
            self.addresses = addresses
        self.replay(self.made, memory)

    def _change(self, made: Made, tasks: Sequence[Task]) -> None:
        """Tell the nodes of other tasks; where that fails, it is known of which it did not."""
        self.addresses = ()
        for k, (old, new) in enumerate(zip(self.tasks, tasks, strict=True)):
            if old != new:
                self.device.driver.change(made.graph, k, new)
                self.tasks[k] = new

    def _made(self, tasks: Sequence[Task]) -> Made | None:
        driver = self.device.driver
        try:
            return self.kept(driver.graph(tasks))
        except DriverError as error:
            if error.trouble is Trouble.LOST:
                raise
            driver.graphs = False
            warnings.warn(
                f"kernels on {self.device} are launched one by one, because it makes no "
                f"graph of them: {error}",
                stacklevel=2,
            )
            return None


class Captured(Segment):
    """Steps of which some are libraries': what these enqueue is found out by recording it.

    A call at new addresses does all of it one by one, and what libraries set up at first is done
    then. The second call at the same ones records a graph, which later ones use. ``scratch`` is how
    many bytes a step needs besides its arrays.
    """

    def __init__(self, bound: Bound, steps: Sequence[Enqueued], alone: Collection[Place]) -> None:
        super().__init__(bound, steps, alone)
        self.known: dict[Addresses, Made | None] = {}
        self.records, self.scratch = True, 0

    def run(self, addresses: Addresses, memory: Memory) -> None:
        """Launch the graph that was recorded at these addresses, or else do what makes one."""
        made = None
        if addresses in self.known and self.records and self.device.driver.graphs:
            made = self.known.pop(addresses)
            room = memory.pool.take(self.scratch) if self.scratch else Part(0)
            if made is None or made.scratch != room.address:
                made = self._recorded(addresses, memory, room.address)
            if made is not None:
                self.replay(made, memory)
        if made is None:
            self._one_by_one(addresses, memory)
        self.known[addresses] = made
        if len(self.known) > MOST_GRAPHS:
            del self.known[next(iter(self.known))]

    def _one_by_one(self, addresses: Addresses, memory: Memory) -> None:
        scratch = Scratch(memory.pool)
        self.footprint.spread(memory, addresses)
        self._enqueue(memory, scratch, memory.queue.stream)
        self.scratch = max(self.scratch, scratch.most)

    def _enqueue(self, memory: Memory, scratch: Scratch, stream: Any) -> None:
        """Let a stream do one step after the other."""
        for step in self.steps:
            scratch.begin()
            step.enqueue(step.placed(memory), scratch, stream)

    def _recorded(self, addresses: Addresses, memory: Memory, where: int) -> Made | None:
        driver, stream = self.device.driver, aside(self.device)
        scratch = Scratch(memory.pool, where, self.scratch)
        self.footprint.spread(memory, addresses)
        try:
            with _nothing_collected():
                graph = driver.capture(lambda: self._enqueue(memory, scratch, stream), stream)
        except (DriverError, DeviceError) as error:
            if isinstance(error, DriverError) and error.trouble is Trouble.LOST:
                raise
            self.records = False
            warnings.warn(
                f"{len(self.steps)} steps on {self.device} are enqueued one by one, because it "
                f"makes no graph of them: {error}",
                stacklevel=2,
            )
            return None
        assert scratch.most <= self.scratch, "the graph has memory of nobody"
        return self.kept(graph, where)


@cache
def aside(device: Device) -> Any:
    """A stream in which nothing is done. What is enqueued there is recorded.

    In the stream of everything else other threads' work would be recorded, too.
    """
    return device.driver.stream()


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """Inside, no garbage is collected: what it gives back would end a recording."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
