"""The garbage collector's threshold is raised while passes run and restored afterwards."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

import passkit as pk


@pytest.fixture(autouse=True)
def _restored_thresholds() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)


GRAPH = pk.Graph([pk.var("x", (2,))])


def thresholds_in_pass() -> tuple[int, int, int]:
    """Return the collector's thresholds while a pass runs, after another pass ran inside it."""
    thresholds = []

    @pk.register_pass("TestInnerPass")
    def inner(graph: pk.Graph) -> pk.Graph:
        thresholds.append(gc.get_threshold())
        return graph

    @pk.register_pass("TestOuterPass")
    def outer(graph: pk.Graph) -> pk.Graph:
        pk.ApplyPasses(GRAPH, [inner])
        thresholds.append(gc.get_threshold())
        return graph

    pk.ApplyPasses(GRAPH, [outer])
    assert thresholds[0] == thresholds[1]
    return thresholds[0]


def test_passes_run_with_a_raised_threshold() -> None:
    """Inside a pass the threshold is high, also after a nested pass; afterwards it is restored."""
    gc.set_threshold(700, 10, 10)

    first, *others = thresholds_in_pass()

    assert first >= 100_000 and others == [10, 10]
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("thresholds", [(0, 10, 10), (10_000_000, 5, 5)])
def test_a_larger_threshold_of_the_user_stays(thresholds: tuple[int, int, int]) -> None:
    """A collector that is off, or runs less often still, is unchanged inside and after."""
    gc.set_threshold(*thresholds)

    assert thresholds_in_pass() == thresholds
    assert gc.get_threshold() == thresholds


def test_the_threshold_is_restored_after_an_error() -> None:
    """A pass that raises restores the threshold, too."""

    @pk.register_pass("TestBrokenPass")
    def broken(graph: pk.Graph) -> pk.Graph:
        assert gc.get_threshold()[0] >= 100_000
        raise ValueError("broken")

    gc.set_threshold(700, 10, 10)
    with pytest.raises(ValueError, match="broken"):
        pk.ApplyPasses(GRAPH, [broken])
    assert gc.get_threshold() == (700, 10, 10)
