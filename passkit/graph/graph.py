"""Graphs: outputs, updates of state variables, and annotations by passes.

Graphs are immutable; passes and the methods here return new ones. `post_order` and `digest`
traverse graphs without recursion, so that long chains are no problem.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np

from passkit.errors import GraphError, PassError
from passkit.graph.node import Entry, Node
from passkit.values import arguments
from passkit.values.dtype import DType
from passkit.values.lazy import Lazy
from passkit.values.size import Shape

Update = tuple[Node, Entry]
UNREAD = "unread"
"""The annotation with the names of `Graph.unread`."""
copying: Any = Lazy("passkit.graph.copying")
notebook: Any = Lazy("passkit.reporting.notebook")
"""It belongs to a higher layer and is imported when a notebook displays a graph."""


class Annotation(dict[Any, Any]):
    """Results of a pass for the nodes or entries of one graph.

    A look-up of anything that is not in that graph raises a PassError.

    Args:
        name: the name of the annotation, for messages.
        items: the results, by node or entry.

    Raises:
        ArgumentError: ``items`` is no mapping or iterable of pairs, or ``name`` no string.
    """

    def __init__(
        self, name: str, items: Mapping[Any, Any] | Iterable[tuple[Any, Any]] = ()
    ) -> None:
        super().__init__(arguments.mapping("Annotation: items", items))
        self.name = arguments.text("Annotation: name", name)

    def __missing__(self, key: object) -> Any:
        raise PassError(
            f"annotation '{self.name}' has no value for {key!r}, which is not in the annotated "
            f"graph; run the pass that makes the annotation on the graph that contains it"
        )


class Graph:
    """A computation: outputs to return, and new values for state variables.

    A graph is immutable. ``==`` is identity; `key` compares structures.

    Args:
        outputs: the entries that a run returns; one alone, or a sequence.
        updates: pairs of a state variable's node and its new value.
        attrs: annotations by name, as passes add them.

    Raises:
        GraphError: An output is no entry.
        ArgumentError: ``outputs`` is no sequence, ``updates`` are no such pairs, or ``attrs`` is no
            mapping.

    Example:
        >>> import passkit as pk
        >>> pk.Graph([pk.ops.exp(pk.var("x", (3,)))])
        Graph(1 operators, 1 outputs)
    """

    def __init__(
        self,
        outputs: Sequence[Entry] | Entry,
        updates: Iterable[Update] = (),
        attrs: Mapping[str, Any] | None = None,
    ) -> None:
        need = "an Entry or a sequence of entries; pk.ops.… and pk.var make entries"
        if isinstance(outputs, Entry):
            entries: tuple[Entry, ...] = (outputs,)
        else:
            entries = arguments.sequence("Graph: outputs", outputs, object, need)
        for k, entry in enumerate(entries):
            if not isinstance(entry, Entry):
                raise GraphError(
                    f"output {k} of a graph must be an Entry, got {arguments.shown(entry)}; "
                    f"pk.ops.… and pk.var make entries"
                )
        self._outputs = entries
        self._updates = () if isinstance(updates, tuple) and not updates else _updates(updates)
        if attrs is None or type(attrs) not in (dict, MappingProxyType):
            attrs = arguments.mapping("Graph: attrs", attrs)
        self._attrs = MappingProxyType(dict(attrs))

    @property
    def outputs(self) -> tuple[Entry, ...]:
        """Return the entries that a run returns."""
        return self._outputs

    @property
    def updates(self) -> tuple[Update, ...]:
        """Return the pairs (variable, new value) that a run writes back, from Functionalize."""
        return self._updates

    @property
    def attrs(self) -> Mapping[str, Any]:
        """Return the annotations that passes have added, by name."""
        return self._attrs

    @property
    def heads(self) -> tuple[Entry, ...]:
        """Return all entries that a run must compute: the outputs, then the new values of state."""
        return self.outputs + tuple(value for _, value in self.updates)

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """Return all nodes in post-order: inputs, control dependences, then the node (NNVM).

        Raises: GraphError where a node depends on itself.
        """
        return tuple(post_order([*(e.node for e in self.heads), *(v for v, _ in self.updates)]))

    @cached_property
    def positions(self) -> Mapping[Node, int]:
        """Return the index of each node of the graph in `nodes`, its post-order."""
        return {n: k for k, n in enumerate(self.nodes)}

    @cached_property
    def inputs(self) -> tuple[Node, ...]:
        """Return the variables that a call feeds, in the order of its positional arguments.

        That is post-order, unless `with_inputs` has changed it. Passes keep the order.
        """
        return tuple(n for n in self.nodes if n.is_variable and not n.params.get("state"))

    @property
    def unread(self) -> tuple[str, ...]:
        """Return the names that a call may feed although no node reads them; they are ignored.

        A model may declare inputs that the requested outputs do not need.
        """
        return tuple(self.attrs.get(UNREAD, ()))

    def with_unread(self, names: Iterable[str]) -> Graph:
        """Return this graph with ``names`` that a call may feed although no node reads them.

        They replace those of before; names of inputs are left out. Passes and JSON keep the others.

        Raises: ArgumentError where ``names`` is no sequence of strings.
        """
        names = arguments.sequence("Graph.with_unread: names", names, str, "a sequence of names")
        input_names = {self.names[n] for n in self.inputs}
        unread = tuple(n for n in dict.fromkeys(names) if n not in input_names)
        others = {k: v for k, v in self.attrs.items() if k != UNREAD}
        return self._annotated({**others, UNREAD: unread} if unread else others)

    @cached_property
    def states(self) -> tuple[Node, ...]:
        """Return the state variables, which keep their value between calls."""
        return tuple(n for n in self.nodes if n.is_variable and n.params.get("state"))

    @cached_property
    def users(self) -> Mapping[Entry, tuple[Node, ...]]:
        """Return for each entry the nodes that read it, a node once for each time it does.

        An entry that no node reads, such as an output only, is no key.
        """
        users: dict[Entry, list[Node]] = {}
        for node in self.nodes:
            for entry in node.inputs:
                users.setdefault(entry, []).append(node)
        return {e: tuple(ns) for e, ns in users.items()}

    @cached_property
    def names(self) -> Mapping[Node, str]:
        """Return a unique name for each node: its own, else its operator's; repeats are numbered.

        A variable without a name is called "variable". Inputs are named first, so that their names
        do not depend on the rest of the graph.
        """
        counts: dict[str, int] = {}
        names: dict[Node, str] = {}
        used = {n.name for n in self.nodes if n.name}
        inputs = dict.fromkeys(self.inputs)
        for node in (*inputs, *(n for n in self.nodes if n not in inputs)):
            base = node.label
            count = counts.get(base, 0)
            name = base if count == 0 and (node.name or base not in used) else f"{base}_{count}"
            while count and name in used:
                count += 1
                name = f"{base}_{count}"
            counts[base] = count + 1
            used.add(name)
            names[node] = name
        return {node: names[node] for node in self.nodes}

    @cached_property
    def key(self) -> str:
        """Return a digest of structure, parameters, and shapes and dtypes of variables.

        The order of the inputs is part of it. The only names in it are those of state variables;
        annotations are not in it.

        Raises: GraphError where a node depends on itself.
        """
        return digest(self)

    def shape(self, entry: Entry) -> Shape:
        """Return the shape of an entry: that of InferShape if it ran, else the entry's own.

        Extents may be symbolic.

        Raises: PassError where the rank is not known, or the entry is not in the graph that
        InferShape annotated; ArgumentError where ``entry`` is no Entry.
        """
        if type(entry) is not Entry:
            arguments.instance("Graph.shape: entry", entry, Entry, "an Entry")
        shapes = self._attrs.get("shape")
        shape: Shape | None = entry.shape if shapes is None else shapes[entry]
        if shape is None:
            raise PassError(f"the shape of {entry.name} is not known; run InferShape")
        return shape

    def dtype(self, entry: Entry) -> DType:
        """Return the dtype of an entry: that of InferType if it ran, else the entry's own.

        Raises: PassError where it is not known, or the entry is not in the graph that InferType
        annotated; ArgumentError where ``entry`` is no Entry.
        """
        if type(entry) is not Entry:
            arguments.instance("Graph.dtype: entry", entry, Entry, "an Entry")
        dtypes = self._attrs.get("dtype")
        dtype: DType | None = entry.dtype if dtypes is None else dtypes[entry]
        if dtype is None:
            raise PassError(f"the dtype of {entry.name} is not known; run InferType")
        return dtype

    def with_attrs(self, **attrs: Any) -> Graph:
        """Return this graph with annotations added or replaced, by name."""
        return self._annotated({**self.attrs, **attrs})

    def _annotated(self, attrs: Mapping[str, Any]) -> Graph:
        """Return a graph of the same structure whose only annotations are ``attrs``, by name."""
        out = Graph(self.outputs, self.updates, attrs)
        for name in ("nodes", "positions", "inputs", "states", "users", "names", "key"):
            if name in self.__dict__:  # cached properties of the same structure stay valid
                out.__dict__[name] = self.__dict__[name]
        return out

    def with_inputs(self, order: Sequence[Node]) -> Graph:
        """Return this graph with its inputs in another order, which is that of a call's arguments.

        It is this graph itself where ``order`` is the order of `inputs` already.

        Raises: GraphError when ``order`` is no permutation of the inputs; ArgumentError when it is
        no sequence of nodes.
        """
        order = arguments.sequence("Graph.with_inputs: order", order, Node, "a sequence of nodes")
        if set(order) != set(self.inputs) or len(order) != len(self.inputs):
            raise GraphError(
                f"Graph.with_inputs: order must contain each input once, "
                f"{', '.join(n.label for n in self.inputs)}, got "
                f"{', '.join(n.label for n in order)}"
            )
        if tuple(order) == self.inputs:
            return self
        out = self._annotated(self.attrs)
        out.__dict__["inputs"] = tuple(order)
        for name in ("key", "names"):  # they depend on the order of the inputs
            out.__dict__.pop(name, None)
        return out

    def fed_as(self, before: Graph, moved: Mapping[Node, Node] = MappingProxyType({})) -> Graph:
        """Return this graph with the input order of the graph it was made from; new inputs last.

        A call with positional arguments then feeds the same inputs before and after a pass. If this
        graph has no `unread` names, it gets those of that graph. Where nothing changes, it is this
        graph itself.

        Args:
            before: the graph that this one was made from.
            moved: the node that replaces an input of that graph. By default it is the same node,
                or, where that is gone, the one of its name, if only one input had it.

        Raises: ArgumentError where ``before`` is no Graph.
        """
        arguments.instance("Graph.fed_as: before", before, Graph, "a Graph")
        out = self.with_unread(before.unread) if before.unread and not self.unread else self
        if self.inputs == before.inputs:
            return out
        present = set(self.inputs)
        repeated = Counter(n.name for n in before.inputs)
        positions: dict[Node | str, int] = {}
        for k, node in enumerate(before.inputs):
            same = moved.get(node, node)
            if same in present:
                positions[same] = k
            elif repeated[node.name] == 1:
                positions[node.name] = k
        last = len(before.inputs)
        return out.with_inputs(
            sorted(self.inputs, key=lambda n: positions.get(n, positions.get(n.name, last)))
        )

    def without_attrs(self, keep: Iterable[str] = ()) -> Graph:
        """Return this graph with only the annotations named in ``keep``; by default with none.

        Raises: ArgumentError where ``keep`` is no sequence of texts.
        """
        names = set(arguments.sequence("Graph.without_attrs: keep", keep, str, "names"))
        return self._annotated({k: v for k, v in self.attrs.items() if k in names})

    def rebuild(self, change: Callable[[Node, tuple[Entry, ...]], Sequence[Entry] | None]) -> Graph:
        """Return the graph in which ``change`` replaces nodes.

        Control dependences on a replaced node move to its replacement. Annotations are dropped,
        except the `unread` names. Nodes that stay infer shapes and dtypes again where their inputs
        changed.

        Args:
            change: called with each node, in post-order, and its inputs in the new graph; returns
                a list or tuple of the entries that replace those of the node (surplus ones are
                ignored), or None to keep it.

        Raises:
            GraphError: ``change`` returns fewer entries than the node has, or something else than a
                list or tuple of entries.
            ArgumentError: ``change`` is no function.
            ShapeError: A new input does not fit a node that stays.
            DTypeError: A new input does not fit a node that stays.
            Exception: What ``change`` raises.
        """
        return self.rebuilt(change)[0]

    def rebuilt(
        self, change: Callable[[Node, tuple[Entry, ...]], Sequence[Entry] | None]
    ) -> tuple[Graph, dict[Entry, Entry]]:
        """Return the graph that `rebuild` returns, and the map from old entries to new ones.

        ``change`` is that of `rebuild`. The map has every entry of this graph.

        Raises: GraphError, ArgumentError, ShapeError or DTypeError, as `rebuild`; and what
        ``change`` raises.
        """
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
            else:
                _check_replacements("Graph.rebuild", node, entries)
                if len(entries) < len(node.entries):
                    _refuse_replacements("Graph.rebuild", node, str(len(entries)))
                entries = _follow(entries, moved) if node.control else entries
            new.update(zip(node.entries, entries, strict=False))
            moved[node] = entries[0].node
        updates = [(moved[v], new[e]) for v, e in self.updates]
        return Graph([new[e] for e in self.outputs], updates).fed_as(self, moved), new

    def transform(self, change: Callable[[Node], Sequence[Entry] | None]) -> Graph:
        """Return the graph in which ``change`` replaces nodes, given with their new inputs.

        Like `rebuild`, but nodes are passed with their new inputs and control dependences, so that
        they may be other objects than the nodes of this graph.

        Args:
            change: called with each node, in post-order; returns a list or tuple of the entries
                that replace those of the node, one for each, or None to keep it.

        Raises:
            GraphError: ``change`` returns more or fewer entries than the node has, or something
                else than a list or tuple of entries.
            ArgumentError: ``change`` is no function.
            ShapeError: A new input does not fit a node.
            DTypeError: A new input does not fit a node.
            Exception: What ``change`` raises.
        """
        arguments.function("Graph.transform: change", change)
        new: dict[Entry, Entry] = {}
        moved: dict[Node, Node] = {}
        for node in self.nodes:
            inputs = tuple(new[e] for e in node.inputs)
            control = tuple(moved[c] for c in node.control)
            same = inputs == node.inputs and control == node.control
            updated = node if same else node.replaced(inputs, control)
            entries = change(updated)
            if entries is None:
                entries = updated.entries
            else:
                _check_replacements("Graph.transform", node, entries)
            if len(entries) != len(node.entries):
                _refuse_replacements("Graph.transform", node, str(len(entries)))
            new.update(zip(node.entries, entries, strict=True))
            moved[node] = entries[0].node
        updates = [(moved[v], new[e]) for v, e in self.updates]
        return Graph([new[e] for e in self.outputs], updates).fed_as(self, moved)

    def replace(self, values: Mapping[Entry, Entry]) -> Graph:
        """Return the graph in which every use of a key of ``values`` reads its value instead.

        Outputs and new values of state are uses. The values stay as they are: keys that they depend
        on are not replaced in them. Annotations but the `unread` names are dropped.

        Raises: GraphError when a key is not in this graph; ArgumentError when ``values`` is no
        mapping of entries; ShapeError or DTypeError when a node cannot take the new input.
        """
        values = arguments.mapping("Graph.replace: values", values, "a mapping of entries")
        present = {e for n in self.nodes for e in n.entries}
        for entry, value in values.items():
            arguments.instance("Graph.replace: a key of values", entry, Entry, "an Entry")
            arguments.instance("Graph.replace: a value of values", value, Entry, "an Entry")
            if entry not in present:
                raise GraphError(f"Graph.replace: {entry.name} is not in this graph")
        return self.rebuild(
            lambda node, inputs: (
                [
                    values.get(e, n)
                    for e, n in zip(node.entries, _entries_with(node, inputs), strict=True)
                ]
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
        """Return the graph in which ``replacement`` replaces every match of ``pattern``.

        One sweep in post-order: an earlier match wins over one that overlaps it, and replacements
        are not matched again. Values inside a match that other nodes use stay. Nodes with control
        dependences, and operators with TStateful, are never part of a match; nor are, in a graph
        with such operators, inner nodes that read state variables. Annotations but the `unread`
        names are dropped.

        Args:
            pattern: a function that builds the nodes to look for from placeholders, or an operator.
                An argument that it uses twice must match one entry; parameters must be equal.
            replacement: a function that builds the new entry from the matched entries.
            where: called with the matched entries; returns whether to replace them. By default all
                matches are replaced.

        Raises:
            ArgumentError: An argument is no function.
            GraphError: The pattern or the replacement returns something else than one entry, or the
                pattern does not use one of its arguments, takes ``*args`` or keyword-only ones, has
                no signature, or returns an argument, a constant or one of several results.
            ShapeError: The replacement has another rank, or an extent that is another number.
                Unknown ranks and symbolic extents are not compared.
            DTypeError: The replacement has another dtype; an unknown one is not compared.
            Exception: What ``where``, ``pattern`` or ``replacement`` raises.

        Example:
            >>> import passkit as pk
            >>> x = pk.var("x", (3,))
            >>> graph = pk.Graph([pk.ops.log(pk.ops.exp(x))])
            >>> graph.rewrite(lambda x: pk.ops.log(pk.ops.exp(x)), lambda x: x).outputs[0] is x
            True
        """
        for name, function in (("pattern", pattern), ("replacement", replacement)):
            arguments.function(f"Graph.rewrite: {name}", function)
        if where is not None:
            arguments.function("Graph.rewrite: where", where)
        from passkit.graph.pattern import rewrite  # which imports this module

        return rewrite(self, pattern, replacement, where)

    def __copy__(self) -> Graph:
        return self  # it is immutable

    def __deepcopy__(self, memo: dict[int, Any]) -> Graph:
        """Return an equal graph of new nodes, with those annotations that JSON can represent."""
        return copying.deep_copy_graph(self, memo)  # type: ignore[no-any-return]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the graph as JSON, without annotations that JSON cannot represent.

        Raises: GraphError for a parameter that JSON cannot represent, DTypeError for an array of a
        dtype that passkit does not have.
        """
        return copying.graph_of, (copying.text_of(self),)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Return the MIME types and texts that a notebook displays.

        The arguments are those of IPython's display protocol and have no effect.
        """
        return notebook.graph(self)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        ops = sum(not n.is_variable for n in self.nodes)
        attrs = f", attrs: {', '.join(sorted(self.attrs))}" if self.attrs else ""
        return f"Graph({ops} operators, {len(self.outputs)} outputs{attrs})"


def _updates(updates: Any) -> tuple[Update, ...]:
    """Return an argument, an iterable of pairs (variable's node, new value), as a tuple of them.

    Raises: ArgumentError for anything else.
    """
    need = "pairs of a variable's Node and an Entry"
    pairs = arguments.sequence("Graph: updates", updates, tuple, need)
    for pair in pairs:
        if len(pair) != 2 or not isinstance(pair[0], Node) or not isinstance(pair[1], Entry):
            arguments.refuse("Graph: updates", pair, need)
    return pairs


def _entries_with(node: Node, inputs: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Return the results of ``node`` applied to ``inputs``; its own if its inputs are the same."""
    return node.entries if inputs == node.inputs else node.replaced(inputs).entries


def _check_replacements(where: str, node: Node, entries: Any) -> None:
    """Raise a GraphError unless ``entries``, which replace those of ``node``, are a list or tuple.

    All its elements must be entries; their number is not checked. ``where`` is the method, for the
    message.
    """
    if not isinstance(entries, (list, tuple)):
        _refuse_replacements(where, node, f"{arguments.shown(entries)}; put it into a list")
    for entry in entries:
        if not isinstance(entry, Entry):
            _refuse_replacements(where, node, arguments.shown(entry))


def _refuse_replacements(where: str, node: Node, got: str) -> NoReturn:
    """Raise a GraphError: ``change`` of the method ``where`` returned ``got`` for ``node``."""
    raise GraphError(
        f"{where}: change must return an entry for each of the {len(node.entries)} result(s) of "
        f"{node.where}, got {got}"
    )


def _follow(entries: Sequence[Entry], moved: Mapping[Node, Node]) -> list[Entry]:
    """Return ``entries`` with the control dependences of their nodes updated.

    Args:
        entries: the entries.
        moved: the replacements of nodes that control dependences refer to; a node that is no key
            stays.
    """
    updated: dict[Node, Node] = {}
    for node in dict.fromkeys(e.node for e in entries):
        control = tuple(moved.get(c, c) for c in node.control)
        updated[node] = node if control == node.control else node.replaced(control=control)
    return [updated[e.node].entries[e.index] for e in entries]


def before(node: Node) -> list[Node]:
    """Return the nodes of the inputs of a node, then its control dependences."""
    return [*(e.node for e in node.inputs), *node.control]


def post_order(
    heads: Iterable[Node], before: Callable[[Node], Iterable[Node]] = before
) -> list[Node]:
    """Return the nodes that ``heads`` depend on, and these, in depth-first post-order.

    Each node is listed once.

    Args:
        heads: the nodes to start from.
        before: returns the nodes that a node depends on, which come first in the order; by default
            those of its inputs, then its control dependences.

    Raises:
        GraphError: There is a cycle; the message names a node on it.
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
    """Return a SHA-256 digest of a graph's structure, the same in every process.

    Parameters and control dependences are part of it; names of operator nodes and annotations are
    not.

    Args:
        graph: the graph.
        variables: for some variables a value whose repr represents them in the digest; None for no
            variable. Others are represented by their position among the inputs (state variables by
            name), shape and dtype.
    """
    ids: dict[Node, int] = {}
    sha = hashlib.sha256()
    feeds = {n: k for k, n in enumerate(graph.inputs)}
    for node in graph.nodes:
        ids[node] = len(ids)
        if variables is not None and node in variables:
            content: object = variables[node]
        elif node.op is None:
            rank = feeds.get(node, node.name)
            content = (rank, str(node.params.get("shape")), str(node.params.get("dtype")))
        else:
            content = (node.op.name, freeze(node.params))
        edges = [(ids[e.node], e.index) for e in node.inputs], [ids[c] for c in node.control]
        sha.update(repr((content, edges)).encode())
    sha.update(repr([(ids[e.node], e.index) for e in graph.outputs]).encode())
    sha.update(repr([(ids[v], ids[e.node], e.index) for v, e in graph.updates]).encode())
    return sha.hexdigest()


_PLAIN = frozenset((int, float, bool, str, type(None)))
"""Types of most parameters, whose repr `freeze` takes."""


def freeze(value: Any) -> Any:
    """Return a parameter as a value that can be a key and whose repr is the same in every process.

    Arrays become dtype, shape and a digest of their bytes; mappings sorted pairs; lists and tuples
    tuples; objects with a ``key`` that; functions their module and qualified name. Anything else is
    represented by its repr.
    """
    if type(value) in _PLAIN:
        return repr(value)
    if isinstance(value, np.ndarray):
        data = np.ascontiguousarray(value).tobytes()
        return "array", str(value.dtype), value.shape, hashlib.sha256(data).hexdigest()
    if isinstance(value, Mapping):
        return tuple(sorted((str(k), freeze(v)) for k, v in value.items()))
    if isinstance(value, (tuple, list)):
        return tuple(freeze(v) for v in value)
    if hasattr(value, "key"):
        return value.key
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return repr(value)


def graph_of_argument(where: str, value: Any) -> Graph:
    """Return a graph itself, or an entry or several as a graph that has them as outputs.

    Raises:
        ArgumentError: ``value`` is none of these; the message begins with ``where``.
        GraphError: It is a sequence of something else than entries.
    """
    if isinstance(value, Graph):
        return value
    if not isinstance(value, Entry):
        need = "a Graph, an Entry or a sequence of entries"
        value = arguments.sequence(where, value, object, need)
    return Graph(value)
