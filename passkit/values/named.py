"""Registries that are looked up by name, and what is asked when a name is unknown.

Operators, passes, dialects, targets and fusion strategies are all found by name. When a name is
unknown, plug-ins are loaded (`passkit.values.plugins`) and the hooks of `on_unknown_name` are asked
first, which may register it; so whatever loads extensions need not do so at import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from threading import Lock
from typing import Generic, TypeVar

from passkit.errors import PasskitError, RegistryError, nearest

T = TypeVar("T")
Hook = Callable[[str, str], object]


def _load_plugins(kind: str, name: str) -> None:
    """The hook that passkit has by itself: load the plug-ins of installed packages."""
    from passkit.values.plugins import load_plugins  # seldom needed, and it needs attrs

    load_plugins()


_hooks: list[Hook] = [_load_plugins]


def on_unknown_name(hook: Hook) -> Hook:
    """Call ``hook(kind, name)`` when a look-up finds no ``name``; it may register one.

    ``kind`` is "operator", "pass", "dialect", "target" or "fusion strategy". After the hooks the
    look-up is tried once more. The same hook is kept once.
    """
    if hook not in _hooks:
        _hooks.append(hook)
    return hook


def ask_hooks(kind: str, name: str) -> None:
    """Tell all hooks that ``name`` is unknown."""
    for hook in list(_hooks):
        hook(kind, name)


class Named(Generic[T]):
    """Things of one kind by their names.

    ``built_in`` maps names to the modules that register them, which are imported when they are
    looked up. ``error`` is raised for an unknown name, which ``unknown`` says of it.
    """

    def __init__(
        self,
        kind: str,
        error: type[PasskitError],
        built_in: Mapping[str, str] | None = None,
        unknown: str = "is not registered",
    ) -> None:
        self.kind, self.error, self.unknown = kind, error, unknown
        self.built_in = dict(built_in or {})
        self._things: dict[str, T] = {}
        self._places: dict[str, str] = {}
        self._lock = Lock()

    def put(self, name: str, thing: T, place: str = "") -> None:
        """Register ``thing``; the same ``place`` may do so again, and "" replaces any.

        Raises: RegistryError when ``name`` is empty or no string, or registered at another place.
        """
        if not isinstance(name, str) or not name:
            raise RegistryError(f"the name of a {self.kind} must be a string, got {name!r}")
        if place and name in self.built_in and name not in self._things:
            import_module(self.built_in[name])
        with self._lock:
            old = self._places.get(name, place)
            if place and old != place:
                raise RegistryError(
                    f"{self.kind} {name!r} is registered at {old} and now at {place}; "
                    f"give one of them another name"
                )
            self._things[name], self._places[name] = thing, place

    def __contains__(self, name: object) -> bool:
        """Whether ``name`` is known, once the hooks have been asked; imports no built-in."""
        if not isinstance(name, str):
            return False
        if name not in self._things and name not in self.built_in:
            ask_hooks(self.kind, name)
        return name in self._things or name in self.built_in

    def __getitem__(self, name: str) -> T:
        """The thing called ``name``. Raises: ``error`` with the nearest name."""
        if name not in self:
            near = nearest(str(name), self.names())
            raise self.error(f"{self.kind} {name!r} {self.unknown}; {near}")
        if name not in self._things:
            import_module(self.built_in[name])
        return self._things[name]

    def names(self) -> list[str]:
        """All names: built-in ones in their order, then the others, sorted."""
        return [*self.built_in, *sorted(set(self._things) - set(self.built_in))]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())
