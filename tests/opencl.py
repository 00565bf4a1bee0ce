"""OpenCL in tests: kernels for work-groups of any size, on the device that pyopencl finds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from attrs import evolve

from passkit.plan.target import Target, target_of
from passkit.program.executable import Executable
from passkit.runtime.opencl.device import OpenClDevice, device

BLOCKS = (1, 64, 256)
"""The sizes of work-groups: what a CPU likes, and what makes barriers and folds work."""


def needed() -> Any:
    """pyopencl; a file that asks for it is skipped where the extra is not installed."""
    return pytest.importorskip("pyopencl", reason="the extra `opencl` is not installed")


def groups_of(block: int, **changes: Any) -> Target:
    """The OpenCL target with so many work-items in a group, which no device changes."""
    return evolve(target_of("opencl"), block=block, **changes)


@contextmanager
def limited(**changes: Any) -> Iterator[OpenClDevice]:
    """The device as if it could do less."""
    own, limits = device(), device().limits
    object.__setattr__(own, "limits", evolve(limits, **changes))
    try:
        yield own
    finally:
        object.__setattr__(own, "limits", limits)


def steps_of(exe: Executable) -> list[str]:
    """The kinds of steps that an executable runs, but for what costs nothing."""
    found = [type(s).__name__ for s in exe.steps]
    return [name for name in found if name not in ("Alias", "Copy")]
