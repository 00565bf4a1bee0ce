"""Lists of tensors, as loops fill and read them: TensorList operators, and TensorArrays.

A list is a value: what changes it makes another one. So a loop that was unrolled leaves nothing
of its lists but the items.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from passkit import ops
from passkit.errors import ModelError
from passkit.frontends.tf_graphdef import stacks
from passkit.frontends.tf_graphdef.control_flow.calls import unreachable
from passkit.frontends.tf_graphdef.opaque import Anything, Items, Opaque, Stacked
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.scope import Site, Structure, structure
from passkit.frontends.tf_graphdef.value import Value, value_of
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry
from passkit.ops.helpers import make
from passkit.values.dtype import DType, dtype_of
from passkit.values.size import Shape, Size

_ITEM_NBYTES = 100
_ROW_NBYTES = 1300
"""About what a place in a list takes, and what taking or putting a row of an array does."""


def on_lists(*names: str, inputs: int) -> Callable[[Structure], Structure]:
    """Enter a function that has an input for each parameter and none that is out of reach."""

    def enter(function: Structure) -> Structure:
        def checked(site: Site, given: Sequence[Anything]) -> Sequence[Anything]:
            site.needs(given, inputs)
            return unreachable(site, given) or function(site, given)

        structure(*names)(checked)
        return checked

    return enter


def the_list(site: Site, given: Anything) -> Items:
    """An input that must be a list. Raises: ModelError for what is none."""
    if not isinstance(given, Items):
        kind = given.what if isinstance(given, Opaque) else "an array"
        raise ModelError(f"{site.where} needs a list, and {short(given.name)} is {kind}")
    return given


def _shape_of(site: Site, given: Anything) -> Shape | None:
    """The shape of items that an input says; -1 alone stands for any rank."""
    value = site.value(given)
    if value.known is None or (value.known.ndim == 0 and int(value.known) == -1):
        return None
    extents = site.call.extents(value, "element shape")
    if any(isinstance(n, int) and n < 0 for n in extents):
        return None
    return tuple(extents)


def empty(site: Site, count: int, dtype: DType, shape: Shape | None) -> Items:
    """A list of so many items, none of them put there yet. Raises: ModelError below 0."""
    if count < 0:
        raise ModelError(f"{site.where} needs a length of at least 0, got {count}")
    site.program.budget.take(_ITEM_NBYTES * count, f"{site.where} of {count:,} items")
    return Items(site.call.name, (None,) * count, dtype, shape)


def changed(site: Site, items: Items, new: Sequence[Value | None]) -> Items:
    """A list with other items. It is a copy, and is accounted for."""
    site.program.budget.take(16 * len(new), site.where)
    return Items(site.call.name, tuple(new), items.dtype, items.shape)


@on_lists("TensorListReserve", inputs=2)
def _reserve(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    (count,) = site.call.extents(site.value(inputs[1]), "number of elements") or (0,)
    shape, dtype = _shape_of(site, inputs[0]), site.call.dtype("element_dtype")
    if isinstance(count, Size):
        return (stacks.unfilled(site, count, dtype, shape),)
    return (empty(site, count, dtype, shape),)


@on_lists("EmptyTensorList", inputs=2)
def _empty_list(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    return (empty(site, 0, site.call.dtype("element_dtype"), _shape_of(site, inputs[0])),)


def rows_of(site: Site, value: Value) -> list[Value]:
    """An array as a list of what its first axis counts.

    Raises: ModelError when it has no such axis, or one of unknown size.
    """
    shape = site.call.shape(value)
    if not shape or not isinstance(shape[0], int):
        raise ModelError(
            f"{site.where} makes a list of {short(value.name)} of shape {show_shape(shape)}, "
            f"whose length must be known; give load the whole shape of its input in shapes="
        )
    site.program.budget.take(_ROW_NBYTES * shape[0], f"{site.where} of {shape[0]:,} items")
    known = value.known
    if known is not None and known.size <= 4096:
        return [Value(value.name, value.dtype, known=row) for row in known]
    entry = value.entry
    return [value_of(entry[k]) for k in range(shape[0])]


@on_lists("TensorListFromTensor", inputs=2)
def _from_tensor(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    value = site.value(inputs[0])
    shape = site.call.shape(value)
    if shape and isinstance(shape[0], Size):
        return (Stacked(site.call.name, value, shape[0], value.dtype, shape[1:]),)
    rows = rows_of(site, value)
    return (Items(site.call.name, tuple(rows), value.dtype, site.call.shape(value)[1:]),)


def place(site: Site, items: Items, index: Anything, resize: bool = False) -> int:
    """An index into a list. Raises: ModelError when it is out of range, or not known."""
    at = site.call.integer(site.value(index), "index")
    if at < 0 or (at >= len(items.items) and not resize):
        raise ModelError(f"{site.where} takes item {at} of a list of {len(items.items)}")
    return at


def put(site: Site, items: Items, at: int, item: Value) -> Items:
    """A list with one item more, or another one. Raises: ModelError for one of another type."""
    if items.dtype is not None and item.dtype != items.dtype:
        raise ModelError(f"{site.where} puts {item.dtype} into a list of {items.dtype}")
    new = [*items.items, *[None] * (at + 1 - len(items.items))]
    new[at] = item
    return changed(site, items, new)


@on_lists("TensorListSetItem", inputs=3)
def _set_item(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    if late := stacks.late(site, inputs[0], inputs[1]):
        return (stacks.put(site, late, site.value(inputs[1]), site.value(inputs[2])),)
    items = the_list(site, inputs[0])
    resize = site.call.attr("resize_if_index_out_of_bounds", "b", False)
    at = place(site, items, inputs[1], resize)
    site.program.budget.take(_ITEM_NBYTES * max(0, at - len(items.items)), site.where)
    return (put(site, items, at, site.value(inputs[2])),)


def item_of(site: Site, items: Items, at: int, shape: Shape | None = None) -> Value:
    """An item of a list; one that was never put there is zero.

    Raises: ModelError when its shape is not known.
    """
    found = items.items[at]
    if found is not None:
        return found
    told = next((i.shape for i in items.items if i is not None), None)
    known = items.shape if items.shape is not None else shape if shape is not None else told
    if known is None or items.dtype is None:
        raise ModelError(
            f"{site.where} reads item {at}, which nothing was put into and whose shape is unknown"
        )
    return value_of(make("full", shape=known, fill_value=0, dtype=items.dtype.name))


@on_lists("TensorListGetItem", inputs=3)
def _get_item(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    if late := stacks.late(site, inputs[0], inputs[1]):
        return (stacks.item(site, late, site.value(inputs[1])),)
    items = the_list(site, inputs[0])
    at = place(site, items, inputs[1])
    return (item_of(site, items, at, _shape_of(site, inputs[2])),)


def stacked(site: Site, items: Items, shape: Shape | None = None) -> Value:
    """All items as rows of one array. Raises: ModelError for an empty list of unknown shape."""
    site.program.budget.take(_ROW_NBYTES * len(items.items), site.where)
    if not items.items:
        known = items.shape if items.shape is not None else shape
        if known is None or items.dtype is None:
            raise ModelError(f"{site.where} stacks an empty list of items of unknown shape")
        full = make("full", shape=(0, *known), fill_value=0, dtype=items.dtype.name)
        return value_of(full)
    values = [item_of(site, items, k, shape) for k in range(len(items.items))]
    first = values[0]
    if all(v.known is not None and v.known.dtype != object and v.known.size < 64 for v in values):
        arrays = [v.known for v in values if v.known is not None]
        if len({a.shape for a in arrays}) == 1:
            return Value(site.call.name, first.dtype, known=np.stack(arrays))
    rows: list[Entry] = [make("expand_dims", v.entry, axis=0) for v in values]
    return value_of(_concatenated(site, rows))


def _concatenated(site: Site, entries: Sequence[Entry]) -> Entry:
    if len(entries) == 1:
        return entries[0]
    made: Entry = ops.concat(*entries, axis=0, name=site.call.name)
    return made


@on_lists("TensorListStack", inputs=2)
def _stack(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    if isinstance(inputs[0], Stacked):
        return (stacks.filled(site, inputs[0], _shape_of(site, inputs[1])),)
    return (stacked(site, the_list(site, inputs[0]), _shape_of(site, inputs[1])),)


@on_lists("TensorListLength", inputs=1)
def _length(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    if isinstance(inputs[0], Stacked):
        return (site.call.known(dtype_of("int32"), inputs[0].length),)
    return (site.call.known(dtype_of("int32"), len(the_list(site, inputs[0]).items)),)


@on_lists("TensorListElementShape", inputs=1)
def _element_shape(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    items = the_list(site, inputs[0])
    dtype = site.call.index_type("shape_type")
    return (site.call.known(dtype, -1 if items.shape is None else list(items.shape)),)


@on_lists("TensorListPushBack", inputs=2)
def _push(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    items = the_list(site, inputs[0])
    return (put(site, items, len(items.items), site.value(inputs[1])),)


@on_lists("TensorListPopBack", inputs=2)
def _pop(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    items = the_list(site, inputs[0])
    if not items.items:
        raise ModelError(f"{site.where} takes the last item of {short(items.name)}, which has none")
    last = item_of(site, items, len(items.items) - 1, _shape_of(site, inputs[1]))
    return (changed(site, items, items.items[:-1]), last)


@on_lists("TensorListResize", inputs=2)
def _resize(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    items = the_list(site, inputs[0])
    count = site.call.integer(site.value(inputs[1]), "size")
    longer = empty(site, count, dtype_of("int32"), None).items
    return (changed(site, items, [*items.items, *longer][:count]),)


@on_lists("TensorListConcatLists", inputs=2)
def _concat_lists(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    a, b = (the_list(site, x) for x in inputs)
    return (changed(site, a, [*a.items, *b.items]),)


def gathered(site: Site, items: Items, indices: Anything) -> Value:
    """Items at indices that are known, as rows of one array."""
    picked = [item_of(site, items, _checked(site, items, k)) for k in _indices(site, indices)]
    return stacked(site, Items(site.call.name, tuple(picked), items.dtype, items.shape))


def _indices(site: Site, given: Anything) -> list[int]:
    """Indices that are known. Raises: ModelError for what only a call knows."""
    value = site.value(given)
    known = value.known
    if known is None or known.dtype == object or known.ndim > 1 or not value.dtype.is_integer:
        raise ModelError(
            f"{site.where} needs a list of integers as its indices, known when the model is "
            f"loaded, got {value.dtype}{show_shape(value.shape)} from {short(value.name)}"
        )
    site.program.budget.take(_ITEM_NBYTES * known.size, site.where)
    return [int(k) for k in known.ravel()]


def _checked(site: Site, items: Items, at: int) -> int:
    if not 0 <= at < len(items.items):
        raise ModelError(f"{site.where} takes item {at} of a list of {len(items.items)} items")
    return at


@on_lists("TensorListGather", inputs=3)
def _gather(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    return (gathered(site, the_list(site, inputs[0]), inputs[1]),)


def scattered(site: Site, items: Items, indices: Anything, value: Value) -> Items:
    """A list with the rows of an array put at indices that are known."""
    rows = rows_of(site, value)
    places = _indices(site, indices)
    if len(places) != len(rows):
        raise ModelError(f"{site.where} has {len(places)} indices for {len(rows)} rows")
    new = list(items.items)
    for at, row in zip(places, rows, strict=True):
        if not 0 <= at < max(len(new), len(rows)):
            raise ModelError(f"{site.where} puts item {at} into a list of {len(new)}")
        new += [None] * (at + 1 - len(new))
        new[at] = row
    return changed(site, items, new)


@structure("TensorListScatter", "TensorListScatterV2")
def _scatter(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    site.needs(inputs, 3, None)
    if (found := unreachable(site, inputs)) is not None:
        return found
    value = site.value(inputs[0])
    count = site.call.integer(site.value(inputs[3]), "number of elements") if inputs[3:] else -1
    if count < 0:
        count = max(_indices(site, inputs[1]), default=-1) + 1
    reserved = empty(site, max(count, 0), value.dtype, _shape_of(site, inputs[2]))
    return (scattered(site, reserved, inputs[1], value),)


def joined(site: Site, items: Items) -> tuple[Value, Value]:
    """Items one after the other along their first axis, and how long each is."""
    values = [item_of(site, items, k) for k in range(len(items.items))]
    if not values:
        raise ModelError(f"{site.where} joins the items of {short(items.name)}, which has none")
    lengths = [site.call.shape(v)[0] if site.call.shape(v) else 1 for v in values]
    whole = _concatenated(site, [v.entry for v in values])
    return value_of(whole), site.call.known(dtype_of("int64"), lengths)


@structure("TensorListConcat", "TensorListConcatV2")
def _concat(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    site.needs(inputs, 1, None)
    return unreachable(site, inputs) or joined(site, the_list(site, inputs[0]))


def split(site: Site, value: Value, lengths: Anything) -> list[Value]:
    """Pieces of an array along its first axis, of lengths that are known."""
    at, pieces, whole = 0, [], site.call.shape(value)
    counts = site.call.ints(site.value(lengths), "lengths")
    if not whole or any(n < 0 for n in counts) or whole[0] != sum(counts):
        raise ModelError(
            f"{site.where} cuts {short(value.name)} of shape {show_shape(whole)} into {counts}"
        )
    site.program.budget.take(_ROW_NBYTES * len(counts), site.where)
    for count in counts:
        pieces.append(value_of(value.entry[at : at + count]))
        at += count
    return pieces


@on_lists("TensorListSplit", inputs=3)
def _split(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    value = site.value(inputs[0])
    return (Items(site.call.name, tuple(split(site, value, inputs[2])), value.dtype, None),)
