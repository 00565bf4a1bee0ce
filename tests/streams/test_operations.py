"""Tables of operations: names, parameters, and operations that cannot be recorded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit import xp
from passkit.streams.operation import OperationTable, array_type


def test_equal_parameters_give_one_operation() -> None:
    """Parameters are equal if value and type are: 1, 1.0 and True are three operations."""
    table = OperationTable()
    table.define("scaled", lambda x, by: x * by)

    assert table.get("scaled", by=2) is table.get("scaled", by=2)
    assert len({table.get("scaled", by=n) for n in (1, 1.0, True)}) == 3


def test_a_name_is_defined_once() -> None:
    """A second operation of a name is refused."""
    table = OperationTable()
    table.define("same", lambda x: x)

    with pytest.raises(pk.PasskitError, match="an operation 'same' already"):
        table.define("same", lambda x: x)


def test_results_of_unknown_shape_cannot_be_recorded() -> None:
    """An operation whose result's shape depends on values names itself."""
    table = OperationTable()
    table.define("positions", lambda x: pk.var("y", (None,)))

    with pytest.raises(pk.PasskitError, match="y: the shape of the result depends on"):
        table.get("positions").infer((array_type(np.dtype("float32"), (4,)),))


def test_arrays_refuse_what_they_cannot_be() -> None:
    """Conversions and assignments name what they need and what they got."""
    x = xp.asarray(np.ones((2, 3), np.float32))
    larger, numbers = xp.ones((4, 2, 3), dtype=xp.float32), xp.ones((2, 3)) * 1j
    cases: list[tuple[Any, str]] = [
        (lambda: xp.Array(), "use xp.asarray"),
        (lambda: len(xp.asarray(1.0)), "0-dimensional"),
        (lambda: float(x), r"float needs an array of one element, got one of shape \(2, 3\)"),
        (lambda: range(x), r"an index needs .*, got float32 of shape \(2, 3\)"),
        (lambda: x.__iadd__(larger), r"a result of shape \(2, 3\), got \(4, 2, 3"),
        (lambda: x.__iadd__(numbers), "cannot store complex128 in an array of float32"),
    ]
    for action, text in cases:
        with pytest.raises((TypeError, ValueError), match=text):
            action()
