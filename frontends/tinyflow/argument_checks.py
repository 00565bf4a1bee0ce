"""Checks of arguments: numbers, axes, older names, and arguments that tinyflow does not support."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from passkit.errors import GraphError, SettingError, ShapeError
from passkit.graph.infer import show_shape
from passkit.values.size import Extent, Shape

F = TypeVar("F", bound=Callable[..., Any])


def require_int(function: str, argument: str, value: Any) -> int:
    """Convert an argument to an int.

    Args:
        function: The function's name, for the message.
        argument: The argument's name, for the message.
        value: An int or bool, a NumPy integer, a scalar array of integers, a known `Dimension`, or
            a Python float or np.float64 without a fraction.

    Raises:
        SettingError: For any other value.
        ShapeError: For a `Dimension` that is unknown.
    """
    try:
        return operator.index(value)
    except TypeError:
        if isinstance(value, float) and value.is_integer():
            return int(value)
        raise SettingError(f"{function} needs an int as {argument}, got {value!r}") from None


def require_ints(function: str, argument: str, values: Any) -> tuple[int, ...]:
    """Convert an argument, one int or an iterable of ints, to a tuple of ints; see `require_int`.

    Args:
        function: The function's name, for the message.
        argument: The argument's name, for the message.
        values: The argument. A text is no iterable here; an array of one axis or none is one.

    Raises:
        SettingError: If ``values`` is or holds anything but ints.
        ShapeError: For a `Dimension` that is unknown, or a shape of unknown rank.
        GraphError: For a tensor, which has no numbers before a run.
    """
    if isinstance(values, np.ndarray):
        values = values.tolist()
    several = isinstance(values, Iterable) and not isinstance(values, (str, bytes))
    return tuple(require_int(function, argument, v) for v in (values if several else (values,)))


def require_single_int(function: str, argument: str, value: Any) -> int:
    """Convert an argument, an int or a sequence of one int, to an int; see `require_int`.

    Args:
        function: The function's name, for the message.
        argument: The argument's name, for the message.
        value: The argument.

    Raises:
        SettingError: For another number of ints, or anything but ints.
        ShapeError: For a `Dimension` that is unknown.
        GraphError: For a tensor, which has no numbers before a run.
    """
    numbers = require_ints(function, argument, value)
    if len(numbers) != 1:
        raise SettingError(f"{function} needs one int as {argument}, got {value!r}")
    return numbers[0]


def require_int_rows(function: str, argument: str, values: Any) -> tuple[tuple[int, ...], ...]:
    """Convert an argument, an iterable with ints for each axis, to a tuple of tuples of ints.

    Args:
        function: The function's name, for the message.
        argument: The argument's name, for the message.
        values: The argument. An int instead of a row is a row of one.

    Raises:
        SettingError: If ``values`` is not iterable or holds anything but ints.
        ShapeError: For a `Dimension` that is unknown, or a shape of unknown rank as a row.
        GraphError: For a tensor, which has no numbers before a run.
    """
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if not isinstance(values, Iterable) or isinstance(values, (str, bytes)):
        raise SettingError(f"{function} needs ints for each axis as {argument}, got {values!r}")
    return tuple(require_ints(function, argument, row) for row in values)


def require_list(function: str, argument: str, values: Any) -> list[Any]:
    """Convert an argument, a list, tuple or another iterable of any values, to a new list.

    Args:
        function: The function's name, for the message.
        argument: The argument's name, for the message.
        values: The argument.

    Raises:
        GraphError: For anything else, such as None, a number or a single tensor.
        ShapeError: For the shape of a tensor of unknown rank.
    """
    is_scalar = isinstance(values, np.ndarray) and not values.ndim
    if not isinstance(values, Iterable) or isinstance(values, (str, bytes)) or is_scalar:
        raise GraphError(f"{function} needs a list as {argument}, got {values!r}")
    return list(values)


def collection_names(function: str, names: Any) -> list[str]:
    """Convert an argument that names collections to a new list.

    Args:
        function: The function's name, for the message.
        names: A name, a list or tuple of names, or None for none.

    Raises:
        SettingError: For anything else.
    """
    listed = [] if names is None else [names] if isinstance(names, str) else names
    if not isinstance(listed, (list, tuple)) or not all(isinstance(n, str) for n in listed):
        raise SettingError(f"{function} needs names of collections, a list of texts, got {names!r}")
    return list(listed)


def require_float(function: str, argument: str, value: Any) -> float:
    """Convert an argument, a real number of Python or NumPy, to a float.

    Args:
        function: The function's name, for the message.
        argument: The argument's name, for the message.
        value: A bool, int, float, scalar array of real numbers, or known `Dimension`.

    Raises:
        SettingError: For anything else, complex numbers, text and tensors included, and for an int
            that is too large for a float.
        ShapeError: For a `Dimension` that is unknown.
    """
    is_array = isinstance(value, (np.ndarray, np.generic))
    is_refused = isinstance(value, (str, bytes)) or (is_array and value.dtype.kind in "cSU")
    try:
        return float(None if is_refused else value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise SettingError(f"{function} needs a number as {argument}, got {value!r}") from None


def require_function(function: str, argument: str, value: Any) -> Callable[..., Any]:
    """Return an argument that has to be a function, or another callable object.

    Args:
        function: The function's name, for the message.
        argument: The argument's name, for the message.
        value: The argument.

    Raises:
        SettingError: If it is not callable.
    """
    if not callable(value):
        raise SettingError(f"{function} needs a function as {argument}, got {value!r}")
    return value  # type: ignore[no-any-return]


def require_truth(function: str, argument: str, value: Any) -> bool:
    """Return the truth value of an argument, such as a flag.

    Args:
        function: The function's name, for the message.
        argument: The argument's name, for the message.
        value: The argument, any value but a tensor.

    Raises:
        SettingError: If it has no truth value: an array whose number of elements is not 1.
        GraphError: For a tensor.
    """
    if isinstance(value, np.ndarray) and value.size != 1:
        raise SettingError(f"{function} needs a bool as {argument}, got {value!r}")
    return bool(value)


def axis_length(function: str, shape: Shape, axis: Any) -> Extent:
    """Return the extent of a shape along an axis.

    Args:
        function: The function's name, for the message.
        shape: The shape.
        axis: The axis, as `require_int` takes it; it may be negative.

    Raises:
        SettingError: If the axis is no int.
        ShapeError: If the axis does not exist, or is a `Dimension` that is unknown.
    """
    k = require_int(function, "axis", axis)
    if not -len(shape) <= k < len(shape):
        raise ShapeError(f"{function} needs a shape with an axis {k}, got {show_shape(shape)}")
    return shape[k]


def reject_arguments(reason: str, *names: str) -> Callable[[F], F]:
    """Make a function refuse arguments of TensorFlow that have no meaning here.

    Args:
        reason: Why they are not supported, for the message.
        *names: Parameters of the decorated function; only their default value is accepted.

    Returns:
        A decorator. The decorated function raises SettingError if one of these arguments is passed
        with another value than its default, or an equal one of another type, such as 0 for False.
    """

    def wrap(function: F) -> F:
        signature = inspect.signature(function)
        defaults = {n: signature.parameters[n].default for n in names}
        order = list(signature.parameters)
        first = min(order.index(n) for n in names)
        label = function.__qualname__.removesuffix(".__init__")

        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            if len(args) <= first and defaults.keys().isdisjoint(kwargs):
                return function(*args, **kwargs)  # binding takes longer than a small run
            arguments = signature.bind(*args, **kwargs).arguments
            for name, default in defaults.items():
                if name in arguments and not _equals_default(arguments[name], default):
                    raise SettingError(
                        f"{label} takes no {name}, got {arguments[name]!r}; {reason}; leave it out"
                    )
            return function(*args, **kwargs)

        return checked  # type: ignore[return-value]

    return wrap


def _equals_default(value: Any, default: Any) -> bool:
    """Return whether an argument is its default value, or an equal value of the same type."""
    return value is default or (type(value) is type(default) and bool(value == default))


def renamed_argument(function: str, name: str, value: Any, old_name: str, old_value: Any) -> Any:
    """Return the value of an argument that may be passed under its older name, too.

    Args:
        function: Name of the function in errors.
        name: Name of the argument.
        value: Its value; None if it was not passed.
        old_name: Its older name.
        old_value: Value under the older name; None if it was not passed.

    Returns:
        The value that was passed; None if neither was.

    Raises:
        SettingError: If both values are not None.
    """
    if old_value is None:
        return value
    if value is not None:
        raise SettingError(
            f"{function} needs {name} or {old_name}, its older name, got both: {value!r} and "
            f"{old_value!r}"
        )
    return old_value
