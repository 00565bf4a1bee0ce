"""Feeds of `Session.run`: what may be fed, conversion to arrays, and shapes of unknown rank."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from attrs import define, evolve, field, frozen

from passkit.errors import FeedError
from passkit.frontends.tinyflow.graphs import Graph
from passkit.frontends.tinyflow.shapes import format_shape, require_shape
from passkit.frontends.tinyflow.tensors import Operation, Tensor
from passkit.frontends.tinyflow.variables import Variable
from passkit.graph.node import Entry, Node
from passkit.values.dtype import DType
from passkit.values.size import Shape, Size

ShapesByKey = Mapping[Any, tuple[int, ...]]
"""For each key of feed_dict the shape of its value."""


@frozen(eq=False)
class Feed:
    """How one input of a run is fed."""

    key: Any
    """The key of feed_dict; None for the number of the run."""
    name: str
    entry: Entry
    """The entry of the program that is fed and therefore not computed."""
    input: Entry
    """The input of the pure graph that replaces it."""
    dtype: DType
    shape: Shape
    session: Any = None
    """The session whose runs are counted, for the number of the run; else None."""
    fixed: tuple[tuple[int, int], ...] = field(init=False)
    """(axis, length) for each axis of known length."""

    @fixed.default
    def _fixed_axes(self) -> tuple[tuple[int, int], ...]:
        """The axes of known extent, as pairs of axis and extent."""
        return tuple((k, n) for k, n in enumerate(self.shape) if isinstance(n, int))

    @classmethod
    def counter(cls, session: Any) -> Feed:
        """Create the feed of the number of the run, which random draws depend on."""
        entry = session.graph.run_number
        return cls(None, "run_number", entry, entry, entry.dtype, (), session)

    def array(self, feeds: Mapping[Any, Any]) -> Any:
        """Return the array for this input.

        Args:
            feeds: The feed_dict of the run, which must have the key; for the feed of a counter the
                session's number of runs is returned instead.

        Returns:
            An array of the feed's dtype; the value itself if it is one.

        Raises:
            FeedError: If the value is no array of numbers, has a fraction where the dtype is an
                integer, or has another shape.
            KeyError: If ``feeds`` lacks the key.
        """
        if self.session is not None:
            return np.asarray(self.session.runs, np.int64)
        value = feeds[self.key]
        if type(value) is not np.ndarray or value.dtype != self.dtype.numpy:
            value = self._convert(value)
        sizes = value.shape
        fits = len(sizes) == len(self.shape)
        for axis, n in self.fixed:
            fits = fits and sizes[axis] == n
        if not fits:
            raise FeedError(
                f"'{self.name}' needs a feed of shape {format_shape(self.shape)}, got "
                f"{value.shape}; reshape the array, or give the placeholder that shape"
            )
        return value

    def _convert(self, value: Any) -> Any:
        """Convert a value to an array of the feed's dtype.

        Raises:
            FeedError: If it is or holds a tensor, is no array of numbers, or holds floats that are
                not whole or out of range where the dtype is an integer. Other conversions may round
                or wrap, and drop imaginary parts with NumPy's warning.
        """
        if isinstance(value, Tensor):
            raise FeedError(
                f"'{self.name}' needs numbers as a feed, got {value!r}; run it first, and feed "
                f"its value"
            )
        try:
            array = np.asarray(value)
        except ValueError as error:
            raise FeedError(
                f"'{self.name}' needs an array of {self.dtype} as a feed, got a "
                f"{type(value).__name__} that cannot be converted: {error}"
            ) from None
        is_numeric = array.dtype.kind in "biufcV"
        converted = array.astype(self.dtype.numpy) if is_numeric else array
        truncates = self.dtype.is_integer and array.dtype.kind == "f"
        if not is_numeric or (truncates and not np.array_equal(converted, array)):
            raise FeedError(
                f"'{self.name}' needs a feed of {self.dtype}, got {array.dtype}; "
                f"array.astype('{self.dtype}')"
            )
        return converted


def is_unranked_key(key: Any) -> bool:
    """Return whether a key of feed_dict is a tensor of unknown rank.

    Raises:
        DTypeError: For a tensor of text.
    """
    return isinstance(key, Tensor) and key.entry.shape is None


def shape_of_feed(key: Tensor, value: Any) -> tuple[int, ...]:
    """Return the shape of the array that ``value`` becomes; ``key`` is the tensor that it feeds.

    Raises:
        FeedError: For a tensor, and for lists that are no arrays, such as those of different
            lengths.
    """
    try:
        return np.shape(value)
    except ValueError as error:  # GraphError of a tensor is one
        raise FeedError(
            f"'{key.name}' needs an array of {key.dtype} as a feed, got a {type(value).__name__} "
            f"that cannot be converted: {error}"
        ) from None


def create_feeds(key: Any, graph: Graph, shape: Shape) -> list[Feed]:
    """Create the feeds for one key of feed_dict.

    Nodes created before a call of `Tensor.set_shape` read an earlier entry of the key than those
    created after it. The first of these entries that has a rank is fed, and the later ones are
    reshapes of it. An entry of unknown rank before it gets a feed of its own, of the same input.

    Args:
        key: A tensor.
        graph: The graph of the session.
        shape: The shape of the value, used if the rank of the tensor is unknown.

    Returns:
        One feed, or two if `Tensor.set_shape` gave a rank to the key.

    Raises:
        FeedError: If the key is no tensor, is a variable, or belongs to another graph.
        DTypeError: If the key is a tensor of text.
    """
    if isinstance(key, Operation) or not isinstance(key, Tensor):
        raise FeedError(
            f"feed_dict needs placeholders and other tensors as keys, got {key!r}; tf.placeholder "
            f"creates one"
        )
    if key.graph is not graph:
        raise FeedError(
            f"feed_dict has {key!r}, which is not an element of this session's graph; create the "
            f"session with graph="
        )
    if isinstance(key, Variable):
        raise FeedError(
            f"feed_dict has the variable '{key.name}', which keeps its own value; "
            f"variable.load(value, session) gives it another"
        )
    entry = key.entry
    assert entry.dtype is not None
    shape = shape if entry.shape is None else require_shape(entry)
    *unranked, first = first_entries(entry, graph)
    input = first
    if not first.node.is_variable or first.shape is None:
        params = {"shape": shape if first.shape is None else first.shape, "dtype": entry.dtype}
        name = key.name.removesuffix(":0").replace(":", "_")
        input = Node(None, (), params, name).entries[0]
    feed = Feed(key, key.name, first, input, entry.dtype, shape)
    return [feed, *(evolve(feed, entry=e) for e in unranked)]


def first_entries(entry: Entry, graph: Graph) -> list[Entry]:
    """Return the first entry that a tensor had, and if its rank was unknown, the first with a rank.

    ``entry`` is the tensor's entry after all calls of `Tensor.set_shape`, ``graph`` its graph. The
    list has one entry, also if no call gave the tensor a rank.
    """
    entries = [entry]
    while (earlier := graph.refined_entries.get(entry.node)) is not None:
        entry = earlier
        entries = [entry, *(entries[:1] if entry.shape is None else [])]
    return entries


def rank_key(shapes: Iterable[tuple[int, ...]]) -> tuple[tuple[bool, ...], ...]:
    """Return a key for shapes of equal ranks; extents of 1 differ from others, as they broadcast.

    >>> rank_key([(32, 1), ()])
    ((False, True), ())
    """
    return tuple(tuple(n == 1 for n in shape) for shape in shapes)


@define(eq=False)
class FeedShapeFamily:
    """The shapes that feeds of unknown rank had so far, all of one `rank_key`.

    Generalizes them to shapes with free sizes, so that one compiled run serves all of them.

    >>> family = FeedShapeFamily()
    >>> family.generalize({"x": (32, 784), "y": (32,)})
    >>> family.generalize({"x": (50, 784), "y": (50,)})
    {'x': (fed.0, 784), 'y': (fed.0,)}
    >>> family.accepts({"x": (7, 784), "y": (7,)}), family.accepts({"x": (7, 784), "y": (9,)})
    (True, False)
    """

    is_exact: bool = False
    """Whether every combination of shapes needs a compiled run of its own."""
    _sizes: list[list[int]] = field(factory=list)
    """For each feed so far the extents of all its shapes, one after the other."""
    _free_shapes: dict[Any, Shape] | None = None

    def accepts(self, shapes: ShapesByKey) -> bool:
        """Return whether the compiled run with free sizes serves feeds of these shapes.

        Args:
            shapes: The shape of each feed of unknown rank, by key, in the order of earlier calls.
        """
        if self._free_shapes is None or self.is_exact:
            return False
        bound: dict[Any, int] = {}
        sizes = (n for shape in self._free_shapes.values() for n in shape)
        numbers = (n for shape in shapes.values() for n in shape)
        return all(
            bound.setdefault(n, m) == m if isinstance(n, Size) else n == m
            for n, m in zip(sizes, numbers, strict=True)
        )

    def generalize(self, shapes: ShapesByKey) -> dict[Any, Shape] | None:
        """Add shapes, and return shapes with free sizes where those so far differ.

        Args:
            shapes: The shape of each feed of unknown rank, by key, in the order of earlier calls.

        Returns:
            The shapes by key of feed_dict; None for the first feed, and if `is_exact`.
        """
        self._sizes.append([n for shape in shapes.values() for n in shape])
        if len(self._sizes) == 1 or self.is_exact:
            return None
        names: dict[tuple[int, ...], Size] = {}
        columns = iter(list(zip(*self._sizes, strict=True)))
        self._free_shapes = {
            key: tuple(_common_or_free_size(next(columns), names) for _ in shape)
            for key, shape in shapes.items()
        }
        return self._free_shapes


def _common_or_free_size(column: tuple[int, ...], names: dict[tuple[int, ...], Size]) -> int | Size:
    """Return the extent that all feeds share, or one symbol for extents that vary equally.

    Args:
        column: Extent of one axis in each feed so far.
        names: Symbols by column; one for a new column is added.
    """
    if len(set(column)) == 1:
        return column[0]
    return names.setdefault(column, Size.symbol(f"fed.{len(names)}"))
