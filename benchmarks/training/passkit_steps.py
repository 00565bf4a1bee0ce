"""A program's step as a graph of passkit: it returns the loss and updates variables in place."""

from __future__ import annotations

import numpy as np
from attrs import frozen

import passkit as pk
from passkit.graph.node import Entry
from training import ProgramInputs, TrainingProgram
from training.optimizers import OPTIMIZERS

ops = pk.ops


class PasskitFunctions:
    """pk.ops under the names that the losses use."""

    matmul, concat, where, take = ops.matmul, ops.concat, ops.where, ops.gather
    exp, log, tanh, sigmoid, square = ops.exp, ops.log, ops.tanh, ops.sigmoid, ops.square
    sqrt, rsqrt, stack, reshape = ops.sqrt, ops.rsqrt, ops.stack, ops.reshape
    relu, pow = ops.relu, ops.pow
    sigmoid_cross_entropy = ops.sigmoid_cross_entropy_with_logits
    cross_entropy = ops.softmax_cross_entropy_with_logits
    sparse_cross_entropy = ops.sparse_softmax_cross_entropy_with_logits

    @staticmethod
    def softmax(x: Entry) -> Entry:
        """Return a softmax over the last axis."""
        return ops.softmax(x, axis=-1)

    @staticmethod
    def sum(x: Entry, axis: int) -> Entry:
        """Sum over an axis, which is dropped."""
        return ops.reduce_sum(x, axis=axis)

    @staticmethod
    def mean(x: Entry) -> Entry:
        """Average over all elements."""
        return ops.reduce_mean(x)

    @staticmethod
    def mean_over(x: Entry, axes: tuple[int, ...]) -> Entry:
        """Average over axes, which stay with length 1."""
        return ops.reduce_mean(x, axis=axes, keepdims=True)

    @staticmethod
    def conv(x: Entry, w: Entry, padding: str) -> Entry:
        """Convolve, channels last; the filter is (height, width, channels, filters)."""
        return ops.conv2d(x, w, padding=padding)

    @staticmethod
    def max_pool(x: Entry, window: int, stride: int) -> Entry:
        """Return the maxima of windows inside the image."""
        return ops.max_pool2d(x, window=(window,) * 2, strides=(stride,) * 2)

    @staticmethod
    def avg_pool(x: Entry, window: int, stride: int) -> Entry:
        """Return the means of windows around the image; pixels outside do not count."""
        return ops.avg_pool2d(x, window=(window,) * 2, strides=(stride,) * 2, padding="SAME")

    @staticmethod
    def split(x: Entry, count: int, axis: int) -> list[Entry]:
        """Split into ``count`` parts of one size along an axis."""
        size = x.shape[axis] // count
        key = (slice(None),) * axis
        return [x[(*key, slice(k * size, (k + 1) * size))] for k in range(count)]

    @staticmethod
    def transpose(x: Entry, axes: tuple[int, ...]) -> Entry:
        """Permute the axes."""
        return ops.transpose(x, axes=axes)

    @staticmethod
    def zeros(shape: tuple[int, ...]) -> Entry:
        """Return zeros of float32."""
        return ops.zeros(shape=shape, dtype="float32")

    @staticmethod
    def ones(shape: tuple[int, ...]) -> Entry:
        """Return ones of float32."""
        return ops.ones(shape=shape, dtype="float32")

    @staticmethod
    def arange(count: int) -> Entry:
        """Return the integers below ``count``, of int64."""
        return ops.arange(start=0, stop=count, step=1, dtype="int64")


@frozen
class TrainingStep:
    """A step as a graph, with entries by the name of a variable.

    Attributes:
        graph: returns the loss and updates the variables.
        gradients: the gradient of each variable; of a table in ``rows``, that of its rows.
        rows: for a table of which only rows change, the numbers of the rows.
    """

    graph: pk.Graph
    gradients: dict[str, Entry]
    rows: dict[str, Entry]

    def with_gradients(self) -> pk.Graph:
        """Return the graph that also returns every gradient, then the row numbers."""
        outputs = [*self.gradients.values(), *self.rows.values()]
        return pk.Graph([*self.graph.outputs, *outputs], self.graph.updates)


def training_step(program: TrainingProgram, drawn: ProgramInputs) -> TrainingStep:
    """Build the step: loss, gradients, and the optimizer's writes by `assign`."""
    kinds = {"i": "int64", "f": "float32"}
    feeds = {n: pk.var(n, a.shape, kinds[a.dtype.kind]) for n, a in drawn.feeds.items()}
    variables = {n: pk.state(n, a) for n, a in drawn.variables.items()}
    rows = {n: at(PasskitFunctions, feeds) for n, at in program.rows.items()}
    values = {
        n if n not in rows else f"{n}_rows": v if n not in rows else ops.gather(v, rows[n])
        for n, v in variables.items()
    }
    loss = program.loss(PasskitFunctions, values, feeds)
    gradients = dict(zip(variables, pk.gradients(loss, list(values.values())), strict=True))
    writes = _writes(program, variables, gradients, rows)
    updates = [(w.node.inputs[0].node, w) for w in writes]
    return TrainingStep(pk.Graph([loss], updates), gradients, rows)


def _writes(
    program: TrainingProgram,
    variables: dict[str, Entry],
    gradients: dict[str, Entry],
    rows: dict[str, Entry],
) -> list[Entry]:
    """Return the assignments of new values to variables, slots and shared numbers."""
    optimizer = OPTIMIZERS[program.optimizer]
    shared = {n: pk.state(n, np.float32(value)) for n, value in optimizer.shared.items()}
    writes = []
    for name, variable in variables.items():
        gradient = gradients[name]
        if name in rows:
            assert program.optimizer == "sgd"
            new = ops.index_sub(variable, rows[name], program.rate * gradient, axis=0)
            writes.append(ops.assign(variable, new))
            continue
        shape = variable.shape
        slots = {
            n: pk.state(f"{name}/{n}", np.full(shape, value, np.float32))
            for n, value in optimizer.slots.items()
        }
        results = optimizer.rule(PasskitFunctions, program.rate, variable, gradient, slots, shared)
        old = {"": variable, **slots}
        writes += [ops.assign(old[n], value) for n, value in results.items()]
    writes += [ops.assign(shared[n], value) for n, value in optimizer.advance(shared).items()]
    return writes
