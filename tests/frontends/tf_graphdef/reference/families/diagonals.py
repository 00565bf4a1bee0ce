"""Cases of matrix diagonals and bands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.frontends.tf_graphdef.reference.case import Case
from tests.frontends.tf_graphdef.reference.drawing import draw

X = draw(1, (3, 4, 5))
ALIGNS = ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT")


def cases(tf: Any) -> Iterator[Case]:
    """Yield cases of one diagonal, then of several."""
    yield from _diagonals(tf)
    yield from _bands(tf)


def _diagonals(tf: Any) -> Iterator[Case]:
    raw = tf.raw_ops
    yield Case(
        "Diag", "of a matrix", lambda x: raw.Diag(diagonal=x), {"x": X[:, :2, 0]}, free=False
    )
    yield Case("Diag", "of a vector", lambda x: raw.Diag(diagonal=x), {"x": X[0, 0]})
    yield Case(
        "DiagPart",
        "of rank 4",
        lambda x: raw.DiagPart(input=x),
        {"x": draw(1, (2, 3, 2, 3))},
        free=False,
    )
    yield Case(
        "DiagPart", "of a matrix", lambda x: raw.DiagPart(input=x), {"x": X[0, :, :4]}, free=False
    )
    yield Case("MatrixDiag", "", lambda x: raw.MatrixDiag(diagonal=x), {"x": X[:, 0]})
    for name, x in (("square", X[:, :4, :4]), ("wide", X), ("high", X[:, :, :2])):
        yield Case("MatrixDiagPart", name, lambda x: raw.MatrixDiagPart(input=x), {"x": x})
        length = min(x.shape[1:])
        yield Case(
            "MatrixSetDiag",
            name,
            lambda x, d: raw.MatrixSetDiag(input=x, diagonal=d),
            {"x": x, "d": draw(2, (3, length))},
            free=False,
        )
    for low, high in ((0, 0), (-1, -1), (1, 2), (2, 1), (-1, 0), (0, -1), (3, 5)):
        yield Case(
            "MatrixBandPart",
            f"{low} {high}",
            lambda x, a=low, b=high: raw.MatrixBandPart(input=x, num_lower=a, num_upper=b),
            {"x": X},
        )
    for dtype in ("int32", "bool", "float16"):
        yield Case(
            "MatrixBandPart",
            "causal mask",
            lambda x: tf.linalg.band_part(x, -1, 0),
            {"x": draw(1, (2, 4, 4), dtype)},
        )


def _bands(tf: Any) -> Iterator[Case]:
    raw = tf.raw_ops
    matrix = draw(3, (2, 3, 4))
    for k in ((0, 0), (1, 1), (-2, -2)):
        rows = draw(4, (2, 3))
        yield Case(
            "MatrixDiagV3",
            f"k={k[0]}",
            lambda x, k=k: raw.MatrixDiagV3(
                diagonal=x, k=k[0], num_rows=-1, num_cols=-1, padding_value=0.0, align="LEFT_RIGHT"
            ),
            {"x": rows},
        )
        yield Case(
            "MatrixDiagPartV3",
            f"k={k[0]}",
            lambda x, k=k: raw.MatrixDiagPartV3(
                input=x, k=k[0], padding_value=0.0, align="LEFT_RIGHT"
            ),
            {"x": matrix},
        )
    for index, k in enumerate(((-1, 1), (-2, 0), (0, 2), (1, 3), (-2, 3))):
        count = k[1] - k[0] + 1
        longest = min(3 + min(k[1], 0), 4 - max(k[0], 0))
        band = draw(5, (2, count, longest))
        for align in ALIGNS if index == 4 else ALIGNS[index % 4 : index % 4 + 1]:
            mark = f"k={k[0]}..{k[1]} {align}"
            yield Case(
                "MatrixDiagPartV3",
                mark,
                lambda x, k=k, a=align: raw.MatrixDiagPartV3(
                    input=x, k=k, padding_value=9.0, align=a
                ),
                {"x": matrix},
            )
            yield Case(
                "MatrixDiagV3",
                mark,
                lambda x, k=k, a=align: raw.MatrixDiagV3(
                    diagonal=x, k=k, num_rows=3, num_cols=4, padding_value=7.0, align=a
                ),
                {"x": band},
            )
            yield Case(
                "MatrixSetDiagV3",
                mark,
                lambda x, d, k=k, a=align: raw.MatrixSetDiagV3(input=x, diagonal=d, k=k, align=a),
                {"x": matrix, "d": band},
                free=False,
            )
        yield Case(
            "MatrixDiagPartV2",
            f"k={k[0]}..{k[1]}",
            lambda x, k=k: raw.MatrixDiagPartV2(input=x, k=k, padding_value=9.0),
            {"x": matrix},
        )
        yield Case(
            "MatrixDiagV2",
            f"k={k[0]}..{k[1]}",
            lambda x, k=k: raw.MatrixDiagV2(
                diagonal=x, k=k, num_rows=3, num_cols=4, padding_value=7.0
            ),
            {"x": band},
        )
        yield Case(
            "MatrixSetDiagV2",
            f"k={k[0]}..{k[1]}",
            lambda x, d, k=k: raw.MatrixSetDiagV2(input=x, diagonal=d, k=k),
            {"x": matrix, "d": band},
            free=False,
        )
    for rows, columns in ((-1, -1), (4, -1), (-1, 4), (3, 6)):
        yield Case(
            "MatrixDiagV3",
            f"k=1 {rows}x{columns}",
            lambda x, r=rows, c=columns: raw.MatrixDiagV3(
                diagonal=x, k=1, num_rows=r, num_cols=c, padding_value=0.0
            ),
            {"x": draw(4, (2, 3))},
        )
    yield Case(
        "MatrixSetDiagV3",
        "tf.linalg.set_diag",
        lambda x: tf.linalg.set_diag(x, tf.zeros(tf.shape(x)[:-1])),
        {"x": draw(3, (2, 3, 3))},
    )
    yield Case(
        "MatrixDiagPartV3", "tf.linalg.diag_part", lambda x: tf.linalg.diag_part(x), {"x": matrix}
    )
