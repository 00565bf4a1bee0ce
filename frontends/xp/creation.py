"""Creation functions: constants and ranges, which are queued like all operations."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from passkit.errors import ArgumentError, CapacityError, DTypeError, ShapeError
from passkit.frontends.xp import creation_operations
from passkit.frontends.xp.array import Array, array_of, wrap
from passkit.frontends.xp.conversion import asarray, astype, on_device
from passkit.frontends.xp.devices import creation_device, device_argument
from passkit.frontends.xp.dtypes import checked_dtype
from passkit.frontends.xp.extents import apply_typed, check_axes, extents_input
from passkit.frontends.xp.manipulation import broadcast_on, broadcast_to, reshape
from passkit.frontends.xp.reductions import integer, truth
from passkit.frontends.xp.runtime import apply, from_numpy, operation, scalar
from passkit.frontends.xp.views import declare, triangle
from passkit.streams.device import StreamDevice
from passkit.streams.operation import CPU, MAX_MEMO, Operation, array_type
from passkit.streams.recorder import Value
from passkit.streams.settings import settings
from passkit.values.arguments import refuse, shown
from passkit.values.dtype import DType, dtype_of

assert creation_operations.CREATORS  # they are defined there

MOST_ELEMENTS = 1 << 59
"""The most elements of an array; of 16 bytes each, they have the most bytes that NumPy counts."""


def checked_shape(where: str, shape: Any) -> tuple[int, ...]:
    """Return an argument ``shape``, an int or a tuple or list of them, as a tuple of ints.

    Bools, NumPy's integers and 0-dimensional arrays of an integer count as ints. ``where`` is the
    function, for messages.

    Raises:
        ArgumentError: It is something else, such as None, a float or an array with axes.
        ShapeError: An extent is negative, those other than 0 multiply to more than
            `MOST_ELEMENTS`, or there are more than 64 axes.
    """
    listed = shape if isinstance(shape, (tuple, list)) else (shape,)
    try:
        extents = tuple([operator.index(n) for n in listed])
    except TypeError:
        refuse(f"{where}: shape", shape, "an int or a tuple of ints")
    if any(n < 0 for n in extents):
        raise ShapeError(f"{where} needs extents >= 0, got shape {shown(extents)}")
    check_axes(where, extents)
    if math.prod([n or 1 for n in extents]) > MOST_ELEMENTS:
        raise ShapeError(
            f"{where}: an array has at most {MOST_ELEMENTS} elements, got shape {shown(extents)}"
        )
    return extents


def _created(
    name: str,
    shape: tuple[int, ...],
    dtype: DType,
    device: StreamDevice | None,
    *operands: Value,
    **params: Any,
) -> Array:
    """Return the array of a creation operation, called ``name``, of a shape, dtype and device.

    ``device`` None is for the CPU. ``operands`` and ``params`` are those of the operation besides
    the shape and dtype. It is queued; but computed at once if it is small or complex.

    Raises: CapacityError if there is no memory for an array that is computed at once.
    """
    op = operation(name, dtype=dtype.name, shape=shape, **params)
    type = array_type(dtype.numpy, shape, device)
    return wrap(apply_typed(op, type, *operands, extents_input(shape, device)))


def _constant(
    where: str, number: int, shape: Any, dtype: Any, device: Any, like: Array | None = None
) -> Array:
    """Return an array of zeros or ones, of float64 if ``dtype`` is None.

    Args:
        where: the function, for messages.
        number: 0 or 1.
        shape: an int, or a tuple or list of them. A small array is created at once, others are
            queued.
        dtype: the dtype; None: float64.
        device: the name of the device; None: that of ``like``.
        like: the array whose device is the default one; None: that of `xp.config` is.

    Raises:
        ArgumentError: The shape is something else.
        ShapeError: An extent is negative, the extents other than 0 multiply to more than 2**59, or
            there are more than 64 axes.
        DTypeError, SettingError: There is no such dtype or device.
        DeviceError, MissingDependencyError: A driver or package for the device is missing, or it
            has no memory left.
        CapacityError: There is no memory for an array of complex numbers.
    """
    key = None
    is_plain = device is None and (dtype is None or isinstance(dtype, np.dtype))
    is_plain = is_plain and like is None and settings.device == CPU
    if is_plain and type(shape) in (list, tuple) and all([type(n) is int for n in shape]):
        key = number, tuple(shape), dtype
        if (prepared := _prepared.get(key)) is not None:
            return wrap(apply(*prepared))
    place = _place(where, device, like)
    element_type = dtype_of("float64" if dtype is None else checked_dtype(f"{where}: dtype", dtype))
    extents = checked_shape(where, shape)
    if math.prod(extents) <= settings.small and place is None:
        return wrap(from_numpy(np.full(extents, number, element_type.numpy), is_owned=True))
    result = _created("constant", extents, element_type, place, number=number)
    if key is not None:
        _prepare(key, result)
    return result


_prepared: dict[Any, tuple[Operation, Value]] = {}
"""The operation and the operand that create queued zeros and ones. A key has the number, and the
shape and dtype as they were given or the type of the array that they are like."""


def _prepare(key: Any, result: Array) -> None:
    """Let the array of a creation operation be created in the same way for an equal key."""
    value = result._value
    if value.operation is not None and value.type.device is None:
        if len(_prepared) >= MAX_MEMO:
            _prepared.clear()
        _prepared[key] = value.operation, value.operands[0]


def _constant_like(where: str, number: int, x: Any, dtype: Any, device: Any) -> Array:
    """Return an array of zeros or ones of the shape of ``x``, and of its dtype and device.

    Args:
        where: the function, for messages.
        number: 0 or 1.
        x: an array or a number.
        dtype: the dtype; None: that of ``x``.
        device: the name of the device; None: that of ``x``.

    Operation and extents are remembered by the type of ``x``.

    Raises: ArgumentError if ``x`` is no array or number; DTypeError or SettingError if there is no
    such dtype or device; DeviceError or MissingDependencyError if a driver or package for the
    device is missing; CapacityError if there is no memory for an array of complex numbers.
    """
    is_alike = dtype is None and device is None and type(x) is Array
    prepared = _prepared.get((number, x._value.type)) if is_alike else None
    if prepared is not None:
        return wrap(apply(*prepared))
    array = array_of(x)
    dtype = array.dtype if dtype is None else dtype
    result = _constant(where, number, array.shape, dtype, device, array)
    if is_alike:
        _prepare((number, array._value.type), result)
    return result


def _place(where: str, device: Any, like: Array | None) -> StreamDevice | None:
    """Return the device of a new array, None for the CPU.

    It is the one that ``device`` names. If that is None, it is the device of ``like``; if that is
    None, too, the one of `xp.config`. ``where`` is the function, for messages. Raises:
    SettingError if there is no such device; MissingDependencyError or DeviceError if its package or
    driver is missing.
    """
    if like is None:
        return creation_device(where, device)
    return device_argument(where, device, like._value.type.device)


def zeros(shape: int | tuple[int, ...], dtype: Any = None, *, device: Any = None) -> Array:
    """Return an array of zeros.

    Args:
        shape: its shape, an int or a tuple of ints.
        dtype: its dtype; None: float64.
        device: the name of its device; None: that of `xp.config`.

    Raises:
        ArgumentError: The shape is no int and no tuple of ints.
        ShapeError: An extent is negative, the extents other than 0 multiply to more than 2**59, or
            there are more than 64 axes.
        DTypeError, SettingError: There is no such dtype or device.
        DeviceError, MissingDependencyError: A driver or package for the device is missing, or it
            has no memory left.
        CapacityError: There is no memory for an array of complex numbers.

    >>> from passkit import xp
    >>> xp.zeros((2, 2))
    Array([[0., 0.],
           [0., 0.]], dtype=float64)
    """
    return _constant("zeros", 0, shape, dtype, device)


def ones(shape: int | tuple[int, ...], dtype: Any = None, *, device: Any = None) -> Array:
    """Return an array of ones.

    Args:
        shape: its shape, an int or a tuple of ints.
        dtype: its dtype; None: float64.
        device: the name of its device; None: that of `xp.config`.

    Raises:
        ArgumentError: The shape is no int and no tuple of ints.
        ShapeError: An extent is negative, the extents other than 0 multiply to more than 2**59, or
            there are more than 64 axes.
        DTypeError, SettingError: There is no such dtype or device.
        DeviceError, MissingDependencyError: A driver or package for the device is missing, or it
            has no memory left.
        CapacityError: There is no memory for an array of complex numbers.
    """
    return _constant("ones", 1, shape, dtype, device)


def empty(shape: int | tuple[int, ...], dtype: Any = None, *, device: Any = None) -> Array:
    """Return an array whose elements do not matter; they are zeros.

    Args:
        shape: its shape, an int or a tuple of ints.
        dtype: its dtype; None: float64.
        device: the name of its device; None: that of `xp.config`.

    Raises:
        ArgumentError: The shape is no int and no tuple of ints.
        ShapeError: An extent is negative, the extents other than 0 multiply to more than 2**59, or
            there are more than 64 axes.
        DTypeError, SettingError: There is no such dtype or device.
        DeviceError, MissingDependencyError: A driver or package for the device is missing, or it
            has no memory left.
        CapacityError: There is no memory for an array of complex numbers.
    """
    return _constant("empty", 0, shape, dtype, device)


def full(
    shape: int | tuple[int, ...], fill_value: Any, dtype: Any = None, *, device: Any = None
) -> Array:
    """Return an array with one value everywhere.

    Args:
        shape: its shape, an int or a tuple of ints.
        fill_value: a number, or a 0-dimensional array, which may be pending. Floats are cut to
            integers if ``dtype`` is one of integers.
        dtype: its dtype; None: that of the value, for numbers bool, int64 (uint64 if it needs
            that), float64 or complex128.
        device: the name of its device; None: that of an array on a device, else the default one.

    Raises:
        ArgumentError: The value is neither a number nor an array, or the shape is no int and no
            tuple of ints.
        ShapeError: An extent is negative, the extents other than 0 multiply to more than 2**59,
            there are more than 64 axes, or the value is not 0-dimensional.
        DTypeError: There is no such dtype, a Python number does not fit it (an integer beyond the
            limits of an integer dtype, NaN or too large a float for one, an integer too large for a
            float), or the value is complex and it is not.
        SettingError: There is no such device.
        DeviceError, MissingDependencyError: A driver or package for the device is missing, or it
            has no memory left.
        CapacityError: There is no memory for an array of complex numbers.

    >>> from passkit import xp
    >>> xp.full(3, 7)
    Array([7, 7, 7], dtype=int64)
    """
    place = creation_device("full", device)
    extents = checked_shape("full", shape)
    if not isinstance(fill_value, (bool, int, float, complex, np.generic, np.ndarray, Array)):
        refuse("full: fill_value", fill_value, "a number or a 0-dimensional array")
    if isinstance(fill_value, (bool, int, float)) and not isinstance(fill_value, np.generic):
        element_type = asarray(fill_value, dtype=dtype, device=CPU).dtype
        value = wrap(scalar(fill_value, element_type))
    else:
        value = asarray(fill_value, device=None if isinstance(fill_value, Array) else CPU)
        value = value if dtype is None else astype(value, dtype)
    own_device = value._value.type.device
    if own_device is not None:
        place = device_argument("full", device, own_device)
        value = on_device(value, place)
    if value.ndim:
        raise ShapeError(f"full: fill_value must be 0-dimensional, got shape {value.shape}")
    return broadcast_on(place, value, extents)


def zeros_like(x: Array, /, dtype: Any = None, *, device: Any = None) -> Array:
    """Return zeros of the shape of ``x``, and of its dtype unless ``dtype`` is given.

    ``device`` is the name of the device; None: that of ``x``.

    Raises:
        ArgumentError: ``x`` is no array or number.
        DTypeError, SettingError: There is no such dtype or device.
        DeviceError, MissingDependencyError: A driver or package for the device is missing, or it
            has no memory left.
        CapacityError: There is no memory for an array of complex numbers.
    """
    return _constant_like("zeros_like", 0, x, dtype, device)


def ones_like(x: Array, /, dtype: Any = None, *, device: Any = None) -> Array:
    """Return ones of the shape of ``x``, and of its dtype unless ``dtype`` is given.

    ``device`` is the name of the device; None: that of ``x``.

    Raises:
        ArgumentError: ``x`` is no array or number.
        DTypeError, SettingError: There is no such dtype or device.
        DeviceError, MissingDependencyError: A driver or package for the device is missing, or it
            has no memory left.
        CapacityError: There is no memory for an array of complex numbers.
    """
    return _constant_like("ones_like", 1, x, dtype, device)


def empty_like(x: Array, /, dtype: Any = None, *, device: Any = None) -> Array:
    """Return zeros of the shape of ``x``, and of its dtype unless ``dtype`` is given.

    ``device`` is the name of the device; None: that of ``x``.

    Raises:
        ArgumentError: ``x`` is no array or number.
        DTypeError, SettingError: There is no such dtype or device.
        DeviceError, MissingDependencyError: A driver or package for the device is missing, or it
            has no memory left.
        CapacityError: There is no memory for an array of complex numbers.
    """
    return _constant_like("empty_like", 0, x, dtype, device)


def full_like(x: Array, /, fill_value: Any, dtype: Any = None, *, device: Any = None) -> Array:
    """Return an array of the shape of ``x`` with one value everywhere.

    Args:
        x: an array, or a number.
        fill_value: a number or a 0-dimensional array. Floats are cut to integers if the dtype is
            one of integers.
        dtype: the dtype; None: that of ``x``.
        device: the name of the device; None: that of ``x``.

    Raises:
        ArgumentError: ``x`` is no array or number, or the value is neither a number nor an array.
        ShapeError: The value is not 0-dimensional.
        DTypeError: There is no such dtype, a Python number does not fit it (an integer beyond the
            limits of an integer dtype, NaN or too large a float for one, an integer too large for a
            float), or the value is complex and it is not.
        SettingError: There is no such device.
        DeviceError, MissingDependencyError: A driver or package for the device is missing, or it
            has no memory left.
        CapacityError: There is no memory for an array of complex numbers.
    """
    x = array_of(x)
    return full(
        x.shape,
        fill_value,
        dtype=x.dtype if dtype is None else dtype,
        device=x.device if device is None else device,
    )


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None
) -> Array:
    """Return a matrix with ones on a diagonal, and zeros elsewhere; it knows that, see `view_of`.

    Args:
        n_rows: the number of rows.
        n_cols: the number of columns; None: as many.
        k: which diagonal: 0 is the main one, positive ones are above it. One outside of the matrix
            leaves only zeros.
        dtype: its dtype; None: float64.
        device: the name of its device; None: that of `xp.config`.

    Raises:
        ArgumentError: A number of rows or columns, or ``k``, is no int.
        ShapeError: An extent is negative, or those other than 0 multiply to more than 2**59.
        DTypeError, SettingError: There is no such dtype or device.
        DeviceError, MissingDependencyError: A driver or package for the device is missing, or it
            has no memory left.
        CapacityError: There is no memory for an array of complex numbers.

    >>> from passkit import xp
    >>> xp.eye(2, 3, k=1, dtype=xp.int64)
    Array([[0, 1, 0],
           [0, 0, 1]], dtype=int64)
    """
    place = creation_device("eye", device)
    shape = checked_shape("eye", (n_rows, n_rows if n_cols is None else n_cols))
    element_type = dtype_of("float64" if dtype is None else checked_dtype("eye: dtype", dtype))
    k = max(-shape[0], min(integer("eye: k", k), shape[1]))  # beyond, there are no ones either
    offset = scalar(k, np.dtype("int64"))
    return declare(_created("eye", shape, element_type, place, offset), k, k)


def arange(
    start: Any, /, stop: Any = None, step: Any = 1, dtype: Any = None, *, device: Any = None
) -> Array:
    """Return the numbers start, start + step, … before stop.

    Args:
        start: the first number, a real one, also in a 0-dimensional array; if ``stop`` is None, the
            end, and the first number is 0.
        stop: the end, which is excluded. If it is not beyond ``start``, there are no numbers.
        step: the distance of neighbours, which may be negative.
        dtype: its dtype; integers beyond its limits wrap around. None: int64 (uint64 if the numbers
            need that) if all arguments are integers, else float64.
        device: the name of its device; None: that of `xp.config`.

    Raises:
        ArgumentError: An argument is no real number, is infinite or NaN, or is an int too large for
            a float, or ``step`` is 0.
        ShapeError: There are more than 2**59 numbers.
        DTypeError: There is no such dtype; or ``dtype`` is None or one of integers, and an integer
            fits neither int64 nor uint64.
        SettingError: There is no such device.
        DeviceError, MissingDependencyError: A driver or package for the device is missing, or it
            has no memory left.
        ConcretizationError: A 0-dimensional array depends on arguments of a function that is
            traced.
        CapacityError: There is no memory for an array of complex numbers.

    >>> from passkit import xp
    >>> xp.arange(1, 8, 3)
    Array([1, 4, 7], dtype=int64)
    """
    key = None
    is_plain = dtype is None and device is None and settings.device == CPU
    if is_plain and type(start) is type(step) is int and (stop is None or type(stop) is int):
        key = start, stop, step
        if (elements := _small_ranges.get(key)) is not None:
            return wrap(from_numpy(elements.copy(), is_owned=True))
    place = creation_device("arange", device)
    start = real_number("arange: start", start)
    step = real_number("arange: step", step)
    if stop is None:
        start, stop = 0, start
    stop = real_number("arange: stop", stop)
    if step == 0:
        raise ArgumentError(f"arange: step must not be 0, got {step!r}")
    for number in (start, stop, step):
        if not math.isfinite(number):
            raise ArgumentError(f"arange needs finite numbers, got {number}")
    are_integers = all(isinstance(v, int) for v in (start, stop, step))
    if are_integers:
        count = -((start - stop) // step)
    else:
        ratio = (stop - start) / step
        count = math.ceil(ratio) if math.isfinite(ratio) else ratio
    if count > MOST_ELEMENTS:
        raise ShapeError(f"arange has at most {MOST_ELEMENTS} numbers, got {shown(count)}")
    shape = (int(max(count, 0)),)
    if dtype is not None:
        element_type = checked_dtype("arange: dtype", dtype)
    elif are_integers:
        element_type = _integer_dtype(start, start + max(shape[0] - 1, 0) * step)
    else:
        element_type = dtype_of("float64")
    if element_type.kind == "c":
        first, distance = float(start), float(step)
        array = _allocated(
            "arange", lambda: (first + np.arange(shape[0]) * distance).astype(element_type.numpy)
        )
        return wrap(from_numpy(array, is_owned=True, device=place))
    if are_integers and element_type.kind in "biu":
        numbers = [scalar(_wrapped(v), np.dtype("int64")) for v in (start, step)]
    else:
        numbers = [scalar(float(v), np.dtype("float64")) for v in (start, step)]
    result = _created("range", shape, element_type, place, *numbers)
    if key is not None and result._value.operation is None and len(_small_ranges) < MAX_RANGES:
        _small_ranges[key] = result._value.buffer.copy()
    return result


MAX_RANGES = 256
_small_ranges: dict[tuple[int, int | None, int], Any] = {}
"""The elements of ranges that were computed at once, by the arguments of `arange`; the first
MAX_RANGES."""


def _allocated(where: str, create: Callable[[], Any]) -> Any:
    """Return the NumPy array that ``create()`` returns; ``where`` is the function, for messages.

    Raises: CapacityError if there is no memory for it.
    """
    try:
        return create()
    except (MemoryError, ValueError) as error:  # ValueError: more bytes than NumPy counts
        raise CapacityError(f"{where} has no memory for its result: {error}") from None


def _integer_dtype(first: int, last: int) -> DType:
    """Return int64, or uint64 if only that holds both numbers.

    Raises: DTypeError if neither holds both.
    """
    low, high = min(first, last), max(first, last)
    for name in ("int64", "uint64"):
        limits = np.iinfo(name)
        if limits.min <= low and high <= limits.max:
            return dtype_of(name)
    raise DTypeError(
        f"arange: no integer dtype holds {shown(low)} and {shown(high)}; dtype=xp.float64"
    )


def _wrapped(number: int) -> int:
    """Return the int64 of the same 64 bits; conversion to uint64 gives the number again.

    Raises: DTypeError if it has more than 64 bits.
    """
    if not -(1 << 63) <= number < 1 << 64:
        raise DTypeError(f"arange needs integers of at most 64 bits, got {shown(number)}")
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def real_number(where: str, number: Any) -> Any:
    """Return a real number, also one in a 0-dimensional array, as a bool, an int or a float.

    It may be NaN or infinite. What an array needs is executed. Raises: ArgumentError, which begins
    with ``where``, if it is something else, or an int that is too large for a float;
    ConcretizationError if an array depends on arguments of a function that is traced.
    """
    number = _element(number)
    if not isinstance(number, (int, float)):
        refuse(where, number, "a real number")
    try:
        float(number)
    except OverflowError:
        refuse(where, number, "within the limits of floats")
    return number


def _element(number: Any) -> Any:
    """Return the element of a 0-dimensional array as a Python number; anything else itself.

    What the array needs is executed.

    Raises: ConcretizationError if it depends on arguments of a function that is traced.
    """
    is_array = isinstance(number, (Array, np.ndarray, np.generic))
    return number.item() if is_array and number.shape == () else number


def linspace(
    start: Any,
    stop: Any,
    /,
    num: int,
    *,
    dtype: Any = None,
    device: Any = None,
    endpoint: bool = True,
) -> Array:
    """Return numbers at equal distances, which are computed in float64 or complex128.

    Args:
        start: the first number, real or complex, also in a 0-dimensional array.
        stop: the end, in the same form.
        num: how many numbers; for 1 it is ``start``.
        dtype: its dtype; None: float64, or complex128 if ``start`` or ``stop`` is complex. For
            integers, numbers are rounded down; beyond 2**53, they are those that float64 has.
        device: the name of its device; None: that of `xp.config`.
        endpoint: whether ``stop`` is the last of them; otherwise it would be the next one.

    Raises:
        ArgumentError: An argument is no number, or an int too large for a float, or ``num`` no
            integer.
        ShapeError: ``num`` is negative or above 2**59.
        DTypeError: There is no such dtype, or it is real and a number is complex.
        SettingError: There is no such device.
        DeviceError, MissingDependencyError: A driver or package for the device is missing, or it
            has no memory left.
        ConcretizationError: A 0-dimensional array depends on arguments of a function that is
            traced.
        CapacityError: There is no memory for an array of complex numbers.

    >>> from passkit import xp
    >>> xp.linspace(0, 1, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float64)
    """
    place = creation_device("linspace", device)
    endpoint = truth("linspace: endpoint", endpoint)
    shape = checked_shape("linspace", integer("linspace: num", num))
    start, stop = _element(start), _element(stop)
    is_complex = isinstance(start, complex) or isinstance(stop, complex)
    default = "complex128" if is_complex else "float64"
    element_type = dtype_of(default if dtype is None else checked_dtype("linspace: dtype", dtype))
    if element_type.kind == "c":
        if not isinstance(start, complex):
            start = real_number("linspace: start", start)
        if not isinstance(stop, complex):
            stop = real_number("linspace: stop", stop)
        dtype = element_type.numpy
        array = _allocated(
            "linspace", lambda: np.linspace(start, stop, shape[0], endpoint=endpoint, dtype=dtype)
        )
        return wrap(from_numpy(array, is_owned=True, device=place))
    if is_complex:
        raise DTypeError(f"linspace of complex numbers needs a complex dtype, got {element_type}")
    first = float(real_number("linspace: start", start))
    end = float(real_number("linspace: stop", stop))
    steps = shape[0] - 1 if endpoint else shape[0]
    last = float(steps) if endpoint and steps > 0 else math.inf
    step = (end - first) / steps if steps > 0 else 0.0
    numbers = [scalar(v, np.dtype("float64")) for v in (first, step, end, last)]
    return _created("linspace", shape, element_type, place, *numbers)


def logspace(
    start: Any,
    stop: Any,
    /,
    num: int = 50,
    *,
    base: Any = 10.0,
    dtype: Any = None,
    device: Any = None,
    endpoint: bool = True,
) -> Array:
    """Return powers of a base, with exponents at equal distances.

    Args:
        start: the first exponent, real or complex, also in a 0-dimensional array.
        stop: the last exponent.
        num: how many numbers.
        base: the base, a number or an array that broadcasts with the vector of exponents.
        dtype: its dtype; None: float64, or complex128 if an exponent or the base is complex.
        device: the name of its device; None: that of `xp.config`.
        endpoint: whether ``stop`` is the exponent of the last number.

    Raises:
        ArgumentError: An exponent is no number, or an int too large for a float, the base no number
            or array, or ``num`` no integer.
        ShapeError: ``num`` is negative or above 2**59, or the base does not broadcast, or to too
            many elements.
        DTypeError: There is no such dtype, complex numbers would become real, or an int as base is
            too large for a float.
        SettingError: There is no such device.
        DeviceError, MissingDependencyError: A driver or package for the device is missing, or it
            has no memory left.
        ConcretizationError: A 0-dimensional array depends on arguments of a function that is
            traced.
        CapacityError: There is no memory for an array of complex numbers.

    >>> from passkit import xp
    >>> xp.logspace(0, 2, 3)
    Array([  1.,  10., 100.], dtype=float64)
    """
    if not isinstance(base, (int, float, complex)):
        base = array_of(base)
    powers: Array = base ** linspace(start, stop, num, device=device, endpoint=endpoint)
    return powers if dtype is None else astype(powers, dtype, copy=False)


def meshgrid(*arrays: Array, indexing: str = "xy") -> list[Array]:
    """Return the coordinates of a grid from the coordinates along its axes.

    Args:
        *arrays: vectors, of any dtypes; a number is one of length 1.
        indexing: "ij": vector k varies along axis k of the results; "xy": the first two axes are
            swapped.

    Returns: A list with a new array for each vector, of its dtype; they have one axis for each
        vector. Without vectors the list is empty.

    Raises:
        ShapeError: An array has more than one axis, there are more than 64 of them, or the grid has
            too many points.
        ArgumentError: ``indexing`` is something else, or a vector is no array or number.

    >>> from passkit import xp
    >>> columns, rows = xp.meshgrid(xp.asarray([1, 2, 3]), xp.asarray([10, 20]))
    >>> rows
    Array([[10, 10, 10],
           [20, 20, 20]], dtype=int64)
    """
    if not isinstance(indexing, str) or indexing not in ("xy", "ij"):
        raise ArgumentError(f"meshgrid: indexing must be 'xy' or 'ij', got {shown(indexing)}")
    vectors = list(map(array_of, arrays))
    for a in vectors:
        if a.ndim > 1:
            raise ShapeError(f"meshgrid needs vectors, got an array of shape {a.shape}")
    rank = len(vectors)
    axes = list(range(rank))
    if indexing == "xy" and rank > 1:
        axes[:2] = [1, 0]
    extents = [1] * rank
    for a, axis in zip(vectors, axes, strict=True):
        extents[axis] = a.size
    grids = []
    for a, axis in zip(vectors, axes, strict=True):
        aligned = reshape(a, tuple(a.size if k == axis else 1 for k in range(rank)))
        grids.append(broadcast_to(aligned, tuple(extents)))
    return grids


def tril(x: Array, /, *, k: int = 0) -> Array:
    """Return matrices with zeros above a diagonal, which know that; see `view_of`.

    Args:
        x: matrices in the last two axes, of any dtype; the result is a new array.
        k: the highest diagonal that is kept: 0 is the main one, positive ones are above it.

    Raises:
        ArgumentError: ``x`` is no array or number, or ``k`` no integer.
        ShapeError: ``x`` has fewer than two axes.
    """
    return triangle("tril", "tril", x, integer("tril: k", k))


def triu(x: Array, /, *, k: int = 0) -> Array:
    """Return matrices with zeros below a diagonal, which know that; see `view_of`.

    Args:
        x: matrices in the last two axes, of any dtype; the result is a new array.
        k: the lowest diagonal that is kept: 0 is the main one, positive ones are above it.

    Raises:
        ArgumentError: ``x`` is no array or number, or ``k`` no integer.
        ShapeError: ``x`` has fewer than two axes.
    """
    return triangle("triu", "triu", x, integer("triu: k", k))
