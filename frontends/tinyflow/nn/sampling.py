"""Dropout, embeddings, and losses that consider a random sample of the classes."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np

from passkit.errors import SettingError, ShapeError
from passkit.frontends.tinyflow.argument_checks import (
    axis_length,
    reject_arguments,
    require_float,
    require_int,
)
from passkit.frontends.tinyflow.deferred_calls import defer_if_unranked
from passkit.frontends.tinyflow.random_ops import draw_key
from passkit.frontends.tinyflow.shapes import parse_shape, require_shape
from passkit.frontends.tinyflow.tensors import (
    Tensor,
    as_entry,
    as_tensor,
    call_operator,
    convert_to_tensor,
    unique_name,
)
from passkit.graph.node import Entry, constant
from passkit.ops.helpers import make

MAX_TRIES = 4096
"""The most draws for a sample of distinct classes: all pairs of draws are compared."""

MAX_CLASSES = 2**63 - 1
"""The most classes, whose numbers are int64."""

MAX_RANKS = 2**20
"""The most classes whose probabilities are computed one by one."""


def dropout(
    x: Any,
    keep_prob: Any = None,
    noise_shape: Any = None,
    seed: int | None = None,
    name: str | None = None,
    rate: Any = None,
) -> Tensor:
    """Set elements to 0 at random, and scale the others up by 1 / keep_prob.

    Args:
        x: A tensor of floats.
        keep_prob: The probability of keeping an element, above 0 and up to 1; a number or a scalar
            tensor, such as a placeholder.
        noise_shape: For each axis its length for separate draws, 1 to share draws along it, or None
            for its length; by default all draws are separate.
        seed: An int makes the draws the same in every process, as `tf.set_random_seed` does; None
            by default.
        name: The name of the result; "dropout" by default.
        rate: 1 - keep_prob; one of the two is required.

    Returns:
        A tensor of the shape and dtype of ``x``, float64 for integers and bools; the draws differ
        from run to run. A ``keep_prob`` that is the number 1 gives a copy, of any dtype.

    Raises:
        SettingError: If both or none of ``keep_prob`` and ``rate`` are given, or one is neither a
            tensor nor a number in range, or ``seed`` is no int.
        ShapeError: If ``noise_shape`` has another length than the rank or does not broadcast, or a
            tensor ``keep_prob`` or ``rate`` has several elements.
        DTypeError: If ``x`` holds complex numbers, unless it is copied.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    if (keep_prob is None) == (rate is None):
        problem = "neither" if rate is None else f"both: {keep_prob} and {rate}"
        raise SettingError(f"dropout needs rate or keep_prob, 1 - rate, got {problem}")
    probability = keep_prob if rate is None else rate
    tensor = convert_to_tensor(x)
    if isinstance(probability, Tensor):
        fed_probability = make("reshape", probability.entry, shape=())
        keep_entry = fed_probability if rate is None else 1.0 - fed_probability
    else:
        keep_value = require_float("dropout", "keep_prob" if rate is None else "rate", probability)
        keep_value = keep_value if rate is None else 1.0 - keep_value
        if not 0 < keep_value <= 1:
            raise SettingError(f"dropout needs a rate from 0 to below 1, got {1 - keep_value}")
        if keep_value == 1:
            return call_operator("identity", "dropout", name, tensor.entry)
        keep_entry = constant(keep_value, "float32")
    if not tensor.dtype.is_float:
        tensor = Tensor(make("cast", tensor.entry, dtype="float64"), tensor._name, tensor.graph)
    keep_tensor, key_tensor = (
        Tensor(e, "dropout", tensor.graph) for e in (keep_entry, draw_key(seed))
    )
    return _apply_dropout(tensor, keep_tensor, key_tensor, noise_shape, name=name)


@defer_if_unranked("dropout")
def _apply_dropout(
    x: Tensor, keep_prob: Tensor, key_tensor: Tensor, noise_shape: Any, name: str | None = None
) -> Tensor:
    """Apply dropout; see `dropout`.

    Args:
        x: The tensor, of floats.
        keep_prob: The probability of keeping an element, a scalar tensor.
        key_tensor: The key of the draw, a scalar int64 tensor.
        noise_shape: For each axis its length for separate draws, 1 to share draws along it, or None
            for its length; None to draw for all elements.
        name: The requested name of the result; None for "dropout".

    Returns:
        A tensor of the shape of ``x``; the call is deferred if the rank of ``x`` is unknown.

    Raises:
        ShapeError: If ``noise_shape`` has another length than the rank or does not broadcast.
        ArgumentError: If ``name`` is no text.
    """
    entry, full_name = x.entry, unique_name(name, "dropout")
    sizes = require_shape(entry)
    if noise_shape is not None:
        noise = parse_shape(noise_shape, "dropout")
        if len(noise) != len(sizes):
            raise ShapeError(f"dropout needs {len(sizes)} extents as noise_shape, got {noise}")
        sizes = tuple(m if n is None else n for n, m in zip(noise, sizes, strict=True))
    draw = make("random_uniform", key_tensor.entry, shape=sizes)
    keep = make("cast", keep_prob.entry, dtype="float32")
    scaled = entry / make("cast", keep, dtype=str(entry.dtype))
    return as_tensor(make("where", draw < keep, scaled, 0.0), full_name)


@reject_arguments("ids outside are taken as the nearest inside", "validate_indices")
@reject_arguments("a table is one tensor", "partition_strategy")
def embedding_lookup(
    params: Any,
    ids: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    validate_indices: bool = True,
    max_norm: float | None = None,
) -> Tensor:
    """Return rows of a table.

    Args:
        params: The table, a tensor of shape (rows, …); or a list with one tensor.
        ids: The indices of rows, integers of any shape. Negative ones count from the end; those
            that are still outside of the table are clipped to it.
        partition_strategy: Unsupported; only the default is accepted.
        name: The name of the result; "embedding_lookup" by default.
        validate_indices: Unsupported; only the default is accepted.
        max_norm: The largest L2 norm of a row of the result, a number; None (default) for no limit.

    Returns:
        A tensor of the shape of ``ids``, then that of a row.

    Raises:
        SettingError: For a list of several tables or none, a ``max_norm`` that is no number, or an
            unsupported argument.
        GraphError: If ``max_norm`` is negative.
        DTypeError: If ``ids`` are no integers, ``max_norm`` limits rows that are no floats, or the
            table is text.
        ShapeError: If the table is a scalar or has no rows; with ``max_norm``, if a rank is
            unknown.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    if isinstance(params, (list, tuple)):
        if len(params) != 1:
            raise SettingError(f"embedding_lookup takes one table as params, got {len(params)}")
        params = params[0]
    table, indices = as_entry(params), as_entry(ids)
    if max_norm is None:
        return call_operator("gather", "embedding_lookup", name, table, indices, axis=0)
    rows = make("gather", table, indices, axis=0)
    axes = tuple(range(len(require_shape(indices, "embedding_lookup")), len(require_shape(rows))))
    limit = require_float("embedding_lookup", "max_norm", max_norm)
    return call_operator("clip_by_norm", "embedding_lookup", name, rows, clip_norm=limit, axis=axes)


# the log-uniform candidate sampler


def _class_probability(classes: Entry, range_max: int) -> Entry:
    """Return the log-uniform probability of each class, in float32.

    Args:
        classes: Class numbers from 0 to ``range_max`` - 1.
        range_max: The number of classes.
    """
    c = make("cast", classes, dtype="float32")
    return make("log", (c + 2.0) / (c + 1.0)) * (1 / log(range_max + 1))


def _expected_count(classes: Entry, range_max: int, tries: Entry, unique: bool) -> Entry:
    """Return the expected number of occurrences of each class among ``tries`` draws.

    Args:
        classes: Class numbers.
        range_max: Number of classes.
        tries: Number of draws, a float32 scalar.
        unique: Whether the sample is without repetition, so that each class counts at most once.

    Returns:
        A float32 entry of the shape of ``classes``.
    """
    p = _class_probability(classes, range_max)
    if not unique:
        return p * tries
    return -make("expm1", tries * make("log1p", -p))


def _number_of_tries(range_max: int, count_needed: int) -> int:
    """Return a number of draws that contains enough distinct classes.

    Class k of ``range_max`` is drawn with the log-uniform probability ``log((k + 2) / (k + 1)) /
    log(range_max + 1)``. Fewer than ``count_needed`` distinct classes occur about once in 10**9
    samples at most: the number is six standard deviations above what the mean needs.

    Args:
        range_max: Number of classes.
        count_needed: Number of distinct classes needed.

    Raises:
        SettingError: If over `MAX_TRIES` draws are needed.
    """
    ranks = np.arange(min(range_max, MAX_RANKS))
    probabilities = np.log((ranks + 2) / (ranks + 1)) / log(range_max + 1)
    others = 1 - log(len(ranks) + 1) / log(range_max + 1)
    count = count_needed
    while count <= MAX_TRIES:
        missed = np.exp(count * np.log1p(-probabilities))
        # Classes beyond the ranks are so rare that each of their draws is of another one.
        mean = (1 - missed).sum() + count * others
        spread = np.sqrt((missed * (1 - missed)).sum() + count * others)
        if mean - 6 * spread >= count_needed:
            return count
        count += max(16, count // 8)
    raise SettingError(
        f"a sample of {count_needed} of {range_max} classes without repetition needs over "
        f"{MAX_TRIES} tries, got unique=True; take fewer, or unique=False"
    )


def _draw_log_uniform(count: int, range_max: int, seed: int | None) -> Entry:
    """Draw classes: exp(u * log(range_max + 1)) - 1, rounded down, for uniform u.

    Args:
        count: The number of draws.
        range_max: The number of classes.
        seed: See `draw_key`.

    Returns:
        int64 numbers of shape (count), from 0 to ``range_max`` - 1.

    Raises:
        SettingError: If the seed is neither None nor an int.
    """
    u = make("random_uniform", draw_key(seed), shape=(count,))
    classes = make("cast", make("exp", u * log(range_max + 1)) - 1.0, dtype="int64")
    return make("clip", classes, 0, range_max - 1)


def _take_distinct(draws: Entry, count: int, sample_size: int) -> tuple[Entry, Entry]:
    """Take the first distinct draws.

    Args:
        draws: The draws, integers of shape (count).
        count: Their number.
        sample_size: The number of distinct draws to take.

    Returns:
        The distinct draws, of shape (sample_size), in the order in which they first occur; and how
        many draws it took to find them, an int32 scalar. If there are too few distinct draws, the
        rest of the sample is 0, and so is the number.
    """
    is_equal = make("equal", make("expand_dims", draws, axis=1), make("expand_dims", draws, axis=0))
    earlier = constant(np.tril(np.ones((count, count), bool), -1))
    is_repeated = make("reduce_any", make("logical_and", is_equal, earlier), axis=1)
    is_first = make("logical_not", is_repeated)
    rank_of_first = make("cumsum", make("cast", is_first, dtype="int32"), axis=0) - 1
    slots = constant(np.arange(sample_size, dtype=np.int32)[:, None])
    selects = make("equal", make("expand_dims", rank_of_first, axis=0), slots)
    selects = make("logical_and", selects, make("expand_dims", is_first, axis=0))
    chosen = make("where", selects, make("expand_dims", draws, axis=0), 0)
    number = constant(np.arange(1, count + 1, dtype=np.int32))
    last = make(
        "where",
        make("logical_and", make("equal", rank_of_first, sample_size - 1), is_first),
        number,
        0,
    )
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
    """Draw classes from a log-uniform distribution: frequent classes have small numbers.

    Source: TensorFlow's sampler. For distinct classes, draws are repeated until enough differ, and
    the expected count of a class is 1 - (1 - p)^tries.

    Args:
        true_classes: The true classes, integers of shape (…, num_true).
        num_true: The number of true classes of each example.
        num_sampled: The number of classes to draw.
        unique: Whether drawn classes are distinct.
        range_max: The number of classes.
        seed: An int makes the draws the same in every process, as `tf.set_random_seed` does; None
            by default.
        name: The name of the results; "LogUniformCandidateSampler" by default.

    Returns:
        Three tensors: the drawn classes, int64 of shape (num_sampled); the expected count of each
        true class, of the shape of ``true_classes``; and that of each drawn class, of shape
        (num_sampled).

    Raises:
        SettingError: If there are not ``num_true`` true classes for each example, ``num_sampled``
            or ``range_max`` is no int or below 1, the latter above `MAX_CLASSES`, ``seed`` is
            no int, or distinct draws would take more than `MAX_TRIES` tries.
        ShapeError: If ``true_classes`` is a scalar, or its rank is unknown.
        DTypeError: If the true classes are complex numbers.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    true, full_name = as_entry(true_classes), unique_name(name, "LogUniformCandidateSampler")
    function = "log_uniform_candidate_sampler"
    if axis_length(function, require_shape(true, function), -1) != num_true:
        raise SettingError(
            f"{function} needs num_true={num_true} true classes each, got {require_shape(true)[-1]}"
        )
    num_sampled = require_int(function, "num_sampled", num_sampled)
    range_max = require_int(function, "range_max", range_max)
    if min(num_sampled, range_max) < 1 or range_max > MAX_CLASSES:
        raise SettingError(
            f"{function} needs at least one draw, and one class to {MAX_CLASSES}, got "
            f"range_max={range_max} and num_sampled={num_sampled}"
        )
    if unique:
        count = _number_of_tries(range_max, num_sampled)
        sampled, tries_used = _take_distinct(
            _draw_log_uniform(count, range_max, seed), count, num_sampled
        )
        tries = make("cast", tries_used, dtype="float32")
    else:
        sampled = _draw_log_uniform(num_sampled, range_max, seed)
        tries = constant(num_sampled, "float32")
    entries = (
        sampled,
        _expected_count(true, range_max, tries, unique),
        _expected_count(sampled, range_max, tries, unique),
    )
    sampled_, true_, drawn_ = (
        as_tensor(make("stop_gradient", e) if e.dtype.is_float else e, full_name, index=k)  # type: ignore[union-attr]
        for k, e in enumerate(entries)
    )
    return sampled_, true_, drawn_


@reject_arguments("a table is one tensor", "partition_strategy")
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
    """Return the noise-contrastive loss: true classes against a random sample of classes.

    Source: Gutmann and Hyvärinen, Noise-contrastive estimation.

    Args:
        weights: The table of class weights, of shape (num_classes, length).
        biases: A vector of length num_classes.
        labels: The true classes, integers of shape (examples, num_true); floats are truncated.
        inputs: A tensor of shape (examples, length).
        num_sampled: The number of classes to draw; unused with ``sampled_values``.
        num_classes: The number of classes; unused with ``sampled_values``.
        num_true: The number of true classes of each example, at least 1; 1 by default.
        sampled_values: The three tensors of `log_uniform_candidate_sampler`; by default distinct
            classes are drawn anew in each run.
        remove_accidental_hits: Whether drawn classes that are true ones of an example do not count;
            False by default.
        partition_strategy: Unsupported; only the default is accepted.
        name: The name of the result; "nce_loss" by default.

    Returns:
        A vector with the loss of each example.

    Raises:
        ShapeError: If the shapes do not fit.
        SettingError: If the counts do not fit (see `log_uniform_candidate_sampler`), ``num_true``
            is no int or below 1, ``sampled_values`` are no three tensors, or an unsupported
            argument is set.
        DTypeError: If ``weights`` and ``inputs`` have different dtypes, or complex ones.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    num_true = require_int("nce_loss", "num_true", num_true)
    if num_true < 1:
        raise SettingError(f"nce_loss needs a num_true of at least 1, got {num_true}")
    full_name, table, bias, x = (
        unique_name(name, "nce_loss"),
        as_entry(weights),
        as_entry(biases),
        as_entry(inputs),
    )
    true = make("cast", as_entry(labels), dtype="int64")
    if sampled_values is None:
        sampled_values = log_uniform_candidate_sampler(
            as_tensor(true, f"{full_name}/labels"), num_true, num_sampled, True, num_classes
        )
    if not isinstance(sampled_values, (list, tuple)) or len(sampled_values) != 3:
        raise SettingError(
            f"nce_loss needs three tensors as sampled_values, got {sampled_values!r}; "
            f"tf.nn.log_uniform_candidate_sampler returns them"
        )
    sampled, expected, expected_drawn = (as_entry(v) for v in sampled_values)
    sampled = make("cast", sampled, dtype="int64")
    rows = make("gather", table, true, axis=0)
    true_logits = make("reduce_sum", rows * make("expand_dims", x, axis=1), axis=2)
    true_logits = true_logits + make("gather", bias, true, axis=0) - make("log", expected)
    sampled_logits = make("matmul", x, make("gather", table, sampled, axis=0), transpose_b=True)
    sampled_logits = (
        sampled_logits + make("gather", bias, sampled, axis=0) - make("log", expected_drawn)
    )
    if remove_accidental_hits:
        drawn = make("expand_dims", sampled, axis=(0, 1))
        hit = make("equal", make("expand_dims", true, axis=2), drawn)
        sampled_logits = make(
            "where",
            make("reduce_any", hit, axis=1),
            float(np.finfo(np.float32).min),
            sampled_logits,
        )
    one = make("ones_like", true_logits) * (1.0 / num_true)
    true_losses = make("sigmoid_cross_entropy_with_logits", one, true_logits)
    sampled_losses = make(
        "sigmoid_cross_entropy_with_logits", make("zeros_like", sampled_logits), sampled_logits
    )
    return as_tensor(
        make("reduce_sum", true_losses, axis=1) + make("reduce_sum", sampled_losses, axis=1),
        full_name,
    )
