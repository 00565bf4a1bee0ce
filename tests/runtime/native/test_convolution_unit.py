"""The unit of convolutions: it is compiled beside what precedes the first convolution."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from passkit.errors import CompilerError
from passkit.runtime.native import convolution_unit
from passkit.runtime.native.build import KernelText, forget, stats

TRIVIAL = (
    'extern "C" void convolve(void *const *buf, const long long *size, long long begin, '
    "long long end, unsigned char *scratch) {}"
)


@pytest.fixture
def empty(fresh_cache: Path) -> Iterator[None]:
    """An empty cache, in which no kernel is loaded; those of the test are forgotten after it."""
    forget()
    yield
    forget()


def replace_text(monkeypatch: pytest.MonkeyPatch, source: str) -> list[str]:
    """Compile another text in place of the unit's; return the files that are written for it."""
    started: list[str] = []
    start = convolution_unit.start_unit

    def replaced(unit: Any, compiler: Any, flags: Any, path: Path) -> Any:
        started.append(path.name)
        return start([KernelText("unit", "convolve", source)], compiler, flags, path)

    monkeypatch.setattr(convolution_unit, "start_unit", replaced)
    return started


def test_the_unit_is_compiled_ahead(empty: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """`prefetch` starts one compiler, for which `entry` waits in place of a second one."""
    started = replace_text(monkeypatch, TRIVIAL)
    convolution_unit.prefetch()
    convolution_unit.prefetch()
    before = stats.compiled
    address = convolution_unit.entry()
    assert address and stats.compiled == before + 1
    convolution_unit.prefetch()
    assert started == ["convolution.cpp"] and convolution_unit.entry() == address


def test_errors_wait_for_the_first_convolution(
    empty: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A unit that does not compile is an error where it is needed, not where it is started."""
    replace_text(monkeypatch, "no C++")
    convolution_unit.prefetch()
    with pytest.raises(CompilerError, match=r"failed to compile convolve, with status 1"):
        convolution_unit.entry()
