"""Argument checks of public functions, with uniform error messages.

Each check takes ``where``, which names the function and the argument in messages, such as
``"compile: graph"``, and the value. It returns the value in the form that the function works with.
"""

from __future__ import annotations

import os
import reprlib
from collections.abc import Callable, Collection, Iterable, Mapping
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from passkit.errors import ArgumentError, PasskitError, SettingError

if TYPE_CHECKING:
    from pathlib import Path

_LONGEST = 80
_BRIEF = reprlib.Repr()
_BRIEF.maxstring = _BRIEF.maxlong = _BRIEF.maxother = _LONGEST


def shown(value: object) -> str:
    """Return a value as messages show it: its repr on one line, shortened to 80 characters.

    Of containers only the first elements are shown. An array is shown by its class, dtype and
    shape; a value whose repr fails by its type.
    """
    if isinstance(value, np.ndarray):
        kind = "an array" if type(value) is np.ndarray else f"a {type(value).__name__}"
        return f"{kind} {value.dtype}{list(value.shape)}"
    try:
        text = " ".join(_BRIEF.repr(value).split())
    except Exception:  # the repr of a custom class, or of an int of too many digits
        return f"a value of type {type(value).__name__}"
    return shortened(text)


def shortened(text: str, most: int = _LONGEST) -> str:
    """Return a text; one of more than ``most`` characters, at least 3, is cut to end in "..."."""
    return text if len(text) <= most else text[: most - 3] + "..."


LONGEST_MESSAGE = 2_000
"""The most characters of an error that an attribute function raises while a file is read."""


def shorten_message(error: PasskitError) -> None:
    """Shorten the message of ``error`` in place to `LONGEST_MESSAGE` characters.

    It may quote a long name or parameter of a file.
    """
    error.args = tuple(
        shortened(a, LONGEST_MESSAGE) if isinstance(a, str) else a for a in error.args
    )


def refuse(where: str, value: object, need: str) -> NoReturn:
    """Raise an ArgumentError that says what is needed and shows the value.

    Args:
        where: the function and the argument, such as ``"var: name"``.
        value: the value.
        need: what it must be, as a phrase, such as ``"a string"``.
    """
    raise ArgumentError(f"{where} must be {need}, got {shown(value)}")


def instance(where: str, value: Any, kinds: type | tuple[type, ...], need: str) -> Any:
    """Return ``value`` if it is an instance of ``kinds``; a bool is not if ``kinds`` is just int.

    Args:
        where: the function and the argument, for the message.
        value: the value.
        kinds: the type, or types, allowed.
        need: what it must be, as a phrase.

    Raises: ArgumentError otherwise.
    """
    if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is int):
        refuse(where, value, need)
    return value


def text(where: str, value: Any) -> str:
    """Return ``value``, the argument ``where``, if it is a string.

    Raises: ArgumentError otherwise, which names ``where``.
    """
    if type(value) is not str:
        instance(where, value, str, "a string")
    return value  # type: ignore[no-any-return]


def name(where: str, value: Any, example: str) -> str:
    """Return ``value`` if it is a string that is a Python identifier, also a keyword.

    Raises: ArgumentError otherwise, which names the argument ``where`` and shows ``example``.
    """
    if not isinstance(value, str) or not value.isidentifier():
        refuse(where, value, f"a name, such as {example!r}")
    return value


def flag(where: str, value: Any) -> bool:
    """Return ``value`` itself, the argument ``where``, if it is a bool of Python or NumPy.

    Raises: ArgumentError otherwise, which names ``where``.
    """
    return instance(where, value, (bool, np.bool_), "True or False")  # type: ignore[no-any-return]


def function(where: str, value: Any) -> Callable[..., Any]:
    """Return ``value``, the argument ``where``, if it is callable.

    Raises: ArgumentError otherwise, which names ``where``.
    """
    if not callable(value):
        refuse(where, value, "a function")
    return value  # type: ignore[no-any-return]


def parameters(where: str, value: Callable[..., Any], need: str, least: int, most: int) -> int:
    """Return the number of positional arguments to call a function with.

    It is the number of its named positional parameters, but at least ``least`` and at most
    ``most``; ``least`` for a function without a signature.

    Args:
        where: the function and the argument, for the message.
        value: the function.
        need: the arguments it must take, as a phrase that follows "a function".
        least: the fewest arguments.
        most: the most.

    Raises: ArgumentError where the function cannot be called with that many.
    """
    positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    try:
        shape = signature(value)
    except (TypeError, ValueError):  # a function of C without a signature
        return least
    named = sum(p.kind in positional for p in shape.parameters.values())
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
    """Return the elements of an iterable, each an instance of ``kinds``, as a tuple.

    Args:
        where: the function and the argument, for the message.
        value: the iterable.
        kinds: the type, or types, of its elements; a bool is an int, NumPy's integers are not.
        need: what it must be, as a phrase.

    Raises: ArgumentError for other elements, strings, bytes, mappings, and anything that is not
        iterable, such as an array without axes.
    """
    is_sequence = isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping))
    if not is_sequence or (isinstance(value, np.ndarray) and not value.ndim):
        refuse(where, value, need)
    try:
        elements = tuple(value)
    except (PasskitError, TypeError):  # iterating an Entry, or an Array without axes, raises one
        refuse(where, value, need)
    for k, element in enumerate(elements):
        if not isinstance(element, kinds):
            raise ArgumentError(f"{where} must be {need}, got {shown(element)} at index {k}")
    return elements


def mapping(where: str, value: Any, need: str = "a mapping") -> dict[Any, Any]:
    """Return ``value``, a mapping or an iterable of pairs, as a new dict; None as an empty one.

    Raises: ArgumentError for anything else; ``need`` is what the argument ``where`` must be.
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
    """Return ``value``, a string or an `os.PathLike`, as a path; it need not exist.

    Raises: ArgumentError for anything else, also a path of bytes, or a null character in it;
        ``need`` is what the argument ``where`` must be.
    """
    text = os.fspath(value) if isinstance(value, (str, os.PathLike)) else None
    if not isinstance(text, str) or "\0" in text:
        refuse(where, value, need)
    from pathlib import Path  # a warm start does not need it

    return Path(value)


def count(where: str, value: Any, least: int) -> int:
    """Return ``value`` as an int if it is an integer of Python or NumPy, at least ``least``.

    Raises: SettingError otherwise, also for bools and floats; it names the argument ``where``.
    """
    is_integer = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not is_integer or value < least:
        raise SettingError(
            f"{where} must be a whole number of at least {least}, got {shown(value)}"
        )
    return int(value)


def is_masked(value: object) -> bool:
    """Return whether a value is a masked array: of a subclass of NumPy's with a ``mask``."""
    is_subclass = isinstance(value, np.ndarray) and type(value) is not np.ndarray
    return is_subclass and hasattr(value, "mask")


def unmasked(where: str, value: object) -> None:
    """Raise an ArgumentError if ``value``, the argument ``where``, is a masked array.

    Kernels would ignore its mask.
    """
    if is_masked(value):
        need = "an array without a mask (fill it by .filled(0), or pass .data and .mask apart)"
        refuse(where, value, need)


def repeated_name_hint(name: str, names: Collection[str]) -> str:
    """Return an explanation, for messages, if ``name`` repeats one of ``names`` with a number.

    "" if it does not.

    >>> repeated_name_hint("x_1", ["x", "x_1"])
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
    """Return numbers as a new NumPy array.

    Args:
        where: the function and argument, for messages.
        value: an array, a number, or nested lists of numbers.
        dtype: the NumPy dtype of the result; by default that of the value.

    Raises:
        ArgumentError: The value is a ragged list, an object, a text, a date or a masked array, or
            complex for a real dtype (but bool), or holds a Python integer beyond 64 bits or the
            limits of an integer dtype, or for an integer dtype a Python float that is NaN or too
            large. Other numbers and arrays are cast as `numpy.array` does: floats are truncated to
            integer dtypes, and become infinite where they are too large for one of floats; the
            integers of an array wrap, and a NaN of an array becomes some integer.
    """
    unmasked(where, value)
    need = "an array or (nested lists of) numbers"
    try:
        array = np.array(value)
        if array.dtype.kind == "c" and dtype is not None and np.dtype(dtype).kind not in "cb":
            need = f"numbers for {np.dtype(dtype)}, which is real"
        elif array.dtype.kind not in "OSUMm":
            return array if dtype is None else np.array(value, dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentError(f"{where} must be {need}, got {shown(value)}: {error}") from None
    refuse(where, value, need)
