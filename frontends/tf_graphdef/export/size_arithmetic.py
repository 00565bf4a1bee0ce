"""Symbolic sizes, written as arithmetic on the shapes of placeholders."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.export.graphdef_writer import INT32, INT64, NameScope, NodeOutput
from passkit.values.size import Extent, Quotient, Shape, Size, evaluate


@frozen
class SizeSource:
    """Source of a symbol's value: dimension ``axis`` of ``tensor`` equals ``size``."""

    tensor: NodeOutput
    axis: int
    size: Size


def find_size_sources(inputs: Mapping[NodeOutput, Shape]) -> dict[str, SizeSource]:
    """Return a source for each symbol that a dimension of an input determines.

    A dimension determines a symbol if it is a linear function of that symbol alone. ``inputs`` maps
    the tensors of placeholders to their shapes.

    Functions of fewer terms are preferred, then the first dimension. Symbols without such a
    dimension are left out.
    """
    size_sources: dict[str, SizeSource] = {}
    dimensions = [
        (t, k, n) for t, s in inputs.items() for k, n in enumerate(s) if isinstance(n, Size)
    ]
    for t, k, n in sorted(dimensions, key=lambda d: len(d[2].terms)):
        if len(n.symbols) == 1 and all(
            m in ((), (name,)) for m, _ in n.terms for name in n.symbols
        ):
            size_sources.setdefault(next(iter(n.symbols)), SizeSource(t, k, n))
    return size_sources


def extent_tensor(
    scope: NameScope, size: Extent, size_sources: Mapping[str, SizeSource]
) -> NodeOutput:
    """Write an extent as an int64 scalar; a symbolic one is written once for the graph.

    Args:
        scope: Name scope to write in.
        size: The extent.
        size_sources: The tensor dimension from which each symbol is read, by symbol.

    Raises:
        ModelError: If the extent has a symbol without a source.
    """
    if isinstance(size, int):
        return scope.const(size, INT64)
    cache = scope.writer.sizes
    if size not in cache:
        cache[size] = _written(scope, size, size_sources)
    tensor: NodeOutput = cache[size]
    return tensor


def _written(scope: NameScope, size: Size, size_sources: Mapping[str, SizeSource]) -> NodeOutput:
    """Write a symbolic size, a polynomial of symbols and quotients, as an int64 scalar.

    ``size_sources`` has, by symbol, the tensor dimension from which it is read; ``scope`` is the
    name scope to write in.

    Raises:
        ModelError: If it has a symbol without a source.
    """
    if len(size.terms) == 1 and size.terms[0][1] == 1 and len(size.terms[0][0]) == 1:
        atom = size.terms[0][0][0]
        if isinstance(atom, Quotient):
            parts = [
                extent_tensor(scope, n, size_sources) for n in (atom.numerator, atom.denominator)
            ]
            return scope.op("FloorDiv", *parts)
        return _symbol(scope, atom, size_sources)
    total: NodeOutput | None = None
    for monomial, coefficient in size.terms:
        product: NodeOutput | None = None
        for atom in monomial:
            factor = extent_tensor(scope, Size({(atom,): 1}), size_sources)
            product = factor if product is None else scope.op("Mul", product, factor)
        if product is None:
            product = scope.const(coefficient, INT64)
        elif coefficient != 1:
            product = scope.op("Mul", product, scope.const(coefficient, INT64))
        total = product if total is None else scope.op("AddV2", total, product)
    assert total is not None
    return total


def _symbol(scope: NameScope, name: str, size_sources: Mapping[str, SizeSource]) -> NodeOutput:
    """Write a symbol, solved from the dimension that contains it.

    Args:
        scope: Name scope to write in.
        name: The symbol.
        size_sources: The tensor dimension from which each symbol is read.

    Raises:
        ModelError: If the symbol has no source.
    """
    if name not in size_sources:
        raise ModelError(
            f"the size '{name}' needs an input with a dimension that determines it, found none"
        )
    source = size_sources[name]
    value = dimension(scope, source.tensor, source.axis)
    offset = evaluate(source.size, {name: 0})
    factor = evaluate(source.size, {name: 1}) - offset
    if offset:
        value = scope.op("Sub", value, scope.const(offset, INT64))
    if factor != 1:
        value = scope.op("FloorDiv", value, scope.const(factor, INT64))
    return value


def dimension(scope: NameScope, x: NodeOutput, axis: int) -> NodeOutput:
    """Write the extent of axis ``axis``, from 0 on, of ``x`` as an int64 scalar in ``scope``.

    The Shape node of ``x`` is written once for the graph.
    """
    key = (x.ref, "shape")
    if key not in scope.writer.sizes:
        shape = scope.op("Shape", x, out=INT64, out_type=INT64)
        scope.writer.sizes[key] = shape
    bounds = [scope.const([k]) for k in (axis, axis + 1, 1)]
    return scope.op(
        "StridedSlice",
        scope.writer.sizes[key],
        *bounds,
        Index=INT32,
        begin_mask=0,
        end_mask=0,
        ellipsis_mask=0,
        new_axis_mask=0,
        shrink_axis_mask=1,
    )


def shape_tensor(
    scope: NameScope, shape: Shape, size_sources: Mapping[str, SizeSource]
) -> NodeOutput:
    """Write a shape as an int64 vector; a constant if it is known.

    Args:
        scope: Name scope to write in.
        shape: The shape.
        size_sources: The tensor dimension from which each symbol is read, by symbol.

    Raises:
        ModelError: If an extent has a symbol without a source.
    """
    if all(isinstance(n, int) for n in shape):
        return scope.const(list(shape), INT64)
    parts = [extent_tensor(scope, n, size_sources) for n in shape]
    return scope.op("Pack", *parts, N=len(parts), axis=0)


def reshape_operand(
    scope: NameScope, shape: Shape, size_sources: Mapping[str, SizeSource]
) -> NodeOutput:
    """Write the shape operand of Reshape, an int64 vector.

    If one extent is symbolic and none is 0, it becomes -1, which Reshape infers.

    Args:
        scope: Name scope to write in.
        shape: The shape.
        size_sources: The tensor dimension from which each symbol is read, by symbol.

    Raises:
        ModelError: If a symbolic extent that does not become -1 has a symbol without a source.
    """
    unknown = [n for n in shape if isinstance(n, Size)]
    if len(unknown) == 1 and 0 not in [n for n in shape if isinstance(n, int)]:
        return scope.const([n if isinstance(n, int) else -1 for n in shape], INT64)
    return shape_tensor(scope, shape, size_sources)
