"""The unit of convolutions: it is compiled beside what precedes the first convolution."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from passkit.errors import CompilerError
from passkit.runtime.native import convolution_unit
from passkit.runtime.native.build import KernelText, forget

TRIVIAL = (
    'extern "C" void convolve(void *const *buf, const long long *size, long long begin, '
    "long long end, unsigned char *scratch) {}"
)


@pytest.fixture
def empty(fresh_cache: Path) -> Iterator[None]:
    """An empty cache, in which no kernel is loaded or being compiled, before and after the test."""
    forget()
    convolution_unit.forget_pending()
    yield
    forget()
    convolution_unit.forget_pending()


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
    address = convolution_unit.entry()
    convolution_unit.prefetch()
    assert started == ["convolution.cpp"] and convolution_unit.entry() == address


def test_a_forked_process_compiles_for_itself(empty: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fork does not take what the compiler of its parent has written so far."""
    started = replace_text(monkeypatch, TRIVIAL)
    convolution_unit.prefetch()
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        convolution_unit.prefetch()
        os.write(writer, " ".join(started).encode())
        os._exit(0)
    os.close(writer)
    with open(reader) as names:
        assert names.read() == "convolution.cpp convolution.cpp"
    assert os.waitpid(child, 0)[1] == 0
    assert convolution_unit.entry() and started == ["convolution.cpp"]


def test_errors_wait_for_the_first_convolution(
    empty: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A unit that does not compile is an error where it is needed, not where it is started."""
    replace_text(monkeypatch, "no C++")
    convolution_unit.prefetch()
    with pytest.raises(CompilerError, match=r"failed to compile convolve, with status 1"):
        convolution_unit.entry()
