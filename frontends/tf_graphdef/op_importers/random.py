"""Random numbers that are functions of a seed: TensorFlow's draws of Philox, bit for bit.

Source: Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3. A draw takes blocks of four
words of 32 bits from its counter on; stateful operators have no row, since they differ each time.
"""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.operators import ops
from passkit.frontends.tf_graphdef.table import Result, row
from passkit.frontends.tf_graphdef.value import Call, Value
from passkit.graph.node import Entry, constant
from passkit.values.dtype import dtype_of
from passkit.values.size import Extent, numel

SCRAMBLE = 0x02461E29_3EC8F720
"""The key under which seeds become keys and counters."""

PHILOX, AUTOMATIC = 1, 3
FRACTION = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}
"""Bits of a uniform draw: those behind the point of a number from 1 to 2."""


def _at(x: Entry, k: int) -> Entry:
    """Element k of a vector."""
    return ops.reshape(ops.slice(x, begin=(k,), size=(1,)), shape=())  # type: ignore[no-any-return]


def _state(seed: Entry) -> tuple[Entry, Entry]:
    """The key and the two halves of the counter that a pair of numbers stands for."""
    wide = ops.cast(seed, dtype="int64")
    mixed = [
        ops.philox(_at(wide, 0), _at(wide, 1), constant(SCRAMBLE, dtype_of("int64")), half=h)
        for h in (0, 1)
    ]
    upper = ops.reshape(mixed[1], shape=(1,))
    none = constant(np.zeros(1, np.int64), dtype_of("int64"))
    key = ops.reshape(mixed[0], shape=(1,))
    return key, ops.concat(none, upper, axis=0)


def _unsigned(x: Entry) -> Entry:
    return ops.cast(x, dtype="uint64")  # type: ignore[no-any-return]


@row("StatelessRandomGetKeyCounter")
def _key_counter(call: Call, seed: Value) -> Result:
    call.rank(seed, 1)
    return tuple(_unsigned(e) for e in _state(seed.entry))


@row("StatelessRandomGetKeyCounterAlg")
def _key_counter_alg(call: Call, seed: Value) -> Result:
    call.rank(seed, 1)
    key, counter = (_unsigned(e) for e in _state(seed.entry))
    return key, counter, call.known(dtype_of("int32"), PHILOX)


@row("StatelessRandomGetAlg")
def _algorithm(call: Call) -> Result:
    return call.known(dtype_of("int32"), PHILOX)


def _words(key: Entry, counter: Entry, count: Extent) -> tuple[Entry, Extent]:
    """Blocks of four words, as int64 of shape (blocks, 4), from the counter on."""
    blocks = (count + 3) // 4
    low = _unsigned(_at(counter, 0)) + ops.arange(0, blocks, dtype="uint64")
    carry = ops.cast(ops.less(low, _unsigned(_at(counter, 0))), dtype="int64")
    high = ops.cast(_at(counter, 1), dtype="int64") + carry
    place, secret = ops.cast(low, dtype="int64"), ops.cast(_at(key, 0), dtype="int64")
    halves = [ops.philox(place, high, secret, half=h) for h in (0, 1)]
    parts = [w for h in halves for w in (h & 0xFFFFFFFF, ops.right_shift(h, 32) & 0xFFFFFFFF)]
    return ops.stack(*parts, axis=1), blocks


def _drawn(words: Entry, shape: tuple[Extent, ...], count: Extent) -> Entry:
    flat = ops.reshape(words, shape=(-1,))
    return ops.reshape(ops.slice(flat, begin=(0,), size=(count,)), shape=shape)  # type: ignore[no-any-return]


def _pairs(words: Entry, blocks: Extent) -> tuple[Entry, Entry]:
    """The first and second word of each pair."""
    both = ops.reshape(words, shape=(2 * blocks, 2))
    size = (2 * blocks, 1)
    return tuple(
        ops.reshape(ops.slice(both, begin=(0, k), size=size), shape=(2 * blocks,)) for k in (0, 1)
    )


def _unit(dtype: str, words: Entry, blocks: Extent) -> Entry:
    """From 0 to below 1: the lowest bits of a word, of two words in float64."""
    bits = FRACTION[dtype]
    if dtype == "float64":
        high, low = _pairs(words, blocks)
        words = low + ops.left_shift(high & 0xFFFFF, 32)
    wide = "float64" if dtype == "float64" else "float32"
    return ops.cast(words & (2**bits - 1), dtype=wide) * 2.0**-bits  # type: ignore[no-any-return]


def _normal(dtype: str, words: Entry, blocks: Extent) -> Entry:
    """Source: Box and Muller; a sine and a cosine of each pair of uniform draws."""
    wide = "float64" if dtype == "float64" else "float32"
    unit = ops.reshape(_unit(wide, words, blocks), shape=(-1, 2))
    first, second = ops.split(unit, 2, 1)
    radius = ops.sqrt(ops.log(ops.maximum(first, 1e-7)) * -2.0)
    angle = second * (2 * pi)
    return ops.concat(ops.sin(angle) * radius, ops.cos(angle) * radius, axis=1)  # type: ignore[no-any-return]


def _floats(call: Call, shape: Value, key: Entry, counter: Entry, dtype: str, draw: Any) -> Entry:
    wanted = tuple(call.extents(shape, "shape"))
    count = numel(wanted)
    need = 2 * count if dtype == "float64" else count
    words, blocks = _words(key, counter, need)
    return ops.cast(_drawn(draw(dtype, words, blocks), wanted, count), dtype=dtype, name=call.name)  # type: ignore[no-any-return]


DRAWS = {"Uniform": _unit, "Normal": _normal}


@row("StatelessRandomUniform", "StatelessRandomNormal")
def _from_seed(call: Call, shape: Value, seed: Value) -> Result:
    call.rank(seed, 1)
    draw = DRAWS[call.node.op.removeprefix("StatelessRandom")]
    dtype = call.dtype("dtype").name if "dtype" in call.node.attr else "float32"
    return _floats(call, shape, *_state(seed.entry), dtype, draw)


@row("StatelessRandomUniformV2", "StatelessRandomNormalV2")
def _from_key(call: Call, shape: Value, key: Value, counter: Value, alg: Value) -> Result:
    _check(call, alg)
    draw = DRAWS[call.node.op.removeprefix("StatelessRandom").removesuffix("V2")]
    dtype = call.dtype("dtype").name if "dtype" in call.node.attr else "float32"
    return _floats(call, shape, key.entry, counter.entry, dtype, draw)


def _check(call: Call, alg: Value) -> None:
    if call.integer(alg, "algorithm") not in (PHILOX, AUTOMATIC):
        raise ModelError(
            f"{call.where} needs the algorithm Philox, {PHILOX}, got {call.shown(alg)}"
        )


def _whole(call: Call, shape: Value, key: Entry, counter: Entry, dtype: str) -> Entry:
    """Words as they are, two of them for a number of 64 bits."""
    wanted = tuple(call.extents(shape, "shape"))
    count, is_wide = numel(wanted), dtype in ("int64", "uint64")
    words, blocks = _words(key, counter, 2 * count if is_wide else count)
    if is_wide:
        low, high = _pairs(words, blocks)
        words = low + ops.left_shift(high, 32)
    return _drawn(words, wanted, count)


@row("StatelessRandomUniformFullInt")
def _bits_from_seed(call: Call, shape: Value, seed: Value) -> Result:
    call.rank(seed, 1)
    dtype = call.dtype("dtype").name
    return ops.cast(_whole(call, shape, *_state(seed.entry), dtype), dtype=dtype, name=call.name)


@row("StatelessRandomUniformFullIntV2")
def _bits_from_key(call: Call, shape: Value, key: Value, counter: Value, alg: Value) -> Result:
    _check(call, alg)
    dtype = call.dtype("dtype").name
    found = _whole(call, shape, key.entry, counter.entry, dtype)
    return ops.cast(found, dtype=dtype, name=call.name)


@row("StatelessRandomUniformInt")
def _range_from_seed(call: Call, shape: Value, seed: Value, low: Value, high: Value) -> Result:
    call.rank(seed, 1)
    return _ranged(call, _whole(call, shape, *_state(seed.entry), low.dtype.name), low, high)


@row("StatelessRandomUniformIntV2")
def _range_from_key(
    call: Call, shape: Value, key: Value, counter: Value, alg: Value, low: Value, high: Value
) -> Result:
    _check(call, alg)
    words = _whole(call, shape, key.entry, counter.entry, low.dtype.name)
    return _ranged(call, words, low, high)


def _ranged(call: Call, words: Entry, low: Value, high: Value) -> Entry:
    """From low to below high, by the remainder of unsigned numbers."""
    span = ops.cast(high.entry, dtype="int64") - ops.cast(low.entry, dtype="int64")
    rest = ops.cast(ops.mod(_unsigned(words), _unsigned(span)), dtype="int64")
    return ops.cast(rest + ops.cast(low.entry, dtype="int64"), dtype=low.dtype.name)  # type: ignore[no-any-return]
