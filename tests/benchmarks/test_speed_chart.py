"""The README's speed chart shows the committed measurements."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(name="speed_chart")
def _speed_chart(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Import `benchmarks/speed_chart.py`."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import speed_chart

    return speed_chart


def test_the_picture_shows_the_committed_report(speed_chart: ModuleType) -> None:
    """Drawing the report again gives the picture that the README shows."""
    report = json.loads(speed_chart.REPORT.read_text())

    assert speed_chart.PICTURE.read_text() == speed_chart.draw(report)


def test_a_bar_is_as_long_as_its_ratio_says(speed_chart: ModuleType) -> None:
    """Twice the time is one step of the logarithmic scale further; bars end at its right end."""
    steps = [speed_chart.x_of(2.0**k) for k in range(6)]

    assert steps[2] - steps[1] == steps[1] - steps[0] > 0
    assert steps[4] == steps[5]


def test_every_number_is_that_of_its_workload(speed_chart: ModuleType) -> None:
    """The numbers beside the bars are competitor / passkit of the rows, in their order."""
    report = json.loads(speed_chart.REPORT.read_text())
    expected = [f"{r:.1f}" for row in speed_chart.chart_rows(report) for r in row.ratios.values()]
    numbers = re.findall(r'font-size="11">(\d+\.\d)<', speed_chart.draw(report))

    assert len(expected) >= 16
    assert numbers == expected
