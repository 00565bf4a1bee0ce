"""Export of operators that have FElement but no TensorFlow equivalent, as gathers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from passkit.analysis.accesses import Reader, element_expr
from passkit.ast import Expr, Load, Select, Var, size_of
from passkit.ast.index import simplify
from passkit.ast.walk import children, walk
from passkit.frontends.tf_graphdef.export.expressions import (
    ExpressionWriter,
    axis_positions,
    work_type,
)
from passkit.frontends.tf_graphdef.export.graphdef_writer import INT32, INT64, NodeOutput
from passkit.frontends.tf_graphdef.export.registry import ExportCall
from passkit.graph.node import Entry, known_shape
from passkit.values.dtype import int64
from passkit.values.size import Extent, numel


def export_by_element(call: ExportCall, inputs: Sequence[NodeOutput]) -> tuple[NodeOutput, ...]:
    """Write an operator by its FElement: reads become gathers from flattened inputs.

    Args:
        call: The node to write.
        inputs: Tensors of its inputs.

    Returns:
        The tensors of its results, in the shape of the first.

    Raises:
        ModelError: If an expression has no equivalent in TensorFlow, or a size has a symbol without
            a source.
        ShapeError: If a shape has an unknown rank.
    """
    shape = call.out
    axes = tuple(Var(f"i{k}", int64) for k in range(len(shape)))
    extents: dict[str, Extent] = {v.name: n for v, n in zip(axes, shape, strict=True)}
    readers = [_reader(k, e, extents) for k, e in enumerate(call.node.inputs)]
    elements = element_expr(call.node, axes, readers)
    element_list = elements if isinstance(elements, tuple) else (elements,)
    used = {part for x in element_list for part in walk(x)}
    grids: dict[Expr, NodeOutput] = {
        v: axis_positions(call.scope, k, len(axes), call.size(shape[k]))
        for k, v in enumerate(axes)
        if v in used and shape[k] != 1
    }
    grids |= {v: call.const(0, INT64) for k, v in enumerate(axes) if v in used and shape[k] == 1}
    loads = _Loads(call, inputs, frozenset(part for x in element_list for part in _certain(x)))
    expressions = ExpressionWriter(call.scope, grids, call.size_sources, loads)
    uses_all_axes = all(v in used for v, n in zip(axes, shape, strict=True) if n != 1)
    uses_all_axes = uses_all_axes and (not shape or any(n != 1 for n in shape))
    results = []
    for k, x in enumerate(element_list):
        if uses_all_axes and len(element_list) == 1:
            results.append(expressions.result(x))
            continue
        value = expressions.scope.cast(expressions.write(x), x.dtype)
        results.append(
            call.op(
                "BroadcastTo",
                value,
                call.sizes(shape),
                Tidx=INT64,
                is_result=k == 0 == len(element_list) - 1,
            )
        )
    return tuple(results)


def _reader(k: int, entry: Entry, extents: dict[str, Extent]) -> Reader:
    """Return a reader of an input: it takes one index per axis and returns a load of ``x{k}``.

    The offset of the load is that of the element in row-major order.

    Args:
        k: Number of the input, which names the buffer.
        entry: The input.
        extents: Extents of the index variables by name, to simplify offsets.

    Raises:
        ShapeError: If the rank of the input is unknown.
    """
    shape, dtype = known_shape(entry), entry.dtype
    assert dtype is not None

    def read(*indices: Expr) -> Expr:
        offset: Expr = size_of(0)
        for i, n in zip(indices, shape, strict=True):
            offset = offset * size_of(n) + i
        return Load(f"x{k}", simplify(offset, extents), dtype)

    return read


def _certain(x: Expr) -> Iterator[Load]:
    """Yield the loads of ``x`` that are executed for every element, at offsets in range.

    These are loads outside of select arms, conditions of selects included, whose offsets contain no
    load. Loads inside an offset are not yielded.
    """
    if isinstance(x, Load):
        if not any(isinstance(part, Load) for part in walk(x.index)):
            yield x
        return
    for child in (x.condition,) if isinstance(x, Select) else children(x):
        yield from _certain(child)


class _Loads:
    """Writes loads as gathers; offsets of loads that are not in ``certain`` are clamped.

    If an input may be empty, a zero is appended, so that there is an element to read.
    """

    def __init__(
        self, call: ExportCall, inputs: Sequence[NodeOutput], certain: frozenset[Load]
    ) -> None:
        """Prepare loads of a node's inputs.

        Args:
            call: The node.
            inputs: Tensors of its inputs.
            certain: Loads whose offsets are always in range, which need no clamping.
        """
        self.call, self.inputs, self.certain = call, inputs, certain
        self.flat: dict[int, tuple[NodeOutput, NodeOutput]] = {}

    def __call__(self, x: Load, expressions: ExpressionWriter) -> NodeOutput:
        """Write a load as GatherV2 from the flattened input; return it in its `work_type`.

        ``expressions`` writes the offset, which is clamped unless ``x`` is in ``certain``.

        Raises:
            ModelError: If the offset has no equivalent in TensorFlow, or a size has a symbol
                without a source.
        """
        k = int(x.buffer[1:])
        scope = self.call.scope
        values, last = self.laid_flat(k)
        offset = expressions.write(x.index)
        if x not in self.certain:
            offset = scope.op("Minimum", scope.op("Maximum", offset, scope.const(0, INT64)), last)
        axis = scope.const(0, INT32)
        gathered = scope.op(
            "GatherV2",
            values,
            offset,
            axis,
            like="Tparams",
            Tindices=INT64,
            Taxis=INT32,
            batch_dims=0,
        )
        return scope.cast(gathered, work_type(gathered.dtype))

    def laid_flat(self, k: int) -> tuple[NodeOutput, NodeOutput]:
        """Return input ``k`` as a vector, and the offset of the vector's last element.

        If the number of elements is 0 or symbolic, a zero is appended, so that there is an element
        to read; the offset, an int64 scalar, is that of the zero. Both tensors are written once for
        each input. A vector that may not be empty is the input's tensor itself.

        Raises:
            ModelError: If a size has a symbol without a source.
        """
        if k not in self.flat:
            call, x = self.call, self.inputs[k]
            num_elements = numel(call.shape(k))
            flat = x if len(call.shape(k)) == 1 else call.reshaped(x, (num_elements,))
            if isinstance(num_elements, int) and num_elements > 0:
                self.flat[k] = flat, call.const(num_elements - 1, INT64)
            else:
                zero = call.const([0], x.dtype)
                flat = call.op("ConcatV2", flat, zero, call.const(0), N=2, Tidx=INT32)
                self.flat[k] = flat, call.size(num_elements)
        return self.flat[k]
