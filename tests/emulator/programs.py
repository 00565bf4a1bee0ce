"""Programs on the emulated device: `pk.compile(graph, target="cuda")` without the CUDA run time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from attrs import evolve, frozen

from passkit.graph.graph import Annotation, Graph
from passkit.graph.kernel import RTC, Kernel
from passkit.passes import base
from passkit.passes.context import PassContext
from passkit.target import Target
from tests.emulator.device import EmulatedDevice


@frozen(eq=False)
class EmulatedKernel:
    """A kernel as a step of a program, called with sizes, inputs and outputs."""

    driver: EmulatedDevice
    kernel: Kernel

    def __call__(
        self, sizes: Mapping[str, int], inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> None:
        """Launch the kernel. Raises: EmulatedError."""
        self.driver.launch(self.kernel, sizes, inputs, outputs)


@contextmanager
def emulated(driver: EmulatedDevice | None = None) -> Iterator[EmulatedDevice]:
    """Run programs for target "cuda" on an emulated device inside the `with` block.

    Kernels compile at their first launch, or together by `EmulatedDevice.prepare`.
    """
    device = driver or EmulatedDevice()

    def rtcgen(graph: Graph, context: PassContext) -> Graph:
        assert context.target.dialect == "cuda"
        rtc = {n: RTC(k, EmulatedKernel(device, k)) for n, k in graph.attrs["kernel"].items()}
        return graph.with_attrs(rtc=Annotation("rtc", rtc))

    usual = base.find_pass("RTCGen")
    base._passes["RTCGen"] = evolve(usual, body=rtcgen)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Target, "device", "")  # the CUDA run time is not used
            yield device
    finally:
        base._passes["RTCGen"] = usual
