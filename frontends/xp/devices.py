"""Devices: their names, and checks of the arguments ``device``."""

from __future__ import annotations

from typing import Any

from passkit.errors import SettingError
from passkit.values.arguments import shown

DEVICES = ("cpu",)
"""The devices that arrays can be on."""


def check_device(where: str, device: Any) -> None:
    """Check an argument ``device``: None, or the name of a device.

    Args:
        where: the function, for the message.
        device: the argument.

    Raises: SettingError if it is neither None nor one of `DEVICES`, of whatever type.
    """
    if device is not None and device not in DEVICES:
        raise SettingError(
            f"{where}: there is no device {shown(device)}; devices: {', '.join(DEVICES)}"
        )
