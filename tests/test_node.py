"""Nodes and entries: what calling an operator makes, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

import passkit as pk
from passkit.errors import DTypeError, GraphError, RegistryError, ShapeError
from passkit.node import find_operator, known_shape, promote_operands


def test_shapes_and_dtypes_are_known_at_once() -> None:
    """An entry tells what it is as soon as it is made, unknown sizes by name."""
    x, y = pk.var("x", ("n", 3)), pk.var("y", (None, 1), "int32")

    assert str((x + 1).shape) == "(n, 3)"
    assert (x + 1).dtype.name == "float32"
    assert (y + y).dtype.name == "int32"
    assert str(y.shape[0]) == "y.0"
    assert x.ndim == 2


@pytest.mark.parametrize("value", [2, 2.5, True, np.float32(2), np.int64(2), np.ones(3)])
def test_python_operators_promote_as_numpy_does(value: object) -> None:
    """Scalars are weak, arrays are not; both sides, every operator."""
    x = pk.var("x", (3,), "float32")
    a = np.ones(3, np.float32)

    for f in (lambda p, q: p + q, lambda p, q: q - p, lambda p, q: p * q, lambda p, q: q / p,
              lambda p, q: p ** q, lambda p, q: p < q, lambda p, q: q >= p):  # fmt: skip
        assert f(x, value).dtype.numpy == f(a, value).dtype


def test_nodes_are_immutable() -> None:
    """Nothing can be changed after it was made."""
    x = pk.var("x", (3,))

    with pytest.raises(AttributeError, match="cannot set 'dtype'"):
        x.dtype = None
    with pytest.raises(AttributeError, match="cannot set 'name'"):
        x.node.name = "y"
    with pytest.raises(TypeError, match="does not support item assignment"):
        x.node.params["shape"] = ()  # type: ignore[index]


def test_an_entry_has_no_value_yet() -> None:
    """It is neither true nor a sequence; == compares identity, as sets and dicts need."""
    x = pk.var("x", (3,))

    with pytest.raises(GraphError, match="x has no value before the graph runs"):
        bool(x > 0 if False else x)
    with pytest.raises(GraphError, match="x cannot be iterated"):
        list(x)
    assert x == x  # noqa: PLR0124
    assert x != pk.var("x", (3,))


def test_wrong_numbers_of_inputs_and_parameters() -> None:
    """The operator, its name in the graph, what it takes and what it got."""
    x = pk.var("x", (3,))

    with pytest.raises(GraphError, match=r"add 'sum' takes 2 input\(s\), got 1"):
        pk.ops.add(x, name="sum")
    with pytest.raises(GraphError, match="reduce_sum has no parameter 'axes'; did you mean 'axis"):
        pk.ops.reduce_sum(x, axes=0)
    with pytest.raises(GraphError, match="exp has no parameter 'axis'; it takes none"):
        pk.ops.exp(x, axis=0)
    with pytest.raises(GraphError, match="reshape needs the parameter 'shape'"):
        pk.ops.reshape(x)


def test_a_tuple_of_results_is_not_one() -> None:
    """Several results must be told apart before they are used."""
    two = pk.register_op("node_two", num_inputs=1, num_outputs=2)
    two.set_attr("FCodeGen", lambda node, x: (x, x + 1.0))
    two.set_attr("TOpPattern", pk.OpPattern.ELEMWISE)
    a, b = two(pk.var("x", (3,)))

    assert (a.name, b.name) == ("node_two:0", "node_two:1")
    with pytest.raises(GraphError, match="node_two has 2 results and one is needed here"):
        pk.ops.exp((a, b))


def test_missing_inputs_become_variables() -> None:
    """An operator that names its inputs makes those that a call leaves out (NNVM)."""
    x = pk.var("x", ("n", 8))
    y = pk.ops.linear(x, num_hidden=4, name="fc")

    assert [n.name for n in pk.Graph([y]).inputs] == ["x", "fc_weight", "fc_bias"]
    assert known_shape(y)[1] == 4
    with pytest.raises(GraphError, match="linear 'fc': input 'data' is given twice"):
        pk.ops.linear(x, data=x, num_hidden=4, name="fc")


def test_variables() -> None:
    """Dimensions are sizes, names or None; anything else is refused, with the variable's name."""
    assert pk.var("x", (np.int64(3),)).shape == (3,)
    assert pk.var("x").shape is None
    for wrong in (-1, 2.5, True):
        with pytest.raises(ShapeError, match=rf"variable 'x': dimension 1 must .* got {wrong}"):
            pk.var("x", (2, wrong))  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="name must be an identifier, got 'a b'"):
        pk.var("x", ("a b",))
    with pytest.raises(ShapeError, match="the rank of open is not known here"):
        known_shape(pk.var("open"))


def test_state_has_an_initial_value_or_none() -> None:
    """A state is an array, copied and frozen, or only a shape and dtype."""
    value = np.zeros(3, np.float32)
    made, unset = pk.state("a", value), pk.state("b", ((2,), "int32"))
    value += 1

    assert made.node.params["initial"].sum() == 0
    assert not made.node.params["initial"].flags.writeable
    assert unset.node.params["initial"] is None
    assert unset.shape == (2,)


def test_operators_without_an_implementation() -> None:
    """A symbol that no operator implements, and operands that are no arrays."""
    with pytest.raises(RegistryError, match="no operator implements '<=>'"):
        find_operator("<=>")
    with pytest.raises(DTypeError, match=r"'\+' needs an entry or array, got \[1, 2\]"):
        promote_operands("+", (1, 2))
