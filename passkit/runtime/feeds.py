"""What a call feeds: arrays by name, checked against a graph's inputs; the sizes found in them."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from passkit.errors import DTypeError, FeedError, nearest
from passkit.values import arguments
from passkit.values.dtype import DType, dtype_of
from passkit.values.size import Extent, Shape, Size, evaluate, solved


def signature(dtype: DType | None, shape: Shape | None) -> str:
    """A dtype and shape as messages show them: ``float32[?, 784]``."""
    if shape is None:
        return f"{dtype or '?'}[…]"
    return f"{dtype or '?'}[{', '.join(map(_shown, shape))}]"


def _shown(n: Extent) -> str:
    """An extent; one that the user left open is a question mark."""
    return "?" if isinstance(n, Size) and "." in str(n) else str(n)


def as_array(value: Any, dtype: DType | None) -> Any:
    """``value`` as an array; Python numbers and lists take the wanted dtype if no kind is lost."""
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value)
    found = np.asarray(value)
    if hasattr(value, "dtype") or dtype is None or found.dtype.kind not in "biuf":
        return found
    weak = "biuf".index(found.dtype.kind) <= "biuf".index(dtype.kind) or found.size == 0
    if not weak and not (found.dtype.kind in "iu" and dtype.is_integer):
        return found
    if dtype.is_integer and found.size:
        limits = np.iinfo(dtype.numpy)
        if found.min() < limits.min or found.max() > limits.max:
            return found
    return found.astype(dtype.numpy)


def check_feed(name: str, dtype: DType | None, shape: Shape | None, value: Any) -> Any:
    """``value`` as an array that fits the input ``name``.

    Raises: FeedError saying what is needed, what was given, and how to convert it.
    """
    wanted = signature(dtype, shape)
    arguments.unmasked(f"input '{name}'", value)
    try:
        array = as_array(value, dtype)
    except (ValueError, TypeError) as error:
        given = arguments.shown(value)
        raise FeedError(f"input '{name}' needs {wanted}, got {given}: {error}") from None
    try:
        found = dtype_of(array.dtype)
    except DTypeError:
        raise FeedError(f"input '{name}' needs {wanted}, got elements of {array.dtype}") from None
    got = signature(found, array.shape)
    if dtype is not None and found is not dtype:
        raise FeedError(f"input '{name}' needs {wanted}, got {got}; x.astype('{dtype}')")
    array = array.astype(found.numpy, copy=False)  # the other byte order, if it had that
    if shape is None:
        return array
    if len(shape) != array.ndim:
        raise FeedError(
            f"input '{name}' needs {wanted}, got {got}; reshape it to rank {len(shape)}"
        )
    for k, (n, found_n) in enumerate(zip(shape, array.shape, strict=True)):
        if isinstance(n, int) and n != found_n:
            raise FeedError(f"input '{name}' needs {wanted}, got {got}; axis {k} must be {n} long")
    return array


def check_feeds(
    inputs: Iterable[tuple[str, DType | None, Shape | None]],
    feeds: Mapping[str, Any],
    unread: Collection[str] = (),
) -> dict[str, Any]:
    """All feeds as arrays, by name, in the order of the inputs; those of ``unread`` are left out.

    Raises: FeedError for one that is missing or unknown, naming the nearest.
    """
    inputs = list(inputs)
    known = [name for name, _, _ in inputs]
    if not isinstance(feeds, Mapping):
        raise FeedError(f"feeds must map names to arrays, got {type(feeds).__name__}")
    for name in feeds:
        if name not in known and name not in unread:
            hint = nearest(str(name), known) if known else "the graph has no inputs"
            raise FeedError(f"there is no input {name!r}; {hint}")
    for name, dtype, shape in inputs:
        if name not in feeds:
            raise FeedError(
                f"input '{name}' is missing: it needs {signature(dtype, shape)}; got "
                f"{', '.join(map(repr, feeds)) or 'no feeds'}{arguments.twin_hint(name, known)}"
            )
    return {name: check_feed(name, dtype, shape, feeds[name]) for name, dtype, shape in inputs}


def bind_sizes(
    inputs: Iterable[tuple[str, Shape | None, tuple[int, ...]]],
    what: str = "input",
    known: Mapping[str, int] = MappingProxyType({}),
) -> dict[str, int]:
    """The values that unknown extents have, from (name, declared shape, actual shape) of inputs.

    One that stands nowhere by itself, and is not ``known``, is what makes an extent right that is
    made of it: ``2*n``. It has no value where no extent tells it, as ``n + m`` alone.

    Raises: FeedError when two inputs need different values, naming both; when an extent that is
    made of others is another one.
    """
    return _Binding(inputs, what, known).sizes


def all_sizes(
    inputs: Iterable[tuple[str, Shape | None, tuple[int, ...]]],
) -> dict[str, int]:
    """The same of all inputs of a program. Raises: FeedError where one has no value, too."""
    found = _Binding(inputs, "input", {})
    for name, k, n, number in found.made:
        lacking = " and ".join(sorted(n.symbols - found.sizes.keys()))
        raise FeedError(
            f"input '{name}' has {number} at axis {k}, where the size {n} stands, which does not "
            f"tell {lacking}, and no other input does; declare that extent by a name of its own"
        )
    return found.sizes


class _Binding:
    """The sizes that are told so far; ``made`` are extents of those that are not."""

    def __init__(
        self,
        inputs: Iterable[tuple[str, Shape | None, tuple[int, ...]]],
        what: str,
        known: Mapping[str, int],
    ) -> None:
        self.what, self.sizes, source = what, dict[str, int](), dict[str, str]()
        self.made: list[tuple[str, int, Size, int]] = []
        for name, shape, actual in inputs:
            for k, (n, found) in enumerate(zip(shape or (), actual, strict=False)):
                if not isinstance(n, Size):
                    continue
                if n.terms != Size.symbol(str(n)).terms:
                    self.made.append((name, k, n, found))
                    continue
                first = self.sizes.setdefault(str(n), found)
                if first != found:
                    raise FeedError(
                        f"{what} '{name}' needs {first} at axis {k}, where the size {n} stands, as "
                        f"{what} '{source[str(n)]}' has it; got {found}"
                    )
                source.setdefault(str(n), name)
        self.values = ChainMap(self.sizes, dict(known))
        while [each for each in tuple(self.made) if self.settled(each)]:
            pass  # what was settled may tell more

    def settled(self, extent: tuple[str, int, Size, int]) -> bool:
        """Whether all is known now that an extent is made of; it is checked then."""
        name, k, n, found = extent
        if not n.symbols <= self.values.keys():
            told = solved(n, found, self.values)
            if told is None:
                return False
            self.sizes[told[0]] = told[1]
        self.made.remove(extent)
        needed = evaluate(n, self.values)
        if needed != found:
            where = f"axis {k}, where the size {n} stands"
            raise FeedError(f"{self.what} '{name}' needs {needed} at {where}, got {found}")
        return True
