"""Fixtures for tests of the array API: operations that are queued, though arrays are small."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from passkit import xp


@pytest.fixture
def xp_queue() -> Iterator[None]:
    """Queue every operation on arrays with elements, and compile every sequence at once."""
    xp.eval()  # what other tests left
    with xp.config(small=0, compile_at=0):
        yield
