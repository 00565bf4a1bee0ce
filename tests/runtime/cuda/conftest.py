"""The suite of the CUDA run time: on a fake driver, and with ``-m cuda`` on a device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cuda import FAKE, LIBRARIES, machine_of

EACH = [FAKE, *(pytest.param(name, marks=pytest.mark.cuda) for name in LIBRARIES)]


@pytest.fixture(params=EACH)
def machine(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A driver that notes its calls, on which target "cuda" runs."""
    with machine_of(request.param) as driver:
        yield driver
