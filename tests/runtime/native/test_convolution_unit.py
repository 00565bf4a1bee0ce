"""The units of convolutions: they are compiled beside what precedes the first convolution."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.ast.folds import Convolution
from passkit.errors import CompilerError
from passkit.runtime import assemble
from passkit.runtime.native import convolution, convolution_unit
from passkit.runtime.native.build import forget
from passkit.runtime.native.convolution import possible_units
from passkit.runtime.native.convolution_unit import ConvolutionUnit
from passkit.runtime.native.units import KernelText

UNIT = ConvolutionUnit.DEPTHWISE
TRIVIAL = (
    'extern "C" void convolve_depthwise(void *const *buf, const long long *size, long long begin, '
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
        return start([KernelText("unit", UNIT.symbol, source)], compiler, flags, path)

    monkeypatch.setattr(convolution_unit, "start_unit", replaced)
    return started


def test_the_unit_is_compiled_ahead(empty: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """`prefetch` starts one compiler, for which `entry` waits in place of a second one."""
    started = replace_text(monkeypatch, TRIVIAL)
    convolution_unit.prefetch([UNIT])
    convolution_unit.prefetch([UNIT])
    address = convolution_unit.entry(UNIT)
    convolution_unit.prefetch([UNIT])
    assert started == ["convolve_depthwise.cpp"] and convolution_unit.entry(UNIT) == address


def test_a_forked_process_compiles_for_itself(empty: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fork does not take what the compiler of its parent has written so far."""
    started = replace_text(monkeypatch, TRIVIAL)
    convolution_unit.prefetch([UNIT])
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        convolution_unit.prefetch([UNIT])
        os.write(writer, " ".join(started).encode())
        os._exit(0)
    os.close(writer)
    with open(reader) as names:
        assert names.read() == "convolve_depthwise.cpp convolve_depthwise.cpp"
    assert os.waitpid(child, 0)[1] == 0
    assert convolution_unit.entry(UNIT) and started == ["convolve_depthwise.cpp"]


def test_errors_wait_for_the_first_convolution(
    empty: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A unit that does not compile is an error where it is needed, not where it is started."""
    replace_text(monkeypatch, "no C++")
    convolution_unit.prefetch([UNIT])
    with pytest.raises(CompilerError, match=r"failed to compile convolve_depthwise, with status 1"):
        convolution_unit.entry(UNIT)


@pytest.mark.parametrize("unit", list(ConvolutionUnit))
def test_a_unit_is_complete(unit: ConvolutionUnit, tmp_path: Path) -> None:
    """Each unit has what it needs, and nothing else that it would compile in vain."""
    text = convolution_unit.unit_kernel(unit).source
    own = {f'"C" void {u.symbol}(' in text for u in ConvolutionUnit if u is not unit}
    assert f'"C" void {unit.symbol}(' in text and own == {False}
    assert convolution_unit.entry(unit)


HEIGHT = pk.Size.symbol("h")
SMALL = (1, (4, 4, 4), 2, 3, (2, 2, 2), (3, 3, 3), (1,) * 3, (0,) * 3, (1,) * 3, 1)
IMAGES = (1, (1, 56, 56), 64, 128, (1, 3, 3), (1, 56, 56), (1,) * 3, (0, 1, 1), (1,) * 3, 1)


@pytest.mark.parametrize(
    ("geometry", "units"),
    [
        (SMALL, {ConvolutionUnit.SMALL_IMAGES}),
        (IMAGES, {ConvolutionUnit.DIRECT}),
        ((*IMAGES[:3], 64, *IMAGES[4:9], 64), {ConvolutionUnit.DEPTHWISE}),
        ((pk.Size.symbol("n"), *IMAGES[1:]), {ConvolutionUnit.DIRECT}),
        (
            (
                1,
                (1, pk.Size.symbol("h"), 56),
                64,
                16,
                (1, 3, 3),
                (1, pk.Size.symbol("h"), 56),
                *IMAGES[6:],
            ),
            {ConvolutionUnit.DIRECT, ConvolutionUnit.SMALL_IMAGES},
        ),
    ],
)
def test_only_units_that_a_convolution_may_need_are_compiled(
    geometry: tuple[Any, ...], units: set[ConvolutionUnit]
) -> None:
    """Without oneDNN the shape selects one unit; symbolic sizes, all that they may select."""
    units = units | {ConvolutionUnit.LIBRARIES}
    assert possible_units(Convolution(*geometry), 4, has_onednn=False) == units


def test_a_unit_that_was_not_expected_is_compiled_when_it_is_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A plan may be bound where oneDNN, which it expects, has no primitive for the shape."""
    libraries = {ConvolutionUnit.LIBRARIES}
    monkeypatch.setattr(assemble, "possible_units", lambda *_: libraries)
    monkeypatch.setattr(convolution, "convolution_primitives", lambda _: None)
    rng = np.random.default_rng(0)
    x = rng.random((1, 20, 20, 64), np.float32)
    filters = rng.random((3, 3, 64, 32), np.float32)
    result = pk.compile(
        pk.Graph([pk.ops.conv2d(pk.var("x", x.shape), pk.var("filters", filters.shape))])
    )(x=x, filters=filters)[0]
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), (3, 3), axis=(1, 2))
    np.testing.assert_allclose(result, np.einsum("bhwcij,ijcf->bhwf", windows, filters), rtol=1e-5)
