"""Methods of `Array` that compute: reductions, scans, roundings, and parts of complex numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from passkit.frontends.xp import reductions
from passkit.frontends.xp.runtime import apply, operation
from passkit.streams.recorder import Value

if TYPE_CHECKING:
    from passkit.frontends.xp.array import Array


class ComputingMethods:
    """The methods of `Array` that compute, with NumPy's names and defaults."""

    __slots__ = ()

    if TYPE_CHECKING:
        _value: Value

        @staticmethod
        def _wrapped(value: Value) -> Array:
            """Return the array of a value."""

    # Reductions

    def sum(self, axis: reductions.Axes = None, dtype: Any = None, keepdims: bool = False) -> Array:
        """Return the sum along axes, see `xp.sum`.

        ``axis`` is an axis, several, or None for all; ``dtype`` the dtype to convert to before;
        with ``keepdims`` the axes stay with extent 1.

        Raises: ShapeError for a wrong axis, ArgumentError for one that is no integer, DTypeError
        for a wrong dtype.
        """
        return self._wrapped(reductions.summed("sum", self._value, axis, dtype, keepdims))

    def prod(
        self, axis: reductions.Axes = None, dtype: Any = None, keepdims: bool = False
    ) -> Array:
        """Return the product along axes, see `xp.prod`.

        ``axis`` is an axis, several, or None for all; ``dtype`` the dtype to convert to before;
        with ``keepdims`` the axes stay with extent 1.

        Raises: ShapeError for a wrong axis, ArgumentError for one that is no integer, DTypeError
        for a wrong dtype.
        """
        return self._wrapped(reductions.summed("prod", self._value, axis, dtype, keepdims))

    def mean(
        self, axis: reductions.Axes = None, dtype: Any = None, keepdims: bool = False
    ) -> Array:
        """Return the mean along axes, of elements converted to ``dtype``; see `xp.mean`.

        ``axis`` is an axis, several, or None for all; with ``keepdims`` the axes stay with extent
        1. The mean of nothing is NaN.

        Raises: ShapeError for a wrong axis, ArgumentError for one that is no integer, DTypeError
        for a wrong dtype.
        """
        return self._wrapped(reductions.averaged(self._value, axis, dtype, keepdims))

    def max(self, axis: reductions.Axes = None, keepdims: bool = False) -> Array:
        """Return the largest element along axes, see `xp.max`.

        ``axis`` is an axis, several, or None for all; with ``keepdims`` the axes stay with extent
        1.

        Raises: ShapeError for a wrong axis or no element, ArgumentError for an axis that is no
        integer.
        """
        return self._wrapped(reductions.reduced("max", self._value, axis, keepdims))

    def min(self, axis: reductions.Axes = None, keepdims: bool = False) -> Array:
        """Return the smallest element along axes, see `xp.min`.

        ``axis`` is an axis, several, or None for all; with ``keepdims`` the axes stay with extent
        1.

        Raises: ShapeError for a wrong axis or no element, ArgumentError for an axis that is no
        integer.
        """
        return self._wrapped(reductions.reduced("min", self._value, axis, keepdims))

    def any(self, axis: reductions.Axes = None, keepdims: bool = False) -> Array:
        """Return whether any element along axes is true, see `xp.any`.

        ``axis`` is an axis, several, or None for all; with ``keepdims`` the axes stay with extent
        1.

        Raises: ShapeError for a wrong axis, ArgumentError for one that is no integer.
        """
        return self._wrapped(reductions.reduced("any", self._value, axis, keepdims))

    def all(self, axis: reductions.Axes = None, keepdims: bool = False) -> Array:
        """Return whether all elements along axes are true, see `xp.all`.

        ``axis`` is an axis, several, or None for all; with ``keepdims`` the axes stay with extent
        1.

        Raises: ShapeError for a wrong axis, ArgumentError for one that is no integer.
        """
        return self._wrapped(reductions.reduced("all", self._value, axis, keepdims))

    def var(
        self,
        axis: reductions.Axes = None,
        *,
        ddof: float = 0,
        correction: float | None = None,
        keepdims: bool = False,
    ) -> Array:
        """Return the variance along axes; ``ddof`` is another name of ``correction``.

        ``axis`` is an axis, several, or None for all; ``correction``, which goes before ``ddof``,
        is subtracted from the count; with ``keepdims`` the axes stay with extent 1. See `xp.var`.

        Raises: ShapeError for a wrong axis, ArgumentError for a correction that is no finite
        number.
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
        """Return the standard deviation along axes; ``ddof`` is another name of ``correction``.

        ``axis`` is an axis, several, or None for all; ``correction``, which goes before ``ddof``,
        is subtracted from the count; with ``keepdims`` the axes stay with extent 1. See `xp.std`.

        Raises: ShapeError for a wrong axis, ArgumentError for a correction that is no finite
        number.
        """
        correction = ddof if correction is None else correction
        return self._wrapped(reductions.spread("std", self._value, axis, correction, keepdims))

    def argmax(self, axis: int | None = None, keepdims: bool = False) -> Array:
        """Return where the largest element is, as int64, see `xp.argmax`.

        ``axis`` is the axis, None for the position among all elements in row-major order; with
        ``keepdims`` the axes stay with extent 1.

        Raises: ShapeError for a wrong axis or no element, ArgumentError for an axis that is no
        integer.
        """
        return self._wrapped(reductions.position("argmax", self._value, axis, keepdims))

    def argmin(self, axis: int | None = None, keepdims: bool = False) -> Array:
        """Return where the smallest element is, as int64, see `xp.argmin`.

        ``axis`` is the axis, None for the position among all elements in row-major order; with
        ``keepdims`` the axes stay with extent 1.

        Raises: ShapeError for a wrong axis or no element, ArgumentError for an axis that is no
        integer.
        """
        return self._wrapped(reductions.position("argmin", self._value, axis, keepdims))

    # Scans

    def cumsum(self, axis: int | None = None, dtype: Any = None) -> Array:
        """Return the sums so far along an axis, or of all elements in row-major order.

        ``axis`` None is for the latter, a vector; ``dtype`` is the dtype to convert to before
        summing.

        Raises: ShapeError for a wrong axis, ArgumentError for one that is no integer, DTypeError
        for a wrong dtype.
        """
        value = reductions.scanned("cumulative_sum", self._value, axis, dtype, False)
        return self._wrapped(value)

    def cumprod(self, axis: int | None = None, dtype: Any = None) -> Array:
        """Return the products so far along an axis, or of all elements in row-major order.

        ``axis`` None is for the latter, a vector; ``dtype`` is the dtype to convert to before
        multiplying.

        Raises: ShapeError for a wrong axis, ArgumentError for one that is no integer, DTypeError
        for a wrong dtype.
        """
        value = reductions.scanned("cumulative_prod", self._value, axis, dtype, False)
        return self._wrapped(value)

    # Elementwise

    def round(self, decimals: int = 0) -> Array:
        """Return the elements rounded, halves to even; see `xp.round`.

        Args:
            decimals: the number of digits to keep after the point. Negative ones round digits
                before it. Integers are unchanged, except by negative numbers.
        """
        scale = 10.0 ** abs(decimals)
        if not decimals or (decimals > 0 and self._value.type.dtype.kind in "biu"):
            return self._wrapped(apply(operation("round"), self._value))
        x: Any = self
        rounded: Array = (
            (x * scale).round() / scale if decimals > 0 else (x / scale).round() * scale
        )
        return rounded

    def clip(self, min: Any = None, max: Any = None) -> Array:
        """Return the elements limited to an interval, see `xp.clip`.

        ``min`` and ``max`` are arrays that broadcast, numbers, or None for no limit.

        Raises: ArgumentError for other limits, ShapeError where they do not broadcast.
        """
        from passkit.frontends.xp.elementwise import clip  # that imports the class of arrays

        return clip(self, min, max)

    def conj(self) -> Array:
        """Return the complex conjugates; of real numbers and booleans, a new array of the same."""
        return self._wrapped(apply(operation("conj"), self._value))

    @property
    def real(self) -> Array:
        """The real parts, a new array."""
        return self._wrapped(apply(operation("real"), self._value))

    @property
    def imag(self) -> Array:
        """The imaginary parts, a new array; zeros of real numbers."""
        return self._wrapped(apply(operation("imag"), self._value))
