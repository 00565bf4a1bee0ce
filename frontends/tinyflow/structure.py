"""Fetches: tensors, operations and variables in lists, tuples and dicts, one in another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import frozen

from passkit.errors import FeedError, nearest
from passkit.frontends.tinyflow.graphs import Graph
from passkit.frontends.tinyflow.tensors import Operation, Tensor
from passkit.values.arguments import shown


@frozen(eq=False)
class Structure:
    """What is fetched, in order, and how values are put together like it."""

    leaves: tuple[Any, ...]
    rebuilt: Callable[[list[Any]], Any]


def flattened(fetches: Any, element: Callable[[Any], Any]) -> Structure:
    """The leaves of ``fetches``.

    ``element`` gives what a fetch is that is no list, tuple or dict; None where it is nothing.
    Raises: FeedError for what cannot be fetched.
    """
    leaves: list[Any] = []
    build = _builder(fetches, leaves, element)
    return Structure(tuple(leaves), build)


def _builder(
    fetch: Any, leaves: list[Any], element: Callable[[Any], Any]
) -> Callable[[list[Any]], Any]:
    found = element(fetch)
    if found is not None:
        k = len(leaves)
        leaves.append(found)
        return lambda values: values[k]
    if isinstance(fetch, Mapping):
        parts = {name: _builder(f, leaves, element) for name, f in fetch.items()}
        return lambda values: {name: p(values) for name, p in parts.items()}
    if isinstance(fetch, Sequence) and not isinstance(fetch, (str, bytes)):
        inner = [_builder(f, leaves, element) for f in fetch]
        kind: Any = type(fetch)
        make = kind._make if hasattr(kind, "_make") else kind
        return lambda values: make([p(values) for p in inner])
    raise FeedError(
        f"session.run needs tensors and operations to fetch, got {shown(fetch)}; in lists, tuples "
        f"or dicts"
    )


def element_of(graph: Graph, fetch: Any) -> Any:
    """The tensor or operation of a graph that a fetch is; a variable may be told by its name.

    Raises: FeedError for an unknown name, and for what belongs to another graph.
    """
    found = _by_name(fetch, graph) if isinstance(fetch, str) else fetch
    if not isinstance(found, (Tensor, Operation)):
        return None
    if found.graph is not graph:
        raise FeedError(
            f"{found!r} is not an element of this session's graph; make the session with "
            f"graph=, or within `with graph.as_default()`"
        )
    return found


def _by_name(name: str, graph: Graph) -> Any:
    """The variable of a name; other tensors are held by the program."""
    known = {v.name: v for v in graph.get_collection("variables")}
    if name not in known:
        raise FeedError(
            f"session.run finds variables by name, got {name!r}; {nearest(name, known)}"
        )
    return known[name]
