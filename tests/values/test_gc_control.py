"""The garbage collector's threshold is raised while passes run and restored afterwards."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

import passkit as pk
from passkit.values.gc_control import RAISED_THRESHOLD, raised_gc_threshold


@pytest.fixture(autouse=True)
def _restored_thresholds() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)


def test_passes_run_with_a_raised_threshold() -> None:
    """Inside a pass the threshold is high, also after a nested block; afterwards it is restored."""
    gc.set_threshold(700, 10, 10)
    thresholds_in_pass = []

    @pk.register_pass("TestSeesCollector")
    def look(graph: pk.Graph) -> pk.Graph:
        with raised_gc_threshold():
            pass
        thresholds_in_pass.append(gc.get_threshold())
        return graph

    pk.ApplyPasses(pk.Graph([pk.var("x", (2,))]), [look])

    assert thresholds_in_pass == [(RAISED_THRESHOLD, 10, 10)]
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("thresholds", [(0, 10, 10), (RAISED_THRESHOLD * 2, 5, 5)])
def test_a_larger_threshold_of_the_user_stays(thresholds: tuple[int, int, int]) -> None:
    """A collector that is off, or runs less often still, is unchanged inside and after."""
    gc.set_threshold(*thresholds)
    with raised_gc_threshold():
        assert gc.get_threshold() == thresholds
    assert gc.get_threshold() == thresholds


def test_the_threshold_is_restored_after_an_error() -> None:
    """A block that raises restores the threshold, too."""
    gc.set_threshold(700, 10, 10)
    with pytest.raises(ValueError, match="broken"), raised_gc_threshold():
        raise ValueError("broken")
    assert gc.get_threshold() == (700, 10, 10)
