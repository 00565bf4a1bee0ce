"""Feeds of a call: checks against the inputs of a graph, and unknown sizes from their shapes."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from passkit.errors import DTypeError, FeedError, nearest
from passkit.values import arguments
from passkit.values.dtype import DType, dtype_of
from passkit.values.size import Extent, Shape, Size, evaluate, solve

_KINDS = "biufc"
"""NumPy's kinds of numbers, in the order in which Python numbers are converted."""


def signature(dtype: DType | None, shape: Shape | None) -> str:
    """Return a dtype and shape as text for messages.

    An extent without a name and an unknown dtype are question marks, an unknown shape is an
    ellipsis.

    >>> from passkit.values.dtype import float32
    >>> signature(float32, (3, 784))
    'float32[3, 784]'
    """
    if shape is None:
        return f"{dtype or '?'}[…]"
    return f"{dtype or '?'}[{', '.join(map(_extent_text, shape))}]"


def _extent_text(n: Extent) -> str:
    """Return an extent as text.

    It is a question mark for a size that the user gave as None, and for an expression with one.
    """
    return "?" if isinstance(n, Size) and "." in str(n) else str(n)


def as_array(value: Any, dtype: DType | None) -> Any:
    """Return a value as an array, an array itself.

    Python numbers and lists are converted to ``dtype`` where it is of the same or a higher kind, in
    the order bool, integer, float, complex: integers become floats, not the reverse, and floats are
    rounded. Numbers of a higher kind, and integers beyond the limits of ``dtype``, keep their own
    dtype; integers of more than 64 bits become objects. An empty list takes any dtype. Arrays,
    NumPy scalars and values that are no numbers, such as text, keep theirs, and so does everything
    where ``dtype`` is None.

    Raises: ValueError for a ragged list, and the errors of `numpy.asarray` for foreign objects.
    """
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value)
    array = np.asarray(value)
    if hasattr(value, "dtype") or dtype is None or array.dtype.kind not in _KINDS:
        return array
    weak = _KINDS.index(array.dtype.kind) <= _KINDS.index(dtype.kind) or array.size == 0
    if not weak and not (array.dtype.kind in "iu" and dtype.is_integer):
        return array
    if dtype.is_integer and array.size:
        limits = np.iinfo(dtype.numpy)
        if array.min() < limits.min or array.max() > limits.max:
            return array
    return array.astype(dtype.numpy)


def check_feed(name: str, dtype: DType | None, shape: Shape | None, value: Any) -> Any:
    """Return a value as an array that matches an input, in the native byte order.

    An array that matches already is returned itself. Others are converted by `as_array`.

    Args:
        name: the name of the input, for messages.
        dtype: its dtype, None for any.
        shape: its shape, None for any; extents that are symbolic sizes match any number.
        value: the value that the caller passed.

    Raises:
        FeedError: The value has another dtype, rank or extent, or is no array of numbers; the
            message says how to convert it.
        ArgumentError: The value is a masked array.
    """
    needed = signature(dtype, shape)
    arguments.unmasked(f"input '{name}'", value)
    try:
        array = as_array(value, dtype)
    except (ValueError, TypeError, RuntimeError) as error:  # other libraries' arrays raise the last
        text = arguments.shown(value)
        raise FeedError(
            f"input '{name}' needs {needed}, got {text}: {error}; pass an array of numbers"
        ) from None
    try:
        array_dtype = dtype_of(array.dtype)
    except DTypeError:
        raise FeedError(
            f"input '{name}' needs {needed}, got elements of {array.dtype}; convert it to numbers"
        ) from None
    got = signature(array_dtype, array.shape)
    if dtype is not None and array_dtype is not dtype:
        raise FeedError(f"input '{name}' needs {needed}, got {got}; x.astype('{dtype}')")
    array = array.astype(array_dtype.numpy, copy=False)  # to the native byte order
    if shape is None:
        return array
    if len(shape) != array.ndim:
        raise FeedError(
            f"input '{name}' needs {needed}, got {got}; reshape it to rank {len(shape)}"
        )
    for k, (n, actual) in enumerate(zip(shape, array.shape, strict=True)):
        if isinstance(n, int) and n != actual:
            raise FeedError(f"input '{name}' needs {needed}, got {got}; axis {k} must be {n} long")
    return array


def check_feeds(
    inputs: Iterable[tuple[str, DType | None, Shape | None]],
    feeds: Mapping[str, Any],
    unread: Collection[str] = (),
) -> dict[str, Any]:
    """Return all feeds as arrays by name, in the order of the inputs.

    Args:
        inputs: name, dtype and shape of each input; None for a dtype or shape that may be any.
        feeds: the values that the caller passed, by name.
        unread: names that a call may feed as well; their values are ignored.

    Raises:
        FeedError: A feed is missing, unknown or does not match its input, or ``feeds`` is no
            mapping.
        ArgumentError: A feed is a masked array.
    """
    inputs = list(inputs)
    names = [name for name, _, _ in inputs]
    if not isinstance(feeds, Mapping):
        raise FeedError(
            f"feeds must be a dict of arrays by input name, got a {type(feeds).__name__}; the "
            f"inputs are {', '.join(names) or 'none'}"
        )
    for name in feeds:
        if name not in names and name not in unread:
            hint = nearest(str(name), names) if names else "the graph has no inputs"
            raise FeedError(f"there is no input {name!r}; {hint}")
    for name, dtype, shape in inputs:
        if name not in feeds:
            fed_names = ", ".join(map(repr, feeds)) or "no feeds"
            raise FeedError(
                f"input '{name}' is missing: it needs {signature(dtype, shape)}; got {fed_names}"
                f"{arguments.repeated_name_hint(name, names)}"
            )
    return {name: check_feed(name, dtype, shape, feeds[name]) for name, dtype, shape in inputs}


def bind_sizes(
    inputs: Iterable[tuple[str, Shape | None, tuple[int, ...]]],
    subject: str = "input",
    known_sizes: Mapping[str, int] = MappingProxyType({}),
) -> dict[str, int]:
    """Return the values of symbolic sizes by name, from the shapes of arrays.

    A size that is no extent by itself is solved from an expression with it, such as ``2*n``. It has
    no value, and is left out, if no extent determines it, as in ``n + m`` or ``n * n`` alone.
    Arrays whose declared shape is None determine nothing; ranks, and extents that are numbers, are
    not checked.

    Args:
        inputs: name, declared shape and actual shape of each array.
        subject: the word for one of the arrays in messages.
        known_sizes: values of other sizes, from which expressions may be solved.

    Raises:
        FeedError: Two arrays need different values of a size, or an expression has another value
            than its extent.
        ShapeError: An expression divides by zero.
    """
    return _SizeSolver(inputs, subject, known_sizes).sizes


def all_sizes(
    inputs: Iterable[tuple[str, Shape | None, tuple[int, ...]]],
) -> dict[str, int]:
    """Return the values of all symbolic sizes of a program's inputs, by name.

    Args:
        inputs: name, declared shape and actual shape of each input.

    Raises:
        FeedError: Two arrays need different values of a size, an expression has another value than
            its extent, or the shapes do not determine a size.
        ShapeError: An expression divides by zero.
    """
    solver = _SizeSolver(inputs, "input", {})
    for name, k, n, number in solver.unsolved:
        open_sizes = " and ".join(sorted(n.symbols - solver.sizes.keys()))
        raise FeedError(
            f"input '{name}' has extent {number} at axis {k}, which is declared as {n}; that does "
            f"not determine {open_sizes}, and no other input does; declare that extent by a name "
            "of its own"
        )
    return solver.sizes


class _SizeSolver:
    """Solves for symbolic sizes, when it is created.

    Args:
        inputs: name, declared shape and actual shape of each array.
        subject: the word for one of the arrays in messages.
        known_sizes: values of other sizes, from which expressions may be solved.

    Raises:
        FeedError: Two arrays need different values of a size, or an expression has another value
            than its extent.
        ShapeError: An expression divides by zero.

    Attributes:
        sizes: the values of sizes by name, without ``known_sizes``.
        unsolved: the expressions that could not be solved: the input, the axis, the expression and
            its value.
    """

    def __init__(
        self,
        inputs: Iterable[tuple[str, Shape | None, tuple[int, ...]]],
        subject: str,
        known_sizes: Mapping[str, int],
    ) -> None:
        self.subject, self.sizes, source = subject, dict[str, int](), dict[str, str]()
        self.unsolved: list[tuple[str, int, Size, int]] = []
        for name, shape, actual in inputs:
            for k, (n, number) in enumerate(zip(shape or (), actual, strict=False)):
                if not isinstance(n, Size):
                    continue
                if n.terms != Size.symbol(str(n)).terms:
                    self.unsolved.append((name, k, n, number))
                    continue
                first = self.sizes.setdefault(str(n), number)
                if first != number:
                    raise FeedError(
                        f"{subject} '{name}' needs extent {first} at axis {k}, got {number}: size "
                        f"{n} is {first} in {subject} '{source[str(n)]}', and both must be equal"
                    )
                source.setdefault(str(n), name)
        self.values = ChainMap(self.sizes, dict(known_sizes))
        while [each for each in tuple(self.unsolved) if self._solve(each)]:
            pass  # new values may determine others

    def _solve(self, extent: tuple[str, int, Size, int]) -> bool:
        """Solve an expression for its open size, and check the result.

        ``extent`` is an element of ``unsolved``: (name of the input, axis, expression, its value).
        The solution is added to ``sizes`` and the element removed. Return whether that was
        possible: False where several sizes are open, or the expression is not linear in the one
        that is.

        Raises: FeedError where the expression has another value, ShapeError where it divides by
        zero.
        """
        name, k, n, number = extent
        if not n.symbols <= self.values.keys():
            solution = solve(n, number, self.values)
            if solution is None:
                return False
            symbol, value = solution
            self.sizes[symbol] = value
        self.unsolved.remove(extent)
        needed = evaluate(n, self.values)
        if needed != number:
            raise FeedError(
                f"{self.subject} '{name}' needs extent {needed} at axis {k}, got {number}: size "
                f"{n} has that value by the other extents"
            )
        return True
