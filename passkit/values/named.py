"""Registries with look-up by name, and the hooks that are called for unknown names.

Operators, passes, dialects, targets and fusion strategies are looked up by name. When a name is
unknown, plug-ins are loaded (`passkit.values.plugins`) and the hooks of `on_unknown_name` are
called, any of which may register it. Extensions thus need not be loaded at import.
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
    """Load the plug-ins of installed packages: the hook that is always there.

    It loads all of them, whatever ``kind`` and ``name`` are.
    """
    from passkit.values.plugins import load_plugins  # it imports attrs, and few programs need it

    load_plugins()


_hooks: list[Hook] = [_load_plugins]


def on_unknown_name(hook: Hook) -> Hook:
    """Register a hook that is called when a look-up does not find a name; usable as a decorator.

    Args:
        hook: called with the kind ("operator", "pass", "dialect", "target" or "fusion strategy")
            and the name; it may register something of that name. The look-up is repeated after
            all hooks. Registering the same hook again changes nothing.

    Returns:
        The hook.
    """
    if hook not in _hooks:
        _hooks.append(hook)
    return hook


def ask_hooks(kind: str, name: str) -> None:
    """Call all hooks for an unknown name; they may register an object under it.

    What a hook raises is passed on.

    Args:
        kind: what is looked up, such as "operator" or "pass".
        name: the name.
    """
    for hook in list(_hooks):
        hook(kind, name)


class NamedRegistry(Generic[T]):
    """Objects of one kind by name.

    Args:
        kind: what the objects are, for messages and hooks, such as ``"pass"``.
        error: the class of the error that is raised for an unknown name.
        built_in: names, and the modules that register them, which are imported at look-up.
        unknown: what messages say of an unknown name.
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
        self._objects: dict[str, T] = {}
        self._places: dict[str, str] = {}
        self._lock = Lock()

    def register(self, name: str, value: T, place: str = "") -> None:
        """Register ``value`` under ``name``.

        Args:
            name: the name.
            value: the object.
            place: file and line of the registration. The same place may replace its object; an
                empty place replaces any. A built-in object is imported before it is compared or
                replaced.

        Raises:
            RegistryError: ``name`` is empty or no string, or ``place`` is not empty and the name
                was registered at another place or without one.
        """
        if not isinstance(name, str) or not name:
            raise RegistryError(f"the name of a {self.kind} must be a string, got {name!r}")
        if name in self.built_in and name not in self._objects:
            import_module(self.built_in[name])  # else a later import would replace this object
        with self._lock:
            old = self._places.get(name, place)
            if place and old != place:
                raise RegistryError(
                    f"{self.kind} {name!r} is registered at {old} and now at {place}; "
                    f"give one of them another name"
                )
            self._objects[name], self._places[name] = value, place

    def __contains__(self, name: object) -> bool:
        """Return whether ``name`` is known, calling the hooks if it is not; import no built-in."""
        if not isinstance(name, str):
            return False
        if name not in self._objects and name not in self.built_in:
            ask_hooks(self.kind, name)
        return name in self._objects or name in self.built_in

    def __getitem__(self, name: str) -> T:
        """Return the object called ``name``, importing a built-in one, or calling the hooks.

        Raises: the registry's ``error``, with the nearest name, if it stays unknown.
        """
        if name not in self:
            near = nearest(str(name), self.names())
            raise self.error(f"{self.kind} {name!r} {self.unknown}; {near}")
        if name not in self._objects:
            import_module(self.built_in[name])
        return self._objects[name]

    def names(self) -> list[str]:
        """Return all names: the built-in ones in their order, then the others, sorted."""
        return [*self.built_in, *sorted(set(self._objects) - set(self.built_in))]

    def __iter__(self) -> Iterator[str]:
        """Return an iterator over all names, in the order of `names`."""
        return iter(self.names())
