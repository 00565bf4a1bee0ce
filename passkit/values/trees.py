"""Nested containers of values: taken apart into leaves, and put together from other leaves.

Containers are lists, tuples, named tuples, dicts, data classes, attrs classes, and None, which has
no leaves. Everything else is a leaf.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import attrs

from passkit.errors import ArgumentError
from passkit.values import arguments

LEAF = "leaf"
"""The structure of a value that is a leaf."""

Structure = Hashable
"""The form of a nested container without its leaves: `LEAF`, or a tuple (type, names, parts) of its
type, the keys or fields of its parts, and their structures. Equal forms compare equal."""


_SEQUENCE, _MAPPING, _NONE = "sequence", "mapping", "none"
_forms: dict[type, Any] = {
    list: _SEQUENCE,
    tuple: _SEQUENCE,
    dict: _MAPPING,
    type(None): _NONE,
}
"""The form of the values of a type: how its parts are found, the names of its fields, or `LEAF`."""


def _form(kind: type) -> Any:
    """Return the form of the values of a type that `_forms` does not have, and store it there."""
    form: Any = LEAF
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        form = _SEQUENCE
    elif issubclass(kind, type):
        form = LEAF
    elif dataclasses.is_dataclass(kind):
        form = tuple(f.name for f in dataclasses.fields(kind))
    elif attrs.has(kind):
        form = tuple(f.name for f in attrs.fields(kind))
    _forms[kind] = form
    return form


def _names_and_parts(value: Any) -> tuple[tuple[Any, ...] | None, Sequence[Any]] | None:
    """Return the keys or field names of a container, None for a sequence or None, and its parts.

    Returns: None if the value is a leaf, as are instances of subclasses of list and dict.
    """
    kind = type(value)
    form = _forms.get(kind) or _form(kind)
    if form is LEAF:
        return None
    if form is _SEQUENCE:
        return None, value
    if form is _MAPPING:
        return tuple(value), list(value.values())
    if form is _NONE:
        return None, ()
    return form, [getattr(value, name) for name in form]


def flatten(value: Any) -> tuple[list[Any], Structure]:
    """Return a list of the leaves of a value, depth first, and its structure.

    A value that is no container is the only leaf; None has none. Instances of subclasses of list
    and dict, and of tuple without named fields, are leaves.

    >>> flatten({"a": [1, 2], "b": None})[0]
    [1, 2]
    """
    leaves: list[Any] = []
    return leaves, _flatten_into(value, leaves)


def _flatten_into(value: Any, leaves: list[Any]) -> Structure:
    """Append the leaves of a value to a list, and return its structure."""
    container = _names_and_parts(value)
    if container is None:
        leaves.append(value)
        return LEAF
    names, parts = container
    structures = []
    for part in parts:  # most parts are leaves: without a call
        if _forms.get(type(part)) is LEAF:
            leaves.append(part)
            structures.append(LEAF)
        else:
            structures.append(_flatten_into(part, leaves))
    return type(value), names, tuple(structures)


def unflatten(structure: Structure, leaves: Sequence[Any]) -> Any:
    """Return the value that has a structure, as of `flatten`, and these leaves in its order.

    Data classes and attrs classes are made without a call of their constructor.

    Raises: StopIteration for too few leaves; more than needed are ignored.

    >>> unflatten(flatten([1, (2, None)])[1], [3, 4])
    [3, (4, None)]
    """
    return _built(structure, iter(leaves))


def _built(structure: Any, leaves: Iterator[Any]) -> Any:
    """Return the value of a structure, with the next of ``leaves``."""
    if structure == LEAF:
        return next(leaves)
    kind, names, structures = structure
    parts = [next(leaves) if part == LEAF else _built(part, leaves) for part in structures]
    if kind is list:
        return parts
    if kind is tuple:
        return tuple(parts)
    if kind is dict:
        return dict(zip(names, parts, strict=True))
    if kind is type(None):
        return None
    if names is None:
        return kind._make(parts)  # a named tuple
    value = object.__new__(kind)  # its constructor may convert or check fields
    for name, part in zip(names, parts, strict=True):
        object.__setattr__(value, name, part)
    return value


def paths(structure: Any, prefix: str = "") -> list[str]:
    """Return for each leaf of ``structure`` where it is, as a Python subscript after ``prefix``.

    >>> paths(flatten({"w": [1, 2]})[1], "params")
    ["params['w'][0]", "params['w'][1]"]
    """
    if structure == LEAF:
        return [prefix]
    kind, names, structures = structure
    result: list[str] = []
    for k, part in enumerate(structures):
        if kind is dict:
            place = f"[{names[k]!r}]"
        elif names is not None:
            place = f".{names[k]}"
        else:
            place = f".{kind._fields[k]}" if hasattr(kind, "_fields") else f"[{k}]"
        result += paths(part, prefix + place)
    return result


def tree_map(function: Callable[..., Any], value: Any, *others: Any) -> Any:
    """Return a nested container with a function applied to each leaf, such as an update of weights.

    Args:
        function: takes a leaf of ``value`` and those at its place in ``others``.
        value: nested lists, tuples, named tuples, dicts, data classes and attrs classes. None has
            no leaves; everything else is a leaf.
        *others: values of the same structure; dicts need the same keys in the same order.

    Raises: ArgumentError if one of the others has another structure, or ``function`` is not
        callable.

    >>> import passkit as pk
    >>> pk.tree_map(lambda w, g: w - 0.5 * g, {"a": [1.0, 2.0]}, {"a": [2.0, 2.0]})
    {'a': [0.0, 1.0]}
    """
    arguments.function("tree_map: function", function)
    leaves, structure = flatten(value)
    columns = [leaves]
    for k, other in enumerate(others):
        other_leaves, other_structure = flatten(other)
        if other_structure != structure:
            raise ArgumentError(
                f"tree_map: argument {k + 1} has the leaves "
                f"{', '.join(paths(other_structure, 'x')) or 'none'}, and argument 0 has "
                f"{', '.join(paths(structure, 'x')) or 'none'}; their structures must be equal"
            )
        columns.append(other_leaves)
    return unflatten(structure, [function(*items) for items in zip(*columns, strict=True)])


def prefix_leaves(prefix: Any, structure: Any) -> list[Any] | None:
    """Return for each leaf of a structure the leaf of ``prefix`` that stands for it.

    Args:
        prefix: containers as the outer ones of the structure, with a leaf in place of any part;
            None counts as a leaf. A list or tuple stands for a container of any type but dict that
            has as many parts; a dict has the same keys in any order.
        structure: the structure, as of `flatten`.

    Returns: A list, in the order of the structure's leaves; None if the containers differ.
    """
    container = None if prefix is None else _names_and_parts(prefix)
    if container is None:
        return [prefix] * len(paths(structure))
    if structure == LEAF:
        return None
    kind, names, structures = structure
    prefix_names, parts = container
    if type(prefix) not in (kind, list, tuple) or len(parts) != len(structures):
        return None
    if kind is dict:
        if type(prefix) is not dict or set(prefix) != set(names):
            return None
        parts = [prefix[name] for name in names]
    elif prefix_names != names and prefix_names is not None:
        return None
    result: list[Any] = []
    for part, inner in zip(parts, structures, strict=True):
        leaves = prefix_leaves(part, inner)
        if leaves is None:
            return None
        result += leaves
    return result
