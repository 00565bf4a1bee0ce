"""Targets: known by name."""

from __future__ import annotations

import pytest

import passkit as pk
from passkit.errors import SettingError


def test_targets_by_name() -> None:
    """Each of the documented targets is there; a Target stands for itself."""
    for name in ("cpu", "interpret", "opencl", "cuda"):
        assert pk.PassContext(target=name).target.name == name
    cpu = pk.PassContext(target="cpu").target
    assert pk.PassContext(target=cpu).target is cpu
    assert cpu.scratch > 0


def test_an_unknown_target_offers_the_nearest() -> None:
    """A misspelt name is answered with the one that was meant."""
    with pytest.raises(SettingError, match="target 'cdua' is not known; did you mean 'cuda'"):
        pk.PassContext(target="cdua")
