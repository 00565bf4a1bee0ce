"""Unsupported uses of TensorFlow operators are refused with what was needed and found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.frontends import tf_graphdef
from tests.frontends.tf_graphdef.models import const, model, node, placeholder

FLAGS = np.array([True, False])
BAND = [const("k", [-1, 1]), const("m", -1), const("p", 0.0)]
X = {"x": (None, 3, 5)}
WIDE = {"x": (None, 3, None)}

IMAGES = {"x": (None, 5, 6, 1)}
EIGHT = np.zeros((1, 8), np.float32)


def projected(transforms: Any = EIGHT, size: Any = (4, 4), **how: Any) -> list[Any]:
    """Return a projective image transform."""
    inputs = [const("t", transforms), const("s", size), const("f", 0.0)]
    return [*inputs, node("ImageProjectiveTransformV3", "y", "x", "t", "s", "f", **how)]


REFUSED: dict[str, tuple[dict[str, Any], list[Any], str]] = {
    "offset beyond the rank": (
        X,
        [const("a", 3), const("s", [2, 2]), node("ConcatOffset", "y", "a", "s", "s")],
        r"axis of the shape 's' = \[2, 2\], got 3",
    ),
    "crops of other axes than blocks": (
        X,
        [
            const("b", [1]),
            const("c", [[0, 0], [0, 0]]),
            node("BatchToSpaceND", "y", "x", "b", "c"),
        ],
        r"needs crops of shape \(1, 2\), got 'c' = \[0, 0, 0, 0\]",
    ),
    "paddings in one row": (
        X,
        [const("p", [0, 0]), node("Pad", "y", "x", "p")],
        r"needs paddings of shape \(axes, 2\), got 'p' = \[0, 0\]",
    ),
    "shapes that may not broadcast": (
        X,
        [const("s", [4, 3, 5]), node("Shape", "n", "x"), node("BroadcastArgs", "y", "s", "n")],
        r"sizes known to be equal, got 's' = \[4, 3, 5\] and 'n' = \[x\.0, 3, 5\]",
    ),
    "marks of other axes": (
        X,
        [const("k", FLAGS), node("Reverse", "y", "x", "k")],
        "Reverse 'y' needs a bool for each of 3 axes, got 2",
    ),
    "a diagonal of another length": (
        X,
        [const("d", np.zeros((1, 4), np.float32)), node("MatrixSetDiag", "y", "x", "d")],
        r"MatrixSetDiag 'y' needs diagonals of 3 elements along axis -1, got \(1, 4\)",
    ),
    "three diagonals": (
        X,
        [const("k", [0, 1, 2]), const("p", 0.0), node("MatrixDiagPartV3", "y", "x", "k", "p")],
        r"a lowest and a highest k, got 'k' = \[0, 1, 2\]",
    ),
    "align": (
        X,
        [*BAND, node("MatrixDiagPartV3", "y", "x", "k", "p", align="UP")],
        "one of LEFT_RIGHT, RIGHT_LEFT, LEFT_LEFT, RIGHT_RIGHT, got 'UP'",
    ),
    "matrices of unknown size": (
        WIDE,
        [*BAND, node("MatrixDiagPartV3", "y", "x", "k", "p")],
        r"matrices of a known size, got \(x\.0, 3, x\.2\)",
    ),
    "diagonals outside": (
        X,
        [const("k", [2, 9]), const("p", 0.0), node("MatrixDiagPartV3", "y", "x", "k", "p")],
        "diagonals in the range -2 to 4 of matrices of 3 rows and 5 columns, got 2 to 9",
    ),
    "axes that do not come twice": (
        X,
        [node("DiagPart", "y", "x")],
        r"a shape of two equal halves, got \(x\.0, 3, 5\)",
    ),
    "diagonals of unknown length": (
        WIDE,
        [*BAND, node("MatrixDiagV3", "y", "x", "k", "m", "m", "p")],
        r"diagonals of a known length, got \(x\.0, 3, x\.2\)",
    ),
    "a matrix too small for its diagonals": (
        X,
        [*BAND, const("n", 2), node("MatrixDiagV3", "y", "x", "k", "n", "n", "p")],
        r"diagonals of length 2 for 2 rows and 2 columns, got \(x\.0, 3, 5\)",
    ),
    "a band of another width": (
        X,
        [const("k", [0, 1]), node("MatrixSetDiagV3", "y", "x", "x", "k")],
        r"MatrixSetDiagV3 'y' needs 2 diagonals along axis -2, got \(x\.0, 3, 5\)",
    ),
    "a sum of bools": (
        X,
        [
            const("i", [[0]]),
            const("u", FLAGS[:1]),
            const("s", [4]),
            node("ScatterNd", "y", "i", "u", "s"),
        ],
        "needs updates that are numbers, got bool",
    ),
    "two open sizes": (
        X,
        [const("s", [-1, -1]), const("a", 2), node("SplitV", "y", "x", "s", "a", num_split=2)],
        r"at most one -1, got 's' = \[-1, -1\]",
    ),
    "marks that are no bools": (
        X,
        [const("k", [1, 0, 1]), node("Reverse", "y", "x", "k")],
        r"known bools as its axes, got 'k' = \[1, 0, 1\]",
    ),
    "floats that are cut": (
        X,
        [node("Cast", "y", "x", DstT=np.dtype("float16"), Truncate=True)],
        "Truncate=False, .* got True for a cast of float32 to float16",
    ),
    "bits of another width": (
        X,
        [node("Bitcast", "y", "x", type=np.dtype("int64"))],
        "other than bool, got float32 and int64",
    ),
    "paddings of a vector": (
        X,
        [const("p", [1, 1]), node("Pad", "y", "x", "p")],
        r"paddings of shape \(axes, 2\), got 'p' = \[1, 1\]",
    ),
    "negative paddings": (
        X,
        [const("p", [[0, 0], [0, -1], [0, 0]]), node("Pad", "y", "x", "p")],
        r"paddings of at least 0 for each of 3 axes, got 'p' = \[0, 0, 0, -1, 0, 0\]",
    ),
    "a mode": (
        X,
        [const("p", [[0, 0]] * 3), node("MirrorPad", "y", "x", "p", mode="EDGE")],
        "mode REFLECT or SYMMETRIC, got 'EDGE'",
    ),
    "a layout": (
        X,
        [node("SpaceToDepth", "y", "x", block_size=2, data_format="NCHW_VECT_C")],
        "data_format NHWC or NCHW, got 'NCHW_VECT_C'",
    ),
    "a mean of unknown many": (
        {"x": ("int32", None, 3)},
        [const("k", 0), node("Mean", "y", "x", "k")],
        r"known, positive number of int32 elements for a mean, got x\.0",
    ),
    "coordinates of data": (
        X,
        [node("Where", "y", "x")],
        "known when the model is loaded, .* got 'x', which depends",
    ),
    "a negative number of segments": (
        X,
        [const("i", [0]), const("n", -4), node("UnsortedSegmentSum", "y", "x", "i", "n")],
        r"number of segments from 0 to 2\*\*31 - 1, got -4",
    ),
    "segments by data": (
        {"x": ("int32", None)},
        [node("SegmentSum", "y", "x", "x")],
        "the last one gives the number of rows, got 'x', which depends",
    ),
    "segments that fall": (
        X,
        [const("i", [1, 0]), node("SegmentSum", "y", "x", "i")],
        r"ids of at least 0 in ascending order, got 'i' = \[1, 0\]",
    ),
    "a mean of integers": (
        {"x": ("int32", 2)},
        [const("i", [0, 1]), node("SegmentMean", "y", "x", "i")],
        "needs floats for a mean, got int32",
    ),
    "counts of rank 3": (
        {"x": ("int32", 2, 2, 2)},
        [
            const("n", 4),
            const("w", np.zeros(0, np.float32)),
            node("DenseBincount", "y", "x", "n", "w"),
        ],
        "integers of rank at most 2, got rank 3",
    ),
    "another rank": (
        X,
        [const("i", [0]), node("InTopK", "y", "x", "i", k=1)],
        r"needs 'x' of rank 2, got \(x\.0, 3, 5\)",
    ),
    "another algorithm": (
        {"k": ("uint64", 1), "c": ("uint64", 2)},
        [const("s", [3]), const("a", 2), node("StatelessRandomUniformV2", "y", "s", "k", "c", "a")],
        r"'y' needs the algorithm 1 \(Philox\) or 3 \(automatic\), got 'a' = \[2\]",
    ),
    "a shape that is another": (
        X,
        [node("EnsureShape", "y", "x", shape=(None, 4, 5))],
        r"needs the shape \(\?, 4, 5\), got \(x\.0, 3, 5\)",
    ),
    "a range with an unknown start": (
        X,
        [node("Size", "n", "x"), const("l", 9), const("d", 1), node("Range", "y", "n", "l", "d")],
        r"start, and delta 1.*size, got start 15\*x\.0, limit 9 and delta 1",
    ),
    "a range up to data": (
        {"x": ()},
        [const("s", 0.0), const("d", 1.0), node("Range", "y", "s", "x", "d")],
        r"a delta other than 0, got 's' = \[0\.0\], 'x', which depends .*, 'd' = \[1\.0\]",
    ),
    "a range without end": (
        {"x": ()},
        [
            const("s", 0.0),
            const("l", np.float32(np.inf)),
            const("d", 1.0),
            node("Range", "y", "s", "l", "d"),
        ],
        r"needs finite numbers, got 0\.0, inf and 1\.0",
    ),
    "a way to fill that there is none of": (
        IMAGES,
        projected(fill_mode="MIRROR"),
        "needs the fill_mode to be one of CONSTANT, NEAREST, REFLECT, WRAP, got 'MIRROR'",
    ),
    "a map of another size": (
        IMAGES,
        projected(EIGHT[:, 1:]),
        r"transforms float32\(count, 8\), got float32\(1, 7\)",
    ),
    "images of no size": (
        IMAGES,
        projected(size=[0, 4]),
        r"needs two positive ints as its output_shape, got \[0, 4\]",
    ),
    "images without a map": (
        IMAGES,
        [node("ImageProjectiveTransformV3", "y", "x")],
        r"needs 4 input\(s\), got 1",
    ),
    "a cell without what it gave": (
        IMAGES,
        [node("LSTMBlockCellGrad", "y", "x", "x")],
        "needs 16 inputs, got 2",
    ),
    "windows of a giant size": (
        IMAGES,
        [
            node(
                "MaxPoolWithArgmax",
                "y",
                "x",
                ksize=[1, 2**20, 3 * 2**20, 1],
                strides=[1, 1, 1, 1],
                padding="SAME",
            )
        ],
        "'y', which builds 3,298,534,883,328 positions, needs 13,194,139,533,312 bytes",
    ),
    "images of a giant size": (
        {"x": (None, 2**20, 2**20, 1)},
        [
            node(
                "MaxPoolWithArgmax",
                "y",
                "x",
                ksize=[1, 2, 2, 1],
                strides=[1, 1, 1, 1],
                padding="SAME",
            )
        ],
        "MaxPoolWithArgmax 'y', which builds 1,099,511,627,776",
    ),
    "crops of a giant size": (
        IMAGES,
        [
            const("b", np.zeros((1, 4), np.float32)),
            const("i", [0]),
            const("s", [2**30, 2]),
            node("CropAndResize", "y", "x", "b", "i", "s"),
        ],
        "'y', which builds 1,073,741,824 positions",
    ),
    "projections of a giant size": (
        IMAGES,
        projected(size=[4, 2**30]),
        "'y', which builds 1,073,741,824 positions",
    ),
    "draws of integers": (
        X,
        [
            const("s", [3]),
            const("k", [1, 2]),
            node("StatelessRandomNormal", "y", "s", "k", dtype=np.dtype("int32")),
        ],
        "needs a dtype among float16, bfloat16, float32, float64, got int32",
    ),
    "a range to several limits": (
        WIDE,
        [
            const("s", 0),
            const("d", 1),
            node("Shape", "n", "x"),
            node("Range", "y", "s", "n", "d"),
        ],
        r"Range 'y' needs one integer as its limit, got \[x\.0, 3, x\.2\]",
    ),
    "counts of floats": (
        {"x": (None,)},
        [const("n", 3), const("w", np.zeros(0)), node("DenseBincount", "y", "x", "n", "w")],
        "DenseBincount 'y' needs integers to count, got float32",
    ),
    "several numbers of items": (
        X,
        [
            const("n", [1, 2]),
            node("TensorListReserve", "l", "n", "n", element_dtype=np.dtype("float32")),
            node("TensorListLength", "y", "l"),
        ],
        r"TensorListReserve 'l' needs one integer as its number of elements, got \[1, 2\]",
    ),
    "an index of floats": (
        {"x": (2,), "i": ()},
        [
            const("s", [2]),
            const("n", 3),
            node("TensorListReserve", "l", "s", "n", element_dtype=np.dtype("float32")),
            node("TensorListSetItem", "m", "l", "i", "x"),
            node("TensorListStack", "y", "m", "s"),
        ],
        "TensorListSetItem 'm' needs an integer as its index, got float32",
    ),
    "a gradient of another rank": (
        {"x": (None, 4, 4, 1), "dy": (2,)},
        [
            node(
                "MaxPoolGrad",
                "y",
                "x",
                "x",
                "dy",
                ksize=[1, 2, 2, 1],
                strides=[1, 2, 2, 1],
                padding="VALID",
            )
        ],
        r"must have its shape \(x\.0, 2, 2, 1\), got \(2,\)",
    ),
    "a pool without a window": (
        {"x": (None, 4, 4, 1)},
        [node("AvgPool", "y", "x", strides=[1, 2, 2, 1], padding="VALID")],
        "AvgPool 'y' needs 4 ksize of at least 1, got none",
    ),
    "no number to pad with": (
        X,
        [
            const("p", [[0, 0], [1, 1], [0, 0]]),
            const("v", np.zeros(0)),
            node("PadV2", "y", "x", "p", "v"),
        ],
        r"needs inputs that broadcast together, got .* and \(0,\)",
    ),
    "no numbers on a line": (
        X,
        [const("s", 0.0), const("n", 0), node("LinSpace", "y", "s", "s", "n")],
        "needs a num of at least 1, got 0",
    ),
}
"""Inputs, nodes and what the message says of them."""


@pytest.mark.parametrize("case", REFUSED)
def test_unsupported_uses_are_refused(case: str) -> None:
    """Each error says what was needed and found."""
    inputs, nodes, message = REFUSED[case]
    arguments = []
    for name, shape in inputs.items():
        dtype, *rest = shape if shape and isinstance(shape[0], str) else ("float32", *shape)
        arguments.append(placeholder(name, *rest, dtype=dtype))

    with pytest.raises(pk.PasskitError, match=message):
        tf_graphdef.load(model(*arguments, *nodes))


def test_bitcast_needs_a_type_of_the_same_width() -> None:
    """The error names the dtype of the input."""
    with pytest.raises(pk.DTypeError, match="needs a type of 4 bytes, as float32 has, got int8"):
        pk.ops.bitcast(pk.var("x", (3,)), dtype="int8")
