"""Packing: kernels without data flow between them become one, each with tiles of its own.

FusionStitching's kernel packing. Units of one height, which is the longest way from them to an end,
do not depend on each other; and as every edge leads to a smaller height, joining such units makes
no cycle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from attrs import Factory, define

from passkit.diagnostics import Diagnostic
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node
from passkit.passes.context import PassContext
from passkit.passes.fusion_hints import keep_together_names
from passkit.plan.group import FUSED, Decision, Group, Kind, fused_node
from passkit.plan.planner import outline_group
from passkit.plan.schedule import Schedule, is_one_tile
from passkit.space.space import is_free
from passkit.values.size import numel


def pack(
    graph: Graph, context: PassContext, log: Iterable[Decision]
) -> tuple[Graph, list[Decision]]:
    """The contracted graph with kernels packed: where the caller wants that, and where it pays."""
    run = _Packing(graph, context)
    for names in keep_together_names(context):
        run.gather(names)
    run.look()
    decisions = [*(d for d in log if not run.together(d)), *run.log]
    return (run.packed() if run.packs else graph), decisions


@define(eq=False)
class _Pack:
    """Fused nodes that become one kernel.

    ``names`` are those of their operators, ``arrays`` what they read and write, ``old`` and ``new``
    the state they read and update; ``waiting`` are bytes that were made for them and wait there.
    """

    nodes: list[Node] = Factory(list)
    names: set[str] = Factory(set)
    arrays: set[Entry] = Factory(set)
    old: set[Node] = Factory(set)
    new: set[Node] = Factory(set)
    waiting: int = 0

    def with_(self, other: _Pack) -> _Pack:
        """Both together."""
        return _Pack(
            *([*self.nodes, *other.nodes], self.names | other.names, self.arrays | other.arrays),
            *(self.old | other.old, self.new | other.new, self.waiting + other.waiting),
        )


class _Packing:
    def __init__(self, graph: Graph, context: PassContext) -> None:
        self.graph, self.context, self.target = graph, context, context.target
        self.packs: list[_Pack] = []
        self.home: dict[Node, _Pack] = {}
        self.log: list[Decision] = []
        self.alone = set(context.no_fuse)
        self.apart = [set(names) for names in context.keep_apart]
        self.update_of = {e: v for v, e in graph.updates}
        self.node_of: dict[str, Node] = {}
        if context.keep_together:
            fused = [n for n in graph.nodes if n.op is FUSED]
            self.node_of = {name: n for n in fused for name in _body(n).origin.values()}

    # What the caller wants.

    def gather(self, names: Sequence[str]) -> None:
        """Pack the kernels of nodes, as far as none depends on another."""
        called: dict[Node, str] = {}
        for name in names:
            if name in self.node_of:
                called.setdefault(self.node_of[name], name)
        made = _Pack()
        for node in sorted(called, key=self._is_stitched):
            name = called[node]
            if node in self.home or self._is_empty(node):
                continue
            more = made.with_(self._alone(node))
            refused = self._refused(more, node) if made.nodes else None
            if refused is None:
                made = more
                continue
            why = Diagnostic("hint.keep_together", {"reason": refused})
            self.log.append(Decision(called[made.nodes[0]], name, why))
        self._keep(made, called)

    def _refused(self, more: _Pack, node: Node) -> Diagnostic | None:
        """Why ``node`` may not be the last of a pack, if so."""
        if self._is_stitched(node):
            return Diagnostic("pack.nests", {"node": self.graph.names[node]})
        if not self._is_legal(more):
            return Diagnostic("pack.dependence")
        misfit = self._misfit(more)
        if misfit is None and not self._spend(node):
            return Diagnostic("fuel")
        return misfit

    def _is_legal(self, made: _Pack) -> bool:
        packs = [*self.packs, made]
        return heights(self.graph, {n: p.nodes[0] for p in packs for n in p.nodes}) is not None

    def together(self, d: Decision) -> bool:
        """Whether what a decision keeps apart is in one kernel now."""
        one, another = (self._home(name) for name in (d.producer, d.consumer))
        return not d.fused and one is not None and one is another

    def _home(self, name: str) -> _Pack | None:
        node = self.node_of.get(name)
        return None if node is None else self.home.get(node)

    # What pays.

    def look(self) -> None:
        """Pack small kernels of one height that are worth threads together."""
        found = heights(self.graph, {n: p.nodes[0] for p in self.packs for n in p.nodes})
        assert found is not None
        alike: dict[tuple[int, bool], list[Node]] = {}
        for node in self.graph.nodes:
            if node.op is FUSED and node not in self.home:
                updates = any(e in self.update_of for e in node.entries)
                alike.setdefault((found[node], updates), []).append(node)
        for nodes in alike.values():
            if len(nodes) > 1:
                self._fill(nodes)

    def _fill(self, nodes: Sequence[Node]) -> None:
        """Packs of some of these kernels, of which none depends on another."""
        made, seconds = _Pack(), dict[Node, float]()
        for node in nodes:
            taken = self._seconds(node)
            own = self._alone(node)
            factor = self.target.fusion.pack_ready_factor if self._is_ready(node) else 1
            most = self.target.packed * factor
            if taken is None or taken > most:
                continue
            more = made.with_(own)
            apart = not made.old.isdisjoint(own.new) or not own.old.isdisjoint(made.new)
            full = more.waiting > self.target.packed_bytes or self._misfit(more) is not None
            if made.nodes and (apart or full):
                self._finish(made, seconds)
                more = own
            made = more
            seconds[node] = taken
        self._finish(made, seconds)

    def _seconds(self, node: Node) -> float | None:
        """Return one thread's time by the model; None for a kernel that is not packed.

        Kernels of unknown sizes are not, but those of one tile on a GPU: one after the other, each
        keeps the device waiting for one block. Their time counts as 0.
        """
        if self._is_empty(node) or not self.alone.isdisjoint(_body(node).origin.values()):
            return None
        plan = outline_group(_body(node), self.target)
        if isinstance(plan, Diagnostic) or plan.stitching is not None or plan.makes:
            return None
        if not plan.seconds and self.target.lanes == 1 and is_one_tile(plan):
            return 0.0
        return plan.seconds or None

    def _is_stitched(self, node: Node) -> bool:
        """Whether a kernel has parts in each tile, or phases: those are not packed."""
        plan = outline_group(_body(node), self.target)
        return isinstance(plan, Schedule) and (plan.stitching is not None or bool(plan.makes))

    def _is_empty(self, node: Node) -> bool:
        """Whether a kernel reads or writes no elements somewhere."""
        return any(numel(self.graph.shape(e)) == 0 for e in (*node.inputs, *node.entries))

    def _is_ready(self, node: Node) -> bool:
        """Whether a kernel reads only what a call brings, so that it may run at any time."""
        users = self.graph.users
        return all(is_free(e.node) for e in node.inputs) and not any(
            e in users for e in node.entries
        )

    def _finish(self, made: _Pack, seconds: Mapping[Node, float]) -> None:
        """Keep a pack if what it saves is worth it: launches, meetings of threads, and time.

        Kernels too short for threads would have had one; what they take from caches is sooner done
        than the model says.
        """
        if len(made.nodes) > 1 and self._saved(made, seconds) > self.target.worth:
            self._take(made.nodes)
        else:
            self._take(self._soon_done(made, seconds))

    def _saved(self, made: _Pack, seconds: Mapping[Node, float]) -> float:
        taken = [seconds[n] for n in made.nodes]
        saved = (len(taken) - 1) * self.target.launch
        if sum(taken) > 2 * self.target.parallel:
            short = [s for s in taken if s <= self.target.parallel]
            saved += (len(taken) - len(short)) * self.target.meeting
            saved += sum(short) / self.target.fusion.pack_cache_factor
        return saved

    def _soon_done(self, made: _Pack, seconds: Mapping[Node, float]) -> list[Node]:
        """Kernels that one thread runs one after the other: as one they only lose launches."""
        found, total = list[Node](), 0.0
        for node in sorted(made.nodes, key=lambda n: seconds[n]):
            total += seconds[node]
            if total > self.target.parallel:
                break
            found.append(node)
        return found if self.target.lanes > 1 else []

    def _take(self, nodes: Sequence[Node]) -> None:
        """Pack kernels as far as there is fuel."""
        if len(nodes) > 1:
            kept = self._alone(nodes[0])
            for node in nodes[1:]:
                if self._spend(node):
                    kept = kept.with_(self._alone(node))
            self._keep(kept, {n: _name(n) for n in kept.nodes})

    # Packs.

    def _alone(self, node: Node) -> _Pack:
        """A pack of one kernel."""
        sizes = [(e, numel(self.graph.shape(e))) for e in node.inputs if not is_free(e.node)]
        waiting = [n * self.graph.dtype(e).nbytes for e, n in sizes if isinstance(n, int)]
        new = {v for e in node.entries if (v := self.update_of.get(e)) is not None}
        return _Pack(
            *([node], set(_body(node).origin.values()), {*node.inputs, *node.entries}),
            *({e.node for e in node.inputs if is_free(e.node)}, new, sum(waiting)),
        )

    def _misfit(self, made: _Pack) -> Diagnostic | None:
        """Why kernels may not be one as far as the target and the caller are concerned, if so."""
        if not self.alone.isdisjoint(made.names):
            return Diagnostic("hint.no_fuse")
        if any(len(a & made.names) > 1 for a in self.apart):
            return Diagnostic("hint.keep_apart")
        limits = self.target.fusion
        most = min(limits.pack_ops, limits.pack_group_factor * self.target.max_ops)
        if len(made.names) > most:
            return Diagnostic("limit.pack_ops", {"limit": most})
        # Besides pointers, parts need their sizes and the numbers of their tiles.
        sizes = limits.pack_size_arguments * len(made.nodes)
        if len(made.arrays) + sizes > self.target.max_arguments:
            return Diagnostic("limit.arguments", {"limit": self.target.max_arguments})
        return None

    def _spend(self, node: Node) -> bool:
        return self.context.spend(f"pack {self.graph.names[node]}")

    def _keep(self, made: _Pack, called: Mapping[Node, str]) -> None:
        """Let a pack of several kernels, that people know by these names, become one."""
        if len(made.nodes) < 2:
            return
        self.packs.append(made)
        self.home.update(dict.fromkeys(made.nodes, made))
        packed = Diagnostic("fused.packed", {"kernels": len(made.nodes)})
        first, *rest = (called[n] for n in made.nodes)
        self.log += [Decision(first, name, packed) for name in rest]

    def packed(self) -> Graph:
        """The graph with a fused node for each pack."""
        graph = self.graph
        height = heights(graph, {n: p.nodes[0] for p in self.packs for n in p.nodes})
        assert height is not None
        new: dict[Entry, Entry] = {}
        moved: dict[Node, Node] = {}
        for node in sorted(graph.nodes, key=lambda n: -height[n]):
            home = self.home.get(node)
            if home is None:
                inputs = tuple(new[e] for e in node.inputs)
                control = tuple(dict.fromkeys(moved[c] for c in node.control))
                same = inputs == node.inputs and control == node.control
                moved[node] = node if same else node.replaced(inputs, control)
                new.update(zip(node.entries, moved[node].entries, strict=True))
            elif node not in moved:
                made = self._fused(home, new, moved)
                entries = [e for n in home.nodes for e in n.entries]
                new.update(zip(entries, made.entries, strict=True))
                moved.update(dict.fromkeys(home.nodes, made))
        updates = [(moved[v], new[e]) for v, e in graph.updates]
        return Graph([new[e] for e in graph.outputs], updates)

    def _fused(self, home: _Pack, new: Mapping[Entry, Entry], moved: Mapping[Node, Node]) -> Node:
        """One node for the kernels of a pack; what several read is one input."""
        inner: dict[Entry, Entry] = {}
        feeds: dict[Node, Entry] = {}
        origin: dict[Node, str] = {}
        outputs: list[Entry] = []
        for node in home.nodes:
            body, copies = _body(node), dict[Entry, Entry]()
            for variable, source in zip(body.inputs, node.inputs, strict=True):
                if source not in inner:
                    own = Node(None, (), variable.params, variable.name)
                    inner[source], feeds[own] = own.entries[0], new[source]
                copies[variable.entries[0]] = inner[source]
            for old in body.graph.nodes:
                if not old.is_variable:
                    made = old.replaced([copies[e] for e in old.inputs], ())
                    copies.update(zip(old.entries, made.entries, strict=True))
                    origin |= {made: body.origin[old]} if old in body.origin else {}
            # What is only waited for is in no graph, but people may ask where it went.
            alive = set(body.graph.nodes)
            origin |= {n: name for n, name in body.origin.items() if n not in alive}
            outputs += [copies[e] for e in body.graph.outputs]
        group = Group(Graph(outputs), Kind.PACKED, origin)
        control = dict.fromkeys(moved[c] for n in home.nodes for c in n.control)
        inputs = tuple(feeds[n] for n in group.inputs)
        return fused_node(group, inputs, self.graph.names[home.nodes[0]], tuple(control))


def _body(node: Node) -> Group:
    return node.params["body"]  # type: ignore[no-any-return]


def _name(node: Node) -> str:
    """What people know a kernel by: the operator of its first result."""
    body = _body(node)
    return body.called(body.graph.outputs[0].node)


def heights(graph: Graph, unit: Mapping[Node, Node]) -> dict[Node, int] | None:
    """The longest way from each node to an end, where some are one ``unit``.

    None where units would depend on each other in a cycle.
    """
    below: dict[Node, list[Node]] = {}
    edges: Counter[Node] = Counter()
    for node in graph.nodes:
        reader = unit.get(node, node)
        for n in (*(e.node for e in node.inputs), *node.control):
            source = unit.get(n, n)
            if source is reader:
                return None
            below.setdefault(reader, []).append(source)
            edges[source] += 1
    units = dict.fromkeys(unit.get(n, n) for n in graph.nodes)
    height = {n: 0 for n in units if not edges[n]}
    todo = list(height)
    while todo:
        node = todo.pop()
        for source in below.get(node, ()):
            height[source] = max(height.get(source, 0), height[node] + 1)
            edges[source] -= 1
            if not edges[source]:
                todo.append(source)
    if any(edges.values()):
        return None
    return {n: height[unit.get(n, n)] for n in graph.nodes}
