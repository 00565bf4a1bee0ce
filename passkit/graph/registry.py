"""The central registry: attributes of operators as columns, each value with its level and place.

The semantics are NNVM's (nnvm/op.h, op.cc): registration may be repeated from anywhere, the higher
`plevel` wins, equal levels from two places are an error. The same place replaces its own value, so
that a notebook cell can run again. As there, the first value of an attribute that nobody declared
declares it; but a name that is nearly one that is declared is refused as misspelt.
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

OWN = "an attribute of your own"
"""The signature of an attribute that its first value declared."""

NEAR = 0.8
"""How alike a name and a declared one are, from 0 to 1, for the name to be taken as misspelt."""


class Setting(NamedTuple):
    """One registered value: what, how strong, by whom."""

    value: Any
    plevel: int
    place: str
    owner: str


class Table:
    """One attribute of all operators: a column indexed by operator name.

    ``kind`` is the type that values must have; ``signature`` documents it. ``choices``, if there
    are any, are the only values.
    """

    __slots__ = ("choices", "key", "kind", "rows", "signature")

    def __init__(
        self,
        key: str,
        kind: type | tuple[type, ...],
        signature: str,
        choices: tuple[Any, ...] = (),
    ) -> None:
        self.key, self.kind, self.signature, self.choices = key, kind, signature, choices
        self.rows: dict[str, Setting] = {}

    def get(self, name: str | None, default: Any = None) -> Any:
        """The value for an operator's name, else ``default``."""
        row = self.rows.get(name) if name is not None else None
        return default if row is None else row.value


_tables: dict[str, Table] = {}


def declare(
    key: str,
    kind: type | tuple[type, ...],
    signature: str,
    choices: tuple[Any, ...] = (),
) -> Table:
    """The table of attribute ``key``; made on first use, shared ever after.

    Raises: RegistryError when it exists with another type of value.
    """
    with _lock:
        table = _tables.get(key)
        if table is None:
            table = _tables[key] = Table(key, kind, signature, choices)
        elif table.kind != kind:
            raise RegistryError(
                f"attribute {key} is declared with values of type {_type_name(table.kind)}, "
                f"and now with {_type_name(kind)}; use one type, or another name"
            )
        return table


def register_attr(key: str, kind: type | tuple[type, ...], doc: str) -> None:
    """Declare an attribute of your own, which operators are given by ``set_attr``.

    Its values are then checked from the first on, messages say what they mean, and its name may be
    like that of another attribute. A pass reads it by ``node.op.get_attr(key, default)``, or names
    it in ``depends_op``. By custom, names of functions begin with F, those of values with T.
    Declaring it again changes nothing.

    Args:
        key: The name of the attribute.
        kind: The type that its values must have, or a tuple of types;
            ``collections.abc.Callable`` for functions.
        doc: What a value says, as messages show it: ``"(node) -> seconds"``.

    Raises: RegistryError when it is declared with another type of value.
    """
    arguments.name("register_attr: key", key, "FCost")
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if not kinds or not all(isinstance(k, type) for k in kinds):
        need = "a type or a tuple of types; collections.abc.Callable for functions"
        arguments.refuse(f"register_attr({key!r}): kind", kind, need)
    declare(key, kind, arguments.text(f"register_attr({key!r}): doc", doc))


def table(key: str) -> Table:
    """The table of a declared attribute.

    Raises: RegistryError with the nearest name.
    """
    if key not in _tables:
        raise RegistryError(
            f"attribute {arguments.shown(key)} is not declared; {nearest(key, _tables)}"
        )
    return _tables[key]


def tables() -> Iterator[Table]:
    """All attribute tables, by name."""
    return iter(sorted(_tables.values(), key=lambda t: t.key))


def put(key: str, name: str, setting: Setting) -> bool:
    """Register a value for the operator called ``name``; whether it took effect.

    Raises: RegistryError as `checked` does, and when the attribute is set at the same level from
    two places.
    """
    rows = checked(key, setting).rows
    with _lock:
        return wins(key, setting, rows, name)


def checked(key: str, setting: Setting) -> Table:
    """The table of an attribute, which may have this value; the first value declares it.

    Raises: RegistryError for a name that is not declared and nearly one that is, on plevel <= 0,
    and on another type of value.
    """
    arguments.name(f"attribute of {setting.owner}: key", key, "FCodeGen")
    arguments.instance(f"attribute {key} of {setting.owner}: plevel", setting.plevel, int, "an int")
    if setting.plevel <= 0:
        raise RegistryError(
            f"plevel of {key} for {setting.owner} must be greater than 0, got {setting.plevel}"
        )
    column = _tables.get(key)
    if column is None:
        meant = _misspelt(key)
        if meant is not None:
            raise RegistryError(
                f"attribute {key!r} of {setting.owner} is not declared; did you mean {meant!r}? "
                f"pk.register_attr({key!r}, type, doc) declares one of your own"
            )
        column = declare(key, _kind_of(setting.value), OWN)
    if not isinstance(setting.value, column.kind):
        raise RegistryError(
            f"attribute {key} of {setting.owner} needs a value of type "
            f"{_type_name(column.kind)}, got {type(setting.value).__name__}: {column.signature}"
        )
    if column.choices and setting.value not in column.choices:
        choices = ", ".join(map(repr, column.choices))
        raise RegistryError(
            f"attribute {key} of {setting.owner} must be one of {choices}, got "
            f"{arguments.shown(setting.value)}"
        )
    return column


def wins(key: str, setting: Setting, settings: dict[str, Setting], name: str) -> bool:
    """Put ``setting`` into ``settings`` under ``name``, unless there is a stronger one already.

    Returns: Whether it was put there.

    Raises: RegistryError where one of the same level comes from another place.
    """
    old = settings.get(name)
    if old is not None and old.plevel == setting.plevel and old.place != setting.place:
        raise RegistryError(
            f"attribute {key} of {setting.owner} is set at plevel={setting.plevel} from two "
            f"places: {old.owner} at {old.place} and {setting.owner} at {setting.place}; give "
            f"one of them a higher plevel"
        )
    if old is not None and old.plevel > setting.plevel:
        return False
    settings[name] = setting
    return True


def _misspelt(key: str) -> str | None:
    """The name, declared on purpose, that ``key`` is nearly the same as; None if there is none."""
    from difflib import get_close_matches  # nobody needs it where all is well

    names = {key.lower(): key for key, t in _tables.items() if t.signature != OWN}
    close = get_close_matches(key.lower(), names, n=1, cutoff=NEAR)
    return names[close[0]] if close else None


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
