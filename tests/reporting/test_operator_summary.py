"""Summaries of operators: the reference page follows from planning, and NumPy runs few of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import passkit as pk
from passkit.cli.operator_page import operator_page, operators_by_module
from passkit.errors import RegistryError
from passkit.graph import describe
from passkit.graph.node import Entry
from passkit.graph.op import FExample, Op, get_op
from passkit.reporting import operator_summary
from passkit.reporting.operator_summary import ExecutionKind, OperatorSummary, summarize
from passkit.values.dtype import DType, dtype_of, is_narrow
from tests.ops.specimens import SPECIMENS, Specimen
from tests.raised import ROOT

ROWS = ROOT / "ops/examples.py"
PAGE = ROOT / "docs/operators.md"
OPERATORS = {op.name: op for ops in operators_by_module().values() for op in ops}


def inputs_of(specimen: Specimen) -> tuple[list[str], Mapping[str, Any]]:
    """The first call of a specimen, as ops/examples.py writes inputs: T is the dtype at hand."""
    dtypes = specimen.dtypes()
    dtype = next((d for d in dtypes if d.name == "float32"), dtypes[0])
    trial = specimen.drawn(dtype)[0]
    others = {d.name: specimen.drawn(d)[0].feeds[0] for d in dtypes}
    arrays = next((f for f in trial.feeds if all(a.size for a in f)), trial.feeds[0])
    inputs = []
    for k, a in enumerate(arrays):
        follows = len(others) > 1 and all(f[k].dtype == n for n, f in others.items())
        shape = ",".join(map(str, a.shape))
        inputs.append(f"{'T' if follows else dtype_of(a.dtype).name}[{shape}]")
    return inputs, trial.params


def row(name: str, inputs: Sequence[str], params: Mapping[str, Any]) -> str:
    """A line of ops/examples.py."""
    more = "".join(f", {k}={v!r}" for k, v in params.items())
    return f'example("{name}", "{" ".join(inputs)}"{more})'.replace("'", '"')


def fits(op: Op) -> bool:
    """Whether an operator has an example, or variables of one dtype are one, as in its specimen."""
    try:
        shown = any(describe.example(op, dtype_of(d)) is not None for d in describe.DTYPES)
    except RegistryError:
        return False
    if op.name in FExample.rows or op.name not in SPECIMENS:
        return shown
    specimen = SPECIMENS[op.name][0]
    alike = len(specimen.dtypes()) < 2 or all(i.startswith("T") for i in inputs_of(specimen)[0])
    return shown and alike


def test_every_operator_has_an_example(request: pytest.FixtureRequest) -> None:
    """With --update-golden missing rows are made from the specimens' first calls."""
    for file in sorted((ROOT / "tests/ops").glob("specimen_*.py")):
        import_module(f"tests.ops.{file.stem}")
    missing = [n for n, op in OPERATORS.items() if not fits(op)]
    if missing and request.config.getoption("--update-golden"):
        text = ROWS.read_text()
        start = text.index("\nexample(") + 1
        rows = re.findall(r"^example\(.*?\)$", text[start:], re.M | re.S)
        added = {n: row(n, *inputs_of(SPECIMENS[n][0])) for n in missing if n in SPECIMENS}
        ROWS.write_text(text[:start] + "\n".join(sorted([*rows, *added.values()])) + "\n")
        pytest.fail(f"rows were written for {', '.join(added)}; format the file, and run again")

    assert not missing, f"no example fits {missing}; see ops/examples.py"
    assert not [n for n in FExample.rows if n not in pk.list_ops(aliases=True)]


@cache
def shown(every: bool) -> dict[str, OperatorSummary]:
    """Return the summaries of all operators; unless ``every``, one dtype represents its kind."""
    if every:
        return {name: summarize(op) for name, op in OPERATORS.items()}
    summaries = {}
    for name, op in OPERATORS.items():
        kinds: dict[tuple[str, ...], ExecutionKind] = {}
        with pytest.MonkeyPatch.context() as patch:
            run_once = partial(of_its_kind, kinds, operator_summary.execution_kind)
            patch.setattr(operator_summary, "execution_kind", run_once)
            summaries[name] = summarize(op)
    return summaries


def kind_of(dtype: DType) -> str:
    """Return a key that is equal for dtypes with equivalent plans."""
    if is_narrow(dtype):
        return "narrow"
    if dtype.is_integer and dtype.nbytes < 8:  # a vector holds half as many of 64 bits
        return dtype.kind
    return dtype.name


def of_its_kind(
    known_kinds: dict[tuple[str, ...], ExecutionKind],
    execution_kind: Callable[[Sequence[Entry]], ExecutionKind],
    results: Sequence[Entry],
) -> ExecutionKind:
    """Return how a call runs, planning only the first of several dtypes with equivalent plans."""
    dtypes = [e.dtype for e in (*results, *results[0].node.inputs) if e.dtype is not None]
    kinds = tuple(kind_of(d) for d in dtypes)
    if kinds not in known_kinds:
        known_kinds[kinds] = execution_kind(results)
    return known_kinds[kinds]


@pytest.fixture
def library(request: pytest.FixtureRequest) -> dict[str, OperatorSummary]:
    """The summaries of all operators; with --every-dtype each dtype is planned by itself."""
    options = ("--every-dtype", "--update-golden")
    return shown(any(request.config.getoption(option) for option in options))


def test_the_page_is_fresh(
    golden: Callable[[Path, str], None], library: dict[str, OperatorSummary]
) -> None:
    """docs/operators.md is up to date; --update-golden writes it."""
    golden(PAGE, operator_page(lambda op: library[op.name]))


ORDER = "an order is found by comparing elements as data tells, not by an index map: NumPy sorts"
LAPACK = "matrices are taken apart by LAPACK, through NumPy"
IN_NUMPY = {
    **dict.fromkeys(("sort", "argsort", "top_k", "unique", "first_positions"), ORDER),
    **dict.fromkeys(("median", "quantile", "random_permutation", "shuffle"), f"it sorts; {ORDER}"),
    **dict.fromkeys(("cholesky", "det", "eigh", "eigvalsh", "expm", "inv", "lstsq"), LAPACK),
    **dict.fromkeys(("matrix_rank", "matrix_solve", "matrix_triangular_solve", "pinv"), LAPACK),
    **dict.fromkeys(("qr", "slogdet", "solve", "svd", "svdvals", "triangular_solve"), LAPACK),
    "complex": "no kernel has complex numbers",
    "bitcast": "a kernel has values, and not their bytes",
}
"""Operators of which NumPy may run some dtypes, and why no kernel does."""

REAL = [d for d in describe.DTYPES if not d.startswith("complex")]


def test_numpy_runs_only_operators_with_a_reason(library: dict[str, OperatorSummary]) -> None:
    """NumPy runs real dtypes only of the operators in IN_NUMPY, which has the reasons."""
    left = {
        name: dtypes
        for name, summary in library.items()
        if (dtypes := [d for d in REAL if summary.execution.get(d) is ExecutionKind.NUMPY])
    }
    wrong = {n: d for n, d in left.items() if n not in IN_NUMPY}

    assert not wrong, wrong
    assert set(IN_NUMPY) <= set(left), "kernels run some of these now"


def test_kinds_of_execution_follow_from_planning() -> None:
    """Planning shows whether an operator is fused or run by a library or NumPy."""
    numpy_only = pk.register_op("test_exhibit_numpy", num_inputs=1)
    numpy_only.set_attr("FCompute", lambda node, x: x)
    numpy_only.set_attr("FInferShape", lambda node, shape: shape)
    kinds = {
        name: summarize(get_op(name)).execution["float32"]
        for name in ("add", "matmul", "test_exhibit_numpy", "gru_cell")
    }

    assert kinds == {
        "add": ExecutionKind.FUSED,
        "matmul": ExecutionKind.LIBRARY,
        "test_exhibit_numpy": ExecutionKind.NUMPY,
        "gru_cell": ExecutionKind.LIBRARY,
    }
    assert describe.call_text(get_op("softmax")) == "softmax(x, axis=-1)"
    assert summarize(get_op("add")).gradient in ("rule", "derived")


def test_examples_that_fail_are_refused() -> None:
    """The error of an example that fails, or fits no dtype, names the operator."""
    picky = pk.register_op("test_exhibit_picky", num_inputs=1)

    def refuse(node: Any, dtype: Any) -> Any:
        raise pk.DTypeError("no dtype will do")

    picky.set_attr("FCodeGen", lambda node, x: x).set_attr("FInferType", refuse)
    picky.set_attr("TOpPattern", pk.OpPattern.ELEMWISE)
    with pytest.raises(RegistryError, match="cannot describe operator test_exhibit_picky, because"):
        summarize(picky)
    many = pk.register_op("test_exhibit_many", num_inputs=1, params={"k": 1})
    many.set_attr("FExample", lambda dtype: ([], {}))
    with pytest.raises(RegistryError, match="operator test_exhibit_many fails: .* takes 1"):
        summarize(many)
