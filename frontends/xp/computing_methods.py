"""Methods of `Array` that compute: reductions, scans, roundings, and parts of complex numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from passkit.frontends.xp import reductions
from passkit.frontends.xp.runtime import apply, operation
from passkit.streams.operation import Value

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
        """Return the sum along axes, see `xp.sum`."""
        return self._wrapped(reductions.summed("sum", self._value, axis, dtype, keepdims))

    def prod(
        self, axis: reductions.Axes = None, dtype: Any = None, keepdims: bool = False
    ) -> Array:
        """Return the product along axes, see `xp.prod`."""
        return self._wrapped(reductions.summed("prod", self._value, axis, dtype, keepdims))

    def mean(
        self, axis: reductions.Axes = None, dtype: Any = None, keepdims: bool = False
    ) -> Array:
        """Return the mean along axes, of elements converted to ``dtype``; see `xp.mean`."""
        return self._wrapped(reductions.averaged(self._value, axis, dtype, keepdims))

    def max(self, axis: reductions.Axes = None, keepdims: bool = False) -> Array:
        """Return the largest element along axes, see `xp.max`."""
        return self._wrapped(reductions.reduced("max", self._value, axis, keepdims))

    def min(self, axis: reductions.Axes = None, keepdims: bool = False) -> Array:
        """Return the smallest element along axes, see `xp.min`."""
        return self._wrapped(reductions.reduced("min", self._value, axis, keepdims))

    def any(self, axis: reductions.Axes = None, keepdims: bool = False) -> Array:
        """Return whether any element along axes is true, see `xp.any`."""
        return self._wrapped(reductions.reduced("any", self._value, axis, keepdims))

    def all(self, axis: reductions.Axes = None, keepdims: bool = False) -> Array:
        """Return whether all elements along axes are true, see `xp.all`."""
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

        See `xp.var`.
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

        See `xp.std`.
        """
        correction = ddof if correction is None else correction
        return self._wrapped(reductions.spread("std", self._value, axis, correction, keepdims))

    def argmax(self, axis: int | None = None, keepdims: bool = False) -> Array:
        """Return where the largest element is, see `xp.argmax`."""
        return self._wrapped(reductions.position("argmax", self._value, axis, keepdims))

    def argmin(self, axis: int | None = None, keepdims: bool = False) -> Array:
        """Return where the smallest element is, see `xp.argmin`."""
        return self._wrapped(reductions.position("argmin", self._value, axis, keepdims))

    # Scans

    def cumsum(self, axis: int | None = None, dtype: Any = None) -> Array:
        """Return the sums so far along an axis, or of all elements in row-major order."""
        value = reductions.scanned("cumulative_sum", self._value, axis, dtype, False)
        return self._wrapped(value)

    def cumprod(self, axis: int | None = None, dtype: Any = None) -> Array:
        """Return the products so far along an axis, or of all elements in row-major order."""
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
        """Return the elements limited to an interval, see `xp.clip`."""
        from passkit.frontends.xp.elementwise import clip  # that imports the class of arrays

        return clip(self, min, max)

    def conj(self) -> Array:
        """Return the complex conjugates, see `xp.conj`."""
        return self._wrapped(apply(operation("conj"), self._value))

    @property
    def real(self) -> Array:
        """The real parts, a new array."""
        return self._wrapped(apply(operation("real"), self._value))

    @property
    def imag(self) -> Array:
        """The imaginary parts, a new array."""
        return self._wrapped(apply(operation("imag"), self._value))
