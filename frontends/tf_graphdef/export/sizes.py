"""Sizes known only in a call, as arithmetic on the shapes of placeholders."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.export.writer import INT32, INT64, Scope, Tensor
from passkit.values.size import Extent, Quotient, Shape, Size, evaluate


@frozen
class Source:
    """Where an unknown extent can be read: dimension ``axis`` of a placeholder is ``size``."""

    tensor: Tensor
    axis: int
    size: Size


def sources(inputs: Mapping[Tensor, Shape]) -> dict[str, Source]:
    """A source for each unknown extent that some dimension gives, alone or by a linear size."""
    found: dict[str, Source] = {}
    dims = [(t, k, n) for t, s in inputs.items() for k, n in enumerate(s) if isinstance(n, Size)]
    for t, k, n in sorted(dims, key=lambda d: len(d[2].terms)):
        if len(n.symbols) == 1 and all(
            m in ((), (name,)) for m, _ in n.terms for name in n.symbols
        ):
            found.setdefault(next(iter(n.symbols)), Source(t, k, n))
    return found


def scalar(scope: Scope, size: Extent, known: Mapping[str, Source]) -> Tensor:
    """An extent as an int64 scalar.

    Raises: ModelError for an extent that no input has.
    """
    if isinstance(size, int):
        return scope.const(size, INT64)
    cache = scope.writer.sizes
    if size not in cache:
        cache[size] = _written(scope, size, known)
    found: Tensor = cache[size]
    return found


def _written(scope: Scope, size: Size, known: Mapping[str, Source]) -> Tensor:
    if len(size.terms) == 1 and size.terms[0][1] == 1 and len(size.terms[0][0]) == 1:
        atom = size.terms[0][0][0]
        if isinstance(atom, Quotient):
            parts = [scalar(scope, n, known) for n in (atom.numerator, atom.denominator)]
            return scope.op("FloorDiv", *parts)
        return _symbol(scope, atom, known)
    total: Tensor | None = None
    for monomial, coefficient in size.terms:
        product: Tensor | None = None
        for atom in monomial:
            factor = scalar(scope, Size({(atom,): 1}), known)
            product = factor if product is None else scope.op("Mul", product, factor)
        if product is None:
            product = scope.const(coefficient, INT64)
        elif coefficient != 1:
            product = scope.op("Mul", product, scope.const(coefficient, INT64))
        total = product if total is None else scope.op("AddV2", total, product)
    assert total is not None
    return total


def _symbol(scope: Scope, name: str, known: Mapping[str, Source]) -> Tensor:
    if name not in known:
        raise ModelError(f"the size '{name}' is the extent of no input, so no shape gives it")
    source = known[name]
    found = dimension(scope, source.tensor, source.axis)
    offset = evaluate(source.size, {name: 0})
    factor = evaluate(source.size, {name: 1}) - offset
    if offset:
        found = scope.op("Sub", found, scope.const(offset, INT64))
    if factor != 1:
        found = scope.op("FloorDiv", found, scope.const(factor, INT64))
    return found


def dimension(scope: Scope, x: Tensor, axis: int) -> Tensor:
    """The extent of one axis of a tensor, as an int64 scalar."""
    key = (x.ref, "shape")
    if key not in scope.writer.sizes:
        shape = scope.op("Shape", x, out=INT64, out_type=INT64)
        scope.writer.sizes[key] = shape
    bounds = [scope.const([k]) for k in (axis, axis + 1, 1)]
    return scope.op(
        "StridedSlice", scope.writer.sizes[key], *bounds,
        Index=INT32, begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=1,
    )  # fmt: skip


def vector(scope: Scope, shape: Shape, known: Mapping[str, Source]) -> Tensor:
    """A shape as an int64 vector: a constant where all of it is known."""
    if all(isinstance(n, int) for n in shape):
        return scope.const(list(shape), INT64)
    parts = [scalar(scope, n, known) for n in shape]
    return scope.op("Pack", *parts, N=len(parts), axis=0)


def filled_in(scope: Scope, shape: Shape, known: Mapping[str, Source]) -> Tensor:
    """The shape of a Reshape: one unknown extent is left to it."""
    unknown = [n for n in shape if isinstance(n, Size)]
    if len(unknown) == 1 and 0 not in [n for n in shape if isinstance(n, int)]:
        return scope.const([n if isinstance(n, int) else -1 for n in shape], INT64)
    return vector(scope, shape, known)
