"""Plug-ins: installed packages that register operators, passes, dialects, targets or strategies.

A package names its plug-ins in the entry-point group ``passkit.plugins``. Each entry point is a
module, which registers things when it is imported, or a function, which registers them when it is
called without arguments. They are loaded at the first name that passkit does not know, or by
`load_plugins`; programs of passkit's own operators load none.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib import import_module
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING, Any

from attrs import define

from passkit.errors import PluginError, PluginWarning
from passkit.values.warning import warn_user

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint

GROUP = "passkit.plugins"
"""The entry-point group of plug-ins."""


@define
class Plugin:
    """A plug-in of an installed package.

    Attributes:
        name: The name of its entry point.
        value: What the entry point refers to: ``package.module`` or ``package.module:function``.
        distribution: The name of the package that has it, and its ``version``.
        loaded: Whether it was loaded without an error.
        error: The error that loading it ended in, else "".
    """

    name: str
    value: str
    distribution: str
    version: str
    loaded: bool = False
    error: str = ""


_plugins: list[Plugin] = []
_waiting: list[tuple[Plugin, EntryPoint]] = []
_searched = False
_lock = RLock()


def load_plugins() -> tuple[Plugin, ...]:
    """Load the plug-ins of all installed packages, once in a process, and return them.

    A plug-in that needs the names of another may look them up while it is loaded: the others are
    loaded then. One that fails is warned of by a `PluginWarning`; the others are loaded all the
    same, and what it had registered before it failed stays registered.
    """
    global _searched
    with _lock:
        if not _searched:
            _searched = True
            for plugin, point in _installed():
                _plugins.append(plugin)
                _waiting.append((plugin, point))
        while _waiting:
            _load(*_waiting.pop(0))
        return tuple(_plugins)


def _installed() -> Iterator[tuple[Plugin, EntryPoint]]:
    """The plug-ins of all packages on `sys.path`, each package once, in the order of the path."""
    from importlib.metadata import distributions  # takes longer than all of `import passkit`

    seen = set[tuple[str, str]]()
    for distribution in distributions():
        try:
            points = distribution.entry_points.select(group=GROUP)
        except Exception:  # noqa: BLE001, RUF100  (a damaged file of a package without plug-ins)
            continue
        for point in points:
            package, version = _package(distribution)
            if (package, point.name) not in seen:
                seen.add((package, point.name))
                yield Plugin(point.name, point.value, package, version), point


def _package(distribution: Distribution) -> tuple[str, str]:
    """Name and version of a package, each "unknown" where its metadata does not say."""
    try:
        return distribution.metadata["Name"] or "unknown", distribution.version or "unknown"
    except Exception:  # noqa: BLE001, RUF100  (METADATA is missing or damaged)
        return "unknown", "unknown"


def _register(point: EntryPoint) -> None:
    """Import or call what an entry point refers to. Raises: PluginError when it is neither."""
    target = point.load()
    if callable(target):
        target()
    elif not isinstance(target, ModuleType):
        raise PluginError(
            f"'{point.value}' is neither a module nor a function, but a {type(target).__name__}"
        )


def _load(plugin: Plugin, point: EntryPoint) -> None:
    """Import or call what an entry point refers to, and note in ``plugin`` how that went."""
    try:
        _register(point)
        plugin.loaded = True
    except (Exception, SystemExit) as error:  # noqa: BLE001, RUF100  (whatever it is)
        plugin.error = f"{type(error).__name__}: {error}"
        warn_user(
            f"plug-in {plugin.name!r} ({point.value}) of {plugin.distribution} {plugin.version} "
            f"is not loaded: {plugin.error}; repair it, or run pip uninstall {plugin.distribution}",
            PluginWarning,
        )


def import_plugin(module: str) -> Any:
    """Import a module, or run a file of Python, that registers things, and return the module.

    Args:
        module: The name of a module, which may be in the current folder, or the path of a file
            that ends with ``.py``.

    Raises: PluginError when there is none, or when importing it ends in an error.
    """
    name, ending = os.path.splitext(os.path.basename(module))
    try:
        if ending == ".py":
            return _imported_file(os.path.abspath(module), name)
        if os.getcwd() not in sys.path and "" not in sys.path:
            sys.path.append(os.getcwd())
        return import_module(module)
    except (Exception, SystemExit) as error:  # noqa: BLE001, RUF100  (whatever it is)
        raise PluginError(
            f"plug-in {module!r} cannot be imported: {type(error).__name__}: {error}; give the "
            f"name of a module or the path of a file that ends with .py"
        ) from error


def _imported_file(path: str, name: str) -> ModuleType:
    """The module in a file, under the file's name; imported once."""
    from importlib.util import module_from_spec, spec_from_file_location

    known = sys.modules.get(name)
    if known is not None:
        if os.path.abspath(getattr(known, "__file__", None) or "") == path:
            return known
        raise PluginError(f"a module called {name!r} is imported already; rename the file")
    if not os.path.isfile(path):
        raise PluginError(f"there is no file '{path}'")
    spec = spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
