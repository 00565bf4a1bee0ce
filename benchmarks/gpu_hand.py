"""Kernels written by hand on a CUDA device: what gpu.py measures beside passkit's.

They are launched by the driver alone, with one call for each step, so their calls cost less on the
host than those of any library.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import adam
import numpy as np
from hand.gpu_kernels import HandLaunch, adam_launch, adam_packed_launch, tensor_tables

from passkit.runtime.cuda import compiler
from passkit.runtime.cuda.device import CudaDevice
from passkit.runtime.cuda.driver import LaunchParams

ROUNDS = 20
ToDevice = Callable[[CudaDevice, np.ndarray], Any]


class LoadedHandKernel:
    """A kernel written by hand, loaded on a device.

    Raises:
        NvrtcError: NVRTC does not compile it.
        DriverError: the driver refuses it.
    """

    def __init__(self, launch: HandLaunch, own: CudaDevice) -> None:
        self.launch, self.own = launch, own
        rtc = compiler.nvrtc()
        facts = own.properties
        architecture = compiler.architecture_for(facts.capability, rtc, facts.name)
        options = (f"--gpu-architecture={architecture}", *compiler.OPTIONS)
        image = rtc.compile(launch.text, options)
        with own.active("loading a kernel written by hand"):
            self.function = own.driver.load(image.code, launch.name)

    def params(self, addresses: Sequence[int]) -> LaunchParams:
        """Return the parameters of a launch with arrays at some addresses."""
        launch = self.launch
        arguments = (*addresses, *launch.numbers)
        return LaunchParams(self.function, launch.grid, (launch.threads, 1), 0, arguments)

    def enqueue(self, addresses: Sequence[int]) -> None:
        """Enqueue a launch in the device's stream. Raises: DriverError."""
        with self.own.driver.current():
            self.own.driver.launch(self.params(addresses), self.own.queue.stream)

    def seconds(self, addresses: Sequence[int]) -> float:
        """Return the least time of some launches, in seconds by the device's events."""
        queue = self.own.measuring_queue()
        with self.own.active("timing a kernel written by hand"):
            launch = partial(self.own.driver.launch, self.params(addresses))
            done = [queue.enqueue(launch) for _ in range(ROUNDS)]
            queue.finish()
            return float(min(queue.seconds(event) for event in done[1:]))


def device_figures(
    kernel: LoadedHandKernel, addresses: Sequence[int], nbytes: int, speed: float
) -> dict[str, Any]:
    """Return the device time of a kernel, and its share of a copy's bandwidth.

    Args:
        kernel: the kernel.
        addresses: those of its arrays.
        nbytes: the bytes that a launch has to move.
        speed: the bytes a second of a copy.
    """
    seconds = kernel.seconds(addresses)
    return {"device": seconds, "kernels": 1, "of copy": nbytes / seconds / speed}


class HandAdam:
    """A step of Adam in place by one launch, as `adam.AdamImplementation`.

    Args:
        sizes: the number of elements of each parameter.
        own: the device.
        to_device: copies a NumPy array to the device.
    """

    def __init__(self, sizes: Sequence[int], own: CudaDevice, to_device: ToDevice) -> None:
        self.own, self.to_device = own, to_device
        states = zip(*adam.begin(sizes), strict=True)
        self.states = [[to_device(own, x) for x in (m, v, p)] for p, m, v in states]
        self.held: list[Any] = []  # launches have the addresses of these arrays alone
        self.is_packed = len(sizes) > 1
        launch = adam_packed_launch(sizes) if self.is_packed else adam_launch(sizes[0])
        self.kernel = LoadedHandKernel(launch, own)

    def prepare(self, gradients: Sequence[np.ndarray]) -> list[int]:
        """Return the addresses of a launch with these gradients, which are copied to the device."""
        on_device = [self.to_device(self.own, g) for g in gradients]
        self.held += on_device
        if not self.is_packed:
            return [x.buffer.address for x in (*on_device, *self.states[0])]
        rows = [[*state, g] for state, g in zip(self.states, on_device, strict=True)]
        addresses = [[x.buffer.address for x in row] for row in rows]
        sizes = [g.size for g in gradients]
        tables = [self.to_device(self.own, t) for t in tensor_tables(addresses, sizes)]
        self.held += tables
        return [t.buffer.address for t in tables]

    def step(self, addresses: Sequence[int]) -> None:
        """Enqueue a step. Raises: DriverError."""
        self.kernel.enqueue(addresses)

    def parameters(self) -> list[np.ndarray]:
        """Return the parameters as NumPy arrays."""
        return [p.numpy() for _, _, p in self.states]
