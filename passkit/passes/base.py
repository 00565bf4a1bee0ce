"""What a pass is: a function from graph to graph whose reads and writes are declared.

The registry of passes is here; `passkit.passes.apply` runs them and enforces what they declare.
A pass is a file, a function and a test of one name, so a pass is found by its name: the file of
``InferShape`` is ``infer_shape.py``, and it is read when somebody first asks for it.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from importlib import import_module
from threading import Lock
from typing import Any

from attrs import field, frozen

from passkit.errors import PassError, RegistryError, nearest
from passkit.graph.graph import Graph
from passkit.graph.registry import calling_place
from passkit.values import arguments
from passkit.values.named import ask_hooks

Body = Callable[..., Graph]
_lock = Lock()


def _names(value: str | tuple[str, ...] | list[str]) -> tuple[str, ...]:
    need = "a name or a sequence of names"
    return (value,) if isinstance(value, str) else arguments.sequence("Pass", value, str, need)


@frozen(eq=False)
class Pass:
    """A function from graph to graph, with what it reads and writes declared.

    ``body`` takes a Graph and, if it has a second parameter, the PassContext; it returns a Graph.
    ``depends`` and ``provides`` are annotations of the graph, ``depends_op`` attributes that every
    operator in it must have. A pass with ``changes_graph`` makes new nodes: annotations that it
    neither provides nor ``preserves`` are dropped; of those that it preserves it remaps each
    `Annotation` by itself, while facts such as "expanded" are kept for it. An ``implied`` pass is
    run for whoever depends on what it provides and does not find it: analyses, and transformations
    that keep the meaning of a graph, such as Expand. A ``required`` pass cannot be disabled. A
    ``target_dependent`` pass binds its graph to the target.
    """

    name: str
    body: Body = field(repr=False)
    depends: tuple[str, ...] = field(default=(), converter=_names)
    provides: tuple[str, ...] = field(default=(), converter=_names)
    depends_op: tuple[str, ...] = field(default=(), converter=_names)
    changes_graph: bool = False
    target_dependent: bool = False
    preserves: tuple[str, ...] = field(default=(), converter=_names)
    implied: bool = False
    required: bool = False
    place: str = field(default="", repr=False)
    takes_context: bool = field(init=False, repr=False)

    @takes_context.default
    def _takes_context(self) -> bool:
        need = "of a graph, or of a graph and the PassContext"
        return arguments.parameters(f"Pass {self.name}: body", self.body, need, 1, 2) > 1

    @property
    def doc(self) -> str:
        """The first line of the body's docstring."""
        return (self.body.__doc__ or "").strip().partition("\n")[0]

    def __call__(self, graph: Graph, **options: Any) -> Graph:
        """The graph that this pass makes of ``graph``, with its contract enforced."""
        from passkit.passes.apply import ApplyPasses  # it runs passes, so it stands above them

        return ApplyPasses(graph, self, **options)


_passes: dict[str, Pass] = {}
_LISTS = frozenset({"depends", "provides", "depends_op", "preserves"})


def _check_arguments(given: dict[str, Any]) -> None:
    """Check the arguments of `register_pass`: a name, lists of names, and flags."""
    for key, value in given.items():
        where = f"register_pass: {key}"
        if key == "name":
            arguments.name(where, value, "CountNodes")
        elif key not in _LISTS:
            arguments.flag(where, value)
        elif not isinstance(value, str):
            arguments.sequence(where, value, str, "a name or a sequence of names")


def register_pass(
    name: str,
    *,
    depends: str | tuple[str, ...] = (),
    provides: str | tuple[str, ...] = (),
    depends_op: str | tuple[str, ...] = (),
    changes_graph: bool = False,
    target_dependent: bool = False,
    preserves: str | tuple[str, ...] = (),
    implied: bool = False,
    required: bool = False,
) -> Callable[[Body], Pass]:
    """Make the decorated function the pass called ``name``; the fields are those of `Pass`.

    Registering from the same place again replaces the pass, so that a notebook cell can re-run.

    Raises: RegistryError when the name was registered at another place.
    """
    _check_arguments(dict(locals()))
    place = calling_place()

    def register(body: Body) -> Pass:
        need = "a function from Graph to Graph"
        if not callable(body) or isinstance(body, type):
            arguments.refuse(f"register_pass({name!r}): the body", body, need)
        made = Pass(
            name,
            body,
            depends,
            provides,
            depends_op,
            changes_graph,
            target_dependent,
            preserves,
            implied,
            required,
            place,
        )
        if name not in _passes:
            _load(name)
        with _lock:
            old = _passes.get(name)
            if old is not None and old.place != place:
                raise RegistryError(
                    f"pass {name} is registered at {old.place} and now at {place}; "
                    f"give one of them another name"
                )
            _passes[name] = made
        return made

    return register


def find_pass(name: str) -> Pass:
    """A registered pass by its name.

    Raises: RegistryError with the nearest name.
    """
    if arguments.text("a pass's name", name) not in _passes:
        _load(name)
    if name not in _passes:
        ask_hooks("pass", name)
    found = _passes.get(name)
    if found is None:
        raise RegistryError(f"pass {name!r} is not registered; {nearest(name, list_passes())}")
    return found


def list_passes() -> list[str]:
    """The names of all passes, sorted."""
    for file in _files():
        import_module(file)
    return sorted(_passes)


def providers(annotation: str) -> list[Pass]:
    """The passes that provide an annotation, by name."""
    found = [p for p in list(_passes.values()) if annotation in p.provides]
    if not found:
        found = [p for p in map(find_pass, list_passes()) if annotation in p.provides]
    return sorted(found, key=lambda p: p.name)


def provider(annotation: str, wanted_by: str) -> Pass:
    """The pass to run for an annotation that is not set; an implied one before others.

    Raises: PassError when no pass provides it.
    """
    found = providers(annotation)
    if not found:
        known = {a for n in list_passes() for a in find_pass(n).provides}
        raise PassError(
            f"{wanted_by} depends on graph attribute '{annotation}', which is not set, and no pass "
            f"provides it; {nearest(annotation, known)}"
        )
    return min(found, key=lambda p: (not p.implied, p.name))


def _files() -> list[str]:
    package = import_module("passkit.passes")
    return [f"passkit.passes.{m.name}" for m in pkgutil.iter_modules(package.__path__)]


def _load(name: str) -> None:
    for file in _files():
        if file.rpartition(".")[2].replace("_", "") == name.lower():
            import_module(file)
