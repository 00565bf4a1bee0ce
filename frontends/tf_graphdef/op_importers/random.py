"""Importers of stateless random operators: TensorFlow's Philox draws, bit for bit.

Source: Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3. A draw takes blocks of four
32-bit words from its counter on. Stateful random operators have context importers instead, since
their results differ in each call.
"""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.imported_value import ImportCall, ImportedValue
from passkit.frontends.tf_graphdef.operators import ops
from passkit.frontends.tf_graphdef.registry import ImportResult, op_importer
from passkit.graph.node import Entry, constant
from passkit.values.dtype import dtype_of
from passkit.values.size import Extent, numel

SCRAMBLE = 0x02461E29_3EC8F720
"""Key under which seeds are turned into keys and counters."""

PHILOX, AUTOMATIC = 1, 3
FRACTION = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}
"""Bits of a uniform draw: the fraction of a number in [1, 2)."""


def _element(x: Entry, k: int) -> Entry:
    """Return element k of the vector ``x`` as a scalar.

    Raises:
        ShapeError: If ``x`` has another rank than 1, or no element k.
    """
    return ops.reshape(ops.slice(x, begin=(k,), size=(1,)), shape=())  # type: ignore[no-any-return]


def _state(seed: Entry) -> tuple[Entry, Entry]:
    """Return the Philox key and the counter of a seed.

    Args:
        seed: Vector of two integers.

    Returns:
        The key, int64 of shape (1,), and the counter as two int64 halves, the lower (0) first.

    Raises:
        ShapeError: If ``seed`` is not a vector of at least two elements.
        DTypeError: If it is complex.
    """
    seeds = ops.cast(seed, dtype="int64")
    words = [
        ops.philox(
            _element(seeds, 0), _element(seeds, 1), constant(SCRAMBLE, dtype_of("int64")), half=h
        )
        for h in (0, 1)
    ]
    high_half = ops.reshape(words[1], shape=(1,))
    zero = constant(np.zeros(1, np.int64), dtype_of("int64"))
    key = ops.reshape(words[0], shape=(1,))
    return key, ops.concat(zero, high_half, axis=0)


def _unsigned(x: Entry) -> Entry:
    """Return ``x`` cast to uint64, in which negative integers wrap.

    Raises:
        DTypeError: If ``x`` is complex.
    """
    return ops.cast(x, dtype="uint64")  # type: ignore[no-any-return]


@op_importer("StatelessRandomGetKeyCounter")
def _key_counter(call: ImportCall, seed: ImportedValue) -> ImportResult:
    """Import StatelessRandomGetKeyCounter: key and counter of a seed, as uint64 vectors.

    ``call`` is the node.

    Returns:
        The key, of shape (1,), and the counter, of shape (2,) with the lower half first.

    Raises:
        ModelError: If ``seed`` has another rank than 1, or an unknown one.
        ShapeError: If it has fewer than two elements.
        DTypeError: If it is complex.
    """
    call.rank(seed, 1)
    return tuple(_unsigned(e) for e in _state(seed.entry))


@op_importer("StatelessRandomGetKeyCounterAlg")
def _key_counter_alg(call: ImportCall, seed: ImportedValue) -> ImportResult:
    """Import StatelessRandomGetKeyCounterAlg: key and counter of a seed, and 1 for Philox.

    Key and counter are uint64 vectors of 1 and 2 elements, the third result is a known int32.
    ``call`` is the node.

    Raises:
        ModelError: If ``seed`` has another rank than 1, or an unknown one, or the memory budget of
            the import is exceeded.
        ShapeError: If it has fewer than two elements.
        DTypeError: If it is complex.
    """
    call.rank(seed, 1)
    key, counter = (_unsigned(e) for e in _state(seed.entry))
    return key, counter, call.known_value(dtype_of("int32"), PHILOX)


@op_importer("StatelessRandomGetAlg")
def _algorithm(call: ImportCall) -> ImportResult:
    """Import StatelessRandomGetAlg: 1, the number of Philox, as a known int32 scalar.

    ``call`` is the node.

    Raises:
        ModelError: If the memory budget of the import is exceeded.
    """
    return call.known_value(dtype_of("int32"), PHILOX)


def _words(key: Entry, counter: Entry, count: Extent) -> tuple[Entry, Extent]:
    """Return at least ``count`` random words of 32 bits, in blocks of four.

    Args:
        key: Vector of one 64-bit number.
        counter: Vector of two 64-bit halves; it is incremented for each block.
        count: Number of words needed.

    Returns:
        The words as int64 of shape (blocks, 4), and the number of blocks.

    Raises:
        ShapeError: If ``key`` or ``counter`` is not a vector, or too short.
        DTypeError: If one of them is complex.
    """
    blocks = (count + 3) // 4
    low = _unsigned(_element(counter, 0)) + ops.arange(0, blocks, dtype="uint64")
    carry = ops.cast(ops.less(low, _unsigned(_element(counter, 0))), dtype="int64")
    high = ops.cast(_element(counter, 1), dtype="int64") + carry
    low_word, key_word = ops.cast(low, dtype="int64"), ops.cast(_element(key, 0), dtype="int64")
    halves = [ops.philox(low_word, high, key_word, half=h) for h in (0, 1)]
    words = [w for h in halves for w in (h & 0xFFFFFFFF, ops.right_shift(h, 32) & 0xFFFFFFFF)]
    return ops.stack(*words, axis=1), blocks


def _take_words(words: Entry, shape: tuple[Extent, ...], count: Extent) -> Entry:
    """Return the first ``count`` elements of ``words``, in row-major order, reshaped to ``shape``.

    ``count`` is the number of elements of ``shape``.

    Raises:
        ShapeError: If an extent is negative, or there are fewer words than ``count``.
    """
    flat = ops.reshape(words, shape=(-1,))
    return ops.reshape(ops.slice(flat, begin=(0,), size=(count,)), shape=shape)  # type: ignore[no-any-return]


def _word_pairs(words: Entry, blocks: Extent) -> tuple[Entry, Entry]:
    """Return the first and second word of each pair, as two vectors of length 2 * blocks.

    Args:
        words: Shape (blocks, 4).
        blocks: Number of blocks.
    """
    word_pairs = ops.reshape(words, shape=(2 * blocks, 2))
    size = (2 * blocks, 1)
    return tuple(
        ops.reshape(ops.slice(word_pairs, begin=(0, k), size=size), shape=(2 * blocks,))
        for k in (0, 1)
    )


def _uniform(dtype: str, words: Entry, blocks: Extent) -> Entry:
    """Return uniform draws in [0, 1) from the lowest bits of a word; two words for float64.

    Args:
        dtype: Floating dtype, whose fraction says how many bits are used.
        words: Words of 32 bits, of shape (blocks, 4).
        blocks: Number of blocks.

    Returns:
        Draws in float64 or else float32, of the shape of words, or (2 * blocks,) for float64.

    Raises:
        KeyError: If ``dtype`` is no floating dtype.
    """
    bits = FRACTION[dtype]
    if dtype == "float64":
        high, low = _word_pairs(words, blocks)
        words = low + ops.left_shift(high & 0xFFFFF, 32)
    dtype_computed = "float64" if dtype == "float64" else "float32"
    return ops.cast(words & (2**bits - 1), dtype=dtype_computed) * 2.0**-bits  # type: ignore[no-any-return]


def _normal(dtype: str, words: Entry, blocks: Extent) -> Entry:
    """Return normal draws of mean 0 and deviation 1 by the Box-Muller transform.

    Two uniform draws give one sine and one cosine.

    Args:
        dtype: Floating dtype; 16-bit floats are drawn in float32.
        words: Words of 32 bits, of shape (blocks, 4).
        blocks: Number of blocks.

    Returns:
        Draws of shape (pairs, 2).
    """
    dtype_computed = "float64" if dtype == "float64" else "float32"
    unit = ops.reshape(_uniform(dtype_computed, words, blocks), shape=(-1, 2))
    first, second = ops.split(unit, 2, 1)
    radius = ops.sqrt(ops.log(ops.maximum(first, 1e-7)) * -2.0)
    angle = second * (2 * pi)
    return ops.concat(ops.sin(angle) * radius, ops.cos(angle) * radius, axis=1)  # type: ignore[no-any-return]


def _floats(
    call: ImportCall, shape: ImportedValue, key: Entry, counter: Entry, dtype: str, draw: Any
) -> Entry:
    """Return draws of a floating dtype.

    Args:
        call: The node.
        shape: Shape of the draws, known during import up to symbolic extents.
        key: Key of the generator.
        counter: Counter of the generator.
        dtype: Name of the dtype.
        draw: `_uniform` or `_normal`.

    Raises:
        ModelError: If the dtype is not of floats, or the shape is not known during import.
        ShapeError: If an extent is negative, or key or counter are not vectors or too short.
        DTypeError: If key or counter are complex.
    """
    if dtype not in FRACTION:
        raise ModelError(f"{call.where} needs a dtype among {', '.join(FRACTION)}, got {dtype}")
    result_shape = tuple(call.extents(shape, "shape"))
    count = numel(result_shape)
    num_words = 2 * count if dtype == "float64" else count
    words, blocks = _words(key, counter, num_words)
    drawn = _take_words(draw(dtype, words, blocks), result_shape, count)
    return ops.cast(drawn, dtype=dtype, name=call.name)  # type: ignore[no-any-return]


DRAWS = {"Uniform": _uniform, "Normal": _normal}


@op_importer("StatelessRandomUniform", "StatelessRandomNormal")
def _from_seed(call: ImportCall, shape: ImportedValue, seed: ImportedValue) -> ImportResult:
    """Import StatelessRandomUniform and StatelessRandomNormal.

    Args:
        call: The node; its attribute ``dtype`` is float32 by default.
        shape: Shape of the draws, known during import up to symbolic extents.
        seed: Two integers.

    Returns:
        Draws in [0, 1), or of mean 0 and deviation 1.

    Raises:
        ModelError: If ``seed`` is not a vector or of unknown rank, the shape is not known, or
            ``dtype`` is not of floats, or an attribute is of another kind.
        ShapeError: If the seed has fewer than two elements, or an extent is negative.
        DTypeError: If the seed is complex.
    """
    call.rank(seed, 1)
    draw = DRAWS[call.node.op.removeprefix("StatelessRandom")]
    dtype = call.dtype("dtype").name if "dtype" in call.node.attr else "float32"
    return _floats(call, shape, *_state(seed.entry), dtype, draw)


@op_importer("StatelessRandomUniformV2", "StatelessRandomNormalV2")
def _from_key(
    call: ImportCall,
    shape: ImportedValue,
    key: ImportedValue,
    counter: ImportedValue,
    alg: ImportedValue,
) -> ImportResult:
    """Import StatelessRandomUniformV2 and StatelessRandomNormalV2, from a key and a counter.

    Args:
        call: The node; its attribute ``dtype`` is float32 by default.
        shape: Shape of the draws, known during import up to symbolic extents.
        key: Vector of one 64-bit number.
        counter: Vector of two, the lower half first.
        alg: Number of the algorithm, known during import.

    Returns:
        Draws in [0, 1), or of mean 0 and deviation 1.

    Raises:
        ModelError: If the algorithm ``alg`` is neither Philox nor automatic, the shape is not
            known, or ``dtype`` is not of floats, or an attribute is of another kind.
        ShapeError: If ``key`` or ``counter`` is not a vector or too short, or an extent is
            negative.
        DTypeError: If one of them is complex.
    """
    _check_algorithm(call, alg)
    draw = DRAWS[call.node.op.removeprefix("StatelessRandom").removesuffix("V2")]
    dtype = call.dtype("dtype").name if "dtype" in call.node.attr else "float32"
    return _floats(call, shape, key.entry, counter.entry, dtype, draw)


def _check_algorithm(call: ImportCall, alg: ImportedValue) -> None:
    """Raise ModelError unless the input ``alg`` is 1, for Philox, or 3, for automatic choice.

    It must be one integer known during import. ``call`` is the node.
    """
    if call.integer(alg, "algorithm") not in (PHILOX, AUTOMATIC):
        raise ModelError(
            f"{call.where} needs the algorithm {PHILOX} (Philox) or {AUTOMATIC} (automatic), got "
            f"{call.shown(alg)}"
        )


def _integer_words(
    call: ImportCall, shape: ImportedValue, key: Entry, counter: Entry, dtype: str
) -> Entry:
    """Return random bits as int64 of the given shape; two words each for 64-bit dtypes, else one.

    Args:
        call: The node.
        shape: Shape of the draws, known during import up to symbolic extents.
        key: Key of the generator.
        counter: Counter of the generator.
        dtype: Name of the dtype for which bits are drawn.

    Raises:
        ModelError: If the shape is not known during import.
        ShapeError: If an extent is negative, or key or counter are not vectors or too short.
        DTypeError: If key or counter are complex.
    """
    result_shape = tuple(call.extents(shape, "shape"))
    count, is_wide = numel(result_shape), dtype in ("int64", "uint64")
    words, blocks = _words(key, counter, 2 * count if is_wide else count)
    if is_wide:
        low, high = _word_pairs(words, blocks)
        words = low + ops.left_shift(high, 32)
    return _take_words(words, result_shape, count)


@op_importer("StatelessRandomUniformFullInt")
def _bits_from_seed(call: ImportCall, shape: ImportedValue, seed: ImportedValue) -> ImportResult:
    """Import StatelessRandomUniformFullInt: integers of all values of the dtype, from a seed.

    Args:
        call: The node, whose attribute ``dtype`` is required.
        shape: Shape of the draws, known during import up to symbolic extents.
        seed: Two integers.

    Raises:
        ModelError: If ``seed`` is not a vector or of unknown rank, the shape is not known, or
            ``dtype`` is missing.
        ShapeError: If the seed has fewer than two elements, or an extent is negative.
        DTypeError: If the seed or ``dtype`` is complex.
    """
    call.rank(seed, 1)
    dtype = call.dtype("dtype").name
    return ops.cast(
        _integer_words(call, shape, *_state(seed.entry), dtype), dtype=dtype, name=call.name
    )


@op_importer("StatelessRandomUniformFullIntV2")
def _bits_from_key(
    call: ImportCall,
    shape: ImportedValue,
    key: ImportedValue,
    counter: ImportedValue,
    alg: ImportedValue,
) -> ImportResult:
    """Import StatelessRandomUniformFullIntV2: integers of all values, from a key and a counter.

    Args:
        call: The node, whose attribute ``dtype`` is required.
        shape: Shape of the draws, known during import up to symbolic extents.
        key: Vector of one 64-bit number.
        counter: Vector of two, the lower half first.
        alg: Number of the algorithm, known during import.

    Raises:
        ModelError: If the algorithm ``alg`` is neither Philox nor automatic, the shape is not
            known, or ``dtype`` is missing.
        ShapeError: If ``key`` or ``counter`` is not a vector or too short, or an extent is
            negative.
        DTypeError: If one of them or ``dtype`` is complex.
    """
    _check_algorithm(call, alg)
    dtype = call.dtype("dtype").name
    words = _integer_words(call, shape, key.entry, counter.entry, dtype)
    return ops.cast(words, dtype=dtype, name=call.name)


@op_importer("StatelessRandomUniformInt")
def _range_from_seed(
    call: ImportCall,
    shape: ImportedValue,
    seed: ImportedValue,
    low: ImportedValue,
    high: ImportedValue,
) -> ImportResult:
    """Import StatelessRandomUniformInt: integers from ``low`` to below ``high``, from a seed.

    Args:
        call: The node.
        shape: Shape of the draws, known during import up to symbolic extents.
        seed: Two integers.
        low: Least number, a scalar of the result's dtype.
        high: Number behind the largest, a scalar.

    Raises:
        ModelError: If ``seed`` is not a vector or of unknown rank, or the shape is not known.
        ShapeError: If the seed has fewer than two elements, an extent is negative, or the limits do
            not broadcast with the shape.
        DTypeError: If an input is complex.
    """
    call.rank(seed, 1)
    return _to_range(
        call, _integer_words(call, shape, *_state(seed.entry), low.dtype.name), low, high
    )


@op_importer("StatelessRandomUniformIntV2")
def _range_from_key(
    call: ImportCall,
    shape: ImportedValue,
    key: ImportedValue,
    counter: ImportedValue,
    alg: ImportedValue,
    low: ImportedValue,
    high: ImportedValue,
) -> ImportResult:
    """Import StatelessRandomUniformIntV2: integers from ``low`` to below ``high``, from a key.

    Args:
        call: The node.
        shape: Shape of the draws, known during import up to symbolic extents.
        key: Vector of one 64-bit number.
        counter: Vector of two, the lower half first.
        alg: Number of the algorithm, known during import.
        low: Least number, a scalar of the result's dtype.
        high: Number behind the largest, a scalar.

    Raises:
        ModelError: If the algorithm ``alg`` is neither Philox nor automatic, or the shape is not
            known.
        ShapeError: If ``key`` or ``counter`` is not a vector or too short, an extent is negative,
            or the limits do not broadcast with the shape.
        DTypeError: If an input is complex.
    """
    _check_algorithm(call, alg)
    words = _integer_words(call, shape, key.entry, counter.entry, low.dtype.name)
    return _to_range(call, words, low, high)


def _to_range(call: ImportCall, words: Entry, low: ImportedValue, high: ImportedValue) -> Entry:
    """Return integers from ``low`` to below ``high``, in the dtype of ``low``.

    They are ``low`` plus the remainders of ``words``, int64, by the length of the range. ``call``
    is the node.

    Raises:
        ShapeError: If the limits do not broadcast with the words.
        DTypeError: If a limit is complex.
    """
    span = ops.cast(high.entry, dtype="int64") - ops.cast(low.entry, dtype="int64")
    remainder = ops.cast(ops.mod(_unsigned(words), _unsigned(span)), dtype="int64")
    return ops.cast(remainder + ops.cast(low.entry, dtype="int64"), dtype=low.dtype.name)  # type: ignore[no-any-return]
