"""Feeds: what may be fed, and the arrays that become of what a user gives."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

from passkit.errors import FeedError
from passkit.frontends.tinyflow.graphs import Graph
from passkit.frontends.tinyflow.ranks import known_shape
from passkit.frontends.tinyflow.shapes import shown
from passkit.frontends.tinyflow.tensors import Operation, Tensor
from passkit.graph.node import Entry, Node, is_state
from passkit.values import arguments
from passkit.values.dtype import DType
from passkit.values.size import Shape


def key_of(fetches: Any) -> Any:
    """What tells apart fetches of one session: themselves, in their structure."""
    if isinstance(fetches, (list, tuple)):
        return (type(fetches), *map(key_of, fetches))
    if isinstance(fetches, Mapping):
        return (dict, *((k, key_of(v)) for k, v in fetches.items()))
    if not isinstance(fetches, Hashable):
        raise FeedError(
            f"session.run needs tensors and operations to fetch, got {arguments.shown(fetches)}"
        )
    return fetches


@frozen(eq=False)
class Feed:
    """How one input of a run is fed."""

    key: Any
    name: str
    entry: Entry
    """What is fed, and not computed."""
    input: Entry
    """The variable of the pure graph that stands for it."""
    dtype: DType
    shape: Shape
    session: Any = None
    fixed: tuple[tuple[int, int], ...] = field(init=False)
    """The axes of known length, and these."""

    @fixed.default
    def _known(self) -> tuple[tuple[int, int], ...]:
        return tuple((k, n) for k, n in enumerate(self.shape) if isinstance(n, int))

    @classmethod
    def counter(cls, session: Any) -> Feed:
        """The feed of the run's number, which draws are made from."""
        entry = session.graph.run_number
        return cls(None, "run_number", entry, entry, entry.dtype, (), session)

    def array(self, feeds: Mapping[Any, Any]) -> Any:
        """The array for this input. Raises: FeedError naming what does not fit."""
        if self.session is not None:
            return np.asarray(self.session.runs, np.int64)
        value = feeds[self.key]
        if type(value) is not np.ndarray or value.dtype != self.dtype.numpy:
            value = self._converted(value)
        sizes = value.shape
        fits = len(sizes) == len(self.shape)
        for axis, n in self.fixed:
            fits = fits and sizes[axis] == n
        if not fits:
            raise FeedError(
                f"'{self.name}' needs a feed of shape {shown(self.shape)}, got "
                f"{value.shape}; reshape the array, or give the placeholder that shape"
            )
        return value

    def _converted(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            raise FeedError(
                f"'{self.name}' needs numbers as a feed, got {value!r}; run it first, and feed "
                f"its value"
            )
        try:
            found = np.asarray(value)
        except ValueError as error:
            raise FeedError(
                f"'{self.name}' needs an array of {self.dtype} as a feed, got a "
                f"{type(value).__name__} that is none: {error}"
            ) from None
        numbers = found.dtype.kind in "biufcV"
        made = found.astype(self.dtype.numpy) if numbers else found
        whole = self.dtype.is_integer and found.dtype.kind == "f"
        if not numbers or (whole and not np.array_equal(made, found)):
            raise FeedError(
                f"'{self.name}' needs a feed of {self.dtype}, got {found.dtype}; "
                f"array.astype('{self.dtype}')"
            )
        return made


def is_open(key: Any) -> bool:
    """Whether a key of feed_dict is a tensor whose rank only a run knows."""
    return isinstance(key, Tensor) and key.entry.shape is None


def feeds_of(key: Any, graph: Graph, shape: Shape) -> list[Feed]:
    """How a key of feed_dict is fed; ``shape`` is that of one of unknown rank.

    A placeholder that set_shape gave a shape is fed as it was, too, for what was made before.
    Raises: FeedError for what cannot be fed.
    """
    found = _feed(key, graph, shape)
    earlier = [old for old, new in graph.shaped.items() if new is found.entry]
    return [found, *(evolve(found, entry=old) for old in earlier)]


def _feed(key: Any, graph: Graph, shape: Shape) -> Feed:
    if isinstance(key, Operation) or not isinstance(key, Tensor):
        raise FeedError(
            f"feed_dict needs placeholders and other tensors as keys, got {key!r}; tf.placeholder "
            f"makes one"
        )
    if key.graph is not graph:
        raise FeedError(
            f"feed_dict has {key!r}, which is not an element of this session's graph; make the "
            f"session with graph="
        )
    entry = key.entry
    if is_state(entry):
        raise FeedError(
            f"feed_dict has the variable '{key.name}', which keeps its own value; "
            f"variable.load(value, session) gives it another"
        )
    assert entry.dtype is not None
    shape = shape if entry.shape is None else known_shape(entry)
    if entry.node.is_variable and entry.shape is not None:
        return Feed(key, key.name, entry, entry, entry.dtype, shape)
    params = {"shape": shape, "dtype": entry.dtype}
    stand_in = Node(None, (), params, key.name.removesuffix(":0").replace(":", "_"))
    return Feed(key, key.name, entry, stand_in.entries[0], entry.dtype, shape)
