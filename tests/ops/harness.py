"""Cases of operators on arrays: many cases are compiled as one graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import field, frozen

import passkit as pk
from passkit import Entry

TARGETS = ("interpret", "cpu")
TRANSCENDENTAL = 4
"""Allowed error of exp, log and similar functions, in units in the last place."""


@frozen
class Case:
    """A call of an operator with arrays, its expected result, and the allowed error.

    Attributes:
        name: name in messages.
        build: returns the output for entries.
        arrays: the arrays that are fed.
        expected: the result of NumPy.
        ulps: allowed error of each element in units in the last place; 0 for equal values.
        rtol: allowed error relative to the largest element.
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
    """Return a case whose expected result is ``reference(*arrays)``."""
    with np.errstate(all="ignore"):
        expected = np.asarray(reference(*arrays))
    shapes = ",".join(str(list(np.shape(a))) for a in arrays)
    return Case(f"{name} {arrays[0].dtype}{shapes}", build, arrays, expected, ulps, rtol)


def run(target: str, cases: Sequence[Case]) -> list[Any]:
    """Return the results of all cases, computed as one graph."""
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
    """Run the cases and compare their results with the expected ones."""
    for c, result in zip(cases, run(target, cases), strict=True):
        compare(c, result)


def compare(c: Case, result: Any) -> None:
    """Raise AssertionError where a result differs in dtype, shape, or beyond the allowed error."""
    expected = c.expected
    assert result.dtype == expected.dtype, f"{c.name}: dtype {result.dtype}, not {expected.dtype}"
    assert result.shape == expected.shape, f"{c.name}: shape {result.shape}, not {expected.shape}"
    if expected.dtype.kind not in "f" or not expected.size:
        np.testing.assert_array_equal(result, expected, err_msg=c.name)
        return
    a, b = result.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(b)
    np.testing.assert_array_equal(np.isnan(a), np.isnan(b), err_msg=f"{c.name}: NaN")
    np.testing.assert_array_equal(a[~finite], b[~finite], err_msg=f"{c.name}: inf")
    if not finite.any():
        return
    with np.errstate(all="ignore"):
        allowed = c.ulps * np.spacing(np.abs(expected[finite])).astype(np.float64)
        allowed += c.rtol * np.abs(b[finite]).max()
        differs = np.abs(a[finite] - b[finite]) > allowed
    assert not differs.any(), (
        f"{c.name}: {differs.sum()} element(s) off, such as {a[finite][differs][0]!r} for "
        f"{b[finite][differs][0]!r}"
    )


def exact_in_double(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function`` computed in float64 and rounded once to the dtype of its first array."""

    def reference(*arrays: Any) -> Any:
        wide = [np.asarray(a, np.float64) for a in arrays]
        return np.asarray(function(*wide)).astype(arrays[0].dtype)

    return reference
