"""Every operator of the library on a device, against NumPy.

Each operator takes one dtype and two trials by turns; ``--every-dtype`` takes all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import passkit as pk
from tests.cuda import LIBRARIES, machine_of
from tests.emulator.test_operators import chosen, drawn, lenient, run
from tests.ops.specimens import SPECIMENS
from tests.ops.test_values import NAMES

TOGETHER = 8
"""Operators of a test: few, as several processes share them."""


@pytest.fixture(params=LIBRARIES)
def machine(request: pytest.FixtureRequest) -> Iterator[Any]:
    """This machine's device, through each library."""
    with machine_of(request.param) as driver:
        yield driver


@pytest.mark.cuda
@pytest.mark.parametrize("first", range(0, len(NAMES), TOGETHER))
def test_operators(first: int, machine: Any, request: pytest.FixtureRequest) -> None:
    """A kernel of every operator equals NumPy at every size of its specimens."""
    every = bool(request.config.getoption("--every-dtype"))
    wrong = list[str]()
    for name in NAMES[first : first + TOGETHER]:
        for specimen in SPECIMENS.get(name, ()):
            for dtype in chosen(specimen, every):
                for trial in drawn(specimen, dtype, every):
                    exe = pk.compile(pk.Graph(specimen.build(trial, "x")), target="cuda")
                    wrong += run(exe, lenient(specimen, dtype), trial, dtype)

    assert not wrong, "\n".join(wrong[:10])
