"""The board: a partition as units that larger kernels could be made of.

A unit is a group, a product of matrices that a library computes, or anything else, which stays as
it is. Units are numbered in an order in which they can run.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Sequence

from attrs import define, field

from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node
from passkit.passes.context import PassContext
from passkit.passes.fusion.limits import Limits
from passkit.passes.fusion.partition import Partition
from passkit.passes.fusion.scores import is_small
from passkit.passes.fusion.views import without_views
from passkit.plan.closing import make_group, reads_of_part
from passkit.plan.group import Group
from passkit.selection.patterns import Kind
from passkit.selection.units import Units
from passkit.space.space import is_free
from passkit.splits.split import guessed
from passkit.stitching.cutting import contract_of
from passkit.stitching.parts import USUAL
from passkit.values.size import numel

_Numbers = tuple[int, ...]
_Signature = tuple[tuple[str, _Numbers, tuple[tuple[int, bool], ...], _Numbers], ...]


@define(eq=False)
class Unit:
    """Operators that run together, with copies of cheap ones; ``open`` to more if that pays.

    A ``silent`` one takes no time: it only sees memory in another shape, or nobody reads it. The
    ``key`` is that of its group, whose inputs are ``feeds``, as soon as somebody has asked.
    """

    nodes: Sequence[Node]
    clones: Sequence[Node] = ()
    open: bool = False
    silent: bool = False
    reads: Sequence[Entry] = field(factory=list)
    key: str | None = None
    feeds: Sequence[Entry] = ()

    @property
    def body(self) -> list[Node]:
        """All that it computes."""
        return [*self.nodes, *self.clones]


class Board:
    """The units of a partition, and groups of some of them."""

    def __init__(self, graph: Graph, partition: Partition, context: PassContext) -> None:
        self.graph, self.context = graph, context
        self.limits = Limits(graph, context)
        made = list(self._made(partition))
        for unit in made:
            unit.reads = reads_of_part(graph, unit.body)
        self.list = _sorted(graph, made)
        self.of = {n: k for k, u in enumerate(self.list) for n in u.nodes}
        self.readers: dict[Entry, set[int]] = {}
        for k in self._reached():
            for e in self.list[k].reads:
                self.readers.setdefault(e, set()).add(k)
        self._groups: dict[_Signature, Group] = {}
        self.heads = set(graph.heads)
        self.updated = {e for _, e in graph.updates}
        self.needs = [self._needs(u) for u in self.list]
        self.units = Units(self.needs)
        self.left = [self.results(u.nodes, {k}) for k, u in enumerate(self.list)]
        for unit, left in zip(self.list, self.left, strict=True):
            unit.silent = unit.silent or not left

    def _made(self, partition: Partition) -> Iterable[Unit]:
        """The units in no order; what the caller wants together is closed."""
        wanted = {n for names in self.context.keep_together for n in names}
        names = self.graph.names
        seen = {tuple(g) for g in without_views(self.graph, partition).groups}
        clones = partition.clones or [[] for _ in partition.groups]
        inside: set[Node] = set()
        for group, copies in zip(partition.groups, clones, strict=True):
            inside.update(group)
            free = wanted.isdisjoint(names[n] for n in group)
            yield Unit(group, copies, free, tuple(group) not in seen)
        for node in self.graph.nodes:
            if node not in inside and not is_free(node):
                yield Unit([node], (), self._is_open(node) and names[node] not in wanted)

    def _reached(self) -> set[int]:
        """The units that results depend on: one of which others have copies of all is gone."""
        updates = self.graph.updates
        left = [e.node for e in self.graph.heads] + [n for v, e in updates for n in (v, e.node)]
        found: set[int] = set()
        while left:
            k = self.of.get(left.pop())
            if k is None or k in found:
                continue
            found.add(k)
            unit = self.list[k]
            left += [e.node for e in unit.reads] + [c for n in unit.nodes for c in n.control]
        return found

    def _is_open(self, node: Node) -> bool:
        """Whether a kernel may compute a product: devices have libraries that are much faster."""
        target, several = self.context.target, len(self.graph.shape(node.entries[0])) > 2
        limits = target.fusion
        most = limits.batched_product_steps if several else limits.product_steps
        return target.lanes > 1 and is_small(node, most)

    def _needs(self, unit: Unit) -> set[int]:
        nodes = [e.node for e in unit.reads] + [c for n in unit.nodes for c in n.control]
        own = self.of[unit.nodes[0]]
        return {k for n in nodes if (k := self.of.get(n, own)) != own}

    def is_open(self, k: int) -> bool:
        """Whether a unit may become part of something larger."""
        return self.list[k].open

    def is_product(self, k: int) -> bool:
        """Whether a unit is a product of matrices, which a library would compute."""
        nodes = self.list[k].nodes
        return len(nodes) == 1 and contract_of(nodes[0]) is not None

    @property
    def kinds(self) -> list[Kind]:
        """What each unit is to patterns."""
        return [
            Kind.OPAQUE if not u.open else Kind.PRODUCT if self.is_product(k) else Kind.LIGHT
            for k, u in enumerate(self.list)
        ]

    def nodes(self, units: Iterable[int]) -> tuple[list[Node], list[Node]]:
        """The operators of units, and the copies that they have besides, in post-order."""
        found = [self.list[k] for k in units]
        own = {n for u in found for n in u.nodes}
        copies = {n for u in found for n in u.clones} - own
        position = self.graph.positions.__getitem__
        return sorted(own, key=position), sorted(copies, key=position)

    def results(self, nodes: Iterable[Node], units: set[int]) -> list[Entry]:
        """What of the operators of units others read, or the caller."""
        none: set[int] = set()
        return [
            e
            for n in nodes
            for e in n.entries
            if e in self.heads or self.readers.get(e, none) - units
        ]

    def updates(self, units: Iterable[int]) -> bool:
        """Whether some of what units compute becomes the new value of state."""
        return any(e in self.updated for k in units for e in self.left[k])

    def moved(self, units: Collection[int]) -> int:
        """Bytes that units write and read for each other, and would not as one."""
        inside, total = set(units), 0
        for k in inside:
            for e in self.left[k]:
                near = self.readers.get(e, set()) & inside
                if near:
                    stays = e in self.heads or self.readers[e] - inside
                    total += (len(near) + (not stays)) * self.nbytes(e)
        return total

    def nbytes(self, entry: Entry) -> int:
        """The bytes of a value, with `USUAL` for unknown sizes."""
        size = guessed(numel(self.graph.shape(entry)), USUAL)
        return size * self.graph.dtype(entry).nbytes

    def group(self, units: Collection[int]) -> Group:
        """The group that units would be; units that are alike, as those of layers, have the same.

        What differs then is what its nodes were called.
        """
        key = self._signature(units) if len(units) > 1 else None
        if key is None:
            return self.closed(units)[0]
        found = self._groups.get(key)
        if found is None:
            found = self._groups[key] = self.closed(units)[0]
        return found

    def _signature(self, units: Collection[int]) -> _Signature | None:
        """What groups of units are alike by: each unit's key, who reads, leaves and copies what.

        None where it does not tell: what is copied into a unit may be another one's own.
        """
        place: dict[Entry, int] = {}
        inside, found = set(units), []
        if any(self.of.get(n) in inside for k in inside for n in self.list[k].clones):
            return None
        for k in sorted(inside):
            unit = self.list[k]
            if not self.left[k]:
                return None
            if unit.key is None:
                group, unit.feeds = self.closed([k])
                unit.key = group.key
            reads = tuple(place.setdefault(e, len(place)) for e in unit.feeds)
            leaves = tuple(
                (place.setdefault(e, len(place)), self._leaves(e, inside)) for e in self.left[k]
            )
            copies = tuple(place.setdefault(n.entries[0], len(place)) for n in unit.clones)
            found.append((unit.key, reads, leaves, copies))
        return tuple(found)

    def _leaves(self, entry: Entry, inside: set[int]) -> bool:
        return entry in self.heads or not self.readers.get(entry, inside) <= inside

    def closed(self, units: Iterable[int]) -> tuple[Group, list[Entry]]:
        """The group that units would be, and what it reads in the order of its inputs."""
        inside = set(units)
        own, copies = self.nodes(inside)
        results = self.results(own, inside) or [own[-1].entries[0]]
        body = sorted([*own, *copies], key=self.graph.positions.__getitem__)
        return make_group(self.graph, body, reads_of_part(self.graph, body), results)


def _sorted(graph: Graph, units: Sequence[Unit]) -> list[Unit]:
    """Units in an order in which they can run; of those that could be next the first one."""
    of = {n: k for k, u in enumerate(units) for n in u.nodes}
    position = graph.positions
    before = []
    after: dict[int, set[int]] = {}
    for k, unit in enumerate(units):
        nodes = [e.node for e in unit.reads] + [c for n in unit.nodes for c in n.control]
        found = {of[n] for n in nodes if n in of} - {k}
        before.append(len(found))
        for b in found:
            after.setdefault(b, set()).add(k)
    first = [position[u.nodes[0]] for u in units]
    ready = [(first[k], k) for k, count in enumerate(before) if not count]
    heapq.heapify(ready)
    order = []
    while ready:
        k = heapq.heappop(ready)[1]
        order.append(units[k])
        for a in after.get(k, ()):
            before[a] -= 1
            if not before[a]:
                heapq.heappush(ready, (first[a], a))
    return order
