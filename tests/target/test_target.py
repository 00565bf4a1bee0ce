"""Targets: known by name."""

from __future__ import annotations

import pytest

from passkit.errors import SettingError
from passkit.target import target_of


def test_targets_by_name() -> None:
    """Each of the documented targets is there; a Target stands for itself."""
    for name in ("cpu", "interpret", "opencl", "cuda"):
        assert target_of(name).name == name
    assert target_of(target_of("cpu")) is target_of("cpu")
    assert target_of("cpu").scratch > 0


def test_an_unknown_target_offers_the_nearest() -> None:
    """A misspelt name is answered with the one that was meant."""
    with pytest.raises(SettingError, match="target 'cdua' is not known; did you mean 'cuda'"):
        target_of("cdua")
