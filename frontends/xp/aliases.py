"""Arrays that stay parts of other arrays, as NumPy's views do: an option for programs that need it.

With ``xp.config(aliasing=True)``, slices and reshaped or transposed arrays are noted as views of
the array that they are made of. A new value of one, by ``x[...] = y`` or an in-place operator, then
gives its base and the other views of that new values, too. These are operations like others: they
are queued, and what nobody reads is never computed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import ref

from attrs import define

from passkit.streams.settings import settings

if TYPE_CHECKING:
    from passkit.frontends.xp.array import Array

Conversion = Callable[..., Any]


@define(eq=False)
class Alias:
    """A view of an array.

    Attributes:
        view: a weak reference to the view.
        base: the array that it is a part of.
        read: the function of the base that returns the view.
        write: the function of base and view that returns the base with the elements of the view.
        part: the function of the base's NumPy array that returns the view's.
        memory: the NumPy array of the view, if NumPy may write to it. This reference to it counts
            as one of a writer, so that operations read copies.
    """

    view: Callable[[], Array | None]
    base: Array
    read: Conversion
    write: Conversion
    part: Conversion
    memory: Any = None


class _Registry(threading.local):
    """The views of each base, and the base of each view, by identity.

    All threads share them, but for ``is_busy``: whether the thread passes on new values.
    """

    aliases: ClassVar[dict[int, Alias]] = {}
    views: ClassVar[dict[int, list[Alias]]] = {}
    is_busy = False


_registry = _Registry()


def aliased(
    view: Array, base: Array, read: Conversion, write: Conversion, part: Conversion
) -> Array:
    """Return ``view``, and note it as a view of ``base`` if the setting ``aliasing`` is on.

    It is not noted while `written` updates arrays in this thread, nor if both are one array. The
    record is dropped when nothing refers to the view any more.

    Args:
        view: the array, to which nothing else refers yet.
        base: the array that it is made of.
        read: the function of the base that returns the view.
        write: the function of base and view that returns the base with the view's elements.
        part: the function of the base's NumPy array that returns the view's.
    """
    registry = _registry
    if settings.aliasing and not registry.is_busy and view is not base:
        key, base_key = id(view), id(base)

        def forget(_: Any) -> None:
            alias = registry.aliases.pop(key, None)
            siblings = registry.views.get(base_key, [])
            if alias in siblings:
                siblings.remove(alias)
            if not siblings:
                registry.views.pop(base_key, None)

        alias = Alias(ref(view, forget), base, read, write, part)
        registry.aliases[key] = alias
        registry.views.setdefault(base_key, []).append(alias)
    return view


def written(x: Array) -> None:
    """Update in place the arrays that share elements with ``x``, which has a new value.

    These are its views, its base with its other views, the base of the base and so on. Nothing
    happens without the setting ``aliasing``, or while this thread updates arrays already.
    """
    registry = _registry
    if not settings.aliasing or registry.is_busy or not registry.aliases:
        return
    registry.is_busy = True
    try:
        _refresh(registry, x, None)
        while (alias := registry.aliases.get(id(x))) is not None:
            alias.base._value = alias.write(alias.base, x)._value
            _refresh(registry, alias.base, x)
            x = alias.base
    finally:
        registry.is_busy = False


def _refresh(registry: _Registry, base: Array, source: Array | None) -> None:
    """Give the views of a base that still exist, and their views, new values in place.

    ``source``, a view that has its value already, is left out with its views; None: there is none.
    Memory of views that NumPy may write to is forgotten.
    """
    for alias in tuple(registry.views.get(id(base), ())):
        view = alias.view()
        alias.memory = None
        if view is not None and view is not source:
            view._value = alias.read(base)._value
            _refresh(registry, view, None)


def root_of(x: Array) -> Array:
    """Return the array that ``x`` is a view of, over any number of views, or ``x`` itself."""
    while (alias := _registry.aliases.get(id(x))) is not None:
        x = alias.base
    return x


def views_of(base: Array) -> tuple[tuple[Array, Alias], ...]:
    """Return the views of an array that still exist, each with its record, without views of these.

    Those that other threads made are among them.
    """
    aliases = tuple(_registry.views.get(id(base), ()))
    views = [(alias.view(), alias) for alias in aliases]
    return tuple((view, alias) for view, alias in views if view is not None)
