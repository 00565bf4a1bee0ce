"""Fixtures of the CUDA tests: the fake driver, and with ``-m cuda`` a device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from passkit.runtime.cuda import libraries
from tests.cuda import FAKE, LIBRARIES, machine_of
from tests.emulator.fake_driver import FakeDriver, fake_cuda

EACH = [FAKE, *(pytest.param(name, marks=pytest.mark.cuda) for name in LIBRARIES)]


@pytest.fixture(params=EACH)
def machine(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A driver that records its calls, on which target "cuda" runs."""
    with machine_of(request.param) as driver:
        yield driver


@pytest.fixture
def fake() -> Iterator[FakeDriver]:
    """The fake driver with both fake libraries."""
    with fake_cuda(absent=()) as driver:
        yield driver


@pytest.fixture(params=EACH)
def equipped(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The fake driver with both libraries, or a device with NVIDIA's own libraries."""
    if request.param == FAKE:
        yield request.getfixturevalue("fake")
        return
    with machine_of(request.param) as driver:
        for library in (libraries.CUBLASLT, libraries.CUDNN):
            try:
                libraries.load_library(library)
            except libraries.UnsupportedError as error:
                pytest.skip(str(error))
        yield driver
