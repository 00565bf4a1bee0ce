"""OpenCL as passkit asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from passkit.plan.kernel import Kernel
from passkit.plan.target import Target
from passkit.runtime.device.resident import nowhere
from passkit.runtime.device.runtimes import Runtime
from passkit.runtime.opencl.build import DeviceKernel, build
from passkit.runtime.opencl.device import device, settled
from passkit.runtime.opencl.relaxed import relaxed
from passkit.runtime.opencl.run import bound


def _built(kernels: Iterable[Kernel], target: Target) -> Mapping[str, DeviceKernel]:
    return build(kernels, device(), settled(target))


def _said(kernels: Sequence[Kernel]) -> dict[str, Any]:
    return {"device": str(device()), "relaxed": relaxed(kernels, device().limits)}


RUNTIME = Runtime(settled, _built, bound, _said, nowhere)
