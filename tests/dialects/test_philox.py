"""The Philox generator in plain C, shared by OpenCL and CUDA, gives the published numbers."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

import passkit as pk
from passkit.dialects.philox import PHILOX
from tests.dialects.plain_c import compiled
from tests.ops.test_random import ANSWERS, pairs
from tests.planned import plan


def test_known_answers(tmp_path: Path) -> None:
    """Philox4x32-10 gives the numbers of its authors."""
    text = PHILOX.format(fn="", word="uint64_t", long="int64_t")
    library = compiled(text, tmp_path)
    for function in (library.philox_low, library.philox_high):
        function.restype = ctypes.c_int64
        function.argtypes = [ctypes.c_int64] * 3
    for counter, key, block in ANSWERS:
        given = (*pairs(counter), *pairs(key))
        assert [library.philox_low(*given), library.philox_high(*given)] == pairs(block)


@pytest.mark.parametrize("target, word", [("opencl", "ulong"), ("cuda", "uint64_t")])
def test_dialects_have_it(target: str, word: str) -> None:
    """A draw prints as a call of the function that the dialect's preamble defines."""
    draw = pk.ops.random_normal(pk.var("key", (), "int64"), (4, 6))
    (kernel,) = plan(pk.Graph([draw]), target=target).attrs["kernel"].values()

    assert "philox_low(" in kernel.source and "philox_high(" in kernel.source
    assert f"{word} philox_half({word} n" in pk.dialects.dialect_of(kernel.dialect).preamble
