"""`vmap`: functions of arrays, applied to all parts of arrays along an axis at once.

The function runs once, on arrays that stand for one part. Each operation on them is performed on
all parts, whose axis is the first one, by a rule for the operation; see `batching_rules`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

import numpy as np

from passkit.errors import ArgumentError, ShapeError
from passkit.frontends.xp.array import Array, array_of, wrap
from passkit.frontends.xp.conversion import asarray, duplicate
from passkit.frontends.xp.manipulation import broadcast_to, moveaxis, normalized_axis
from passkit.frontends.xp.transforms.batching_rules import perform
from passkit.frontends.xp.transforms.batching_stream import BatchingStream
from passkit.frontends.xp.transforms.tracing_stream import describe
from passkit.values import arguments
from passkit.values.arguments import shown
from passkit.values.trees import flatten, paths, prefix_leaves, unflatten


def vmap(
    function: Callable[..., Any] | None = None,
    in_axes: Any = 0,
    out_axes: Any = 0,
) -> Any:
    """Return a function that applies a function to all parts of arrays along an axis at once.

    Nothing loops: each operation of the function becomes one on all parts. Transformations can be
    nested in any order, as in ``pk.vmap(pk.grad(loss), in_axes=(None, 0))``, which returns the
    gradient for each example.

    Args:
        function: takes and returns arrays of `passkit.xp`, or nested containers of them. Without a
            function, return a decorator.
        in_axes: the axis along which positional arguments are divided: an int, which may be
            negative, or None for arguments that each call gets entirely; or a tuple or list with
            one for each argument, each of which may be a container like the argument. What is no
            array, such as a Python number, is never divided. Arrays in keyword arguments are
            divided along their first axis.
        out_axes: the axis of the results along which those of the parts are stacked: an int, or
            None for results that do not depend on the part; or a container of them like the result.
            Numbers, and arrays that do not depend on the part, are repeated.

    Returns: A function of arrays with one more axis.

    Raises: ArgumentError if ``function`` cannot be called. When the returned function is called:

        - ArgumentError: ``in_axes`` or ``out_axes`` does not fit, no argument is divided, an
          operation cannot be vectorized, or a result to be stacked is no array or number.
        - ShapeError: the arguments have different numbers of parts, or there is no such axis.
        - ConcretizationError: the function needs the elements of an array, also for an operation
          that only NumPy computes, such as all on complex numbers.

    >>> import passkit as pk
    >>> from passkit import xp
    >>> x = xp.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> pk.vmap(lambda row, a: xp.sum(row * a), in_axes=(0, None))(x, 10).numpy()
    array([30., 70.])
    """
    if function is None:
        return lambda f: vmap(f, in_axes, out_axes)
    arguments.function("vmap: function", function)
    purpose = describe("vmap", function)

    def vectorized(*args: Any, **kwargs: Any) -> Any:
        axes = in_axes if not isinstance(in_axes, list) else tuple(in_axes)
        leaves, structure = flatten(args)
        names = paths(structure, "args")
        listed = prefix_leaves(axes, structure)
        if listed is None:
            raise ArgumentError(
                f"{purpose}: in_axes must be an int, None, or a tuple like the {len(args)} "
                f"arguments, got {shown(in_axes)}"
            )
        named, named_structure = flatten(kwargs)
        names += paths(named_structure, "kwargs")
        listed += [0 if isinstance(x, (Array, np.ndarray)) else None for x in named]
        parts = [
            _divided(f"{purpose}: {name}", leaf, axis)
            for name, leaf, axis in zip(names, [*leaves, *named], listed, strict=True)
        ]
        size = _common_size(purpose, parts, names)
        stream = BatchingStream(purpose, size, perform)
        with stream.recording():
            stand_ins = [
                wrap(stream.argument(part)) if is_divided else part for part, is_divided in parts
            ]
            new_args = unflatten(structure, stand_ins[: len(leaves)])
            new_kwargs = unflatten(named_structure, stand_ins[len(leaves) :])
            result = function(*new_args, **new_kwargs)
        results, result_structure = flatten(result)
        result_axes = prefix_leaves(out_axes, result_structure)
        if result_axes is None:
            raise ArgumentError(
                f"{purpose}: out_axes must be an int, None, or a container like the result, got "
                f"{shown(out_axes)}"
            )
        result_names = paths(result_structure, "result")
        try:
            stacked = [
                _stacked(f"{purpose}: {name}", stream, leaf, axis)
                for name, leaf, axis in zip(result_names, results, result_axes, strict=True)
            ]
        finally:
            stream.release()
        return unflatten(result_structure, stacked)

    update_wrapper(vectorized, function, updated=())
    return vectorized


def _divided(where: str, leaf: Any, axis: Any) -> tuple[Any, bool]:
    """Return a leaf of the arguments with the axis of its parts first, and whether it has parts.

    ``axis`` is an int, which may be negative, or None. The leaf has no parts if the axis is None or
    it is no array; then it is returned as it is, a NumPy array as an `Array`. ``where`` is the
    function and the leaf, for messages.

    Raises:
        ArgumentError: The axis is neither an int nor None.
        ShapeError: An array has no such axis.
    """
    if axis is not None and (not isinstance(axis, int) or isinstance(axis, bool)):
        raise ArgumentError(
            f"{where}: an axis of in_axes must be an int or None, got {shown(axis)}"
        )
    if isinstance(leaf, np.ndarray):
        leaf = asarray(leaf)
    if axis is None or not isinstance(leaf, Array):
        return leaf, False
    if not leaf.ndim:
        raise ShapeError(
            f"{where} has shape () and no axis {axis} of parts; say None in its place in in_axes"
        )
    axis = normalized_axis(where, axis, leaf.ndim)
    return moveaxis(leaf, axis, 0) if axis else leaf, True


def _common_size(purpose: str, parts: Sequence[tuple[Any, bool]], names: Sequence[str]) -> int:
    """Return the number of parts of the arguments.

    Args:
        purpose: the transformation, for messages.
        parts: the leaves of the arguments, and whether they have parts, along their first axis.
        names: the names of the leaves, for messages.

    Raises:
        ArgumentError: No leaf has parts.
        ShapeError: The numbers differ.
    """
    sizes: dict[str, int] = {
        name: part.shape[0]
        for name, (part, is_divided) in zip(names, parts, strict=True)
        if is_divided
    }
    if not sizes:
        raise ArgumentError(
            f"{purpose} needs an array to divide among its arguments, got {len(parts)} leaves that "
            f"are numbers or have None in in_axes"
        )
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name} has {n}" for name, n in sizes.items())
        raise ShapeError(f"{purpose}: all divided arguments need as many parts, got {listed}")
    return next(iter(sizes.values()))


def _stacked(where: str, stream: BatchingStream, leaf: Any, axis: Any) -> Any:
    """Return a leaf of the result for all parts, stacked along an axis.

    ``stream`` is that of the function. ``axis`` is an int, which may be negative, or None: then the
    leaf is returned itself. Otherwise a number, or an array that does not depend on the part, is
    repeated. ``where`` is the function and the leaf, for messages.

    Raises:
        ArgumentError: The axis is neither an int nor None, or None for a result that depends on
            the part, or the leaf is to be stacked and no array or number.
        ShapeError: There is no such axis.
    """
    if axis is not None and (not isinstance(axis, int) or isinstance(axis, bool)):
        raise ArgumentError(
            f"{where}: an axis of out_axes must be an int or None, got {shown(axis)}"
        )
    if axis is None:
        if isinstance(leaf, Array) and leaf._value.stream is stream:
            raise ArgumentError(
                f"{where} depends on the part, so its axis in out_axes must be an int, got None"
            )
        return leaf
    if not isinstance(leaf, (Array, np.ndarray, np.generic, int, float, complex)):
        raise ArgumentError(f"{where} must be an array to be stacked, got {shown(leaf)}")
    array = array_of(leaf)
    if array._value.stream is stream:
        array = stream.arrays[array._value]
    else:
        array = broadcast_to(array, (stream.size, *array.shape))
    axis = normalized_axis(where, axis, array.ndim)
    return moveaxis(array, 0, axis) if axis else duplicate(array)
