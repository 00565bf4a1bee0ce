"""Methods of `Array` that compute: reductions, scans, roundings, and parts of complex numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from passkit.frontends.xp import reductions
from passkit.frontends.xp.runtime import apply, operation
from passkit.streams.recorder import Value

if TYPE_CHECKING:
    from passkit.frontends.xp.array import Array

MOST_DECIMALS = 308
"""The largest power of 10 that is a float."""


class ComputingMethods:
    """The methods of `Array` that compute, with NumPy's names and defaults."""

    __slots__ = ()

    if TYPE_CHECKING:
        _value: Value

        @staticmethod
        def _wrapped(value: Value) -> Array:
            """Return a new array that holds a value."""

    # Reductions

    def sum(self, axis: reductions.Axes = None, dtype: Any = None, keepdims: bool = False) -> Array:
        """Return the sum along axes; 0 of nothing.

        ``axis`` is an axis, several, or None for all; ``()`` reduces nothing. ``dtype`` is the one
        to convert to before; None keeps floats and complex numbers, and is int64 for signed
        integers and booleans, uint64 for unsigned ones. With ``keepdims`` the axes stay with extent
        1.

        Raises:
            ArgumentError: an axis is no integer.
            ShapeError: there is no such axis, or it is named twice.
            DTypeError: there is no such dtype, it is bool, or complex numbers would become real.
        """
        if dtype is None:
            return reductions.reduced_array("sum", self, axis, keepdims)  # type: ignore[no-any-return]
        return self._wrapped(reductions.summed("sum", self._value, axis, dtype, keepdims))

    def prod(
        self, axis: reductions.Axes = None, dtype: Any = None, keepdims: bool = False
    ) -> Array:
        """Return the product along axes; 1 of nothing.

        ``axis`` is an axis, several, or None for all; ``()`` reduces nothing. ``dtype`` is the one
        to convert to before; None keeps floats and complex numbers, and is int64 for signed
        integers and booleans, uint64 for unsigned ones. With ``keepdims`` the axes stay with extent
        1.

        Raises:
            ArgumentError: an axis is no integer.
            ShapeError: there is no such axis, or it is named twice.
            DTypeError: there is no such dtype, it is bool, or complex numbers would become real.
        """
        if dtype is None:
            return reductions.reduced_array("prod", self, axis, keepdims)  # type: ignore[no-any-return]
        return self._wrapped(reductions.summed("prod", self._value, axis, dtype, keepdims))

    def mean(
        self, axis: reductions.Axes = None, dtype: Any = None, keepdims: bool = False
    ) -> Array:
        """Return the mean along axes, of elements that are converted to ``dtype`` before.

        ``axis`` is an axis, several, or None for all; ``dtype`` None keeps the dtype; with
        ``keepdims`` the axes stay with extent 1. The mean of nothing is NaN, and that of integers
        and booleans, also as ``dtype``, is float64.

        Raises:
            ArgumentError: an axis is no integer.
            ShapeError: there is no such axis, or it is named twice.
            DTypeError: there is no such dtype, or complex numbers would become real.
        """
        if dtype is None:
            return reductions.reduced_array("mean", self, axis, keepdims)  # type: ignore[no-any-return]
        return self._wrapped(reductions.averaged(self._value, axis, dtype, keepdims))

    def max(self, axis: reductions.Axes = None, keepdims: bool = False) -> Array:
        """Return the largest element along axes; NaN if one is NaN.

        Complex numbers are compared by real parts, then by imaginary ones. ``axis`` is an axis,
        several, or None for all; with ``keepdims`` the axes stay with extent 1.

        Raises:
            ArgumentError: an axis is no integer.
            ShapeError: there is no such axis, it is named twice, or it has no element.
        """
        return reductions.reduced_array("max", self, axis, keepdims)  # type: ignore[no-any-return]

    def min(self, axis: reductions.Axes = None, keepdims: bool = False) -> Array:
        """Return the smallest element along axes; NaN if one is NaN.

        Complex numbers are compared by real parts, then by imaginary ones. ``axis`` is an axis,
        several, or None for all; with ``keepdims`` the axes stay with extent 1.

        Raises:
            ArgumentError: an axis is no integer.
            ShapeError: there is no such axis, it is named twice, or it has no element.
        """
        return reductions.reduced_array("min", self, axis, keepdims)  # type: ignore[no-any-return]

    def any(self, axis: reductions.Axes = None, keepdims: bool = False) -> Array:
        """Return whether any element along axes is true, as all numbers but 0; False of nothing.

        ``axis`` is an axis, several, or None for all; with ``keepdims`` the axes stay with extent
        1.

        Raises:
            ArgumentError: an axis is no integer.
            ShapeError: there is no such axis, or it is named twice.
        """
        return reductions.reduced_array("any", self, axis, keepdims)  # type: ignore[no-any-return]

    def all(self, axis: reductions.Axes = None, keepdims: bool = False) -> Array:
        """Return whether all elements along axes are true, as all numbers but 0; True of nothing.

        ``axis`` is an axis, several, or None for all; with ``keepdims`` the axes stay with extent
        1.

        Raises:
            ArgumentError: an axis is no integer.
            ShapeError: there is no such axis, or it is named twice.
        """
        return reductions.reduced_array("all", self, axis, keepdims)  # type: ignore[no-any-return]

    def var(
        self,
        axis: reductions.Axes = None,
        *,
        ddof: float = 0,
        correction: float | None = None,
        keepdims: bool = False,
    ) -> Array:
        """Return the variance along axes: squared deviations from the mean, divided by a count.

        ``axis`` is an axis, several, or None for all. ``correction``, or ``ddof`` if that is None,
        is subtracted from the count of elements. With ``keepdims`` the axes stay with extent 1. The
        result is float64 for integers and booleans, real for complex numbers, and infinite or NaN
        if nothing is left of the count.

        Raises:
            ArgumentError: the correction is no finite number, or an axis no integer.
            ShapeError: there is no such axis, or it is named twice.
        """
        correction = ddof if correction is None else correction
        return self._wrapped(reductions.spread("var", self._value, axis, correction, keepdims))

    def std(
        self,
        axis: reductions.Axes = None,
        *,
        ddof: float = 0,
        correction: float | None = None,
        keepdims: bool = False,
    ) -> Array:
        """Return the standard deviation along axes: the root of the variance, see `var`.

        ``axis`` is an axis, several, or None for all. ``correction``, or ``ddof`` if that is None,
        is subtracted from the count of elements. With ``keepdims`` the axes stay with extent 1. The
        result is float64 for integers and booleans, real for complex numbers, and infinite or NaN
        if nothing is left of the count.

        Raises:
            ArgumentError: the correction is no finite number, or an axis no integer.
            ShapeError: there is no such axis, or it is named twice.
        """
        correction = ddof if correction is None else correction
        return self._wrapped(reductions.spread("std", self._value, axis, correction, keepdims))

    def argmax(self, axis: int | None = None, keepdims: bool = False) -> Array:
        """Return where the largest element is, as int64: the first one, or the first NaN.

        ``axis`` is one axis, None for the position among all elements in row-major order; with
        ``keepdims`` the axes stay with extent 1.

        Raises:
            ArgumentError: the axis is no integer.
            ShapeError: there is no such axis, or it has no element.
        """
        return self._wrapped(reductions.position("argmax", self._value, axis, keepdims))

    def argmin(self, axis: int | None = None, keepdims: bool = False) -> Array:
        """Return where the smallest element is, as int64: the first one, or the first NaN.

        ``axis`` is one axis, None for the position among all elements in row-major order; with
        ``keepdims`` the axes stay with extent 1.

        Raises:
            ArgumentError: the axis is no integer.
            ShapeError: there is no such axis, or it has no element.
        """
        return self._wrapped(reductions.position("argmin", self._value, axis, keepdims))

    # Scans

    def cumsum(self, axis: int | None = None, dtype: Any = None) -> Array:
        """Return the sums of the elements up to each one along an axis.

        ``axis`` None is for all elements in row-major order; then the result is a vector. ``dtype``
        is the dtype to convert to before summing, None as for `sum`.

        Raises:
            ArgumentError: the axis is no integer.
            ShapeError: there is no such axis.
            DTypeError: there is no such dtype, it is bool, or complex numbers would become real.
        """
        value = reductions.scanned("cumulative_sum", self._value, axis, dtype, False)
        return self._wrapped(value)

    def cumprod(self, axis: int | None = None, dtype: Any = None) -> Array:
        """Return the products of the elements up to each one along an axis.

        ``axis`` None is for all elements in row-major order; then the result is a vector. ``dtype``
        is the dtype to convert to before multiplying, None as for `prod`.

        Raises:
            ArgumentError: the axis is no integer.
            ShapeError: there is no such axis.
            DTypeError: there is no such dtype, it is bool, or complex numbers would become real.
        """
        value = reductions.scanned("cumulative_prod", self._value, axis, dtype, False)
        return self._wrapped(value)

    # Elementwise

    def round(self, decimals: int = 0) -> Array:
        """Return the elements rounded, halves to even.

        Args:
            decimals: the number of digits to keep after the point. Negative ones round digits
                before it. Above 308 elements are unchanged, below -308 they become 0. Integers and
                booleans are unchanged, except by negative numbers, which make them float64.

        Raises: ArgumentError if ``decimals`` is no integer.
        """
        decimals = reductions.integer("round: decimals", decimals)
        if not decimals or (decimals > 0 and self._value.type.dtype.kind in "biu"):
            return self._wrapped(apply(operation("round"), self._value))
        x: Any = self
        if abs(decimals) > MOST_DECIMALS:
            return x.copy() if decimals > 0 else x * 0.0  # type: ignore[no-any-return]
        scale = 10.0 ** abs(decimals)
        rounded: Array = (
            (x * scale).round() / scale if decimals > 0 else (x / scale).round() * scale
        )
        return rounded

    def clip(self, min: Any = None, max: Any = None) -> Array:
        """Return the elements limited to an interval: ``max`` where min > max, and NaN of NaN.

        ``min`` and ``max`` are arrays that broadcast, numbers, or None for no limit; the dtype is
        the promoted one, in which Python numbers are weak.

        Raises: ArgumentError for other limits, or an int beyond which the dtype has no number;
        DTypeError for one that is too large for a float; ShapeError where they do not broadcast;
        DeviceError for limits on another device.
        """
        from passkit.frontends.xp.elementwise import clip  # that imports the class of arrays

        return clip(self, min, max)

    def conj(self) -> Array:
        """Return the complex conjugates; of real numbers and booleans, a new array of them."""
        return self._wrapped(apply(operation("conj"), self._value))

    @property
    def real(self) -> Array:
        """The real parts, a new array."""
        return self._wrapped(apply(operation("real"), self._value))

    @property
    def imag(self) -> Array:
        """The imaginary parts, a new array; zeros of real numbers."""
        return self._wrapped(apply(operation("imag"), self._value))
