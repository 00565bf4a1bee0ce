"""What the table of operators works on: a call of a TensorFlow operator, and the values it reads.

A value is an entry of the graph that is built, or is known already: a constant, or the arithmetic
on shapes that TensorFlow does at run time and passkit with sizes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define, frozen

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.proto import Budget, NodeDef, called, short
from passkit.frontends.tf_graphdef.tensor import dtype_from
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry, constant
from passkit.ops.helpers import make, size_as_entry
from passkit.values.dtype import DType, dtype_of
from passkit.values.lazy import Lazy
from passkit.values.size import Extent, Shape, Size

if TYPE_CHECKING:
    from passkit.frontends.tf_graphdef import known
else:
    known = Lazy("passkit.frontends.tf_graphdef.known")

Array = np.ndarray[Any, Any]

_MAX_TERMS = 64
"""A size with more terms than this is no shape of a real model."""

_MOST_SIZES = 16
"""Sizes of one array that may become numbers when the graph runs."""


@define(eq=False)
class Value:
    """One result of a TensorFlow node: an entry, a known array, or both.

    A known array of objects holds ints and Sizes: shapes with unknown dimensions.
    """

    name: str
    dtype: DType
    known: Array | None = None
    made: Entry | None = None

    @property
    def entry(self) -> Entry:
        """The entry; a known value becomes a constant, and sizes what a call finds them to be.

        Raises: ModelError for very many unknown sizes.
        """
        if self.made is None:
            assert self.known is not None
            if self.known.dtype == object:
                self.made = _from_sizes(self.name, self.known, self.dtype)
                return self.made
            self.made = constant(self.known, self.dtype, name=self.name)
            self.known = self.made.node.params["value"]  # one copy of a large array is enough
        return self.made

    @property
    def shape(self) -> Shape | None:
        """The shape as far as it is known; None for an unknown rank."""
        return self.known.shape if self.made is None else self.made.shape  # type: ignore[union-attr]


def _from_sizes(name: str, sizes: Array, dtype: DType) -> Entry:
    """Sizes as numbers that a call knows."""
    flat = sizes.ravel().tolist()
    if len(flat) > _MOST_SIZES:
        raise ModelError(
            f"{short(name)} is computed from {len(flat)} sizes, {flat[0]} and others, which are "
            f"known only in a call; give load the whole shape of its input in shapes="
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
    whole = make("concat", *rows, axis=0) if len(rows) > 1 else rows[0]
    found: Entry = make("reshape", whole, shape=sizes.shape)
    return found


def value_of(entry: Entry) -> Value:
    """The value that an entry stands for."""
    assert entry.dtype is not None
    return Value(entry.node.name, entry.dtype, made=entry)


def known_value(name: str, dtype: DType, extents: Any) -> Value:
    """A value of ints and Sizes; ints wrap as those of ``dtype`` do.

    Raises: ModelError when a size is too complicated for a shape.
    """
    array = np.asarray(extents, dtype=object)
    limits = np.iinfo(dtype.numpy)
    span = 1 << (8 * dtype.nbytes)
    flat: list[Extent] = []
    for extent in array.ravel().tolist():
        if isinstance(extent, Size):
            if len(extent.terms) > _MAX_TERMS:
                raise ModelError(
                    f"{short(name)} is a size of {len(extent.terms)} terms; shapes need at most "
                    f"{_MAX_TERMS}; give load the whole shape of its input in shapes="
                )
            flat.append(extent)
        else:
            flat.append((int(extent) - int(limits.min)) % span + int(limits.min))
    out = np.empty(len(flat), dtype=object)
    out[:] = flat
    if not any(isinstance(extent, Size) for extent in flat):
        out = out.astype(dtype.numpy)
    return Value(name, dtype, known=out.reshape(array.shape))


@frozen(eq=False)
class Call:
    """One node of the model, with checked access to its attributes."""

    node: NodeDef
    name: str
    """What the node is called in the graph that is built."""
    budget: Budget

    @property
    def where(self) -> str:
        """How messages call this node."""
        return called(self.node)

    def attr(self, key: str, kind: str, default: Any = None) -> Any:
        """An attribute of a kind: ``b i f s type shape tensor list``.

        Raises: ModelError when it is missing and has no default, or is of another kind.
        """
        if key not in self.node.attr:
            if default is None:
                raise ModelError(f"{self.where} needs the attribute {key!r}, and has none")
            return default
        value = self.node.attr[key]
        found = value.WhichOneof("value")
        if found != kind:
            raise ModelError(f"{self.where} needs {kind!r} as attribute {key!r}, got {found!r}")
        return getattr(value, kind)

    def dtype(self, key: str) -> DType:
        """An attribute that is an element type."""
        return dtype_from(self.attr(key, "type"), self.where)

    def integers(self, key: str) -> tuple[int, ...]:
        """An attribute that is a list of ints; none where it is missing."""
        return tuple(self.attr(key, "list").i) if key in self.node.attr else ()

    def floats(self, key: str) -> tuple[float, ...]:
        """An attribute that is a list of floats; none where it is missing."""
        return tuple(self.attr(key, "list").f) if key in self.node.attr else ()

    def shown(self, value: Value) -> str:
        """A value as messages name it: what is known of it, else that it is not."""
        if value.known is None:
            return f"{short(value.name)}, which depends on the values of an input"
        flat = ", ".join(map(str, value.known.ravel()[:8]))
        return f"{short(value.name)} = [{flat}{', …' if value.known.size > 8 else ''}]"

    def extents(self, value: Value, what: str) -> list[Extent]:
        """A known value as ints and Sizes, in one list.

        Raises: ModelError when it is only known in a call, or is not of integers.
        """
        array = value.known if value.known is not None else known.constant_of(value)
        if array is None:
            raise ModelError(
                f"{self.where} needs its {what} {short(value.name)} known when the model is "
                f"loaded; it depends on the values of an input"
            )
        if not value.dtype.is_integer or array.ndim > 1:
            raise ModelError(
                f"{self.where} needs a list of integers as its {what}, got {value.dtype} of "
                f"shape {array.shape}"
            )
        if array.size > 64:
            raise ModelError(
                f"{self.where} needs at most 64 integers as its {what}, got {array.size}"
            )
        return list(array.ravel().tolist())

    def ints(self, value: Value, what: str) -> tuple[int, ...]:
        """A known value as ints. Raises: ModelError when one is a size only known in a call."""
        found = self.extents(value, what)
        for extent in found:
            if isinstance(extent, Size):
                raise ModelError(
                    f"{self.where} needs ints as its {what}, got the unknown size {extent}; "
                    f"give load the whole shape of its input in shapes="
                )
        return tuple(int(extent) for extent in found if not isinstance(extent, Size))

    def positions(self, count: int, dtype: Any) -> Array:
        """0, 1, … of a dtype. Raises: ModelError where so many exceed the model's budget."""
        nbytes = count * np.dtype(dtype).itemsize
        self.budget.take(nbytes, f"{self.where}, which counts {count:,} positions,")
        return np.arange(count, dtype=dtype)

    def integer(self, value: Value, what: str) -> int:
        """A known value as one int."""
        found = self.ints(value, what)
        if len(found) != 1:
            raise ModelError(f"{self.where} needs one integer as its {what}, got {list(found)}")
        return found[0]

    def shape(self, value: Value) -> Shape:
        """The shape of a value. Raises: ModelError when even its rank is unknown."""
        found = value.shape
        if found is None:
            raise ModelError(
                f"{self.where} needs to know the rank of {short(value.name)}; "
                f"give load the shape of its input in shapes="
            )
        return found

    def rank(self, value: Value, rank: int) -> Shape:
        """The shape of a value of this rank. Raises: ModelError when it has another."""
        found = self.shape(value)
        if len(found) != rank:
            raise ModelError(
                f"{self.where} needs {short(value.name)} of rank {rank}, got {show_shape(found)}"
            )
        return found

    def known(self, dtype: DType, extents: Any) -> Value:
        """This node's result as a value known now."""
        self.budget.take(64 * np.size(extents), self.where)
        return known_value(self.name, dtype, extents)

    def index_type(self, key: str) -> DType:
        """The integer type that shapes are asked for in: int32 unless the attribute says int64."""
        found = self.dtype(key) if key in self.node.attr else dtype_of("int32")
        if found.name not in ("int32", "int64"):
            raise ModelError(f"{self.where} needs int32 or int64 as {key!r}, got {found}")
        return found
