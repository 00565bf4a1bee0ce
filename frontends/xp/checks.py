"""Checks of values inside the kernels that read them, which report the first offending element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
from attrs import frozen

import passkit.ops as ops
from passkit.errors import CheckError, DTypeError, ShapeError
from passkit.frontends.xp.array import Array, array_of, call
from passkit.frontends.xp.runtime import OPERATIONS, computed
from passkit.graph.node import Entry
from passkit.values.dtype import int64
from passkit.values.size import Shape, numel

PASSED = (1 << 62) - 1
"""The result of `first_failure` if all conditions hold."""
STRIDE = 1 << 48
"""The position p of an element that fails condition k is ``k * STRIDE + p``."""


def _positions(shape: Shape) -> Entry:
    """Build an int64 array of a shape with the position of each element in row-major order, from 0.

    It is a sum over the axes, so that it has the iteration domain of the array and fuses with what
    reads it. Raises: ShapeError if the first of several axes has an unknown extent, and the others
    have more than one element.
    """
    result = ops.full((), 0, dtype=int64)
    for axis, n in enumerate(shape):
        stride: Any = numel(shape[axis + 1 :])
        offsets = ops.arange(0, n * stride, stride, dtype=int64)
        rest = tuple(range(1, len(shape) - axis))
        offsets = ops.expand_dims(offsets, axis=rest) if rest else offsets
        result = offsets if axis == 0 else result + offsets
    return result


def build_first_failure(*conditions: Entry) -> Entry:
    """Build the code of the first element that fails the first condition that fails, as int64.

    It is `PASSED` if none fails; else ``k * STRIDE + p`` for the element at position p in row-major
    order of condition k. Conditions are arrays of booleans, true where elements pass; those of one
    shape are reduced together, and those without elements hold.

    Raises: ShapeError if an axis but the last of a condition has an unknown extent.
    """
    by_shape: dict[Any, list[int]] = {}
    for k, condition in enumerate(conditions):
        by_shape.setdefault(condition.shape, []).append(k)
    results = []
    for shape, members in by_shape.items():
        if 0 in shape:
            continue
        positions = _positions(shape)
        code = ops.full((), PASSED, dtype=int64)
        for k in reversed(members):
            code = ops.where(conditions[k], code, positions + k * STRIDE)
        results.append(ops.reduce_min(code, axis=None) if shape else code)
    return reduce(ops.minimum, results) if results else ops.full((), PASSED, dtype=int64)


def _first_failure(*conditions: Any) -> Any:
    """Return the code of the first failure by NumPy, as `build_first_failure` builds it."""
    for k, condition in enumerate(conditions):
        if not condition.all():
            return np.asarray(k * STRIDE + int(condition.argmin()), np.int64)
    return np.asarray(PASSED, np.int64)


OPERATIONS.define("first_failure", build_first_failure, _first_failure)


class CheckedValue:
    """The value of an array at this moment, for a message that is rarely needed.

    A computed value is kept from being overwritten until `release`; of a pending one, a copy stays
    pending, which is computed only if it is read.

    Args:
        x: the array.
    """

    def __init__(self, x: Array) -> None:
        self.shape = x.shape
        self._value = x._value
        self._was_owned = x._value.is_owned
        self._copy: Array | None = None
        if x._value.operation is None:
            x._value.is_owned = False
        else:
            self._copy = call("copy", x)

    def numpy(self) -> Any:
        """Return the value when this object was created, in NumPy; a pending copy is executed.

        Call it before `release`.

        Raises: PasskitError if an operation that the copy needs fails.
        """
        return computed(self._value) if self._copy is None else self._copy._numpy("check")

    def release(self) -> None:
        """Allow results to be stored over the value again, if they were before."""
        if self._copy is None and self._was_owned:
            self._value.is_owned = True


@frozen
class Subject:
    """The subject of a check, for its message.

    Attributes:
        function: the name of the function that checks.
        name: the name of the array.
        must_be: what its elements must be, such as "positive".
        shape: the shape of the array.
    """

    function: str
    name: str
    must_be: str
    shape: tuple[int, ...]

    def message(self, position: int, element: Any) -> str:
        """Return the text of the error for an element at a position in row-major order.

        The index of the element is left out for a 0-dimensional array.
        """
        index = ", ".join(str(k) for k in np.unravel_index(position, self.shape))
        where = f"{self.name}[{index}]" if self.shape else self.name
        return f"{self.function}: {where} = {element}, but it must be {self.must_be}!"


@frozen
class Requirement:
    """A condition on the elements of an array.

    Attributes:
        condition: where they are as they must be, an array of booleans.
        x: the array.
        subject: what it is about.
    """

    condition: Array
    x: Array
    subject: Subject


def check(condition: Any, function: str, name: str, x: Any, must_be: str) -> None:
    """Check elements of an array inside the kernel that computes what is needed next.

    The next execution of the stream also finds the first element that fails, in the kernel that
    computes the array, and raises the error. Results that were computed beside it stay valid, and
    the error is raised once. Small arrays that are computed are checked at once.
    In functions that `pk.jit`, `pk.grad` or `pk.vmap` transform, values that depend on the
    arguments are not checked.

    Args:
        condition: where the elements are as they must be: booleans in the shape of ``x``, or a bool
            for a number.
        function: the name of the function that checks, for the message.
        name: the name of the array in it.
        x: the array, or a number. One without elements always passes.
        must_be: what elements must be, such as "positive".

    Raises:
        CheckError: ``function: name[i, j] = value, but it must be must_be!`` for the first element
            in row-major order; now, or when the stream is executed.
        ArgumentError: The condition or ``x`` is no array or number.
        DTypeError: The condition has other elements than booleans.
        ShapeError: It has another shape than ``x``.
        DeviceError: The arrays are on several devices.

    >>> from passkit import xp
    >>> sigma = xp.asarray([1.0, -2.0])
    >>> xp.check(sigma > 0, "scale", "sigma", sigma, "positive")
    Traceback (most recent call last):
        ...
    passkit.errors.CheckError: scale: sigma[1] = -2.0, but it must be positive!
    """
    array = array_of(x)
    subject = Subject(function, name, must_be, array.shape)
    check_all([Requirement(array_of(condition), array, subject)])


def check_all(requirements: Sequence[Requirement]) -> None:
    """Check several arrays with one reduction, now or when the stream is executed.

    Raises:
        CheckError: An element is not as it must be: the first one of the first array that has any.
        DTypeError: A condition has other elements than booleans.
        ShapeError: A condition has another shape than its array.
        DeviceError: The arrays are on several devices.
    """
    for each in requirements:
        where, condition = f"check: the condition of {each.subject.name}", each.condition
        if condition.dtype.kind != "b":
            raise DTypeError(f"{where} needs booleans, got {condition.dtype}")
        if condition.shape != each.x.shape:
            raise ShapeError(f"{where} needs shape {each.x.shape}, got {condition.shape}")
    listed = [each for each in requirements if each.x.size]
    if not listed:
        return
    code = call("first_failure", *[each.condition for each in listed])
    snapshots = [CheckedValue(each.x) for each in listed]
    subjects = [each.subject for each in listed]
    when_computed(code, snapshots, partial(raise_failure, code, subjects, snapshots))


def when_computed(
    code: Array, snapshots: Sequence[CheckedValue], raise_error: Callable[[], None]
) -> None:
    """Call a function once when the code of `first_failure` is computed.

    That is now, or in the next execution of its stream, which computes it.

    Args:
        code: the code.
        snapshots: the arrays that the function reads; they are released afterwards.
        raise_error: the function, which raises an error if the code says so.

    Raises: what the function raises, if it is called now; else the execution raises it.
    """

    def notify() -> None:
        try:
            raise_error()
        finally:
            for snapshot in snapshots:
                snapshot.release()

    if code._value.operation is None:
        notify()
    else:
        code._value.stream.watch(code._value, notify)


def raise_failure(
    code: Array, subjects: Sequence[Subject], snapshots: Sequence[CheckedValue]
) -> None:
    """Raise a CheckError if the code of `first_failure` says that a condition fails.

    Args:
        code: the code; if it is pending, it is executed.
        subjects: what each condition is about.
        snapshots: the value of the array that each condition is about.

    Raises: CheckError with the first element that fails, by `Subject.message`.
    """
    number = int(code)
    if number != PASSED:
        position, k = number % STRIDE, number // STRIDE
        element = snapshots[k].numpy().reshape(-1)[position]
        raise CheckError(subjects[k].message(position, element))
