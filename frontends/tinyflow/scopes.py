"""Scopes of names, shared variables, devices and control dependencies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from attrs import define, evolve, field

from passkit.errors import GraphError, SettingError, ShapeError, nearest
from passkit.frontends.tinyflow.argument_checks import (
    reject_arguments,
    require_function,
    require_list,
)
from passkit.frontends.tinyflow.dtypes import as_dtype
from passkit.frontends.tinyflow.graphs import DefaultStack, GraphKeys, get_default_graph
from passkit.frontends.tinyflow.initializers import glorot_uniform_initializer, zeros_initializer
from passkit.frontends.tinyflow.shapes import format_shape, parse_shape, require_shape
from passkit.frontends.tinyflow.tensors import (
    Operation,
    Tensor,
    call_operator,
    convert_to_tensor,
    unique_name,
)
from passkit.frontends.tinyflow.variables import ONE_SESSION, Variable
from passkit.graph.node import Node
from passkit.values import arguments
from passkit.values.dtype import DType

AUTO_REUSE = "AUTO_REUSE"
"""As ``reuse``: return existing variables, and create missing ones."""


@define
class VariableScope:
    """The settings of `tf.get_variable` inside a `tf.variable_scope`.

    Args:
        name: The prefix of variables' names, without a slash at its end; empty at the top level.
        initializer: The default initializer; None (default) for `glorot_uniform_initializer` of
            floats and zeros of integers.
        regularizer: The default regularizer, which returns a loss for a variable; None for none.
        constraint: The default constraint, which is applied to a variable after each update by an
            optimizer; None for none.
        dtype: The default dtype; float32.
        reuse: True to return existing variables only, False (default) to create new ones only, or
            AUTO_REUSE for both.
    """

    name: str = ""
    initializer: Any = None
    regularizer: Any = None
    constraint: Any = None
    dtype: DType = field(factory=lambda: as_dtype("float32"))
    reuse: Any = False

    @property
    def original_name_scope(self) -> str:
        """The prefix of names, with a slash at its end; empty at the top level."""
        return f"{self.name}/" if self.name else ""

    def reuse_variables(self) -> None:
        """Change this scope in place: return existing variables from now on, as ``reuse=True``."""
        self.reuse = True

    def trainable_variables(self) -> list[Any]:
        """Return the trainable variables of the default graph whose names begin with `name`.

        Those of a scope whose name is longer by letters are among them.
        """
        return get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES, self.name)

    def global_variables(self) -> list[Any]:
        """Return the global variables of the default graph whose names begin with `name`.

        Those of a scope whose name is longer by letters are among them.
        """
        return get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES, self.name)


_scopes: DefaultStack[tuple[Any, VariableScope]] = DefaultStack()


def get_variable_scope() -> VariableScope:
    """Return the innermost variable scope of the default graph.

    Returns:
        The scope of the innermost `tf.variable_scope` block; a new one without a name outside of
        all.
    """
    graph = get_default_graph()
    current = next((scope for owner, scope in reversed(_scopes.items) if owner is graph), None)
    return current or VariableScope()


@contextmanager
def name_scope(
    name: str | None, default_name: str | None = None, values: Sequence[Any] | None = None
) -> Iterator[str]:
    """Begin the names of tensors created inside the block with a scope name.

    Args:
        name: The scope name, numbered if it is taken. One that ends in a slash is used as it is,
            without the outer scopes. An empty one leaves all scopes.
        default_name: The scope name if ``name`` is None; empty by default.
        values: Tensors; the graph of the first one becomes the default graph inside the block.

    Returns:
        A context manager, whose block gets the prefix of names: the scope's with a slash at its
        end.

    Raises:
        ArgumentError: If the name is no text.

    >>> from passkit.frontends import tinyflow as tf
    >>> with tf.Graph().as_default(), tf.name_scope("layer") as prefix:
    ...     prefix, tf.constant(1, name="one").name
    ('layer/', 'layer/one:0')
    """
    graph = next((v.graph for v in values or () if isinstance(v, Tensor)), get_default_graph())
    prefix = arguments.text("name_scope: name", name if name is not None else default_name or "")
    if prefix and not prefix.endswith("/"):
        prefix = graph.unique_name(prefix) + "/"
    with graph.as_default(), graph.with_name_prefix(prefix) as entered_prefix:
        yield entered_prefix


@contextmanager
def reuse_or_create_variables() -> Iterator[None]:
    """Make `tf.get_variable` reuse existing variables inside the block, and create missing ones."""
    scope = evolve(get_variable_scope(), reuse=AUTO_REUSE)
    with _scopes.entered((get_default_graph(), scope)):
        yield


class variable_scope:  # noqa: N801 – TensorFlow's name
    """Prefix and share the variables that `tf.get_variable` creates inside the block.

    It is a context manager, whose block gets the `VariableScope`.

    Args:
        name_or_scope: The name of the scope, or a `VariableScope` to enter again, whose settings
            are then the defaults instead of those of the outer scope.
        default_name: The name, numbered if it is taken, if ``name_or_scope`` is None.
        values: Tensors; the graph of the first one becomes the default graph inside the block.
        initializer: The default initializer; by default that of the outer scope.
        regularizer: The default regularizer; by default that of the outer scope.
        caching_device: Unsupported; only the default is accepted.
        partitioner: Unsupported; only the default is accepted.
        custom_getter: Unsupported; only the default is accepted.
        reuse: True to return existing variables only, AUTO_REUSE to create missing ones, too, False
            to create new ones only; by default (None) as the scope that is entered again, or else
            as the outer scope.
        dtype: The default dtype; by default that of the outer scope.
        use_resource: Unsupported; only the default is accepted.
        constraint: The default constraint; by default that of the outer scope.
        auxiliary_name_scope: Whether names of tensors begin with the scope, too; True by default.

    Raises:
        SettingError: Without a name, if the regularizer or the constraint is no function, ``reuse``
            another value, or an unsupported argument is set.
        DTypeError: If ``dtype`` is no element type.
        ArgumentError: If the name is no text.
    """

    @reject_arguments(ONE_SESSION, "caching_device", "partitioner", "custom_getter", "use_resource")
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
        if not isinstance(name_or_scope, VariableScope):
            name = default_name if name_or_scope is None else name_or_scope
            arguments.text("variable_scope: name", name)
        self.given, self.default, self.names = name_or_scope, default_name, auxiliary_name_scope
        self.graph = next((v.graph for v in values or () if isinstance(v, Tensor)), None)
        changes = {"initializer": initializer, "regularizer": regularizer, "constraint": constraint}
        self.changes: dict[str, Any] = {k: v for k, v in changes.items() if v is not None}
        for argument in {"regularizer", "constraint"} & self.changes.keys():
            require_function("variable_scope", argument, changes[argument])
        if dtype is not None:
            self.changes["dtype"] = as_dtype(dtype)
        is_flag = reuse is None or isinstance(reuse, bool)
        if not is_flag and not (isinstance(reuse, str) and reuse == AUTO_REUSE):
            raise SettingError(
                f"variable_scope needs True, False, None or tf.AUTO_REUSE as reuse, got {reuse!r}"
            )
        self.reuse = reuse
        self._inner: list[Any] = []

    def __enter__(self) -> VariableScope:
        """Enter the scope, and return its settings, a new `VariableScope`.

        The graph numbers default names of inner scopes anew, as at the first time.
        """
        graph = self.graph or get_default_graph()
        outer = get_variable_scope()
        if isinstance(self.given, VariableScope):
            scope = evolve(self.given)
        else:
            name = (
                self.given
                if self.given is not None
                else _numbered_scope(graph, outer, self.default)
            )
            scope = evolve(outer, name=f"{outer.original_name_scope}{name}")
        scope = evolve(scope, **self.changes)
        scope.reuse = (scope.reuse or outer.reuse) if self.reuse is None else self.reuse
        graph.scope_counts = {
            k: n for k, n in graph.scope_counts.items() if not k.startswith(scope.name + "/")
        }
        prefix = graph.name_prefix
        if self.names and scope.name:
            last = scope.name.rsplit("/", 1)[-1] + "/"
            prefix = graph.unique_name(last[:-1]) + "/"
        self._inner.append((graph.as_default(), graph.with_name_prefix(prefix)))
        for context in self._inner[-1]:
            context.__enter__()
        _scopes.items.append((graph, scope))
        return scope

    def __exit__(self, *error: Any) -> None:
        """Restore the outer variable scope, name scope and default graph."""
        _scopes.items.pop()
        for context in reversed(self._inner.pop()):
            context.__exit__(*error)


def _numbered_scope(graph: Any, outer: VariableScope, default: str | None) -> str:
    """Return a default scope name that is unused within the outer scope, and count its use.

    Args:
        graph: Graph that counts the names.
        outer: Scope around the new one.
        default: Requested name; a number is appended from the second use on.
    """
    full_name = f"{outer.original_name_scope}{default}"
    count = graph.scope_counts.get(full_name, 0)
    graph.scope_counts[full_name] = count + 1
    return f"{default}_{count}" if count else str(default)


@reject_arguments(ONE_SESSION, "caching_device", "partitioner", "validate_shape", "use_resource")
@reject_arguments(ONE_SESSION, "custom_getter", "synchronization", "aggregation")
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
    """Return the variable of a name in the current scope: a new one, or an existing one.

    An existing one is returned as it is: of the arguments only ``shape`` is compared.

    Args:
        name: The name within the scope.
        shape: The shape, a list of ints; required unless ``initializer`` is an array or a tensor.
        dtype: The dtype; by default that of the initial value if ``initializer`` is one, else that
            of the scope.
        initializer: A function of a shape and ``dtype=``, a class of such functions, or the initial
            value itself. By default that of the scope.
        regularizer: A function that returns a loss for the variable, which is put into
            REGULARIZATION_LOSSES, or None for none; by default that of the scope.
        trainable: Whether optimizers change it; True by default.
        collections: The names of the collections to add it to; [GraphKeys.GLOBAL_VARIABLES] by
            default.
        caching_device: Unsupported; only the default is accepted.
        partitioner: Unsupported; only the default is accepted.
        validate_shape: Unsupported; only the default is accepted.
        use_resource: Unsupported; only the default is accepted.
        custom_getter: Unsupported; only the default is accepted.
        constraint: A function that is applied to the variable after each update by an optimizer; by
            default that of the scope.
        synchronization: Unsupported; only the default is accepted.
        aggregation: Unsupported; only the default is accepted.

    Returns:
        The variable.

    Raises:
        GraphError: If the variable exists and the scope does not reuse variables, or does not exist
            and the scope only reuses them.
        ShapeError: If an existing variable has another shape, or a new one has none or an unknown
            one.
        SettingError: If both a shape and an initial value are set, or an unsupported argument, if
            ``collections`` holds no names, or the regularizer or the constraint is no function, or
            ``initializer`` a class whose instances are none.
        DTypeError: If ``dtype`` is no element type, or the initial value is a tensor of another.
        ArgumentError: If ``initializer`` is neither a function nor numbers or a tensor, or ``name``
            is no text.
    """
    graph, scope = get_default_graph(), get_variable_scope()
    arguments.text("get_variable: name", name)
    full_name = f"{scope.original_name_scope}{name}"
    existing = graph.shared_variables.get(full_name)
    if existing is not None:
        return _reuse_variable(existing, full_name, shape, scope)
    if scope.reuse is True:
        raise GraphError(
            f"variable '{full_name}' is to be reused and does not exist; "
            f"{nearest(full_name, graph.shared_variables)} reuse=tf.AUTO_REUSE creates "
            f"missing variables"
        )
    variable_dtype = scope.dtype if dtype is None else as_dtype(dtype)
    chosen_initializer = initializer if initializer is not None else scope.initializer
    if chosen_initializer is None:
        chosen_initializer = (
            glorot_uniform_initializer() if variable_dtype.is_float else zeros_initializer()
        )
    chosen_regularizer = scope.regularizer if regularizer is None else regularizer
    if chosen_regularizer is not None:
        require_function("get_variable", "regularizer", chosen_regularizer)
    with graph.with_dependencies(None), graph.with_name_prefix(""):
        variable = Variable(
            _initial_value(full_name, chosen_initializer, shape, variable_dtype),
            trainable=trainable,
            collections=collections,
            name=f"{full_name}/",
            dtype=None if dtype is None and not callable(chosen_initializer) else variable_dtype,
            constraint=scope.constraint if constraint is None else constraint,
        )
        loss = None if chosen_regularizer is None else chosen_regularizer(variable)
        if loss is not None:
            graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)
    graph.shared_variables[full_name] = variable
    return variable


def _initial_value(name: str, initializer: Any, shape: Any, dtype: DType) -> Any:
    """Return the initial value of a variable, or a function that creates it.

    Args:
        name: Name of the variable in errors.
        initializer: The initial value itself (numbers or a tensor), a function of a shape and
            ``dtype=``, or a class of such functions.
        shape: Shape of the variable; must be None for an initial value.
        dtype: Dtype of the variable, which only a function gets.

    Returns:
        The initial value itself, or a function without arguments that returns a tensor. That raises
        ShapeError if ``shape`` is no shape.

    Raises:
        SettingError: If both an initial value and a shape are given, or instances of the class are
            no functions.
        ShapeError: If a function has no shape.
    """
    if not callable(initializer):
        if shape is not None:
            raise SettingError(
                f"variable '{name}' needs a shape or an initial value, got both: "
                f"{shape!r} and {initializer!r}"
            )
        return initializer
    if shape is None:
        raise ShapeError(f"variable '{name}' needs a shape, got None; or an array as initializer")
    kind = initializer
    if isinstance(initializer, type):
        kind = require_function(f"variable '{name}'", "initializer", initializer())
    return lambda: kind(parse_shape(shape, f"variable '{name}'"), dtype=dtype)


def _reuse_variable(
    variable: Variable, full_name: str, shape: Any, scope: VariableScope
) -> Variable:
    """Return an existing variable, after checking that it may be shared.

    Args:
        variable: The variable.
        full_name: Its name in errors.
        shape: Requested shape; None for any.
        scope: Current scope.

    Raises:
        GraphError: If the scope does not allow reuse.
        ShapeError: If the requested shape differs, also by an unknown extent, or is no shape.
    """
    if not scope.reuse:
        raise GraphError(
            f"variable '{full_name}' exists already; to share it, give the variable_scope around "
            f"it reuse=True or reuse=tf.AUTO_REUSE"
        )
    if shape is not None:
        requested, actual = (
            parse_shape(shape, f"variable '{full_name}'"),
            require_shape(variable.state),
        )
        if tuple(requested) != tuple(actual):
            raise ShapeError(
                f"variable '{full_name}' is shared with shape {format_shape(actual)}, and "
                f"{format_shape(requested)} was requested; request its shape, or another name"
            )
    return variable


@contextmanager
def device(device_name_or_function: Any) -> Iterator[None]:
    """Place the operators created inside the block on a device.

    Only a run on a GPU accepts operators on "gpu" devices; other devices are ignored.

    Args:
        device_name_or_function: A name such as "/gpu:0", which is not checked; None for the
            session's target.

    Returns:
        A context manager, which raises the error when it is entered.

    Raises:
        SettingError: For anything but a text or None, such as a function.
    """
    if not isinstance(device_name_or_function, (str, type(None))):
        kind = "the function " if callable(device_name_or_function) else ""
        raise SettingError(
            f"device needs a name such as '/cpu:0', got {kind}{device_name_or_function!r}"
        )
    with get_default_graph().with_device(device_name_or_function or ""):
        yield


def control_dependencies(control_inputs: Any) -> Any:
    """Make operators created inside the block run after other ones.

    Args:
        control_inputs: A list, or another iterable, of operations and tensors to run before; None
            drops the dependencies of outer blocks.

    Returns:
        A context manager.

    Raises:
        GraphError: If it is not iterable, such as a single operation or tensor, or an element is
            neither an operation nor a tensor.
        DTypeError: For a tensor of text.
    """
    if control_inputs is None:
        return get_default_graph().with_dependencies(None)
    listed = require_list("control_dependencies", "control_inputs", control_inputs)
    return get_default_graph().with_dependencies([n for c in listed for n in nodes_of(c)])


def nodes_of(target: Any) -> list[Node]:
    """Return the nodes that an operation or a tensor runs, as a new list.

    Raises:
        GraphError: For anything else.
        DTypeError: For a tensor of text.
    """
    if isinstance(target, Operation):
        return list(target.nodes)
    if isinstance(target, Tensor):
        return [target.entry.node]
    raise GraphError(f"group and control_dependencies need operations and tensors, got {target!r}")


def group(*inputs: Any, **kwargs: Any) -> Operation:
    """Return an operation that runs others.

    Args:
        *inputs: Operations, tensors, and lists or tuples of them, which are not nested further.
        **kwargs: Only ``name``, the name of the operation; "group_deps" by default.

    Returns:
        An operation, which also runs the current `tf.control_dependencies`.

    Raises:
        SettingError: For another keyword.
        GraphError: For an element that is neither an operation nor a tensor.
        DTypeError: For a tensor of text.
        ArgumentError: If ``name`` is no text.
    """
    unknown = [k for k in kwargs if k != "name"]
    if unknown:
        raise SettingError(f"group takes the keyword name, got {unknown[0]!r}")
    flat = [
        i
        for argument in inputs
        for i in (argument if isinstance(argument, (list, tuple)) else [argument])
    ]
    nodes = [n for i in flat for n in nodes_of(i)]
    graph = get_default_graph()
    full_name = unique_name(kwargs.get("name"), "group_deps")
    return Operation(full_name, [*graph.controls, *nodes], graph)


def no_op(name: str | None = None) -> Operation:
    """Return an operation that only waits for the current `tf.control_dependencies`.

    Args:
        name: The name of the operation; "NoOp" by default.

    Returns:
        An operation.

    Raises:
        ArgumentError: If ``name`` is no text.
    """
    return group(name=name or "NoOp")


def tuple_(
    tensors: Sequence[Any], name: str | None = None, control_inputs: Sequence[Any] | None = None
) -> list[Any]:
    """Return copies of tensors, each of which waits for all of them.

    Args:
        tensors: Tensors; None stays None.
        name: The name scope of the results; "tuple" by default.
        control_inputs: Further operations and tensors to wait for; none by default.

    Returns:
        A list of tensors, and None, in the order of ``tensors``.

    Raises:
        GraphError: If ``tensors`` or ``control_inputs`` is no list, or has an element that is
            neither an operation nor a tensor.
        ArgumentError: For an operation among ``tensors``, and if ``name`` is no text.
        DTypeError: For a tensor of text.
    """
    listed = require_list("tuple", "tensors", tensors)
    others = [] if control_inputs is None else control_inputs
    dependencies = [
        *(t for t in listed if t is not None),
        *require_list("tuple", "control_inputs", others),
    ]
    with control_dependencies(dependencies), name_scope(name, "tuple"):
        return [None if t is None else _identity(t) for t in listed]


tuple_.__name__ = tuple_.__qualname__ = "tuple"  # the definition does not hide Python's tuple


def _identity(value: Any) -> Tensor:
    """Return a copy of a tensor or numbers, which waits for the current control dependencies.

    Raises:
        ArgumentError: For a value that is neither a tensor nor numbers.
        DTypeError: For a tensor of text.
    """
    return call_operator("identity", "Identity", None, convert_to_tensor(value).entry)
