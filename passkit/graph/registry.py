"""The central registry: attributes of operators as columns, each value with its level and place.

The semantics are NNVM's (nnvm/op.h, op.cc): registration may be repeated from anywhere, the higher
`plevel` wins, equal levels from two places are an error. The same place replaces its own value, so
that a notebook cell can run again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from threading import RLock
from types import FrameType
from typing import Any, NamedTuple

from passkit.errors import RegistryError, nearest
from passkit.values import arguments

_lock = RLock()


class Setting(NamedTuple):
    """One registered value: what, how strong, by whom."""

    value: Any
    plevel: int
    place: str
    owner: str


class Table:
    """One attribute of all operators: a column indexed by operator name.

    ``kind`` is the type that values must have; ``signature`` documents it.
    """

    __slots__ = ("key", "kind", "rows", "signature")

    def __init__(self, key: str, kind: type | tuple[type, ...], signature: str) -> None:
        self.key, self.kind, self.signature = key, kind, signature
        self.rows: dict[str, Setting] = {}

    def get(self, name: str | None, default: Any = None) -> Any:
        """The value for an operator's name, else ``default``."""
        row = self.rows.get(name) if name is not None else None
        return default if row is None else row.value


_tables: dict[str, Table] = {}


def declare(key: str, kind: type | tuple[type, ...], signature: str) -> Table:
    """The table of attribute ``key``; made on first use, shared ever after.

    Raises: RegistryError when it exists with another type of value.
    """
    with _lock:
        table = _tables.get(key)
        if table is None:
            table = _tables[key] = Table(key, kind, signature)
        elif table.kind != kind:
            raise RegistryError(
                f"attribute {key} is declared with values of type {_type_name(table.kind)}, "
                f"and now with {_type_name(kind)}; use one type, or another name"
            )
        return table


def table(key: str) -> Table:
    """The table of a declared attribute.

    Raises: RegistryError with the nearest name.
    """
    if key not in _tables:
        raise RegistryError(f"attribute {key!r} is not declared; {nearest(key, _tables)}")
    return _tables[key]


def tables() -> Iterator[Table]:
    """All attribute tables, by name."""
    return iter(sorted(_tables.values(), key=lambda t: t.key))


def put(key: str, name: str, setting: Setting) -> bool:
    """Register a value; whether it took effect.

    Raises: RegistryError on plevel <= 0, on a value of the wrong type, and when the same attribute
    is set at the same level from two places.
    """
    arguments.text(f"attribute of {setting.owner}: key", key)
    arguments.instance(f"attribute {key} of {setting.owner}: plevel", setting.plevel, int, "an int")
    with _lock:
        if key not in _tables:
            declare(key, _kind_of(setting.value), "an attribute of your own")
        column = _tables[key]
        if setting.plevel <= 0:
            raise RegistryError(
                f"plevel of {key} for {setting.owner} must be greater than 0, got {setting.plevel}"
            )
        if not isinstance(setting.value, column.kind):
            raise RegistryError(
                f"attribute {key} of {setting.owner} needs a value of type "
                f"{_type_name(column.kind)}, got {type(setting.value).__name__}: "
                f"{column.signature}"
            )
        old = column.rows.get(name)
        if old is not None and old.plevel == setting.plevel and old.place != setting.place:
            raise RegistryError(
                f"attribute {key} of {setting.owner} is set at plevel={setting.plevel} from two "
                f"places: {old.owner} at {old.place} and {setting.owner} at {setting.place}; give "
                f"one of them a higher plevel"
            )
        if old is not None and old.plevel > setting.plevel:
            return False
        column.rows[name] = setting
        return True


def _kind_of(value: Any) -> type | tuple[type, ...]:
    return Callable if callable(value) and not isinstance(value, type) else type(value)  # type: ignore[return-value]


def _type_name(kind: type | tuple[type, ...]) -> str:
    if isinstance(kind, tuple):
        return " or ".join(_type_name(k) for k in kind)
    return "function" if kind is Callable else kind.__name__  # type: ignore[comparison-overlap]


LIBRARY = "passkit.ops"
"""The package whose functions register on behalf of its modules."""


def _top(frame: FrameType) -> bool:
    return frame.f_code.co_name == "<module>"


def calling_place(depth: int = 2) -> str:
    """Where the caller's caller stands, as file:line; one place for all cells of a notebook.

    The library's own helpers that register are looked through: an operator belongs to the row
    that calls for it.
    """
    frame = sys._getframe(depth)
    while frame.f_back and frame.f_globals.get("__package__") == LIBRARY and not _top(frame):
        frame = frame.f_back
    file = frame.f_code.co_filename
    if file.startswith("<") or "ipykernel" in file:
        return f"interactive session ({frame.f_globals.get('__name__', '?')})"
    return f"{file}:{frame.f_lineno}"
