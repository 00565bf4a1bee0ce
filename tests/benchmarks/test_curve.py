"""The pictures of training show the recorded numbers."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs/curves"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the modules of benchmarks/ importable, as its scripts see them."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


def test_the_pictures_are_drawn_of_the_recorded_run() -> None:
    """The pictures in docs/ equal those drawn of training.csv, a point a step."""
    import curve

    record = curve.read(PICTURES / "training.csv")
    drawn = curve.pictures(record)

    for name, text in drawn.items():
        assert (PICTURES / name).read_text() == text, "python benchmarks/curve.py --draw"
    lines = [
        e.get("points", "").split() for e in ET.fromstring(drawn["loss.svg"]).iter(f"{SVG}polyline")
    ]
    assert [len(points) for points in lines] == [len(record.losses)] * 2
    heights = [float(p.split(",")[1]) for p in lines[0]]
    assert np.argmax(heights) == np.argmin(record.losses)  # y counts from the top
    assert record.losses[-1] < record.losses[0] / 10 and record.accuracies[-1][1] >= 0.97


def test_axes_have_round_numbers() -> None:
    """Ticks pass the largest value in steps of 1, 2 or 5; decades enclose all values."""
    from drawing import decades, ticks

    assert ticks(0, 420) == [0, 100, 200, 300, 400, 500]
    assert ticks(0, 0.982) == [0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert decades([0.02, 2.37]) == [0.01, 0.1, 1, 10]
