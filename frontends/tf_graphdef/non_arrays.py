"""Values on a model's edges that are not arrays: variable handles, lists, strings, dead values.

Ordinary op importers never see these. Context importers (`context_importer`) do: they read
variables through handles, keep items in lists, and skip branches that are not taken.
"""

from __future__ import annotations

from typing import ClassVar, TypeAlias

from attrs import define, field

from passkit.frontends.tf_graphdef.imported_value import ImportedValue
from passkit.graph.node import Entry
from passkit.values.dtype import DType
from passkit.values.size import Extent, Shape


@define(eq=False)
class NonArray:
    """Base class of values that are not arrays. ``description`` completes "got …" in errors."""

    name: str
    description: ClassVar[str] = "a value that is not an array"


@define(eq=False)
class DeadValue(NonArray):
    """Result of a branch that is not taken; nodes that read it are dead too."""

    description: ClassVar[str] = "the result of a branch that is not taken"


@define(eq=False)
class UnsupportedResult(NonArray):
    """Result of an unsupported operator; importing goes on so that all of them are reported."""

    description: ClassVar[str] = "the result of an operator that is not supported"


@define(eq=False)
class StringConstant(NonArray):
    """A constant of strings, such as the tensor names of a checkpoint."""

    texts: tuple[bytes, ...] = ()
    description: ClassVar[str] = "a constant of strings"


@define(eq=False)
class StringInput(NonArray):
    """An input of strings, which no array can hold."""

    description: ClassVar[str] = (
        "an input of strings, which passkit does not have; choose a signature=, or outputs=, "
        "computed from inputs of numbers"
    )


@define(eq=False)
class UnfedResult(NonArray):
    """A result of a node that is cut off because another of its results is fed."""

    description: ClassVar[str] = (
        "a result of a node that is not computed, because another result of it is an input"
    )


@define(eq=False)
class ModelVariable:
    """A variable of the model, with its checkpoint value or the last value assigned."""

    name: str
    dtype: DType
    shape: Shape | None
    key: str | None = None
    """The checkpoint's key of the variable."""
    value: ImportedValue | None = None
    """The last value assigned; None while it has its initial value."""
    saved: ImportedValue | None = None
    """The initial value, once it was read from the checkpoint."""


@define(eq=False)
class VariableHandle(NonArray):
    """Reference to a variable; TensorFlow 1's ref variables (``by_reference``) are read on use."""

    variable: ModelVariable = field(kw_only=True)
    by_reference: bool = False
    description: ClassVar[str] = "a handle of a variable"


@define(eq=False)
class CheckpointTensor(NonArray):
    """A tensor that a restore function reads from the checkpoint and assigns to a variable."""

    key: str = ""
    description: ClassVar[str] = "a tensor to be restored from a checkpoint"


@define(eq=False)
class TensorList(NonArray):
    """A tensor list with known length, as loops fill and read it; None for items not set yet."""

    items: tuple[ImportedValue | None, ...] = ()
    dtype: DType | None = None
    shape: Shape | None = None
    """Shape of the items, as far as the model declares it."""
    description: ClassVar[str] = "a list of tensors"


@define(eq=False)
class StackedList(NonArray):
    """A tensor list with run-time length or index: its items are the rows of one array."""

    value: ImportedValue | None = None
    """The array; None until the shape of the items is known."""
    length: Extent = 0
    dtype: DType | None = None
    shape: Shape | None = None
    item_shapes: list[Shape] = field(factory=list)
    """Shapes of the items written so far, from which the array is created."""
    description: ClassVar[str] = "a list of tensors"


@define(eq=False)
class UniqueElements(NonArray):
    """The distinct elements of an index vector, as `Unique` returns them, without compaction.

    All n indices keep their positions. An index that equals an earlier one is ignored: ``first``
    holds, for each index, the position of its first occurrence.
    """

    indices: ImportedValue = field(kw_only=True)
    first: Entry = field(kw_only=True)
    description: ClassVar[str] = (
        "the distinct elements of a vector, whose number is known only at run time (supported as "
        "indices of Gather, Scatter* and SparseApply*)"
    )


@define(eq=False)
class UniqueDerived(NonArray):
    """Base class of values derived from `UniqueElements`."""

    source: UniqueElements = field(kw_only=True)


@define(eq=False)
class UniquePositions(UniqueDerived):
    """For each index, its position among the distinct elements: the second result of `Unique`."""

    description: ClassVar[str] = (
        "the positions of elements among the distinct ones (supported as ids of "
        "UnsortedSegmentSum, and as indices of Gather from rows gathered by Unique's first result)"
    )


@define(eq=False)
class UniqueCount(UniqueDerived):
    """The number of distinct elements, as a scalar or as a shape of one dimension."""

    is_shape: bool = False
    description: ClassVar[str] = (
        "the number of distinct elements of a vector, known only at run time (supported as the "
        "number of segments of UnsortedSegmentSum)"
    )


@define(eq=False)
class UniqueRows(UniqueDerived):
    """A row for each distinct index, at its first occurrence; the other rows are ignored."""

    value: ImportedValue = field(kw_only=True)
    description: ClassVar[str] = (
        "a row for each distinct index, whose number is known only at run time (supported in "
        "elementwise operators, and as updates of Scatter* and SparseApply*)"
    )


UNIQUE_VALUES = (UniqueElements, UniqueDerived)

AnyValue: TypeAlias = ImportedValue | NonArray
