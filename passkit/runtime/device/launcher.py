"""The base classes of arrays, memory and programs of devices: those in C, or else those in Python.

The extension is compiled when a device is used for the first time on a machine, and kept in the
kernel cache. The environment variable PASSKIT_DEVICE_LAUNCHER=python chooses Python.
"""

from __future__ import annotations

import os
from types import ModuleType
from typing import TYPE_CHECKING, Any

from passkit.errors import CompilerError, SettingError
from passkit.runtime.device import plain_launcher
from passkit.runtime.native.extension import Extension

EXTENSION = Extension(
    "_passkit_device_launcher",
    os.path.dirname(os.path.abspath(__file__)),
    ("launcher.c",),
    ("-x", "c", "-std=gnu11", "-shared", "-fPIC", "-fvisibility=hidden", "-O2"),
    "the launcher of devices",
)


def implementation() -> ModuleType:
    """Return the module in C, compiled if need be, or else `plain_launcher`, the one in Python.

    The latter is returned if PASSKIT_DEVICE_LAUNCHER is "python", or if C cannot be compiled.

    Raises: SettingError if PASSKIT_DEVICE_LAUNCHER has another value than "c" and "python".
    """
    choice = os.environ.get("PASSKIT_DEVICE_LAUNCHER", "c")
    if choice not in ("c", "python"):
        raise SettingError(f"PASSKIT_DEVICE_LAUNCHER must be 'c' or 'python', got {choice!r}")
    if choice == "c":
        try:
            return EXTENSION.module()
        except CompilerError:
            pass  # calls take longer then
    return plain_launcher


if TYPE_CHECKING:
    from passkit.runtime.device.plain_launcher import (
        ChangesBase,
        DeviceArrayBase,
        LauncherBase,
        Pool,
    )

    class DriverCalls:
        """The functions of a driver by their addresses; only the launcher in C has them."""

        def __init__(self, *_: Any) -> None: ...

        def finish(self) -> int:
            """Wait until all enqueued work is done; return the driver's status."""
            ...

        def read(self, array: DeviceArrayBase, target: Any) -> int:
            """Copy an array to a NumPy array, and wait; return the driver's status."""
            ...

    class Record:
        """A program bound to shapes; only the launcher in C has them."""

        expected: int
        owner: Any

        def __init__(self, *_: Any) -> None: ...

    class Runner:
        """A function of streams; only the launcher in C has them."""

        def __init__(self, *_: Any) -> None: ...

        def __call__(self, *arguments: Any) -> list[Any]:
            """Run on arrays."""
            ...

else:
    _module = implementation()
    DeviceArrayBase = _module.DeviceArrayBase
    ChangesBase = _module.ChangesBase
    LauncherBase = _module.LauncherBase
    Pool = _module.Pool
    DriverCalls, Record, Runner = (
        getattr(_module, name, None) for name in ("DriverCalls", "Record", "Runner")
    )

IS_NATIVE = not TYPE_CHECKING and _module is not plain_launcher
"""Whether calls are repeated in C."""
__all__ = [
    "IS_NATIVE",
    "ChangesBase",
    "DeviceArrayBase",
    "DriverCalls",
    "LauncherBase",
    "Pool",
    "Record",
    "Runner",
]
