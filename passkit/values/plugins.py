"""Plug-ins: installed packages that register operators, passes, dialects, targets or strategies.

A package lists its plug-ins in the entry-point group ``passkit.plugins``. An entry point refers to
a module, which registers its extensions when it is imported, or to a function, which registers them
when it is called without arguments. Plug-ins are loaded at the first look-up of an unknown name, or
by `load_plugins`; programs that use only passkit's own operators load none.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
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
        distribution: The name of the package that contains it.
        version: The version of that package.
        loaded: Whether it was loaded without an error.
        error: The error that loading it raised, or "".
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
    """Load the plug-ins of all installed packages, once per process, and return them.

    A plug-in that looks up names of another while it is loaded causes the others to be loaded. A
    plug-in that fails issues a `PluginWarning`; the others are loaded all the same, and what it had
    registered before it failed stays registered.

    Returns:
        All plug-ins, with ``loaded`` and ``error`` set.
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
    """Yield the plug-ins of all packages on `sys.path`, each once, in the order of the path.

    Of several with the same package and name, the first one counts. Packages whose entry points
    cannot be read are skipped.
    """
    from importlib.metadata import distributions  # takes longer than all of `import passkit`

    names = set[tuple[str, str]]()
    for distribution in distributions():
        try:
            points = distribution.entry_points.select(group=GROUP)
        except Exception:  # noqa: BLE001, RUF100  (a damaged file of a package without plug-ins)
            continue
        for point in points:
            package, version = _package(distribution)
            if (package, point.name) not in names:
                names.add((package, point.name))
                yield Plugin(point.name, point.value, package, version), point


def _package(distribution: Distribution) -> tuple[str, str]:
    """Return the name of a package, and its version; "unknown" for those its metadata lacks."""
    try:
        return distribution.metadata["Name"] or "unknown", distribution.version or "unknown"
    except Exception:  # noqa: BLE001, RUF100  (METADATA is missing or damaged)
        return "unknown", "unknown"


def _register(point: EntryPoint) -> None:
    """Import the module that an entry point refers to, or call the function.

    Raises: PluginError when it is something else; ImportError or AttributeError when there is no
    such module or function; any exception that the plug-in itself raises.
    """
    target = point.load()
    if callable(target):
        target()
    elif not isinstance(target, ModuleType):
        raise PluginError(
            f"'{point.value}' is neither a module nor a function, but a {type(target).__name__}"
        )


def _load(plugin: Plugin, point: EntryPoint) -> None:
    """Import or call the target of an entry point, and record the result in ``plugin``.

    An Exception or SystemExit does not propagate: it is recorded in ``plugin.error``, and a
    PluginWarning is issued.
    """
    try:
        _register(point)
        plugin.loaded = True
    except (Exception, SystemExit) as error:  # noqa: BLE001, RUF100  (plug-ins may raise anything)
        plugin.error = f"{type(error).__name__}: {error}"
        warn_user(
            f"plug-in {plugin.name!r} ({point.value}) of {plugin.distribution} {plugin.version} "
            f"is not loaded: {plugin.error}; repair it, or run pip uninstall {plugin.distribution}",
            PluginWarning,
        )


def import_plugin(module: str) -> Any:
    """Import a module or a Python file that registers extensions, and return the module.

    For a module, the current folder is appended to `sys.path` if it is not there.

    Args:
        module: The name of a module, which may be in the current folder, or the path of a file
            that ends with ``.py``.

    Raises: PluginError when it does not exist, or when importing it raises an error.
    """
    name, ending = os.path.splitext(os.path.basename(module))
    try:
        if ending == ".py":
            return _imported_file(os.path.abspath(module), name)
        if os.getcwd() not in sys.path and "" not in sys.path:
            sys.path.append(os.getcwd())
        return import_module(module)
    except (Exception, SystemExit) as error:  # noqa: BLE001, RUF100  (plug-ins may raise anything)
        raise PluginError(
            f"plug-in {module!r} cannot be imported: {type(error).__name__}: {error}; give the "
            f"name of a module or the path of a file that ends with .py"
        ) from error


def _imported_file(path: str, name: str) -> ModuleType:
    """Import a file as a module called ``name``, once, and return the module.

    Raises: PluginError where there is no such file, or another module has the name; any exception
    that the file itself raises.
    """
    imported = sys.modules.get(name)
    if imported is not None:
        if os.path.abspath(getattr(imported, "__file__", None) or "") == path:
            return imported
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
