"""wait_in_blocks: butterflies through shared memory, and barriers that all threads come to."""

from __future__ import annotations

import pytest

from passkit.checks.ir_races import races
from passkit.errors import CodeGenError
from passkit.ir.loop import Barrier, BarrierScope, KernelIR, WarpReduce, walk_statements
from passkit.ir.text import parse_kernel_ir
from passkit.ir.verify import IRForm, verify
from passkit.transforms.wait_in_blocks import wait_in_blocks
from tests.nest_kernels import programs

HEAD = """\
kernel 2x32 blocks 1 index 32
param x0: f32[5]
param y0: f32[160] written
shared slots: f32[64] written
size n0
{
  index block: i64 = @grid
  index ty: i64 = @thread_y
  index tx: i64 = @thread_x
"""
ROW = """\
  index row: i64 = block * 2 + ty
  if row >= n0 {
    return
  }
  let scale: f32 = x0[row]
  var total: f32 = 1.0:f32
  warp_reduce total: f32 by a + b lanes 4
  y0[row * 32 + tx] = total:f32 * scale:f32
"""


def rewritten(body: str) -> KernelIR:
    """Return the kernel of a body after the transform; the final form allows it."""
    kernel = wait_in_blocks(parse_kernel_ir(HEAD + body + "}\n"))
    verify(kernel, IRForm.FINAL, "wait_in_blocks")
    return kernel


def lines_of(kernel: KernelIR) -> list[str]:
    """Return the lines of a kernel's statements behind the indices of threads."""
    lines = str(kernel).splitlines()
    return [line.strip() for line in lines[lines.index("  index tx: i64 = @thread_x") + 1 : -1]]


def test_rows_that_do_not_exist_wait_with_others() -> None:
    """Their threads do not return: loads and stores stand in branches, a butterfly does not."""
    kernel = rewritten(ROW)

    assert lines_of(kernel) == [
        "index row: i64 = block * 2 + ty",
        "var scale: f32 = 0.0:f32",
        "if row < n0 {",
        "scale = x0[row]",
        "}",
        "var total: f32 = 1.0:f32",
        "exchanged0_f32[@thread_y * 32 + @thread_x] = total",
        "barrier block",
        "let other1: f32 = exchanged0_f32[@thread_y * 32 + (@thread_x ^ 2)]",
        "total = total + other1",
        "exchanged1_f32[@thread_y * 32 + @thread_x] = total",
        "barrier block",
        "let other2: f32 = exchanged1_f32[@thread_y * 32 + (@thread_x ^ 1)]",
        "total = total + other2",
        "if row < n0 {",
        "y0[row * 32 + tx] = total * scale",
        "}",
    ]
    assert not list(races(kernel, [5], 3))


def test_both_threads_get_operands_in_one_order() -> None:
    """A maximum gets the value of the lower thread first, and an odd step ends with a barrier."""
    lines = lines_of(rewritten(ROW.replace("a + b lanes 4", "maximum(a, b) lanes 2")))

    assert [line for line in lines if "lower" in line or "upper" in line] == [
        "let lower2: f32 = select(@thread_x % 2 >= 1, other1, total)",
        "let upper3: f32 = select(@thread_x % 2 >= 1, total, other1)",
        "total = maximum(lower2, upper3)",
    ]
    assert lines[lines.index("total = maximum(lower2, upper3)") + 1] == "barrier block"


def test_branches_of_some_warps_are_moved_inside() -> None:
    """A branch for some warps does not contain the barrier, one for some blocks does."""
    barrier = "    slots[tx] = 1.0:f32\n    barrier warp\n    y0[tx] = slots[tx]\n  }\n"
    of_warps = rewritten("  if ty < 1 {\n" + barrier)
    of_blocks = rewritten("  if block < 1 {\n" + barrier)

    guarded = "if ty < 1 { | slots[tx] = 1.0:f32 | } | barrier block | if ty < 1 { | y0[tx]"
    assert " | ".join(lines_of(of_warps)).startswith(guarded)
    assert " | ".join(lines_of(of_blocks)).startswith("if block < 1 { | slots[tx] = 1.0:f32 | barr")


@pytest.mark.parametrize(
    "body",
    [
        "  for serial k = 0 to ty step 1 {\n    barrier warp\n  }\n",
        "  if ty < 1 {\n    barrier warp\n  } else {\n    barrier warp\n  }\n",
    ],
)
def test_loops_of_some_threads_are_refused(body: str) -> None:
    """A loop that some threads leave earlier has no place for a barrier."""
    kind = body.split()[0].capitalize()

    with pytest.raises(CodeGenError, match=f"only some threads of a block wait in a {kind}"):
        rewritten(body)


def test_kernels_without_barriers_stay_as_they_are() -> None:
    """Threads without points may return where nobody waits."""
    body = "  if tx >= n0 {\n    return\n  }\n  y0[tx] = x0[tx]\n"
    kernel = parse_kernel_ir(HEAD + body + "}\n")

    assert wait_in_blocks(kernel) is kernel


def test_all_kernels_have_barriers_of_blocks() -> None:
    """Kernels of all schedules are legal without warps, and stay so when they are rewritten."""
    for program in programs():
        if program.ir.counters:
            continue
        kernel = wait_in_blocks(program.ir)

        verify(kernel, IRForm.FINAL, program.name)
        barriers = [s.scope for s in walk_statements(kernel.body) if isinstance(s, Barrier)]
        assert BarrierScope.WARP not in barriers
        assert not any(isinstance(s, WarpReduce) for s in walk_statements(kernel.body))
