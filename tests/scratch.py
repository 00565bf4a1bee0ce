"""Changes of plans of multi-nest kernels: rows without padding, and values that are recomputed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from passkit.analysis.slots import SlotAssignment, fit
from passkit.planner import multi_nest as plan


@contextmanager
def rows_without_padding() -> Iterator[None]:
    """Plan multi-nest kernels without padding between the rows of arrays in scratch."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "padded_to_vectors", lambda layout, vector: layout)
        yield


@contextmanager
def dropped_arrays() -> Iterator[list[Any]]:
    """Collect the values that plans recompute because scratch memory is too small for them."""
    dropped: list[Any] = []

    def noted(*arguments: Any) -> Any:
        sharing = fit(*arguments)
        dropped.extend(sharing.dropped if isinstance(sharing, SlotAssignment) else ())
        return sharing

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "fit", noted)
        yield dropped
