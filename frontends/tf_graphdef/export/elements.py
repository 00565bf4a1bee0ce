"""Operators with FElement and without a twin: what moves elements is written as gathers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from passkit.ast import Expr, Load, Select, Var, size_of
from passkit.ast.index import simplify
from passkit.ast.walk import children, walk
from passkit.frontends.tf_graphdef.export.expressions import Speller, index, work_type
from passkit.frontends.tf_graphdef.export.table import Call
from passkit.frontends.tf_graphdef.export.writer import INT32, INT64, Tensor
from passkit.graph.node import Entry, known_shape
from passkit.space.reads import Reader, element
from passkit.values.dtype import int64
from passkit.values.size import Extent, numel


def by_element(call: Call, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The results of an operator with FElement: its reads are gathers from inputs laid flat."""
    shape = call.out
    axes = tuple(Var(f"i{k}", int64) for k in range(len(shape)))
    extents: dict[str, Extent] = {v.name: n for v, n in zip(axes, shape, strict=True)}
    readers = [_reader(k, e, extents) for k, e in enumerate(call.node.inputs)]
    found = element(call.node, axes, readers)
    many = found if isinstance(found, tuple) else (found,)
    used = {part for x in many for part in walk(x)}
    grids: dict[Expr, Tensor] = {
        v: index(call.scope, k, len(axes), call.size(shape[k]))
        for k, v in enumerate(axes)
        if v in used and shape[k] != 1
    }
    grids |= {v: call.const(0, INT64) for k, v in enumerate(axes) if v in used and shape[k] == 1}
    loads = _Loads(call, inputs, frozenset(part for x in many for part in _certain(x)))
    speller = Speller(call.scope, grids, call.known, loads)
    whole = all(v in used for v, n in zip(axes, shape, strict=True) if n != 1)
    whole = whole and (not shape or any(n != 1 for n in shape))
    results = []
    for k, x in enumerate(many):
        if whole and len(many) == 1:
            results.append(speller.result(x))
            continue
        made = speller.scope.cast(speller.write(x), x.dtype)
        results.append(
            call.op(
                "BroadcastTo", made, call.sizes(shape), Tidx=INT64, last=k == 0 == len(many) - 1
            )
        )
    return tuple(results)


def _reader(k: int, entry: Entry, extents: dict[str, Extent]) -> Reader:
    """Reads of an input as loads at the row-major position."""
    shape, dtype = known_shape(entry), entry.dtype
    assert dtype is not None

    def read(*at: Expr) -> Expr:
        linear: Expr = size_of(0)
        for i, n in zip(at, shape, strict=True):
            linear = linear * size_of(n) + i
        return Load(f"x{k}", simplify(linear, extents), dtype)

    return read


def _certain(x: Expr) -> Iterator[Load]:
    """The loads of every element: those in no arm of a select, at positions that are no data."""
    if isinstance(x, Load):
        if not any(isinstance(part, Load) for part in walk(x.index)):
            yield x
        return
    for child in (x.condition,) if isinstance(x, Select) else children(x):
        yield from _certain(child)


class _Loads:
    """Writes loads: inputs are laid flat once; positions that only a select asks for are clamped.

    Where an input may be empty, a zero stands behind its elements, so that there is one to read.
    """

    def __init__(self, call: Call, inputs: Sequence[Tensor], certain: frozenset[Load]) -> None:
        self.call, self.inputs, self.certain = call, inputs, certain
        self.flat: dict[int, tuple[Tensor, Tensor]] = {}

    def __call__(self, x: Load, speller: Speller) -> Tensor:
        k = int(x.buffer[1:])
        scope = self.call.scope
        values, last = self.laid_flat(k)
        at = speller.write(x.index)
        if x not in self.certain:
            at = scope.op("Minimum", scope.op("Maximum", at, scope.const(0, INT64)), last)
        axis = scope.const(0, INT32)
        made = scope.op(
            "GatherV2", values, at, axis, like="Tparams", Tindices=INT64, Taxis=INT32,
            batch_dims=0,
        )  # fmt: skip
        return scope.cast(made, work_type(made.dtype))

    def laid_flat(self, k: int) -> tuple[Tensor, Tensor]:
        """An input as a vector, and its last position."""
        if k not in self.flat:
            call, x = self.call, self.inputs[k]
            total = numel(call.shape(k))
            flat = x if len(call.shape(k)) == 1 else call.reshaped(x, (total,))
            if isinstance(total, int) and total > 0:
                self.flat[k] = flat, call.const(total - 1, INT64)
            else:
                zero = call.const([0], x.dtype)
                flat = call.op("ConcatV2", flat, zero, call.const(0), N=2, Tidx=INT32)
                self.flat[k] = flat, call.size(total)
        return self.flat[k]
