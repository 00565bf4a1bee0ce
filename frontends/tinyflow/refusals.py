"""Arguments of TensorFlow's that mean nothing here: given, they are refused by name."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from passkit.errors import SettingError

F = TypeVar("F", bound=Callable[..., Any])


def refuses(why: str, *names: str) -> Callable[[F], F]:
    """Give a function the arguments ``names``, of which it takes the default only.

    The names must be parameters of the function. Raises: SettingError where another value is given.
    """

    def wrap(function: F) -> F:
        signature = inspect.signature(function)
        defaults = {n: signature.parameters[n].default for n in names}
        order = list(signature.parameters)
        first = min(order.index(n) for n in names)
        label = function.__qualname__.removesuffix(".__init__")

        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            if len(args) <= first and defaults.keys().isdisjoint(kwargs):
                return function(*args, **kwargs)  # binding takes longer than a small run
            given = signature.bind(*args, **kwargs).arguments
            for name, default in defaults.items():
                if name in given and not _same(given[name], default):
                    raise SettingError(
                        f"{label} takes no {name}, got {given[name]!r}; {why}; leave it out"
                    )
            return function(*args, **kwargs)

        return checked  # type: ignore[return-value]

    return wrap


def _same(given: Any, default: Any) -> bool:
    return given is default or (type(given) is type(default) and bool(given == default))


def either(where: str, name: str, value: Any, old: str, other: Any) -> Any:
    """An argument that has an older name, too. Raises: SettingError when both are given."""
    if other is None:
        return value
    if value is not None:
        raise SettingError(
            f"{where} needs {name} or {old}, its older name, got both: {value!r} and {other!r}"
        )
    return other
