"""Whole graphs on the emulated machine: `pk.compile(graph, target="cuda")` as a device would."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from attrs import evolve, frozen

from passkit.graph.graph import Annotation, Graph
from passkit.passes import base
from passkit.passes.context import PassContext
from passkit.plan.kernel import RTC, Kernel
from passkit.plan.target import Target
from tests.emulator.driver import Driver


@frozen(eq=False)
class Entry:
    """A kernel as a step of a program: it fills ``outputs``, for values of the graph's sizes."""

    driver: Driver
    kernel: Kernel

    def __call__(
        self, sizes: Mapping[str, int], inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> None:
        """Launch it. Raises: EmulatedError."""
        self.driver.launch(self.kernel, sizes, inputs, outputs)


@contextmanager
def emulated(driver: Driver | None = None) -> Iterator[Driver]:
    """Inside, programs for target "cuda" run on the machine; kernels compile when first asked for.

    So kernels of many graphs compile together where a driver has prepared them.
    """
    made = driver or Driver()

    def rtcgen(graph: Graph, context: PassContext) -> Graph:
        assert context.target.dialect == "cuda"
        found = {n: RTC(k, Entry(made, k)) for n, k in graph.attrs["kernel"].items()}
        return graph.with_attrs(rtc=Annotation("rtc", found))

    usual = base.find_pass("RTCGen")
    base._passes["RTCGen"] = evolve(usual, body=rtcgen)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Target, "device", "")  # no device of CUDA's is asked for
            yield made
    finally:
        base._passes["RTCGen"] = usual
