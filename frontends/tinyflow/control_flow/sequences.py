"""Functions applied along the first axis: ``tf.scan``, ``tf.foldl`` and ``tf.map_fn``.

All of them are unrolled, so that the length of the first axis must be known while the graph is
built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from passkit.errors import GraphError, ShapeError
from passkit.frontends.tinyflow import arrays, elementwise
from passkit.frontends.tinyflow.argument_checks import (
    axis_length,
    reject_arguments,
    require_function,
)
from passkit.frontends.tinyflow.control_flow.static_values import ONE_PROGRAM, share_variables
from passkit.frontends.tinyflow.dtypes import as_dtype
from passkit.frontends.tinyflow.nest import flatten_nest, pack_like
from passkit.frontends.tinyflow.scopes import name_scope
from passkit.frontends.tinyflow.shapes import require_shape
from passkit.frontends.tinyflow.tensors import convert_to_tensor


@reject_arguments(ONE_PROGRAM, "parallel_iterations", "swap_memory", "infer_shape")
def scan(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """Compute ``a = fn(a, element)`` along the first axis, and return all values of ``a``, stacked.

    Args:
        fn: Takes the accumulated value and an element, and returns the next accumulated value in
            the same structure.
        elems: Tensors of one known first extent, in a nested structure; at least one element. A
            list of numbers is a structure, not an array.
        initializer: The accumulated value before the first element, which is not part of a result
            of `scan`; by default the first element, which ``fn`` does not get then.
        parallel_iterations: Unsupported; only the default is accepted.
        back_prop: Whether gradients flow through the result; True by default.
        swap_memory: Unsupported; only the default is accepted.
        infer_shape: Unsupported; only the default is accepted.
        reverse: Whether to begin with the last element; False by default.
        name: The name scope; "scan" by default.

    Returns:
        Tensors in the structure of the accumulated value, with a new first axis in the order of the
        elements.

    Raises:
        ShapeError: If the first extent is unknown, differs, or is 0; or if the accumulated value
            changes its shape.
        GraphError: If ``fn`` returns another number of tensors than the time before.
        SettingError: If an unsupported argument is set, or ``fn`` is no function.
        DTypeError: If the accumulated value changes its dtype, or a tensor is text.
        ArgumentError: For elements or results that are neither tensors nor numbers.
    """
    with name_scope(name, "scan"):
        values = list(_accumulate("scan", fn, elems, initializer, reverse))
        stacked = _stack_nests("scan", list(reversed(values)) if reverse else values)
        return stacked if back_prop else _stop_gradients(stacked)


@reject_arguments(ONE_PROGRAM, "parallel_iterations", "swap_memory")
def foldl(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """Compute ``a = fn(a, element)`` along the first axis, and return the last value of ``a``.

    Args:
        fn: Takes the accumulated value and an element, and returns the next accumulated value in
            the same structure.
        elems: Tensors of one known first extent, in a nested structure; at least one element. A
            list of numbers is a structure, not an array.
        initializer: The accumulated value before the first element; by default the first element,
            which ``fn`` does not get then.
        parallel_iterations: Unsupported; only the default is accepted.
        back_prop: Whether gradients flow through the result; True by default.
        swap_memory: Unsupported; only the default is accepted.
        name: The name scope; "foldl" by default.

    Returns:
        What the last call of ``fn`` returned, unchecked; without ``back_prop`` tensors in its
        structure. Of a single element without ``initializer``, that element.

    Raises:
        ShapeError: If the first extent is unknown, differs, or is 0.
        SettingError: If an unsupported argument is set, or ``fn`` is no function.
        ArgumentError: For elements that are neither tensors nor numbers, and for such results
            without ``back_prop``.
        DTypeError: For an element that is a tensor of text.
    """
    with name_scope(name, "foldl"):
        *_, last = _accumulate("foldl", fn, elems, initializer, False)
        return last if back_prop else _stop_gradients(last)


@reject_arguments(
    ONE_PROGRAM, "parallel_iterations", "swap_memory", "infer_shape", "fn_output_signature"
)
def map_fn(
    fn: Callable[[Any], Any],
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
    fn_output_signature: Any = None,
) -> Any:
    """Apply ``fn`` to each element along the first axis, and stack the results.

    Args:
        fn: Takes an element, in the structure of ``elems``, and returns tensors in a nested
            structure.
        elems: Tensors of one known first extent, in a nested structure; at least one element. A
            list of numbers is a structure, not an array.
        dtype: The dtypes of the results, in their structure, which are only checked, as far as
            there are some; unchecked by default.
        parallel_iterations: Unsupported; only the default is accepted.
        back_prop: Whether gradients flow through the result; True by default.
        swap_memory: Unsupported; only the default is accepted.
        infer_shape: Unsupported; only the default is accepted.
        name: The name scope; "map" by default.
        fn_output_signature: Unsupported; only the default is accepted.

    Returns:
        Tensors in the structure that ``fn`` returns, with a new first axis.

    Raises:
        GraphError: If a result has another dtype than ``dtype``, or ``fn`` returns another number
            of tensors than the time before.
        ShapeError: If the first extent is unknown, differs, or is 0; or if results differ in shape.
        SettingError: If an unsupported argument is set, or ``fn`` is no function.
        ArgumentError: For elements or results that are neither tensors nor numbers.
        DTypeError: If ``dtype`` holds anything but element types, or results differ in dtype, or a
            tensor is text.
    """
    with name_scope(name, "map"):
        function = share_variables(require_function("map_fn", "fn", fn))
        results = [function(element) for element in _elements("map_fn", elems)]
        stacked = _stack_nests("map_fn", results)
        dtypes = flatten_nest(dtype) if dtype else ()
        for tensor, expected in zip(flatten_nest(stacked), dtypes, strict=False):
            if tensor.dtype is not as_dtype(expected):
                raise GraphError(
                    f"map_fn needs results of its dtype {as_dtype(expected)}, got {tensor!r}"
                )
        return stacked if back_prop else _stop_gradients(stacked)


def _accumulate(
    function: str, fn: Callable[[Any, Any], Any], elems: Any, initializer: Any, reverse: bool
) -> Iterator[Any]:
    """Yield the accumulated values: the first element if there is no initializer, then the results.

    Args:
        function: The caller's name, for messages.
        fn: Takes the accumulated value and an element, and returns the next accumulated value,
            which is not checked.
        elems: Tensors of one known first extent, in a nested structure.
        initializer: The accumulated value before the first element, which is not yielded; None to
            begin with the first element.
        reverse: Whether to begin with the last element.

    Raises:
        ShapeError: If the number of elements is unknown, differs, or is 0.
        ArgumentError: For elements that are neither tensors nor numbers.
        SettingError: If ``fn`` is no function.
        DTypeError: For an element that is a tensor of text.
    """
    elements, fn = _elements(function, elems), share_variables(require_function(function, "fn", fn))
    elements = elements[::-1] if reverse else elements
    if initializer is None:
        accumulated, elements = elements[0], elements[1:]
        yield accumulated
    else:
        accumulated = initializer
    for element in elements:
        accumulated = fn(accumulated, element)
        yield accumulated


def _elements(function: str, elems: Any) -> list[Any]:
    """Return the elements along the first axis, each in the structure of ``elems``.

    Args:
        function: The caller's name, for messages.
        elems: Tensors or arrays in a nested structure.

    Raises:
        ShapeError: If their number is unknown, 0, or differs from tensor to tensor, or a tensor is
            a scalar.
        ArgumentError: For a value that is neither a tensor nor numbers.
        DTypeError: For a tensor of text.
    """
    tensors = [convert_to_tensor(e) for e in flatten_nest(elems)]
    counts = {axis_length(function, require_shape(t.entry, function), 0) for t in tensors}
    if len(counts) != 1 or not isinstance(next(iter(counts)), int):
        raise ShapeError(
            f"{function} needs elements of one known number, got {tensors!r}; it is unrolled, so "
            f"that placeholders need the length of their first axis"
        )
    if 0 in counts:
        raise ShapeError(
            f"{function} needs tensors with at least one element along their first axis, got "
            f"{tensors!r}"
        )
    parts = [arrays.unstack(t) for t in tensors]
    return [pack_like(elems, iter(slices)) for slices in zip(*parts, strict=True)]


def _stack_nests(function: str, nests: list[Any]) -> Any:
    """Stack the tensors of equal structures, one for each element, along a new first axis.

    The result has the structure of the first one; there is at least one. ``function`` is the
    caller's name, for messages.

    Raises:
        GraphError: If two structures hold different numbers of tensors.
        ShapeError: If the tensors of two structures differ in shape.
        DTypeError: If they differ in dtype, or one is text.
        ArgumentError: If one holds anything but tensors and numbers.
    """
    rows = [flatten_nest(n) for n in nests]
    counts = sorted({len(row) for row in rows})
    if len(counts) > 1:
        raise GraphError(
            f"{function} needs a function that returns as many tensors each time, got {counts}"
        )
    columns = zip(*rows, strict=True)
    stacked = [arrays.stack([convert_to_tensor(v) for v in column]) for column in columns]
    return pack_like(nests[0], iter(stacked))


def _stop_gradients(nest: Any) -> Any:
    """Return a nested structure with `tf.stop_gradient` applied to its tensors and numbers."""
    return pack_like(nest, iter([elementwise.stop_gradient(t) for t in flatten_nest(nest)]))
