"""Methods of entries with NumPy's names and signatures, and NumPy's functions applied to entries.

They build operators, as the operators of Python do. The functions themselves are in a module that
knows the operators, `passkit.ops.numpy_functions`; it is imported when one is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from passkit.graph.node import Entry
    from passkit.values.size import Extent

_MODULE = "passkit.ops.numpy_functions"

ReducedAxes = int | tuple[int, ...] | None
"""An axis, several, or all."""


def _apply(name: str, *args: Any, **params: Any) -> Any:
    """Return what the function ``name`` of `passkit.ops.numpy_functions` returns.

    Raises: what it raises, a PasskitError.
    """
    return getattr(import_module(_MODULE), name)(*args, **params)


class EntryMethods:
    """The methods of `Entry` with NumPy's names. Results are entries; nothing is computed.

    An axis is an int from -rank to rank - 1; the others raise a ShapeError. A dtype that the
    operator does not accept raises a DTypeError.
    """

    __slots__ = ()

    # Reductions

    def sum(self, axis: ReducedAxes = None, dtype: Any = None, *, keepdims: bool = False) -> Entry:
        """Return the sum along axes, by default all, in ``dtype`` or that of the elements.

        Integers and booleans are summed in 64 bits unless ``dtype`` is given. With ``keepdims`` the
        axes stay, with length 1.

        Raises: DTypeError for complex elements, and a ``dtype`` that is complex, bool or none;
        ShapeError for an axis that is no int, does not exist or is named twice; GraphError where
        ``keepdims`` is no bool.
        """
        return _apply("sum", self, axis, dtype, keepdims=keepdims)  # type: ignore[no-any-return]

    def prod(self, axis: ReducedAxes = None, dtype: Any = None, *, keepdims: bool = False) -> Entry:
        """Return the product along axes, by default all, in ``dtype`` or that of the elements.

        That of integers and booleans has 64 bits unless ``dtype`` is given. With ``keepdims`` the
        axes stay, with length 1.

        Raises: DTypeError for complex elements, and a ``dtype`` that is complex, bool or none;
        ShapeError for an axis that is no int, does not exist or is named twice; GraphError where
        ``keepdims`` is no bool.
        """
        return _apply("prod", self, axis, dtype, keepdims=keepdims)  # type: ignore[no-any-return]

    def mean(self, axis: ReducedAxes = None, dtype: Any = None, *, keepdims: bool = False) -> Entry:
        """Return the mean along axes, by default all; that of integers and booleans is float64.

        ``dtype`` is a dtype to convert the elements to first. With ``keepdims`` the axes stay, with
        length 1.

        Raises: DTypeError for complex elements, and a ``dtype`` that is complex or none; ShapeError
        for an axis that is no int, does not exist or is named twice; GraphError where ``keepdims``
        is no bool.
        """
        return _apply("mean", self, axis, dtype, keepdims=keepdims)  # type: ignore[no-any-return]

    def max(self, axis: ReducedAxes = None, *, keepdims: bool = False) -> Entry:
        """Return the largest element along axes, by default all; NaN if one is NaN.

        With ``keepdims`` the axes stay, with length 1.

        Raises: DTypeError for complex elements; ShapeError for an axis that is no int, does not
        exist, is named twice or has length 0; GraphError where ``keepdims`` is no bool.
        """
        return _apply("max", self, axis, keepdims=keepdims)  # type: ignore[no-any-return]

    def min(self, axis: ReducedAxes = None, *, keepdims: bool = False) -> Entry:
        """Return the smallest element along axes, by default all; NaN if one is NaN.

        With ``keepdims`` the axes stay, with length 1.

        Raises: DTypeError for complex elements; ShapeError for an axis that is no int, does not
        exist, is named twice or has length 0; GraphError where ``keepdims`` is no bool.
        """
        return _apply("min", self, axis, keepdims=keepdims)  # type: ignore[no-any-return]

    def any(self, axis: ReducedAxes = None, *, keepdims: bool = False) -> Entry:
        """Return whether any element along axes, by default all, is true: a number other than 0.

        With ``keepdims`` the axes stay, with length 1.

        Raises: ShapeError for an axis that is no int, does not exist or is named twice; GraphError
        where ``keepdims`` is no bool.
        """
        return _apply("any", self, axis, keepdims=keepdims)  # type: ignore[no-any-return]

    def all(self, axis: ReducedAxes = None, *, keepdims: bool = False) -> Entry:
        """Return whether all elements along axes, by default all, are true: numbers other than 0.

        With ``keepdims`` the axes stay, with length 1.

        Raises: ShapeError for an axis that is no int, does not exist or is named twice; GraphError
        where ``keepdims`` is no bool.
        """
        return _apply("all", self, axis, keepdims=keepdims)  # type: ignore[no-any-return]

    def argmax(self, axis: int | None = None, *, keepdims: bool = False) -> Entry:
        """Return the int64 index of the largest element along an axis, the first of equal ones.

        A NaN counts as the largest. Without an axis it is the index among all elements in row-major
        order. With ``keepdims`` the axis stays, with length 1.

        Raises: DTypeError for complex elements; ShapeError for an axis that is no int, does not
        exist or has length 0; GraphError where ``keepdims`` is no bool.
        """
        return _apply("argmax", self, axis, keepdims=keepdims)  # type: ignore[no-any-return]

    def argmin(self, axis: int | None = None, *, keepdims: bool = False) -> Entry:
        """Return the int64 index of the smallest element along an axis, the first of equal ones.

        A NaN counts as the smallest. Without an axis it is the index among all elements in
        row-major order. With ``keepdims`` the axis stays, with length 1.

        Raises: DTypeError for complex elements; ShapeError for an axis that is no int, does not
        exist or has length 0; GraphError where ``keepdims`` is no bool.
        """
        return _apply("argmin", self, axis, keepdims=keepdims)  # type: ignore[no-any-return]

    def var(
        self,
        axis: ReducedAxes = None,
        dtype: Any = None,
        *,
        ddof: float = 0,
        keepdims: bool = False,
    ) -> Entry:
        """Return the variance along axes, by default all; that of integers is float64.

        It is the sum of the squared distances from the mean, divided by their number - ``ddof``.
        ``dtype`` is a dtype to convert the elements to first. With ``keepdims`` the axes stay, with
        length 1.

        Raises: DTypeError for complex elements, and a ``dtype`` that is complex or none; ShapeError
        for an axis that is no int, does not exist or is named twice, or a ``ddof`` that is no
        finite number; GraphError where ``keepdims`` is no bool.
        """
        return _apply("var", self, axis, dtype, ddof=ddof, keepdims=keepdims)  # type: ignore[no-any-return]

    def std(
        self,
        axis: ReducedAxes = None,
        dtype: Any = None,
        *,
        ddof: float = 0,
        keepdims: bool = False,
    ) -> Entry:
        """Return the standard deviation along axes, the square root of `var` with these arguments.

        Raises: DTypeError for complex elements, and a ``dtype`` that is complex or none; ShapeError
        for an axis that is no int, does not exist or is named twice, or a ``ddof`` that is no
        finite number; GraphError where ``keepdims`` is no bool.
        """
        return _apply("std", self, axis, dtype, ddof=ddof, keepdims=keepdims)  # type: ignore[no-any-return]

    # Scans

    def cumsum(self, axis: int | None = None, dtype: Any = None) -> Entry:
        """Return the sums so far along an axis; without one, of all elements in row-major order.

        The latter have one axis. Integers and booleans are summed in 64 bits unless ``dtype`` is
        given.

        Raises: DTypeError for complex elements, and a ``dtype`` that is complex, bool or none;
        ShapeError for an axis that is no int or does not exist.
        """
        return _apply("cumsum", self, axis, dtype)  # type: ignore[no-any-return]

    def cumprod(self, axis: int | None = None, dtype: Any = None) -> Entry:
        """Return the products so far along an axis; without one, of all elements in order.

        The latter have one axis. Those of integers and booleans have 64 bits unless ``dtype`` is
        given.

        Raises: DTypeError for complex elements, and a ``dtype`` that is complex, bool or none;
        ShapeError for an axis that is no int or does not exist.
        """
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
        """The entry with its last two axes swapped: each matrix transposed.

        Raises: ShapeError for a rank below 2.
        """
        return _apply("matrix_transpose", self)  # type: ignore[no-any-return]

    def reshape(self, *shape: Any) -> Entry:
        """Return the elements in another shape, given as sizes or as one tuple or list.

        One size may be -1, which is computed from the others. Raises: ShapeError where the number
        of elements differs, a size is neither an int nor a size, several are -1, or one is another
        negative int.
        """
        return _apply("reshape", self, _listed(shape))  # type: ignore[no-any-return]

    def transpose(self, *axes: Any) -> Entry:
        """Return the entry with its axes in another order, by default in reverse order.

        The order is given as axes, as one tuple or list, or as None, the default.

        Raises: ShapeError where it is no permutation of the axes.
        """
        order = _listed(axes)
        is_default = not order or (len(order) == 1 and order[0] is None)
        return _apply("transpose", self, None if is_default else order)  # type: ignore[no-any-return]

    def swapaxes(self, axis1: int, axis2: int) -> Entry:
        """Return the entry with two axes swapped.

        Raises: ShapeError if one is no int or does not exist.
        """
        return _apply("swapaxes", self, axis1, axis2)  # type: ignore[no-any-return]

    def squeeze(self, axis: ReducedAxes = None) -> Entry:
        """Return the entry without axes of length 1: all of them, or those that are named.

        Raises: ShapeError for a named axis that has another length, is no int, does not exist or is
        named twice, and without names where a length is symbolic.
        """
        return _apply("squeeze", self, axis)  # type: ignore[no-any-return]

    def flatten(self) -> Entry:
        """Return the elements in row-major order, along one axis."""
        return _apply("ravel", self)  # type: ignore[no-any-return]

    def ravel(self) -> Entry:
        """Return the elements in row-major order, along one axis."""
        return _apply("ravel", self)  # type: ignore[no-any-return]

    def repeat(self, repeats: Any, axis: int | None = None) -> Entry:
        """Return each element, or part along ``axis``, repeated, as `numpy.repeat`.

        ``repeats`` is a number for all or one for each. Without an axis the result has one, with
        the elements in row-major order.

        Raises: ShapeError for a negative number, anything but ints (such as an entry), another
        count of numbers than elements, or an axis that is no int or does not exist.
        """
        return _apply("repeat", self, repeats, axis)  # type: ignore[no-any-return]

    def take(self, indices: Any, axis: int | None = None) -> Entry:
        """Return the parts at integer indices along an axis, as `numpy.take`.

        Without an axis they are elements, counted in row-major order. Negative indices count from
        the end; those that are still out of range are clipped to it, unlike in NumPy.

        Raises: DTypeError for indices that are not integers; ShapeError for an axis that is no int
        or does not exist, or that is empty where there are indices; ArgumentError for indices that
        are neither an entry nor numbers, GraphError for a tuple of entries.
        """
        if isinstance(indices, int):  # which would take the dtype of the elements
            indices = np.asarray(indices)
        return _apply("take", self, indices, axis)  # type: ignore[no-any-return]

    # Elementwise, and products

    def astype(self, dtype: Any) -> Entry:
        """Return the elements converted to a dtype, or this entry itself if it has it.

        Converted to bool, all but 0 is true. To other dtypes, an entry of unknown dtype is not
        converted, but returned itself.

        Raises: DTypeError if there is no such dtype, and between complex and other dtypes but bool.
        """
        return _apply("astype", self, dtype)  # type: ignore[no-any-return]

    def clip(self, min: Any = None, max: Any = None) -> Entry:
        """Return the elements limited to the interval from ``min`` to ``max``; None is no limit.

        With two None it is this entry itself. The dtype is that of NumPy's maximum and minimum: a
        limit of 0.5 makes integers float64.

        Raises: DTypeError for complex elements or limits, and for a number out of the range of
        integer elements; ShapeError for a limit that does not broadcast; ArgumentError for one that
        is neither an entry nor numbers, GraphError for a tuple of entries.
        """
        return _apply("clip", self, min, max)  # type: ignore[no-any-return]

    def round(self, decimals: int = 0) -> Entry:
        """Return the elements rounded to a number of decimals, halves to even.

        A negative number rounds to tens, hundreds and so on. The dtype stays. Above 308 all
        elements stay, below -308 they become 0.

        Raises: DTypeError for complex elements; ArgumentError where ``decimals`` is no int.
        """
        return _apply("round", self, decimals)  # type: ignore[no-any-return]

    def dot(self, b: Any) -> Entry:
        """Return the product with a vector, matrix or number in their common dtype (`numpy.dot`).

        Raises: ShapeError where the shapes do not fit; DTypeError for booleans and complex numbers;
        ArgumentError where ``b`` is neither an entry nor numbers, GraphError where it is a tuple of
        entries.
        """
        return _apply("dot", self, b)  # type: ignore[no-any-return]

    def conj(self) -> Entry:
        """Return the complex conjugates; real numbers stay. Raises: DTypeError for booleans."""
        return _apply("conj", self)  # type: ignore[no-any-return]

    # NumPy's protocols

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **params: Any) -> Any:
        return _apply("apply_ufunc", ufunc, method, inputs, params)

    def __array_function__(self, function: Any, _: Any, args: Any, params: Any) -> Any:
        return _apply("apply_function", function, args, params)


def _listed(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments of a method as a tuple; a single tuple or list means its elements."""
    if len(arguments) == 1 and isinstance(arguments[0], (tuple, list)):
        return tuple(arguments[0])
    return arguments
