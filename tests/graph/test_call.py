"""Calls of operators: operands of one dtype, weak numbers, plain parameters, inputs by name."""

from __future__ import annotations

import numpy as np
import pytest

import passkit as pk
from passkit.graph.call import find_operator, plain, promote_operands
from passkit.values.dtype import dtype_of

x = pk.var("x", (None, 4))


def test_operands() -> None:
    """Without an entry or array there is nothing to operate on; unknown dtypes are left alone."""
    with pytest.raises(pk.DTypeError, match=r"'\+' needs an entry or array, got \[1, 2\]"):
        promote_operands("+", [1, 2])
    with pytest.raises(pk.ArgumentError, match="or .nested lists of. numbers, got 'a'"):
        _ = x + "a"
    unknown = pk.var("u", None, None)
    assert (unknown + unknown).dtype is None


def test_an_operator_nobody_implements() -> None:
    """The message says how to give it one."""
    with pytest.raises(pk.RegistryError, match="no operator implements '<=>'; import passkit.ops"):
        find_operator("<=>")


def test_numbers_among_inputs_are_weak() -> None:
    """They take the dtype that the entries have together."""
    mask = pk.var("m", (2,), "bool")

    assert pk.ops.where(mask, x[0, :2], 0).dtype.name == "float32"
    assert pk.ops.maximum(pk.var("i", (), "int8"), 3).dtype.name == "int8"
    with pytest.raises(pk.DTypeError, match="300 does not fit int8; cast the array to a wider typ"):
        pk.ops.maximum(pk.var("i", (), "int8"), 300)


def test_parameters_are_plain() -> None:
    """Lists, NumPy numbers and dtypes become what text and JSON can write."""
    given = [np.int64(1), (2.5, np.float32), np.dtype("int8"), dtype_of("bool"), float]

    assert plain(given) == (1, (2.5, "float32"), "int8", "bool", "float64")


def test_an_array_among_parameters_is_what_it_lists() -> None:
    """Strides may be computed; tables of a user's operator stay arrays, as do inputs by name."""
    x = pk.var("x", (1, 4, 4, 1))
    y = pk.ops.conv2d(x, filter=np.ones((2, 2, 1, 1), np.float32), strides=np.array([2, 2]))
    op = pk.register_op("test_call_table", num_inputs=1, params={"table": None})
    table = np.arange(4)

    assert y.node.params["strides"] == (2, 2) and y.shape == (1, 2, 2, 1)
    assert op(x, table=table).node.params["table"] is table


def test_unnamed_inputs_are_made() -> None:
    """FListInputNames completes a call; unknown keywords offer names of inputs too."""
    with pytest.raises(pk.GraphError, match="linear has no parameter 'wieght'; did you mean 'weig"):
        pk.ops.linear(x, wieght=x)
