"""Recomputation: kernels compute a large value of small operands again instead of reading it.

A pairwise expression ``f(x[:, None], y[None, :])`` has M·N elements and M + N operands. Where two
reductions need different loops over it, as sums of its rows and of its columns, fusion leaves two
kernels, of which one writes the M·N elements for the other. Here the expression is copied into the
second kernel where that is cheaper by the cost model and by the memory at the peak.

Source: rematerialization (Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from attrs import evolve, field, frozen

from passkit.diagnostics import Diagnostic
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node
from passkit.passes.context import PassContext
from passkit.passes.fusion.board import Board
from passkit.passes.fusion.chosen import Chosen
from passkit.passes.fusion.memory import Memory, penalty
from passkit.passes.fusion.partition import Partition
from passkit.passes.fusion.scores import Scorer, Seconds
from passkit.plan.group import Decision
from passkit.plan.schedule import is_expensive
from passkit.space.layout import Layout, lay_out
from passkit.space.space import Role, folding_of, is_free
from passkit.splits.split import guessed
from passkit.stitching.parts import USUAL
from passkit.values.size import numel


@frozen(eq=False)
class _Cone:
    """Operators of a group that compute one of its results from small operands.

    ``cuts`` are values of the group that are read instead of being computed again: small ones that
    are expensive, or that come from reductions.
    """

    nodes: frozenset[Node]
    cuts: frozenset[Entry]


@frozen(eq=False)
class _Change:
    """A partition in which the readers of ``entry`` compute it.

    ``saved`` are the seconds that kernels take less by the model, ``peak`` the bytes of values
    between kernels at most.
    """

    entry: Entry
    partition: Partition
    saved: float
    peak: int


def recomputed(
    graph: Graph,
    partition: Partition,
    context: PassContext,
    seconds: Seconds,
    chosen: Chosen | None,
) -> tuple[Partition, Chosen | None]:
    """Copy the producers of large values of small operands into the kernels that read them.

    Args:
        graph: The graph whose operators are partitioned.
        partition: The groups as fusion left them.
        context: The target and its numbers, hints and fuel.
        seconds: The cost model for groups.
        chosen: The numbers of the selection before, if there was one.

    Returns: The partition, and the numbers with the seconds and the peak as they are then. Both are
        unchanged where nothing pays, and on targets without a cost model.
    """
    if not context.target.costed or not any(_enlarges(graph, n, context) for n in graph.nodes):
        return partition, chosen
    scorer = Scorer(context.target, seconds, 0)
    refused: set[Entry] = set()
    while True:
        change = _Round(graph, partition, context, scorer).best(refused)
        if change is None or not context.spend(f"recompute {graph.names[change.entry.node]}"):
            return partition, chosen
        partition = change.partition
        if chosen is not None:
            after, peaks = chosen.after - change.saved, (chosen.peaks[0], change.peak)
            chosen = evolve(chosen, after=after, peaks=peaks)


def _enlarges(graph: Graph, node: Node, context: PassContext) -> bool:
    """Whether a node makes a value that caches have no room for of much smaller operands."""
    if is_free(node) or not node.inputs:
        return False
    nbytes = sum(_nbytes(graph, e) for e in node.entries)
    if nbytes < context.target.machine.llc_bytes:
        return False
    growth = context.target.fusion.recomputed_growth
    return nbytes >= growth * max(_nbytes(graph, e) for e in node.inputs)


def _nbytes(graph: Graph, entry: Entry) -> int:
    return guessed(numel(graph.shape(entry)), USUAL) * graph.dtype(entry).nbytes


@frozen(eq=False)
class _Round:
    """The values between the kernels of one partition, and what recomputing one of them gains."""

    graph: Graph
    partition: Partition
    context: PassContext
    scorer: Scorer
    board: Board = field(init=False)
    memory: Memory = field(init=False)
    home: dict[Node, int] = field(init=False)
    awaited: set[Node] = field(init=False)

    @board.default
    def _board(self) -> Board:
        return Board(self.graph, self.partition, self.context)

    @memory.default
    def _memory(self) -> Memory:
        return Memory(self.board)

    @home.default
    def _home(self) -> dict[Node, int]:
        return {n: k for k, group in enumerate(self.partition.groups) for n in group}

    @awaited.default
    def _awaited(self) -> set[Node]:
        return {c for n in self.graph.nodes for c in n.control}

    def best(self, refused: set[Entry]) -> _Change | None:
        """The change for the largest value for which one pays; larger ones join ``refused``."""
        for unit, entry in self._candidates(refused):
            change = self._change(unit, entry)
            if change is not None:
                return change
            refused.add(entry)
        return None

    def _candidates(self, refused: Collection[Entry]) -> list[tuple[int, Entry]]:
        """Units and results that only other kernels read and caches cannot hold, largest first."""
        board, far = self.board, self.context.target.machine.llc_bytes
        found = [
            (k, e)
            for k in range(len(board.list))
            if self._may_change(k)
            for e in board.left[k]
            if e not in refused and e not in board.heads and board.nbytes(e) >= far
        ]
        return sorted(found, key=lambda f: (-board.nbytes(f[1]), f[0]))

    def _may_change(self, k: int) -> bool:
        """Whether a unit is a group whose operators may change, and that nothing waits for."""
        unit = self.board.list[k]
        if not unit.open or unit.silent or unit.nodes[0] not in self.home:
            return False
        return not any(n.control or n in self.awaited for n in unit.nodes)

    def _change(self, unit: int, entry: Entry) -> _Change | None:
        """The partition in which all readers of a result compute it, if that pays."""
        readers = sorted(self.board.readers[entry] - {unit})
        cone = self._cone(unit, entry)
        if cone is None or not all(map(self._may_change, readers)):
            return None
        made, rest = self._copied(unit, entry, cone, readers)
        other = Board(self.graph, made, self.context)
        computing = [other.of[self.board.list[k].nodes[-1]] for k in readers]
        if not all(_computes(other, k, entry) for k in computing):
            return None
        before = self._seconds(self.board, [unit, *readers])
        after = self._seconds(other, {*computing, *(other.of[n] for n in rest)})
        if before is None or after is None:
            return None
        saved, peak = before - after, Memory(other).peak
        least = self.context.target.fusion.min_recompute_share * before
        if saved + self._freed(peak) <= least:
            return None
        return _Change(entry, evolve(made, log=self._log(made, entry)), saved, peak)

    def _freed(self, peak: int) -> float:
        """The seconds that count for another peak of memory: negative ones where it is higher."""
        target = self.context.target
        freed = max(0, self.memory.peak - max(peak, self.memory.room))
        grown = self.memory.beyond(peak)
        weight = 1 + freed / target.fusion.scarce_bytes
        return penalty(freed, target) * weight - penalty(grown, target)

    def _cone(self, unit: int, entry: Entry) -> _Cone | None:
        """Return the operators that readers of ``entry`` would copy; None if it is no such value.

        None as well where its operands are not much smaller, or it comes from a large reduction.
        """
        body = set(self.board.list[unit].body)
        most = self.board.nbytes(entry) // self.context.target.fusion.recomputed_growth
        nodes, cuts, read = {entry.node}, set[Entry](), set[Entry]()
        todo = [entry.node]
        if folding_of(entry.node) is not None:
            return None
        while todo:
            for e in todo.pop().inputs:
                if e.node in nodes or e in read or e in cuts:
                    continue
                if e.node not in body:
                    if numel(self.graph.shape(e)) != 1 or not is_free(e.node):
                        read.add(e)
                elif self._is_copied(e, body, most):
                    nodes.add(e.node)
                    todo.append(e.node)
                elif self.board.nbytes(e) > most:
                    return None
                else:
                    cuts.add(e)
        sizes = [self.board.nbytes(e) for e in (*read, *cuts)]
        own = set(self.board.list[unit].nodes)
        if sum(sizes) > most or not any(numel(self.graph.shape(e)) != 1 for e in (*read, *cuts)):
            return None
        return _Cone(frozenset(nodes), frozenset(cuts)) if {e.node for e in cuts} <= own else None

    def _is_copied(self, entry: Entry, body: Collection[Node], most: int) -> bool:
        """Whether a value is computed again: a large one if no reduction makes it, or a cheap one.

        A cheap one is small, made of light operators, and does not come from reductions.
        """
        if self.board.nbytes(entry) > most:
            return folding_of(entry.node) is None
        todo, seen = [entry.node], {entry.node}
        while todo:
            node = todo.pop()
            if folding_of(node) is not None or is_expensive(node):
                return False
            more = {e.node for e in node.inputs if e.node in body} - seen
            seen |= more
            todo += more
        return True

    def _copied(
        self, unit: int, entry: Entry, cone: _Cone, readers: Sequence[int]
    ) -> tuple[Partition, list[Node]]:
        """The partition whose ``readers`` compute ``entry``, and what is left of its unit.

        The first reader owns what its unit does not need any more.
        """
        board, position = self.board, self.graph.positions.__getitem__
        own = board.list[unit]
        needed = _above([*(e for e in board.left[unit] if e is not entry), *cone.cuts], own.body)
        moved = [n for n in own.nodes if n not in needed]
        groups = [list(g) for g in self.partition.groups]
        clones = [list(c) for c in self.partition.clones] or [[] for _ in groups]
        home = self.home[own.nodes[0]]
        groups[home] = [n for n in groups[home] if n in needed]
        clones[home] = [n for n in clones[home] if n in needed]
        for k, reader in enumerate(readers):
            j = self.home[board.list[reader].nodes[0]]
            groups[j] = sorted([*groups[j], *(moved if k == 0 else ())], key=position)
            copies = {*clones[j], *cone.nodes}.difference(groups[j])
            clones[j] = sorted(copies, key=position)
        kept = [k for k, group in enumerate(groups) if group]
        made = evolve(
            self.partition, groups=[groups[k] for k in kept], clones=[clones[k] for k in kept]
        )
        return made, groups[home]

    def _seconds(self, board: Board, units: Iterable[int]) -> float | None:
        """Return the modelled seconds of units of a board; None where the model does not know."""
        total = 0.0
        for k in sorted(units):
            found = self.scorer.sure(board.group([k]))
            if not isinstance(found, float) or not found:
                return None
            total += found
        return total

    def _log(self, made: Partition, entry: Entry) -> list[Decision]:
        """The decisions about edges, those at the operators that moved as they are now."""
        names, nbytes = self.graph.names, self.board.nbytes(entry)
        node_of = {name: n for n, name in names.items()}
        homes: dict[Node | None, set[int]] = {}
        for k, (group, copies) in enumerate(zip(made.groups, made.clones, strict=True)):
            for n in (*group, *copies):
                homes.setdefault(n, set()).add(k)
        name, log = names[entry.node], list[Decision]()
        for d in self.partition.log:
            producer, consumer = node_of.get(d.producer), node_of.get(d.consumer)
            together = not homes.get(producer, set()).isdisjoint(homes.get(consumer, ()))
            if d.fused == together or None in (producer, consumer):
                log.append(d)
            elif together:
                again = Diagnostic("fused.recomputed", {"nbytes": nbytes})
                log.append(Decision(d.producer, d.consumer, again))
            else:
                again = Diagnostic("recompute.readers", {"value": name})
                log.append(Decision(d.producer, d.consumer, again))
        return log


def _above(entries: Iterable[Entry], body: Collection[Node]) -> set[Node]:
    """The operators of a group that values depend on."""
    inside = set(body)
    todo = [e.node for e in entries]
    found: set[Node] = set()
    while todo:
        node = todo.pop()
        if node in inside and node not in found:
            found.add(node)
            todo += [e.node for e in node.inputs]
    return found


def _computes(board: Board, unit: int, entry: Entry) -> bool:
    """Whether a unit may be a kernel, which computes a value once at each point of its space."""
    own, copies = board.nodes([unit])
    if board.limits.all([*own, *copies]) is not None:
        return False
    group = board.group([unit])
    layout = lay_out(group.graph)
    name = board.graph.names[entry.node]
    return isinstance(layout, Layout) and any(
        Role.FULL in role for n, role in layout.roles.items() if group.origin.get(n) == name
    )
