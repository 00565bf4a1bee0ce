"""Fetches: tensors, operations and variables in lists, tuples and dicts, one in another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import frozen

from passkit.errors import FeedError, nearest
from passkit.frontends.tinyflow.graphs import Graph
from passkit.frontends.tinyflow.tensors import Operation, Tensor


@frozen(eq=False)
class Structure:
    """What is fetched, in order, and how values are put together like it."""

    leaves: tuple[Any, ...]
    rebuilt: Callable[[list[Any]], Any]


def flattened(fetches: Any, graph: Graph) -> Structure:
    """The leaves of ``fetches``.

    Raises: FeedError for what cannot be fetched, or belongs to another graph.
    """
    leaves: list[Any] = []
    build = _builder(fetches, leaves, graph)
    return Structure(tuple(leaves), build)


def _builder(fetch: Any, leaves: list[Any], graph: Graph) -> Callable[[list[Any]], Any]:
    if isinstance(fetch, str):
        fetch = _by_name(fetch, graph)
    if isinstance(fetch, (Tensor, Operation)):
        if fetch.graph is not graph:
            raise FeedError(
                f"{fetch!r} is not an element of this session's graph; make the session with "
                f"graph=, or within `with graph.as_default()`"
            )
        k = len(leaves)
        leaves.append(fetch)
        return lambda values: values[k]
    if isinstance(fetch, Mapping):
        parts = {name: _builder(f, leaves, graph) for name, f in fetch.items()}
        return lambda values: {name: p(values) for name, p in parts.items()}
    if isinstance(fetch, Sequence):
        inner = [_builder(f, leaves, graph) for f in fetch]
        kind: Any = type(fetch)
        make = kind._make if hasattr(kind, "_make") else kind
        return lambda values: make([p(values) for p in inner])
    raise FeedError(
        f"session.run needs tensors and operations to fetch, got {fetch!r}; in lists, tuples or "
        f"dicts"
    )


def _by_name(name: str, graph: Graph) -> Any:
    """The variable of a name; other tensors are held by the program."""
    known = {v.name: v for v in graph.get_collection("variables")}
    if name not in known:
        raise FeedError(
            f"session.run finds variables by name, got {name!r}; {nearest(name, known)}"
        )
    return known[name]
