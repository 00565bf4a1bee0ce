"""Random tensors, drawn anew in each run.

Each operator has a key, made of the graph's seed and its own. A run adds its number to the key, so
that every run of a session draws other numbers, and another session draws the same again.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

import numpy as np

from passkit.errors import SettingError
from passkit.frontends.tinyflow.argument_checks import require_float, require_int
from passkit.frontends.tinyflow.deferred_calls import defer_call, depends_on_deferred
from passkit.frontends.tinyflow.dtypes import as_dtype
from passkit.frontends.tinyflow.graphs import get_default_graph
from passkit.frontends.tinyflow.shapes import parse_shape
from passkit.frontends.tinyflow.tensors import Tensor, as_entry, call_operator, unique_name
from passkit.graph.node import Entry
from passkit.graph.node import constant as constant_entry

ITERATION_KEY_STRIDE = 0x9E3779B97F4A7C1
"""The distance of the keys of one operator in two loop iterations: no multiple of small numbers."""


def draw_key(seed: int | None) -> Entry:
    """Create the key of a new random operator, which its draws are computed from in a run.

    Advance the graph's count of random operators.

    Args:
        seed: The seed of the operator. Without it and a seed of the graph, keys differ from process
            to process.

    Returns:
        A scalar int64 entry: the operator's key plus the number of the run, and in a loop plus a
        multiple of the iteration's number.

    Raises:
        SettingError: If the seed is neither None nor an int.
        ShapeError: If it is a `Dimension` that is unknown.
    """
    seed = None if seed is None else require_int("a random function", "seed", seed)
    graph = get_default_graph()
    number = graph.next_draw()
    if seed is None and graph.seed is None:
        operator_key = secrets.randbits(62)
    else:
        words = repr((graph.seed, seed if seed is not None else ("number", number))).encode()
        operator_key = int.from_bytes(hashlib.sha256(words).digest()[:8], "little") >> 2
    key: Entry = graph.run_number + constant_entry(operator_key, "int64")
    if graph.iteration_number is not None:
        key = key + graph.iteration_number * constant_entry(ITERATION_KEY_STRIDE, "int64")
    return key


def random_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = "float32",
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draw numbers from a normal distribution.

    Args:
        shape: The shape of the result: ints, or sizes computed from `tf.shape`.
        mean: The mean, a number, or a tensor or array that broadcasts; 0 by default.
        stddev: The standard deviation, a number, or a tensor or array that broadcasts; 1 by
            default.
        dtype: The dtype of the result, a float; float32 by default.
        seed: An int makes the draws the same in every process, as `tf.set_random_seed` does; None
            by default.
        name: The name of the result; "random_normal" by default.

    Returns:
        A tensor of this shape and dtype, drawn anew in each run. It is broadcast and promoted with
        a tensor ``mean`` or ``stddev``.

    Raises:
        ShapeError: If an extent is None, negative, too large, no int, or a tensor that only a run
            computes, or a tensor ``mean`` or ``stddev`` does not broadcast.
        DTypeError: If ``dtype`` is no float, or ``mean`` or ``stddev`` is complex or text.
        SettingError: If ``mean`` or ``stddev`` is neither a number, an array nor a tensor, or
            ``seed`` is no int.
    """
    return _draw_normal("random_normal", shape, mean, stddev, dtype, seed, name)


def truncated_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = "float32",
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draw normal numbers of which none is more than two standard deviations from the mean.

    Args:
        shape: The shape of the result: ints, or sizes computed from `tf.shape`.
        mean: The mean before truncation, a number, or a tensor or array that broadcasts; 0 by
            default.
        stddev: The standard deviation before truncation, a number, or a tensor or array that
            broadcasts; 1 by default.
        dtype: The dtype of the result, a float; float32 by default.
        seed: An int makes the draws the same in every process, as `tf.set_random_seed` does; None
            by default.
        name: The name of the result; "truncated_normal" by default.

    Returns:
        A tensor of this shape and dtype, drawn anew in each run. It is broadcast and promoted with
        a tensor ``mean`` or ``stddev``.

    Raises:
        ShapeError: If an extent is None, negative, too large, no int, or a tensor that only a run
            computes, or a tensor ``mean`` or ``stddev`` does not broadcast.
        DTypeError: If ``dtype`` is no float, or ``mean`` or ``stddev`` is complex or text.
        SettingError: If ``mean`` or ``stddev`` is neither a number, an array nor a tensor, or
            ``seed`` is no int.
    """
    return _draw_normal("truncated_normal", shape, mean, stddev, dtype, seed, name)


def _draw_normal(
    function: str,
    shape: Any,
    mean: Any,
    stddev: Any,
    dtype: Any,
    seed: int | None,
    name: str | None,
    key_tensor: Tensor | None = None,
) -> Tensor:
    """Draw normal numbers.

    Args:
        function: "random_normal" or "truncated_normal".
        shape: The shape of the result. If it depends on a deferred call, this one is deferred, too.
        mean: The mean, a number, an array or a tensor.
        stddev: The standard deviation, a number, an array or a tensor.
        dtype: The dtype of the result.
        seed: The seed, see `draw_key`; unused if ``key_tensor`` is set.
        name: The requested name of the result; None for ``function``.
        key_tensor: The key, if it was created before the call was deferred.

    Returns:
        A tensor of ``shape`` and ``dtype``; it is broadcast and promoted with a tensor ``mean`` or
        ``stddev``.

    Raises:
        ShapeError: If an extent is None, negative, too large, no int, or a tensor that only a run
            computes, or a tensor ``mean`` or ``stddev`` does not broadcast.
        DTypeError: If ``dtype`` is no float, or ``mean`` or ``stddev`` is complex or text.
        SettingError: If ``mean`` or ``stddev`` is neither a number, an array nor a tensor, or
            ``seed`` is no int.
    """
    if depends_on_deferred(shape):
        arguments = {
            "function": function,
            "shape": shape,
            "mean": mean,
            "stddev": stddev,
            "dtype": dtype,
            "seed": seed,
            "key_tensor": _draw_key_tensor(seed),
        }
        outputs = [(None, as_dtype(dtype))]
        return defer_call(_draw_normal, arguments, outputs, unique_name(name, function))[0]
    key = draw_key(seed) if key_tensor is None else key_tensor.entry
    op = "random_truncated_normal" if function == "truncated_normal" else function
    params: dict[str, Any] = {"shape": parse_shape(shape, function), "dtype": as_dtype(dtype).name}
    numbers = [
        v if isinstance(v, (Tensor, np.ndarray)) else require_float(function, argument, v)
        for argument, v in (("mean", mean), ("stddev", stddev))
    ]
    if any(isinstance(v, (Tensor, np.ndarray)) for v in numbers):
        scaled: Tensor = call_operator(op, function, None, key, **params) * stddev + mean
        return scaled if name is None else call_operator("identity", function, name, scaled.entry)
    params |= {"mean": numbers[0], "stddev": numbers[1]}
    return call_operator(op, function, name, key, **params)


def _draw_key_tensor(seed: int | None) -> Tensor:
    """Create a key that a deferred call keeps, so that resolving it again repeats the draws.

    Raises:
        SettingError: If the seed is neither None nor an int.
    """
    return Tensor(draw_key(seed), "key", get_default_graph())


def random_uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = "float32",
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draw numbers from a uniform distribution.

    Args:
        shape: The shape of the result: ints, or sizes computed from `tf.shape`.
        minval: The smallest number; 0 by default.
        maxval: The limit, which is not drawn; 1 by default for floats, required for integers.
        dtype: The dtype of the result, a float or an integer; float32 by default.
        seed: An int makes the draws the same in every process, as `tf.set_random_seed` does; None
            by default.
        name: The name of the result; "random_uniform" by default.

    Returns:
        A tensor of this shape and dtype, drawn anew in each run.

    Raises:
        SettingError: For integers without ``maxval``, for bounds that are no numbers, such as
            tensors, or no ints for an integer ``dtype``, and for a ``seed`` that is no int.
        GraphError: If ``minval`` is not below ``maxval``, or an integer ``dtype`` does not hold
            them.
        ShapeError: If an extent is None, negative, too large, no int, or a tensor that only a run
            computes.
        DTypeError: If ``dtype`` is neither a float nor an integer.
    """
    return _draw_uniform(shape, minval, maxval, dtype, seed, name)


def _draw_uniform(
    shape: Any,
    minval: Any,
    maxval: Any,
    dtype: Any,
    seed: int | None,
    name: str | None,
    key_tensor: Tensor | None = None,
) -> Tensor:
    """Draw uniform numbers; see `random_uniform`.

    Args:
        shape: The shape of the result. If it depends on a deferred call, this one is deferred, too.
        minval: The smallest number.
        maxval: The limit, which is not drawn; None for 1 of floats.
        dtype: The dtype of the result, a float or an integer.
        seed: The seed, see `draw_key`; unused if ``key_tensor`` is set.
        name: The requested name of the result; None for "random_uniform".
        key_tensor: The key, if it was created before the call was deferred.

    Raises:
        SettingError: For integers without ``maxval``, for bounds that are no numbers, or no ints
            for an integer ``dtype``, and for a ``seed`` that is no int.
        GraphError: If ``minval`` is not below ``maxval``, or an integer ``dtype`` does not hold
            them.
        ShapeError: If an extent is None, negative, too large, no int, or a tensor that only a run
            computes.
        DTypeError: If ``dtype`` is neither a float nor an integer.
    """
    drawn_dtype = as_dtype(dtype)
    if depends_on_deferred(shape):
        arguments = {
            "shape": shape,
            "minval": minval,
            "maxval": maxval,
            "dtype": dtype,
            "seed": seed,
            "key_tensor": _draw_key_tensor(seed),
        }
        return defer_call(
            _draw_uniform, arguments, [(None, drawn_dtype)], unique_name(name, "random_uniform")
        )[0]
    key = draw_key(seed) if key_tensor is None else key_tensor.entry
    sizes = parse_shape(shape, "random_uniform")
    if drawn_dtype.is_integer:
        if maxval is None:
            raise SettingError(f"random_uniform of {drawn_dtype} needs maxval, got None")
        params: dict[str, Any] = {
            "low": require_int("random_uniform", "minval", minval),
            "high": require_int("random_uniform", "maxval", maxval),
        }
        op = "random_integers"
    else:
        params = {
            "low": require_float("random_uniform", "minval", minval),
            "high": 1.0 if maxval is None else require_float("random_uniform", "maxval", maxval),
        }
        op = "random_uniform"
    return call_operator(
        op, "random_uniform", name, key, shape=sizes, dtype=drawn_dtype.name, **params
    )


def random_shuffle(value: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """Permute the slices along the first axis at random, anew in each run.

    Args:
        value: A tensor of rank 1 or more.
        seed: An int makes the draws the same in every process, as `tf.set_random_seed` does; None
            by default.
        name: The name of the result; "RandomShuffle" by default.

    Returns:
        A tensor of the shape and dtype of ``value``.

    Raises:
        ShapeError: If ``value`` is a scalar.
        SettingError: If ``seed`` is no int.
        ArgumentError: For a value that is neither a tensor nor numbers.
        DTypeError: For a tensor of text.
    """
    return call_operator("shuffle", "RandomShuffle", name, as_entry(value), draw_key(seed))
