"""Dropout, embeddings, and losses that look at a sample of the classes."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np

from passkit.errors import SettingError, ShapeError
from passkit.frontends.tinyflow.deferring import needs_ranks
from passkit.frontends.tinyflow.draws import key
from passkit.frontends.tinyflow.numbers import length, real, whole
from passkit.frontends.tinyflow.ranks import known_shape
from passkit.frontends.tinyflow.refusals import refuses
from passkit.frontends.tinyflow.shapes import extents_of
from passkit.frontends.tinyflow.tensors import (
    Tensor,
    convert_to_tensor,
    made,
    named,
    read,
    wrapped,
)
from passkit.graph.node import Entry, constant
from passkit.ops.helpers import make

MOST_TRIES = 4096
"""A sample without repetition compares all pairs of its tries."""


def dropout(
    x: Any,
    keep_prob: Any = None,
    noise_shape: Any = None,
    seed: int | None = None,
    name: str | None = None,
    rate: Any = None,
) -> Tensor:
    """``x`` with elements set to 0 at random, at this rate, and the others scaled up.

    ``keep_prob``, 1 - rate, and ``rate`` may be tensors, so that a feed turns dropout off.
    Raises: SettingError unless one of them is given.
    """
    if (keep_prob is None) == (rate is None):
        given = "neither" if rate is None else f"both: {keep_prob} and {rate}"
        raise SettingError(f"dropout needs rate or keep_prob, 1 - rate, got {given}")
    given = keep_prob if rate is None else rate
    tensor = convert_to_tensor(x)
    if isinstance(given, Tensor):
        chance = make("reshape", given.entry, shape=())
        kept = chance if rate is None else 1.0 - chance
    else:
        part = real("dropout", "keep_prob" if rate is None else "rate", given)
        part = part if rate is None else 1.0 - part
        if not 0 < part <= 1:
            raise SettingError(f"dropout needs a rate from 0 to below 1, got {1 - part}")
        if part == 1:
            return made("identity", "dropout", name, tensor.entry)
        kept = constant(part, "float32")
    part_kept, drawn_by = (Tensor(e, "dropout", tensor.graph) for e in (kept, key(seed)))
    return _dropped(tensor, part_kept, drawn_by, noise_shape, name=name)


@needs_ranks("dropout")
def _dropped(
    x: Tensor, kept: Tensor, drawn_by: Tensor, noise_shape: Any, name: str | None = None
) -> Tensor:
    """``x`` with a part ``kept``, scaled up; ``drawn_by`` is the key of the draw."""
    entry, full = x.entry, named(name, "dropout")
    sizes = known_shape(entry)
    if noise_shape is not None:
        noise = extents_of(noise_shape, "dropout")
        if len(noise) != len(sizes):
            raise ShapeError(f"dropout needs {len(sizes)} extents as noise_shape, got {noise}")
        sizes = tuple(m if n is None else n for n, m in zip(noise, sizes, strict=True))
    draw = make("random_uniform", drawn_by.entry, shape=sizes)
    part = make("cast", kept.entry, dtype="float32")
    scaled = entry / make("cast", part, dtype=str(entry.dtype))
    return wrapped(make("where", draw < part, scaled, 0.0), full)


@refuses("ids outside are taken as the nearest inside", "validate_indices")
@refuses("a table is one tensor", "partition_strategy")
def embedding_lookup(
    params: Any,
    ids: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    validate_indices: bool = True,
    max_norm: float | None = None,
) -> Tensor:
    """The rows of a table that ``ids`` name, shortened to ``max_norm`` where they are longer."""
    if isinstance(params, (list, tuple)):
        if len(params) != 1:
            raise SettingError(f"embedding_lookup takes one table as params, got {len(params)}")
        params = params[0]
    table, places = read(params), read(ids)
    if max_norm is None:
        return made("gather", "embedding_lookup", name, table, places, axis=0)
    rows = make("gather", table, places, axis=0)
    axes = tuple(range(len(known_shape(places, "embedding_lookup")), len(known_shape(rows))))
    most = real("embedding_lookup", "max_norm", max_norm)
    return made("clip_by_norm", "embedding_lookup", name, rows, clip_norm=most, axis=axes)


# classes drawn by their rank


def _chance(classes: Entry, range_max: int) -> Entry:
    """The probability of each class, of which the most frequent come first."""
    c = make("cast", classes, dtype="float32")
    return make("log", (c + 2.0) / (c + 1.0)) * (1 / log(range_max + 1))


def _expected(classes: Entry, range_max: int, tries: Entry, unique: bool) -> Entry:
    """How often each class is expected in the sample."""
    p = _chance(classes, range_max)
    if not unique:
        return p * tries
    return -make("expm1", tries * make("log1p", -p))


def _tries(range_max: int, wanted: int) -> int:
    """So many tries that fewer than ``wanted`` classes come up once in 10**9 samples at most."""
    ranks = np.arange(range_max)
    p = np.log((ranks + 2) / (ranks + 1)) / log(range_max + 1)
    count = wanted
    while count <= MOST_TRIES:
        missed = np.exp(count * np.log1p(-p))
        mean, spread = (1 - missed).sum(), np.sqrt((missed * (1 - missed)).sum())
        if mean - 6 * spread >= wanted:
            return count
        count += max(16, count // 8)
    raise SettingError(
        f"a sample of {wanted} of {range_max} classes without repetition needs over {MOST_TRIES} "
        f"tries, got unique=True; take fewer, or unique=False"
    )


def _drawn(count: int, range_max: int, seed: int | None) -> Entry:
    """Classes by a log-uniform distribution: exp(u log(range_max + 1)) - 1, rounded down."""
    u = make("random_uniform", key(seed), shape=(count,))
    found = make("cast", make("exp", u * log(range_max + 1)) - 1.0, dtype="int64")
    return make("clip", found, 0, range_max - 1)


def _without_repetition(found: Entry, count: int, wanted: int) -> tuple[Entry, Entry]:
    """The first ``wanted`` different ones of ``count`` draws, and how many draws they took."""
    same = make("equal", make("expand_dims", found, axis=1), make("expand_dims", found, axis=0))
    earlier = constant(np.tril(np.ones((count, count), bool), -1))
    again = make("reduce_any", make("logical_and", same, earlier), axis=1)
    new = make("logical_not", again)
    place = make("cumsum", make("cast", new, dtype="int32"), axis=0) - 1
    slots = constant(np.arange(wanted, dtype=np.int32)[:, None])
    mine = make("equal", make("expand_dims", place, axis=0), slots)
    mine = make("logical_and", mine, make("expand_dims", new, axis=0))
    chosen = make("where", mine, make("expand_dims", found, axis=0), 0)
    number = constant(np.arange(1, count + 1, dtype=np.int32))
    last = make("where", make("logical_and", make("equal", place, wanted - 1), new), number, 0)
    return make("reduce_sum", chosen, axis=1), make("reduce_sum", last)


def log_uniform_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Classes drawn as words are by rank; and how often true and drawn ones are expected.

    Source: TensorFlow's sampler; without repetition, draws are repeated until enough differ, and
    a class is expected 1 - (1 - p)**tries times.
    """
    true, full = read(true_classes), named(name, "LogUniformCandidateSampler")
    where = "log_uniform_candidate_sampler"
    if length(where, known_shape(true, where), -1) != num_true:
        raise SettingError(
            f"{where} needs num_true={num_true} true classes each, got {known_shape(true)[-1]}"
        )
    num_sampled = whole(where, "num_sampled", num_sampled)
    range_max = whole(where, "range_max", range_max)
    if min(num_sampled, range_max) < 1:
        raise SettingError(
            f"{where} needs at least one class and one draw, got range_max={range_max} and "
            f"num_sampled={num_sampled}"
        )
    if unique:
        count = _tries(range_max, num_sampled)
        sampled, taken = _without_repetition(_drawn(count, range_max, seed), count, num_sampled)
        tries = make("cast", taken, dtype="float32")
    else:
        sampled = _drawn(num_sampled, range_max, seed)
        tries = constant(num_sampled, "float32")
    found = (
        sampled,
        _expected(true, range_max, tries, unique),
        _expected(sampled, range_max, tries, unique),
    )
    sampled_, true_, drawn_ = (
        wrapped(make("stop_gradient", e) if e.dtype.is_float else e, full, index=k)  # type: ignore[union-attr]
        for k, e in enumerate(found)
    )
    return sampled_, true_, drawn_


@refuses("a table is one tensor", "partition_strategy")
def nce_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = False,
    partition_strategy: str = "mod",
    name: str = "nce_loss",
) -> Tensor:
    """The loss of telling true classes from drawn ones, for each example.

    Source: Gutmann and Hyvärinen, Noise-contrastive estimation.
    """
    full, table, bias, x = named(name, "nce_loss"), read(weights), read(biases), read(inputs)
    true = make("cast", read(labels), dtype="int64")
    if sampled_values is None:
        sampled_values = log_uniform_candidate_sampler(
            wrapped(true, f"{full}/labels"), num_true, num_sampled, True, num_classes
        )
    sampled, expected, expected_drawn = (read(v) for v in sampled_values)
    sampled = make("cast", sampled, dtype="int64")
    rows = make("gather", table, true, axis=0)
    near = make("reduce_sum", rows * make("expand_dims", x, axis=1), axis=2)
    near = near + make("gather", bias, true, axis=0) - make("log", expected)
    far = make("matmul", x, make("gather", table, sampled, axis=0), transpose_b=True)
    far = far + make("gather", bias, sampled, axis=0) - make("log", expected_drawn)
    if remove_accidental_hits:
        drawn = make("expand_dims", sampled, axis=(0, 1))
        hit = make("equal", make("expand_dims", true, axis=2), drawn)
        far = make("where", make("reduce_any", hit, axis=1), float(np.finfo(np.float32).min), far)
    one = make("ones_like", near) * (1.0 / num_true)
    good = make("sigmoid_cross_entropy_with_logits", one, near)
    bad = make("sigmoid_cross_entropy_with_logits", make("zeros_like", far), far)
    return wrapped(make("reduce_sum", good, axis=1) + make("reduce_sum", bad, axis=1), full)


