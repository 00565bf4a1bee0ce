"""What was measured of GPUs: bandwidth by bytes, and the cost of a launch, for each device.

``tuned/cuda-DEVICE.json`` in the cache folder. What is torn, foreign or stale is no measurement.
"""

from __future__ import annotations

import json
import os
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from passkit.library.profile import Points, are_positive, is_sound
from passkit.library.store import FOLDER, writing
from passkit.runtime.native.cache import cache_folder_name, put_file, read_private, trusted_folder

FORMAT = 1


class Measured(NamedTuple):
    """Bytes that a copy reads and writes with bytes a second, and the seconds of a launch."""

    curve: Points
    launch: float


def measured(device: str) -> Measured | None:
    """What was measured of a device, by what its driver calls it and its own version.

    Raises: CacheError when others may write to the cache folder.
    """
    folder = cache_folder_name()
    path = _path(folder, device)
    if not path.exists():
        return None
    trusted_folder(folder)
    try:
        found = json.loads(read_private(path, 1 << 16))
        curve = tuple((int(n), float(x)) for n, x in found["curve"])
        made = Measured(curve, float(found["launch"]))
        known = found["format"] == FORMAT and found["device"] == device
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    return made if known and is_sound(made.curve) and are_positive(made.launch) else None


def write(device: str, found: Measured) -> None:
    """Keep what was measured; processes that start from now on plan by it.

    Raises: CacheError when the cache folder is not to be trusted, or cannot be written.
    """
    data = {"format": FORMAT, "device": device, **found._asdict()}
    with writing() as folder:
        put_file(os.fspath(_path(folder, device)), json.dumps(data, indent=1).encode())


def _path(folder: str, device: str) -> Path:
    digest = sha256(device.encode()).hexdigest()[:16]
    return Path(folder) / FOLDER / f"cuda-{digest}.json"
