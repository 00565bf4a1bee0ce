"""Device profiles: the numbers of this CPU that were measured, where the planner's model uses them.

``tuned/DEVICE.json`` beside the records. What is torn, foreign or stale is no profile.
"""

from __future__ import annotations

import json
import os
from functools import lru_cache
from hashlib import sha256
from itertools import pairwise
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

from passkit.library.device import device
from passkit.library.store import FOLDER, writing
from passkit.runtime.native.cache import cache_folder_name, put_file, read_private, trusted_folder

if TYPE_CHECKING:
    from passkit.plan.target import Target

FORMAT = 1
Points = tuple[tuple[int, float], ...]


class Profile(NamedTuple):
    """What was measured of a CPU.

    ``curve`` are bytes that one thread moves and bytes a second; ``launch`` the seconds that a
    kernel costs beside its work, ``meeting`` those that threads lose at its end; ``latency`` are
    bytes and the seconds of a read that depends on the one before, anywhere in so many.
    """

    curve: Points
    launch: float
    meeting: float
    latency: Points

    @property
    def levels(self) -> Points:
        """The caches, as the bytes that each has and the seconds of a read; memory last.

        >>> times = ((1024, 1e-9), (4096, 1.2e-9), (16384, 4e-9), (65536, 80e-9))
        >>> Profile((), 0.0, 0.0, times).levels
        ((4096, 1e-09), (16384, 4e-09), (65536, 8e-08))
        """
        found: list[tuple[int, float]] = []
        for nbytes, seconds in self.latency:
            if found and seconds <= STEP * found[-1][1]:
                found[-1] = nbytes, found[-1][1]
            else:
                found.append((nbytes, seconds))
        return tuple(found)


STEP = 1.8
"""How many times as long a read takes in the next cache, at least."""


def profile() -> Profile | None:
    """This CPU's profile; None where nobody has measured it.

    Raises: CacheError when others may write to the cache folder.
    """
    return _found()[0]


def digest() -> str:
    """What tells profiles apart; "" where there is none."""
    return _found()[1]


def _found() -> tuple[Profile | None, str]:
    folder = cache_folder_name()
    path = _path(folder)
    try:
        facts = os.stat(path)
    except OSError:
        return None, ""
    trusted_folder(folder)
    return _read(path, facts.st_ino, facts.st_size, facts.st_mtime_ns)


@lru_cache(maxsize=4)
def _read(path: str, *facts: int) -> tuple[Profile | None, str]:
    try:
        data = read_private(path, 1 << 16)
        found = json.loads(data)
        made = Profile(
            tuple((int(n), float(x)) for n, x in found["curve"]),
            float(found["launch"]),
            float(found["meeting"]),
            tuple((int(n), float(x)) for n, x in found["latency"]),
        )
        known = found["format"] == FORMAT and found["device"] == device()
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None, ""
    good = known and is_sound(made.curve) and is_sound(made.latency)
    if not good or not are_positive(made.launch, made.meeting):
        return None, ""
    return made, sha256(data).hexdigest()


def is_sound(points: Points) -> bool:
    """Whether there are any, with ever more bytes."""
    rising = all(a < b for (a, _), (b, _) in pairwise(points))
    return bool(points) and rising and all(are_positive(*p) for p in points)


def are_positive(*values: float) -> bool:
    """Whether all are numbers above 0."""
    return all(isfinite(v) and v > 0 for v in values)


def write(found: Profile) -> None:
    """Keep a profile; processes that start from now on plan by it.

    Raises: CacheError when the cache folder is not to be trusted, or cannot be written.
    """
    data = {"format": FORMAT, "device": device(), **found._asdict()}
    with writing() as folder:
        put_file(_path(folder), json.dumps(data, indent=1).encode())


def calibrated(target: Target) -> Target:
    """The target with the numbers that were measured, if it is this CPU."""
    found = profile() if target.name == "cpu" else None
    if found is None or target.curve:
        return target
    return _with(target, found)


@lru_cache(maxsize=16)
def _with(target: Target, found: Profile) -> Target:
    from attrs import evolve  # a warm start has no targets

    return evolve(target, curve=found.curve, launch=found.launch, meeting=found.meeting)


def _path(folder: str) -> str:
    return os.path.join(folder, FOLDER, f"{device()}.json")
