"""Methods of entries with NumPy's names and signatures, and NumPy's functions applied to entries.

They build operators, as the operators of Python do. The functions themselves are in a module that
knows the operators, `passkit.ops.numpy_functions`; it is imported when one is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from passkit.graph.node import Entry
    from passkit.values.size import Extent

_MODULE = "passkit.ops.numpy_functions"

ReducedAxes = int | tuple[int, ...] | None
"""An axis, several, or all."""


def _apply(name: str, *args: Any, **params: Any) -> Any:
    """Return what the function ``name`` of `passkit.ops.numpy_functions` returns."""
    return getattr(import_module(_MODULE), name)(*args, **params)


class EntryMethods:
    """The methods of `Entry` with NumPy's names. Results are entries; nothing is computed."""

    __slots__ = ()

    # Reductions

    def sum(self, axis: ReducedAxes = None, dtype: Any = None, *, keepdims: bool = False) -> Entry:
        """Return the sum along axes; integers are summed in 64 bits unless ``dtype`` is given."""
        return _apply("sum", self, axis, dtype, keepdims=keepdims)  # type: ignore[no-any-return]

    def prod(self, axis: ReducedAxes = None, dtype: Any = None, *, keepdims: bool = False) -> Entry:
        """Return the product along axes; that of integers has 64 bits unless ``dtype`` is given."""
        return _apply("prod", self, axis, dtype, keepdims=keepdims)  # type: ignore[no-any-return]

    def mean(self, axis: ReducedAxes = None, dtype: Any = None, *, keepdims: bool = False) -> Entry:
        """Return the mean along axes; that of integers is float64."""
        return _apply("mean", self, axis, dtype, keepdims=keepdims)  # type: ignore[no-any-return]

    def max(self, axis: ReducedAxes = None, *, keepdims: bool = False) -> Entry:
        """Return the largest element along axes; NaN if one is NaN."""
        return _apply("max", self, axis, keepdims=keepdims)  # type: ignore[no-any-return]

    def min(self, axis: ReducedAxes = None, *, keepdims: bool = False) -> Entry:
        """Return the smallest element along axes; NaN if one is NaN."""
        return _apply("min", self, axis, keepdims=keepdims)  # type: ignore[no-any-return]

    def any(self, axis: ReducedAxes = None, *, keepdims: bool = False) -> Entry:
        """Return whether any element along axes is true; numbers are true unless they are 0."""
        return _apply("any", self, axis, keepdims=keepdims)  # type: ignore[no-any-return]

    def all(self, axis: ReducedAxes = None, *, keepdims: bool = False) -> Entry:
        """Return whether all elements along axes are true; numbers are true unless they are 0."""
        return _apply("all", self, axis, keepdims=keepdims)  # type: ignore[no-any-return]

    def argmax(self, axis: int | None = None, *, keepdims: bool = False) -> Entry:
        """Return where the largest element is: the first of equal ones."""
        return _apply("argmax", self, axis, keepdims=keepdims)  # type: ignore[no-any-return]

    def argmin(self, axis: int | None = None, *, keepdims: bool = False) -> Entry:
        """Return where the smallest element is: the first of equal ones."""
        return _apply("argmin", self, axis, keepdims=keepdims)  # type: ignore[no-any-return]

    def var(
        self,
        axis: ReducedAxes = None,
        dtype: Any = None,
        *,
        ddof: float = 0,
        keepdims: bool = False,
    ) -> Entry:
        """Return the variance along axes, the sum of squares divided by their number - ``ddof``."""
        return _apply("var", self, axis, dtype, ddof=ddof, keepdims=keepdims)  # type: ignore[no-any-return]

    def std(
        self,
        axis: ReducedAxes = None,
        dtype: Any = None,
        *,
        ddof: float = 0,
        keepdims: bool = False,
    ) -> Entry:
        """Return the standard deviation along axes, the square root of `var`."""
        return _apply("std", self, axis, dtype, ddof=ddof, keepdims=keepdims)  # type: ignore[no-any-return]

    # Scans

    def cumsum(self, axis: int | None = None, dtype: Any = None) -> Entry:
        """Return the sums so far along an axis, or of all elements in row-major order."""
        return _apply("cumsum", self, axis, dtype)  # type: ignore[no-any-return]

    def cumprod(self, axis: int | None = None, dtype: Any = None) -> Entry:
        """Return the products so far along an axis, or of all elements in row-major order."""
        return _apply("cumprod", self, axis, dtype)  # type: ignore[no-any-return]

    # Shapes

    @property
    def size(self) -> Extent:
        """The number of elements: a number, or an expression of unknown sizes.

        Raises: ShapeError when the rank is unknown.
        """
        return _apply("size", self)  # type: ignore[no-any-return]

    @property
    def T(self) -> Entry:  # noqa: N802
        """The entry with its axes in reverse order: the transposed matrix."""
        return _apply("transpose", self)  # type: ignore[no-any-return]

    @property
    def mT(self) -> Entry:  # noqa: N802
        """The entry with its last two axes swapped: each matrix transposed."""
        return _apply("matrix_transpose", self)  # type: ignore[no-any-return]

    def reshape(self, *shape: Any) -> Entry:
        """Return the elements in another shape, given as sizes or as one tuple; one may be -1."""
        return _apply("reshape", self, _listed(shape))  # type: ignore[no-any-return]

    def transpose(self, *axes: Any) -> Entry:
        """Return the entry with its axes in another order, by default in reverse order.

        The order is given as axes, as one tuple, or as None.
        """
        order = _listed(axes)
        return _apply("transpose", self, None if order in ((), (None,)) else order)  # type: ignore[no-any-return]

    def swapaxes(self, axis1: int, axis2: int) -> Entry:
        """Return the entry with two axes swapped."""
        return _apply("swapaxes", self, axis1, axis2)  # type: ignore[no-any-return]

    def squeeze(self, axis: ReducedAxes = None) -> Entry:
        """Return the entry without axes of length 1: all of them, or those that are named."""
        return _apply("squeeze", self, axis)  # type: ignore[no-any-return]

    def flatten(self) -> Entry:
        """Return the elements in row-major order, along one axis."""
        return _apply("ravel", self)  # type: ignore[no-any-return]

    def ravel(self) -> Entry:
        """Return the elements in row-major order, along one axis."""
        return _apply("ravel", self)  # type: ignore[no-any-return]

    def repeat(self, repeats: Any, axis: int | None = None) -> Entry:
        """Return each element repeated, along an axis or in row-major order."""
        return _apply("repeat", self, repeats, axis)  # type: ignore[no-any-return]

    def take(self, indices: Any, axis: int | None = None) -> Entry:
        """Return the parts at indices along an axis, or the elements in row-major order."""
        return _apply("take", self, indices, axis)  # type: ignore[no-any-return]

    # Elementwise, and products

    def astype(self, dtype: Any) -> Entry:
        """Return the elements converted to a dtype. Raises: DTypeError if there is none such."""
        return _apply("astype", self, dtype)  # type: ignore[no-any-return]

    def clip(self, min: Any = None, max: Any = None) -> Entry:
        """Return the elements limited to an interval; None is no limit."""
        return _apply("clip", self, min, max)  # type: ignore[no-any-return]

    def round(self, decimals: int = 0) -> Entry:
        """Return the elements rounded to a number of decimals, halves to even."""
        return _apply("round", self, decimals)  # type: ignore[no-any-return]

    def dot(self, b: Any) -> Entry:
        """Return the product with a vector or matrix, as `numpy.dot`."""
        return _apply("dot", self, b)  # type: ignore[no-any-return]

    def conj(self) -> Entry:
        """Return the complex conjugates."""
        return _apply("conj", self)  # type: ignore[no-any-return]

    # NumPy's protocols

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **params: Any) -> Any:
        return _apply("apply_ufunc", ufunc, method, inputs, params)

    def __array_function__(self, function: Any, _: Any, args: Any, params: Any) -> Any:
        return _apply("apply_function", function, args, params)


def _listed(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the numbers of a method that takes them one by one or as one sequence."""
    if len(arguments) == 1 and isinstance(arguments[0], (tuple, list)):
        return tuple(arguments[0])
    return arguments
