"""OpenCL in tests: targets with work-groups of any size, on the device that pyopencl finds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from attrs import evolve

import passkit as pk
from passkit.dialects import dialect_of
from passkit.program.executable import Executable
from passkit.runtime.device.pool import DevicePool
from passkit.runtime.opencl.device import (
    BufferSource,
    OpenClDevice,
    device,
    fit_target,
    new_pool,
    pool_of,
)
from passkit.target import Target, target_of

BLOCKS = (1, 64, 256)
"""Sizes of work-groups: the one that suits a CPU, and two that need barriers."""


def require_pyopencl() -> Any:
    """Return pyopencl, or skip the file or test where the extra is not installed."""
    return pytest.importorskip("pyopencl", reason="the extra `opencl` is not installed")


def target_with_block(block: int, **changes: Any) -> Target:
    """Return the OpenCL target with a number of work-items in a group, whatever the device."""
    return evolve(target_of("opencl"), block=block, **changes)


def gpu_target(**changes: Any) -> Target:
    """Return the OpenCL target of a GPU, with which the device schedules loop nests as one."""
    limits = evolve(device().limits, is_cpu=False)
    return evolve(fit_target(target_of("opencl"), limits), **changes)


def opencl_device() -> OpenClDevice:
    """Return the device that target "opencl" runs on."""
    return device()


def device_pool() -> DevicePool:
    """Return the memory pool of the device that target "opencl" runs on."""
    return pool_of(device())


def buffer_source() -> BufferSource:
    """Return what allocates buffers on that device."""
    return BufferSource(device())


def new_device_pool(source: Any = None) -> DevicePool:
    """Return another, empty pool of that device, whose buffers ``source`` allocates."""
    return new_pool(device(), source)


@contextmanager
def changed_reduction(old: str, new: str) -> Iterator[None]:
    """Print ``new`` for ``old`` where a work-group is reduced, inside the `with` block.

    Kernels of graphs that were compiled before stay as they are: compile a graph of its own.
    """
    usual = dialect_of("opencl")
    assert old in usual.fold
    pk.register_dialect(evolve(usual, fold=usual.fold.replace(old, new)))
    try:
        yield
    finally:
        pk.register_dialect(usual)


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
