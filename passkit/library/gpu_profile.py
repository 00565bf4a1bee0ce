"""Profiles of GPUs: measured bandwidth by size, and the cost of a launch, for each device.

A profile is the file ``tuned/cuda-DEVICE.json`` in the cache folder. Files that are damaged, of
another device or of another format are ignored.
"""

from __future__ import annotations

import json
import os
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from passkit.library.cpu_profile import CurvePoints, are_positive, is_valid_curve
from passkit.library.store import FOLDER, lock_folder
from passkit.runtime.native.cache import cache_folder_name, put_file, read_private, trusted_folder

FORMAT = 1


class GpuProfile(NamedTuple):
    """Measurements of a GPU.

    ``curve`` has pairs of the bytes that a copy reads and writes, and bytes per second; ``launch``
    is the seconds of a kernel launch.
    """

    curve: CurvePoints
    launch: float


def read_gpu_profile(device: str) -> GpuProfile | None:
    """Return the measurements of a device, None if there are none or the file is not valid.

    Args:
        device: The name and version of the device, as its driver reports them.

    Raises: CacheError if there is a file and other users may write to the cache folder.
    """
    folder = cache_folder_name()
    path = _path(folder, device)
    if not path.exists():
        return None
    trusted_folder(folder)
    try:
        data = json.loads(read_private(path, 1 << 16))
        curve = tuple((int(nbytes), float(rate)) for nbytes, rate in data["curve"])
        profile = GpuProfile(curve, float(data["launch"]))
        is_current = data["format"] == FORMAT and data["device"] == device
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    is_valid = is_current and is_valid_curve(profile.curve) and are_positive(profile.launch)
    return profile if is_valid else None


def write_gpu_profile(device: str, profile: GpuProfile) -> None:
    """Write ``profile``, the measurements of ``device``; later processes plan with them.

    ``device`` is the name and version as its driver reports them.

    Raises: CacheError if other users may write to the cache folder, or it cannot be written.
    """
    data = {"format": FORMAT, "device": device, **profile._asdict()}
    with lock_folder() as folder:
        put_file(os.fspath(_path(folder, device)), json.dumps(data, indent=1).encode())


def _path(folder: str, device: str) -> Path:
    """Return the path of a device's profile in a cache folder, `FOLDER`/cuda-DIGEST.json."""
    digest = sha256(device.encode()).hexdigest()[:16]
    return Path(folder) / FOLDER / f"cuda-{digest}.json"
