"""OpenCL in tests: targets with work-groups of any size, on the device that pyopencl finds."""

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
"""Sizes of work-groups: the one that suits a CPU, and two that need barriers."""


def require_pyopencl() -> Any:
    """Return pyopencl, or skip the file or test where the extra is not installed."""
    return pytest.importorskip("pyopencl", reason="the extra `opencl` is not installed")


def target_with_block(block: int, **changes: Any) -> Target:
    """Return the OpenCL target with a number of work-items in a group, whatever the device."""
    return evolve(target_of("opencl"), block=block, **changes)


@contextmanager
def with_limits(**changes: Any) -> Iterator[OpenClDevice]:
    """Let the device report other limits inside the `with` block."""
    opened = device()
    limits = opened.limits
    object.__setattr__(opened, "limits", evolve(limits, **changes))
    try:
        yield opened
    finally:
        object.__setattr__(opened, "limits", limits)


def step_kinds(exe: Executable) -> list[str]:
    """Return the kinds of an executable's steps, without aliases and copies."""
    kinds = [type(step).__name__ for step in exe.steps]
    return [kind for kind in kinds if kind not in ("AliasStep", "CopyStep")]
