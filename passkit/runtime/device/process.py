"""Devices and processes: a fork has its parent's handles, which no driver knows there."""

from __future__ import annotations

import os
from typing import Any

from passkit.errors import DeviceError


def check_process(device: Any) -> None:
    """Nothing, where this process has opened the device. Raises: DeviceError in a fork of it."""
    if device.process != os.getpid():
        raise DeviceError(
            f"{device} was opened by process {device.process}, and process {os.getpid()} is a fork "
            "of that, in which drivers do not work; start processes by the method 'spawn'"
        )
