"""The different ones among indices: what TensorFlow 1 adds gradients of equal rows up with.

A gradient of looked up rows has a row for each index. Optimizers other than gradient descent first
make it one row for each different index: `Unique` finds these, `UnsortedSegmentSum` adds up, and
what changes the variable takes both. How many there are only a run knows. Here all rows stay: the
sum stands where its index is first, and what is written for the others goes nowhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.control_flow.calls import unreachable
from passkit.frontends.tf_graphdef.opaque import (
    OF_UNIQUE,
    Anything,
    Count,
    Distinct,
    Handle,
    Opaque,
    Places,
    Rows,
)
from passkit.frontends.tf_graphdef.operators import ops
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.scope import Site, of_unique, read, structure
from passkit.frontends.tf_graphdef.table import build
from passkit.frontends.tf_graphdef.value import Value, value_of
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry
from passkit.values.size import Extent

BY_ELEMENTS = (
    *("Abs", "Add", "AddN", "AddV2", "Cast", "Div", "DivNoNan", "Exp", "Log", "Maximum"),
    *("Minimum", "Mul", "Neg", "OnesLike", "Pow", "RealDiv", "Reciprocal", "Rsqrt", "Sign"),
    *("Sqrt", "Square", "SquaredDifference", "Sub", "Tanh", "ZerosLike"),
)
"""Operators that work on each element alone, so that rows which count for nothing stay so."""


@structure("Unique", trains=True)
def _unique(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    """The different elements, and the places of all among them.

    Raises: ModelError for what is no vector of integers.
    """
    if "Unique" in site.program.hosts:
        return site.program.hosts["Unique"].results(site.call, [site.value(x) for x in inputs])
    site.needs(inputs, 1)
    if (found := unreachable(site, inputs)) is not None:
        return found
    if isinstance(inputs[0], Distinct):
        return inputs[0], Places(f"{site.call.name}:1", source=inputs[0])
    x = site.value(inputs[0])
    if len(site.call.shape(x)) != 1 or not x.dtype.is_integer:
        raise ModelError(
            f"{site.where} needs a vector of integers, which are indices, got "
            f"{x.dtype}{show_shape(x.shape)}"
        )
    name = site.call.name
    made = Distinct(name, indices=x, first=ops.first_positions(x.entry))
    return made, Places(f"{name}:1", source=made)


@of_unique("Shape")
def _shape(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    """The shape of the different elements, which is their number."""
    site.needs(inputs, 1)
    if isinstance(inputs[0], Distinct):
        return (Count(site.call.name, source=inputs[0], is_shape=True),)
    return (_refused(site, inputs[0]),)


@of_unique("Size")
def _size(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    site.needs(inputs, 1)
    if isinstance(inputs[0], Distinct):
        return (Count(site.call.name, source=inputs[0]),)
    return (_refused(site, inputs[0]),)


@of_unique("StridedSlice")
def _first_of_shape(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    """The number in a shape of one number: ``shape[0]``. Raises: ModelError for other slices."""
    site.needs(inputs, 4)
    if (found := unreachable(site, inputs)) is not None:
        return found
    shape, *bounds = inputs
    if not isinstance(shape, Count) or not shape.is_shape:
        return (_refused(site, *inputs),)
    begin, end, step = (site.call.ints(site.value(x), "bounds") for x in bounds)
    masks = {
        what: site.call.attr(f"{what}_mask", "i", 0)
        for what in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    }
    single = begin in ((0,), (-1,)) and masks["shrink_axis"] == 1 and len(end) == len(step) == 1
    if not single or masks["ellipsis"] or masks["new_axis"]:
        raise ModelError(
            f"{site.where} takes [{', '.join(map(str, begin))}:{', '.join(map(str, end))}] of "
            f"{short(shape.name)}, and only element 0 may be taken: it is {shape.what}"
        )
    return (Count(site.call.name, source=shape.source),)


def _refused(site: Site, *inputs: Anything) -> Value:
    """Raises: ModelError for what an operator cannot take of `Unique`."""
    return site.value(next(x for x in inputs if isinstance(x, OF_UNIQUE)))


@of_unique("UnsortedSegmentSum")
def _segment_sum(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    """The sum of the rows of equal indices, where the first of them stands.

    Raises: ModelError for ids and a number of segments that are of two vectors.
    """
    site.needs(inputs, 3)
    if (found := unreachable(site, inputs)) is not None:
        return found
    x, ids, count = site.value(inputs[0]), inputs[1], inputs[2]
    same = isinstance(ids, Places) and isinstance(count, Count) and not count.is_shape
    if not same or ids.source is not count.source:  # type: ignore[union-attr]
        raise ModelError(
            f"{site.where} adds up by {_told(ids)}, {_told(count)} segments; ids of Unique need "
            f"the number of different elements of the same Unique"
        )
    assert isinstance(ids, Places)
    first = ids.source.first
    total = ops.segment_sum(x.entry, first, num_segments=_length(site, ids.source))
    return (Rows(site.call.name, source=ids.source, value=value_of(total)),)


def _told(given: Anything) -> str:
    """A value as messages name it."""
    return f"{short(given.name)} ({given.what if isinstance(given, Opaque) else 'an array'})"


def _length(site: Site, source: Distinct) -> Extent:
    """How many indices there are, equal ones counted as often as they occur."""
    return site.call.shape(source.indices)[0]


@of_unique("Gather", "GatherV2", "ResourceGather")
def _gather(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    """A row for each different index; by the places in them, a row for each index again.

    Raises: ModelError for another axis than the first.
    """
    site.needs(inputs, 2, 3)
    if (found := unreachable(site, inputs)) is not None:
        return found
    x, at = inputs[:2]
    axis = site.call.integer(site.value(inputs[2]), "axis") if len(inputs) > 2 else 0
    if axis or site.call.attr("batch_dims", "i", 0):
        raise ModelError(
            f"{site.where} takes from axis {axis} at {_told(at)}, and only from axis 0 may it, "
            f"without batch_dims"
        )
    if isinstance(at, Distinct):
        whole = read(site.program, x.variable) if isinstance(x, Handle) else site.value(x)
        rows = ops.gather(whole.entry, at.indices.entry)
        return (Rows(site.call.name, source=at, value=value_of(rows)),)
    if isinstance(x, Distinct) and isinstance(at, Places) and x is at.source:
        return (x.indices,)
    if isinstance(x, Rows) and isinstance(at, Places) and x.source is at.source:
        return (value_of(ops.gather(x.value.entry, at.source.first, name=site.call.name)),)
    return (_refused(site, at, x),)


@of_unique(*BY_ELEMENTS)
def _by_elements(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    """Rows with rows of the same indices, or with what all rows are joined to alike.

    Raises: ModelError for rows of other indices, and for arrays that have rows of their own.
    """
    if (found := unreachable(site, inputs)) is not None:
        return found
    of = [x for x in inputs if isinstance(x, Rows)]
    if not of:
        return (_refused(site, *inputs),)
    rank = max(len(site.call.shape(x.value)) for x in of)
    values = []
    for x in inputs:
        value = x.value if isinstance(x, Rows) and x.source is of[0].source else site.value(x)
        shape = site.call.shape(value)
        own = len(shape) > rank or (len(shape) == rank and shape[0] != 1)
        if own if value is x else len(shape) != rank:
            raise ModelError(
                f"{site.where} joins {short(of[0].name)}, a row for each different index, with "
                f"{short(x.name)} of shape {show_shape(shape)}, which has other rows; only what "
                f"is alike for all rows may be, such as one number"
            )
        values.append(value)
    (made,) = build(site.call, values)
    return (Rows(site.call.name, source=of[0].source, value=made),)


def written_rows(site: Site, at: Anything, rows: Anything, size: Extent) -> tuple[Entry, Entry]:
    """Indices and updates of what changes rows of a variable of ``size`` rows.

    Of equal indices that `Unique` saw, all but the first are ``size``, where nothing is written.
    Raises: ModelError for updates that are not of these indices, and for no integers.
    """
    if isinstance(at, Distinct):
        if not isinstance(rows, Rows) or rows.source is not at:
            raise ModelError(
                f"{site.where} writes {_told(rows)} at {_told(at)}; updates there need a row for "
                f"each of these: an UnsortedSegmentSum by the second result of the same Unique"
            )
        return targets(site, at, size), rows.value.entry
    return site.value(at).entry, site.value(rows).entry


def targets(site: Site, at: Distinct, size: Extent) -> Entry:
    """The indices, with ``size`` in place of those that equal an earlier one."""
    count = ops.arange(0, _length(site, at), dtype="int64")
    wide = ops.cast(at.indices.entry, dtype="int64")
    none = ops.full_like(wide, fill_value=size)
    return ops.where(ops.equal(at.first, count), wide, none)  # type: ignore[no-any-return]
