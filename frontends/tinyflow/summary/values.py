"""Summaries: tensors of which a run makes what TensorBoard shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from passkit.errors import GraphError
from passkit.frontends.tinyflow.graphs import GraphKeys, get_default_graph
from passkit.frontends.tinyflow.summary.messages import Summary
from passkit.frontends.tinyflow.tensors import HostTensor, Tensor, convert_to_tensor, unique_name

NumpyArray = np.ndarray[Any, Any]


def _bucket_limits() -> NumpyArray:
    """The edges of buckets: each a tenth wider than the last, from 1e-12 to 1e20, both signs."""
    ahead = 1e-12 * 1.1 ** np.arange(774)
    return np.concatenate([-ahead[::-1], [0.0], ahead, [np.finfo(np.float64).max]])


_LIMITS = _bucket_limits()


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

    return _create_summary(name, value, collections, family, written)


def histogram(
    name: str, values: Any, collections: Sequence[str] | None = None, family: str | None = None
) -> Tensor:
    """The distribution of a tensor's elements, to be drawn over steps."""

    def written(tag: str, array: Any) -> Any:
        return Summary(
            value=[{"tag": tag, "histo": _encode_histogram(tag, array)}]
        ).SerializeToString()

    return _create_summary(name, convert_to_tensor(values), collections, family, written)


def _encode_histogram(tag: str, array: Any) -> dict[str, Any]:
    """The elements by buckets. Raises: GraphError for numbers that are not finite."""
    flat = np.asarray(array, np.float64).ravel()
    if not np.isfinite(flat).all():
        raise GraphError(
            f"summary.histogram '{tag}' needs finite numbers, got "
            f"{int((~np.isfinite(flat)).sum())} others; Session(check_numerics=True) finds where "
            f"they come from"
        )
    buckets = np.searchsorted(_LIMITS, flat, side="right")
    counts = np.bincount(buckets, minlength=len(_LIMITS))
    used = np.flatnonzero(counts)
    used_range = slice(max(used[0] - 1, 0), used[-1] + 1) if len(used) else slice(0, 1)
    return {
        "min": float(flat.min()) if flat.size else 0.0,
        "max": float(flat.max()) if flat.size else 0.0,
        "num": float(flat.size),
        "sum": float(flat.sum()),
        "sum_squares": float(flat @ flat),
        "bucket_limit": _LIMITS[used_range].tolist(),
        "bucket": counts[used_range].astype(float).tolist(),
    }


def _create_summary(
    name: str, value: Tensor, collections: Sequence[str] | None, family: str | None, written: Any
) -> Tensor:
    clean = name.replace(":", "_").replace(" ", "_")
    tag = unique_name(f"{family}/{clean}" if family else clean, "summary")
    graph = get_default_graph()
    summary = HostTensor([value], lambda array: written(tag, array), tag, graph)
    for key in [GraphKeys.SUMMARIES] if collections is None else collections:
        graph.add_to_collection(key, summary)
    return summary


def merge(
    inputs: Sequence[Tensor], collections: Sequence[str] | None = None, name: str | None = None
) -> Tensor:
    """One summary of several."""
    graph, full_name = get_default_graph(), unique_name(name, "Merge")
    # Messages written one after the other are one message with the values of all.
    summary = HostTensor(list(inputs), lambda *parts: b"".join(parts), full_name, graph)
    for key in collections or ():
        graph.add_to_collection(key, summary)
    return summary


def merge_all(
    key: str = GraphKeys.SUMMARIES, scope: str | None = None, name: str | None = None
) -> Tensor | None:
    """One summary of all in a collection, or of those whose names begin so; None of none."""
    summaries = get_default_graph().get_collection(key, scope)
    return merge(summaries, name=name) if summaries else None
