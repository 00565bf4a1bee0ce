"""Kernels of several nests in two languages: their barriers, and that they compile and run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from passkit.ast import Var
from passkit.ast.stage import Part, Stage, Store
from passkit.dialects import CXX, OPENCL, Dialect
from passkit.passes.rtcgen import FLAGS, sections_of
from passkit.runtime.native.build import build
from passkit.runtime.native.units import KernelText
from passkit.transforms.printing import print_kernel
from passkit.values import dtype as dt
from tests.dialects import test_opencl
from tests.dialects.plain_c import PLAIN, call, compiled
from tests.dialects.test_printer import GOLDEN
from tests.stitched import COL, STITCHED, array, kernel, lanes, load, number

FOLDER = GOLDEN / "stitched"
WAITS = {
    "softmax_dot": 2,
    "turned_rows": 2,
    "short_rows": 2,
    "column_means": 2,
    "one_place": 4,
    "whole_tile": 2,
}
"""How many barriers each has besides those of its reductions."""


@pytest.mark.parametrize("name", STITCHED)
@pytest.mark.parametrize("dialect, suffix", [(CXX, "cpp"), (OPENCL, "cl")], ids=["cxx", "opencl"])
def test_goldens(
    name: str, dialect: Dialect, suffix: str, golden: Callable[[Path, str], None]
) -> None:
    """Each has the text in tests/golden/stitched in every language, with its barriers."""
    text = print_kernel(STITCHED[name](), name, dialect)
    lines = [x.strip() for x in text.split("\n")]
    fences = [x for x in lines if x.startswith("barrier(")]

    golden(FOLDER / f"{name}.{suffix}", text)
    if dialect is OPENCL:
        folds = sum("_all = (__local" in x for x in lines)
        assert fences == ["barrier(CLK_LOCAL_MEM_FENCE);"] * (WAITS[name] + 3 * folds)


def test_results_that_are_read_again_are_fenced() -> None:
    """A work-group waits for its own outputs, too; one thread stores a total."""
    point = Var("tile", dt.int64) * 8
    put = Stage("put", (lanes(COL, number(8)),), (Store("y0", point + COL, load("x0", COL)),))
    turn = Stage(
        "turn", (lanes(COL, number(8)),), (Store("s0", COL, load("y0", point + (number(7) - COL))),)
    )
    ast = kernel((Part((), None, (), (put, turn)),), 1, (array("s0", 8),))

    text = print_kernel(ast, "again", OPENCL)
    assert text.count("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);") == 1
    text = print_kernel(STITCHED["short_rows"](), "k", OPENCL)
    assert "if (get_local_id(0) == 0) s0[row - first] = total;" in text
    text = print_kernel(STITCHED["whole_tile"](), "k", OPENCL)
    assert "if (get_local_id(0) == 0) s0[0] = most;" in text


def test_opencl_syntax(tmp_path: Path) -> None:
    """A C compiler accepts all kernels, given the names of OpenCL C."""
    texts = [p.read_text() for p in sorted(FOLDER.glob("*.cl"))]

    assert len(texts) == len(STITCHED) and "error" not in test_opencl.messages_of(texts, tmp_path)


def test_opencl_compiles() -> None:
    """A driver builds all kernels, if there is one."""
    test_opencl.built([p.read_text() for p in sorted(FOLDER.glob("*.cl"))])


def test_cxx_compiles() -> None:
    """All kernels compile as C++ for the CPU."""
    texts = {p.stem: p.read_text() for p in FOLDER.glob("*.cpp")}
    addresses = build(
        (
            KernelText(f"stitched {n}", n, f"namespace pk {{\n{t}}}\n", sections_of(t))
            for n, t in texts.items()
        ),
        FLAGS,
    )

    assert len(texts) == len(STITCHED) and len(addresses) == len(texts)


def test_results(tmp_path: Path, rng: Any) -> None:
    """As plain C with one thread they compute the right results."""
    library = compiled("".join(print_kernel(f(), n, PLAIN) for n, f in STITCHED.items()), tmp_path)

    def run(name: str, size: int, *inputs: Any) -> Any:
        y = np.zeros(size, np.float32)
        call(
            library,
            name,
            [*inputs, y],
            {
                "softmax_dot": (16, 2, 0),
                "turned_rows": (16, 4, 0),
                "short_rows": (50, 2, 7),
                "column_means": (16, 2, 0),
                "one_place": (16, 4, 0),
                "whole_tile": (0, 3, 0),
            }[name],
        )
        return y

    x, w = (rng.normal(size=s).astype(np.float32) for s in ((16, 64), (64, 16)))
    e = np.exp(x - x.max(1, keepdims=True))
    expected = (e / e.sum(1, keepdims=True)) @ w * 2
    np.testing.assert_allclose(run("softmax_dot", 256, x, w).reshape(16, 16), expected, 2e-5, 2e-6)
    assert (run("turned_rows", 1024, x).reshape(16, 64) == x + x).all()
    assert (run("one_place", 1024, x).reshape(16, 64) == x[:, ::-1]).all()
    means = x.reshape(2, 8, 64).mean(1, keepdims=True)
    expected = (x.reshape(2, 8, 64) - means).reshape(-1)
    np.testing.assert_allclose(run("column_means", 1024, x), expected, 2e-5, 2e-6)
    short = rng.uniform(1, 2, size=(50, 7)).astype(np.float32)
    expected = (short / short.sum(1, keepdims=True)).reshape(-1)
    np.testing.assert_allclose(run("short_rows", 350, short), expected, 2e-5)
    tile = rng.uniform(1, 2, size=(3, 1000)).astype(np.float32)
    expected = (tile / tile.max(1, keepdims=True)).reshape(-1)
    np.testing.assert_allclose(run("whole_tile", 3000, tile), expected, 2e-6)
