"""Fetches of `Session.run`: tensors, operations and variables in nested structures."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from attrs import frozen

from passkit.errors import FeedError, nearest
from passkit.frontends.tinyflow.graphs import Graph
from passkit.frontends.tinyflow.tensors import Operation, Tensor
from passkit.values import arguments


@frozen(eq=False)
class FetchStructure:
    """The flattened form of a fetch argument."""

    leaves: tuple[Any, ...]
    """The tensors and operations to fetch, in order."""
    rebuilt: Callable[[list[Any]], Any]
    """Arranges the values of the leaves in the structure of the argument."""


def fetch_key(fetches: Any) -> Any:
    """Return a hashable key that identifies a fetch argument and its structure.

    Args:
        fetches: Elements in lists, tuples and mappings, to any depth. Any hashable value is an
            element here.

    Raises:
        FeedError: For an element that is not hashable.
    """
    if isinstance(fetches, (list, tuple)):
        return (type(fetches), *map(fetch_key, fetches))
    if isinstance(fetches, Mapping):
        return (dict, *((k, fetch_key(v)) for k, v in fetches.items()))
    if not isinstance(fetches, Hashable):
        raise FeedError(
            f"session.run needs tensors and operations to fetch, got {arguments.shown(fetches)}"
        )
    return fetches


def flatten_fetches(fetches: Any, resolve: Callable[[Any], Any]) -> FetchStructure:
    """Flatten a fetch argument.

    Args:
        fetches: Elements in sequences and mappings, to any depth.
        resolve: Returns the leaf for an element; None for anything that is not an element. Its
            errors propagate.

    Raises:
        FeedError: For anything that is neither an element nor a sequence or mapping; text and bytes
            are none.
    """
    leaves: list[Any] = []
    rebuild = _flatten(fetches, leaves, resolve)
    return FetchStructure(tuple(leaves), rebuild)


def _flatten(
    fetch: Any, leaves: list[Any], resolve: Callable[[Any], Any]
) -> Callable[[list[Any]], Any]:
    """Append the leaves of a fetch to ``leaves``; return the function that rebuilds it.

    Args:
        fetch: Tensor, operation, name, or nested sequences and mappings of them.
        leaves: List that is extended.
        resolve: Returns the leaf for an element; None if it is no leaf.

    Returns:
        Takes the values of all leaves and returns them in the structure of ``fetch``: sequences of
        its types, and dicts for mappings.

    Raises:
        FeedError: For anything else.
    """
    leaf = resolve(fetch)
    if leaf is not None:
        k = len(leaves)
        leaves.append(leaf)
        return lambda values: values[k]
    if isinstance(fetch, Mapping):
        parts = {name: _flatten(f, leaves, resolve) for name, f in fetch.items()}
        return lambda values: {name: p(values) for name, p in parts.items()}
    if isinstance(fetch, Sequence) and not isinstance(fetch, (str, bytes)):
        items = [_flatten(f, leaves, resolve) for f in fetch]
        kind: Any = type(fetch)
        create = kind._make if hasattr(kind, "_make") else kind
        return lambda values: create([p(values) for p in items])
    raise FeedError(
        f"session.run needs tensors and operations to fetch, got {arguments.shown(fetch)}; in "
        f"lists, tuples or dicts"
    )


def resolve_fetch(graph: Graph, fetch: Any) -> Any:
    """Return the tensor or operation of ``graph`` for one element of a fetch argument.

    Args:
        graph: The graph of the session.
        fetch: A tensor, an operation, or the name of a global variable, such as "w:0".

    Returns:
        The tensor, operation or variable; None if ``fetch`` is none of these.

    Raises:
        FeedError: For a text that is no such name, and for an element of another graph.
    """
    element = _variable_by_name(fetch, graph) if isinstance(fetch, str) else fetch
    if not isinstance(element, (Tensor, Operation)):
        return None
    if element.graph is not graph:
        raise FeedError(
            f"{element!r} is not an element of this session's graph; create the session with "
            f"graph=, or inside `with graph.as_default()`"
        )
    return element


def _variable_by_name(name: str, graph: Graph) -> Any:
    """Return the global variable of a name such as "w:0".

    Args:
        name: The name, with output number.
        graph: The graph.

    Raises:
        FeedError: If there is none.
    """
    variables = {v.name: v for v in graph.get_collection("variables")}
    if name not in variables:
        raise FeedError(
            f"session.run finds variables by name, got {name!r}; {nearest(name, variables)}"
        )
    return variables[name]
