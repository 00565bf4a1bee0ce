"""What is saved and loaded again gives what the graph gives: every operator of the library.

The walk is over the registry and its specimens. TensorFlow's own results for the same models are
in docs/tf_save.md, which `reference/saved.py` writes.
"""

from __future__ import annotations

import json

import pytest

import passkit as pk
from passkit.errors import ModelError
from passkit.frontends import tf_graphdef
from passkit.frontends.tf_graphdef.export import graph_def
from passkit.frontends.tf_graphdef.table import TABLE
from tests.frontends.tf_graphdef.reference.case import difference
from tests.frontends.tf_graphdef.reference.saved import (
    CANNOT,
    IN_PART,
    PAGE,
    RESULTS,
    feeds_of,
    page,
)
from tests.ops.specimens import SPECIMENS, Specimen, Trial
from tests.ops.test_values import NAMES, chosen

_LATER = """
Acos Acosh Angle ArgMax ArgMin Asin Asinh Atan Atan2 Atanh AvgPool Bitcast BitwiseAnd BitwiseOr
BitwiseXor Cholesky Complex ComplexAbs Conj Conv2D Conv3D Cosh CumulativeLogsumexp
DepthwiseConv2dNative Digamma DivNoNan Elu Erfc Erfinv FloorMod FusedBatchNormV3 GatherV2 Imag
Invert IsFinite IsInf IsNan LeakyRelu LeftShift Lgamma LogMatrixDeterminant LowerBound
MatrixDeterminant MatrixInverse MatrixSolve MatrixTriangularSolve MaxPool MirrorPad Ndtri NextAfter
OneHot PadV2 Polygamma PopulationCount Qr Range Real ResizeBilinear ResizeNearestNeighbor ReverseV2
RightShift SelfAdjointEigV2 Selu Sinh Softsign Svd Tan TensorScatterAdd TensorScatterMax
TensorScatterMin TensorScatterSub TensorScatterUpdate Tile TopKV2 TruncateDiv TruncateMod
UnsortedSegmentSum UpperBound
"""
NOT_READ = frozenset(_LATER.split())
"""TensorFlow's operators that may be written before `load` reads them."""


def trials(name: str) -> list[tuple[Specimen, Trial]]:
    """Every specimen of an operator, for the first of its dtypes and one more."""
    return [
        (specimen, trial)
        for specimen in SPECIMENS[name]
        for dtype in chosen(specimen, False) or specimen.dtypes()
        for trial in specimen.drawn(dtype)
    ]


def is_read(message: object) -> bool:
    """Whether `load` has all operators of a model; it must have those not listed above."""
    ops = {n.op for n in message.node}  # type: ignore[attr-defined]
    missing = {op for op in ops if op not in TABLE and op != "Placeholder"}
    assert missing <= NOT_READ, f"load does not read {sorted(missing - NOT_READ)}"
    return not missing


@pytest.mark.parametrize("name", [n for n in NAMES if n in SPECIMENS and n not in CANNOT])
def test_saved_and_loaded(name: str) -> None:
    """What comes back has the inputs, but for those of which nothing is read, and the results."""
    for specimen, trial in trials(name):
        graph = pk.Graph(specimen.build(trial, "x"))
        where = f"{name} {dict(trial.params)}"
        try:
            message = graph_def(graph)
        except ModelError:
            assert name in IN_PART, where
            continue
        if not is_read(message):
            continue
        try:
            back = tf_graphdef.load(message)
        except ModelError as error:
            if "read only as arithmetic" in str(error):
                continue
            raise
        feeds, names = feeds_of(graph, trial.feeds[-1]), [n.name for n in back.inputs]
        assert set(names) <= set(feeds), where
        wanted = pk.interpret(graph, feeds)
        found = pk.interpret(back, {name: feeds[name] for name in names})
        for got, want in zip(found, wanted, strict=True):
            assert difference(got, want) <= 1, where


@pytest.mark.parametrize("name", sorted(CANNOT))
def test_what_cannot_be_written_is_refused(name: str) -> None:
    """The operators that have no meaning in TensorFlow are refused by name."""
    specimen, trial = trials(name)[0]

    with pytest.raises(ModelError, match=f"1 node.* of 1 operator.*{name} × 1 \\('{name}'\\)"):
        graph_def(pk.Graph(specimen.build(trial, "x")))


def test_the_page_is_made_of_the_results() -> None:
    """docs/tf_save.md says what TensorFlow gave, and of this version of passkit."""
    results = json.loads(RESULTS.read_text())

    assert PAGE.read_text() == page(results)
    assert set(results["operators"]) - {"digits.pb"} <= set(NAMES)
    assert results["operators"]["digits.pb"]["float32"][:2] == [1, 0]
    assert not [op for op, cells in results["operators"].items() if op not in CANNOT
                and not any(good for good, _, _ in cells.values())]  # fmt: skip
