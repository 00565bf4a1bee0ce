"""Scratch of stitched kernels: with rows packed closely, and the values that are not kept in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from passkit.analysis.slots import SlotAssignment, fit
from passkit.planner import multi_nest as plan


@contextmanager
def rows_without_padding() -> Iterator[None]:
    """Plan stitched kernels without padding between the rows of arrays in scratch."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "pitched", lambda region, vector: region)
        yield


@contextmanager
def dropped_arrays() -> Iterator[list[Any]]:
    """Collect the arrays that plans compute again, because scratch is too small for them."""
    dropped: list[Any] = []

    def noted(*arguments: Any) -> Any:
        sharing = fit(*arguments)
        dropped.extend(sharing.dropped if isinstance(sharing, SlotAssignment) else ())
        return sharing

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "fit", noted)
        yield dropped
