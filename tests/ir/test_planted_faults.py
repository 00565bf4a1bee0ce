"""Faults that are planted into kernels of loop IR are found, by the checks that are named here."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from attrs import evolve, frozen

import passkit as pk
from passkit.checks.ir_races import check_races
from passkit.dialects import dialect_of
from passkit.dialects.c_printer import print_ir
from passkit.errors import CodeGenError
from passkit.graph.kernel import Kernel
from passkit.ir.loop import KernelIR
from passkit.ir.text import parse_kernel_ir
from passkit.ir.verify import IRForm, verify
from passkit.values.size import evaluate
from tests.emulator.device import EmulatedDevice, EmulatedError, LaunchOptions
from tests.kernel_interpreter import KernelFault, run_kernel
from tests.nest_kernels import feeds_of, program

SIZES = {"n": 5, "m": 37}


@frozen
class Fault:
    """A change of a kernel's text, and which checks find it.

    Attributes:
        program: the name of a program of `tests.nest_kernels`.
        old: the text that is replaced.
        new: what takes its place.
        found_by: the names of the checks: verify, races, interpreter, emulator.
        at: which occurrence of the text is replaced.
    """

    program: str
    old: str
    new: str
    found_by: str
    at: int = 0

    @property
    def ir(self) -> KernelIR:
        """Return the kernel with the fault."""
        pieces = str(program(self.program).ir).split(self.old)
        assert len(pieces) > self.at + 1, f"{self.program} has no {self.old!r}"
        front, behind = self.old.join(pieces[: self.at + 1]), self.old.join(pieces[self.at + 1 :])
        return parse_kernel_ir(front + self.new + behind)


FAULTS = {
    "no barrier behind the slots of warps": Fault(
        "max3x4096", "    barrier block\n", "", "races emulator"
    ),
    "no barrier behind the second slots": Fault(
        "max3x4096", "    barrier block\n", "", "races emulator", at=1
    ),
    "no barrier before rows are read": Fault(
        "softmax7x40", "    barrier warp\n", "", "races emulator"
    ),
    "no barrier before results overwrite rows": Fault(
        "softmax7x40", "    barrier warp\n", "", "races emulator", at=1
    ),
    "no barrier before results are read": Fault(
        "softmax7x40", "    barrier warp\n", "", "races emulator", at=2
    ),
    "a barrier that half of the threads come to": Fault(
        "max3x4096",
        "    barrier block\n",
        "    if tx < 64 {\n      barrier block\n    }\n",
        "verify interpreter emulator",
    ),
    "a shuffle of too few lanes": Fault(
        "softmax3x1000", "lanes 32", "lanes 16", "interpreter emulator"
    ),
    "a shuffle of too many lanes": Fault(
        "softmax7x40", "lanes 2", "lanes 4", "interpreter emulator", at=1
    ),
    "a shuffle behind a condition on the lane": Fault(
        "softmax3x1000",
        "    warp_reduce reduce_sum_1: f32 by a + b lanes 32\n",
        "    if tx != 3 {\n      warp_reduce reduce_sum_1: f32 by a + b lanes 32\n    }\n",
        "verify interpreter emulator",
    ),
    "a vector load without its guard": Fault(
        "softmax3x1000",
        "if tx * 4 + u * 128 < 1000 {",
        "if true {",
        "interpreter emulator",
    ),
    "a vector store without its guard": Fault(
        "softmax3x1000",
        "if tx * 4 + u * 128 < 1000 {",
        "if true {",
        "races interpreter emulator",
        at=3,
    ),
    "whole blocks where points are missing": Fault(
        "int8(5000,)", "first + 4096 <= n0 & aligned", "aligned", "interpreter emulator"
    ),
    "vectors without a test of addresses": Fault(
        "softmax3x1000", "if aligned(16, x0, y0) {", "if aligned(16, x0) {", "verify"
    ),
    "an index that the width does not divide": Fault(
        "softmax3x1000",
        "load x0_r[u * 4] = x0[row * 1000 + tx * 4",
        "load x0_r[u * 4] = x0[row * 1000 + tx * 2",
        "verify interpreter emulator",
    ),
    "a register array read at another map's index": Fault(
        "softmax3x1000",
        "exp_nonpositive(x0_r[u * 4 + k] - ",
        "exp_nonpositive(x0_r[k * 8 + u] - ",
        "interpreter emulator",
    ),
    "a register array read behind its end": Fault(
        "softmax3x1000",
        "exp_nonpositive(x0_r[u * 4 + k] - ",
        "exp_nonpositive(x0_r[u * 4 + k + 1] - ",
        "verify interpreter emulator",
    ),
    "a register array with an index of threads": Fault(
        "softmax3x1000",
        "exp_nonpositive(x0_r[u * 4 + k] - ",
        "exp_nonpositive(x0_r[tx] - ",
        "verify interpreter emulator",
    ),
    "a row value stored by all lanes": Fault(
        "max3x4096", "if tx == 0 {", "if true {", "races emulator"
    ),
    "rows without a return": Fault(
        "softmax3x1000", "if row >= n0 {", "if false {", "interpreter emulator"
    ),
    "a return of threads before a shuffle": Fault(
        "softmax3x1000", "if row >= n0 {", "if tx >= n0 {", "verify interpreter emulator"
    ),
    "a tail that runs to the end of the array": Fault(
        "int8(5000,)",
        "index end: i64 = select(first + 4096 < n0, first + 4096, n0)",
        "index end: i64 = n0",
        "races",
    ),
    "a shared array that is too short": Fault(
        "softmax150x40", "x0_s: f32[2560]", "x0_s: f32[2500]", "races interpreter"
    ),
    "parts of warps that overlap": Fault(
        "softmax150x40", "x0_s[ty * 640 +", "x0_s[ty * 632 +", "races interpreter emulator"
    ),
    "no barrier before a tile is read along the other axis": Fault(
        "transpose(64, 128)", "    barrier block\n", "", "races emulator"
    ),
    "no barrier before the points of a tile that is not whole": Fault(
        "transpose(70, 33)", "  barrier block\n", "", "races emulator"
    ),
    "no fence before a block is counted": Fault("joined_sum", "  fence\n", "", "races emulator"),
    "no barrier before the fence of a block": Fault(
        "joined_columns", "    barrier block\n    fence\n", "    fence\n", "races emulator"
    ),
    "a join that does not wait for the last chunk": Fault(
        "joined_sum", "last_block of 13 at 0", "last_block of 12 at 0", "races interpreter emulator"
    ),
    "a join of columns that other blocks count": Fault(
        "joined_columns",
        "last_block of 10 at @grid % 2",
        "last_block of 10 at @grid // 10",
        "races interpreter emulator",
    ),
    "a join that reads the columns of another one": Fault(
        "joined_columns",
        "index join_first: i64 = join_block * 128",
        "index join_first: i64 = 128 - join_block * 128",
        "races interpreter emulator",
    ),
    "a join that reads columns in another order": Fault(
        "joined_many",
        "index join_column: i64 =",
        "index join_column: i64 = 38 -",
        "interpreter emulator",
    ),
    "rows of a tile that overlap": Fault(
        "transpose(64, 128)",
        "x0_s0[tx0 * 260 + tx1 + (u // 2 * 2080 + k * 65 +",
        "x0_s0[tx0 * 240 + tx1 + (u // 2 * 1920 + k * 60 +",
        "races interpreter emulator",
    ),
    "rows of a tile that are apart in one direction only": Fault(
        "transpose(64, 128)",
        "let add_1: f32 = x0_s0[tx1 * 65 +",
        "let add_1: f32 = x0_s0[tx1 * 64 +",
        "interpreter emulator",
    ),
    "a tile that is stored beyond its axis": Fault(
        "transpose(70, 33)",
        "if i0_first + tx1 + u * 8 < 33 & i1_4 < 70 {",
        "if i0_first + tx1 + u * 8 < 33 {",
        "races interpreter emulator",
    ),
    "a tile that is loaded beyond its axis": Fault(
        "transpose(70, 33)",
        "& i1_first + tx1 + u % 4 * 8 < 70 {\n      load",
        "{\n      load",
        "interpreter emulator",
    ),
    "no barrier before a product reads its operands": Fault(
        "attention2x7x20x8", "    barrier block\n", "", "races emulator"
    ),
    "no barrier before rows read a product": Fault(
        "attention2x7x20x8", "    barrier block\n", "", "races emulator", at=1
    ),
    "no barrier before a product reads rows": Fault(
        "attention2x7x20x8", "    barrier block\n", "", "races emulator", at=2
    ),
    "no barrier before a product replaces its operand": Fault(
        "attention_scaled", "    barrier block\n", "", "races emulator", at=3
    ),
    "register blocks that overlap": Fault(
        "dense37x13x21",
        "store s0[p0_down * 28",
        "store s0[p0_down * 20",
        "races interpreter emulator",
    ),
    "a row too many of a tile": Fault(
        "attention2x7x20x8",
        "if h * 4 + p2_down < 7 - first_row_tile * 4",
        "if h * 4 + p2_down < 4",
        "races interpreter emulator",
    ),
    "an element beyond a row": Fault(
        "dense37x13x21", "if point + k < 21", "if point + k < 22", "interpreter emulator"
    ),
}


@cache
def device() -> EmulatedDevice:
    """Return an emulated device with all faulty kernels, compiled together."""
    emulated = EmulatedDevice(LaunchOptions(order=7))
    emulated.prepare(faulty_kernel(f) for f in FAULTS.values())
    return emulated


@cache
def faulty_kernel(fault: Fault) -> Kernel:
    """Return the kernel with a fault, printed for CUDA."""
    kernel, ir = program(fault.program).kernel, fault.ir
    name = "k" + hashlib.sha256(str(ir).encode()).hexdigest()[:16]
    text = print_ir(ir, name, dialect_of("cuda"))
    return evolve(kernel, name=name, key=name, ast=ir, source=text)


def arrays_of(fault: Fault) -> tuple[list[Any], list[Any], list[Any]]:
    """Return the inputs of a program, arrays for its outputs, and what they should be."""
    graph = program(fault.program).graph
    feeds = feeds_of(graph)
    expected = [np.asarray(x) for x in pk.compile(graph, target="interpret")(feeds)]
    inputs = [np.ascontiguousarray(feeds[v.name]) for v in graph.inputs]
    return inputs, program(fault.program).outputs(expected), expected


def is_wrong(outputs: list[Any], expected: list[Any]) -> bool:
    """Return whether results are not as they should be."""
    pairs = zip(outputs[-len(expected) :], expected, strict=True)
    return not all(np.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in pairs)


def finders(fault: Fault) -> Iterator[str]:
    """Yield the names of the checks that find a fault."""
    kernel, ir = program(fault.program).kernel, fault.ir
    try:
        verify(ir, IRForm.FINAL, "test")
    except CodeGenError:
        yield "verify"
    try:
        check_races(ir, kernel.name, kernel.sizes, kernel.grid)
    except CodeGenError:
        yield "races"
    inputs, outputs, expected = arrays_of(fault)
    sizes = [evaluate(n, SIZES) for n in kernel.sizes]
    try:
        run_kernel(ir, evaluate(kernel.grid, SIZES), sizes, inputs, outputs, order=7)
        if is_wrong(outputs, expected):
            yield "interpreter"
    except KernelFault:
        yield "interpreter"
    inputs, outputs, expected = arrays_of(fault)
    try:
        device().launch(faulty_kernel(fault), SIZES, inputs, outputs)
        if is_wrong(outputs, expected):
            yield "emulator"
    except EmulatedError:
        yield "emulator"


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str) -> None:
    """Each fault is found by the checks that the table names, and by no other."""
    fault = FAULTS[name]

    assert " ".join(finders(fault)) == fault.found_by


@pytest.mark.parametrize("name", sorted({f.program for f in FAULTS.values()}))
def test_kernels_without_a_fault_pass(name: str) -> None:
    """No check finds anything in the kernels that the faults are planted in."""
    whole = Fault(name, "kernel", "kernel", "")

    assert " ".join(finders(whole)) == ""
