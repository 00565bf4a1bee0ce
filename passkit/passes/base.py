"""Passes and their registry.

`passkit.passes.apply` runs passes and enforces their declarations. The file of a pass is named like
the pass: that of ``InferShape`` is ``infer_shape.py``, and it is imported when the pass is first
looked up.
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

PassBody = Callable[..., Graph]
_lock = Lock()


def _names(value: str | tuple[str, ...] | list[str]) -> tuple[str, ...]:
    """Return one name or a sequence of names as a tuple.

    Raises: ArgumentError if ``value`` is neither text nor a sequence of texts.
    """
    need = "a name or a sequence of names"
    return (value,) if isinstance(value, str) else arguments.sequence("Pass", value, str, need)


@frozen(eq=False)
class Pass:
    """A function from graph to graph, with a declaration of what it reads and writes.

    Attributes:
        name: The name of the pass, unique.
        body: Takes a Graph and, if it has a second parameter, the PassContext; returns a Graph.
        depends: Annotations of the graph that must be set before the pass runs.
        provides: Annotations that the pass sets.
        depends_op: Attributes that every operator of the graph must have.
        changes_graph: Whether it creates nodes. Annotations that it neither provides nor preserves
            are dropped where it returns other outputs or updates than it got.
        target_dependent: Whether its result depends on the target, to which it binds the graph.
        preserves: Annotations that stay valid. The pass remaps each `Annotation` to the new nodes
            itself, while facts such as "expanded" are copied for it.
        implied: Whether it is run automatically if a pass depends on what it provides: analyses,
            and transformations that keep the meaning of a graph, such as Expand.
        required: Whether it cannot be disabled.
        place: Where it was registered, as file and line; "" if it is not registered.
        takes_context: Whether ``body`` has a second parameter.
    """

    name: str
    body: PassBody = field(repr=False)
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
        """Return whether the body takes the PassContext after the graph.

        It does if it has two or more positional parameters, also if the second has a default.

        Raises: ArgumentError if ``name`` is no string, or the body is no function that can be
        called with one argument, or with two if it has that many parameters.
        """
        arguments.text("Pass: name", self.name)
        arguments.function(f"Pass {self.name}: body", self.body)
        need = "of a graph, or of a graph and the PassContext"
        return arguments.parameters(f"Pass {self.name}: body", self.body, need, 1, 2) > 1

    @property
    def doc(self) -> str:
        """The first line of the body's docstring; "" without one."""
        return (self.body.__doc__ or "").strip().partition("\n")[0]

    def __call__(self, graph: Graph, **options: Any) -> Graph:
        """Return the graph after this pass; as `ApplyPasses` of this pass alone.

        ``options`` are those of `PassContext`. A disabled pass returns the graph unchanged.

        Raises: PassError where ``graph`` is no Graph or this pass breaks its declaration,
        ArgumentError and SettingError for options, what the pass raises, and the other errors of
        `ApplyPasses`.
        """
        from passkit.passes.apply import ApplyPasses  # which imports this module

        return ApplyPasses(graph, self, **options)


_passes: dict[str, Pass] = {}
_LISTS = frozenset({"depends", "provides", "depends_op", "preserves"})


def _check_arguments(values: dict[str, Any]) -> None:
    """Check the arguments of `register_pass`, by their names: a name, lists of names, and flags.

    Raises: ArgumentError for one of another type, and for a name that is no identifier.
    """
    for key, value in values.items():
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
) -> Callable[[PassBody], Pass]:
    """Return a decorator that registers a function as a pass.

    Registering from the same place again replaces the pass, so that a notebook cell can re-run.

    Args:
        name: The name of the pass.
        depends: Annotations of the graph that must be set before the pass runs.
        provides: Annotations that the pass sets.
        depends_op: Attributes that every operator of the graph must have.
        changes_graph: Whether it creates nodes.
        target_dependent: Whether its result depends on the target.
        preserves: Annotations that stay valid although the graph changes.
        implied: Whether it is run automatically if another pass depends on what it provides.
        required: Whether it cannot be disabled.

    Returns: A decorator of a function that takes a Graph and, if it has a second parameter, the
        PassContext, and returns a Graph. Its result is the `Pass`.

    Raises:
        RegistryError: The name was registered at another place; the decorator raises it.
        ArgumentError: An argument or the decorated function has a wrong type, or ``name`` is no
            identifier.
    """
    _check_arguments(dict(locals()))
    place = calling_place()

    def register(body: PassBody) -> Pass:
        """Register a function as the pass, and return the `Pass`.

        Raises: ArgumentError if ``body`` is no function of a graph and perhaps a context;
        RegistryError if the name was registered at another place.
        """
        need = "a function from Graph to Graph"
        if not callable(body) or isinstance(body, type):
            arguments.refuse(f"register_pass({name!r}): the body", body, need)
        new = Pass(
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
            _passes[name] = new
        return new

    return register


def find_pass(name: str) -> Pass:
    """Return a registered pass by its name; import its module, or plug-ins, if that is necessary.

    Raises: RegistryError with the nearest name if there is none; ArgumentError if ``name`` is no
    text.
    """
    if arguments.text("a pass's name", name) not in _passes:
        _load(name)
    if name not in _passes:
        ask_hooks("pass", name)
    registered = _passes.get(name)
    if registered is None:
        raise RegistryError(f"pass {name!r} is not registered; {nearest(name, list_passes())}")
    return registered


def list_passes() -> list[str]:
    """Return the names of all passes, sorted; import all modules of passes."""
    for module in _modules():
        import_module(module)
    return sorted(_passes)


def providers(annotation: str) -> list[Pass]:
    """Return the passes that provide an annotation, sorted by name; empty if there are none.

    Modules of passes are imported only if no pass that is loaded provides it, so it may be that not
    all are returned.
    """
    matching = [p for p in list(_passes.values()) if annotation in p.provides]
    if not matching:
        matching = [p for p in map(find_pass, list_passes()) if annotation in p.provides]
    return sorted(matching, key=lambda p: p.name)


def provider(annotation: str, dependent: str) -> Pass:
    """Return the pass to run for an annotation that is not set: an implied one, if there is any.

    Of several, it is the first by name. ``dependent`` is the name of the pass that depends on the
    annotation, for the message.

    Raises: PassError if no pass provides the annotation.
    """
    candidates = providers(annotation)
    if not candidates:
        annotations = {a for n in list_passes() for a in find_pass(n).provides}
        raise PassError(
            f"{dependent} depends on graph attribute '{annotation}', which is not set, and no pass "
            f"provides it; {nearest(annotation, annotations)}"
        )
    return min(candidates, key=lambda p: (not p.implied, p.name))


def _modules() -> list[str]:
    """Return the full names of all modules and packages in `passkit.passes`."""
    package = import_module("passkit.passes")
    return [f"passkit.passes.{m.name}" for m in pkgutil.iter_modules(package.__path__)]


def _load(name: str) -> None:
    """Import the module that is named like the pass ``name``, if there is one.

    Case and underscores do not matter: "InferShape" is in ``infer_shape``.
    """
    for module in _modules():
        if module.rpartition(".")[2].replace("_", "") == name.lower():
            import_module(module)
