"""Agreement: how far results are from what they should be, and whether that is too far."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from attrs import frozen

Array = np.ndarray[Any, Any]
RELATIVE, ABSOLUTE = 1e-4, 1e-5
"""What is tolerated, the absolute part relative to a result's largest value."""


@frozen
class Error:
    """How far a result is from what it should be."""

    output: str
    against: str
    largest: float
    good: bool

    def __str__(self) -> str:
        verdict = "" if self.good else ", too much"
        return f"{self.largest:.2g} in {self.output} against {self.against}{verdict}"


def compare(results: Mapping[str, Array], wanted: Mapping[str, Array], against: str) -> list[Error]:
    """The errors of the results that ``wanted`` has, by name."""
    found = []
    for name, got in results.items():
        right = wanted.get(name, wanted.get(name.partition(":")[0]))
        if right is None:
            continue
        if right.shape != got.shape:
            found.append(Error(name, f"{against}, of shape {right.shape}", float("inf"), False))
            continue
        scale = float(np.max(np.abs(right), initial=0.0, where=np.isfinite(right)))
        with np.errstate(invalid="ignore"):
            away = np.abs(got.astype(np.float64) - right.astype(np.float64))
        same = (got == right) | (np.isnan(got) & np.isnan(right))
        away = np.where(same, 0.0, away)
        good = bool(np.all(same | (away <= ABSOLUTE * scale + RELATIVE * np.abs(right))))
        found.append(Error(name, against, float(np.max(away, initial=0.0)), good))
    return found
