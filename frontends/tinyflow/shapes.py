"""Static shapes as TensorFlow 1 shows them, and conversion of the shapes that users pass."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from math import prod
from typing import Any

import numpy as np

from passkit.errors import ShapeError
from passkit.graph.graph import post_order
from passkit.graph.node import Entry
from passkit.values.size import Extent, Shape, Size


class Dimension:
    """One dimension of a static shape.

    Args:
        extent: A number, which may be one of NumPy's integers; a `Size` that a run determines; or
            None for an unknown extent.
    """

    __slots__ = ("extent",)

    def __init__(self, extent: Extent | np.integer[Any] | None) -> None:
        self.extent: Extent | None = int(extent) if isinstance(extent, np.integer) else extent

    @property
    def value(self) -> int | None:
        """The number; None if the extent is a `Size`, which a run determines, or unknown."""
        return self.extent if isinstance(self.extent, int) else None

    def __index__(self) -> int:
        """Return the number.

        Raises:
            ShapeError: If it is unknown or only a run determines it.
        """
        if self.value is None:
            raise ShapeError(
                "this dimension is known only in a run; give the placeholder a number, or use "
                "tf.shape(x)"
            )
        return self.value

    __int__ = __index__

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Dimension):
            return self.extent == other.extent
        return self.value == other

    def __hash__(self) -> int:
        return hash(self.extent)

    def _combine(self, other: Any, function: Callable[[Any, Any], Any]) -> Any:
        """Apply a function to the extents of two dimensions, this one first.

        Args:
            other: A dimension, or an extent, None for an unknown one.
            function: Takes two extents and returns one.

        Returns:
            The result, a dimension, unknown if one of the extents is. NotImplemented for another
            operand, such as a tensor or a float.

        Raises:
            ZeroDivisionError: For a quotient by 0.
        """
        extent = other.extent if isinstance(other, Dimension) else other
        if not (extent is None or isinstance(extent, (int, np.integer, Size))):
            return NotImplemented
        if self.extent is None or extent is None:
            return Dimension(None)
        return Dimension(function(self.extent, extent if isinstance(extent, Size) else int(extent)))

    def __add__(self, other: Any) -> Any:
        return self._combine(other, operator.add)

    def __mul__(self, other: Any) -> Any:
        return self._combine(other, operator.mul)

    def __floordiv__(self, other: Any) -> Any:
        return self._combine(other, operator.floordiv)

    def __sub__(self, other: Any) -> Any:
        return self._combine(other, operator.sub)

    __radd__, __rmul__ = __add__, __mul__

    def __repr__(self) -> str:
        return "?" if self.value is None else str(self.value)


class TensorShape(tuple[Dimension, ...]):
    """A static shape of known rank: a tuple of `Dimension`."""

    __slots__ = ()

    @classmethod
    def of(cls, shape: Iterable[Extent | None]) -> TensorShape:
        """Create a shape from extents; None stands for an unknown one."""
        return cls(Dimension(n) for n in shape)

    def as_list(self) -> list[int | None]:
        """Return the dimensions as a new list of numbers; None for those that are no numbers."""
        return [d.value for d in self]

    @property
    def ndims(self) -> int:
        """The rank, the number of dimensions."""
        return len(self)

    def num_elements(self) -> int | None:
        """Return the number of elements, 1 of a scalar; None if a dimension is no number."""
        sizes = self.as_list()
        return None if None in sizes else prod(n for n in sizes if n is not None)

    def is_fully_defined(self) -> bool:
        """Return whether all dimensions are numbers; True for a scalar."""
        return None not in self.as_list()

    def __getitem__(self, key: Any) -> Any:
        part = super().__getitem__(key)
        return TensorShape(part) if isinstance(key, slice) else part

    def __repr__(self) -> str:
        return f"({', '.join(map(repr, self))})"


class UnknownShape(TensorShape):
    """The static shape of a tensor of unknown rank. Every dimension is unknown."""

    def __new__(cls, name: str) -> UnknownShape:
        """Create the shape of the tensor called ``name``, which errors refer to."""
        shape = super().__new__(cls)
        shape._name = name  # type: ignore[attr-defined]
        return shape

    @property
    def ndims(self) -> Any:
        """None: the rank is unknown."""
        return None

    def as_list(self) -> Any:
        """Raise ShapeError: the number of dimensions is unknown."""
        self._raise_unknown_rank()

    def num_elements(self) -> int | None:
        """Return None: the number of elements is unknown."""
        return None

    def is_fully_defined(self) -> bool:
        """Return False."""
        return False

    def __getitem__(self, key: Any) -> Any:
        return self if isinstance(key, slice) else Dimension(None)

    def __iter__(self) -> Any:
        self._raise_unknown_rank()

    def __len__(self) -> int:
        self._raise_unknown_rank()
        return 0

    def __bool__(self) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnknownShape) or other is None

    def __hash__(self) -> int:
        return hash(None)

    def __repr__(self) -> str:
        return "<unknown>"

    def _raise_unknown_rank(self) -> None:
        """Raise the ShapeError that the rank of the tensor is unknown."""
        raise ShapeError(
            f"the rank of '{self._name}' is unknown, so that its dimensions cannot be "  # type: ignore[attr-defined]
            f"listed; tf.placeholder(dtype, shape) gives a placeholder a shape"
        )


def format_shape(shape: Iterable[Extent | None]) -> str:
    """Format a shape for messages, with ``?`` for extents that are not numbers: ``(?, 784)``."""
    numbers = [str(n) if isinstance(n, int) else "?" for n in shape]
    return f"({', '.join(numbers)}{',' * (len(numbers) == 1)})"


def parse_extent(value: Any, function: str) -> Extent | None:
    """Convert one dimension of a shape argument to an extent.

    Args:
        value: An int, which may be negative, a bool or NumPy integer, a `Dimension`, a `Size`,
            None, or a tensor of one element of static value.
        function: The function's name, for the message.

    Returns:
        An int, a symbolic size, or None for an unknown extent.

    Raises:
        ShapeError: For any other value, such as a float or a tensor that only a run computes.
    """
    if value is None or isinstance(value, Size):
        return value
    if isinstance(value, Dimension):
        return value.extent
    numbers = getattr(value, "static_value", None)
    if numbers is not None and numbers.size == 1:
        return numbers.item()  # type: ignore[no-any-return]
    try:
        return operator.index(value)
    except TypeError:
        raise ShapeError(
            f"{function} needs ints, None or sizes made by tf.shape, got {value!r}; the shapes of "
            f"a graph are known before it runs, but for the sizes of its placeholders"
        ) from None


def parse_single_extent(value: Any, function: str, argument: str) -> Extent | None:
    """Convert an argument to one extent: an int, a symbolic size, or None for unknown.

    Args:
        value: One number, or a list, tuple or array of one; see `parse_shape`.
        function: The function's name, for the message.
        argument: The argument's name, for the message.

    Raises:
        ShapeError: If it holds no number, several, or one that only a run computes.
    """
    extents = parse_shape(value, function)
    if len(extents) != 1:
        raise ShapeError(f"{function} needs one number as {argument}, got {value!r}")
    return extents[0]


def parse_shape(value: Any, function: str) -> tuple[Extent | None, ...]:
    """Convert a shape argument to extents.

    Args:
        value: A list or tuple of dimensions (see `parse_extent`), one dimension, which is a shape
            of one axis, an array, or the result of `tf.shape`. None is one unknown dimension.
        function: The function's name, for the message.

    Returns:
        A tuple with an int, a symbolic size or None for each axis.

    Raises:
        ShapeError: For a dimension that is none of these, such as a tensor that only a run
            computes, and for an `UnknownShape`.
    """
    numbers = getattr(value, "static_value", None)
    if numbers is not None:
        return tuple(numbers.ravel().tolist())
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.ravel().tolist()
    if isinstance(value, (list, tuple)):
        return tuple(parse_extent(n, function) for n in value)
    return (parse_extent(value, function),)


def require_shape(entry: Entry, function: str = "") -> Shape:
    """Return the shape of an entry whose rank must be known.

    Args:
        entry: A value of the graph.
        function: The function that needs the shape, for the message.

    Raises:
        ShapeError: If the rank is unknown; it names the placeholders without a shape from which
            the entry is computed.
    """
    if entry.shape is not None:
        return entry.shape
    names = [f"placeholder '{n}'" for n in unshaped_placeholders(entry)]
    cause = f"{' and '.join(names)} {'have' if len(names) > 1 else 'has'} no shape"
    raise ShapeError(
        f"{function or 'this function'} needs an input of known rank, and that of '{entry.name}' "
        f"is unknown, as {cause}; tf.placeholder(dtype, shape) gives a placeholder its shape"
    )


def unshaped_placeholders(entry: Entry) -> list[str]:
    """Return the names of the placeholders without a shape from which an entry is computed.

    They are in topological order, and the entry's own is included.
    """
    nodes = post_order([entry.node])
    return [n.name for n in nodes if n.op is None and n.entries[0].shape is None]
