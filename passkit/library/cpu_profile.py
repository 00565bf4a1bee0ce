"""The profile of this CPU: measured figures that the planner's cost model uses.

It is the file ``tuned/DEVICE.json``, beside the records of the performance library. A file that is
damaged, of another device or of another format is ignored.
"""

from __future__ import annotations

import json
import os
import sys
from functools import lru_cache
from hashlib import sha256
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from passkit.library.device import device_key
from passkit.library.store import FOLDER, lock_folder
from passkit.runtime.native.cache import cache_folder_name, put_file, read_private, trusted_folder

if TYPE_CHECKING:
    from passkit.target import Target

FORMAT = 1
CurvePoints = tuple[tuple[int, float], ...]
"""Pairs of bytes and a figure for so many bytes, by increasing bytes."""
NEXT_LEVEL_FACTOR = 1.8
"""The least ratio between the seconds of a read in one cache and in the cache before it."""


class CpuProfile(NamedTuple):
    """Measurements of a CPU.

    Attributes:
        curve: Pairs of the bytes that one thread moves, and bytes per second.
        launch: The seconds that a kernel costs besides its work.
        meeting: The seconds that threads lose at the barrier that ends a kernel.
        latency: Pairs of the bytes of a working set, and the seconds of a read in it whose address
            depends on the read before.
    """

    curve: CurvePoints
    launch: float
    meeting: float
    latency: CurvePoints

    @property
    def levels(self) -> CurvePoints:
        """The levels of the memory hierarchy: bytes of each cache and seconds of a read.

        Memory comes last.

        >>> times = ((1024, 1e-9), (4096, 1.2e-9), (16384, 4e-9), (65536, 80e-9))
        >>> CpuProfile((), 0.0, 0.0, times).levels
        ((4096, 1e-09), (16384, 4e-09), (65536, 8e-08))
        """
        levels: list[tuple[int, float]] = []
        for nbytes, seconds in self.latency:
            if levels and seconds <= NEXT_LEVEL_FACTOR * levels[-1][1]:
                levels[-1] = nbytes, levels[-1][1]
            else:
                levels.append((nbytes, seconds))
        return tuple(levels)


def read_cpu_profile() -> CpuProfile | None:
    """Return this CPU's profile; None if there is no file of it, or an invalid one.

    Raises: CacheError if there is a file and other users may write to the cache folder.
    """
    return _current()[0]


def cpu_profile_digest() -> str:
    """Return a digest of the file of this CPU's profile, "" if there is none or it is invalid.

    Raises: CacheError if there is a file and other users may write to the cache folder.
    """
    return _current()[1]


def _current() -> tuple[CpuProfile | None, str]:
    """Return the profile on disk and its digest; an unchanged file is not read again.

    Returns: None and "" if there is no valid one. Raises: CacheError if there is a file and other
    users may write to the cache folder.
    """
    folder = cache_folder_name()
    path = _path(folder)
    try:
        facts = os.stat(path)
    except OSError:
        return None, ""
    trusted_folder(folder)
    return _read(path, facts.st_ino, facts.st_size, facts.st_mtime_ns)


@lru_cache(maxsize=4)
def _read(path: str, *facts: int) -> tuple[CpuProfile | None, str]:
    """Return the profile in a file and its digest.

    ``facts`` identify the file's contents, for the cache of this function.

    Returns: None and "" if the file has no valid profile.
    """
    try:
        data = read_private(path, 1 << 16)
        fields = json.loads(data)
        profile = CpuProfile(
            tuple((int(nbytes), float(rate)) for nbytes, rate in fields["curve"]),
            float(fields["launch"]),
            float(fields["meeting"]),
            tuple((int(nbytes), float(seconds)) for nbytes, seconds in fields["latency"]),
        )
        is_current = fields["format"] == FORMAT and fields["device"] == device_key()
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None, ""
    curves_are_valid = is_valid_curve(profile.curve) and is_valid_curve(profile.latency)
    if not is_current or not curves_are_valid or not are_positive(profile.launch, profile.meeting):
        return None, ""
    return profile, sha256(data).hexdigest()


def is_valid_curve(points: CurvePoints) -> bool:
    """Return whether a curve has points, with positive figures and strictly increasing bytes."""
    increases = all(a < b for (a, _), (b, _) in pairwise(points))
    return bool(points) and increases and all(are_positive(*p) for p in points)


def are_positive(*values: float) -> bool:
    """Return whether all values are above 0, finite, and no ints too large for a float.

    True without values.
    """
    return all(0 < v <= sys.float_info.max for v in values)


def write_cpu_profile(profile: CpuProfile) -> None:
    """Write this CPU's profile; processes that start from now on plan with it.

    Raises: CacheError if other users may write to the cache folder, or it cannot be written.
    """
    data = {"format": FORMAT, "device": device_key(), **profile._asdict()}
    with lock_folder() as folder:
        put_file(_path(folder), json.dumps(data, indent=1).encode())


def calibrated(target: Target) -> Target:
    """Return a copy of the target with the figures of this CPU's profile, except ``latency``.

    Targets other than "cpu", one that has a curve of its own, and every target if there is no
    profile are returned as they are.

    Raises: CacheError if other users may write to the cache folder.
    """
    profile = read_cpu_profile() if target.name == "cpu" else None
    if profile is None or target.curve:
        return target
    return _with_profile(target, profile)


@lru_cache(maxsize=16)
def _with_profile(target: Target, profile: CpuProfile) -> Target:
    """Return a copy of ``target`` with a profile's curve, launch and meeting times."""
    from attrs import evolve  # a warm start has no targets

    return evolve(target, curve=profile.curve, launch=profile.launch, meeting=profile.meeting)


def _path(folder: str) -> str:
    """Return the path of this machine's profile in a cache folder, `FOLDER`/DEVICE.json."""
    return os.path.join(folder, FOLDER, f"{device_key()}.json")
