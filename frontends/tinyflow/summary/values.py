"""Summaries: tensors of which a run makes what TensorBoard shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from passkit.errors import GraphError
from passkit.frontends.tinyflow.graphs import GraphKeys, get_default_graph
from passkit.frontends.tinyflow.summary.messages import Summary
from passkit.frontends.tinyflow.tensors import HostTensor, Tensor, convert_to_tensor, named

Array = np.ndarray[Any, Any]


def _limits() -> Array:
    """The edges of buckets: each a tenth wider than the last, from 1e-12 to 1e20, both signs."""
    ahead = 1e-12 * 1.1 ** np.arange(774)
    return np.concatenate([-ahead[::-1], [0.0], ahead, [np.finfo(np.float64).max]])


_LIMITS = _limits()


def scalar(
    name: str, tensor: Any, collections: Sequence[str] | None = None, family: str | None = None
) -> Tensor:
    """A number to be drawn over steps. Raises: GraphError for a tensor that is no scalar."""
    value = convert_to_tensor(tensor)
    if len(value.shape):
        raise GraphError(
            f"summary.scalar '{name}' needs a scalar, got {value!r}; summary.histogram takes any"
        )

    def written(tag: str, number: Any) -> Any:
        return Summary(value=[{"tag": tag, "simple_value": float(number)}]).SerializeToString()

    return _summary(name, value, collections, family, written)


def histogram(
    name: str, values: Any, collections: Sequence[str] | None = None, family: str | None = None
) -> Tensor:
    """The distribution of a tensor's elements, to be drawn over steps."""

    def written(tag: str, array: Any) -> Any:
        return Summary(value=[{"tag": tag, "histo": _counted(tag, array)}]).SerializeToString()

    return _summary(name, convert_to_tensor(values), collections, family, written)


def _counted(tag: str, array: Any) -> dict[str, Any]:
    """The elements by buckets. Raises: GraphError for numbers that are not finite."""
    flat = np.asarray(array, np.float64).ravel()
    if not np.isfinite(flat).all():
        raise GraphError(
            f"summary.histogram '{tag}' needs finite numbers, got "
            f"{int((~np.isfinite(flat)).sum())} others; Session(check_numerics=True) finds where "
            f"they come from"
        )
    places = np.searchsorted(_LIMITS, flat, side="right")
    counts = np.bincount(places, minlength=len(_LIMITS))
    used = np.flatnonzero(counts)
    chosen = slice(max(used[0] - 1, 0), used[-1] + 1) if len(used) else slice(0, 1)
    return {
        "min": float(flat.min()) if flat.size else 0.0,
        "max": float(flat.max()) if flat.size else 0.0,
        "num": float(flat.size),
        "sum": float(flat.sum()),
        "sum_squares": float(flat @ flat),
        "bucket_limit": _LIMITS[chosen].tolist(),
        "bucket": counts[chosen].astype(float).tolist(),
    }


def _summary(
    name: str, value: Tensor, collections: Sequence[str] | None, family: str | None, written: Any
) -> Tensor:
    clean = name.replace(":", "_").replace(" ", "_")
    full = named(f"{family}/{clean}" if family else clean, "summary")
    graph = get_default_graph()
    made = HostTensor([value], lambda array: written(full, array), full, graph)
    for key in [GraphKeys.SUMMARIES] if collections is None else collections:
        graph.add_to_collection(key, made)
    return made


def merge(
    inputs: Sequence[Tensor], collections: Sequence[str] | None = None, name: str | None = None
) -> Tensor:
    """One summary of several."""
    graph, full = get_default_graph(), named(name, "Merge")
    # Messages written one after the other are one message with the values of all.
    made = HostTensor(list(inputs), lambda *parts: b"".join(parts), full, graph)
    for key in collections or ():
        graph.add_to_collection(key, made)
    return made


def merge_all(
    key: str = GraphKeys.SUMMARIES, scope: str | None = None, name: str | None = None
) -> Tensor | None:
    """One summary of all in a collection, or of those whose names begin so; None of none."""
    found = get_default_graph().get_collection(key, scope)
    return merge(found, name=name) if found else None
