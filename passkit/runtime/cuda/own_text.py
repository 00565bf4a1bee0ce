"""Kernels whose text is no graph's: compiled and kept like that of any."""

from __future__ import annotations

from hashlib import sha256

from passkit.ast.stage import KernelAST
from passkit.plan.kernel import Kernel
from passkit.plan.target import target_of
from passkit.runtime.cuda.build import DeviceKernel, build
from passkit.runtime.cuda.device import Device


def built(device: Device, name: str, source: str) -> DeviceKernel:
    """The kernel of that name in a text of CUDA C, on a device. Raises: KernelRefusedError."""
    key = sha256(source.encode()).hexdigest()
    ast = KernelAST((), (), (), ())
    kernel = Kernel(name, key, ast, source, 1, 1, 0, (), (name,), dialect="cuda")
    return build([kernel], device, target_of("cuda"))[key]
