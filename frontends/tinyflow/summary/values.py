"""Summaries: tensors whose value in a run is a message for TensorBoard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from passkit.errors import DTypeError, GraphError
from passkit.frontends.tinyflow.argument_checks import collection_names, require_list
from passkit.frontends.tinyflow.graphs import GraphKeys, get_default_graph
from passkit.frontends.tinyflow.summary.messages import Summary
from passkit.frontends.tinyflow.tensors import (
    HostTensor,
    NumpyArray,
    Tensor,
    convert_to_tensor,
    unique_name,
)
from passkit.values import arguments


def _bucket_limits() -> NumpyArray:
    """Return the upper edges of buckets, ascending.

    They are powers of 1.1 times 1e-12, up to 1e20, of both signs, 0, and the largest float64.
    """
    ahead = 1e-12 * 1.1 ** np.arange(774)
    return np.concatenate([-ahead[::-1], [0.0], ahead, [np.finfo(np.float64).max]])


_LIMITS = _bucket_limits()


def scalar(
    name: str, tensor: Any, collections: Sequence[str] | None = None, family: str | None = None
) -> Tensor:
    """Create a summary of a number, which TensorBoard plots over steps.

    Args:
        name: The tag of the summary, numbered if it is taken.
        tensor: A scalar, a tensor or a number.
        collections: The names of the collections to add it to; [GraphKeys.SUMMARIES] by default.
        family: The prefix of the tag; none by default.

    Returns:
        A tensor whose value in a run is the bytes of a message for `FileWriter.add_summary`.

    Raises:
        GraphError: For a tensor that is no scalar.
        ShapeError: For a tensor of unknown rank.
        DTypeError: For a tensor of text or complex numbers.
        ArgumentError: For a value that is neither a tensor nor numbers, and if ``name`` is no text.
        SettingError: If ``collections`` holds no names.
    """
    value = convert_to_tensor(tensor)
    if len(value.shape):
        raise GraphError(
            f"summary.scalar '{name}' needs a scalar, got {value!r}; summary.histogram takes any"
        )

    def encode(tag: str, number: Any) -> Any:
        return Summary(value=[{"tag": tag, "simple_value": float(number)}]).SerializeToString()

    return _create_summary(name, value, collections, family, encode)


def histogram(
    name: str, values: Any, collections: Sequence[str] | None = None, family: str | None = None
) -> Tensor:
    """Create a summary of the distribution of a tensor's elements.

    Args:
        name: The tag of the summary, numbered if it is taken.
        values: A tensor of any shape.
        collections: The names of the collections to add it to; [GraphKeys.SUMMARIES] by default.
        family: The prefix of the tag; none by default.

    Returns:
        A tensor whose value in a run is the bytes of a message for `FileWriter.add_summary`.

    Raises:
        GraphError: In a run, if an element is not finite.
        DTypeError: For a tensor of text or complex numbers.
        ArgumentError: For a value that is neither a tensor nor numbers, and if ``name`` is no text.
        SettingError: If ``collections`` holds no names.
    """

    def encode(tag: str, array: Any) -> Any:
        return Summary(
            value=[{"tag": tag, "histo": _encode_histogram(tag, array)}]
        ).SerializeToString()

    return _create_summary(name, convert_to_tensor(values), collections, family, encode)


def _encode_histogram(tag: str, array: Any) -> dict[str, Any]:
    """Return the fields of a Histogram message for the elements of an array, by name.

    Args:
        tag: The tag of the summary, for the message of an error.
        array: The numbers.

    Raises:
        GraphError: If an element is not finite.
    """
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
    name: str, value: Tensor, collections: Sequence[str] | None, family: str | None, encode: Any
) -> Tensor:
    """Create a summary tensor, and add it to collections.

    Args:
        name: The tag.
        value: The tensor to fetch.
        collections: The names of the collections to add the summary to; None for SUMMARIES.
        family: The prefix of the tag.
        encode: Takes the tag and the value of the tensor, and returns the message's bytes.

    Returns:
        The summary.

    Raises:
        ArgumentError: If ``name`` is no text.
        SettingError: If ``collections`` holds no names.
        DTypeError: If ``value`` holds complex numbers.
    """
    if value.dtype.kind == "c":
        raise DTypeError(f"a summary needs real numbers, got {value!r}; tf.abs gives magnitudes")
    default_keys = [GraphKeys.SUMMARIES]
    keys = collection_names("a summary", default_keys if collections is None else collections)
    clean = arguments.text("summary: name", name).replace(":", "_").replace(" ", "_")
    tag = unique_name(f"{family}/{clean}" if family else clean, "summary")
    graph = get_default_graph()
    summary = HostTensor([value], lambda array: encode(tag, array), tag, graph)
    for key in keys:
        graph.add_to_collection(key, summary)
    return summary


def merge(
    inputs: Sequence[Tensor], collections: Sequence[str] | None = None, name: str | None = None
) -> Tensor:
    """Combine summaries into one.

    Args:
        inputs: The summaries.
        collections: The names of the collections to add the result to; none by default.
        name: The name of the result; "Merge" by default.

    Returns:
        A tensor whose value in a run is the bytes of one message with the values of all.

    Raises:
        GraphError: If ``inputs`` is no list, or has an element that is no summary.
        ArgumentError: If ``name`` is no text.
        SettingError: If ``collections`` holds no names.
    """
    summaries = require_list("summary.merge", "inputs", inputs)
    for summary in summaries:
        if not isinstance(summary, HostTensor):
            raise GraphError(f"summary.merge needs summaries, got {summary!r}")
    graph, full_name = get_default_graph(), unique_name(name, "Merge")
    # Messages written one after the other are one message with the values of all.
    merged = HostTensor(summaries, lambda *parts: b"".join(parts), full_name, graph)
    for key in collection_names("summary.merge", collections):
        graph.add_to_collection(key, merged)
    return merged


def merge_all(
    key: str = GraphKeys.SUMMARIES, scope: str | None = None, name: str | None = None
) -> Tensor | None:
    """Combine the summaries of a collection into one.

    Args:
        key: The collection; GraphKeys.SUMMARIES by default.
        scope: If given, only summaries whose names begin with it are combined; all by default.
        name: The name of the result; "Merge" by default.

    Returns:
        A tensor whose value in a run is the bytes of one message with the values of all; None if
        there are no summaries.

    Raises:
        GraphError: If the collection holds something else than summaries.
        ArgumentError: If ``key`` is no text, ``scope`` neither a text nor None, or, where there are
            summaries, ``name`` no text.
    """
    summaries = get_default_graph().get_collection(key, scope)
    return merge(summaries, name=name) if summaries else None
