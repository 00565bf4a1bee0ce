"""The table: what each passkit operator is in TensorFlow; its rows stand in `rows/`.

A row writes one node and what it needs, or returns None, before it has written anything, where
TensorFlow's operator does not mean the same. An operator without a row is written as what it
expands to, as its kernel expression, or by the elements that it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from attrs import field, frozen

from passkit.frontends.tf_graphdef.export import sizes
from passkit.frontends.tf_graphdef.export.kernels import computed_as
from passkit.frontends.tf_graphdef.export.writer import INT32, Scope, Tensor
from passkit.graph.node import Node, known_shape
from passkit.values.dtype import DType
from passkit.values.size import Extent, Shape

Result: TypeAlias = Tensor | tuple[Tensor, ...] | None
"""What a row writes; None where it cannot."""


@frozen(eq=False)
class Call:
    """A call of a passkit operator that is to be written."""

    node: Node
    scope: Scope
    known: Mapping[str, sizes.Source]
    """Where sizes known only in a call are read."""
    parts: Callable[..., tuple[Tensor, ...]] = field(repr=False)
    """Writes (call, scope, function of entries, their shapes, their tensors)."""

    @property
    def name(self) -> str:
        """What the operator is called."""
        assert self.node.op is not None
        return self.node.op.name

    @property
    def params(self) -> Mapping[str, Any]:
        """The parameters of the operator."""
        return self.node.params

    @property
    def dtype(self) -> DType:
        """The element type of the first result."""
        found = self.node.entries[0].dtype
        assert found is not None
        return found

    @property
    def out(self) -> Shape:
        """The shape of the first result."""
        return known_shape(self.node.entries[0])

    def shape(self, k: int = 0) -> Shape:
        """The shape of an input."""
        return known_shape(self.node.inputs[k])

    def const(self, value: Any, dtype: DType = INT32) -> Tensor:
        """A constant."""
        return self.scope.const(value, dtype)

    def size(self, n: Extent) -> Tensor:
        """An extent as an int64 scalar."""
        return sizes.scalar(self.scope, n, self.known)

    def sizes(self, shape: Shape) -> Tensor:
        """Extents as an int64 vector."""
        return sizes.vector(self.scope, shape, self.known)

    def op(self, op: str, *inputs: Tensor, **attrs: Any) -> Tensor:
        """A part: see `Scope.op`."""
        return self.scope.op(op, *inputs, **attrs)

    def result(self, op: str, *inputs: Tensor, **attrs: Any) -> Tensor:
        """The node that is the result, and called as the operator: see `Scope.op`."""
        return self.scope.op(op, *inputs, last=True, **attrs)

    def expanded(
        self,
        function: Callable[..., Any],
        *inputs: Tensor,
        shapes: Sequence[Shape] | None = None,
        last: bool = True,
    ) -> tuple[Tensor, ...]:
        """What ``function``, of operators of passkit, makes of entries that stand for ``inputs``.

        Their shapes are those of the node's inputs unless given.
        """
        known = [self.shape(k) for k in range(len(inputs))] if shapes is None else shapes
        scope = self.scope if last else self.scope.inner("part")
        return self.parts(self, scope, function, known, inputs)

    def reshaped(self, x: Tensor, shape: Shape, last: bool = False) -> Tensor:
        """``x`` with another shape."""
        wanted = sizes.filled_in(self.scope, shape, self.known)
        return self.scope.op("Reshape", x, wanted, Tshape=wanted.dtype, last=last)


Row = Callable[..., Result]
ROWS: dict[str, Row] = {}


def row(*names: str) -> Callable[[Row], Row]:
    """Enter a function into the table, for one or more operators of passkit."""

    def enter(function: Row) -> Row:
        for name in names:
            ROWS[name] = function
        return function

    return enter


def same_inputs(names: Mapping[str, str]) -> None:
    """Enter operators that TensorFlow has under another name, with the same inputs."""
    for ours, theirs in names.items():

        def write(call: Call, *inputs: Tensor, theirs: str = theirs) -> Result:
            if computed_as(theirs, inputs[0].dtype) is None:
                return None
            return call.result(theirs, *inputs, out=call.dtype)

        ROWS[ours] = write


def as_tuple(made: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The results of a node."""
    return (made,) if isinstance(made, Tensor) else tuple(made)
