"""What flows along a model's edges and is no array: handles, lists, strings, and nothing at all.

Operators of the table never see these. Those of `structure` do: they read a variable through its
handle, keep items in a list, and leave out the branch that is not taken.
"""

from __future__ import annotations

from typing import ClassVar, TypeAlias

from attrs import define, field

from passkit.frontends.tf_graphdef.value import Value
from passkit.graph.node import Entry
from passkit.values.dtype import DType
from passkit.values.size import Extent, Shape


@define(eq=False)
class Opaque:
    """The base of what is no array."""

    name: str
    what: ClassVar[str] = "no array"


@define(eq=False)
class Dead(Opaque):
    """What a branch that is not taken would have computed: its users are not computed either."""

    what: ClassVar[str] = "a value of a branch that is not taken"


@define(eq=False)
class Missing(Opaque):
    """The result of an operator that is not supported, so that all of these are found at once."""

    what: ClassVar[str] = "the result of an operator that is not supported"


@define(eq=False)
class Strings(Opaque):
    """A constant of strings, such as the names of tensors in a checkpoint."""

    texts: tuple[bytes, ...] = ()
    what: ClassVar[str] = "a constant of strings"


@define(eq=False)
class Texts(Opaque):
    """An input of strings, which no array can hold."""

    what: ClassVar[str] = (
        "an input of strings, and passkit has arrays of numbers; choose a signature=, or outputs=, "
        "computed from inputs of numbers"
    )


@define(eq=False)
class Unfed(Opaque):
    """A result of a node another result of which is an input."""

    what: ClassVar[str] = "a result of a node that is cut off, because another result is an input"


@define(eq=False)
class Variable:
    """A variable of the model: its value is in the checkpoint, or was assigned."""

    name: str
    dtype: DType
    shape: Shape | None
    key: str | None = None
    """What the checkpoint calls it."""
    value: Value | None = None
    """What was assigned to it; None while it has the checkpoint's."""
    saved: Value | None = None
    """The checkpoint's value, once it was read."""


@define(eq=False)
class Handle(Opaque):
    """Leads to a variable. One by reference, as TensorFlow 1 has them, is read where it is used."""

    variable: Variable = field(kw_only=True)
    by_reference: bool = False
    what: ClassVar[str] = "a handle of a variable"


@define(eq=False)
class Saved(Opaque):
    """What a tensor of the checkpoint would be; a restoring function assigns it to a variable."""

    key: str = ""
    what: ClassVar[str] = "a tensor to be restored from a checkpoint"


@define(eq=False)
class Items(Opaque):
    """A list of arrays, as loops fill and read them; None where nothing was put yet."""

    items: tuple[Value | None, ...] = ()
    dtype: DType | None = None
    shape: Shape | None = None
    """The shape of an item, as far as the model says."""
    what: ClassVar[str] = "a list of tensors"


@define(eq=False)
class Stacked(Opaque):
    """A list whose length or index only a call knows: its items are the rows of one array."""

    value: Value | None = None
    """None until the shape of its items is known."""
    length: Extent = 0
    dtype: DType | None = None
    shape: Shape | None = None
    told: list[Shape] = field(factory=list)
    """The shapes of items that were put there, for whoever makes the array."""
    what: ClassVar[str] = "a list of tensors"


@define(eq=False)
class Distinct(Opaque):
    """The different elements of a vector of indices, as `Unique` finds them, not put together.

    All n indices stay where they are. Those that equal an earlier one count for nothing: ``first``
    says for each where the first one that equals it stands.
    """

    indices: Value = field(kw_only=True)
    first: Entry = field(kw_only=True)
    what: ClassVar[str] = (
        "the different elements of a vector, as many as only a run knows; they may be indices of "
        "Gather, Scatter* and SparseApply*"
    )


@define(eq=False)
class OfDistinct(Opaque):
    """The base of what follows from the different elements of a vector."""

    source: Distinct = field(kw_only=True)


@define(eq=False)
class Places(OfDistinct):
    """For each index where it is among the different ones."""

    what: ClassVar[str] = (
        "the places of elements among the different ones; they may be ids of UnsortedSegmentSum, "
        "and indices of Gather from what Unique's first result gathered"
    )


@define(eq=False)
class Count(OfDistinct):
    """How many different ones there are: a number, or the shape of them."""

    is_shape: bool = False
    what: ClassVar[str] = (
        "how many different elements a vector has, which only a run knows; it may be the number "
        "of segments of UnsortedSegmentSum"
    )


@define(eq=False)
class Rows(OfDistinct):
    """A row for each different index, where that is first; the other rows count for nothing."""

    value: Value = field(kw_only=True)
    what: ClassVar[str] = (
        "a row for each different index, as many as only a run knows; they may be changed one by "
        "one, and be updates of Scatter* and SparseApply*"
    )


OF_UNIQUE = (Distinct, OfDistinct)

Anything: TypeAlias = Value | Opaque
