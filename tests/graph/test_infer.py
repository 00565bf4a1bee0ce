"""Inference at a node: broadcasting, equalities that only a call can check, dtypes."""

from __future__ import annotations

import numpy as np
import pytest

import passkit as pk
from passkit.errors import DTypeError, ShapeError
from passkit.graph.infer import collect_guards


@pytest.mark.parametrize(
    ("a", "b"),
    [((), (3,)), ((2, 1), (1, 3)), ((4, 1, 5), (3, 1)), ((0,), (1,)), ((2, 0), (1, 1))],
)
def test_broadcasting_is_numpys(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    """Shapes align at their ends and ones stretch, to zero too."""
    assert (pk.var("a", a) + pk.var("b", b)).shape == np.broadcast_shapes(a, b)


def test_unknown_sizes_meet_known_ones() -> None:
    """A size that is not known takes the known one's place; a call will check that they agree."""
    with collect_guards() as guards:
        y = pk.var("a", ("n", 3)) + pk.var("b", (4, 3))

    assert y.shape == (4, 3)
    assert [(str(a), str(b)) for a, b, _ in guards] in ([("n", "4")], [("4", "n")])


def test_shapes_that_do_not_fit() -> None:
    """The message has both shapes and the way out."""
    with pytest.raises(ShapeError, match=r"add 'y' needs .* got \(2, 3\) and \(4\,?\); insert"):
        pk.ops.add(pk.var("a", (2, 3)), pk.var("b", (4,)), name="y")


def test_dtypes_that_do_not_fit() -> None:
    """Operators demand equal dtypes, and name the cast that makes them so."""
    with pytest.raises(DTypeError, match="float32.* and float64; .*'float64'"):
        pk.ops.add(pk.var("a", (2,)), pk.var("b", (2,), "float64"))
    same = pk.register_op("infer_same", num_inputs=2)
    with pytest.raises(DTypeError, match="infer_same needs inputs of one dtype, got int32 and in"):
        same(pk.var("a", (2,), "int32"), pk.var("b", (2,), "int64"))
