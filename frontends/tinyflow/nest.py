"""Nested structures: tensors in lists, tuples, named tuples and dicts, to any depth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


def flatten_nest(nest: Any) -> list[Any]:
    """Return the leaves of nested lists, tuples and dicts; of dicts in the order of their keys.

    Anything else, None included, is a leaf. Raises: ShapeError for a `TensorShape` of unknown rank.

    >>> flatten_nest([1, {"b": 3, "a": (2,)}])
    [1, 2, 3]
    """
    if isinstance(nest, dict):
        return [leaf for key in sorted(nest) for leaf in flatten_nest(nest[key])]
    if isinstance(nest, (list, tuple)):
        return [leaf for part in nest for leaf in flatten_nest(part)]
    return [nest]


def pack_like(nest: Any, leaves: Iterator[Any]) -> Any:
    """Arrange ``leaves``, in the order of `flatten_nest`, in the structure of ``nest``.

    Return new lists, tuples, named tuples and dicts; a dict has its keys in order. Named tuples are
    those with a method ``_make``; any other subclass of tuple becomes a tuple. There must be a leaf
    for each one of ``nest``; others are left in the iterator.

    >>> pack_like([1, {"b": 3, "a": (2,)}], iter("xyz"))
    ['x', {'a': ('y',), 'b': 'z'}]
    """
    if isinstance(nest, dict):
        return {key: pack_like(nest[key], leaves) for key in sorted(nest)}
    if isinstance(nest, (list, tuple)):
        parts = [pack_like(part, leaves) for part in nest]
        if hasattr(nest, "_make"):
            return nest._make(parts)
        return parts if isinstance(nest, list) else tuple(parts)
    return next(leaves)


def map_tuples(function: Callable[[Any], Any], nest: Any) -> Any:
    """Apply ``function`` to the leaves of nested tuples; return the results in their structure.

    Named tuples, which have a method ``_make``, stay such; any other subclass of tuple becomes a
    tuple. Anything but a tuple is a leaf.

    >>> map_tuples(str, (1, (2, 3)))
    ('1', ('2', '3'))
    """
    if isinstance(nest, tuple):
        parts = [map_tuples(function, part) for part in nest]
        return nest._make(parts) if hasattr(nest, "_make") else tuple(parts)
    return function(nest)
