"""Nested containers: `tree_map` keeps their form."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from attrs import frozen

import passkit as pk
from passkit.errors import ArgumentError


class Pair(NamedTuple):
    """A named tuple."""

    left: Any
    right: Any


@frozen
class Box:
    """An attrs class whose constructor accepts numbers only."""

    content: Any

    def __attrs_post_init__(self) -> None:
        assert isinstance(self.content, int)


def test_all_containers_keep_their_form() -> None:
    """Lists, tuples, dicts, named tuples, classes and None are containers; others are leaves."""
    tree = [(1, {"b": 2, "a": None}), Pair(3, ()), Box(4), int]

    mapped = pk.tree_map(str, tree)

    assert mapped[0] == ("1", {"b": "2", "a": None}) and list(mapped[0][1]) == ["b", "a"]
    assert mapped[1] == Pair("3", ()) and mapped[3] == str(int)
    assert type(mapped[2]) is Box and mapped[2].content == "4"
    assert pk.tree_map(lambda *x: sum(x), Pair(1, [2]), Pair(3, [4]), Pair(5, [6])) == (9, [12])


def test_other_structures_are_refused() -> None:
    """The message lists the leaves of both."""
    with pytest.raises(ArgumentError, match=r"argument 1 has the leaves x\['b'\], and .* x\['a'\]"):
        pk.tree_map(max, {"a": 1}, {"b": 1})
    with pytest.raises(ArgumentError, match=r"argument 2 has the leaves none, .* x\.left\[0\], x"):
        pk.tree_map(max, Pair([1], 2), Pair([1], 2), None)
    with pytest.raises(ArgumentError, match=r"has the leaves x\.content"):
        pk.tree_map(max, 1, Box(1))
