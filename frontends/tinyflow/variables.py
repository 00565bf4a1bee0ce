"""Variables: tensors that keep their values between runs, and what writes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from passkit.errors import DTypeError, GraphError, ShapeError
from passkit.frontends.tinyflow.deferring import checked
from passkit.frontends.tinyflow.graphs import GraphKeys, Write, get_default_graph
from passkit.frontends.tinyflow.ranks import known_shape
from passkit.frontends.tinyflow.refusals import refuses
from passkit.frontends.tinyflow.shapes import extents_of, shown
from passkit.frontends.tinyflow.tensors import (
    Operation,
    Tensor,
    convert_to_tensor,
    named,
    operand,
    read,
    wrapped,
)
from passkit.graph.node import Entry, state
from passkit.graph.op import get_op
from passkit.values.dtype import DType

ONE_SESSION = "variables live in the one process that runs them"


class Variable(Tensor):
    """A tensor that keeps its value between the runs of a session.

    Used in an expression it is read: as it is when the run begins, or after the writes that the
    expression depends on. Fetched itself, it is what it holds when the run ends.
    """

    @refuses(
        ONE_SESSION,
        *("validate_shape", "caching_device", "variable_def", "import_scope", "use_resource"),
        *("synchronization", "aggregation"),
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
            raise GraphError("Variable needs an initial_value, got None; an array or a tensor")
        graph = get_default_graph()
        full = named(name, "Variable")
        with graph.after(None), graph.scoped(f"{full}/"):
            value = initial_value() if callable(initial_value) else initial_value
            initial = convert_to_tensor(value, dtype, "initial_value")
        _check_shape(full, initial, "expected_shape", expected_shape)
        _check_shape(full, initial, "shape", shape)
        sizes = known_shape(initial.entry)
        if not all(isinstance(n, int) for n in sizes):
            raise ShapeError(
                f"variable '{full}' needs an initial value of known shape, got {shown(sizes)}"
            )
        self._state = state(full, (sizes, initial.dtype))
        super().__init__(self._state, full, graph)
        self.initial_value, self.constraint = initial, constraint
        self.trainable = trainable is not False
        self.initializer = written(self, initial.entry, f"{full}/Assign").op
        for key in [GraphKeys.GLOBAL_VARIABLES] if collections is None else collections:
            graph.add_to_collection(key, self)
        if self.trainable:
            graph.add_to_collection(GraphKeys.TRAINABLE_VARIABLES, self)

    @property
    def state(self) -> Entry:
        """The variable itself, of passkit's graph."""
        return self._state

    @property
    def home(self) -> Entry:
        """The entry that nodes read which were made before the shape was known: the variable."""
        return self.state

    @property
    def entry(self) -> Entry:
        """A read of the variable: after what control_dependencies asks for."""
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
        """The read, as an operation."""
        return Operation(self._name, [get_op("identity")(self.state).node], self.graph)

    def value(self) -> Tensor:
        """A read of the variable, as a tensor."""
        return self.read_value()

    def read_value(self) -> Tensor:
        """A read of the variable, as a tensor: after what control_dependencies asks for."""
        return wrapped(get_op("identity")(self.entry), named(None, f"{self._name}/read"))

    def initialized_value(self) -> Tensor:
        """The initial value, for the initial values of others."""
        return self.initial_value

    @refuses("writes are in order", "use_locking")
    def assign(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Write a value; the result is the new one, or with ``read_value=False`` an operation."""
        return _result(assign(self, value, name=name), read_value)

    @refuses("writes are in order", "use_locking")
    def assign_add(
        self,
        delta: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Add to what it holds; the result is the new value."""
        return _result(assign_add(self, delta, name=name), read_value)

    @refuses("writes are in order", "use_locking")
    def assign_sub(
        self,
        delta: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Take from what it holds; the result is the new value."""
        return _result(assign_sub(self, delta, name=name), read_value)

    def eval(self, session: Any = None) -> Any:  # type: ignore[override]
        """Its value in a session, by default the one of the innermost `with`."""
        return super().eval(None, session)

    def load(self, value: Any, session: Any = None) -> None:
        """Give it a value in a session, without a run of the graph."""
        from passkit.frontends.tinyflow.tensors import _session

        _session(session, f"variable '{self.name}'").load(self, value)

    def __repr__(self) -> str:
        sizes = shown(known_shape(self._state))
        return f"<tf.Variable '{self.name}' shape={sizes} dtype={self.dtype}>"


def _check_shape(name: str, initial: Tensor, what: str, given: Any) -> None:
    if given is None:
        return
    wanted, found = extents_of(given, f"variable '{name}'"), known_shape(initial.entry)
    if len(wanted) != len(found) or any(
        n is not None and n != m for n, m in zip(wanted, found, strict=True)
    ):
        raise ShapeError(
            f"variable '{name}' needs an initial value of {what} {shown(wanted)}, got "
            f"{shown(found)}"
        )


def _result(tensor: Tensor, read_value: bool) -> Any:
    return tensor if read_value else tensor.op


def written(variable: Variable, value: Entry, name: str, adds: int = 0) -> Tensor:
    """What a run writes into a variable, as a tensor whose run does it.

    Raises: ShapeError and DTypeError for a value that does not fit.
    """
    graph = get_default_graph()
    if value.dtype is not variable.dtype:
        raise DTypeError(
            f"{name} needs a value of {variable.dtype} for '{variable.name}', got {value.dtype}; "
            f"tf.cast converts it"
        )
    if variable.state.shape is None:  # its shape follows from a feed
        return _noted(variable, value, name, adds)
    wanted = known_shape(variable.state)
    if value.shape is None:
        given = Tensor(value, value.node.name, graph)
        value = checked(given, wanted, f"{name} to '{variable.name}'")
    sizes = known_shape(value)
    if len(sizes) != len(wanted) or any(
        isinstance(n, int) and n != m for n, m in zip(sizes, wanted, strict=True)
    ):
        raise ShapeError(
            f"{name} needs a value of shape {shown(wanted)} for '{variable.name}', got "
            f"{shown(sizes)}"
        )
    return _noted(variable, value, name, adds)


def _noted(variable: Variable, value: Entry, name: str, adds: int) -> Tensor:
    """The node that writes a value which fits."""
    entry = get_op("identity")(value, name=name, control=get_default_graph().controls)
    variable.graph.writes[entry.node] = Write(variable, value, adds)
    return wrapped(entry, name)


def _target(where: str, ref: Any) -> Variable:
    if not isinstance(ref, Variable):
        raise GraphError(f"{where} needs a variable to write, got {ref!r}; tf.Variable makes one")
    return ref


@refuses("a variable keeps its shape, and writes are in order", "validate_shape", "use_locking")
def assign(
    ref: Any,
    value: Any,
    validate_shape: bool | None = None,
    use_locking: bool | None = None,
    name: str | None = None,
) -> Tensor:
    """Write a value into a variable; the result is the new value."""
    target = _target("assign", ref)
    return written(target, _fit(value, target), named(name, "Assign"))


@refuses("writes are in order", "use_locking")
def assign_add(
    ref: Any, value: Any, use_locking: bool | None = None, name: str | None = None
) -> Tensor:
    """Add to what a variable holds; the result is the new value."""
    target = _target("assign_add", ref)
    return written(target, _fit(value, target), named(name, "AssignAdd"), 1)


@refuses("writes are in order", "use_locking")
def assign_sub(
    ref: Any, value: Any, use_locking: bool | None = None, name: str | None = None
) -> Tensor:
    """Take from what a variable holds; the result is the new value."""
    target = _target("assign_sub", ref)
    return written(target, _fit(value, target), named(name, "AssignSub"), -1)


def _fit(value: Any, target: Variable) -> Entry:
    """A value for a variable; numbers and arrays take its dtype."""
    return value.entry if isinstance(value, Tensor) else read(operand_array(value, target), None)


def operand_array(value: Any, target: Variable) -> Any:
    """A number or array as an entry of a variable's dtype."""
    return operand(value, target.dtype) if not isinstance(value, (bool, int, float)) else read(
        value, target.dtype
    )


# all variables


def global_variables(scope: str | None = None) -> list[Any]:
    """The variables of the default graph; those whose names begin with ``scope``."""
    return get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES, scope)


def trainable_variables(scope: str | None = None) -> list[Any]:
    """Those variables that optimizers change by default."""
    return get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES, scope)


def variables_initializer(var_list: Sequence[Variable], name: str = "init") -> Operation:
    """An operation that gives variables their initial values.

    Weights of TinyFlow's layers whose shapes were unknown have none: the program assigns to them.
    """
    starts = [v.initializer for v in var_list]
    nodes = [n for s in starts if s is not None for n in s.nodes]
    return Operation(named(name, "init"), nodes, get_default_graph())


def global_variables_initializer() -> Operation:
    """An operation that gives all variables made so far their initial values."""
    return variables_initializer(global_variables())


initialize_all_variables = global_variables_initializer


def local_variables(scope: str | None = None) -> list[Any]:
    """The variables that a program keeps for itself, such as those of `tf.metrics`."""
    return get_default_graph().get_collection(GraphKeys.LOCAL_VARIABLES, scope)


def local_variables_initializer() -> Operation:
    """An operation that gives all local variables made so far their initial values."""
    return variables_initializer(local_variables())


initialize_local_variables = local_variables_initializer
