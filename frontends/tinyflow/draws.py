"""Random tensors: drawn anew in each run, the same ones for the same seeds and number of the run.

Each operator has a key, made of the graph's seed and its own; in a run the number of the run is
added, so that every run of a session draws others, and another session draws the same again.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

from passkit.errors import SettingError
from passkit.frontends.tinyflow.deferring import awaits_numbers, call_later
from passkit.frontends.tinyflow.graphs import get_default_graph
from passkit.frontends.tinyflow.numbers import real, whole
from passkit.frontends.tinyflow.shapes import extents_of
from passkit.frontends.tinyflow.tensors import Tensor, made, named, read
from passkit.frontends.tinyflow.types import as_dtype
from passkit.graph.node import Entry
from passkit.graph.node import constant as constant_entry

ROUND = 0x9E3779B97F4A7C1
"""How far apart the keys of one draw are in two rounds of a loop: no multiple of small numbers."""


def key(seed: int | None) -> Entry:
    """The key of a draw of this run. Without any seed it differs from process to process."""
    graph = get_default_graph()
    number = graph.next_draw()
    if seed is None and graph.seed is None:
        own = secrets.randbits(62)
    else:
        words = repr((graph.seed, seed if seed is not None else ("number", number))).encode()
        own = int.from_bytes(hashlib.sha256(words).digest()[:8], "little") >> 2
    found: Entry = graph.run_number + constant_entry(own, "int64")
    if graph.round_number is not None:
        found = found + graph.round_number * constant_entry(ROUND, "int64")
    return found


def random_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = "float32",
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Normal draws of this mean and standard deviation."""
    return _spread("random_normal", shape, mean, stddev, dtype, seed, name)


def truncated_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = "float32",
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Normal draws, none more than two standard deviations from the mean."""
    return _spread("truncated_normal", shape, mean, stddev, dtype, seed, name)


def _spread(
    what: str,
    shape: Any,
    mean: Any,
    stddev: Any,
    dtype: Any,
    seed: int | None,
    name: str | None,
    drawn_by: Tensor | None = None,
) -> Tensor:
    """Draws around a mean; ``drawn_by`` is their key, if it was made before."""
    if awaits_numbers(shape):
        given = {
            **{"what": what, "shape": shape, "mean": mean, "stddev": stddev, "dtype": dtype},
            **{"seed": seed, "drawn_by": _key_tensor(seed)},
        }
        return call_later(_spread, given, [(None, as_dtype(dtype))], named(name, what))[0]
    own = key(seed) if drawn_by is None else drawn_by.entry
    op = "random_truncated_normal" if what == "truncated_normal" else what
    params: dict[str, Any] = {"shape": extents_of(shape, what), "dtype": as_dtype(dtype).name}
    if isinstance(mean, Tensor) or isinstance(stddev, Tensor):
        found: Tensor = made(op, what, None, own, **params) * stddev + mean
        return found
    params |= {"mean": real(what, "mean", mean), "stddev": real(what, "stddev", stddev)}
    return made(op, what, name, own, **params)


def _key_tensor(seed: int | None) -> Tensor:
    """A key as a tensor, for draws whose shape a run tells: they are the same in every plan."""
    return Tensor(key(seed), "key", get_default_graph())


def random_uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = "float32",
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draws spread evenly from ``minval`` to below ``maxval``, which is 1 for floats.

    Raises: SettingError for whole numbers without ``maxval``.
    """
    return _evenly(shape, minval, maxval, dtype, seed, name)


def _evenly(
    shape: Any,
    minval: Any,
    maxval: Any,
    dtype: Any,
    seed: int | None,
    name: str | None,
    drawn_by: Tensor | None = None,
) -> Tensor:
    """Even draws; ``drawn_by`` is their key, if it was made before."""
    wanted = as_dtype(dtype)
    if awaits_numbers(shape):
        given = {
            **{"shape": shape, "minval": minval, "maxval": maxval, "dtype": dtype},
            **{"seed": seed, "drawn_by": _key_tensor(seed)},
        }
        return call_later(_evenly, given, [(None, wanted)], named(name, "random_uniform"))[0]
    own = key(seed) if drawn_by is None else drawn_by.entry
    sizes = extents_of(shape, "random_uniform")
    if wanted.is_integer:
        if maxval is None:
            raise SettingError(f"random_uniform of {wanted} needs maxval, got None")
        params: dict[str, Any] = {
            "low": whole("random_uniform", "minval", minval),
            "high": whole("random_uniform", "maxval", maxval),
        }
        op = "random_integers"
    else:
        params = {
            "low": real("random_uniform", "minval", minval),
            "high": 1.0 if maxval is None else real("random_uniform", "maxval", maxval),
        }
        op = "random_uniform"
    return made(op, "random_uniform", name, own, shape=sizes, dtype=wanted.name, **params)


def random_shuffle(value: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """The rows of ``value`` in an order drawn for each run."""
    return made("shuffle", "RandomShuffle", name, read(value), key(seed))
