"""CUDA as passkit asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from passkit.plan.kernel import Kernel
from passkit.plan.target import Target
from passkit.runtime.cuda.array import new_array
from passkit.runtime.cuda.build import DeviceKernel, build
from passkit.runtime.cuda.device import device, settled
from passkit.runtime.cuda.resident import resident_of
from passkit.runtime.cuda.run import bound
from passkit.runtime.device.runtimes import Runtime


def _built(kernels: Iterable[Kernel], target: Target) -> Mapping[str, DeviceKernel]:
    return build(kernels, device(), settled(target))


def _said(kernels: Sequence[Kernel]) -> dict[str, Any]:
    return {"device": str(device()), "relaxed": ()}


RUNTIME = Runtime(settled, _built, bound, _said, resident_of, new_array)
