"""Signatures and documentation of operators, derived from their attributes."""

from __future__ import annotations

import functools
import inspect
import pickle
import pydoc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.ast import dt

DTYPES = (
    "float32",
    "float64",
    "float16",
    "bfloat16",
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "complex64",
    "complex128",
)


def standard_operators() -> list[pk.Op]:
    """Return the operators that modules of `pk.ops` register."""
    folder = str(Path(pk.ops.__file__).parent)
    operators = [pk.get_op(name) for name in pk.list_ops()]
    return [op for op in operators if op.place.startswith(folder)]


def text(name: str) -> str:
    """Return the text that ``help(pk.ops.NAME)`` prints, without bold letters."""
    return pydoc.plain(pydoc.render_doc(getattr(pk.ops, name)))


def signature(name: str) -> inspect.Signature:
    """Return the signature of an operator."""
    return inspect.signature(getattr(pk.ops, name))


def test_an_operator_describes_itself() -> None:
    """Name, module and signature are those of the operator; the class keeps its own."""
    op = pk.ops.softmax

    assert (op.__name__, op.__qualname__, op.__module__) == ("softmax", "softmax", "passkit.ops")
    assert getattr(pk.ops, op.__name__) is op
    assert str(inspect.signature(op)).startswith(
        "(x: OperandLike, /, axis: int | Sequence[int] | None"
    )
    assert "name" in inspect.signature(pk.Op).parameters
    assert inspect.getdoc(pk.Op).startswith("A registered operator")  # type: ignore[union-attr]
    assert pk.Op.__module__ == "passkit.graph.op"
    assert pickle.loads(pickle.dumps(op)) is op


def test_help_of_an_operator_is_complete() -> None:
    """Help has call, text, parameters and defaults, dtypes, shapes, an example and other names."""
    shown = text("reduce_sum")

    assert "reduce_sum(x: OperandLike, /, axis: int | Sequence[int] | None = None" in shown
    assert "the sum over axis; 0 of no elements" in shown
    assert "keepdims (bool, default False): keep reduced axes with length 1" in shown
    assert "Dtypes: signed integers, unsigned integers, floats" in shown
    assert "Example: reduce_sum(float32[4,6]) -> float32[]" in shown
    assert "NumPy: numpy.sum" in shown
    assert "TensorFlow: tf.reduce_sum" in shown
    assert "Also called: arctan2" in text("atan2")
    assert "Shape: the inputs broadcast as in NumPy." in text("add")
    assert "Shape: that of the input." in text("exp")
    assert "complex -> bool." in text("equal")
    assert "(int, required): number of elements" in text("random_permutation")


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
def test_signatures_show_inputs_and_parameters(name: str, expected: str) -> None:
    """Inputs go by position or name; parameters follow them or go by keyword."""
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


def example(op: pk.Op, dtype: Any) -> tuple[list[Any], dict[str, Any]] | None:
    """Return inputs and parameters of a call that works, or None if it refuses the dtype.

    The call is that of FExample, by default of variables of shape (4, 6).
    """
    if op.has_attr("FExample"):
        inputs, params = op.get_attr("FExample")(dtype)
    else:
        names = [n for n in inspect.signature(op).parameters if n not in ("name", "control")]
        names = [n for n in names if n not in op.params]
        if op.has_attr("FListInputNames"):
            names = op.get_attr("FListInputNames")(op.params)
        inputs = [pk.var(n, (4, 6), dtype) for n in names]
        params = {}
    try:
        op(*inputs, **params)
    except pk.DTypeError:
        return None
    return list(inputs), dict(params)


def test_every_standard_operator_is_documented() -> None:
    """Each parameter has a type and a meaning, and signatures accept the example calls."""
    operators = standard_operators()
    assert len(operators) > 300
    for op in operators:
        documented = op.get_attr("TParameters", {})
        assert set(documented) == set(op.params), op.name
        assert all(kind != "Any" and meaning for kind, meaning in documented.values()), op.name
        calls = (example(op, dt.dtype_of(d)) for d in DTYPES)
        inputs, params = next(call for call in calls if call is not None)
        leading = [params.pop("equation")] if "equation" in params else []
        inspect.signature(op).bind(*leading, *inputs, **params)


def test_numpy_counterparts_exist() -> None:
    """NumPy has the function that TCounterparts names for an operator."""
    if np.lib.NumpyVersion(np.__version__) < "2.2.0":
        pytest.skip("matvec and vecmat are new in NumPy 2.2")
    counterparts = [op.get_attr("TCounterparts", {}) for op in standard_operators()]
    functions = [names["NumPy"] for names in counterparts if "NumPy" in names]
    assert len(functions) > 100
    for function in functions:
        functools.reduce(getattr, function.split(".")[1:], np)


def test_custom_operators_are_described_by_their_attributes() -> None:
    """Input names come from FCodeGen, types from defaults or TParameters, text from the doc."""
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
def test_parameters_of_any_name_do_not_break_help(params: dict[str, Any]) -> None:
    """Names of parameters may equal those of inputs or be no identifiers."""
    op = pk.register_op(f"odd_{len(params)}_{next(iter(params))}", params=params, doc="odd")

    assert next(iter(inspect.signature(op).parameters)).startswith("x")
    assert "odd" in str(op.__doc__)


def test_help_of_an_operator_whose_example_fails_has_no_dtypes() -> None:
    """An attribute function that raises leaves help without dtypes and example."""

    def refuse(node: Any, *dtypes: Any) -> Any:
        raise ValueError("no")

    op = pk.register_op("failing_described", doc="fails").set_attr("FInferType", refuse)

    assert "Dtypes" not in str(op.__doc__)
    assert str(pk.get_op("failing_described").__doc__).endswith("fails")
