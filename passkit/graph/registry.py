"""The central registry of operator attributes: a table per attribute, indexed by operator name.

Each value is stored with its priority (``plevel``) and the place that registered it. The semantics
are NNVM's (nnvm/op.h, op.cc): any module may register a value, the higher ``plevel`` wins, equal
levels from two places are an error. The same place replaces its own value, so that a notebook cell
can run again. The first value of an undeclared attribute declares it, but a name that is nearly
that of a declared attribute is refused as misspelt.
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
"""The similarity, from 0 to 1, from which on a name counts as a misspelt declared one."""


class Setting(NamedTuple):
    """One registered value of an attribute.

    Attributes:
        value: the value.
        plevel: its priority; the higher wins.
        place: file and line of the registration.
        owner: the operator or group it was registered for, as messages name it.
    """

    value: Any
    plevel: int
    place: str
    owner: str


class Table:
    """The values of one attribute, by operator name.

    Attributes:
        key: the name of the attribute.
        kind: the type, or types, that values must have.
        signature: what a value is, as messages show it, such as ``"(node) -> Reduce"``.
        choices: the only values allowed; empty if any value of the type is.
        rows: the registered values.
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
        """Return the value of the operator called ``name``, or ``default`` if it has none.

        None as name gives ``default``.
        """
        setting = self.rows.get(name) if name is not None else None
        return default if setting is None else setting.value


_tables: dict[str, Table] = {}


def declare(
    key: str,
    kind: type | tuple[type, ...],
    signature: str,
    choices: tuple[Any, ...] = (),
) -> Table:
    """Declare an attribute of operators, or return its table if it is declared already.

    Args:
        key: the attribute's name, such as ``FCodeGen``.
        kind: the type, or types, that its values must have.
        signature: what a value is, as messages show it; ignored if the attribute exists.
        choices: the only values allowed; empty if any value of the type is. Ignored likewise.

    Raises: RegistryError when it is declared with another type of value.
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
    Declaring it again, or after its first value, changes nothing.

    Args:
        key: The name of the attribute.
        kind: The type that its values must have, or a tuple of types;
            ``collections.abc.Callable`` for functions.
        doc: What a value says, as messages show it: ``"(node) -> seconds"``.

    Raises: RegistryError when it is declared with another type of value; ArgumentError when ``key``
    is no identifier, ``kind`` no type or ``doc`` no text.
    """
    arguments.name("register_attr: key", key, "FCost")
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if not kinds or not all(isinstance(k, type) for k in kinds):
        need = "a type or a tuple of types; collections.abc.Callable for functions"
        arguments.refuse(f"register_attr({key!r}): kind", kind, need)
    declare(key, kind, arguments.text(f"register_attr({key!r}): doc", doc))


def table(key: str) -> Table:
    """Return the table of a declared attribute.

    Raises: RegistryError with the nearest name where it is not declared.
    """
    if key not in _tables:
        raise RegistryError(
            f"attribute {arguments.shown(key)} is not declared; {nearest(key, _tables)}"
        )
    return _tables[key]


def tables() -> Iterator[Table]:
    """Return an iterator over the tables of all declared attributes, sorted by attribute name."""
    return iter(sorted(_tables.values(), key=lambda t: t.key))


def register_value(key: str, name: str, setting: Setting) -> bool:
    """Register the value of attribute ``key`` for the operator called ``name``.

    Args:
        key: the attribute's name; an undeclared one is declared with the type of this value.
        name: the operator's name, which need not be registered yet.
        setting: the value, its priority and the source position that registers it.

    Returns: True if the value is stored, False if one of higher priority is there and stays. One of
    lower priority, or of the same from the same place, is replaced.

    Raises: RegistryError for an undeclared attribute whose name is nearly that of a declared one, a
    priority of 0 or less, a value of the wrong type or none of the allowed ones, or a value of the
    same priority that another place registered; ArgumentError for a key that is no identifier or a
    priority that is no int.
    """
    rows = checked_table(key, setting).rows
    with _lock:
        return store(key, setting, rows, name)


def checked_table(key: str, setting: Setting) -> Table:
    """Return the table of an attribute after checking a value; the first value declares it.

    Args:
        key: the attribute's name.
        setting: the value, its priority, and the source position and owner for messages.

    Raises: RegistryError for a name that is not declared and nearly one that is, on plevel <= 0,
    and on another type of value or one that is not among the allowed ones; ArgumentError for a key
    that is no identifier or a priority that is no int.
    """
    arguments.name(f"attribute of {setting.owner}: key", key, "FCodeGen")
    arguments.instance(f"attribute {key} of {setting.owner}: plevel", setting.plevel, int, "an int")
    if setting.plevel <= 0:
        raise RegistryError(
            f"plevel of {key} for {setting.owner} must be greater than 0, got {setting.plevel}"
        )
    table = _tables.get(key)
    if table is None:
        meant = _misspelt(key)
        if meant is not None:
            raise RegistryError(
                f"attribute {key!r} of {setting.owner} is not declared; did you mean {meant!r}? "
                f"pk.register_attr({key!r}, type, doc) declares one of your own"
            )
        table = declare(key, _kind_of(setting.value), OWN)
    if not isinstance(setting.value, table.kind):
        raise RegistryError(
            f"attribute {key} of {setting.owner} needs a value of type "
            f"{_type_name(table.kind)}, got {type(setting.value).__name__}: {table.signature}"
        )
    if table.choices and setting.value not in table.choices:
        choices = ", ".join(map(repr, table.choices))
        raise RegistryError(
            f"attribute {key} of {setting.owner} must be one of {choices}, got "
            f"{arguments.shown(setting.value)}"
        )
    return table


def store(key: str, setting: Setting, settings: dict[str, Setting], name: str) -> bool:
    """Store ``setting`` under ``name`` in ``settings``, unless one of higher priority is there.

    Args:
        key: the attribute's name, for the message.
        setting: the value with its priority and source position.
        settings: the table to store it in, changed in place.
        name: the key in ``settings``: an operator, or in a group's settings an attribute.

    Returns: Whether it was stored.

    Raises: RegistryError where one of the same priority comes from another place.
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
    """Return the explicitly declared name that ``key`` nearly equals, or None.

    Upper and lower case are the same here; attributes that a first value declared do not count.
    """
    from difflib import get_close_matches  # only errors need it

    names = {key.lower(): key for key, t in _tables.items() if t.signature != OWN}
    close = get_close_matches(key.lower(), names, n=1, cutoff=NEAR)
    return names[close[0]] if close else None


def _kind_of(value: Any) -> type | tuple[type, ...]:
    """Return the type that a first value declares: Callable for callables, else its own.

    A class counts as a value of type `type`.
    """
    return Callable if callable(value) and not isinstance(value, type) else type(value)  # type: ignore[return-value]


def _type_name(kind: type | tuple[type, ...]) -> str:
    """Return the name of a type, or of several with "or"; Callable is called "function"."""
    if isinstance(kind, tuple):
        return " or ".join(_type_name(k) for k in kind)
    return "function" if kind is Callable else kind.__name__  # type: ignore[comparison-overlap]


LIBRARY = "passkit.ops"
"""The package whose helper functions register on behalf of its modules."""


def _is_library_helper(frame: FrameType) -> bool:
    """Return whether a frame runs a function of the operator library, not a module's top level.

    Modules outside of `passkit.ops` that register operators for their callers say so by a variable.
    """
    names = frame.f_globals
    in_library = names.get("__package__") == LIBRARY or "REGISTERS_FOR_CALLERS" in names
    return in_library and frame.f_code.co_name != "<module>"


def calling_place(depth: int = 2) -> str:
    """Return the source position of the caller's caller, ``depth`` frames up, as ``file:line``.

    Helper functions of `passkit.ops` that register operators are skipped, up to the module that
    calls them. All cells of a notebook count as one place.
    """
    frame = sys._getframe(depth)
    while frame.f_back and _is_library_helper(frame):
        frame = frame.f_back
    file = frame.f_code.co_filename
    if file.startswith("<") or "ipykernel" in file:
        return f"interactive session ({frame.f_globals.get('__name__', '?')})"
    return f"{file}:{frame.f_lineno}"
