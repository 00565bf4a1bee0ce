"""Loop nests as schedules refer to them: axes, values, inputs and stages by name.

An axis is called as in the kernel, ``i0``, ``i1``, …; a value after its operator and which one of
its kind it is, such as ``exp_1``; inputs are ``x0``, ``x1``, … and outputs ``y0``, ``y1``, ….
"""

from __future__ import annotations

from enum import Enum
from functools import cached_property
from math import gcd, prod

from attrs import frozen

from passkit.analysis.domain import Axis
from passkit.analysis.domain_info import DomainInfo
from passkit.analysis.register_pressure import register_pressure
from passkit.ast.stage import Place
from passkit.graph.attribute_calls import reduce_of
from passkit.graph.graph import Graph
from passkit.graph.node import Entry
from passkit.schedule.nest import AxisGroup, NestSchedule
from passkit.schedule.schedule import StagedValue, StagePlan
from passkit.schedule.stages import split_stages
from passkit.schedule.template_loops import operator_names
from passkit.schedule.traffic import NestTraffic, traffic_of
from passkit.target.heuristics import NestHeuristics
from passkit.values.size import Extent, known_factor

NEST = "n0"
"""The name of the only nest of a kernel."""
ONE_ROW = "one"
"""The name of the axis of the rows of a nest all of whose axes are reduced: it has one row."""


class AxisRole(Enum):
    """The role of an axis on a GPU.

    KEPT: results lie along it. REDUCED: reductions run along it. COLUMN: the last axis of a nest
    that reduces another one; results lie along it, and so do the threads of a block.
    """

    KEPT = "kept"
    REDUCED = "reduced"
    COLUMN = "column"


@frozen
class NestAxis:
    """An axis of an iteration domain.

    Attributes:
        name: the name.
        extent: the number of steps of the whole axis.
        role: what the axis is.
        chunk: for a reduced axis, the steps that a row has of it, if not all; else None.
        is_chunk_axis: whether the axis counts these chunks.
    """

    name: str
    extent: Extent
    role: AxisRole = AxisRole.KEPT
    chunk: Extent | None = None
    is_chunk_axis: bool = False

    @property
    def length(self) -> Extent:
        """Return the steps that a row has of the axis."""
        return self.extent if self.chunk is None else self.chunk

    def __str__(self) -> str:
        """Return the axis as in the text of a schedule."""
        reduced = " reduce" if self.role is AxisRole.REDUCED else ""
        chunk = "" if self.chunk is None else f" chunk {self.chunk}"
        return f"{self.name}:{self.extent}{' chunks' if self.is_chunk_axis else ''}{reduced}{chunk}"


@frozen(eq=False, slots=False)
class LoopNest:
    """Operators that share one iteration domain, to be scheduled.

    Attributes:
        info: the iteration domain.
        stages: the traversals of the domain, in order.
        staged: the values that one stage stores for another, where they lie unless actions say
            otherwise.
    """

    info: DomainInfo
    stages: tuple[StagePlan, ...]
    staged: tuple[StagedValue, ...]

    @cached_property
    def traffic(self) -> NestTraffic:
        """Return the memory accesses."""
        return traffic_of(self.info, self.stages, self.staged)

    def stage_plan(
        self, place: Place | None, recomputed: frozenset[int] = frozenset()
    ) -> tuple[tuple[StagePlan, ...], tuple[StagedValue, ...]]:
        """Return the stages, and the storage of the values that one stores for another.

        Args:
            place: the storage of all staged values; None for outputs where they fit, else SHARED.
            recomputed: the positions of values that are computed again where they are read.
        """
        key = place, recomputed
        if key not in self._plans:
            nodes = [self.graph.nodes[k] for k in recomputed]
            self._plans[key] = split_stages(self.info, place, nodes)
        return self._plans[key]

    @cached_property
    def _plans(
        self,
    ) -> dict[
        tuple[Place | None, frozenset[int]], tuple[tuple[StagePlan, ...], tuple[StagedValue, ...]]
    ]:
        """Return the stages by the arguments of `stage_plan`, for those asked for so far."""
        return {(None, frozenset()): (self.stages, self.staged)}

    @property
    def graph(self) -> Graph:
        """Return the closed graph of the nest's operators."""
        return self.info.graph

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Return the inputs and all values, each once."""
        return tuple(e for n in self.graph.nodes for e in n.entries)

    @cached_property
    def axes(self) -> tuple[NestAxis, ...]:
        """Return the axes, outermost first."""
        axes = self.info.domain.axes
        has_columns = any(a.reduced for a in axes) and not axes[-1].reduced
        return tuple(
            NestAxis(
                a.var.name,
                a.extent,
                _role(a, has_columns and a is axes[-1]),
                a.chunk,
                a.is_chunk_axis,
            )
            for a in axes
        )

    def axis_names(self, role: AxisRole) -> tuple[str, ...]:
        """Return the names of the axes of a role. Without a kept axis there is `ONE_ROW`."""
        return self._names[role]

    @cached_property
    def _names(self) -> dict[AxisRole, tuple[str, ...]]:
        """Return the names of the axes by role."""
        names = {role: tuple(a.name for a in self.axes if a.role is role) for role in AxisRole}
        return names if names[AxisRole.KEPT] else {**names, AxisRole.KEPT: (ONE_ROW,)}

    @property
    def is_reduced(self) -> bool:
        """Return whether the nest reduces anything."""
        return bool(self.axis_names(AxisRole.REDUCED))

    @property
    def is_column(self) -> bool:
        """Return whether the nest reduces columns: its last axis is kept."""
        return bool(self.axis_names(AxisRole.COLUMN))

    @cached_property
    def is_chunked(self) -> bool:
        """Return whether a row is a chunk of the reduced axis."""
        return any(a.chunk is not None for a in self.axes)

    @cached_property
    def is_single_pass(self) -> bool:
        """Return whether one stage reads all points."""
        return sum(bool(s.reduces or s.stores or s.staged) for s in self.stages) == 1

    @property
    def is_read_once(self) -> bool:
        """Return whether one stage reads all points, and leaves nothing but values of rows."""
        return self.is_single_pass and not any(s.stores or s.staged for s in self.stages)

    @cached_property
    def all_recomputed(self) -> tuple[int, ...]:
        """Return the values, by position, without which no stage stores a value for another one.

        Recomputation of a value may need one of a stage before, which is recomputed, too.
        """
        values = frozenset[int]()
        while True:
            _, staged = self.stage_plan(None, values)
            if not staged:
                return tuple(sorted(values))
            values |= {k.value for k in staged}

    def register_nbytes(self, value: int) -> int:
        """Return the bytes that an element of the value at a position takes in registers."""
        return max(4, self.graph.dtype(self.graph.nodes[value].entries[0]).nbytes)

    @cached_property
    def row_length(self) -> int:
        """Return the number of points of a row, which is 1 if nothing is reduced.

        Of a row of unknown length it is what divides this length, see `has_known_rows`.
        """
        lengths = (a.length for a in self.axes if a.role is AxisRole.REDUCED)
        return prod(known_factor(n) for n in lengths)

    @property
    def vector_length(self) -> int:
        """Return a number that a vector along the last axis divides, so that it crosses no end."""
        last = self.axes[-1]
        return gcd(known_factor(last.length), known_factor(last.extent))

    @cached_property
    def has_known_rows(self) -> bool:
        """Return whether the number of points of a row is known."""
        return all(isinstance(a.length, int) for a in self.axes if a.role is AxisRole.REDUCED)

    @cached_property
    def total_nbytes(self) -> tuple[int, ...]:
        """Return the bytes of an accumulator of each reduction."""
        nodes = (self.graph.nodes[k] for s in self.stages for k in s.reduces)
        reductions = (reduce_of(n) for n in nodes)
        return tuple(r.identity.dtype.nbytes for r in reductions if r is not None)

    @cached_property
    def values(self) -> dict[str, int]:
        """Return the position in the graph of each operator, by name, in post-order."""
        number = {n: k for k, n in enumerate(self.graph.nodes)}
        names = operator_names(n for n in self.graph.nodes)
        return {name: number[n] for n, name in names.items()}

    @cached_property
    def value_names(self) -> dict[int, str]:
        """Return the name of each operator by its position in the graph."""
        return {k: name for name, k in self.values.items()}

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Return the names of the inputs, in order."""
        return tuple(f"x{k}" for k in range(len(self.graph.inputs)))

    def registers(self, rules: NestHeuristics) -> int:
        """Return the registers that the computation of one point needs.

        ``rules`` has those that it needs besides its values.
        """
        live = max(rules.base_registers, register_pressure(self.graph) + rules.index_registers)
        return live + (rules.float64_registers if self.traffic.nbytes == 8 else 0)

    @cached_property
    def operations(self) -> int:
        """Return the number of operators and constants."""
        return sum(n.op is not None for n in self.graph.nodes)


def _role(axis: Axis, is_column: bool) -> AxisRole:
    """Return the role of an axis; ``is_column`` says that it is the last one, behind a reduced."""
    if axis.reduced:
        return AxisRole.REDUCED
    return AxisRole.COLUMN if is_column else AxisRole.KEPT


def groups_of(schedule: NestSchedule) -> tuple[tuple[AxisRole, AxisGroup], ...]:
    """Return the groups of axes of a schedule with their roles."""
    groups = (
        (AxisRole.KEPT, schedule.kept),
        (AxisRole.REDUCED, schedule.reduced),
        (AxisRole.COLUMN, schedule.columns),
    )
    return tuple((role, group) for role, group in groups if group is not None)
