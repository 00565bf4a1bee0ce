"""The run times of devices: what planning, building and running ask of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from passkit.plan.kernel import Kernel
from passkit.plan.target import Target
from passkit.runtime.device.resident import Finder, Maker
from passkit.runtime.device.run import BoundProgram
from passkit.runtime.program import Program
from passkit.runtime.state import State


class Runtime(NamedTuple):
    """A device's run time.

    ``settled`` is a target as the device wants it, ``build`` gives what runs each kernel by its
    key, ``bound`` a program for some sizes, ``said`` what `Executable.stats` has of kernels;
    ``find`` finds arrays of other libraries that are on the device, ``make``, if given, makes one
    there.
    """

    settled: Callable[[Target], Target]
    build: Callable[[Iterable[Kernel], Target], Mapping[str, Any]]
    bound: Callable[[Program, Mapping[str, int], State], BoundProgram]
    said: Callable[[Sequence[Kernel]], dict[str, Any]]
    find: Finder
    make: Maker | None = None


def runtime_of(target: Target) -> Runtime:
    """The run time of a target whose `Target.device` is not empty; few programs need one."""
    if target.device == "cuda":
        from passkit.runtime.cuda.entry import RUNTIME as CUDA

        return CUDA
    from passkit.runtime.opencl.entry import RUNTIME as OPENCL

    return OPENCL
