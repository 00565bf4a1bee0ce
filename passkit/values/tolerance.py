"""Compare results with a reference within relative and absolute tolerances."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from attrs import frozen

RELATIVE = 1e-4
"""The tolerance relative to each value of the reference."""
ABSOLUTE = 1e-5
"""The tolerance relative to the largest value of the reference."""


@frozen
class Deviation:
    """The largest absolute difference between one result and its reference.

    Attributes:
        output: the name of the result.
        against: what it was compared with, for messages.
        largest: the largest absolute difference; infinity where the shapes differ, NaN where an
            element is NaN in the result or in the reference alone.
        good: whether every element is close enough.
    """

    output: str
    against: str
    largest: float
    good: bool

    def __str__(self) -> str:
        """Return the difference, the result and its reference as a phrase, ", too much" if bad."""
        verdict = "" if self.good else ", too much"
        return f"{self.largest:.2g} in {self.output} against {self.against}{verdict}"


def compare(
    results: Mapping[str, np.ndarray[Any, Any]],
    references: Mapping[str, np.ndarray[Any, Any]],
    against: str,
) -> list[Deviation]:
    """Compare results with references of the same names.

    Equal values agree, NaN and infinities too; other finite values agree if they differ by at most
    `RELATIVE` times the reference plus `ABSOLUTE` times its largest finite value, by magnitude.

    Args:
        results: arrays of bools or numbers, also complex ones, by the names of outputs, such as
            ``y`` or ``y:0``.
        references: arrays by the same names; one called ``y`` is also that of the result ``y:0``.
        against: what the references are, for messages.

    Returns:
        A deviation for each result that has a reference.
    """
    deviations = []
    for name, result in results.items():
        expected = references.get(name, references.get(name.partition(":")[0]))
        if expected is None:
            continue
        if expected.shape != result.shape:
            source = f"{against}, of shape {expected.shape}"
            deviations.append(Deviation(name, source, float("inf"), good=False))
            continue
        scale = float(np.max(np.abs(expected), initial=0.0, where=np.isfinite(expected)))
        is_complex = "c" in (result.dtype.kind, expected.dtype.kind)
        wide = np.complex128 if is_complex else np.float64
        with np.errstate(invalid="ignore"):
            difference = np.abs(result.astype(wide) - expected.astype(wide))
        same = (result == expected) | (np.isnan(result) & np.isnan(expected))
        difference = np.where(same, 0.0, difference)
        allowed = ABSOLUTE * scale + RELATIVE * np.abs(expected)
        good = bool(np.all(same | (np.isfinite(expected) & (difference <= allowed))))
        largest = float(np.max(difference, initial=0.0))
        deviations.append(Deviation(name, against, largest, good))
    return deviations
