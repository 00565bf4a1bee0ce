"""Graphs: outputs, updates of state, and annotations. Immutable; passes return new ones."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from passkit.errors import GraphError, PassError
from passkit.graph.node import Entry, Node, as_entry
from passkit.values import arguments
from passkit.values.dtype import DType
from passkit.values.lazy import Lazy
from passkit.values.size import Shape

Update = tuple[Node, Entry]
UNREAD = "unread"
"""The annotation with the names of `Graph.unread`."""
copying: Any = Lazy("passkit.graph.copying")
notebook: Any = Lazy("passkit.reporting.notebook")
"""What notebooks show stands above, and is asked for only by them."""


class Annotation(dict[Any, Any]):
    """What a pass found out about nodes or entries of one graph, and of no other."""

    def __init__(
        self, name: str, items: Mapping[Any, Any] | Iterable[tuple[Any, Any]] = ()
    ) -> None:
        super().__init__(arguments.mapping("Annotation: items", items))
        self.name = arguments.text("Annotation: name", name)

    def __missing__(self, key: object) -> Any:
        raise PassError(
            f"annotation '{self.name}' has nothing for {key!r}: it is not a part of the annotated "
            f"graph; run the pass on the graph that has it"
        )


class Graph:
    """A computation: ``outputs`` to return and ``updates`` to write back into state variables.

    Structure is compared by `key`; identity is Python's. ``attrs`` hold the annotations.
    """

    def __init__(
        self,
        outputs: Sequence[Entry] | Entry,
        updates: Iterable[Update] = (),
        attrs: Mapping[str, Any] | None = None,
    ) -> None:
        need = "an Entry or a sequence of entries; pk.ops.… and pk.var make entries"
        one = isinstance(outputs, Entry)
        given = (outputs,) if one else arguments.sequence("Graph: outputs", outputs, object, need)
        for k, entry in enumerate(given):
            if not isinstance(entry, Entry):
                raise GraphError(
                    f"output {k} of a graph must be an Entry, got {arguments.shown(entry)}; "
                    f"pk.ops.… and pk.var make entries"
                )
        self._outputs: tuple[Entry, ...] = given
        self._updates = () if isinstance(updates, tuple) and not updates else _updates(updates)
        if attrs is None or type(attrs) not in (dict, MappingProxyType):
            attrs = arguments.mapping("Graph: attrs", attrs)
        self._attrs = MappingProxyType(dict(attrs))

    @property
    def outputs(self) -> tuple[Entry, ...]:
        """The entries that a run returns."""
        return self._outputs

    @property
    def updates(self) -> tuple[Update, ...]:
        """(variable, new value) pairs that a run writes back, made by Functionalize."""
        return self._updates

    @property
    def attrs(self) -> Mapping[str, Any]:
        """Annotations by name: what passes provided."""
        return self._attrs

    @property
    def heads(self) -> tuple[Entry, ...]:
        """Everything a run must compute: outputs, then new values of state."""
        return self.outputs + tuple(value for _, value in self.updates)

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes in post-order: inputs, then control dependences, then the node (NNVM)."""
        return tuple(post_order([*(e.node for e in self.heads), *(v for v, _ in self.updates)]))

    @cached_property
    def positions(self) -> Mapping[Node, int]:
        """Each node's place in `nodes`."""
        return {n: k for k, n in enumerate(self.nodes)}

    @cached_property
    def inputs(self) -> tuple[Node, ...]:
        """The variables that a call feeds, in post-order; or in an order that was given them.

        Passes keep the order, however they change what stands between inputs and outputs.
        """
        return tuple(n for n in self.nodes if n.is_variable and not n.params.get("state"))

    @property
    def unread(self) -> tuple[str, ...]:
        """Names that a call may feed though nothing here reads them; the arrays are not looked at.

        A model may declare inputs that the outputs asked for do not need.
        """
        return tuple(self.attrs.get(UNREAD, ()))

    def with_unread(self, names: Iterable[str]) -> Graph:
        """This graph, of which a call may also feed these names; those of its inputs do not count.

        It keeps them through passes and in JSON.
        """
        own = {self.names[n] for n in self.inputs}
        unread = tuple(n for n in dict.fromkeys(names) if n not in own)
        others = {k: v for k, v in self.attrs.items() if k != UNREAD}
        return self._annotated({**others, UNREAD: unread} if unread else others)

    @cached_property
    def states(self) -> tuple[Node, ...]:
        """The variables that keep their value between calls."""
        return tuple(n for n in self.nodes if n.is_variable and n.params.get("state"))

    @cached_property
    def users(self) -> Mapping[Entry, tuple[Node, ...]]:
        """For each entry the nodes that read it, once for each time they do."""
        found: dict[Entry, list[Node]] = {}
        for node in self.nodes:
            for entry in node.inputs:
                found.setdefault(entry, []).append(node)
        return {e: tuple(ns) for e, ns in found.items()}

    @cached_property
    def names(self) -> Mapping[Node, str]:
        """A unique name for each node: its own, else its op's; repeats are numbered.

        Inputs come first, so that they are called alike whatever is computed of them, and when.
        """
        taken: dict[str, int] = {}
        names: dict[Node, str] = {}
        used = {n.name for n in self.nodes if n.name}
        inputs = dict.fromkeys(self.inputs)
        for node in (*inputs, *(n for n in self.nodes if n not in inputs)):
            base = node.label
            count = taken.get(base, 0)
            name = base if count == 0 and (node.name or base not in used) else f"{base}_{count}"
            while count and name in used:
                count += 1
                name = f"{base}_{count}"
            taken[base] = count + 1
            used.add(name)
            names[node] = name
        return {node: names[node] for node in self.nodes}

    @cached_property
    def key(self) -> str:
        """A digest of structure, parameters, shapes and dtypes; names of nodes do not matter."""
        return digest(self)

    def shape(self, entry: Entry) -> Shape:
        """The shape InferShape found, else what was known when the node was made."""
        arguments.instance("Graph.shape: entry", entry, Entry, "an Entry")
        found = self.attrs["shape"][entry] if "shape" in self.attrs else entry.shape
        if found is None:
            raise PassError(f"the shape of {entry.name} is not known; run InferShape")
        return found

    def dtype(self, entry: Entry) -> DType:
        """The dtype InferType found, else what was known when the node was made."""
        arguments.instance("Graph.dtype: entry", entry, Entry, "an Entry")
        found = self.attrs["dtype"][entry] if "dtype" in self.attrs else entry.dtype
        if found is None:
            raise PassError(f"the dtype of {entry.name} is not known; run InferType")
        return found

    def with_attrs(self, **attrs: Any) -> Graph:
        """This graph with annotations added or replaced."""
        return self._annotated({**self.attrs, **attrs})

    def _annotated(self, attrs: Mapping[str, Any]) -> Graph:
        out = Graph(self.outputs, self.updates, attrs)
        for name in ("nodes", "positions", "inputs", "states", "users", "names", "key"):
            if name in self.__dict__:  # the structure is the same, so what was derived holds
                out.__dict__[name] = self.__dict__[name]
        return out

    def with_inputs(self, order: Sequence[Node]) -> Graph:
        """This graph with its inputs in another order: that of a call's arguments.

        Raises: GraphError when ``order`` is no permutation of the inputs.
        """
        order = arguments.sequence("Graph.with_inputs: order", order, Node, "a sequence of nodes")
        if set(order) != set(self.inputs) or len(order) != len(self.inputs):
            raise GraphError(
                f"the inputs are {', '.join(n.label for n in self.inputs)}, not "
                f"{', '.join(n.label for n in order)}"
            )
        if tuple(order) == self.inputs:
            return self
        out = self._annotated(self.attrs)
        out.__dict__["inputs"] = tuple(order)
        for name in ("key", "names"):  # which tell what is fed by its place
            out.__dict__.pop(name, None)
        return out

    def fed_as(self, before: Graph, moved: Mapping[Node, Node] = MappingProxyType({})) -> Graph:
        """This graph with its inputs in the order that they have in the one it was made of.

        New ones come last. So a call that gives arrays in a row means the same ones. ``moved`` may
        tell which node stands for an input of that graph; else it is that node, or, where that is
        gone, the one of its name.
        """
        arguments.instance("Graph.fed_as: before", before, Graph, "a Graph")
        out = self.with_unread(before.unread) if before.unread and not self.unread else self
        if self.inputs == before.inputs:
            return out
        present = set(self.inputs)
        repeated = Counter(n.name for n in before.inputs)
        place: dict[Node | str, int] = {}
        for k, node in enumerate(before.inputs):
            same = moved.get(node, node)
            if same in present:
                place[same] = k
            elif repeated[node.name] == 1:
                place[node.name] = k
        last = len(before.inputs)
        return out.with_inputs(
            sorted(self.inputs, key=lambda n: place.get(n, place.get(n.name, last)))
        )

    def without_attrs(self, keep: Iterable[str] = ()) -> Graph:
        """This graph with only the annotations in ``keep``."""
        wanted = set(arguments.sequence("Graph.without_attrs: keep", keep, str, "names"))
        return self._annotated({k: v for k, v in self.attrs.items() if k in wanted})

    def rebuild(self, change: Callable[[Node, tuple[Entry, ...]], Sequence[Entry] | None]) -> Graph:
        """The graph in which each node is what ``change(node, new inputs)`` returns for it.

        None keeps the node. Visits in post-order, so that inputs are changed before users. Control
        dependences follow. Annotations are dropped.
        """
        return self.rebuilt(change)[0]

    def rebuilt(
        self, change: Callable[[Node, tuple[Entry, ...]], Sequence[Entry] | None]
    ) -> tuple[Graph, dict[Entry, Entry]]:
        """As `rebuild`, with the map from old entries to new ones."""
        arguments.function("Graph.rebuild: change", change)
        new: dict[Entry, Entry] = {}
        moved: dict[Node, Node] = {}
        for node in self.nodes:
            inputs = tuple(new[e] for e in node.inputs)
            entries = change(node, inputs)
            if entries is None:
                control = tuple(moved[c] for c in node.control)
                same = inputs == node.inputs and control == node.control
                entries = (node if same else node.replaced(inputs, control)).entries
            elif node.control:
                entries = _follow(entries, moved)
            if len(entries) < len(node.entries):
                raise GraphError(
                    f"{node.where} has {len(node.entries)} result(s) and was replaced by "
                    f"{len(entries)}"
                )
            new.update(zip(node.entries, entries, strict=False))
            moved[node] = entries[0].node
        updates = [(moved[v], new[e]) for v, e in self.updates]
        return Graph([new[e] for e in self.outputs], updates).fed_as(self, moved), new

    def transform(self, change: Callable[[Node], Sequence[Entry] | None]) -> Graph:
        """The graph in which each node is what ``change(node)`` returns for it; None keeps it.

        As `rebuild`, but the node it is given has its new inputs and control dependences already.
        """
        arguments.function("Graph.transform: change", change)
        new: dict[Entry, Entry] = {}
        moved: dict[Node, Node] = {}
        for node in self.nodes:
            inputs = tuple(new[e] for e in node.inputs)
            control = tuple(moved[c] for c in node.control)
            same = inputs == node.inputs and control == node.control
            whole = node if same else node.replaced(inputs, control)
            found = change(whole)
            entries = whole.entries if found is None else found
            new.update(zip(node.entries, entries, strict=True))
            moved[node] = entries[0].node
        updates = [(moved[v], new[e]) for v, e in self.updates]
        return Graph([new[e] for e in self.outputs], updates).fed_as(self, moved)

    def replace(self, values: Mapping[Entry, Entry]) -> Graph:
        """The graph in which every use of a key reads its value instead.

        Raises: GraphError when a key is not in this graph.
        """
        values = arguments.mapping("Graph.replace: values", values, "a mapping of entries")
        present = {e for n in self.nodes for e in n.entries}
        for entry, value in values.items():
            arguments.instance("Graph.replace: a key of values", entry, Entry, "an Entry")
            arguments.instance("Graph.replace: a value of values", value, Entry, "an Entry")
            if entry not in present:
                raise GraphError(f"{entry.name} is not in this graph, so it cannot be replaced")
        return self.rebuild(
            lambda node, inputs: (
                [values.get(e, n) for e, n in zip(node.entries, _kept(node, inputs), strict=True)]
                if any(e in values for e in node.entries)
                else None
            )
        )

    def rewrite(
        self,
        pattern: Callable[..., Entry],
        replacement: Callable[..., Entry],
        where: Callable[..., bool] | None = None,
    ) -> Graph:
        """Replace every match of ``pattern`` by ``replacement``; both are functions of entries.

        ``where`` gets the matched entries and may refuse. Inner values that others use stay.
        A repeated argument in the pattern must match one entry.
        """
        for name, given in (("pattern", pattern), ("replacement", replacement)):
            arguments.function(f"Graph.rewrite: {name}", given)
        if where is not None:
            arguments.function("Graph.rewrite: where", where)
        from passkit.graph.pattern import (
            rewrite,  # stands above: a pattern is itself a small graph
        )

        return rewrite(self, pattern, replacement, where)

    def __copy__(self) -> Graph:
        return self  # it is immutable

    def __deepcopy__(self, memo: dict[int, Any]) -> Graph:
        """An equal graph of new nodes; annotations that speak of nodes are left out."""
        return copying.deep_graph(self, memo)  # type: ignore[no-any-return]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as JSON; annotations that have no form in it are left out."""
        return copying.graph_of, (copying.text_of(self),)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """What a notebook shows."""
        return notebook.graph(self)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        ops = sum(not n.is_variable for n in self.nodes)
        attrs = f", attrs: {', '.join(sorted(self.attrs))}" if self.attrs else ""
        return f"Graph({ops} operators, {len(self.outputs)} outputs{attrs})"


def _updates(given: Any) -> tuple[Update, ...]:
    """Pairs of a variable and its new value. Raises: ArgumentError for anything else."""
    need = "pairs of a variable's Node and an Entry"
    for pair in (found := arguments.sequence("Graph: updates", given, tuple, need)):
        if len(pair) != 2 or not isinstance(pair[0], Node) or not isinstance(pair[1], Entry):
            arguments.refuse("Graph: updates", pair, need)
    return found


def _kept(node: Node, inputs: tuple[Entry, ...]) -> tuple[Entry, ...]:
    return node.entries if inputs == node.inputs else node.replaced(inputs).entries


def _follow(entries: Sequence[Entry], moved: Mapping[Node, Node]) -> list[Entry]:
    """``entries`` of nodes whose control dependences are the new ones."""
    made: dict[Node, Node] = {}
    for node in dict.fromkeys(e.node for e in entries):
        control = tuple(moved.get(c, c) for c in node.control)
        made[node] = node if control == node.control else node.replaced(control=control)
    return [made[e.node].entries[e.index] for e in entries]


def before(node: Node) -> list[Node]:
    """What runs before a node: its inputs, then its control dependences."""
    return [*(e.node for e in node.inputs), *node.control]


def post_order(
    heads: Iterable[Node], before: Callable[[Node], Iterable[Node]] = before
) -> list[Node]:
    """Depth-first post-order without recursion: what is ``before`` a node, then the node.

    Raises: GraphError naming a node on a cycle.
    """
    order: list[Node] = []
    done: dict[Node, bool] = {}
    for head in heads:
        stack = [(head, iter(before(head)))] if head not in done else []
        if stack:
            done[head] = False
        while stack:
            node, rest = stack[-1]
            for child in rest:
                state = done.get(child)
                if state is None:
                    done[child] = False
                    stack.append((child, iter(before(child))))
                    break
                if not state:
                    raise GraphError(f"{child.where} depends on itself; a graph has no cycles")
            else:
                stack.pop()
                done[node] = True
                order.append(node)
    return order


def digest(graph: Graph, variables: Mapping[Node, object] | None = None) -> str:
    """A digest of a graph's structure, iterative and independent of names, order and process.

    ``variables`` may say what stands for a variable; by default its position, shape and dtype.
    """
    ids: dict[Node, int] = {}
    sha = hashlib.sha256()
    feeds = {n: k for k, n in enumerate(graph.inputs)}
    for node in graph.nodes:
        ids[node] = len(ids)
        if variables is not None and node in variables:
            what: object = variables[node]
        elif node.op is None:
            rank = feeds.get(node, node.name)
            what = (rank, str(node.params.get("shape")), str(node.params.get("dtype")))
        else:
            what = (node.op.name, freeze(node.params))
        edges = [(ids[e.node], e.index) for e in node.inputs], [ids[c] for c in node.control]
        sha.update(repr((what, edges)).encode())
    sha.update(repr([(ids[e.node], e.index) for e in graph.outputs]).encode())
    sha.update(repr([(ids[v], ids[e.node], e.index) for v, e in graph.updates]).encode())
    return sha.hexdigest()


def freeze(value: Any) -> Any:
    """A parameter as a value whose repr is the same in every process."""
    if isinstance(value, np.ndarray):
        data = np.ascontiguousarray(value).tobytes()
        return "array", str(value.dtype), value.shape, hashlib.sha256(data).hexdigest()
    if isinstance(value, Mapping):
        return tuple(sorted((str(k), freeze(v)) for k, v in value.items()))
    if isinstance(value, (tuple, list)):
        return tuple(freeze(v) for v in value)
    if hasattr(value, "key"):
        return value.key
    return repr(value) if not callable(value) else f"{value.__module__}.{value.__qualname__}"


def graph_of_argument(where: str, given: Any) -> Graph:
    """A graph that a caller gave as such, or as the entries to compute.

    Raises: ArgumentError for anything else, named by ``where``; GraphError for a list of others.
    """
    if isinstance(given, Graph):
        return given
    if not isinstance(given, Entry):
        given = arguments.sequence(
            where, given, object, "a Graph, an Entry or a sequence of entries"
        )
    return Graph(given)


def graph_of(outputs: Any, updates: Iterable[Update] = ()) -> Graph:
    """A graph from an entry, a sequence of them, or arrays."""
    many = isinstance(outputs, (tuple, list))
    return Graph([as_entry(e) for e in (outputs if many else [outputs])], updates)
