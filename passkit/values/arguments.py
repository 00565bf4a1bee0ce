"""Checks of what callers give to public functions, with one wording of what they refuse.

Each check takes ``where``, the function and argument as messages name them ("compile: graph"), and
the value. It returns the value in the form that the function works with.
"""

from __future__ import annotations

import os
import reprlib
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from passkit.errors import ArgumentError, PasskitError, SettingError

if TYPE_CHECKING:
    from pathlib import Path

_LONGEST = 80
_BRIEF = reprlib.Repr()
_BRIEF.maxstring = _BRIEF.maxlong = _BRIEF.maxother = _LONGEST


def shown(value: object) -> str:
    """A value as messages show it: its repr on one line, shortened to 80 characters."""
    if isinstance(value, np.ndarray):
        kind = "an array" if type(value) is np.ndarray else f"a {type(value).__name__}"
        return f"{kind} {value.dtype}{list(value.shape)}"
    try:
        text = " ".join(_BRIEF.repr(value).split())
    except Exception:  # a repr of the caller's own, or an int of too many digits
        return f"a value of type {type(value).__name__}"
    return shortened(text)


def shortened(text: str, most: int = _LONGEST) -> str:
    """A text of at most so many characters."""
    return text if len(text) <= most else text[: most - 3] + "..."


LONGEST_MESSAGE = 2_000
"""Characters of an error that an operator's rule raises while a file is read."""


def cut(error: PasskitError) -> None:
    """Cut the message of an error that quotes a long name or parameter of a file."""
    error.args = tuple(
        shortened(a, LONGEST_MESSAGE) if isinstance(a, str) else a for a in error.args
    )


def refuse(where: str, value: object, need: str) -> NoReturn:
    """Raises: ArgumentError saying what is needed and what was found."""
    raise ArgumentError(f"{where} must be {need}, got {shown(value)}")


def instance(where: str, value: Any, kinds: type | tuple[type, ...], need: str) -> Any:
    """``value``, which must be an instance of ``kinds``; a bool is no number.

    Raises: ArgumentError.
    """
    if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is int):
        refuse(where, value, need)
    return value


def text(where: str, value: Any) -> str:
    """A string. Raises: ArgumentError."""
    return instance(where, value, str, "a string")  # type: ignore[no-any-return]


def name(where: str, value: Any, example: str) -> str:
    """A name that code can write, as Python's are. Raises: ArgumentError."""
    if not isinstance(value, str) or not value.isidentifier():
        refuse(where, value, f"a name, such as {example!r}")
    return value


def flag(where: str, value: Any) -> bool:
    """True or False. Raises: ArgumentError."""
    return instance(where, value, (bool, np.bool_), "True or False")  # type: ignore[no-any-return]


def function(where: str, value: Any) -> Callable[..., Any]:
    """A function. Raises: ArgumentError."""
    if not callable(value):
        refuse(where, value, "a function")
    return value  # type: ignore[no-any-return]


def parameters(where: str, value: Callable[..., Any], need: str, least: int, most: int) -> int:
    """How many positional arguments to call a function with: as many as it names, up to ``most``.

    Raises: ArgumentError where it cannot be called with ``least`` to ``most`` of them.
    """
    from inspect import Parameter, signature  # a start that finds its plan needs none

    plain = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    try:
        shape = signature(value)
    except (TypeError, ValueError):  # a function of C without a signature
        return least
    named = sum(p.kind in plain for p in shape.parameters.values())
    count = min(max(named, least), most)
    try:
        shape.bind(*range(count))
    except TypeError:
        text = str(shape).partition(" ->")[0]
        raise ArgumentError(f"{where} must be a function {need}, got one of {text}") from None
    return count


def sequence(
    where: str, value: Any, kinds: type | tuple[type, ...], need: str = "a sequence"
) -> tuple[Any, ...]:
    """The elements of an iterable that is no text and no mapping, each an instance of ``kinds``.

    Raises: ArgumentError.
    """
    plain = isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping))
    if not plain:
        refuse(where, value, need)
    try:
        elements = tuple(value)
    except PasskitError:  # an Entry says so when it is iterated
        refuse(where, value, need)
    for k, element in enumerate(elements):
        if not isinstance(element, kinds):
            raise ArgumentError(f"{where} must be {need}, got {shown(element)} at place {k}")
    return elements


def mapping(where: str, value: Any, need: str = "a mapping") -> dict[Any, Any]:
    """The items of a mapping, or of pairs as `dict` takes them; None has none.

    Raises: ArgumentError.
    """
    try:
        if value is None:
            return {}
        if not isinstance(value, str):
            return dict(value)
    except (TypeError, ValueError):
        pass
    refuse(where, value, need)


def path(where: str, value: Any, need: str = "a path") -> Path:
    """A path. Raises: ArgumentError."""
    if not isinstance(value, (str, os.PathLike)) or "\0" in os.fspath(value):
        refuse(where, value, need)
    from pathlib import Path  # a warm start needs none

    return Path(value)


def count(where: str, value: Any, least: int) -> int:
    """A whole number of at least ``least``. Raises: SettingError."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value < least:
        raise SettingError(
            f"{where} must be a whole number of at least {least}, got {shown(value)}"
        )
    return int(value)


def is_masked(value: object) -> bool:
    """Whether a value is one of NumPy's masked arrays."""
    is_subclass = isinstance(value, np.ndarray) and type(value) is not np.ndarray
    return is_subclass and hasattr(value, "mask")


def unmasked(where: str, value: object) -> None:
    """Refuse a masked array, whose mask kernels would ignore. Raises: ArgumentError."""
    if is_masked(value):
        need = "an array without a mask (fill it by .filled(0), or pass .data and .mask apart)"
        refuse(where, value, need)


def twin_hint(name: str, names: Collection[str]) -> str:
    """How messages explain a name that a graph may have made of a repeated one, else nothing.

    >>> twin_hint("x_1", ["x", "x_1"])
    "; if two variables are called 'x', the second is fed as 'x_1': give them different names"
    """
    base, _, number = name.rpartition("_")
    if base not in names or not number.isdigit():
        return ""
    return (
        f"; if two variables are called '{base}', the second is fed as '{name}': give them "
        f"different names"
    )


def numbers(where: str, value: Any, dtype: Any = None) -> Any:
    """A new NumPy array of numbers; ``dtype`` is NumPy's or None for the one of the value.

    Raises: ArgumentError for ragged lists, objects, text and masked arrays.
    """
    unmasked(where, value)
    need = "an array or (nested lists of) numbers"
    try:
        array = np.array(value)
        if array.dtype.kind not in "OSUMm":
            return array if dtype is None else np.array(value, dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentError(f"{where} must be {need}, got {shown(value)}: {error}") from None
    refuse(where, value, need)
