"""Runs tables of operator cases: many cases are one graph, which a target runs at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import field, frozen

import passkit as pk
from passkit.graph.node import Entry

TARGETS = ("interpret", "cpu")
TRANSCENDENTAL = 4
"""The ulps by which a target may miss the correctly rounded value of exp, log and their like."""


@frozen
class Case:
    """An operator on arrays: how to build it, what NumPy gives, and how near a target must come.

    ``ulps`` of 0 asks for equal values; a composite may miss by ``rtol`` of the largest element.
    """

    name: str
    build: Callable[..., Any]
    arrays: tuple[Any, ...]
    expected: Any = field(repr=False)
    ulps: int = 0
    rtol: float = 0.0


def case(
    name: str,
    build: Callable[..., Any],
    reference: Callable[..., Any],
    *arrays: Any,
    ulps: int = 0,
    rtol: float = 0.0,
) -> Case:
    """A case whose expected result is ``reference`` of the arrays."""
    with np.errstate(all="ignore"):
        expected = np.asarray(reference(*arrays))
    shapes = ",".join(str(list(np.shape(a))) for a in arrays)
    return Case(f"{name} {arrays[0].dtype}{shapes}", build, arrays, expected, ulps, rtol)


def run(target: str, cases: Sequence[Case]) -> list[Any]:
    """The results of all cases, computed as one graph."""
    feeds: dict[str, Any] = {}
    outputs: list[Entry] = []
    for k, c in enumerate(cases):
        entries = []
        for j, array in enumerate(c.arrays):
            name = f"x{k}_{j}"
            feeds[name] = array
            entries.append(pk.var(name, array.shape, array.dtype))
        outputs.append(c.build(*entries))
    graph = pk.Graph(outputs)
    if target == "interpret":
        return pk.interpret(graph, feeds)
    return list(pk.compile(graph, target=target)(feeds))


def check(target: str, cases: Sequence[Case]) -> None:
    """Run the cases and compare every element with what is expected."""
    for c, found in zip(cases, run(target, cases), strict=True):
        compare(c, found)


def compare(c: Case, found: Any) -> None:
    """Raise AssertionError where a result differs in dtype, shape, or by more than is allowed."""
    wanted = c.expected
    assert found.dtype == wanted.dtype, f"{c.name}: dtype {found.dtype}, not {wanted.dtype}"
    assert found.shape == wanted.shape, f"{c.name}: shape {found.shape}, not {wanted.shape}"
    if wanted.dtype.kind not in "f" or not wanted.size:
        np.testing.assert_array_equal(found, wanted, err_msg=c.name)
        return
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    finite = np.isfinite(b)
    np.testing.assert_array_equal(np.isnan(a), np.isnan(b), err_msg=f"{c.name}: NaN")
    np.testing.assert_array_equal(a[~finite], b[~finite], err_msg=f"{c.name}: inf")
    if not finite.any():
        return
    with np.errstate(all="ignore"):
        allowed = c.ulps * np.spacing(np.abs(wanted[finite])).astype(np.float64)
        allowed += c.rtol * np.abs(b[finite]).max()
        off = np.abs(a[finite] - b[finite]) > allowed
    assert not off.any(), (
        f"{c.name}: {off.sum()} element(s) off, such as {a[finite][off][0]!r} for "
        f"{b[finite][off][0]!r}"
    )


def exact_in_double(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` computed in float64 and rounded once to the dtype of its first argument."""

    def reference(*arrays: Any) -> Any:
        wide = [np.asarray(a, np.float64) for a in arrays]
        return np.asarray(function(*wide)).astype(arrays[0].dtype)

    return reference
