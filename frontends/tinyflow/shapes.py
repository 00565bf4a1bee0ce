"""Shapes as TensorFlow 1 shows them, and those that users give: numbers, None, -1 and tensors."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from math import prod
from typing import Any

from passkit.errors import ShapeError
from passkit.values.size import Extent, Size


class Dimension:
    """One dimension of a static shape; its ``value`` is None where only a run knows it."""

    __slots__ = ("extent",)

    def __init__(self, extent: Extent | None) -> None:
        self.extent = extent

    @property
    def value(self) -> int | None:
        """The number, or None."""
        return self.extent if isinstance(self.extent, int) else None

    def __index__(self) -> int:
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

    def _with(self, other: Any, do: Any) -> Dimension:
        theirs = other.extent if isinstance(other, Dimension) else other
        known = self.extent is not None and theirs is not None
        return Dimension(do(self.extent, theirs) if known else None)

    def __add__(self, other: Any) -> Dimension:
        return self._with(other, operator.add)

    def __mul__(self, other: Any) -> Dimension:
        return self._with(other, operator.mul)

    def __floordiv__(self, other: Any) -> Dimension:
        return self._with(other, operator.floordiv)

    def __sub__(self, other: Any) -> Dimension:
        return self._with(other, operator.sub)

    __radd__, __rmul__ = __add__, __mul__

    def __repr__(self) -> str:
        return "?" if self.value is None else str(self.value)


class TensorShape(tuple[Dimension, ...]):
    """A static shape: a tuple of `Dimension`."""

    __slots__ = ()

    @classmethod
    def of(cls, shape: Iterable[Extent | None]) -> TensorShape:
        """The shape with these extents."""
        return cls(Dimension(n) for n in shape)

    def as_list(self) -> list[int | None]:
        """Numbers, and None where only a run knows them."""
        return [d.value for d in self]

    @property
    def ndims(self) -> int:
        """The rank."""
        return len(self)

    def num_elements(self) -> int | None:
        """The number of elements, or None."""
        known = self.as_list()
        return None if None in known else prod(n for n in known if n is not None)

    def is_fully_defined(self) -> bool:
        """Whether no dimension waits for a run."""
        return None not in self.as_list()

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return TensorShape(found) if isinstance(key, slice) else found

    def __repr__(self) -> str:
        return f"({', '.join(map(repr, self))})"


class UnknownShape(TensorShape):
    """The static shape of a tensor of unknown rank; its dimensions are unknown, however many."""

    def __new__(cls, name: str) -> UnknownShape:
        """The shape of the tensor called ``name``."""
        made = super().__new__(cls)
        made._name = name  # type: ignore[attr-defined]
        return made

    @property
    def ndims(self) -> Any:
        """None: the rank is unknown."""
        return None

    def as_list(self) -> Any:
        """Raises: ShapeError, as there is no list of an unknown number of dimensions."""
        self._refuse()

    def num_elements(self) -> int | None:
        """None: the number of elements is unknown."""
        return None

    def is_fully_defined(self) -> bool:
        """False."""
        return False

    def __getitem__(self, key: Any) -> Any:
        return self if isinstance(key, slice) else Dimension(None)

    def __iter__(self) -> Any:
        self._refuse()

    def __len__(self) -> int:
        self._refuse()
        return 0

    def __bool__(self) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnknownShape) or other is None

    def __hash__(self) -> int:
        return hash(None)

    def __repr__(self) -> str:
        return "<unknown>"

    def _refuse(self) -> None:
        raise ShapeError(
            f"the rank of '{self._name}' is unknown, so that its dimensions cannot be "  # type: ignore[attr-defined]
            f"listed; tf.placeholder(dtype, shape) gives a placeholder a shape"
        )


def shown(shape: Iterable[Extent | None]) -> str:
    """A shape as messages have it: (?, 784)."""
    numbers = [str(n) if isinstance(n, int) else "?" for n in shape]
    return f"({', '.join(numbers)}{',' * (len(numbers) == 1)})"


def extent_of(given: Any, where: str) -> Extent | None:
    """One dimension that a user gives: a number, a `Dimension`, None or a known scalar tensor.

    Raises: ShapeError for what only a run computes.
    """
    if given is None or isinstance(given, Size):
        return given
    if isinstance(given, Dimension):
        return given.extent
    known = getattr(given, "known", None)
    if known is not None:
        return known[()] if known.shape == () else known.item()  # type: ignore[no-any-return]
    try:
        return operator.index(given)
    except TypeError:
        raise ShapeError(
            f"{where} needs ints, None or sizes made by tf.shape, got {given!r}; the shapes of a "
            f"graph are known before it runs, but for the sizes of its placeholders"
        ) from None


def one_extent(given: Any, where: str, what: str) -> Extent | None:
    """An extent that a user gives. Raises: ShapeError for none and for several of them."""
    found = extents_of(given, where)
    if len(found) != 1:
        raise ShapeError(f"{where} needs one number as {what}, got {given!r}")
    return found[0]


def extents_of(given: Any, where: str) -> tuple[Extent | None, ...]:
    """A shape that a user gives: a sequence, one number, or what tf.shape made.

    Raises: ShapeError for what only a run computes.
    """
    known = getattr(given, "known", None)
    if known is not None:
        return tuple(known.ravel().tolist())
    if hasattr(given, "ravel"):
        given = given.ravel().tolist()
    if isinstance(given, (list, tuple)):
        return tuple(extent_of(n, where) for n in given)
    return (extent_of(given, where),)
