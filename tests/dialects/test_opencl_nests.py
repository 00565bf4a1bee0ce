"""Loop nests in OpenCL C: the text of a kernel, and what the language does not have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve

from passkit.dialects import dialect_of
from passkit.dialects.c_printer import print_ir
from passkit.dialects.pack_printer import print_pack
from passkit.errors import CodeGenError
from passkit.target import target_of
from tests.dialects.test_printer import GOLDEN
from tests.nest_kernels import program
from tests.packs import program as pack_program
from tests.planned import plan

GPU = evolve(target_of("opencl"), nests=True)
SOFTMAX = "x: f32[n, 64]; return softmax(x)"
GELU = "x: f32[4096]; b: f32[1]; return gelu(add(x, b))"


@pytest.mark.parametrize(("name", "text"), [("softmax", SOFTMAX), ("gelu", GELU)])
def test_golden(name: str, text: str, golden: Callable[[Path, str], None]) -> None:
    """A work-group has the threads of the schedule, vectors, and barriers that all come to."""
    (kernel,) = plan(text, target=GPU).attrs["kernel"].values()

    golden(GOLDEN / "whole" / f"{name}_nest.cl", kernel.source.replace(kernel.name, name))


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("softmax3x1000", "shuffles"),
        ("softmax7x40", "barriers of a warp"),
        ("joined_sum", "counters"),
    ],
)
def test_what_the_language_lacks_is_refused(name: str, missing: str) -> None:
    """Kernels of warps, and of blocks that count themselves, are no OpenCL C."""
    with pytest.raises(CodeGenError, match=f"dialect opencl has no {missing} in loop IR"):
        print_ir(program(name).ir, "kernel", dialect_of("opencl"))


def test_a_dialect_without_loop_ir_is_refused() -> None:
    """A language without templates of loop IR has no kernels of it, and no packs."""
    for call in (
        lambda: print_ir(program("max7x64").ir, "kernel", dialect_of("cxx")),
        lambda: print_pack(pack_program("two parts").ir, "kernel", dialect_of("cxx")),
    ):
        with pytest.raises(CodeGenError, match="dialect cxx has no templates of loop IR"):
            call()
