"""What TensorFlow made of each case is what passkit makes of it, interpreted and compiled."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import passkit as pk
from passkit.frontends import tf_graphdef
from tests.frontends.tf_graphdef.reference import page
from tests.frontends.tf_graphdef.reference.case import FIXTURES, Stored, difference, stored
from tests.together import compiled

pytestmark = pytest.mark.usefixtures("quick_kernels")
FAMILIES = sorted(FIXTURES.glob("*.npz"))
BATCH = 60


@pytest.mark.parametrize("path", FAMILIES, ids=lambda path: path.stem)
def test_interpreted(path: Path) -> None:
    """Every case is equal, or is refused as the page says; none is wrong."""
    listed = page.PAGE.read_text()
    for case in stored(path):
        op, variant, dtype = case.parts
        line = next(x for x in listed.splitlines() if x.startswith(f"| {op} | {variant} |"))
        good, bad = (cell.strip().split(", ") for cell in line.split("|")[3:5])
        assert dtype in (good if page.verdict(case) == page.EQUAL else bad), case.name


def chosen(cases: Sequence[Stored], every: bool) -> list[Stored]:
    """All cases, or one of each operator, which its name picks."""
    if every:
        return list(cases)
    of: dict[str, list[Stored]] = {}
    for case in cases:
        of.setdefault(case.parts[0], []).append(case)
    return [own[zlib.crc32(op.encode()) % len(own)] for op, own in of.items()]


@pytest.mark.parametrize("path", FAMILIES, ids=lambda path: path.stem)
def test_compiled(path: Path, request: pytest.FixtureRequest) -> None:
    """The kernels give TensorFlow's results too, of a case of each operator or of all."""
    equal = [c for c in stored(path) if page.verdict(c) == page.EQUAL]
    cases = chosen(equal, bool(request.config.getoption("--every-dtype")))
    for start in range(0, len(cases), BATCH):
        part = cases[start : start + BATCH]
        graphs = [tf_graphdef.load(c.model, outputs=list(c.outputs)) for c in part]
        for case, exe in zip(part, compiled(graphs), strict=True):
            for got, want in zip(exe(dict(case.inputs)), case.outputs.values(), strict=True):
                assert difference(got, want) <= 1, case.name


def test_a_wrong_result_is_found() -> None:
    """A model whose stored result is changed is wrong, not refused."""
    case = stored(FAMILIES[0])[0]
    name, value = next(iter(case.outputs.items()))
    changed = np.where(np.arange(value.size).reshape(value.shape) == 0, value + 1, value)
    wrong = Stored(case.name, case.model, case.inputs, {name: changed.astype(value.dtype)})

    with pytest.raises(AssertionError, match=f"{case.name}: {name} is wrong"):
        page.verdict(wrong)


def test_the_page_counts_what_there_is() -> None:
    """docs/tf_ops.md has the numbers of the fixtures."""
    count = sum(len(stored(path)) for path in FAMILIES)

    assert f", {count} cases: " in page.PAGE.read_text()
    assert pk.__version__
