"""Fourier transforms: the fft extension of the array API.

NumPy computes the transforms, and what is pending is executed for them. Those of float32 and
float16 are complex64, those of float64 and integers complex128.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

import passkit.ops as ops
from passkit.errors import ArgumentError, DTypeError, ShapeError
from passkit.frontends.xp.array import Array, array_of, call, wrap
from passkit.frontends.xp.creation import MOST_ELEMENTS, checked_shape
from passkit.frontends.xp.devices import creation_device
from passkit.frontends.xp.dtypes import checked_dtype
from passkit.frontends.xp.reductions import finite_number, integer, one_axis
from passkit.frontends.xp.runtime import OPERATIONS, from_numpy
from passkit.graph.node import Entry
from passkit.values.arguments import sequence, shown

Norm = Literal["backward", "ortho", "forward"]
"""Which transform is scaled: the inverse, both by the root of the size, or the forward one."""

_ALONG_ONE_AXIS = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
_ALONG_SEVERAL_AXES = ("fftn", "ifftn", "rfftn", "irfftn")
_OF_REAL_NUMBERS = ("rfft", "ihfft", "rfftn")


def _transform(name: str) -> Callable[..., Any]:
    """Return NumPy's transform ``name``, for arrays, which gets 16-bit floats as float32."""
    function = getattr(np.fft, name)

    def compute(x: Any, **params: Any) -> Any:
        return function(
            x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind in "fV" else x, **params
        )

    return compute


def _shifts(x: Entry, axes: tuple[int, ...], is_inverse: bool) -> tuple[int, ...]:
    """Return by how much to move the elements of ``x`` along each of ``axes``, which are in range.

    That is half of the extent, rounded down; with ``is_inverse`` in the other direction. Raises:
    ShapeError if an extent is unknown.
    """
    extents = [(x.shape or ())[k] for k in axes]
    numbers = [n for n in extents if isinstance(n, int)]
    if len(numbers) < len(extents):
        raise ShapeError("fftshift needs known extents")
    return tuple(-(n // 2) if is_inverse else n // 2 for n in numbers)


def _fftshift(x: Entry, axes: tuple[int, ...]) -> Entry:
    """Build the shift of ``x`` along ``axes`` that puts frequency 0 in the middle.

    Without axes it is a copy of x. Raises: ShapeError if an extent is unknown.
    """
    return ops.roll(x, shift=_shifts(x, axes, False), axis=axes) if axes else ops.identity(x)


def _shift_of_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return NumPy's ``function``, a shift, such that it also takes 0-dimensional arrays."""
    return lambda x, axes: function(x, axes=axes) if axes else x.copy()


def _ifftshift(x: Entry, axes: tuple[int, ...]) -> Entry:
    """Build the shift of ``x`` along ``axes`` that puts frequency 0 in front.

    Without axes it is a copy of x. Raises: ShapeError if an extent is unknown.
    """
    return ops.roll(x, shift=_shifts(x, axes, True), axis=axes) if axes else ops.identity(x)


for _name in (*_ALONG_ONE_AXIS, *_ALONG_SEVERAL_AXES):
    OPERATIONS.define(_name, None, _transform(_name))
OPERATIONS.define("fftshift", _fftshift, _shift_of_arrays(np.fft.fftshift))
OPERATIONS.define("ifftshift", _ifftshift, _shift_of_arrays(np.fft.ifftshift))


def _along_axis(name: str, x: Any, n: int | None, axis: int, norm: str) -> Array:
    """Apply the transform ``name`` along one axis.

    ``n`` is the number of points, None for all; ``norm`` says which transform is scaled.

    Raises:
        ArgumentError: ``x`` is no array or number, there is no such norm, or the number of points
            or the axis is no integer.
        ShapeError: there is no such axis, or fewer points than 1 or too many.
        DTypeError: a transform of real numbers gets complex ones.
        ConcretizationError: ``x`` depends on arguments of a function that is traced.
    """
    array = array_of(x)
    axis = one_axis(f"fft.{name}", axis, array.ndim)
    extent = array.shape[axis]
    (points,) = _checked_points(name, norm, [_default_points(name, extent) if n is None else n])
    _check_is_real(name, array)
    n = None if n is None else points
    return call(name, array, n=n, axis=axis, norm=norm)


def _along_axes(
    name: str, x: Any, s: Sequence[int] | None, axes: Sequence[int] | None, norm: str
) -> Array:
    """Apply the transform ``name`` along several axes.

    ``s`` has the number of points for each axis, None for all; ``axes`` None is for all axes, or as
    many of the last ones as ``s`` has; ``norm`` says which transform is scaled.

    Raises:
        ArgumentError: ``x`` is no array or number, there is no such norm, ``s`` or ``axes`` is no
            sequence of integers, or there is not a number of points for each axis.
        ShapeError: there is no such axis, no axis at all, or a number of points is below 1 or too
            large.
        DTypeError: a transform of real numbers gets complex ones.
        ConcretizationError: ``x`` depends on arguments of a function that is traced.
    """
    array, where = array_of(x), f"fft.{name}"
    sizes = None if s is None else list(sequence(f"{where}: s", s, object))
    if axes is None:
        count = array.ndim if sizes is None else len(sizes)
        axes = range(-count, 0)
    listed = sequence(f"{where}: axes", axes, object)
    counted_axes = tuple(one_axis(where, k, array.ndim) for k in listed)
    if not counted_axes:
        raise ShapeError(f"{where} needs an axis, got an array of shape {array.shape} and none")
    if sizes is None:
        sizes = [array.shape[k] for k in counted_axes]
        sizes[-1] = _default_points(name, sizes[-1])
    if len(sizes) != len(counted_axes):
        raise ArgumentError(f"{where}: {len(sizes)} sizes do not fit {len(counted_axes)} axes")
    points = _checked_points(name, norm, sizes)
    _check_is_real(name, array)
    return call(name, array, s=None if s is None else points, axes=counted_axes, norm=norm)


def _default_points(name: str, extent: int) -> int:
    """Return the number of points of the transform ``name`` along an axis, where none is given.

    It is the extent, or 2 * (extent - 1) for one from half of the frequencies to real numbers.
    """
    return 2 * (extent - 1) if name in ("hfft", "irfft", "irfftn") else extent


def _checked_points(name: str, norm: str, sizes: Sequence[Any]) -> tuple[int, ...]:
    """Return numbers of points of the transform ``name`` as ints; also check its norm.

    Raises:
        ArgumentError: the norm is unknown, or a number of points is no integer.
        ShapeError: a number of points is less than 1, or too large.
    """
    if not isinstance(norm, str) or norm not in ("backward", "ortho", "forward"):
        raise ArgumentError(
            f"fft.{name}: norm must be 'backward', 'ortho' or 'forward', got {shown(norm)}"
        )
    points = tuple([integer(f"fft.{name}: a number of points", size) for size in sizes])
    for size in points:
        if not 1 <= size <= MOST_ELEMENTS:
            raise ShapeError(
                f"fft.{name}: a transform needs from 1 to {MOST_ELEMENTS} points, got {shown(size)}"
            )
    return points


def _check_is_real(name: str, x: Array) -> None:
    """Raise a DTypeError if the transform ``name`` needs real numbers and ``x`` is complex."""
    if name in _OF_REAL_NUMBERS and x.dtype.kind == "c":
        raise DTypeError(
            f"fft.{name} needs real numbers, got {x.dtype}; take xp.real of them, or use the "
            "transform of complex numbers"
        )


def fft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Return the discrete Fourier transform along an axis, complex numbers.

    They are complex64 for floats of 32 and 16 bits, complex128 for float64, integers and booleans.

    Args:
        x: an array of numbers.
        n: the number of points: x is cut, or continued with zeros; None for all.
        axis: the axis.
        norm: "backward" leaves the sums as they are, "ortho" divides them by sqrt(n), and
            "forward" by n.

    Raises:
        ArgumentError: x is no array or number, there is no such norm, or n or the axis is no
            integer.
        ShapeError: there is no such axis, or n (or the extent) is below 1 or too large.
        ConcretizationError: x depends on arguments of a function that is traced.
    """
    return _along_axis("fft", x, n, axis, norm)


def ifft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Return the inverse of `fft` along an axis, complex numbers of the dtypes of `fft`.

    Args:
        x: an array of numbers.
        n: the number of points: x is cut, or continued with zeros; None for all.
        axis: the axis.
        norm: "backward" divides the sums by n, "ortho" by sqrt(n), "forward" leaves them.

    Raises:
        ArgumentError: x is no array or number, there is no such norm, or n or the axis is no
            integer.
        ShapeError: there is no such axis, or n (or the extent) is below 1 or too large.
        ConcretizationError: x depends on arguments of a function that is traced.
    """
    return _along_axis("ifft", x, n, axis, norm)


def rfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Return the Fourier transform of real numbers, without the negative frequencies.

    The results are complex numbers of the dtypes of `fft`.

    Args:
        x: an array of real numbers.
        n: the number of points: x is cut, or continued with zeros; None for all.
        axis: the axis; its extent becomes n // 2 + 1.
        norm: "backward" leaves the sums as they are, "ortho" divides them by sqrt(n), and
            "forward" by n.

    Raises:
        ArgumentError: x is no array or number, there is no such norm, or n or the axis is no
            integer.
        ShapeError: there is no such axis, or n (or the extent) is below 1 or too large.
        DTypeError: the numbers are complex.
        ConcretizationError: x depends on arguments of a function that is traced.
    """
    return _along_axis("rfft", x, n, axis, norm)


def irfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Return the inverse of `rfft`, real numbers: float32 where `fft` is complex64, else float64.

    Args:
        x: an array of numbers.
        n: the number of points of the result; None for 2 * (extent - 1).
        axis: the axis.
        norm: "backward" divides the sums by n, "ortho" by sqrt(n), "forward" leaves them.

    Raises:
        ArgumentError: x is no array or number, there is no such norm, or n or the axis is no
            integer.
        ShapeError: there is no such axis, or n is too large, or below 1, as its default for the
            extent 1.
        ConcretizationError: x depends on arguments of a function that is traced.
    """
    return _along_axis("irfft", x, n, axis, norm)


def hfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Return the Fourier transform of a signal with Hermitian symmetry, real numbers.

    They are float32 where `fft` is complex64, else float64.

    Args:
        x: an array of numbers, half of the signal.
        n: the number of points of the result; None for 2 * (extent - 1).
        axis: the axis.
        norm: "backward" leaves the sums as they are, "ortho" divides them by sqrt(n), and
            "forward" by n.

    Raises:
        ArgumentError: x is no array or number, there is no such norm, or n or the axis is no
            integer.
        ShapeError: there is no such axis, or n is too large, or below 1, as its default for the
            extent 1.
        ConcretizationError: x depends on arguments of a function that is traced.
    """
    return _along_axis("hfft", x, n, axis, norm)


def ihfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Return the inverse of `hfft`, complex numbers of the dtypes of `fft`.

    Args:
        x: an array of real numbers.
        n: the number of points: x is cut, or continued with zeros; None for all.
        axis: the axis; its extent becomes n // 2 + 1.
        norm: "backward" divides the sums by n, "ortho" by sqrt(n), "forward" leaves them.

    Raises:
        ArgumentError: x is no array or number, there is no such norm, or n or the axis is no
            integer.
        ShapeError: there is no such axis, or n (or the extent) is below 1 or too large.
        DTypeError: the numbers are complex.
        ConcretizationError: x depends on arguments of a function that is traced.
    """
    return _along_axis("ihfft", x, n, axis, norm)


def fftn(
    x: Any,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Array:
    """Return the discrete Fourier transform along several axes, complex numbers.

    Their dtypes are those of `fft`.

    Args:
        x: an array of numbers.
        s: the number of points for each axis: x is cut, or continued with zeros; None for all.
        axes: the axes, a sequence; None for all, or the last ones where s is given. One that is
            named twice is transformed twice.
        norm: "backward" leaves the sums as they are, "ortho" divides them by the root of the number
            of points, and "forward" by the number.

    Raises:
        ArgumentError: x is no array or number, there is no such norm, s or axes is no sequence of
            integers, or there is not a number of points for each axis.
        ShapeError: there is no such axis, or none, or a number of points (or an extent) is below 1
            or too large.
        ConcretizationError: x depends on arguments of a function that is traced.
    """
    return _along_axes("fftn", x, s, axes, norm)


def ifftn(
    x: Any,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Array:
    """Return the inverse of `fftn` along several axes, complex numbers of the dtypes of `fft`.

    Args:
        x: an array of numbers.
        s: the number of points for each axis: x is cut, or continued with zeros; None for all.
        axes: the axes, a sequence; None for all, or the last ones where s is given. One that is
            named twice is transformed twice.
        norm: "backward" divides the sums by the number of points, "ortho" by its root, "forward"
            leaves them.

    Raises:
        ArgumentError: x is no array or number, there is no such norm, s or axes is no sequence of
            integers, or there is not a number of points for each axis.
        ShapeError: there is no such axis, or none, or a number of points (or an extent) is below 1
            or too large.
        ConcretizationError: x depends on arguments of a function that is traced.
    """
    return _along_axes("ifftn", x, s, axes, norm)


def rfftn(
    x: Any,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Array:
    """Return the Fourier transform of real numbers, without negative frequencies of the last axis.

    The results are complex numbers of the dtypes of `fft`.

    Args:
        x: an array of real numbers.
        s: the number of points for each axis: x is cut, or continued with zeros; None for all.
        axes: the axes; None for all, or the last ones where s is given. The extent of the last one
            becomes s[-1] // 2 + 1.
        norm: as for `fftn`.

    Raises:
        ArgumentError: x is no array or number, there is no such norm, s or axes is no sequence of
            integers, or there is not a number of points for each axis.
        ShapeError: there is no such axis, or none, or a number of points (or an extent) is below 1
            or too large.
        DTypeError: the numbers are complex.
        ConcretizationError: x depends on arguments of a function that is traced.
    """
    return _along_axes("rfftn", x, s, axes, norm)


def irfftn(
    x: Any,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Array:
    """Return the inverse of `rfftn`, real numbers: float32 where `fft` is complex64, else float64.

    Args:
        x: an array of numbers.
        s: the number of points of the result for each axis; None for all, and for
            2 * (extent - 1) along the last one.
        axes: the axes, a sequence; None for all, or the last ones where s is given. One that is
            named twice is transformed twice.
        norm: as for `ifftn`.

    Raises:
        ArgumentError: x is no array or number, there is no such norm, s or axes is no sequence of
            integers, or there is not a number of points for each axis.
        ShapeError: there is no such axis, or none, or a number of points (or an extent) is below 1
            or too large.
        ConcretizationError: x depends on arguments of a function that is traced.
    """
    return _along_axes("irfftn", x, s, axes, norm)


def _frequencies(name: str, n: int, d: float, dtype: Any, device: Any) -> Array:
    """Return the array of frequencies of NumPy's function ``name``, "fftfreq" or "rfftfreq".

    Args:
        name: the function.
        n: the number of points.
        d: the distance of two samples.
        dtype: the dtype of the result; None for float64.
        device: the device; None for the default one.

    Raises:
        ArgumentError: n is no integer of at least 1, or d no finite int or float of Python, or 0.
        ShapeError: n is more than the elements of an array.
        DTypeError: the dtype is not one of real floats.
        SettingError: there is no such device.
        DeviceError, MissingDependencyError: a driver or package for the device is missing.
    """
    points = integer(f"fft.{name}: n", n)
    if points < 1:
        raise ArgumentError(f"fft.{name}: n must be a positive integer, got {shown(n)}")
    checked_shape(f"fft.{name}", points)
    distance = finite_number(f"fft.{name}: d", d)
    if not distance:
        raise ArgumentError(f"fft.{name}: d must be a number other than 0, got {shown(d)}")
    place = creation_device(f"fft.{name}", device)
    target = checked_dtype(f"fft.{name}: dtype", "float64" if dtype is None else dtype)
    if not target.is_float:
        raise DTypeError(f"fft.{name} returns floats, got dtype {target}; xp.float32 is one")
    frequencies = getattr(np.fft, name)(points, distance)
    return wrap(from_numpy(frequencies.astype(target.numpy), is_owned=True, device=place))


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Array:
    """Return the n frequencies of the results of `fft`: 0, the positive and the negative ones.

    Args:
        n: the number of points.
        d: the distance of two samples, a number.
        dtype: a dtype of real floats; None for float64.
        device: the device; None for the default one.

    Raises:
        ArgumentError: n is no integer of at least 1, or d no finite int or float of Python, or 0.
        ShapeError: n is more than the elements of an array.
        DTypeError: the dtype is not one of real floats.
        SettingError: there is no such device.
        DeviceError, MissingDependencyError: a driver or package for the device is missing.

    >>> from passkit import xp
    >>> xp.fft.fftfreq(4).numpy().tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    return _frequencies("fftfreq", n, d, dtype, device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Array:
    """Return the n // 2 + 1 frequencies of the results of `rfft`, rising from 0.

    Args:
        n: the number of points.
        d: the distance of two samples, a number.
        dtype: a dtype of real floats; None for float64.
        device: the device; None for the default one.

    Raises:
        ArgumentError: n is no integer of at least 1, or d no finite int or float of Python, or 0.
        ShapeError: n is more than the elements of an array.
        DTypeError: the dtype is not one of real floats.
        SettingError: there is no such device.
        DeviceError, MissingDependencyError: a driver or package for the device is missing.
    """
    return _frequencies("rfftfreq", n, d, dtype, device)


def _shifted(name: str, x: Any, axes: int | Sequence[int] | None) -> Array:
    """Apply the shift ``name`` along axes: an int or a sequence of them; None for all.

    Raises:
        ArgumentError: ``x`` is no array or number, or an axis no integer.
        ShapeError: there is no such axis.
    """
    array, where = array_of(x), f"fft.{name}"
    if axes is None:
        axes = range(array.ndim)
    is_one = isinstance(axes, (int, np.integer))
    items = sequence(f"{where}: axes", (axes,) if is_one else axes, object)
    return call(name, array, axes=tuple(one_axis(where, k, array.ndim) for k in items))


def fftshift(x: Any, /, *, axes: int | Sequence[int] | None = None) -> Array:
    """Return a new array with frequency 0 in the middle of axes, at position extent // 2.

    Args:
        x: an array of results of a transform, or of frequencies, of any dtype.
        axes: an axis or a sequence of them, of which one that is named twice is shifted twice; None
            for all.

    Raises:
        ArgumentError: x is no array or number, or an axis no integer.
        ShapeError: there is no such axis.
    """
    return _shifted("fftshift", x, axes)


def ifftshift(x: Any, /, *, axes: int | Sequence[int] | None = None) -> Array:
    """Return the inverse of `fftshift`: a new array with frequency 0 in front.

    Args:
        x: an array with frequency 0 in the middle, of any dtype.
        axes: an axis or a sequence of them, of which one that is named twice is shifted twice; None
            for all.

    Raises:
        ArgumentError: x is no array or number, or an axis no integer.
        ShapeError: there is no such axis.
    """
    return _shifted("ifftshift", x, axes)
