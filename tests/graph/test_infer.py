"""Shape and dtype inference: broadcasting, guards of symbolic sizes, and errors."""

from __future__ import annotations

import numpy as np
import pytest

import passkit as pk
from passkit.errors import DTypeError, ShapeError


@pytest.mark.parametrize(
    ("a", "b"),
    [((), (3,)), ((2, 1), (1, 3)), ((4, 1, 5), (3, 1)), ((0,), (1,)), ((2, 0), (1, 1))],
)
def test_broadcasting_is_numpys(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    """Shapes align at their ends and ones stretch, to zero too."""
    assert (pk.var("a", a) + pk.var("b", b)).shape == np.broadcast_shapes(a, b)


def test_symbolic_sizes_that_must_be_equal_become_guards() -> None:
    """A number takes the place of a symbolic size, and a call checks that they are equal."""
    y = pk.var("a", ("n", 3)) + pk.var("b", (4, 3))
    guards = pk.ApplyPasses(pk.Graph([y]), "InferShape").attrs["shape_guards"]

    assert y.shape == (4, 3)
    assert [(str(a), str(b)) for a, b, _ in guards] in ([("n", "4")], [("4", "n")])
    with pytest.raises(ShapeError, match=r"got \(5, 3\) and \(4, 3\)"):
        pk.interpret(pk.Graph([y]), {"a": np.ones((5, 3), "f"), "b": np.ones((4, 3), "f")})


def test_shapes_that_do_not_broadcast_are_refused() -> None:
    """The message has both shapes and says what to insert."""
    with pytest.raises(ShapeError, match=r"add 'y' needs .* got \(2, 3\) and \(4\,?\); insert"):
        pk.ops.add(pk.var("a", (2, 3)), pk.var("b", (4,)), name="y")


def test_inputs_of_different_dtypes_are_refused() -> None:
    """Operators need inputs of one dtype, and the message names the cast."""
    with pytest.raises(DTypeError, match="float32.* and float64; .*'float64'"):
        pk.ops.add(pk.var("a", (2,)), pk.var("b", (2,), "float64"))
    same = pk.register_op("infer_same", num_inputs=2)
    with pytest.raises(DTypeError, match="infer_same needs inputs of one dtype, got int32 and in"):
        same(pk.var("a", (2,), "int32"), pk.var("b", (2,), "int64"))
