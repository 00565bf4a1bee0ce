"""Descriptions of operators: signatures, documentation, and what they are derived from."""

from __future__ import annotations

import functools
import inspect
import pickle
import pydoc
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.cli.page import library
from passkit.graph import describe
from passkit.graph.op import TCounterparts, TParameters, get_op, list_ops
from passkit.values.dtype import dtype_of

STANDARD = [op for ops in library().values() for op in ops]


def text(name: str) -> str:
    """What ``help(pk.ops.NAME)`` prints, without bold letters."""
    return pydoc.plain(pydoc.render_doc(getattr(pk.ops, name)))


def signature(name: str) -> inspect.Signature:
    """The signature of an operator."""
    return inspect.signature(getattr(pk.ops, name))


def test_an_operator_describes_itself() -> None:
    """Name, module and signature are those of the operator; the class keeps its own."""
    op = pk.ops.softmax

    assert (op.__name__, op.__qualname__, op.__module__) == ("softmax", "softmax", "passkit.ops")
    assert getattr(pk.ops, op.__name__) is op
    assert str(inspect.signature(op)).startswith("(x: Operand, /, axis: int | Sequence[int] | None")
    assert "name" in inspect.signature(pk.Op).parameters
    assert inspect.getdoc(pk.Op).startswith("A registered operator")  # type: ignore[union-attr]
    assert pk.Op.__module__ == "passkit.graph.op"
    assert pickle.loads(pickle.dumps(op)) is op


def test_help_tells_all_that_is_known() -> None:
    """Call, text, parameters with defaults and meaning, dtypes, an example and other names."""
    shown = text("reduce_sum")

    assert "reduce_sum(x: Operand, /, axis: int | Sequence[int] | None = None" in shown
    assert "the sum; 0 of nothing" in shown
    assert "keepdims (bool, default False): keep reduced axes with length 1" in shown
    assert "Dtypes: signed integers, unsigned integers, floats" in shown
    assert "Example: reduce_sum(float32[4,6]) -> float32[]" in shown
    assert "NumPy: numpy.sum" in shown
    assert "TensorFlow: tf.reduce_sum" in shown
    assert "Also called: arctan2" in text("atan2")
    assert "Shape: the inputs broadcast as in NumPy." in text("add")
    assert "Shape: that of the input." in text("exp")
    assert "complex -> bool." in text("equal")
    assert "(int, required): how many" in text("random_permutation")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("where", "condition / x / y /"),
        ("gather", "x indices=<new variable> axis=0 batch_dims=0 mode='clip'"),
        ("concat", "*x axis=0*"),
        ("einsum", "equation *x"),
        ("rms_norm", "data gamma=<new variable> axis=-1* epsilon=1e-06* scale=True*"),
        ("scatter_nd", "indices updates shape"),
        ("random_integers", "key shape=() low=0 high* dtype='int32'*"),
        ("layer_norm", "data gamma=<new variable> beta=<new variable> axis=-1*"),
        ("arange", "start stop=None step=1 dtype=None"),
    ],
)
def test_kinds_of_arguments(name: str, expected: str) -> None:
    """Inputs by position or by name, any number of them, parameters behind them or by keyword."""
    marks = {
        inspect.Parameter.POSITIONAL_ONLY: "{} /",
        inspect.Parameter.VAR_POSITIONAL: "*{}",
        inspect.Parameter.KEYWORD_ONLY: "{}*",
    }
    shown = [
        marks.get(p.kind, "{}").format(
            p.name if p.default is p.empty else f"{p.name}={p.default!r}"
        )
        for key, p in signature(name).parameters.items()
        if key not in ("name", "control")
    ]

    assert " ".join(shown).startswith(expected)


def test_every_standard_operator_is_documented() -> None:
    """Each parameter has a type and a meaning; a call that signatures allow is one that works."""
    for op in STANDARD:
        documented = TParameters.get(op.name, {})
        assert set(documented) == set(op.params), op.name
        assert all(kind != "Any" and meaning for kind, meaning in documented.values()), op.name
        found = (describe.example(op, dtype_of(d)) for d in ("float32", *describe.DTYPES))
        call = next(c for c in found if c is not None)
        shown, params = describe.signature(op), dict(call.params)
        leading = [params.pop("equation")] if "equation" in params else []
        shown.bind(*leading, *call.inputs, **params)


def test_counterparts_exist() -> None:
    """What an operator is called in NumPy is there, and every row is of an operator."""
    if np.lib.NumpyVersion(np.__version__) < "2.2.0":
        pytest.skip("matvec and vecmat are new in NumPy 2.2")
    for name, row in TCounterparts.rows.items():
        assert name in list_ops()
        if "NumPy" in row.value:
            functools.reduce(getattr, row.value["NumPy"].split(".")[1:], np)


def test_an_operator_of_your_own() -> None:
    """Input names come from FCodeGen, types from defaults or TParameters, meaning from the doc."""
    op = pk.register_op(
        "blend_described", 2, params={"rate": 0.5, "fast": False}, doc="rate old + (1 - rate) new"
    )
    op.set_attr("FCodeGen", lambda node, old, new: old * node.params["rate"] + new)
    op.set_attr("TOpPattern", pk.OpPattern.BROADCAST)
    op.set_attr("TParameters", {"rate": ("float", "weight of old")})

    assert list(signature("blend_described").parameters)[:4] == ["old", "new", "rate", "fast"]
    assert "rate (float, default 0.5): weight of old" in text("blend_described")
    assert "fast (bool, default False)\n" in text("blend_described")
    assert "rate old + (1 - rate) new" in text("blend_described")
    assert "float32" in text("blend_described").partition("Dtypes: ")[2]


@pytest.mark.parametrize("params", [{"x": 1}, {"lambda": 1, "with-dash": 2}, {"name": "n"}])
def test_odd_names_of_parameters(params: dict[str, Any]) -> None:
    """Names that clash with inputs, or that Python cannot write, do not break help."""
    op = pk.register_op(f"odd_{len(params)}_{next(iter(params))}", params=params, doc="odd")

    assert next(iter(describe.signature(op).parameters)).startswith("x")
    assert "odd" in describe.documentation(op)


def test_an_example_that_fails_costs_only_its_lines() -> None:
    """A rule that raises leaves help without dtypes."""

    def refuse(node: Any, *dtypes: Any) -> Any:
        raise ValueError("no")

    op = pk.register_op("failing_described", doc="fails").set_attr("FInferType", refuse)

    assert "Dtypes" not in describe.documentation(op)
    assert get_op("failing_described").__doc__.endswith("fails")  # type: ignore[union-attr]
