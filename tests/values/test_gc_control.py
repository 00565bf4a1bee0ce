"""The collector of garbage is kept back while passes run, and left as it was found."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

import passkit as pk
from passkit.values.gc_control import SELDOM, seldom


@pytest.fixture(autouse=True)
def _as_found() -> Iterator[None]:
    found = gc.get_threshold()
    yield
    gc.set_threshold(*found)


def test_passes_collect_seldom() -> None:
    """Inside a pass the threshold is high, afterwards what it was; nested runs do not end it."""
    gc.set_threshold(700, 10, 10)
    seen = []

    @pk.register_pass("TestSeesCollector")
    def look(graph: pk.Graph) -> pk.Graph:
        with seldom():
            pass
        seen.append(gc.get_threshold())
        return graph

    pk.ApplyPasses(pk.Graph([pk.var("x", (2,))]), [look])

    assert seen == [(SELDOM, 10, 10)]
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("own", [(0, 10, 10), (SELDOM * 2, 5, 5)])
def test_an_own_choice_is_kept(own: tuple[int, int, int]) -> None:
    """Who turned the collector off, or made it rarer still, finds it so within and after."""
    gc.set_threshold(*own)
    with seldom():
        assert gc.get_threshold() == own
    assert gc.get_threshold() == own


def test_an_error_leaves_it_as_it_was() -> None:
    """A pass that fails ends it too."""
    gc.set_threshold(700, 10, 10)
    with pytest.raises(ValueError, match="broken"), seldom():
        raise ValueError("broken")
    assert gc.get_threshold() == (700, 10, 10)
