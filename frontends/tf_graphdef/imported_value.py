"""Arguments of op importers: the call of a TensorFlow operator, and its input values.

A value is an entry of the graph being built, a constant, or a shape with symbolic sizes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define, frozen
from numpy.typing import NDArray

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.proto import Budget, NodeDef, node_label, short
from passkit.frontends.tf_graphdef.tensor import parse_dtype
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry, constant
from passkit.ops.helpers import make, size_as_entry
from passkit.values.dtype import DType, dtype_of
from passkit.values.lazy import Lazy
from passkit.values.size import Extent, Shape, Size

if TYPE_CHECKING:
    from passkit.frontends.tf_graphdef import constant_values
else:
    constant_values = Lazy("passkit.frontends.tf_graphdef.constant_values")

_MAX_TERMS = 64
"""Maximal number of terms of a size; no shape of a real model has more."""

_MOST_SIZES = 16
"""Maximal number of symbolic sizes of an array that become numbers at run time."""


@define(eq=False)
class ImportedValue:
    """One result of a TensorFlow node: an entry, a known array, or both.

    A known array of dtype object holds ints and Sizes, which are shapes with unknown dimensions.
    """

    name: str
    dtype: DType
    array: NDArray[Any] | None = None
    built_entry: Entry | None = None

    @property
    def entry(self) -> Entry:
        """The value as an entry, built once.

        A known array becomes a constant, and symbolic sizes are computed at run time.

        It is stored in the value, so that later calls return the same entry.

        Raises:
            ModelError: If the array has a symbolic size and more than 16 elements.
        """
        if self.built_entry is None:
            assert self.array is not None
            if self.array.dtype == object:
                self.built_entry = _from_sizes(self.name, self.array, self.dtype)
                return self.built_entry
            self.built_entry = constant(self.array, self.dtype, name=self.name)
            self.array = self.built_entry.node.params[
                "value"
            ]  # one copy of a large array is enough
        return self.built_entry

    @property
    def shape(self) -> Shape | None:
        """The shape, with symbolic sizes for unknown dimensions; None for an unknown rank."""
        return self.array.shape if self.built_entry is None else self.built_entry.shape  # type: ignore[union-attr]


def _from_sizes(name: str, sizes: NDArray[Any], dtype: DType) -> Entry:
    """Return an entry that computes sizes at run time.

    Args:
        name: Name of the value, for errors.
        sizes: Ints and Sizes, of dtype object; at least one.
        dtype: Integer dtype of the result, which has the shape of ``sizes``.

    Raises:
        ModelError: If there are more than 16 elements.
    """
    flat = sizes.ravel().tolist()
    if len(flat) > _MOST_SIZES:
        raise ModelError(
            f"{short(name)} consists of {len(flat)} sizes, {flat[0]} and others, which are known "
            f"only at run time, and at most {_MOST_SIZES} are supported; give load the full shape "
            f"of its input in shapes="
        )
    counts = [
        make("cast", size_as_entry(n), dtype=dtype.name)
        if isinstance(n, Size)
        else constant(n, dtype)
        for n in flat
    ]
    if sizes.ndim == 0:
        return counts[0]
    rows = [make("reshape", c, shape=(1,)) for c in counts]
    vector = make("concat", *rows, axis=0) if len(rows) > 1 else rows[0]
    result: Entry = make("reshape", vector, shape=sizes.shape)
    return result


def value_of(entry: Entry) -> ImportedValue:
    """Wrap an entry, whose dtype must be known, as a value under the name of its node."""
    assert entry.dtype is not None
    return ImportedValue(entry.node.name, entry.dtype, built_entry=entry)


def known_value(name: str, dtype: DType, extents: Any) -> ImportedValue:
    """Return a value of known ints and Sizes.

    The dtype of the array is object if it has symbolic sizes, else that of ``dtype``.

    Args:
        name: Name of the value.
        dtype: Its integer dtype; ints wrap to its range.
        extents: An int or Size, or a nested sequence of them, which gives the value's shape.

    Raises:
        ModelError: If a size has more than 64 terms.
    """
    array = np.asarray(extents, dtype=object)
    limits = np.iinfo(dtype.numpy)
    span = 1 << (8 * dtype.nbytes)
    elements: list[Extent] = []
    for extent in array.ravel().tolist():
        if isinstance(extent, Size):
            if len(extent.terms) > _MAX_TERMS:
                raise ModelError(
                    f"{short(name)} is a symbolic size of {len(extent.terms)} terms, and sizes "
                    f"may have at most {_MAX_TERMS}; give load the full shape of its input in "
                    f"shapes="
                )
            elements.append(extent)
        else:
            elements.append((int(extent) - int(limits.min)) % span + int(limits.min))
    out = np.empty(len(elements), dtype=object)
    out[:] = elements
    if not any(isinstance(extent, Size) for extent in elements):
        out = out.astype(dtype.numpy)
    return ImportedValue(name, dtype, array=out.reshape(array.shape))


@frozen(eq=False)
class ImportCall:
    """A node that is imported, with checked access to its attributes and inputs."""

    node: NodeDef
    name: str
    """Name of the node in the graph that is built."""
    budget: Budget

    @property
    def where(self) -> str:
        """Operator and name of the node, for error messages."""
        return node_label(self.node)

    def attr(self, key: str, kind: str, default: Any = None) -> Any:
        """Return an attribute.

        A value in another field than the one requested counts as another kind. The default is not
        checked.

        Args:
            key: Name of the attribute.
            kind: Field of AttrValue it must be in: ``b i f s type shape tensor list func``.
            default: Value if the attribute is missing; None if it is required.

        Raises:
            ModelError: If it is missing without a default, or of another kind.
        """
        if key not in self.node.attr:
            if default is None:
                raise ModelError(
                    f"{self.where} needs the attribute {key!r}, and has no attribute of that name"
                )
            return default
        value = self.node.attr[key]
        actual_kind = value.WhichOneof("value")
        if actual_kind != kind:
            raise ModelError(
                f"{self.where} needs an attribute {key!r} of kind {kind!r}, got {actual_kind!r}"
            )
        return getattr(value, kind)

    def dtype(self, key: str) -> DType:
        """Return the attribute ``key``, which is an element type.

        Raises:
            ModelError: If it is missing or no type, or a type that passkit does not have.
        """
        return parse_dtype(self.attr(key, "type"), self.where)

    def integers(self, key: str) -> tuple[int, ...]:
        """Return the ints of the list attribute ``key`` as a tuple.

        It is empty if the attribute is missing, or a list of other elements than ints.

        Raises:
            ModelError: If the attribute is not a list.
        """
        return tuple(self.attr(key, "list").i) if key in self.node.attr else ()

    def floats(self, key: str) -> tuple[float, ...]:
        """Return the floats of the list attribute ``key`` as a tuple.

        It is empty if the attribute is missing, or a list of other elements than floats.

        Raises:
            ModelError: If the attribute is not a list.
        """
        return tuple(self.attr(key, "list").f) if key in self.node.attr else ()

    def shown(self, value: ImportedValue) -> str:
        """Format a value for a message: its name and first 8 elements.

        A value without a known array is said to depend on an input.
        """
        if value.array is None:
            return f"{short(value.name)}, which depends on the values of an input"
        flat = ", ".join(map(str, value.array.ravel()[:8]))
        return f"{short(value.name)} = [{flat}{', …' if value.array.size > 8 else ''}]"

    def extents(self, value: ImportedValue, role: str) -> list[Extent]:
        """Return an input that is known during import as a list of ints and Sizes.

        A value that is computed from constants only is evaluated, if it and all that it is
        computed from is small. A scalar gives a list of one.

        Args:
            value: The input; must be a scalar or vector of integers, not of bools.
            role: Name of the input in errors.

        Raises:
            ModelError: If it depends on data, or is not evaluated because it is large, is no
                scalar or vector of integers, or has more than 64 elements.
        """
        array = value.array if value.array is not None else constant_values.constant_array(value)
        if array is None:
            raise ModelError(
                f"{self.where} needs a {role} that is known when the model is loaded, and "
                f"{short(value.name)} depends on the values of an input"
            )
        if not value.dtype.is_integer or array.ndim > 1:
            raise ModelError(
                f"{self.where} needs a list of integers as its {role}, got {value.dtype} of "
                f"shape {array.shape}"
            )
        if array.size > 64:
            raise ModelError(
                f"{self.where} needs at most 64 integers as its {role}, got {array.size}"
            )
        return list(array.ravel().tolist())

    def ints(self, value: ImportedValue, role: str) -> tuple[int, ...]:
        """Return an input, a scalar or vector of integers, as ints.

        Args:
            value: The input.
            role: Name of the input in errors.

        Raises:
            ModelError: As `extents`, and if a size is symbolic.
        """
        extents = self.extents(value, role)
        for extent in extents:
            if isinstance(extent, Size):
                raise ModelError(
                    f"{self.where} needs ints as its {role}, got the unknown size {extent}; "
                    f"give load the full shape of its input in shapes="
                )
        return tuple(int(extent) for extent in extents if not isinstance(extent, Size))

    def positions(self, count: int, dtype: Any) -> NDArray[Any]:
        """Return the vector 0, 1, …, count - 1 in ``dtype``; its bytes are taken from the budget.

        Args:
            count: Number of elements.
            dtype: NumPy dtype, or the name of one.

        Raises:
            ModelError: If it exceeds the budget.
        """
        nbytes = count * np.dtype(dtype).itemsize
        self.budget.take(nbytes, f"{self.where}, which builds {count:,} positions,")
        return np.arange(count, dtype=dtype)

    def integer(self, value: ImportedValue, role: str) -> int:
        """Return an input as one int.

        Args:
            value: The input, a scalar or vector of one element.
            role: Name of the input in errors.

        Raises:
            ModelError: As `ints`, and if it has other than one element.
        """
        numbers = self.ints(value, role)
        if len(numbers) != 1:
            raise ModelError(f"{self.where} needs one integer as its {role}, got {list(numbers)}")
        return numbers[0]

    def shape(self, value: ImportedValue) -> Shape:
        """Return the shape of the input ``value``.

        Raises:
            ModelError: If its rank is unknown.
        """
        shape = value.shape
        if shape is None:
            raise ModelError(
                f"{self.where} needs {short(value.name)} of known rank; give load the shape of the "
                f"model's input in shapes="
            )
        return shape

    def rank(self, value: ImportedValue, rank: int) -> Shape:
        """Return the shape of the input ``value``, which must have ``rank`` axes.

        Raises:
            ModelError: If its rank differs or is unknown.
        """
        shape = self.shape(value)
        if len(shape) != rank:
            raise ModelError(
                f"{self.where} needs {short(value.name)} of rank {rank}, got {show_shape(shape)}"
            )
        return shape

    def known_value(self, dtype: DType, extents: Any) -> ImportedValue:
        """Return this node's result as a known array of ints and Sizes; see `known_value`.

        Its memory is taken from the budget.

        Args:
            dtype: Integer dtype of the result; ints wrap to its range.
            extents: An int or Size, or a nested sequence of them.

        Raises:
            ModelError: If it exceeds the memory budget, or a size has more than 64 terms.
        """
        self.budget.take(64 * np.size(extents), self.where)
        return known_value(self.name, dtype, extents)

    def index_type(self, key: str) -> DType:
        """Return the dtype of shapes or indices in attribute ``key``: int32 or int64.

        It is int32 if the attribute is missing.

        Raises:
            ModelError: If it is another type, or no type.
        """
        dtype = self.dtype(key) if key in self.node.attr else dtype_of("int32")
        if dtype.name not in ("int32", "int64"):
            raise ModelError(f"{self.where} needs int32 or int64 as {key!r}, got {dtype}")
        return dtype
