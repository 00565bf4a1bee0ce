"""Calls of operators of every class, and every split of their results held against what is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from attrs import frozen

import passkit as pk
import passkit.ops as ops
from passkit.analysis.propagate import operand_tile_maps
from passkit.analysis.tilemap import Split
from passkit.diagnostics import Diagnostic
from passkit.graph.node import known_shape
from tests.probing import all_splits, blocks_of, dependence, violations

WHOLES = "int64"


@frozen
class Case:
    """An operator on inputs of these shapes: floats, or whole numbers below a limit."""

    build: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    below: tuple[int, ...] = ()

    def built(self) -> tuple[list[pk.Entry], list[pk.Entry]]:
        """The inputs and the results."""
        limits = (*self.below, *[0] * len(self.shapes))
        dtypes = [WHOLES if n else "float32" for n in limits]
        inputs = [pk.var(f"x{k}", s, dtypes[k]) for k, s in enumerate(self.shapes)]
        outcome = self.build(*inputs)
        return inputs, list(outcome) if isinstance(outcome, tuple) else [outcome]

    def feeds(self, seed: int) -> dict[str, Any]:
        """Random inputs."""
        rng = np.random.default_rng(seed)
        limits = (*self.below, *[0] * len(self.shapes))
        return {
            f"x{k}": rng.integers(0, limits[k], s, WHOLES)
            if limits[k]
            else rng.standard_normal(s).astype("f4")
            for k, s in enumerate(self.shapes)
        }


def case(build: Callable[..., Any], *shapes: tuple[int, ...], below: tuple[int, ...] = ()) -> Case:
    """A row of the table."""
    return Case(build, shapes, below)


CASES = {
    "elementwise": case(lambda x, y: x * y, (4, 6), (4, 6)),
    "elementwise prime": case(lambda x: ops.exp(x), (5, 7)),
    "elementwise scalar": case(lambda x: ops.exp(x), ()),
    "broadcasting": case(lambda x, y: x + y, (3, 4, 5), (4, 1)),
    "broadcasting rows": case(lambda x, y: x - y, (4, 5), (4, 1)),
    "broadcasting outwards": case(lambda x, y: x - y, (2, 3, 4), (3, 4)),
    "transpose last": case(lambda x: ops.transpose(x, axes=(0, 2, 1)), (3, 4, 5)),
    "transpose first": case(lambda x: ops.transpose(x, axes=(1, 0, 2)), (3, 2, 5)),
    "transpose all": case(ops.transpose, (5, 4)),
    "reduce last": case(lambda x: ops.reduce_sum(x, axis=2), (4, 3, 5)),
    "reduce middle": case(lambda x: ops.reduce_sum(x, axis=1), (4, 6, 8)),
    "reduce middle kept": case(lambda x: ops.reduce_max(x, axis=1, keepdims=True), (4, 3, 5)),
    "reduce first": case(lambda x: ops.reduce_sum(x, axis=0), (5, 2, 3)),
    "reduce two": case(lambda x: ops.reduce_sum(x, axis=(0, 2)), (3, 5, 2)),
    "reduce all": case(lambda x: ops.reduce_sum(x), (3, 4)),
    "scan": case(lambda x: ops.cumsum(x, axis=1), (3, 5, 2)),
    "scan back": case(lambda x: ops.cumsum(x, axis=0, reverse=True), (5, 3)),
    "product": case(lambda x, y: x @ y, (5, 3), (3, 4)),
    "product of a batch": case(lambda x, y: x @ y, (2, 3, 5, 2), (2, 3, 2, 4)),
    "product turned": case(
        lambda x, y: ops.matmul(x, y, transpose_a=True, transpose_b=True), (3, 2, 5), (3, 4, 2)
    ),
    "product broadcast": case(lambda x, y: x @ y, (2, 3, 4, 2), (3, 2, 3)),
    "product broadcast left": case(lambda x, y: x @ y, (4, 2), (3, 2, 3)),
    "product of one row": case(lambda x, y: x @ y, (1, 4), (4, 6)),
    "convolution": case(lambda x, f: ops.conv1d(x, f, padding="SAME"), (3, 4, 2), (3, 2, 2)),
    "reshape joins": case(lambda x: ops.reshape(x, shape=(6, 5)), (2, 3, 5)),
    "reshape splits": case(lambda x: ops.reshape(x, shape=(2, 3, 4)), (6, 4)),
    "reshape across": case(lambda x: ops.reshape(x, shape=(6, 4)), (4, 6)),
    "reshape flat": case(lambda x: ops.reshape(x, shape=(-1,)), (3, 7)),
    "reshape up": case(lambda x: ops.reshape(x, shape=(3, 7)), (21,)),
    "expand_dims": case(lambda x: ops.expand_dims(x, axis=(0, 2)), (3, 4)),
    "squeeze": case(lambda x: ops.squeeze(x), (3, 1, 4)),
    "broadcast_to": case(lambda x: ops.broadcast_to(x, shape=(12, 5)), (5,)),
    "broadcast_to middle": case(lambda x: ops.broadcast_to(x, shape=(3, 4, 5)), (3, 1, 5)),
    "broadcast_to last": case(lambda x: ops.broadcast_to(x, shape=(6, 4)), (6, 1)),
    "concat first": case(lambda x, y: ops.concat(x, y, axis=0), (2, 4), (3, 4)),
    "concat last": case(lambda x, y: ops.concat(x, y, axis=1), (4, 3), (4, 3)),
    "slice": case(lambda x: x[1:4, :, ::2], (5, 2, 6)),
    "slice middle": case(lambda x: x[:, 1:], (3, 4, 5)),
    "slice back": case(lambda x: x[::-1, 1:], (4, 5)),
    "pad": case(lambda x: ops.pad(x, ((0, 0), (1, 2))), (4, 3)),
    "gather": case(lambda x, i: ops.gather(x, i, axis=0), (4, 3), (5,), below=(0, 4)),
    "gather last": case(lambda x, i: ops.gather(x, i, axis=1), (4, 3), (2, 2), below=(0, 3)),
    "gather of a batch": case(
        lambda x, i: ops.gather(x, i, axis=1, batch_dims=1), (3, 4), (3, 2), below=(0, 4)
    ),
    "take_along_axis": case(ops.take_along_axis, (3, 4), (3, 2), below=(0, 4)),
    "gather_nd": case(ops.gather_nd, (3, 4, 2), (4, 2), below=(0, 3)),
    "one_hot": case(lambda i: ops.one_hot(i, depth=4), (5,), below=(4,)),
    "tile": case(lambda x: ops.tile(x, (1, 2)), (4, 3)),
    "tile rows": case(lambda x: ops.tile(x, (2, 1)), (4, 3)),
    "reverse": case(lambda x: ops.flip(x, axis=1), (4, 5)),
    "roll": case(lambda x: ops.roll(x, shift=2, axis=0), (5, 3)),
    "stack": case(lambda x, y: ops.stack(x, y, axis=1), (4, 3), (4, 3)),
    "tril": case(ops.tril, (4, 4)),
    "softmax": case(lambda x: ops.softmax(x, axis=-1), (3, 2, 4)),
    "layer_norm": case(ops.layer_norm, (4, 5), (5,), (5,)),
    "several results": case(lambda x: ops.moments(x, axis=1), (3, 4, 2)),
    "windows": case(lambda x: ops.max_pool1d(x, 2), (3, 6, 2)),
}


def accepted(case: Case, seed: int = 1) -> Iterator[tuple[Split, int, Any, int]]:
    """Every split of every result, with the state of every operand and how often it is violated."""
    inputs, outputs = case.built()
    needs = dependence(outputs, case.feeds(seed))
    for o, output in enumerate(outputs):
        shape = tuple(map(int, known_shape(output)))
        for split in all_splits(shape):
            owner = blocks_of(split, shape)
            maps = operand_tile_maps(output, split.tile_map(shape))
            states = dict(zip(output.node.inputs, maps, strict=True))
            for k, x in enumerate(inputs):
                if x in states and not isinstance(states[x], Diagnostic):
                    source = tuple(map(int, known_shape(x)))
                    outcome = violations(states[x], source, owner, needs[x.node.name][o])
                    yield split, k, states[x], outcome
