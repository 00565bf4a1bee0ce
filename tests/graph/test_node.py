"""Nodes and entries: immutable, compared by identity, shape and dtype known at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.graph.node import as_entry
from passkit.values.size import Size

x = pk.var("x", (None, 4))


def test_entries_know_shape_and_dtype() -> None:
    """What can be inferred is inferred when the node is made."""
    y = pk.ops.reduce_sum(x * 2.0, axis=1)

    assert (y.shape, y.dtype.name, y.ndim) == ((Size.symbol("x.0"),), "float32", 1)
    assert repr(y) == "Entry(reduce_sum: float32[x.0])"
    assert repr(pk.var("u", None, None)) == "Entry(u: None[?])"


def test_equality_is_identity() -> None:
    """Entries are keys; values are compared by pk.ops.equal."""
    assert x == x and x != pk.var("x", (None, 4))
    assert pk.ops.equal(x, x).dtype.name == "bool"


def test_nothing_changes() -> None:
    """Nodes and entries refuse assignment."""
    with pytest.raises(AttributeError, match="an Entry is immutable; cannot set 'shape'"):
        x.shape = ()
    with pytest.raises(AttributeError, match="a Node is immutable; cannot set 'name'"):
        x.node.name = "y"
    with pytest.raises(TypeError):
        x.node.params["shape"] = ()


def test_a_changed_copy() -> None:
    """A node with other inputs, control dependences or name; what is not said stays."""
    y = (x + 1.0).node
    z = y.replaced(control=[x.node], name="z")

    assert (z.inputs, z.control, z.name, z.op) == (y.inputs, (x.node,), "z", y.op)
    assert repr(z) == "Node(add 'z')"


def test_sizes_of_variables() -> None:
    """None is a size of its own, a name is shared, a Size is itself."""
    n = Size.symbol("n")

    assert pk.var("a", (None, "n", n * 2, np.int64(3))).shape == (Size.symbol("a.0"), n, n * 2, 3)


@pytest.mark.parametrize("shape, message", [
    (("a b",), "variable 'v': a size's name must be an identifier, got 'a b'"),
    ((-1,), "variable 'v': dimension 0 must be an int >= 0, a name or None, got -1"),
    ((3, True), "dimension 1 must be an int >= 0, a name or None, got True"),
    ((2.5,), "dimension 0 must be an int >= 0, a name or None, got 2.5"),
])
def test_shapes_that_are_none(shape: Any, message: str) -> None:
    """The dimension that is wrong is named."""
    with pytest.raises(pk.ShapeError, match=message):
        pk.var("v", shape)


def test_constants_are_frozen_copies() -> None:
    """A constant does not follow the array that it was made of."""
    array = np.ones(2)
    entry = pk.constant(array, "float32")
    array[0] = 5

    value = entry.node.params["value"]
    assert (value.tolist(), value.dtype, value.flags.writeable) == ([1, 1], np.float32, False)


def test_state() -> None:
    """A state variable has an initial array, or starts unset."""
    w, u = pk.state("w", [1.5]), pk.state("u", ((2,), "int32"))

    assert (w.shape, w.dtype.name, w.node.params["initial"].tolist()) == ((1,), "float64", [1.5])
    assert (u.shape, u.dtype.name, u.node.params["initial"]) == ((2,), "int32", None)


def test_python_protocols_that_have_no_meaning() -> None:
    """Truth, iteration and tuples of results raise, and say what to do."""
    with pytest.raises(pk.GraphError, match="x has no value before the graph runs; use pk.ops.whe"):
        bool(x)
    with pytest.raises(pk.GraphError, match="x cannot be iterated; use pk.ops.slice or pk.ops.spl"):
        list(x)
    with pytest.raises(pk.ShapeError, match="the rank of u is not known here"):
        _ = pk.var("u", None).ndim
    with pytest.raises(pk.GraphError, match="variable 'x' has 2 results and one is needed here; i"):
        as_entry((x, x))
