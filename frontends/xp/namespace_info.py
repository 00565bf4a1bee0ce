"""The contents of the namespace: versions of the standard, dtypes, devices and capabilities."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from passkit.errors import SettingError
from passkit.frontends.xp.devices import device_argument, device_names
from passkit.frontends.xp.dtypes import KINDS
from passkit.streams.settings import settings
from passkit.values.arguments import shown
from passkit.values.dtype import dtype_of

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
"""The versions of the standard that `__array_namespace__` accepts."""

STANDARD_DTYPES = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
    "complex64",
    "complex128",
)
"""The dtypes of the standard. float16 and bfloat16 exist besides them."""


class NamespaceInfo:
    """The contents of `passkit.xp`; an instance is `passkit.xp.__array_namespace_info__()`."""

    def capabilities(self) -> dict[str, Any]:
        """Return what arrays can do, by the standard's names of capabilities.

        >>> from passkit import xp
        >>> xp.__array_namespace_info__().capabilities()["boolean indexing"]
        True
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """Return the device that arrays are created on; ``xp.config(device=…)`` changes it."""
        return settings.device

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype[Any]]:
        """Return the dtypes that functions use if a caller names none, by the names of their kinds.

        Args:
            device: a device, or None; they are the same on all.

        Raises: SettingError if there is no such device; DeviceError or MissingDependencyError if a
        driver or package for the device is missing.
        """
        device_argument("default_dtypes", device, None)
        return {
            "real floating": np.dtype("float64"),
            "complex floating": np.dtype("complex128"),
            "integral": np.dtype("int64"),
            "indexing": np.dtype("int64"),
        }

    def devices(self) -> list[str]:
        """Return the names of the devices that arrays can be on, a new list with "cpu" first."""
        return device_names()

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, np.dtype[Any]]:
        """Return the dtypes of the standard, by name, in a new dict; float16 is not one of them.

        Args:
            device: a device, or None; they are the same on all.
            kind: a name of a kind as in `isdtype`, or a tuple of them, of which an empty one gives
                nothing; None for all.

        Raises: SettingError if there is no such device or kind; DeviceError or
        MissingDependencyError if a driver or package for the device is missing.

        >>> from passkit import xp
        >>> list(xp.__array_namespace_info__().dtypes(kind="real floating"))
        ['float32', 'float64']
        """
        device_argument("dtypes", device, None)
        letters = _letters(kind)
        return {name: np.dtype(name) for name in STANDARD_DTYPES if dtype_of(name).kind in letters}


def _letters(kind: Any) -> str:
    """Return the letters of `DType.kind` of a kind, or of a tuple of kinds; None is for all.

    Raises: SettingError if there is no such kind.
    """
    if kind is None:
        return "biufc"
    if isinstance(kind, tuple):
        return "".join([_letters(k) for k in kind])
    if not isinstance(kind, str) or kind not in KINDS:
        raise SettingError(f"dtypes: there is no kind {shown(kind)}; kinds: {', '.join(KINDS)}")
    return KINDS[kind]


def check_version(api_version: Any) -> None:
    """Check the version of the standard that a caller of `__array_namespace__` asks for.

    Raises: SettingError if it is not one of `VERSIONS`; None stands for the newest.
    """
    is_version = isinstance(api_version, str) and api_version in VERSIONS
    if api_version is not None and not is_version:
        raise SettingError(
            f"__array_namespace__ has no api_version {shown(api_version)}; versions: "
            f"{', '.join(VERSIONS)}"
        )


def __array_namespace_info__() -> NamespaceInfo:  # noqa: N807
    """Return what the namespace offers: capabilities, default dtypes, dtypes and devices."""
    return NamespaceInfo()


def namespace() -> Any:
    """Return the module `passkit.xp`."""
    return import_module("passkit.frontends.xp")
