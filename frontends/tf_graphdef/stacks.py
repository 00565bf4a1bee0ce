"""Lists whose length or index only a call knows: the rows of one array.

An item is put there by choosing, for each row, the old or the new one; it is one pass over the
array, and fuses with what makes the item.
"""

from __future__ import annotations

from typing import Any

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.opaque import Anything, Items, Opaque, Stacked
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.scope import Site
from passkit.frontends.tf_graphdef.value import Value, value_of
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry
from passkit.ops.helpers import make
from passkit.values.dtype import DType
from passkit.values.size import Extent, Shape

_ROW_NBYTES = 1300


def unfilled(site: Site, length: Extent, dtype: DType, shape: Shape | None) -> Stacked:
    """A list of a length, with zeros in it once the shape of its items is known."""
    made = Stacked(site.call.name, None, length, dtype, shape)
    if shape is not None:
        made.value = _zeros(length, dtype, shape)
    return made


def _zeros(length: Extent, dtype: DType, shape: Shape) -> Value:
    return value_of(make("full", shape=(length, *shape), fill_value=0, dtype=dtype.name))


def late(site: Site, given: Anything, index: Anything) -> Stacked | None:
    """A list as an array, where it is one, or where only a call knows the index."""
    if isinstance(given, Stacked):
        return given
    if not isinstance(given, Items) or isinstance(index, Opaque):
        return None
    known = site.value(index).known
    if known is not None and known.dtype != object:
        return None
    return as_stacked(site, given)


def as_stacked(site: Site, items: Items) -> Stacked:
    """The items of a list as the rows of an array.

    Raises: ModelError when their shapes differ.
    """
    site.program.budget.take(_ROW_NBYTES * len(items.items), site.where)
    told = {tuple(i.shape) for i in items.items if i is not None and i.shape is not None}
    if len(told) > 1:
        shown = " and ".join(show_shape(s) for s in list(told)[:2])
        raise ModelError(
            f"{site.where} takes items of {short(items.name)} by an index that only a call knows, "
            f"and their shapes differ: {shown}"
        )
    shape = next(iter(told), items.shape)
    dtype = items.dtype
    assert dtype is not None
    made = unfilled(site, len(items.items), dtype, shape)
    if shape is None or not told:
        return made
    zero = make("full", shape=(1, *shape), fill_value=0, dtype=dtype.name)
    rows = [zero if i is None else make("expand_dims", i.entry, axis=0) for i in items.items]
    made.value = value_of(make("concat", *rows, axis=0) if len(rows) > 1 else rows[0])
    return made


def filled(site: Site, stack: Stacked, shape: Shape | None = None) -> Value:
    """The array of a list. Raises: ModelError while the shape of its items is not known."""
    if stack.value is None and shape is not None and stack.dtype is not None:
        stack.value = _zeros(stack.length, stack.dtype, shape)
    if stack.value is None:
        raise ModelError(
            f"{site.where} reads the list {short(stack.name)} of length {stack.length}, and the "
            f"shape of its items is not known"
        )
    return stack.value


def item(site: Site, stack: Stacked, index: Value) -> Value:
    """The row at an index."""
    rows = filled(site, stack)
    return value_of(make("take", rows.entry, index.entry, axis=0))


def put(site: Site, stack: Stacked, index: Value, new: Value) -> Stacked:
    """The list with another row at an index."""
    shape = site.call.shape(new)
    stack.told.append(shape)
    if stack.value is None:
        return Stacked(stack.name, None, stack.length, stack.dtype, stack.shape, stack.told)
    rows = stack.value.entry
    numbers: Any = make("arange", start=0, stop=stack.length, step=1, dtype=index.dtype.name)
    at = make("equal", numbers, index.entry)
    at = make("expand_dims", at, axis=tuple(range(1, len(shape) + 1))) if shape else at
    chosen: Entry = make("where", at, new.entry, rows)
    return Stacked(stack.name, value_of(chosen), stack.length, stack.dtype, shape, stack.told)
