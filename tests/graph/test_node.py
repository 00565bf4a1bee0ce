"""Nodes and entries are immutable, compared by identity, and know shape and dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk

x = pk.var("x", (None, 4))


def test_entries_know_shape_and_dtype() -> None:
    """Shapes and dtypes are inferred when the node is created."""
    y = pk.ops.reduce_sum(x * 2.0, axis=1)

    assert (y.shape, y.dtype.name, y.ndim) == ((pk.Size.symbol("x.0"),), "float32", 1)
    assert repr(y) == "Entry(reduce_sum: float32[x.0])"
    assert repr(pk.var("u", None, None)) == "Entry(u: None[?])"


def test_equality_is_identity() -> None:
    """Entries are keys; values are compared by pk.ops.equal."""
    assert x == x and x != pk.var("x", (None, 4))
    assert pk.ops.equal(x, x).dtype.name == "bool"


def test_nodes_and_entries_are_immutable() -> None:
    """Assignment to their fields and parameters is refused."""
    with pytest.raises(AttributeError, match="an Entry is immutable; cannot set 'shape'"):
        x.shape = ()
    with pytest.raises(AttributeError, match="a Node is immutable; cannot set 'name'"):
        x.node.name = "y"
    with pytest.raises(TypeError):
        x.node.params["shape"] = ()


def test_replaced_copies_a_node_with_other_fields() -> None:
    """Fields that are not given are those of the original."""
    y = (x + 1.0).node
    z = y.replaced(control=[x.node], name="z")

    assert (z.inputs, z.control, z.name, z.op) == (y.inputs, (x.node,), "z", y.op)
    assert repr(z) == "Node(add 'z')"


def test_dimensions_are_none_names_sizes_or_integers() -> None:
    """None is a new symbol, equal names are one symbol, and a Size stays."""
    n = pk.Size.symbol("n")
    a = pk.var("a", (None, "n", n * 2, np.int64(3)))

    assert a.shape == (pk.Size.symbol("a.0"), n, n * 2, 3)


@pytest.mark.parametrize(
    "shape, message",
    [
        (("a b",), "variable 'v': a size's name must be an identifier, got 'a b'"),
        ((-1,), "variable 'v': dimension 0 must be an int >= 0, a name or None, got -1"),
        ((3, True), "dimension 1 must be an int >= 0, a name or None, got True"),
        ((2.5,), "dimension 0 must be an int >= 0, a name or None, got 2.5"),
    ],
)
def test_invalid_shapes_are_refused(shape: Any, message: str) -> None:
    """The message names the invalid dimension."""
    with pytest.raises(pk.ShapeError, match=message):
        pk.var("v", shape)


def test_constants_are_frozen_copies() -> None:
    """A constant does not change with the array that it was created from."""
    array = np.ones(2)
    entry = pk.constant(array, "float32")
    array[0] = 5

    value = entry.node.params["value"]
    assert (value.tolist(), value.dtype, value.flags.writeable) == ([1, 1], np.float32, False)


def test_constants_do_not_lose_imaginary_parts() -> None:
    """Complex arrays are refused for a real dtype, as complex numbers are, but not as bool."""
    for value in (np.array([1j]), np.complex64(1j), [1, 1j]):
        with pytest.raises(pk.ArgumentError, match=r"numbers for float32, .* got .*(1j|\[1\])"):
            pk.constant(value, "float32")
    assert pk.constant(np.array([1j, 0]), "bool").node.params["value"].tolist() == [True, False]


def test_state_variables_have_an_initial_array_or_none() -> None:
    """A state variable is created from an array, or from shape and dtype without a value."""
    w, u = pk.state("w", [1.5]), pk.state("u", ((2,), "int32"))

    assert (w.shape, w.dtype.name, w.node.params["initial"].tolist()) == ((1,), "float64", [1.5])
    assert (u.shape, u.dtype.name, u.node.params["initial"]) == ((2,), "int32", None)


def test_truth_iteration_and_tuples_of_entries_are_refused() -> None:
    """The messages say which operator to use instead."""
    with pytest.raises(pk.GraphError, match="x has no value before the graph runs; use pk.ops.whe"):
        bool(x)
    with pytest.raises(pk.GraphError, match="x cannot be iterated; use pk.ops.slice or pk.ops.spl"):
        list(x)
    with pytest.raises(pk.ShapeError, match="the rank of u is not known here"):
        _ = pk.var("u", None).ndim
    with pytest.raises(pk.GraphError, match="variable 'x' has 2 results and one is needed here; i"):
        pk.ops.exp((x, x))
