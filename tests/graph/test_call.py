"""Calls of operators: operands are promoted, numbers are weak, parameters become plain."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import passkit as pk

x = pk.var("x", (None, 4))


def test_operands_are_entries_arrays_or_numbers() -> None:
    """One operand must be an entry or array; an unknown dtype stays unknown."""
    divide = pk.get_op("div").get_attr("FOperator")
    with pytest.raises(pk.DTypeError, match=r"'/' needs an entry or array, got \[1, 2\]"):
        divide(1, 2)
    with pytest.raises(pk.ArgumentError, match="or .nested lists of. numbers, got 'a'"):
        _ = x + "a"
    unknown = pk.var("u", None, None)
    assert (unknown + unknown).dtype is None


def test_python_operators_need_a_registered_operator() -> None:
    """Where the operators are not imported, the message says how to get an implementation."""
    code = "from passkit.graph.node import var; var('x', (2,)) ^ 1"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert run.returncode == 1
    assert "RegistryError: no operator implements '^'; import passkit.ops" in run.stderr


def test_numbers_among_inputs_are_weak() -> None:
    """Python numbers take the promoted dtype of the entries, and must fit it."""
    mask = pk.var("m", (2,), "bool")

    assert pk.ops.where(mask, x[0, :2], 0).dtype.name == "float32"
    assert pk.ops.maximum(pk.var("i", (), "int8"), 3).dtype.name == "int8"
    with pytest.raises(pk.DTypeError, match="300 does not fit int8; cast the array to a wider typ"):
        pk.ops.maximum(pk.var("i", (), "int8"), 300)


def test_parameters_are_plain() -> None:
    """Lists, NumPy numbers and dtypes become what text and JSON can write."""
    op = pk.register_op("test_call_plain", num_inputs=1, params={"value": None})
    value = [np.int64(1), (2.5, np.float32), np.dtype("int8"), pk.ast.dt.bool_, float, complex]

    plain = op(x, value=value).node.params["value"]

    assert plain == (1, (2.5, "float32"), "int8", "bool", "float64", "complex128")
    assert [type(v) for v in (plain[0], plain[1][0])] == [int, float]


def test_arrays_as_parameters_become_lists_where_the_default_is_plain() -> None:
    """Strides may be an array; tables of a custom operator stay arrays, as do inputs by name."""
    x = pk.var("x", (1, 4, 4, 1))
    y = pk.ops.conv2d(x, filter=np.ones((2, 2, 1, 1), np.float32), strides=np.array([2, 2]))
    op = pk.register_op("test_call_table", num_inputs=1, params={"table": None})
    table = np.arange(4)

    assert y.node.params["strides"] == (2, 2) and y.shape == (1, 2, 2, 1)
    assert op(x, table=table).node.params["table"] is table


def test_unknown_keywords_suggest_names_of_inputs() -> None:
    """The nearest name is suggested among parameters and inputs."""
    with pytest.raises(pk.GraphError, match="linear has no parameter 'wieght'; did you mean 'weig"):
        pk.ops.linear(x, wieght=x)


def test_a_symbol_without_an_operator_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the symbol and says how an operator implements it."""
    monkeypatch.setattr("passkit.graph.call.TOperator.rows", {})

    with pytest.raises(pk.RegistryError, match=r"no operator implements '\^'; import passkit.ops"):
        _ = pk.var("flags", (2,), "int32") ^ 1
