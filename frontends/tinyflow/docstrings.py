"""Docstrings of functions that share descriptions of arguments, and functions of several names."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from textwrap import wrap
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
WIDTH = 96
"""The length of a docstring's lines, beside its indentation."""


def describe_arguments(shared: Mapping[str, str]) -> Callable[[F], F]:
    """Complete the ``Args:`` of a function's docstring from a table of shared descriptions.

    The docstring describes the arguments that are special to the function. Its line ``others:``
    names the table for readers of the source; it is replaced by an entry for each parameter that
    the docstring does not describe, and entries are put into the order of the signature.

    Args:
        shared: The description of each shared argument, by name.

    Returns:
        A decorator, which changes the docstring of the function in place and returns the function;
        a function without docstring is returned unchanged. It raises KeyError for a parameter that
        neither the docstring nor the table describes, and ValueError for a docstring without
        ``Args:``.

    >>> @describe_arguments({"name": "The name of the result."})
    ... def double(x, name=None):
    ...     '''Double a number.
    ...
    ...     Args:
    ...         x: A number.
    ...         others: See `SHARED`.
    ...     '''
    >>> print(double.__doc__)
    Double a number.
    <BLANKLINE>
    Args:
        x: A number.
        name: The name of the result.
    """

    def complete(function: F) -> F:
        if function.__doc__ is None:  # Python runs without docstrings
            return function
        lines = inspect.cleandoc(function.__doc__).split("\n")
        start = lines.index("Args:") + 1
        end = next((k for k in range(start, len(lines)) if not lines[k].strip()), len(lines))
        own: dict[str, list[str]] = {}
        for line in lines[start:end]:
            if not line.startswith("     "):
                own[line.split(":")[0].strip()] = []
            own[next(reversed(own))].append(line)
        entries: list[str] = []
        for name in inspect.signature(function).parameters:
            if name not in own:
                entry = wrap(f"    {name}: {shared[name]}", WIDTH, subsequent_indent=" " * 8)
                own[name] = entry
            entries += own[name]
        function.__doc__ = "\n".join([*lines[:start], *entries, *lines[end:]])
        return function

    return complete


def named_alias(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a function that does the same under another name.

    Args:
        function: The function, or a partial one.
        name: The ``__name__`` and ``__qualname__`` of the result.

    Returns:
        A function with the signature and the docstring of ``function``.

    >>> named_alias(sorted, "ordered")("ba"), named_alias(sorted, "ordered").__name__
    (['a', 'b'], 'ordered')
    """

    @functools.wraps(function)
    def alias(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    alias.__name__ = alias.__qualname__ = name
    return alias
