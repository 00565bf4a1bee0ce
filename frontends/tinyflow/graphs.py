"""The default graph and the state of graph construction: names, scopes, devices, seeds and writes.

passkit's own graphs are pure. A tinyflow `Graph` adds which nodes write variables, which nodes must
run before others, and on which device they run. `functionalize` turns each run into a pure graph.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from attrs import define, field, frozen

from passkit.errors import GraphError
from passkit.frontends.tinyflow.argument_checks import require_int
from passkit.graph.node import Entry, Node, var
from passkit.values import arguments

if TYPE_CHECKING:
    from passkit.frontends.tinyflow.variables import Variable

T = TypeVar("T")


class GraphKeys:
    """The names of the collections that tinyflow fills."""

    GLOBAL_VARIABLES = "variables"
    LOCAL_VARIABLES = "local_variables"
    TRAINABLE_VARIABLES = "trainable_variables"
    UPDATE_OPS = "update_ops"
    LOSSES = "losses"
    REGULARIZATION_LOSSES = "regularization_losses"
    SUMMARIES = "summaries"
    GLOBAL_STEP = "global_step"


class DefaultStack(threading.local, Generic[T]):
    """The nested defaults of a thread, innermost last. Every thread begins with an empty stack."""

    def __init__(self) -> None:
        """Create an empty stack; called again in each thread that uses it."""
        self.items: list[T] = []

    @property
    def innermost(self) -> T | None:
        """The current default; None if there is none."""
        return self.items[-1] if self.items else None

    @contextmanager
    def entered(self, item: T) -> Iterator[T]:
        """Make ``item`` the default inside the `with` block, and yield it."""
        self.items.append(item)
        try:
            yield item
        finally:
            self.remove(item)

    def remove(self, item: T) -> None:
        """Remove the innermost occurrence of the object ``item``, if any.

        It need not be the innermost item: blocks may end in any order.
        """
        for k in reversed(range(len(self.items))):
            if self.items[k] is item:
                del self.items[k]
                return


@frozen(eq=False)
class VariableWrite:
    """A write to a variable, which a node performs when it runs."""

    variable: Variable
    value: Entry
    """The new value, or the difference to the current value where ``adds`` is not 0."""
    adds: int = 0
    """1 to add ``value`` to the variable, -1 to subtract it, 0 to replace the variable."""
    when: Entry | None = None
    """A scalar bool: the variable is written only if it is true. None: always."""


@define(eq=False)
class Graph:
    """A graph under construction: what passkit's pure graph does not record about its nodes.

    `tf.get_default_graph` returns the current one; ``with graph.as_default()`` makes a graph
    current.

    Args:
        seed: The graph-level random seed; None for draws that differ from process to process.
    """

    seed: int | None = None
    writes: WeakKeyDictionary[Node, VariableWrite] = field(init=False, factory=WeakKeyDictionary)
    devices: WeakKeyDictionary[Node, tuple[str, str]] = field(init=False, factory=WeakKeyDictionary)
    """The device and the tensor's name for each node created inside `tf.device`."""
    checks: WeakKeyDictionary[Node, str] = field(init=False, factory=WeakKeyDictionary)
    """The error message for each node whose values must be finite (`tf.check_numerics`)."""
    collections: dict[str, list[Any]] = field(init=False, factory=dict)
    shared_variables: dict[str, Variable] = field(init=False, factory=dict)
    """The variables that `tf.get_variable` created, by full name."""
    run_number: Entry = field(init=False, factory=lambda: var("run_number", (), "int64"))
    """An input that counts the runs of a session, so that random draws differ between runs."""
    refined_entries: WeakKeyDictionary[Node, Entry] = field(init=False, factory=WeakKeyDictionary)
    """For each node that `Tensor.set_shape` created the entry whose shape it refines."""
    iteration_number: Entry | None = field(init=False, default=None)
    """While the body of a run-time loop is traced: the number of the iteration."""
    scope_counts: dict[str, int] = field(init=False, factory=dict)
    """How often each default name of a variable scope was used."""
    _name_counts: dict[str, int] = field(init=False, factory=dict)
    _name_prefix: str = field(init=False, default="")
    _device: str = field(init=False, default="")
    _controls: tuple[Node, ...] = field(init=False, default=())
    _draws: Iterator[int] = field(init=False, factory=itertools.count)
    _lock: Any = field(init=False, factory=threading.RLock)

    def unique_name(self, name: str) -> str:
        """Take an unused name under the current name scope.

        Args:
            name: The requested name, without the scope.

        Returns:
            The full name: scope and ``name``, with "_1", "_2", … appended if it is taken. Letter
            case does not tell names apart.
        """
        full_name = f"{self._name_prefix}{name}"
        with self._lock:
            count = self._name_counts.get(full_name.lower(), 0)
            self._name_counts[full_name.lower()] = count + 1
            return full_name if count == 0 else self.unique_name(f"{name}_{count}")

    @contextmanager
    def loop_iteration(self, number: Entry) -> Iterator[None]:
        """Make random draws created inside the block differ by the iteration of a loop.

        Args:
            number: The number of the iteration, a scalar int64 entry.
        """
        outer, self.iteration_number = self.iteration_number, number
        try:
            yield
        finally:
            self.iteration_number = outer

    @contextmanager
    def restoring_names(self) -> Iterator[None]:
        """Release the names of tensors and scopes that are taken inside the block when it ends.

        Other threads wait for a name meanwhile.
        """
        with self._lock:
            outer = dict(self._name_counts), dict(self.scope_counts)
            try:
                yield
            finally:
                self._name_counts, self.scope_counts = outer

    @contextmanager
    def with_name_prefix(self, prefix: str) -> Iterator[str]:
        """Begin names inside the block with ``prefix`` instead of the current prefix; yield it.

        It is empty or ends in a slash; that is not checked.
        """
        outer, self._name_prefix = self._name_prefix, prefix
        try:
            yield prefix
        finally:
            self._name_prefix = outer

    @property
    def name_prefix(self) -> str:
        """The current name scope, with a slash at its end; empty at the top level."""
        return self._name_prefix

    @contextmanager
    def with_dependencies(self, nodes: Iterable[Node] | None) -> Iterator[None]:
        """Make nodes created inside the block run after ``nodes``.

        Args:
            nodes: The dependencies, added to those of outer blocks; None drops the outer ones.
        """
        outer = self._controls
        self._controls = () if nodes is None else tuple(dict.fromkeys((*outer, *nodes)))
        try:
            yield
        finally:
            self._controls = outer

    @property
    def controls(self) -> tuple[Node, ...]:
        """The control dependencies of nodes that are created now; none outside of all blocks."""
        return self._controls

    @contextmanager
    def with_device(self, device: str) -> Iterator[None]:
        """Record ``device`` for nodes of tensors created inside the block.

        It replaces that of outer blocks; an empty one stands for the session's target.
        """
        outer, self._device = self._device, device
        try:
            yield
        finally:
            self._device = outer

    @property
    def device(self) -> str:
        """The device of nodes that are created now; empty for the session's target."""
        return self._device

    def add_to_collection(self, name: str, value: Any) -> None:
        """Append ``value`` to the collection ``name``, which is created if it is new.

        Raises:
            ArgumentError: If ``name`` is no text.
        """
        arguments.text("add_to_collection: name", name)
        self.collections.setdefault(name, []).append(value)

    def get_collection(self, key: str, scope: str | None = None) -> list[Any]:
        """Return the values of a collection.

        Args:
            key: The collection's name.
            scope: If not None, only values whose ``name`` begins with it are returned; one without
                a ``name`` does so only for an empty scope.

        Returns:
            A new list of the values in the order in which they were added; empty for an unknown
            name.

        Raises:
            ArgumentError: If ``key`` is no text, or ``scope`` neither a text nor None.
        """
        values = self.collections.get(arguments.text("get_collection: key", key), [])
        if scope is None:
            return list(values)
        arguments.text("a collection: scope", scope)
        names = [getattr(v, "name", None) for v in values]
        return [
            v
            for v, name in zip(values, names, strict=True)
            if (name if isinstance(name, str) else "").startswith(scope)
        ]

    def next_draw(self) -> int:
        """Count a random operator, and return its number in this graph, from 0."""
        return next(self._draws)

    @contextmanager
    def as_default(self) -> Iterator[Graph]:
        """Make this the default graph of the thread inside the `with` block; yield it."""
        with _default_graphs.entered(self):
            yield self


_default_graphs: DefaultStack[Graph] = DefaultStack()
_root_graph = [Graph()]
default_sessions: DefaultStack[Any] = DefaultStack()
"""The sessions of nested ``with session.as_default()`` blocks."""


def get_default_graph() -> Graph:
    """Return the graph that new operators join.

    Returns:
        The graph of the innermost ``with graph.as_default()`` of this thread, or else a
        process-wide one.
    """
    return _default_graphs.innermost or _root_graph[0]


def graph_or_default(where: str, graph: Any) -> Graph:
    """Return the argument ``graph``, or the default graph for None.

    Raises:
        ArgumentError: If it is neither; it names the argument ``where``.
    """
    if graph is None:
        return get_default_graph()
    if not isinstance(graph, Graph):
        arguments.refuse(where, graph, "a tinyflow graph")
    return graph


def reset_default_graph() -> None:
    """Replace the process-wide default graph by an empty one.

    Raises:
        GraphError: Inside ``with graph.as_default()``.
    """
    if _default_graphs.items:
        raise GraphError(
            "reset_default_graph needs to be called outside of `with graph.as_default()`, got "
            f"{len(_default_graphs.items)} such blocks around it; leave them first"
        )
    _root_graph[0] = Graph()


def get_collection(key: str, scope: str | None = None) -> list[Any]:
    """Return the values of a collection of the default graph.

    Args:
        key: The collection's name, such as an attribute of `GraphKeys`.
        scope: If not None, only values whose ``name`` begins with it are returned; one without a
            ``name`` does so only for an empty scope.

    Returns:
        A new list of the values in the order in which they were added; empty for an unknown name.

    Raises:
        ArgumentError: If ``key`` is no text, or ``scope`` neither a text nor None.
    """
    return get_default_graph().get_collection(key, scope)


def add_to_collection(name: str, value: Any) -> None:
    """Append a value to a collection of the default graph, which is created if it is new.

    Args:
        name: The collection's name.
        value: Any value.

    Raises:
        ArgumentError: If ``name`` is no text.
    """
    get_default_graph().add_to_collection(name, value)


def set_random_seed(seed: int) -> None:
    """Set the seed of the default graph.

    Random operators created from now on draw the same numbers in every process.

    Args:
        seed: An int, or a float without a fraction; None is not accepted.

    Raises:
        SettingError: If ``seed`` is no int.
    """
    get_default_graph().seed = require_int("set_random_seed", "seed", seed)
