"""The page about GPU kernels has the present table, and its model fits what was measured."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the script."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("gpu_page")


def test_the_page_has_the_present_table(page: Any) -> None:
    """``python benchmarks/gpu_page.py --write`` writes it."""
    assert page.PAGE.read_text() == page.page_with_table()
    assert set(page.ROWS) == {n for n in page.gpu_study.rows() if "figure1" not in n}


@pytest.mark.parametrize(
    ("instructions", "measured"), [(46.8, 0.91), (58, 0.83)], ids=["gelu", "gelu_custom"]
)
def test_the_model_fits_measured_kernels(page: Any, instructions: float, measured: float) -> None:
    """Two elementwise kernels of 8 bytes an element, which an H200 ran."""
    issue = page.issue_share(instructions, 8)
    assert page.predicted_share(issue, 40, 13, 1.0) == pytest.approx(measured, abs=0.03)


def test_memory_is_slow_without_loads_in_flight_or_whole_sectors(page: Any) -> None:
    """Half of the bytes in flight, or a quarter of each sector, are that share of the speed."""
    assert page.predicted_share(0.0, 6.5, 13, 1.0) == pytest.approx(0.5)
    assert page.predicted_share(0.0, 40, 13, 0.25) == pytest.approx(0.25)
    assert page.predicted_share(0.0, 40, 13, 1.0) == 1.0


def test_another_table_is_told_and_written(
    page: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command fails where the page has another table, and succeeds after it wrote it."""
    text = page.PAGE.read_text()
    monkeypatch.setattr(page, "PAGE", tmp_path / "page.md")
    page.PAGE.write_text(text.replace("| gelu_erf 67108864 | 46.8 |", "| gelu_erf 67108864 | 9 |"))
    assert page.main([]) == 1
    assert page.main(["--write"]) == 0 and page.main([]) == 0
    assert page.PAGE.read_text() == text
