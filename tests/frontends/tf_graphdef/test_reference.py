"""Results of all reference cases equal TensorFlow's, interpreted and compiled."""

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
def test_interpreted_cases_equal_tensorflow(path: Path) -> None:
    """Every case equals TensorFlow, or is refused as docs/tf_ops.md says."""
    listed = page.PAGE.read_text()
    for case in stored(path):
        op, variant, dtype = case.parts
        line = next(x for x in listed.splitlines() if x.startswith(f"| {op} | {variant} |"))
        good, bad = (cell.strip().split(", ") for cell in line.split("|")[3:5])
        assert dtype in (good if page.verdict(case) == page.EQUAL else bad), case.name


def selected_cases(cases: Sequence[Stored], every: bool) -> list[Stored]:
    """Return all cases, or one for each operator, selected by its name."""
    if every:
        return list(cases)
    of: dict[str, list[Stored]] = {}
    for case in cases:
        of.setdefault(case.parts[0], []).append(case)
    return [own[zlib.crc32(op.encode()) % len(own)] for op, own in of.items()]


@pytest.mark.parametrize("path", FAMILIES, ids=lambda path: path.stem)
def test_compiled_cases_equal_tensorflow(path: Path, request: pytest.FixtureRequest) -> None:
    """Compiled kernels equal TensorFlow, for a case of each operator or for all."""
    equal = [c for c in stored(path) if page.verdict(c) == page.EQUAL]
    cases = selected_cases(equal, bool(request.config.getoption("--every-dtype")))
    for start in range(0, len(cases), BATCH):
        part = cases[start : start + BATCH]
        graphs = [tf_graphdef.load(c.model, outputs=list(c.outputs)) for c in part]
        for case, exe in zip(part, compiled(graphs), strict=True):
            for got, want in zip(exe(dict(case.inputs)), case.outputs.values(), strict=True):
                assert difference(got, want) <= 1, case.name


def test_a_wrong_result_is_detected() -> None:
    """A case with a changed expected result counts as wrong, not as refused."""
    case = stored(FAMILIES[0])[0]
    name, value = next(iter(case.outputs.items()))
    changed = np.where(np.arange(value.size).reshape(value.shape) == 0, value + 1, value)
    wrong = Stored(case.name, case.model, case.inputs, {name: changed.astype(value.dtype)})

    with pytest.raises(AssertionError, match=f"{case.name}: {name} is wrong"):
        page.verdict(wrong)


def test_the_page_has_the_numbers_of_the_fixtures() -> None:
    """docs/tf_ops.md has the numbers of operators and cases of the fixtures."""
    count = sum(len(stored(path)) for path in FAMILIES)

    assert f", {count} cases: " in page.PAGE.read_text()
    assert pk.__version__
