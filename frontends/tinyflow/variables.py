"""Variables: tensors that keep their values between the runs of a session, and writes to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from passkit.errors import DTypeError, GraphError, ShapeError
from passkit.frontends.tinyflow.argument_checks import (
    collection_names,
    reject_arguments,
    require_function,
    require_list,
    require_truth,
)
from passkit.frontends.tinyflow.deferred_calls import check_shape_at_run
from passkit.frontends.tinyflow.graphs import GraphKeys, VariableWrite, get_default_graph
from passkit.frontends.tinyflow.shapes import format_shape, parse_shape, require_shape
from passkit.frontends.tinyflow.tensors import (
    Operation,
    Tensor,
    as_entry,
    as_operand,
    as_tensor,
    convert_to_tensor,
    require_session,
    unique_name,
)
from passkit.graph.node import Entry, state
from passkit.graph.op import get_op
from passkit.values.dtype import DType

ONE_SESSION = "variables live in the one process that runs them"


class Variable(Tensor):
    """A tensor that keeps its value between the runs of a session.

    An expression reads it as it was when the run began, or as it is after the writes that the
    expression depends on. Fetched itself, it has the value that it holds when the run ends.

    Args:
        initial_value: Numbers, a tensor of known shape, or a function that returns one of these;
            required.
        trainable: Whether optimizers change it; True by default.
        collections: The names of the collections to add it to; [GraphKeys.GLOBAL_VARIABLES] by
            default.
        validate_shape: Unsupported; only the default is accepted.
        caching_device: Unsupported; only the default is accepted.
        name: Its name, numbered if it is taken; "Variable" by default.
        variable_def: Unsupported; only the default is accepted.
        dtype: Its dtype; by default that of ``initial_value``.
        expected_shape: The shape that ``initial_value`` must have; any by default.
        import_scope: Unsupported; only the default is accepted.
        constraint: A function of a tensor that is applied to the new value in each update by an
            optimizer; None (default) for none.
        use_resource: Unsupported; only the default is accepted.
        synchronization: Unsupported; only the default is accepted.
        aggregation: Unsupported; only the default is accepted.
        shape: The same under its newer name.

    Raises:
        GraphError: Without an initial value.
        ShapeError: If the initial value has an unknown shape, or another one than requested.
        SettingError: If an unsupported argument is set, ``collections`` holds no names, or
            ``constraint`` is no function.
        DTypeError: If a tensor as initial value is text or has another dtype than ``dtype``, or
            that is no element type.
        ArgumentError: If the initial value is neither numbers nor a tensor, or ``name`` is no text.

    >>> from passkit.frontends import tinyflow as tf
    >>> count = tf.Variable(0, name="count")
    >>> with tf.Session(target="interpret") as session:
    ...     session.run(tf.global_variables_initializer())
    ...     session.run(tf.assign_add(count, 2))
    np.int32(2)
    """

    @reject_arguments(
        ONE_SESSION,
        "validate_shape",
        "caching_device",
        "variable_def",
        "import_scope",
        "use_resource",
        "synchronization",
        "aggregation",
    )
    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool | None = None,
        collections: Sequence[str] | None = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: Any = None,
        expected_shape: Any = None,
        import_scope: str | None = None,
        constraint: Callable[[Tensor], Tensor] | None = None,
        use_resource: bool | None = None,
        synchronization: Any = None,
        aggregation: Any = None,
        shape: Any = None,
    ) -> None:
        if initial_value is None:
            raise GraphError("Variable needs an initial_value, got None; pass an array or a tensor")
        graph = get_default_graph()
        default_keys = [GraphKeys.GLOBAL_VARIABLES]
        keys = collection_names("Variable", default_keys if collections is None else collections)
        if constraint is not None:
            require_function("Variable", "constraint", constraint)
        full_name = unique_name(name, "Variable")
        with graph.with_dependencies(None), graph.with_name_prefix(f"{full_name}/"):
            value = initial_value() if callable(initial_value) else initial_value
            initial = convert_to_tensor(value, dtype, "initial_value")
        _check_initial_shape(full_name, initial, "expected_shape", expected_shape)
        _check_initial_shape(full_name, initial, "shape", shape)
        sizes = require_shape(initial.entry)
        if not all(isinstance(n, int) for n in sizes):
            raise ShapeError(
                f"variable '{full_name}' needs an initial value of known shape, got "
                f"{format_shape(sizes)}"
            )
        self._state = state(full_name, (sizes, initial.dtype))
        super().__init__(self._state, full_name, graph)
        self.initial_value, self.constraint = initial, constraint
        self.trainable = trainable is not False
        self.initializer = write_variable(self, initial.entry, f"{full_name}/Assign").op
        for key in keys:
            graph.add_to_collection(key, self)
        if self.trainable:
            graph.add_to_collection(GraphKeys.TRAINABLE_VARIABLES, self)

    @property
    def state(self) -> Entry:
        """The variable of passkit's graph."""
        return self._state

    @property
    def declared_entry(self) -> Entry:
        """The entry read by nodes that were created before the shape was known: the variable."""
        return self.state

    @property
    def entry(self) -> Entry:
        """A read of the variable: a new one that waits for the current `tf.control_dependencies`.

        Without such dependencies it is `state` itself.
        """
        controls = self.graph.controls
        if not controls:
            return self.state
        return get_op("identity")(self.state, control=controls)  # type: ignore[no-any-return]

    @property
    def dtype(self) -> DType:
        """The element type."""
        assert self._state.dtype is not None
        return self._state.dtype

    @property
    def op(self) -> Operation:
        """A new read of the variable, as an operation without control dependencies."""
        return Operation(self._name, [get_op("identity")(self.state).node], self.graph)

    def value(self) -> Tensor:
        """Return a new tensor that reads the variable, as `read_value` does."""
        return self.read_value()

    def read_value(self) -> Tensor:
        """Return a new tensor that reads the variable.

        It does so after the current `tf.control_dependencies`. It is called "read" under the
        variable's name.
        """
        return as_tensor(get_op("identity")(self.entry), unique_name(None, f"{self._name}/read"))

    def initialized_value(self) -> Tensor:
        """Return the initial value, a tensor, for use in the initial values of other variables.

        Raises:
            ShapeError: If TinyFlow's variable has none, or a number and no shape yet.
        """
        return self.initial_value

    @reject_arguments("writes are in order", "use_locking")
    def assign(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Create a write that replaces the value.

        Args:
            value: A tensor, or numbers, of the variable's shape.
            use_locking: Unsupported; only the default is accepted.
            name: The name of the result; "Assign" by default.
            read_value: Whether to return a tensor; True by default.

        Returns:
            A tensor of the new value, which writes when a run computes it; an operation that writes
            if ``read_value`` is False.

        Raises:
            ShapeError: If the value has another shape.
            DTypeError: If a tensor has another dtype, or an array, a list or a complex number one
                that NumPy does not cast to the variable's by casting "same_kind", such as floats
                for integers.
            SettingError: If an unsupported argument is set.
            ArgumentError: For a value that is neither a tensor nor numbers, or a Python number that
                NumPy cannot convert to the variable's dtype, such as 300 for uint8 or NaN for
                integers.
        """
        return _tensor_or_operation(assign(self, value, name=name), read_value)

    @reject_arguments("writes are in order", "use_locking")
    def assign_add(
        self,
        delta: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Create a write that adds to the value.

        Args:
            delta: The number to add, a tensor or numbers of the variable's shape.
            use_locking: Unsupported; only the default is accepted.
            name: The name of the result; "AssignAdd" by default.
            read_value: Whether to return a tensor; True by default.

        Returns:
            A tensor of the new value, which writes when a run computes it; an operation that writes
            if ``read_value`` is False.

        Raises:
            ShapeError: If the value has another shape.
            DTypeError: If a tensor has another dtype, or an array, a list or a complex number one
                that NumPy does not cast to the variable's by casting "same_kind", such as floats
                for integers, or if the variable holds bools.
            SettingError: If an unsupported argument is set.
            ArgumentError: For a value that is neither a tensor nor numbers, or a Python number that
                NumPy cannot convert to the variable's dtype, such as 300 for uint8 or NaN for
                integers.
        """
        return _tensor_or_operation(assign_add(self, delta, name=name), read_value)

    @reject_arguments("writes are in order", "use_locking")
    def assign_sub(
        self,
        delta: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Create a write that subtracts from the value.

        Args:
            delta: The number to subtract, a tensor or numbers of the variable's shape.
            use_locking: Unsupported; only the default is accepted.
            name: The name of the result; "AssignSub" by default.
            read_value: Whether to return a tensor; True by default.

        Returns:
            A tensor of the new value, which writes when a run computes it; an operation that writes
            if ``read_value`` is False.

        Raises:
            ShapeError: If the value has another shape.
            DTypeError: If a tensor has another dtype, or an array, a list or a complex number one
                that NumPy does not cast to the variable's by casting "same_kind", such as floats
                for integers, or if the variable holds bools.
            SettingError: If an unsupported argument is set.
            ArgumentError: For a value that is neither a tensor nor numbers, or a Python number that
                NumPy cannot convert to the variable's dtype, such as 300 for uint8 or NaN for
                integers.
        """
        return _tensor_or_operation(assign_sub(self, delta, name=name), read_value)

    def eval(self, session: Any = None) -> Any:  # type: ignore[override]
        """Return the value of the variable, a NumPy array or number.

        Args:
            session: The session; by default that of the innermost `with`.

        Raises:
            GraphError: If there is no session, or it is closed.
            FeedError: If the variable has no value in the session yet.
            PasskitError: Another one that `Session.run` raises, such as DeviceError.
        """
        return super().eval(None, session)

    def load(self, value: Any, session: Any = None) -> None:
        """Set the value in a session, without a run.

        Args:
            value: Numbers of the variable's shape, which are converted to its dtype.
            session: The session; by default that of the innermost `with`.

        Raises:
            FeedError: If the value has another shape.
            GraphError: If there is no session.
            ArgumentError: If NumPy cannot convert the value, such as text, a tensor, complex
                numbers for floats, 300 for uint8, or NaN for integers.
        """
        require_session(session, f"variable '{self.name}'").load(self, value)

    def __repr__(self) -> str:
        sizes = format_shape(require_shape(self._state))
        return f"<tf.Variable '{self.name}' shape={sizes} dtype={self.dtype}>"


def _check_initial_shape(name: str, initial: Tensor, argument: str, shape: Any) -> None:
    """Raise ShapeError if an initial value does not have a requested shape, or it is no shape.

    Args:
        name: The variable's name, for the message.
        initial: The initial value.
        argument: The name of the argument that holds the shape, for the message.
        shape: The requested shape; None for any. Axes of None may have any extent.
    """
    if shape is None:
        return
    required, actual = parse_shape(shape, f"variable '{name}'"), require_shape(initial.entry)
    if len(required) != len(actual) or any(
        n is not None and n != m for n, m in zip(required, actual, strict=True)
    ):
        raise ShapeError(
            f"variable '{name}' needs an initial value of {argument} {format_shape(required)}, got "
            f"{format_shape(actual)}"
        )


def _tensor_or_operation(tensor: Tensor, read_value: bool) -> Any:
    """Return ``tensor``, the new value of a write, or its operation if not ``read_value``.

    Raises: SettingError if ``read_value`` is an array of another number of elements than 1.
    """
    return tensor if require_truth("a write", "read_value", read_value) else tensor.op


def write_variable(variable: Variable, value: Entry, name: str, adds: int = 0) -> Tensor:
    """Create a node that writes a variable.

    Args:
        variable: The variable.
        value: The new value, or the difference to the current one.
        name: The full name of the node.
        adds: 1 to add ``value``, -1 to subtract it, 0 to replace the variable.

    Returns:
        A tensor of the new value.

    Raises:
        ShapeError: If the value has another shape; an unknown rank is checked in a run. Not if the
            shape of the variable itself is not known yet.
        DTypeError: If the value has another dtype, or ``adds`` is not 0 for a variable of bools.
    """
    graph = get_default_graph()
    if adds and variable.dtype.kind == "b":
        raise DTypeError(
            f"{name} adds numbers, and '{variable.name}' holds bools; tf.assign replaces them"
        )
    if value.dtype is not variable.dtype:
        raise DTypeError(
            f"{name} needs a value of {variable.dtype} for '{variable.name}', got {value.dtype}; "
            f"tf.cast converts it"
        )
    if variable.state.shape is None:  # its shape follows from a feed
        return _register_write(variable, value, name, adds)
    required = require_shape(variable.state)
    if value.shape is None:
        tensor = Tensor(value, value.node.name, graph)
        value = check_shape_at_run(tensor, required, f"{name} to '{variable.name}'")
    sizes = require_shape(value)
    if len(sizes) != len(required) or any(
        isinstance(n, int) and n != m for n, m in zip(sizes, required, strict=True)
    ):
        raise ShapeError(
            f"{name} needs a value of shape {format_shape(required)} for '{variable.name}', got "
            f"{format_shape(sizes)}"
        )
    return _register_write(variable, value, name, adds)


def _register_write(variable: Variable, value: Entry, name: str, adds: int) -> Tensor:
    """Create a node for a write of a value that fits the variable, and record it in the graph.

    Args:
        variable: The variable.
        value: Its new value, or the number to add or subtract.
        name: Full name of the node.
        adds: 1 to add the value, -1 to subtract it, 0 to replace the variable.

    Returns:
        The tensor of the node, which writes when it runs.
    """
    entry = get_op("identity")(value, name=name, control=get_default_graph().controls)
    variable.graph.writes[entry.node] = VariableWrite(variable, value, adds)
    return as_tensor(entry, name)


def _require_variable(function: str, ref: Any) -> Variable:
    """Return ``ref`` itself. Raises: GraphError, naming ``function``, if it is no variable."""
    if not isinstance(ref, Variable):
        raise GraphError(
            f"{function} needs a variable to write, got {ref!r}; tf.Variable creates one"
        )
    return ref


@reject_arguments(
    "a variable keeps its shape, and writes are in order", "validate_shape", "use_locking"
)
def assign(
    ref: Any,
    value: Any,
    validate_shape: bool | None = None,
    use_locking: bool | None = None,
    name: str | None = None,
) -> Tensor:
    """Create a write that replaces the value of a variable.

    Args:
        ref: The variable.
        value: A tensor, or numbers, of the variable's shape.
        validate_shape: Unsupported; only the default is accepted.
        use_locking: Unsupported; only the default is accepted.
        name: The name of the result; "Assign" by default.

    Returns:
        A tensor of the new value, which writes when a run computes it.

    Raises:
        GraphError: If ``ref`` is no variable.
        ShapeError: If the value has another shape.
        DTypeError: If a tensor has another dtype, or an array, a list or a complex number one that
            NumPy does not cast to the variable's by casting "same_kind", such as floats for
            integers.
        SettingError: If an unsupported argument is set.
        ArgumentError: For a value that is neither a tensor nor numbers, or a Python number that
            NumPy cannot convert to the variable's dtype, such as 300 for uint8 or NaN for integers.
    """
    target = _require_variable("assign", ref)
    return write_variable(target, _value_for(value, target), unique_name(name, "Assign"))


@reject_arguments("writes are in order", "use_locking")
def assign_add(
    ref: Any, value: Any, use_locking: bool | None = None, name: str | None = None
) -> Tensor:
    """Create a write that adds to the value of a variable.

    Args:
        ref: The variable.
        value: The number to add, a tensor or numbers of the variable's shape.
        use_locking: Unsupported; only the default is accepted.
        name: The name of the result; "AssignAdd" by default.

    Returns:
        A tensor of the new value, which writes when a run computes it.

    Raises:
        GraphError: If ``ref`` is no variable.
        ShapeError: If the value has another shape.
        DTypeError: If a tensor has another dtype, or an array, a list or a complex number one that
            NumPy does not cast to the variable's by casting "same_kind", such as floats for
            integers, or if the variable holds bools.
        SettingError: If an unsupported argument is set.
        ArgumentError: For a value that is neither a tensor nor numbers, or a Python number that
            NumPy cannot convert to the variable's dtype, such as 300 for uint8 or NaN for integers.
    """
    target = _require_variable("assign_add", ref)
    return write_variable(target, _value_for(value, target), unique_name(name, "AssignAdd"), 1)


@reject_arguments("writes are in order", "use_locking")
def assign_sub(
    ref: Any, value: Any, use_locking: bool | None = None, name: str | None = None
) -> Tensor:
    """Create a write that subtracts from the value of a variable.

    Args:
        ref: The variable.
        value: The number to subtract, a tensor or numbers of the variable's shape.
        use_locking: Unsupported; only the default is accepted.
        name: The name of the result; "AssignSub" by default.

    Returns:
        A tensor of the new value, which writes when a run computes it.

    Raises:
        GraphError: If ``ref`` is no variable.
        ShapeError: If the value has another shape.
        DTypeError: If a tensor has another dtype, or an array, a list or a complex number one that
            NumPy does not cast to the variable's by casting "same_kind", such as floats for
            integers, or if the variable holds bools.
        SettingError: If an unsupported argument is set.
        ArgumentError: For a value that is neither a tensor nor numbers, or a Python number that
            NumPy cannot convert to the variable's dtype, such as 300 for uint8 or NaN for integers.
    """
    target = _require_variable("assign_sub", ref)
    return write_variable(target, _value_for(value, target), unique_name(name, "AssignSub"), -1)


def _value_for(value: Any, target: Variable) -> Entry:
    """Convert a value to write to an entry.

    Args:
        value: A tensor, whose dtype stays; or numbers, which take that of ``target`` as
            `_array_for` says.
        target: The variable.

    Raises:
        ArgumentError: For a value that is neither a tensor nor numbers, or a Python number that
            NumPy cannot convert to the variable's dtype, such as 300 for uint8 or NaN for integers.
        DTypeError: For a tensor of text, or listed tensors of another dtype than the variable's.
        ShapeError: For listed tensors of several shapes, or a dimension that only a run determines.
    """
    return value.entry if isinstance(value, Tensor) else as_entry(_array_for(value, target), None)


def _array_for(value: Any, target: Variable) -> Any:
    """Convert numbers to write to an entry.

    Args:
        value: A Python bool, int or float, which becomes an entry of the dtype of ``target`` (a
            float is truncated to an integer); or an array or list, which does so if NumPy's casting
            "same_kind" allows, and else keeps its dtype.
        target: The variable.

    Raises:
        ArgumentError: For a value that is no number, or that NumPy cannot convert to the dtype,
            such as 300 for uint8 or NaN for integers.
        DTypeError: For listed tensors of another dtype than the variable's.
        ShapeError: For listed tensors of several shapes, or a dimension that only a run determines.
    """
    return (
        as_operand(value, target.dtype)
        if not isinstance(value, (bool, int, float))
        else as_entry(value, target.dtype)
    )


# all variables


def global_variables(scope: str | None = None) -> list[Any]:
    """Return the variables of the default graph that are in the collection GLOBAL_VARIABLES.

    All are that were not created with other ``collections``.

    Args:
        scope: If given, only variables whose names begin with it are returned; all by default.

    Returns:
        A new list in the order in which they were created.

    Raises:
        ArgumentError: If ``scope`` is neither a text nor None.
    """
    return get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES, scope)


def trainable_variables(scope: str | None = None) -> list[Any]:
    """Return the variables of the default graph that optimizers change by default.

    Args:
        scope: If given, only variables whose names begin with it are returned; all by default.

    Returns:
        A new list in the order in which they were created.

    Raises:
        ArgumentError: If ``scope`` is neither a text nor None.
    """
    return get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES, scope)


def variables_initializer(var_list: Sequence[Variable], name: str = "init") -> Operation:
    """Return an operation that assigns the initial values of variables.

    Weights of TinyFlow's layers whose inputs have unknown rank have none; the program assigns them.

    Args:
        var_list: The variables.
        name: The name of the operation; "init" by default.

    Returns:
        An operation.

    Raises:
        GraphError: If ``var_list`` is no list, or has an element that is no variable.
        ShapeError: If TinyFlow's variable has a number as initial value and no shape yet.
        ArgumentError: If ``name`` is no text.
    """
    listed = require_list("variables_initializer", "var_list", var_list)
    starts = [_require_variable("variables_initializer", v).initializer for v in listed]
    nodes = [n for s in starts if s is not None for n in s.nodes]
    return Operation(unique_name(name, "init"), nodes, get_default_graph())


def global_variables_initializer() -> Operation:
    """Return an operation that initializes the `global_variables` created so far.

    Variables created later, and local ones, are not initialized.

    Raises:
        ShapeError: If TinyFlow's variable has a number as initial value and no shape yet.
    """
    return variables_initializer(global_variables())


def initialize_all_variables() -> Operation:
    """Return `global_variables_initializer()`, under its older name.

    Raises:
        ShapeError: If TinyFlow's variable has a number as initial value and no shape yet.
    """
    return global_variables_initializer()


def local_variables(scope: str | None = None) -> list[Any]:
    """Return the variables of the collection LOCAL_VARIABLES, such as those of `tf.metrics`.

    Args:
        scope: If given, only variables whose names begin with it are returned; all by default.

    Returns:
        A new list in the order in which they were created.

    Raises:
        ArgumentError: If ``scope`` is neither a text nor None.
    """
    return get_default_graph().get_collection(GraphKeys.LOCAL_VARIABLES, scope)


def local_variables_initializer() -> Operation:
    """Return an operation that initializes the `local_variables` created so far.

    Raises:
        ShapeError: If TinyFlow's variable has a number as initial value and no shape yet.
    """
    return variables_initializer(local_variables())


def initialize_local_variables() -> Operation:
    """Return `local_variables_initializer()`, under its older name.

    Raises:
        ShapeError: If TinyFlow's variable has a number as initial value and no shape yet.
    """
    return local_variables_initializer()
