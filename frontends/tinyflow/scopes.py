"""Scopes: of names, of variables that are shared, of devices, and of what runs after what."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from attrs import define, evolve, field

from passkit.errors import GraphError, SettingError, ShapeError, nearest
from passkit.frontends.tinyflow.graphs import GraphKeys, get_default_graph
from passkit.frontends.tinyflow.initializers import glorot_uniform_initializer, zeros_initializer
from passkit.frontends.tinyflow.innermost import Innermost
from passkit.frontends.tinyflow.ranks import known_shape
from passkit.frontends.tinyflow.refusals import refuses
from passkit.frontends.tinyflow.shapes import extents_of, shown
from passkit.frontends.tinyflow.tensors import Operation, Tensor
from passkit.frontends.tinyflow.types import as_dtype
from passkit.frontends.tinyflow.variables import ONE_SESSION, Variable
from passkit.graph.node import Node
from passkit.values.dtype import DType

AUTO_REUSE = "AUTO_REUSE"
"""As ``reuse``: take a variable that there is, or make it."""


@define
class VariableScope:
    """What get_variable does where it is in force."""

    name: str = ""
    initializer: Any = None
    regularizer: Any = None
    constraint: Any = None
    dtype: DType = field(factory=lambda: as_dtype("float32"))
    reuse: Any = False

    @property
    def original_name_scope(self) -> str:
        """The prefix of names."""
        return f"{self.name}/" if self.name else ""

    def reuse_variables(self) -> None:
        """From here on take variables that there are."""
        self.reuse = True

    def trainable_variables(self) -> list[Any]:
        """Those in the scope that optimizers change."""
        return get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES, self.name)

    def global_variables(self) -> list[Any]:
        """Those in the scope."""
        return get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES, self.name)


_scopes: Innermost[tuple[Any, VariableScope]] = Innermost()


def get_variable_scope() -> VariableScope:
    """The scope in force."""
    graph = get_default_graph()
    found = next((scope for owner, scope in reversed(_scopes.items) if owner is graph), None)
    return found or VariableScope()


@contextmanager
def name_scope(
    name: str | None, default_name: str | None = None, values: Sequence[Any] | None = None
) -> Iterator[str]:
    """Within it, names begin with this one; it is numbered if it is taken.

    ``values`` say which graph: that of the first tensor among them.
    """
    graph = next((v.graph for v in values or () if isinstance(v, Tensor)), get_default_graph())
    prefix = name if name is not None else default_name or ""
    if prefix and not prefix.endswith("/"):
        prefix = graph.unique(prefix) + "/"
    with graph.as_default(), graph.scoped(prefix) as found:
        yield found


@contextmanager
def shared_variables() -> Iterator[None]:
    """Within it, get_variable takes variables that there are, and makes those that are missing."""
    scope = evolve(get_variable_scope(), reuse=AUTO_REUSE)
    with _scopes.within((get_default_graph(), scope)):
        yield


class variable_scope:  # noqa: N801 – TensorFlow's name
    """Within it, get_variable names variables under a scope, and shares them if ``reuse`` says so.

    ``default_name`` is numbered if it is taken. ``values`` say which graph, as in `name_scope`;
    without ``auxiliary_name_scope`` only variables are named by it.
    """

    @refuses(ONE_SESSION, "caching_device", "partitioner", "custom_getter", "use_resource")
    def __init__(
        self,
        name_or_scope: Any,
        default_name: str | None = None,
        values: Sequence[Any] | None = None,
        initializer: Any = None,
        regularizer: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        custom_getter: Any = None,
        reuse: Any = None,
        dtype: Any = None,
        use_resource: Any = None,
        constraint: Any = None,
        auxiliary_name_scope: bool = True,
    ) -> None:
        if name_or_scope is None and default_name is None:
            raise SettingError("variable_scope needs a name or a default_name, got neither")
        self.given, self.default, self.names = name_or_scope, default_name, auxiliary_name_scope
        self.graph = next((v.graph for v in values or () if isinstance(v, Tensor)), None)
        changes = {"initializer": initializer, "regularizer": regularizer, "constraint": constraint}
        self.changes: dict[str, Any] = {k: v for k, v in changes.items() if v is not None}
        if dtype is not None:
            self.changes["dtype"] = as_dtype(dtype)
        self.reuse = reuse
        self._inner: list[Any] = []

    def __enter__(self) -> VariableScope:
        graph = self.graph or get_default_graph()
        outer = get_variable_scope()
        if isinstance(self.given, VariableScope):
            scope = evolve(self.given)
        else:
            own = self.given if self.given is not None else _numbered(graph, outer, self.default)
            scope = evolve(outer, name=f"{outer.original_name_scope}{own}")
        scope = evolve(scope, **self.changes)
        scope.reuse = (scope.reuse or outer.reuse) if self.reuse is None else self.reuse
        graph.scope_counts = {
            k: n for k, n in graph.scope_counts.items() if not k.startswith(scope.name + "/")
        }
        prefix = graph.scope
        if self.names and scope.name:
            last = scope.name.rsplit("/", 1)[-1] + "/"
            prefix = graph.unique(last[:-1]) + "/"
        self._inner.append((graph.as_default(), graph.scoped(prefix)))
        for context in self._inner[-1]:
            context.__enter__()
        _scopes.items.append((graph, scope))
        return scope

    def __exit__(self, *error: Any) -> None:
        _scopes.items.pop()
        for context in reversed(self._inner.pop()):
            context.__exit__(*error)


def _numbered(graph: Any, outer: VariableScope, default: str | None) -> str:
    """A default name that is free within the outer scope."""
    whole = f"{outer.original_name_scope}{default}"
    count = graph.scope_counts.get(whole, 0)
    graph.scope_counts[whole] = count + 1
    return f"{default}_{count}" if count else str(default)


@refuses(ONE_SESSION, "caching_device", "partitioner", "validate_shape", "use_resource")
@refuses(ONE_SESSION, "custom_getter", "synchronization", "aggregation")
def get_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool | None = None,
    collections: Sequence[str] | None = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Any = None,
    constraint: Callable[[Tensor], Tensor] | None = None,
    synchronization: Any = None,
    aggregation: Any = None,
) -> Variable:
    """The variable of this name in the scope in force: a new one, or the one that is shared.

    Raises: GraphError when it exists and ``reuse`` does not allow that, or is to be reused and
    does not exist; ShapeError when it has another shape.
    """
    graph, scope = get_default_graph(), get_variable_scope()
    full = f"{scope.original_name_scope}{name}"
    found = graph.shared.get(full)
    if found is not None:
        return _shared(found, full, shape, scope)
    if scope.reuse is True:
        raise GraphError(
            f"variable '{full}' is to be reused and there is none; "
            f"{nearest(full, graph.shared)} reuse=tf.AUTO_REUSE makes what is missing"
        )
    wanted = scope.dtype if dtype is None else as_dtype(dtype)
    chosen = initializer if initializer is not None else scope.initializer
    if chosen is None:
        chosen = glorot_uniform_initializer() if wanted.is_float else zeros_initializer()
    with graph.after(None), graph.scoped(""):
        variable = Variable(
            _initial(full, chosen, shape, wanted),
            trainable=trainable,
            collections=collections,
            name=f"{full}/",
            dtype=None if dtype is None and not callable(chosen) else wanted,
            constraint=constraint or scope.constraint,
        )
        weigh = regularizer or scope.regularizer
        if weigh is not None:
            graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, weigh(variable))
    graph.shared[full] = variable
    return variable


def _initial(name: str, initializer: Any, shape: Any, dtype: DType) -> Any:
    if not callable(initializer):
        if shape is not None:
            raise SettingError(
                f"variable '{name}' needs a shape or an initial value, got both: "
                f"{shape!r} and {initializer!r}"
            )
        return initializer
    if shape is None:
        raise ShapeError(f"variable '{name}' needs a shape, got None; or an array as initializer")
    kind = initializer() if isinstance(initializer, type) else initializer
    return lambda: kind(extents_of(shape, f"variable '{name}'"), dtype=dtype)


def _shared(found: Variable, full: str, shape: Any, scope: VariableScope) -> Variable:
    if not scope.reuse:
        raise GraphError(
            f"variable '{full}' exists already; to share it, give the variable_scope around it "
            f"reuse=True or reuse=tf.AUTO_REUSE"
        )
    if shape is not None:
        wanted, own = extents_of(shape, f"variable '{full}'"), known_shape(found.state)
        if tuple(wanted) != tuple(own):
            raise ShapeError(
                f"variable '{full}' is shared with shape {shown(own)}, and {shown(wanted)} is "
                f"wanted"
            )
    return found


@contextmanager
def device(device_name_or_function: str | None) -> Iterator[None]:
    """Within it, what is made is placed: a run elsewhere than on a GPU refuses what is on one.

    Raises: SettingError for a function.
    """
    if callable(device_name_or_function):
        raise SettingError(
            f"device needs a name such as '/cpu:0', got the function {device_name_or_function!r}"
        )
    with get_default_graph().on(device_name_or_function or ""):
        yield


def control_dependencies(control_inputs: Iterable[Any] | None) -> Any:
    """Within it, what is made runs after these operations and tensors; None forgets outer ones."""
    nodes = None if control_inputs is None else [n for c in control_inputs for n in nodes_of(c)]
    return get_default_graph().after(nodes)


def nodes_of(target: Any) -> list[Node]:
    """The nodes that an operation or a tensor runs. Raises: GraphError for anything else."""
    if isinstance(target, Operation):
        return list(target.nodes)
    if isinstance(target, Tensor):
        return [target.entry.node]
    raise GraphError(f"an operation or a tensor is needed here, got {target!r}")


def group(*inputs: Any, **kwargs: Any) -> Operation:
    """An operation that runs all of ``inputs``, operations, tensors and lists of them."""
    from passkit.frontends.tinyflow.tensors import named

    unknown = [k for k in kwargs if k != "name"]
    if unknown:
        raise SettingError(f"group takes the keyword name, got {unknown[0]!r}")
    flat = [i for given in inputs for i in (given if isinstance(given, (list, tuple)) else [given])]
    nodes = [n for i in flat for n in nodes_of(i)]
    graph = get_default_graph()
    full = named(kwargs.get("name"), "group_deps")
    return Operation(full, [*graph.controls, *nodes], graph)


def no_op(name: str | None = None) -> Operation:
    """An operation that does nothing but wait for what control_dependencies asks for."""
    return group(name=name or "NoOp")


def tuple_(
    tensors: Sequence[Any], name: str | None = None, control_inputs: Sequence[Any] | None = None
) -> list[Any]:
    """The tensors, each of which waits for all of them, and for ``control_inputs``."""
    from passkit.frontends.tinyflow.elementwise import identity

    waits = [t for t in tensors if t is not None] + list(control_inputs or ())
    with control_dependencies(waits), name_scope(name, "tuple"):
        return [None if t is None else identity(t) for t in tensors]

