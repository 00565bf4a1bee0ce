"""Variables whose shape follows from a tensor of unknown rank: weights of TinyFlow's layers.

TinyFlow's programs give placeholders no shapes. They call `tf.infer_variable_shapes` with the
shapes of a feed, get the shapes of the weights, and assign initial values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from passkit.errors import ShapeError
from passkit.frontends.tinyflow import creation
from passkit.frontends.tinyflow.deferred_calls import deferred_entries
from passkit.frontends.tinyflow.graphs import GraphKeys, get_default_graph
from passkit.frontends.tinyflow.shapes import format_shape, require_shape
from passkit.frontends.tinyflow.tensors import Operation, Tensor
from passkit.frontends.tinyflow.variables import Variable, write_variable
from passkit.graph.node import Entry, state
from passkit.values.dtype import DType
from passkit.values.size import Shape


class DeferredVariable(Variable):
    """A variable that gets its shape when a run, or `tf.infer_variable_shapes`, has its source's.

    Args:
        name: Its full name.
        source: The tensor of unknown rank that its shape follows from.
        shape_of: Returns the variable's shape for the shape of ``source``.
        trainable: Whether optimizers change it.
        first: The number that it is initialized with; None for weights, to which the program
            assigns.
    """

    def __init__(
        self,
        name: str,
        source: Tensor,
        shape_of: Callable[[Shape], Sequence[Any]],
        trainable: bool = True,
        first: float | None = None,
    ) -> None:
        def resolve(ranked: Sequence[Tensor]) -> list[Tensor]:
            self.set_variable_shape(tuple(shape_of(require_shape(ranked[0].entry))))
            return [Tensor(self.state, name, self.graph)]

        with get_default_graph().with_dependencies(None):
            outputs = [(None, source.dtype)]
            inputs = [_declared_entry(source)]
            self._declared_entry = deferred_entries(resolve, inputs, outputs, name)[0]
        self._resolved_state: Entry | None = None
        self._slots: list[DeferredVariable] = []
        Tensor.__init__(self, self._declared_entry, name, get_default_graph())
        self.first, self.trainable, self.constraint = first, trainable, None
        self._initializer: Operation | None = None
        self.graph.add_to_collection(GraphKeys.GLOBAL_VARIABLES, self)
        if trainable:
            self.graph.add_to_collection(GraphKeys.TRAINABLE_VARIABLES, self)

    @classmethod
    def slot_of(cls, variable: DeferredVariable, name: str, first: float) -> DeferredVariable:
        """Create an optimizer slot: a variable of the shape of another one, filled with a number.

        Args:
            variable: The variable whose shape it gets.
            name: Its full name.
            first: Its initial value.

        Returns:
            The slot, which is not trainable. ``variable`` records it and tells it its shape.
        """
        slot = cls(name, variable, lambda shape: shape, trainable=False, first=first)
        variable._slots.append(slot)
        if variable._resolved_state is not None:
            slot.set_variable_shape(require_shape(variable.state))
        return slot

    def set_variable_shape(self, shape: Shape) -> None:
        """Set the shape, which the variable and its slots keep.

        Args:
            shape: The extents, ints in the first call. A later call must repeat them, but may have
                symbolic extents, which are not compared.

        Raises:
            ShapeError: If an extent is no int in the first call, or the variable has another shape
                already.
        """
        if self._resolved_state is None:
            if not all(isinstance(n, int) for n in shape):
                raise ShapeError(
                    f"variable '{self._name}' needs a known shape, got {format_shape(shape)}; "
                    "tf.infer_variable_shapes(net, shapes_by_placeholder) sets it"
                )
            self._resolved_state = state(self._name, (shape, self.dtype))
            for slot in self._slots:
                slot.set_variable_shape(shape)
        current = require_shape(self._resolved_state)
        if len(current) != len(shape) or any(
            isinstance(n, int) and n != m for n, m in zip(shape, current, strict=True)
        ):
            raise ShapeError(
                f"variable '{self._name}' has the shape {format_shape(current)}, and its layer's "
                f"input needs one of {format_shape(shape)} in this run"
            )

    @property
    def declared_entry(self) -> Entry:
        """The deferred node that nodes read which were created before the shape was known."""
        return self._declared_entry

    @property
    def state(self) -> Entry:
        """The variable of passkit's graph; before its shape is known, the deferred node."""
        return self._declared_entry if self._resolved_state is None else self._resolved_state

    @property
    def dtype(self) -> DType:
        """The element type."""
        assert self._declared_entry.dtype is not None
        return self._declared_entry.dtype

    @property
    def initializer(self) -> Operation | None:  # type: ignore[override]
        """The operation that assigns the initial value; None if the program has to assign one.

        It is created at the first use.

        Raises:
            ShapeError: While the shape is not known.
        """
        if self.first is None:
            return None
        if self._initializer is None:
            if self._resolved_state is None:
                raise ShapeError(
                    f"variable '{self._name}' needs a shape before it is initialized, got none; "
                    "tf.infer_variable_shapes(net, shapes_by_placeholder) sets it"
                )
            with self.graph.as_default(), self.graph.with_dependencies(None):
                value = creation.constant(self.first, self.dtype, self.shape.as_list())
                write = write_variable(self, value.entry, f"{self._name}/Assign")
                self._initializer = write.op
        return self._initializer

    @property
    def initial_value(self) -> Tensor:  # type: ignore[override]
        """Raise ShapeError: the program assigns the initial value."""
        raise ShapeError(
            f"variable '{self._name}' has no initial value; the program assigns one of the shape "
            f"that tf.infer_variable_shapes gives"
        )

    def __repr__(self) -> str:
        resolved = self._resolved_state
        shape = "<unknown>" if resolved is None else format_shape(require_shape(resolved))
        return f"<tf.Variable '{self.name}' shape={shape} dtype={self.dtype}>"


def _declared_entry(source: Tensor) -> Entry:
    """Return the declared entry of a `DeferredVariable`, and the entry of any other tensor."""
    return source.declared_entry if isinstance(source, DeferredVariable) else source.entry
