"""Registry of op exporters: how each passkit operator is written in TensorFlow's.

An exporter writes a node and the nodes it needs. It returns None, before it has written anything,
where TensorFlow's operator differs in meaning. Operators without an exporter are written by their
expansion, their kernel expression, or their element reads. The modules of `op_exporters` register
exporters with `@op_exporter("name")`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from attrs import field, frozen

from passkit.frontends.tf_graphdef.export import size_arithmetic
from passkit.frontends.tf_graphdef.export.graphdef_writer import INT32, NameScope, NodeOutput
from passkit.frontends.tf_graphdef.export.kernel_types import kernel_dtype
from passkit.graph.node import Node, known_shape
from passkit.values.dtype import DType
from passkit.values.size import Extent, Shape

ExportResult: TypeAlias = NodeOutput | tuple[NodeOutput, ...] | None
"""Tensors that an exporter wrote; None if it cannot write the node."""


@frozen(eq=False)
class ExportCall:
    """A passkit node that is to be written."""

    node: Node
    scope: NameScope
    size_sources: Mapping[str, size_arithmetic.SizeSource]
    """The tensor dimension from which each symbolic size is read, by symbol."""
    parts: Callable[..., tuple[NodeOutput, ...]] = field(repr=False)
    """Writes a function of entries: takes call, scope, function, shapes and tensors."""

    @property
    def name(self) -> str:
        """The operator's name."""
        assert self.node.op is not None
        return self.node.op.name

    @property
    def params(self) -> Mapping[str, Any]:
        """The operator's parameters."""
        return self.node.params

    @property
    def dtype(self) -> DType:
        """The dtype of the first result, which must be known."""
        dtype = self.node.entries[0].dtype
        assert dtype is not None
        return dtype

    @property
    def out(self) -> Shape:
        """The shape of the first result.

        Raises:
            ShapeError: If its rank is unknown.
        """
        return known_shape(self.node.entries[0])

    def shape(self, k: int = 0) -> Shape:
        """Return the shape of input k, by default the first.

        Raises:
            ShapeError: If its rank is unknown.
        """
        return known_shape(self.node.inputs[k])

    def const(self, value: Any, dtype: DType = INT32) -> NodeOutput:
        """Write a constant in the node's scope by `NameScope.const` and return its tensor.

        Args:
            value: Number or array.
            dtype: Its dtype, by default int32.

        Raises:
            OverflowError: If an int of Python does not fit the dtype.
        """
        return self.scope.const(value, dtype)

    def size(self, n: Extent) -> NodeOutput:
        """Write the extent ``n`` as an int64 scalar.

        Raises:
            ModelError: If a symbol has no source.
        """
        return size_arithmetic.extent_tensor(self.scope, n, self.size_sources)

    def sizes(self, shape: Shape) -> NodeOutput:
        """Write the extents of ``shape`` as an int64 vector.

        Raises:
            ModelError: If an extent has a symbol without a source.
        """
        return size_arithmetic.shape_tensor(self.scope, shape, self.size_sources)

    def op(self, op: str, *inputs: NodeOutput, **attrs: Any) -> NodeOutput:
        """Write an auxiliary node, named below the operator's name, by `NameScope.op`.

        ``attrs`` are the keyword arguments of that method, attributes included.

        Raises:
            ModelError: If TensorFlow has no kernel of the operator, also not for a wider type.
        """
        return self.scope.op(op, *inputs, **attrs)

    def result(self, op: str, *inputs: NodeOutput, **attrs: Any) -> NodeOutput:
        """Write the node of the result, under the operator's name, by `NameScope.op`.

        ``attrs`` are the keyword arguments of that method, attributes included.

        Raises:
            ModelError: If TensorFlow has no kernel of the operator, also not for a wider type.
        """
        return self.scope.op(op, *inputs, is_result=True, **attrs)

    def expanded(
        self,
        function: Callable[..., Any],
        *inputs: NodeOutput,
        shapes: Sequence[Shape] | None = None,
        is_result: bool = True,
    ) -> tuple[NodeOutput, ...]:
        """Write a function of passkit operators.

        Args:
            function: Takes one entry for each input.
            inputs: Tensors that the entries stand for.
            shapes: Shapes of the entries, by default those of the node's inputs.
            is_result: Whether the first result gets the operator's name.

        Returns:
            The tensors of the function's results.

        Raises:
            ModelError: If an operator of the function has no equivalent in TensorFlow.
            ShapeError: If ``shapes`` is None and the rank of an input is unknown.
        """
        entry_shapes = [self.shape(k) for k in range(len(inputs))] if shapes is None else shapes
        scope = self.scope if is_result else self.scope.inner("part")
        return self.parts(self, scope, function, entry_shapes, inputs)

    def reshaped(self, x: NodeOutput, shape: Shape, is_result: bool = False) -> NodeOutput:
        """Write ``x`` in another shape, which may have symbolic extents.

        Args:
            x: Tensor to reshape.
            shape: The shape.
            is_result: Whether the node gets the operator's name.

        Raises:
            ModelError: If a symbolic extent has a symbol without a source, unless Reshape infers
                it; see `size_arithmetic.reshape_operand`.
        """
        shape_operand = size_arithmetic.reshape_operand(self.scope, shape, self.size_sources)
        return self.scope.op(
            "Reshape", x, shape_operand, Tshape=shape_operand.dtype, is_result=is_result
        )


OpExporter = Callable[..., ExportResult]
OP_EXPORTERS: dict[str, OpExporter] = {}


def op_exporter(*names: str) -> Callable[[OpExporter], OpExporter]:
    """Return a decorator that registers an exporter of passkit operators.

    The exporter takes the `ExportCall` and the tensors of the inputs. It returns the tensors of the
    results, or None if TensorFlow's operator differs; the operator is expanded then.

    The function is returned unchanged; an exporter registered before under a name is replaced.

    ``names`` are names of passkit's operators.
    """

    def register(function: OpExporter) -> OpExporter:
        for name in names:
            OP_EXPORTERS[name] = function
        return function

    return register


def register_renamed(names: Mapping[str, str]) -> None:
    """Register operators that TensorFlow has under another name, with the same inputs.

    The exporter writes one node, without attributes but the element type. It returns None if
    TensorFlow has no kernel for the dtype of the first input, also not for a wider type. Exporters
    registered before under a name are replaced.

    Args:
        names: TensorFlow's name of each passkit operator.
    """
    for ours, theirs in names.items():

        def write(call: ExportCall, *inputs: NodeOutput, theirs: str = theirs) -> ExportResult:
            if kernel_dtype(theirs, inputs[0].dtype) is None:
                return None
            return call.result(theirs, *inputs, out=call.dtype)

        OP_EXPORTERS[ours] = write


def as_tuple(result: NodeOutput | Sequence[NodeOutput]) -> tuple[NodeOutput, ...]:
    """Return one result as a tuple of one, and a sequence of results as a tuple."""
    return (result,) if isinstance(result, NodeOutput) else tuple(result)
