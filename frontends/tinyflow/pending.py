"""Variables whose shape follows from a tensor of unknown rank: weights of TinyFlow's layers.

TinyFlow's programs give placeholders no shapes. `tf.infer_variable_shapes` tells the shapes of a
feed, finds those of the weights from them, and the program assigns initial values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from passkit.errors import ShapeError
from passkit.frontends.tinyflow import sources
from passkit.frontends.tinyflow.deferring import deferred
from passkit.frontends.tinyflow.graphs import GraphKeys, get_default_graph
from passkit.frontends.tinyflow.ranks import known_shape
from passkit.frontends.tinyflow.shapes import shown
from passkit.frontends.tinyflow.tensors import Operation, Tensor
from passkit.frontends.tinyflow.variables import Variable, written
from passkit.graph.node import Entry, state
from passkit.values.dtype import DType
from passkit.values.size import Shape


class PendingVariable(Variable):
    """A variable that gets its shape when the shape of ``source`` is told.

    Args:
        name: Its full name.
        source: The tensor that its shape follows from.
        shape_of: The variable's shape, from that of ``source``.
        trainable: Whether optimizers change it.
        first: The number that it begins with; None for weights, to which the program assigns.
    """

    def __init__(
        self,
        name: str,
        source: Tensor,
        shape_of: Callable[[Shape], Sequence[Any]],
        trainable: bool = True,
        first: float | None = None,
    ) -> None:
        def settled(known: Sequence[Tensor]) -> list[Tensor]:
            self.settle(tuple(shape_of(known_shape(known[0].entry))))
            return [Tensor(self.state, name, self.graph)]

        with get_default_graph().after(None):
            outputs = [(None, source.dtype)]
            self._home = deferred(settled, [_home(source)], outputs, name)[0]
        self._settled: Entry | None = None
        self._beside: list[PendingVariable] = []
        Tensor.__init__(self, self._home, name, get_default_graph())
        self.first, self.trainable, self.constraint = first, trainable, None
        self._initializer: Operation | None = None
        self.graph.add_to_collection(GraphKeys.GLOBAL_VARIABLES, self)
        if trainable:
            self.graph.add_to_collection(GraphKeys.TRAINABLE_VARIABLES, self)

    @classmethod
    def beside(cls, variable: PendingVariable, name: str, first: float) -> PendingVariable:
        """A variable of the shape of another, as an optimizer keeps it, filled with ``first``."""
        made = cls(name, variable, lambda shape: shape, trainable=False, first=first)
        variable._beside.append(made)
        if variable._settled is not None:
            made.settle(known_shape(variable.state))
        return made

    def settle(self, shape: Shape) -> None:
        """Give it a shape, which it keeps. Raises: ShapeError for another one than before."""
        if self._settled is None:
            if not all(isinstance(n, int) for n in shape):
                raise ShapeError(
                    f"variable '{self._name}' needs a known shape, got {shown(shape)}; "
                    "tf.infer_variable_shapes(net, shapes_by_placeholder) tells it"
                )
            self._settled = state(self._name, (shape, self.dtype))
            for follower in self._beside:
                follower.settle(shape)
        own = known_shape(self._settled)
        if len(own) != len(shape) or any(
            isinstance(n, int) and n != m for n, m in zip(shape, own, strict=True)
        ):
            raise ShapeError(
                f"variable '{self._name}' has the shape {shown(own)}, and its layer's input needs "
                f"one of {shown(shape)} in this run"
            )

    @property
    def home(self) -> Entry:
        """The node that stands for the variable while its shape is not known."""
        return self._home

    @property
    def state(self) -> Entry:
        """The variable itself; before its shape is known, a node that waits for it."""
        return self._home if self._settled is None else self._settled

    @property
    def dtype(self) -> DType:
        """The element type."""
        assert self._home.dtype is not None
        return self._home.dtype

    @property
    def initializer(self) -> Operation | None:  # type: ignore[override]
        """The operation that assigns the first value; None where the program has to assign one.

        Raises: ShapeError while its shape is not known.
        """
        if self.first is None:
            return None
        if self._initializer is None:
            if self._settled is None:
                raise ShapeError(
                    f"variable '{self._name}' has no shape to be initialised with; "
                    "tf.infer_variable_shapes(net, shapes_by_placeholder) tells it"
                )
            with self.graph.as_default(), self.graph.after(None):
                value = sources.constant(self.first, self.dtype, self.shape.as_list())
                self._initializer = written(self, value.entry, f"{self._name}/Assign").op
        return self._initializer

    @property
    def initial_value(self) -> Tensor:  # type: ignore[override]
        """Raises: ShapeError, as the program assigns its first value."""
        raise ShapeError(
            f"variable '{self._name}' has no initial value; the program assigns one of the shape "
            f"that tf.infer_variable_shapes gives"
        )

    def __repr__(self) -> str:
        text = "<unknown>" if self._settled is None else shown(known_shape(self._settled))
        return f"<tf.Variable '{self.name}' shape={text} dtype={self.dtype}>"


def _home(source: Tensor) -> Entry:
    return source.home if isinstance(source, PendingVariable) else source.entry
