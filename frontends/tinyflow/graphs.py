"""Graphs that a program builds up: names, scopes, collections, devices, seeds and what is written.

The graph holds what passkit's pure graphs do not: which nodes write variables, and what must run
before what. A run makes a pure graph of it.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from attrs import define, field, frozen

from passkit.errors import GraphError
from passkit.frontends.tinyflow.innermost import Innermost
from passkit.graph.node import Entry, Node, var

if TYPE_CHECKING:
    from passkit.frontends.tinyflow.variables import Variable


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


@frozen(eq=False)
class Write:
    """What a node writes: a variable, and its value; or a value to be added to the last one."""

    variable: Variable
    value: Entry
    adds: int = 0
    """1 to add ``value`` to what the variable holds, -1 to take it away, 0 to replace that."""
    when: Entry | None = None
    """A bool without which nothing is written; None writes always."""


@define(eq=False)
class Graph:
    """The nodes of a program, and what is known of them beside passkit's own graph."""

    seed: int | None = None
    writes: WeakKeyDictionary[Node, Write] = field(factory=WeakKeyDictionary)
    devices: WeakKeyDictionary[Node, tuple[str, str]] = field(factory=WeakKeyDictionary)
    """For nodes made within tf.device: the device, and the tensor's name."""
    checks: WeakKeyDictionary[Node, str] = field(factory=WeakKeyDictionary)
    """Nodes whose values must be finite, and what to say if they are not."""
    collections: dict[str, list[Any]] = field(factory=dict)
    shared: dict[str, Variable] = field(factory=dict)
    """The variables that get_variable made."""
    run_number: Entry = field(factory=lambda: var("run_number", (), "int64"))
    """An input that counts the runs of a session, so that draws differ from run to run."""
    shaped: dict[Entry, Entry] = field(factory=dict)
    """For a placeholder without a shape the one that `set_shape` gave it."""
    round_number: Entry | None = None
    """The number of the round of a loop that goes round in the run, while its body is made."""
    scope_counts: dict[str, int] = field(factory=dict)
    """How often each default name of a variable scope was taken."""
    _taken: dict[str, int] = field(factory=dict)
    _scope: str = ""
    _device: str = ""
    _controls: tuple[Node, ...] = ()
    _draws: Iterator[int] = field(factory=itertools.count)
    _lock: Any = field(factory=threading.RLock)

    def unique(self, name: str) -> str:
        """``name`` under the scope in force; numbered, if it is taken."""
        whole = f"{self._scope}{name}"
        with self._lock:
            count = self._taken.get(whole.lower(), 0)
            self._taken[whole.lower()] = count + 1
            return whole if count == 0 else self.unique(f"{name}_{count}")

    @contextmanager
    def in_round(self, number: Entry) -> Iterator[None]:
        """Within it, draws differ by a round's number, which a loop counts."""
        before, self.round_number = self.round_number, number
        try:
            yield
        finally:
            self.round_number = before

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Within it, names that are taken do not change those of tensors made later."""
        with self._lock:
            before = dict(self._taken), dict(self.scope_counts)
            try:
                yield
            finally:
                self._taken, self.scope_counts = before

    @contextmanager
    def scoped(self, prefix: str) -> Iterator[str]:
        """Within it, names begin with ``prefix``, which ends in a slash or is empty."""
        before, self._scope = self._scope, prefix
        try:
            yield prefix
        finally:
            self._scope = before

    @property
    def scope(self) -> str:
        """The prefix in force, with a slash at its end; empty at the top."""
        return self._scope

    @contextmanager
    def after(self, nodes: Iterable[Node] | None) -> Iterator[None]:
        """Within it, what is made runs after ``nodes``; None forgets those of outer ones."""
        before = self._controls
        self._controls = () if nodes is None else tuple(dict.fromkeys((*before, *nodes)))
        try:
            yield
        finally:
            self._controls = before

    @property
    def controls(self) -> tuple[Node, ...]:
        """What everything made here runs after."""
        return self._controls

    @contextmanager
    def on(self, device: str) -> Iterator[None]:
        """Within it, what is made is placed on a device."""
        before, self._device = self._device, device
        try:
            yield
        finally:
            self._device = before

    @property
    def device(self) -> str:
        """The device in force, or nothing."""
        return self._device

    def add_to_collection(self, name: str, value: Any) -> None:
        """Put a value into a collection."""
        self.collections.setdefault(name, []).append(value)

    def get_collection(self, key: str, scope: str | None = None) -> list[Any]:
        """What a collection holds; with ``scope``, only what has a name that begins with it."""
        found = self.collections.get(key, [])
        if scope is None:
            return list(found)
        return [v for v in found if getattr(v, "name", "").startswith(scope)]

    def next_draw(self) -> int:
        """The number of the next random operator."""
        return next(self._draws)

    @contextmanager
    def as_default(self) -> Iterator[Graph]:
        """Within it, in this thread, operators are made in this graph."""
        with _defaults.within(self):
            yield self


_defaults: Innermost[Graph] = Innermost()
_root = [Graph()]


def get_default_graph() -> Graph:
    """The graph that operators are made in: that of the innermost ``with g.as_default()``."""
    return _defaults.last or _root[0]


def reset_default_graph() -> None:
    """Begin with an empty graph. Raises: GraphError within ``with g.as_default()``."""
    if _defaults.items:
        raise GraphError(
            "reset_default_graph needs to stand outside of every `with graph.as_default()`, got "
            f"{len(_defaults.items)} around it; leave them first"
        )
    _root[0] = Graph()


def get_collection(key: str, scope: str | None = None) -> list[Any]:
    """What a collection of the default graph holds."""
    return get_default_graph().get_collection(key, scope)


def add_to_collection(name: str, value: Any) -> None:
    """Put a value into a collection of the default graph."""
    get_default_graph().add_to_collection(name, value)


def set_random_seed(seed: int) -> None:
    """Make the draws of operators made from here on repeat in every process."""
    get_default_graph().seed = int(seed)
