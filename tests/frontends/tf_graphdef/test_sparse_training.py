"""Sparse gradients: equal indices add up, and optimizers change only the indexed rows."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.errors import DTypeError, ModelError, PasskitError, ShapeError
from passkit.frontends import tf_graphdef
from tests.frontends.tf_graphdef.internals import open_checkpoint
from tests.frontends.tf_graphdef.models import const, model, node, placeholder
from tests.frontends.tf_graphdef.mutations import changed_message
from tests.frontends.tf_graphdef.reference.training import CHECKPOINT, STEPS
from tests.frontends.tf_graphdef.test_saved_model import SAVED
from tests.frontends.tf_graphdef.test_training import fixtures, session_with_initial_values
from tests.pace import within

RATE, KEEP = np.float32(0.5), np.float32(0.25)


def _variable(name: str, *shape: int | None, **attrs: Any) -> Any:
    return node("VarHandleOp", name, dtype=np.dtype("float32"), shape=shape, **attrs)


def momentum(*nodes: Any, rows: int = 5) -> Any:
    """Return a table, its momentum, and a step by gradients of looked up rows."""
    masks = {"shrink_axis_mask": 1}
    return model(
        _variable("w", rows, 2),
        _variable("a", rows, 2),
        _variable("flat"),
        placeholder("at", None, dtype="int64"),
        placeholder("g", None, 2),
        const("rate", RATE),
        const("keep", KEEP),
        *(const(name, [k]) for k, name in enumerate(("zero", "one", "two"))),
        const("axis", 0),
        node("Unique", "u", "at"),
        node("Unique", "other", "at"),
        node("Shape", "shape", "u"),
        node("StridedSlice", "many", "shape", "zero", "one", "one", **masks),
        node("Size", "size", "other"),
        node("UnsortedSegmentSum", "sum", "g", "u:1", "many"),
        node("ResourceSparseApplyMomentum", "step", "w", "a", "rate", "sum", "u", "keep"),
        *nodes,
    )


def session_after_one_step(graph: Any, at: Any, g: Any) -> tf_graphdef.ModelSession:
    """Return a session after one step that starts from ones."""
    session = tf_graphdef.ModelSession(graph, target="interpret")
    session.run("set")
    session.run("step", {"at:0": at, "g:0": g})
    return session


def _set(rows: int = 5) -> list[Any]:
    ones = const("ones", np.ones((rows, 2), "f"))
    puts = [node("AssignVariableOp", f"put_{v}", v, "ones") for v in "wa"]
    return [ones, *puts, node("NoOp", "set", "^put_w", "^put_a")]


def test_only_named_rows_change_and_equal_indices_add_up() -> None:
    """Rows and momentum equal NumPy, for zero, one and many indices by one compiled run."""
    shapes = {"at": ("n",), "g": ("n", 2)}
    session = tf_graphdef.ModelSession(momentum(*_set()), shapes, target="interpret")
    for at in ([], [2], [4, 4, 4], [3, 0, 3, 1, 0]):
        session.run("set")
        g = np.arange(2 * len(at), dtype="f").reshape(-1, 2) - 3
        session.run("step", {"at:0": np.array(at, "int64"), "g:0": g})

        w, a = np.ones((2, 5, 2), "f")
        for row in set(at):
            a[row] = KEEP * a[row] + g[np.array(at) == row].sum(axis=0)
            w[row] -= RATE * a[row]
        np.testing.assert_allclose(session.state["w"], w, rtol=1e-6)
        np.testing.assert_allclose(session.state["a"], a, rtol=1e-6)
    assert session.num_compiled_runs == 2


def test_memory_is_linear_in_the_number_of_indices() -> None:
    """Equal indices are found by sorting, not by a square matrix."""
    rng = np.random.default_rng(0)
    at, g = rng.integers(0, 50_000, 100_000), rng.standard_normal((100_000, 2), "f")
    with within(3):
        session = session_after_one_step(momentum(*_set(50_000), rows=50_000), at, g)

    a = np.ones((50_000, 2), "f")
    a[at] = KEEP
    np.add.at(a, at, g)
    np.testing.assert_allclose(session.state["a"], a, rtol=1e-4, atol=1e-4)


def test_arithmetic_on_rows_of_distinct_indices() -> None:
    """Rows that are gathered and expanded again, and arithmetic on them, equal NumPy."""
    graph = momentum(
        *_set(),
        const("whole", np.arange(10, dtype="f").reshape(5, 2)),
        node("GatherV2", "rows", "whole", "u", "axis"),
        node("Square", "squares", "rows"),
        node("Mul", "half", "squares", "rate"),
        node("Sub", "less", "half", "rows"),
        node("GatherV2", "back", "less", "u:1", "axis"),
        node("GatherV2", "same", "u", "u:1", "axis"),
        node("Identity", "passed", "u"),
        node("Unique", "twice", "passed"),
        node("Size", "known", "twice"),
        node("UnsortedSegmentSum", "again", "g", "twice:1", "known"),
        node("ResourceScatterUpdate", "put", "w", "twice", "again"),
    )
    at, g = np.array([3, 1, 3]), np.array([[1, 2], [3, 4], [5, 6]], "f")
    session = session_after_one_step(graph, at, g)

    back, same = session.run(["back:0", "same:0"], {"at:0": at})
    rows = np.arange(10, dtype="f").reshape(5, 2)[at]
    np.testing.assert_allclose(back, rows * rows / 2 - rows)
    np.testing.assert_array_equal(same, at)
    session.run(["set", "put"], {"at:0": at, "g:0": g})
    np.testing.assert_array_equal(session.state["w"][[3, 1, 0]], [[6, 8], [3, 4], [1, 1]])


def test_known_distinct_indices_need_no_unique() -> None:
    """Constant indices that are distinct need no Unique."""
    graph = momentum(
        *_set(),
        const("once", [4, 0]),
        const("two_rows", np.ones((2, 2), "f")),
        node("ResourceSparseApplyAdagrad", "known", "w", "a", "rate", "two_rows", "once"),
    )
    session = tf_graphdef.ModelSession(graph, target="interpret")
    session.run("set")
    session.run("known")
    np.testing.assert_allclose(session.state["a"][:, 0], [2, 1, 1, 1, 2])


REFUSED = [
    (node("Sum", "t", "u", "axis"), "Sum 't' needs an array, got 'u', the distinct elements"),
    (
        node("Cast", "t", "many", DstT=np.dtype("float32")),
        "got 'many', the number of distinct elements",
    ),
    (node("Sum", "t", "sum", "axis"), "Sum 't' needs an array, got 'sum', a row for each"),
    (node("Shape", "t", "sum"), "Shape 't' needs an array, got 'sum', a row for each"),
    (node("Size", "t", "u:1"), "Size 't' needs an array, got 'u:1', the positions"),
    (node("Unique", "t", "g"), r"Unique 't' needs a vector of integers.* got float32\(3, 2\)"),
    (
        node("UnsortedSegmentSum", "t", "g", "u:1", "size"),
        r"same Unique, got ids 'u:1' \(the positions.* number 'size' \(the number",
    ),
    (node("UnsortedSegmentSum", "t", "g", "u:1", "axis"), r"number 'axis' \(an array\)"),
    (
        node("StridedSlice", "t", "shape", "one", "two", "one", shrink_axis_mask=1),
        r"StridedSlice 't' needs to select element 0 of 'shape', got \[1:2\]",
    ),
    (
        node("StridedSlice", "t", "u", "zero", "one", "one"),
        "needs an array, got 'u', the distinct",
    ),
    (node("GatherV2", "t", "g", "u", "bad"), "needs axis 0 .* indices 'u' .* got axis 1"),
    (node("GatherV2", "t", "g", "u:1", "axis"), "needs an array, got 'u:1', the positions"),
    (node("Mul", "t", "sum", "g"), r"'t' reads 'sum', .* got 'g' of shape \(3, 2\)"),
    (node("Mul", "t", "sum", "u"), "Mul 't' needs an array, got 'u', the distinct"),
    (node("Mul", "t", "u", "rate"), "Mul 't' needs an array, got 'u', the distinct"),
    (
        node("ResourceScatterAdd", "t", "w", "other", "sum"),
        r"indices 'other' \(the distinct elements.*, got 'sum' \(a row for .*same Unique",
    ),
    (node("ResourceScatterAdd", "t", "w", "at", "sum"), "needs an array, got 'sum', a row for"),
    (
        node("ResourceScatterAdd", "t", "flat", "u", "sum"),
        r"needs a variable with rows, got 'flat' of shape \(\)",
    ),
    (
        node("ResourceSparseApplyAdagrad", "t", "w", "a", "rate", "g", "at"),
        "variable 'w', .* distinct, got 'at', which depends on .*; remove repeated indices by",
    ),
    (
        node("ResourceSparseApplyAdagrad", "t", "w", "a", "rate", "g", "twice"),
        r"rows of the variable 'w', .* to be distinct, got 'twice' = \[1, 1, 2\]; remove repeated",
    ),
    (
        node("ResourceSparseApplyAdagrad", "t", "w", "a", "rate", "g", "rate"),
        r"rows of the variable 'w' and needs a vector of integers as .*, got float32\(\); reshape",
    ),
    (
        node("ResourceSparseApplyAdagrad", "t", "w", "a", "zero", "sum", "u"),
        r"needs float32\(\) as lr for the variable 'w', got int32\(1,\)",
    ),
    (
        node("ResourceSparseApplyAdagrad", "t", "w", "flat", "rate", "sum", "u"),
        r"got 'w' of float32\(5, 2\) and 'flat' of float32\(\)",
    ),
]


@pytest.mark.parametrize(("last", "message"), REFUSED)
def test_other_uses_of_unique_are_refused(last: Any, message: str) -> None:
    """The error says what results of Unique are and where they may be used."""
    graph = momentum(const("bad", 1), const("twice", [1, 1, 2]), last)
    session = tf_graphdef.ModelSession(graph, target="interpret")

    with pytest.raises(ModelError, match=message):
        session.run(["t:0"], {"at:0": np.zeros(3, "int64"), "g:0": np.zeros((3, 2), "f")})


def test_first_positions_checks_its_input() -> None:
    """The operator refuses other inputs than vectors of integers."""
    with pytest.raises(ShapeError, match=r"first_positions needs a vector, got \(2, 3\)"):
        pk.ops.first_positions(pk.var("x", (2, 3), "int64"))
    with pytest.raises(DTypeError, match="needs integers as elements, got float32"):
        pk.ops.first_positions(pk.var("x", (2,), "float32"))


@pytest.mark.parametrize("part", range(2))
def test_mutated_graphs_give_errors_or_steps(part: int) -> None:
    """Mutated graphs raise nothing but PasskitError, and soon."""
    assert count_of_runs(range(30 * part, 30 * part + 30)) > 2


def count_of_runs(seeds: Any) -> int:
    """Return how many of the mutated graphs of these seeds run."""
    data = momentum(*_set()).SerializeToString()
    feeds = {"at:0": np.array([1, 1, 0]), "g:0": np.ones((3, 2), "f")}
    count = 0
    for seed in seeds:
        with within(2):
            try:
                changed = changed_message("GraphDef", data, random.Random(seed))
                session = tf_graphdef.ModelSession(changed, target="interpret")
                session.run("set")
                session.run("step", feeds)
                count += 1
            except PasskitError as error:
                assert len(str(error)) < 10_000
    return count


# Checkpoints.


def test_training_continues_from_a_tensorflow_checkpoint() -> None:
    """All variables and slots are restored.

    The next losses equal those of uninterrupted training.
    """
    results = fixtures()["perceptron"]
    session, feeds = session_with_initial_values("perceptron", target="interpret")
    for _ in range(STEPS):
        session.run("train", feeds)
    fresh = tf_graphdef.ModelSession(results.model, target="interpret")

    fresh.restore(CHECKPOINT)

    assert set(fresh.state.arrays) == set(results.after) and not fresh.state.unset
    for name, value in results.after.items():
        np.testing.assert_array_equal(fresh.state[name], value)
    losses = [s.run(["loss:0", "train"], feeds)[0] for s in (session, fresh)]
    np.testing.assert_allclose(*losses, rtol=1e-4)


def test_selected_and_renamed_variables_are_restored() -> None:
    """A list selects variables, a dict maps checkpoint names; names of objects work, too."""
    graph = model(_variable("mean", 8), _variable("middle", 8), _variable("x", 4, shared_name="v"))
    session = tf_graphdef.ModelSession(graph, target="interpret")
    after = fixtures()["perceptron"].after

    session.restore(f"{CHECKPOINT}.index", ["mean"])
    np.testing.assert_array_equal(session.state["mean"], after["mean"])
    assert set(session.state.arrays) == {"mean"}
    session.restore(CHECKPOINT, {"mean": "middle"})
    np.testing.assert_array_equal(session.state["middle"], after["mean"])

    keras = SAVED / "dense/variables/variables"
    bundle = open_checkpoint(keras)
    bias = bundle.array("variables/1/.ATTRIBUTES/VARIABLE_VALUE")
    named = tf_graphdef.ModelSession(model(_variable("sequential/dense/bias", *bias.shape)))
    named.restore(keras)
    np.testing.assert_array_equal(named.state["sequential/dense/bias"], bias)


def test_checkpoints_that_do_not_fit_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All missing or differently shaped variables are named, and none is restored."""
    graph = model(
        _variable("mean", 8), _variable("w1", 8, 11), _variable("w9", 8), _variable("b1", 12)
    )
    graph.node[3].attr["dtype"].type = 2  # float64
    session = tf_graphdef.ModelSession(graph, target="interpret")
    with pytest.raises(ModelError, match="does not fit 3 of the 4 variables") as results:
        session.restore(CHECKPOINT)
    message_text = str(results.value)
    assert "'w1' needs float32(8, 11), got float32(8, 12)" in message_text
    assert "'b1' needs float64(12,), got float32(12,)" in message_text
    assert "'w9' is missing (" in message_text
    assert not session.state.arrays
    with pytest.raises(ModelError, match="has no variable 'means'; did you mean 'mean'"):
        session.restore(CHECKPOINT, ["means"])
    with pytest.raises(ModelError, match="needs at least one variable .* it has 4 variables"):
        session.restore(CHECKPOINT, [])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match=r"'nothing.index', .* cannot be read: No such file"):
        session.restore("nothing")
    with pytest.raises(ModelError, match=r"'gone' cannot be read: No such file.*Saver.save"):
        session.restore("gone/nothing")
    with pytest.raises(ModelError, match="needs 379 bytes, and reading"):
        session.restore(CHECKPOINT, max_nbytes=100)
    data = bytearray(Path(f"{CHECKPOINT}.data-00000-of-00001").read_bytes())
    data[100] ^= 1
    (tmp_path / "p.index").write_bytes(Path(f"{CHECKPOINT}.index").read_bytes())
    (tmp_path / "p.data-00000-of-00001").write_bytes(data)
    whole = tf_graphdef.ModelSession(fixtures()["perceptron"].model)
    with pytest.raises(ModelError, match="were changed after they were written"):
        whole.restore(tmp_path / "p")
    assert not whole.state.arrays
