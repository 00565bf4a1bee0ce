"""Rules of `vmap`: how an operation on one part is performed on all parts.

An operation whose operators are all elementwise needs no rule: axes of length 1 are inserted, so
that operands broadcast. Others have a rule here by their name, or cannot be vectorized.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from attrs import frozen

from passkit.errors import ArgumentError, PasskitError
from passkit.frontends.xp.array import Array, wrap
from passkit.frontends.xp.conversion import astype
from passkit.frontends.xp.creation import arange
from passkit.frontends.xp.indexing_operations import ELEMENTS
from passkit.frontends.xp.manipulation import (
    broadcast_to,
    expand_dims,
    moveaxis,
    permute_dims,
    reshape,
)
from passkit.frontends.xp.runtime import apply, apply_several, operation
from passkit.frontends.xp.transforms.batching_stream import BatchingStream
from passkit.frontends.xp.transforms.programs import (
    ArrayProgram,
    ProgramResults,
    ProgramStream,
    decode,
)
from passkit.frontends.xp.transforms.tracing_stream import array_with
from passkit.graph.graph import Graph
from passkit.graph.node import CONSTANT, var
from passkit.graph.op import OpPattern
from passkit.passes.apply import ApplyPasses
from passkit.streams.operation import Operation, array_type, banded_type
from passkit.streams.recorder import ArrayType, Value
from passkit.values.dtype import dtype_of


@frozen
class BatchedOperand:
    """An operand of an operation that is performed on all parts.

    Attributes:
        array: all parts along the first axis, or the one array that all parts share.
        is_divided: whether it has the axis of the parts.
        size: the number of parts.
    """

    array: Array
    is_divided: bool
    size: int

    @property
    def rank(self) -> int:
        """Return the number of axes of one part."""
        return self.array.ndim - self.is_divided

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of one part."""
        return self.array.shape[1:] if self.is_divided else self.array.shape

    @property
    def entire(self) -> Array:
        """Return the array with the axis of the parts first; a shared one is broadcast along it."""
        if self.is_divided:
            return self.array
        return broadcast_to(self.array, (self.size, *self.array.shape))

    def of_rank(self, rank: int) -> Array:
        """Return the array with axes of length 1 in front of the parts' axes, up to ``rank`` ones.

        A divided array has ``rank`` axes beside that of the parts then. A shared array is returned
        itself: it broadcasts with others. So is one whose parts have ``rank`` axes or more.
        """
        missing = rank - self.rank
        if not self.is_divided or missing <= 0:
            return self.array
        return expand_dims(self.array, axis=tuple(range(1, 1 + missing)))

    def entire_of_rank(self, rank: int) -> Array:
        """Return the array with the axis of the parts first, and with parts of ``rank`` axes.

        Axes of length 1 are inserted for those that are missing; a shared array is broadcast.
        """
        array = self.of_rank(rank)
        if self.is_divided:
            return array
        ones = (1,) * (rank - array.ndim)
        return broadcast_to(array, (self.size, *ones, *array.shape))


@frozen
class BatchedCall:
    """An operation to be performed on all parts.

    Attributes:
        stream: the stream whose values stand for the parts.
        operation: the operation.
        operands: its operands.
        result_type: the type of its result for one part; a tuple of types for several.
    """

    stream: BatchingStream
    operation: Operation
    operands: tuple[BatchedOperand, ...]
    result_type: Any

    @property
    def name(self) -> str:
        """Return the name of the operation."""
        return self.operation.name

    @property
    def params(self) -> dict[str, Any]:
        """Return a copy of the operation's parameters by name, those of one part."""
        return dict(self.operation.params)

    @property
    def size(self) -> int:
        """Return the number of parts."""
        return self.stream.size

    @property
    def rank(self) -> int:
        """Return the number of axes of the first operand for one part."""
        return self.operands[0].rank

    def result_shape(self) -> tuple[int, ...]:
        """Return the shape of the result for all parts."""
        return (self.size, *self.result_type.shape)

    def apply(self, *arrays: Array, **changes: Any) -> Any:
        """Apply the operation, with the parameters in ``changes`` replaced, to arrays.

        These take the place of the operands, and mostly have all parts.

        Returns: An array, or a tuple of arrays for an operation with several results.

        Raises: PasskitError if the arrays do not fit.
        """
        changed = operation(self.name, **{**self.params, **changes})
        values = [a._value for a in arrays]
        if type(self.result_type) is tuple:
            return tuple(map(wrap, apply_several(changed, *values)))
        return wrap(apply(changed, *values))


def perform(
    stream: BatchingStream,
    applied: Operation,
    pairs: Sequence[tuple[Array, bool]],
    result_type: Any,
) -> Any:
    """Perform an operation on all parts.

    Args:
        stream: the stream whose values stand for the parts.
        applied: the operation.
        pairs: for each operand an array, and whether its first axis is that of the parts; others
            are shared by all parts.
        result_type: the type of the result for one part; a tuple of types for several results.

    Returns: An array with all parts along its first axis; a tuple of them for several results.

    Raises: ArgumentError if there is no rule for it, and it is not elementwise.
    """
    operands = tuple([BatchedOperand(a, is_divided, stream.size) for a, is_divided in pairs])
    call = BatchedCall(stream, applied, operands, result_type)
    rule = RULES.get(applied.name)
    if rule is None and _is_elementwise(applied, operands, result_type):
        rule = elementwise
    if rule is None:
        raise ArgumentError(
            f"{stream.purpose}: the operation {applied.name} cannot be vectorized; call the "
            f"function for each part, and stack the results by xp.stack"
        )
    return rule(call)


_elementwise: dict[tuple[Operation, int], bool] = {}


def _is_elementwise(
    applied: Operation, operands: Sequence[BatchedOperand], result_type: Any
) -> bool:
    """Return whether an operation has one result, and all its operators are elementwise.

    Composite operators are expanded for that. An operation without a kernel, or one that cannot be
    built for operands of extents 3, is not elementwise. The answer is remembered by the operation
    and the number of operands.
    """
    key = applied, len(operands)
    is_broadcast = _elementwise.get(key)
    if is_broadcast is None:
        is_broadcast = False
        if applied.build is not None and type(result_type) is ArrayType:
            entries = [
                var(f"x{k}", (3,) * o.rank, dtype_of(o.array.dtype)) for k, o in enumerate(operands)
            ]
            try:
                graph = ApplyPasses(Graph(applied.entries(entries)), "Expand")
            except PasskitError:
                pass
            else:
                is_broadcast = all(
                    node.op is None or node.op is CONSTANT or node.op.pattern <= OpPattern.BROADCAST
                    for node in graph.nodes
                )
        _elementwise[key] = is_broadcast
    return is_broadcast


def elementwise(call: BatchedCall) -> Array:
    """Perform an operation whose operands broadcast on all parts; its parameters stay.

    The result has all parts along its first axis.
    """
    rank = len(call.result_type.shape)
    return call.apply(*[o.of_rank(rank) for o in call.operands])  # type: ignore[no-any-return]


def _flattened(call: BatchedCall) -> Array:
    """Return the first operand, which is divided, as a matrix: a row of elements for each part."""
    x = call.operands[0]
    return reshape(x.array, (call.size, prod(x.shape)))


# Operations along axes.


def _reduction(call: BatchedCall) -> Any:
    """Perform a reduction with a parameter ``axis``: an int or several, not negative, or None.

    None means all axes of a part. The result has all parts along its first axis.
    """
    axis = call.params["axis"]
    if axis is None:
        axis = tuple(range(call.rank))
    axes = tuple(k + 1 for k in axis) if isinstance(axis, tuple) else axis + 1
    return call.apply(call.operands[0].array, axis=axes)


def _along_axis(call: BatchedCall) -> Any:
    """Perform an operation with a parameter ``axis``: an int or several, or None.

    None means all elements of a part in row-major order. The result has all parts along its first
    axis.
    """
    axis = call.params["axis"]
    if axis is None:
        return reshape(call.apply(_flattened(call), axis=1), call.result_shape())
    rank = call.rank
    axes = tuple(k % rank + 1 for k in axis) if isinstance(axis, tuple) else axis % rank + 1
    return call.apply(*[o.entire for o in call.operands], axis=axes)


def _along_axes(call: BatchedCall) -> Any:
    """Perform an operation along ``axes``, not negative, of the first operand, which is divided.

    Other operands go in as they are. The result has all parts along its first axis.
    """
    axes = tuple(k + 1 for k in call.params["axes"])
    return call.apply(*[o.array for o in call.operands], axes=axes)


def _expand_dims(call: BatchedCall) -> Any:
    """Insert axes of length 1 into each part, at the parameter ``axis``: one or several.

    The result has all parts along its first axis.
    """
    axis = call.params["axis"]
    rank = len(call.result_type.shape)
    axes = axis if isinstance(axis, tuple) else (axis,)
    return call.apply(call.operands[0].array, axis=tuple(k % rank + 1 for k in axes))


def _permute_dims(call: BatchedCall) -> Any:
    """Put the axes of each part into another order, that of the parameter ``axes``.

    The result has all parts along its first axis.
    """
    axes = (0, *(k + 1 for k in call.params["axes"]))
    return call.apply(call.operands[0].array, axes=axes)


def _joined(call: BatchedCall) -> Any:
    """Join parts along the parameter ``axis``, or stack them along a new one (concat and stack).

    The result has all parts along its first axis.
    """
    rank = len(call.result_type.shape)
    return call.apply(*[o.entire for o in call.operands], axis=call.params["axis"] % rank + 1)


def _reshape(call: BatchedCall) -> Any:
    """Give each part the shape of the result.

    The result has all parts along its first axis.
    """
    return reshape(call.operands[0].array, call.result_shape())


def _broadcast_to(call: BatchedCall) -> Any:
    """Broadcast each part to the shape of the result.

    The result has all parts along its first axis.
    """
    array = call.operands[0].of_rank(len(call.result_type.shape))
    return broadcast_to(array, call.result_shape())


def _tile(call: BatchedCall) -> Any:
    """Repeat each part along its axes, as often as the parameter ``repetitions`` says.

    The result has all parts along its first axis.
    """
    repetitions = call.params["repetitions"]
    array = call.operands[0].of_rank(len(repetitions))
    ones = (1,) * (array.ndim - len(repetitions))
    return call.apply(array, repetitions=(*ones, *repetitions))


def _batches(call: BatchedCall) -> Any:
    """Perform an operation on matrices in the last two axes, which takes any axes in front.

    All operands get the axis of the parts. The result, or each of several, has all parts along its
    first axis.
    """
    return call.apply(*[o.entire for o in call.operands])


# Products.


def _matmul(call: BatchedCall) -> Any:
    """Multiply matrices or vectors of the parts, of which one operand may be shared.

    The result has all parts along its first axis.
    """
    a, b = call.operands
    if a.rank == b.rank == 1:
        return _applied("vecdot", a.array, b.array, axis=-1)
    if a.is_divided and a.rank == 1 and not b.is_divided and b.rank == 2:
        return call.apply(a.array, b.array)
    if b.is_divided and b.rank == 1 and not a.is_divided and a.rank == 2:
        return call.apply(b.array, permute_dims(a.array, (1, 0)))
    if a.is_divided and a.rank > 1 and not b.is_divided and b.rank <= 2:
        return call.apply(a.array, b.array)
    left = _with_axis(a, 0) if a.rank == 1 else a
    right = _with_axis(b, 1) if b.rank == 1 else b
    rank = max(left.rank, right.rank)
    product = call.apply(left.of_rank(rank), right.of_rank(rank))
    return reshape(product, call.result_shape())


def _with_axis(operand: BatchedOperand, axis: int) -> BatchedOperand:
    """Return a copy of an operand whose parts have one more axis, of length 1, at ``axis``."""
    array = expand_dims(operand.array, axis=axis + operand.is_divided)
    return BatchedOperand(array, operand.is_divided, operand.size)


def _applied(name: str, *arrays: Array, **params: Any) -> Array:
    """Apply another operation, with one result, to arrays, and return the result."""
    return wrap(apply(operation(name, **params), *[a._value for a in arrays]))


def _vecdot(call: BatchedCall) -> Any:
    """Return the products of the parts' vectors along the parameter ``axis``, which broadcast.

    The result has all parts along its first axis.
    """
    a, b = call.operands
    rank = max(a.rank, b.rank)
    axis = call.params["axis"]
    axis = axis if axis < 0 else axis - rank
    return call.apply(a.of_rank(rank), b.of_rank(rank), axis=axis)


def _outer(call: BatchedCall) -> Any:
    """Return the products of all pairs of elements of two vectors, for each part.

    The result has all parts along its first axis.
    """
    a, b = call.operands
    return _applied("multiply", _with_axis(a, 1).of_rank(2), _with_axis(b, 0).of_rank(2))


def _tensordot(call: BatchedCall) -> Any:
    """Sum products over axes of both operands, as one product of matrices for each part.

    The result has all parts along its first axis.
    """
    a, b = call.operands
    axes = call.params["axes"]
    if isinstance(axes, int):
        axes = tuple(range(a.rank - axes, a.rank)), tuple(range(axes))
    left_axes = [k % a.rank for k in axes[0]]
    right_axes = [k % b.rank for k in axes[1]]
    left_free = [k for k in range(a.rank) if k not in left_axes]
    right_free = [k for k in range(b.rank) if k not in right_axes]
    count = prod(a.shape[k] for k in left_axes)
    rows, columns = prod(a.shape[k] for k in left_free), prod(b.shape[k] for k in right_free)
    left = _ordered(a, [*left_free, *left_axes], (rows, count))
    right = _ordered(b, [*right_axes, *right_free], (count, columns))
    return reshape(_applied("matmul", left, right), call.result_shape())


def _ordered(operand: BatchedOperand, order: list[int], shape: tuple[int, int]) -> Array:
    """Return an array whose parts have their axes in ``order``, as matrices of ``shape``.

    A shared operand gives one matrix.
    """
    if not operand.is_divided:
        return reshape(permute_dims(operand.array, tuple(order)), shape)
    array = permute_dims(operand.array, (0, *(k + 1 for k in order)))
    return reshape(array, (operand.size, *shape))


def _cross(call: BatchedCall) -> Any:
    """Return the cross products of vectors along the parameter ``axis``, for each part.

    The result has all parts along its first axis.
    """
    a, b = call.operands
    rank = max(a.rank, b.rank)
    axis = call.params["axis"]
    axis = axis if axis < 0 else axis - rank
    return call.apply(a.entire_of_rank(rank), b.entire_of_rank(rank), axis=axis)


def _solve(call: BatchedCall) -> Any:
    """Solve systems of linear equations, of which right sides may be vectors, for each part.

    The result has all parts along its first axis.
    """
    a, b = call.operands
    right = _with_axis(b, 1) if b.rank == 1 else b
    rank = max(a.rank, right.rank)
    solution = call.apply(a.entire_of_rank(rank), right.entire_of_rank(rank))
    return reshape(solution, call.result_shape())


# Indexing.


def _sliced(call: BatchedCall) -> dict[str, Any]:
    """Return the parameters ``axes`` and ``new_axes`` of a slice of all parts."""
    axes = (("all", 1), *call.params["axes"])
    return {"axes": axes, "new_axes": tuple(k + 1 for k in call.params["new_axes"])}


def _slice(call: BatchedCall) -> Any:
    """Take a slice of each part; operands after the first, which give positions, are shared.

    The result has all parts along its first axis.
    """
    arrays = [o.array for o in call.operands]
    return call.apply(*arrays, **_sliced(call))


def _slice_assign(call: BatchedCall) -> Any:
    """Replace a slice of each part by a value, which broadcasts; other operands are shared.

    The result has all parts along its first axis.
    """
    x, value, *inputs = call.operands
    kept = sum(kind not in ELEMENTS for kind, _ in call.params["axes"])
    rank = kept + len(call.params["new_axes"])
    positions = [o.array for o in inputs]
    return call.apply(x.entire, value.of_rank(rank), *positions, **_sliced(call))


def _numbers_of_parts(call: BatchedCall, rank: int) -> Array:
    """Return the numbers of the parts, from 0, with ``rank`` axes of length 1 behind their axis.

    They are int64, on the device of the first operand.
    """
    numbers = arange(call.size, device=call.operands[0].array.device)
    return reshape(numbers, (call.size,) + (1,) * rank)


def _gather(call: BatchedCall) -> Any:
    """Take slices of each part at indices along the parameter ``axis``.

    Array or indices may be shared by all parts. The result has all parts along its first axis.
    """
    x, indices = call.operands
    axis = call.params["axis"]
    if not indices.is_divided:
        return call.apply(x.array, indices.array, axis=axis + 1)
    if not x.is_divided:
        taken = call.apply(x.array, indices.array, axis=axis)
        return moveaxis(taken, axis, 0)
    front = moveaxis(x.array, axis + 1, 1)
    numbers = _numbers_of_parts(call, indices.rank)
    taken = _applied("gather_points", front, numbers, indices.array)
    return _axes_moved(taken, indices.rank, 1, axis + 1)


def _axes_moved(array: Array, count: int, source: int, target: int) -> Array:
    """Return an array with ``count`` neighbouring axes moved.

    ``source`` is the number of the first of them before, ``target`` after. The array itself is
    returned if nothing moves.
    """
    if source == target or not count:
        return array
    axes = range(count)
    return moveaxis(array, tuple(source + k for k in axes), tuple(target + k for k in axes))


def _gather_points(call: BatchedCall) -> Any:
    """Take slices of each part at tuples of indices of its first axes, which broadcast.

    The result has all parts along its first axis.
    """
    x, *indices = call.operands
    rank = max(i.rank for i in indices)
    aligned = [i.of_rank(rank) for i in indices]
    if x.is_divided:
        aligned = [_numbers_of_parts(call, rank), *aligned]
    return call.apply(x.array, *aligned)


def _scatter(call: BatchedCall) -> Any:
    """Replace slices of each part at indices along the parameter ``axis`` by updates.

    The result has all parts along its first axis.
    """
    x, indices, updates = call.operands
    axis = call.params["axis"]
    front = moveaxis(x.entire, axis + 1, 1)
    changed = _axes_moved(updates.entire, indices.rank, axis + 1, 1)
    numbers = _numbers_of_parts(call, indices.rank)
    result = _applied("scatter_points", front, changed, *_broadcast(numbers, indices.array))
    return moveaxis(result, 1, axis + 1)


def _scatter_points(call: BatchedCall) -> Any:
    """Replace slices of each part at tuples of indices of its first axes by updates.

    The result has all parts along its first axis.
    """
    x, updates, *indices = call.operands
    rank = max(i.rank for i in indices)
    numbers = _numbers_of_parts(call, rank)
    aligned = _broadcast(numbers, *[i.of_rank(rank) for i in indices])
    return call.apply(x.entire, updates.entire, *aligned)


def _broadcast(numbers: Array, *indices: Array) -> list[Array]:
    """Return a list of ``numbers`` and the arrays of indices, all broadcast to one shape.

    ``numbers`` has as many axes as the result. Raises: ShapeError if the shapes do not broadcast.
    """
    rank = numbers.ndim
    extents = [1] * rank
    for array in (numbers, *indices):
        for k, n in enumerate(reversed(array.shape)):
            extents[-1 - k] = max(extents[-1 - k], n) if n else 0
    return [broadcast_to(array, tuple(extents)) for array in (numbers, *indices)]


def _mask_assign(call: BatchedCall) -> Any:
    """Replace elements of each part where a mask is true by a value, which broadcasts.

    The result has all parts along its first axis.
    """
    x, mask, value = call.operands
    return call.apply(x.entire, mask.entire, value.of_rank(x.rank))


def _take_along_axis(call: BatchedCall) -> Any:
    """Take an element of each part for each index along the parameter ``axis``, not negative.

    The result has all parts along its first axis.
    """
    x, indices = call.operands
    return call.apply(x.entire, indices.entire, axis=call.params["axis"] + 1)


def _searchsorted(call: BatchedCall) -> Any:
    """Search for the numbers of each part in sorted numbers that all parts share.

    The result has all parts along its first axis.

    Raises: ArgumentError if these, or an operand after the second, differ from part to part.
    """
    sorted_numbers, *others = call.operands
    if sorted_numbers.is_divided or any(o.is_divided for o in others[1:]):
        raise ArgumentError(
            f"{call.stream.purpose}: searchsorted cannot be vectorized over the sorted numbers, "
            f"got {call.size} vectors of them; call it for each"
        )
    return call.apply(*[o.array for o in call.operands])


# Layers of neural networks. A gradient by weights divides these, too.


def _linear(call: BatchedCall) -> Any:
    """Multiply rows of each part by the transpose of a matrix, and perhaps add a vector.

    Each of them may be shared. The result has all parts along its first axis.
    """
    x, weight, *bias = call.operands
    if not weight.is_divided and not any(b.is_divided for b in bias):
        return call.apply(*[o.entire if o is x else o.array for o in call.operands])
    rows = reshape(x.entire, (call.size, prod(x.shape[:-1]), x.shape[-1]))
    product = _applied("matmul", rows, _with_last_axes_swapped(weight))
    for b in bias:
        vector = expand_dims(b.array, axis=1) if b.is_divided else b.array
        product = _applied("add", product, vector)
    return astype(reshape(product, call.result_shape()), call.result_type.dtype, copy=False)


def _with_last_axes_swapped(operand: BatchedOperand) -> Array:
    """Return the array of an operand whose parts are matrices, with these transposed."""
    return permute_dims(operand.array, (0, 2, 1) if operand.is_divided else (1, 0))


def _embedding(call: BatchedCall) -> Any:
    """Take rows of a table at indices, of which either may be shared.

    The result has all parts along its first axis.
    """
    indices, table = call.operands
    if not table.is_divided:
        return call.apply(indices.array, table.array)
    numbers = _numbers_of_parts(call, indices.rank)
    return _applied("gather_points", table.array, *_broadcast(numbers, indices.entire))


def _normalized(call: BatchedCall) -> Any:
    """Perform a normalization along the parameter ``axis``, a tuple of axes, not negative.

    The weight and the bias may be shared. The result has all parts along its first axis.
    """
    x, *vectors = call.operands
    axis = call.params["axis"]
    shifted = tuple(k + 1 for k in axis)
    if not any(v.is_divided for v in vectors):
        return call.apply(x.entire, *[v.array for v in vectors], axis=shifted)
    normal = call.apply(x.entire, axis=shifted, **_WITHOUT_VECTORS[call.name])
    return _scaled(call, normal, axis)


def _channels_normalized(call: BatchedCall) -> Any:
    """Perform a group or instance norm, whose examples lie along the first axis of a part.

    The weight and the bias may be shared. The result has all parts along its first axis.
    """
    x, *vectors = call.operands
    examples = reshape(x.entire, (call.size * x.shape[0], *x.shape[1:]))
    if not any(v.is_divided for v in vectors):
        result = call.apply(examples, *[v.array for v in vectors])
        return reshape(result, call.result_shape())
    normal = call.apply(examples, **_WITHOUT_VECTORS[call.name])
    return _scaled(call, reshape(normal, call.result_shape()), (call.params["channel_axis"],))


_WITHOUT_VECTORS = {
    "nn.group_norm": {"scale": False, "center": False},
    "nn.instance_norm": {"scale": False, "center": False},
    "nn.layer_norm": {"scale": False, "center": False},
    "nn.rms_norm": {"scale": False},
}
"""The parameters of normalizations without a weight and a bias."""


def _scaled(call: BatchedCall, y: Array, axes: tuple[int, ...]) -> Array:
    """Return ``y`` times the weight of a normalization plus its bias, as far as it has them.

    ``y`` has all parts along its first axis; ``axes`` are those of a part that the vectors lie
    along.
    """
    x, *vectors = call.operands
    shape = tuple(n if k in axes else 1 for k, n in enumerate(x.shape))
    for k, vector in enumerate(vectors):
        target = (call.size, *shape) if vector.is_divided else shape
        is_weight = k == 0 and call.params["scale"]
        y = _applied("multiply" if is_weight else "add", y, reshape(vector.array, target))
    return y


def _check_shared(call: BatchedCall) -> None:
    """Raise an ArgumentError if an operand after the first, such as a weight, is divided."""
    if any(o.is_divided for o in call.operands[1:]):
        raise ArgumentError(
            f"{call.stream.purpose}: {call.name} cannot be vectorized over its weights, got "
            f"{call.size} of them; call it for each"
        )


def _batch_norm(call: BatchedCall) -> Any:
    """Perform a batch norm by statistics that are passed, with shared weights and statistics.

    The result has all parts along its first axis.

    Raises: ArgumentError if a weight or a statistic differs from part to part.
    """
    _check_shared(call)
    return call.apply(*[o.array for o in call.operands], axis=call.params["axis"] + 1)


def _images(call: BatchedCall) -> Any:
    """Perform an operation on a batch of examples, with shared weights, on those of all parts.

    The examples lie along the first axis of a part. The result has all parts along its first axis.

    Raises: ArgumentError if a weight differs from part to part.
    """
    _check_shared(call)
    x, *weights = call.operands
    examples = reshape(x.array, (call.size * x.shape[0], *x.shape[1:]))
    return reshape(call.apply(examples, *[o.array for o in weights]), call.result_shape())


# Recorded programs.


def _program(call: BatchedCall) -> Any:
    """Perform a recorded program, also one with gradients, on all parts.

    The result has all parts along its first axis.

    Raises: ArgumentError if one of its operations cannot be vectorized.
    """
    program = decode(call.params["code"])
    if not program.results.leaves:
        inputs = [_stand_in(call.stream, operand) for operand in call.operands]
        values = _run(call.stream, call, program, inputs)
        arrays = [_all_parts(call.stream, values[n]) for n in program.results.outputs]
    else:
        arrays = _differentiated(call, program)
    return arrays[0] if len(arrays) == 1 else tuple(arrays)


def _stand_in(stream: BatchingStream, operand: BatchedOperand) -> Value:
    """Return a new value that stands for one part of an operand in a stream.

    A shared operand is the value of its array.
    """
    return stream.argument(operand.array) if operand.is_divided else operand.array._value


def _run(
    stream: BatchingStream, call: BatchedCall, program: ArrayProgram, inputs: list[Value]
) -> list[Any]:
    """Perform the operations of a program on values, in a stream; return all values by number.

    ``call`` is that of the program, whose parameter ``shape`` has the extents; ``inputs`` are its
    operands. An operation with several results has a tuple of values.
    """

    def step(recorded: Operation, shape: tuple[Any, ...] | None, operands: list[Any]) -> Any:
        if recorded.name == "project":
            return operands[0][recorded.params["index"]]
        params = recorded.params if shape is None else {**recorded.params, "shape": shape}
        applied = operation(recorded.name, **params)
        return stream.applied(applied, operands)

    return program.run(inputs, call.params["shape"], step)


def _all_parts(stream: BatchingStream, value: Value) -> Array:
    """Return the array of all parts of a value; one of another stream is broadcast to them."""
    if value.stream is stream:
        array: Array = stream.arrays[value]
        return array
    shared = BatchedOperand(array_with(value), False, stream.size)
    return shared.entire


def _differentiated(call: BatchedCall, program: ArrayProgram) -> list[Array]:
    """Perform a program with gradients on all parts; return an array for each of its results.

    These have all parts along their first axis. The gradient of the sum of all parts' results, by
    arguments that are divided, consists of the gradients of the parts.
    """
    results = program.results
    outer = ProgramStream(call.stream.purpose)
    with outer.recording():
        inner = BatchingStream(call.stream.purpose, call.size, perform)
        inputs: list[Value] = []
        for k, operand in enumerate(call.operands):
            if k < program.num_arguments:
                is_leaf = k in results.leaves
                array = operand.entire if is_leaf else operand.array
                value = outer.argument(array._value, banded_type(array._value.type, None))
                is_divided = is_leaf or operand.is_divided
                inputs.append(inner.argument(wrap(value)) if is_divided else value)
            else:
                inputs.append(_stand_in(inner, operand))
        with inner.recording():
            values = _run(inner, call, program, inputs)
        parts = {
            n: _all_parts(inner, values[n])._value
            for numbers in (results.outputs, results.heads, results.seeds, results.tangents)
            for n in numbers
        }
        inner.release()
    numbers = {n: outer.number(value) for n, value in parts.items()}
    changed = ProgramResults(
        tuple(numbers[n] for n in results.outputs),
        tuple(numbers[n] for n in results.heads),
        tuple(numbers[n] for n in results.seeds),
        results.leaves,
        tuple(numbers[n] for n in results.tangents),
    )
    result_types = call.result_type if type(call.result_type) is tuple else (call.result_type,)
    types = [array_type(t.dtype, (call.size, *t.shape), t.device) for t in result_types]
    return outer.recorded(changed).apply(types)


RULES: dict[str, Callable[[BatchedCall], Any]] = {
    "all": _reduction,
    "any": _reduction,
    "argmax": _along_axis,
    "argmin": _along_axis,
    "argsort": _along_axis,
    "broadcast_to": _broadcast_to,
    "cholesky": _batches,
    "concat": _joined,
    "count_nonzero": _reduction,
    "cross": _cross,
    "cumulative_prod": _along_axis,
    "cumulative_sum": _along_axis,
    "det": _batches,
    "diagonal": _batches,
    "diff": _along_axis,
    "eigh": _batches,
    "eigvalsh": _batches,
    "expand_dims": _expand_dims,
    "fftshift": _along_axes,
    "flip": _along_axis,
    "gather": _gather,
    "gather_points": _gather_points,
    "ifftshift": _along_axes,
    "inv": _batches,
    "mask_assign": _mask_assign,
    "matmul": _matmul,
    "matrix_norm": _batches,
    "matrix_power": _batches,
    "matrix_rank": _batches,
    "max": _reduction,
    "mean": _reduction,
    "min": _reduction,
    "nn.avg_pool1d": _images,
    "nn.avg_pool2d": _images,
    "nn.avg_pool3d": _images,
    "nn.batch_norm": _batch_norm,
    "nn.conv1d": _images,
    "nn.conv1d_transpose": _images,
    "nn.conv2d": _images,
    "nn.conv2d_transpose": _images,
    "nn.conv3d": _images,
    "nn.conv3d_transpose": _images,
    "nn.cosine_similarity": _vecdot,
    "nn.cross_entropy": _along_axis,
    "nn.embedding": _embedding,
    "nn.glu": _along_axis,
    "nn.group_norm": _channels_normalized,
    "nn.instance_norm": _channels_normalized,
    "nn.layer_norm": _normalized,
    "nn.linear": _linear,
    "nn.log_softmax": _along_axis,
    "nn.max_pool1d": _images,
    "nn.max_pool2d": _images,
    "nn.max_pool3d": _images,
    "nn.nll_loss": _along_axis,
    "nn.rms_norm": _normalized,
    "nn.softmax": _along_axis,
    "nn.softmin": _along_axis,
    "nn.sparse_cross_entropy": _along_axis,
    "outer": _outer,
    "permute_dims": _permute_dims,
    "pinv": _batches,
    "prod": _reduction,
    "program": _program,
    "qr": _batches,
    "repeat": _along_axis,
    "reshape": _reshape,
    "roll": _along_axes,
    "scatter": _scatter,
    "scatter_points": _scatter_points,
    "searchsorted": _searchsorted,
    "slice": _slice,
    "slice_assign": _slice_assign,
    "slogdet": _batches,
    "solve": _solve,
    "sort": _along_axis,
    "special.log_softmax": _along_axis,
    "special.logsumexp": _reduction,
    "special.softmax": _along_axis,
    "squeeze": _along_axis,
    "stack": _joined,
    "std": _reduction,
    "sum": _reduction,
    "svd": _batches,
    "svdvals": _batches,
    "take_along_axis": _take_along_axis,
    "tensordot": _tensordot,
    "tile": _tile,
    "trace": _batches,
    "tril": _batches,
    "triu": _batches,
    "var": _reduction,
    "vecdot": _vecdot,
    "vector_norm": _reduction,
}
"""The rules by the names of operations. What is elementwise needs none."""
