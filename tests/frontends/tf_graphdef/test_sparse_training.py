"""Gradients that are rows: equal indices add up, optimizers change the named rows alone."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from passkit.errors import DTypeError, ModelError, PasskitError, ShapeError
from passkit.frontends import tf_graphdef
from passkit.frontends.tf_graphdef.checkpoint_bundle import CheckpointBundle
from passkit.frontends.tf_graphdef.proto import budget_for
from passkit.graph.node import var
from passkit.ops import first_positions
from tests.frontends.tf_graphdef.models import const, model, node, placeholder
from tests.frontends.tf_graphdef.mutations import changed_message
from tests.frontends.tf_graphdef.reference.training import CHECKPOINT, STEPS
from tests.frontends.tf_graphdef.test_saved_model import SAVED
from tests.frontends.tf_graphdef.test_training import begun, fixtures
from tests.pace import within

RATE, KEEP = np.float32(0.5), np.float32(0.25)


def _variable(name: str, *shape: int | None, **attrs: Any) -> Any:
    return node("VarHandleOp", name, dtype=np.dtype("float32"), shape=shape, **attrs)


def momentum(*nodes: Any, rows: int = 5) -> Any:
    """A table, its momentum, and a step by gradients of looked up rows."""
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


def stepped(graph: Any, at: Any, g: Any) -> tf_graphdef.Session:
    """A session after one step from ones."""
    session = tf_graphdef.Session(graph, target="interpret")
    session.run("set")
    session.run("step", {"at:0": at, "g:0": g})
    return session


def _set(rows: int = 5) -> list[Any]:
    ones = const("ones", np.ones((rows, 2), "f"))
    puts = [node("AssignVariableOp", f"put_{v}", v, "ones") for v in "wa"]
    return [ones, *puts, node("NoOp", "set", "^put_w", "^put_a")]


def test_only_named_rows_change_and_equal_indices_add_up() -> None:
    """Rows, momentum too, against NumPy; none, one, and many indices by one compiled run."""
    shapes = {"at": ("n",), "g": ("n", 2)}
    session = tf_graphdef.Session(momentum(*_set()), shapes, target="interpret")
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
    assert len(session._plans) == 2


def test_a_hundred_thousand_indices_take_no_square_of_that() -> None:
    """Equal ones are found by sorting."""
    rng = np.random.default_rng(0)
    at, g = rng.integers(0, 50_000, 100_000), rng.standard_normal((100_000, 2), "f")
    with within(3):
        session = stepped(momentum(*_set(50_000), rows=50_000), at, g)

    a = np.ones((50_000, 2), "f")
    a[at] = KEEP
    np.add.at(a, at, g)
    np.testing.assert_allclose(session.state["a"], a, rtol=1e-4, atol=1e-4)


def test_where_a_row_counts_the_others_do_not() -> None:
    """Rows that are looked up once and taken back, and chained arithmetic on them."""
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
    session = stepped(graph, at, g)

    back, same = session.run(["back:0", "same:0"], {"at:0": at})
    rows = np.arange(10, dtype="f").reshape(5, 2)[at]
    np.testing.assert_allclose(back, rows * rows / 2 - rows)
    np.testing.assert_array_equal(same, at)
    session.run(["set", "put"], {"at:0": at, "g:0": g})
    np.testing.assert_array_equal(session.state["w"][[3, 1, 0]], [[6, 8], [3, 4], [1, 1]])


def test_known_indices_that_differ_need_no_unique() -> None:
    """Constants that name a row once each."""
    graph = momentum(
        *_set(),
        const("once", [4, 0]),
        const("two_rows", np.ones((2, 2), "f")),
        node("ResourceSparseApplyAdagrad", "known", "w", "a", "rate", "two_rows", "once"),
    )
    session = tf_graphdef.Session(graph, target="interpret")
    session.run("set")
    session.run("known")
    np.testing.assert_allclose(session.state["a"][:, 0], [2, 1, 1, 1, 2])


REFUSED = [
    (node("Sum", "t", "u", "axis"), "Sum 't' needs an array, and 'u' is the distinct elements"),
    (
        node("Cast", "t", "many", DstT=np.dtype("float32")),
        "'many' is the number of distinct elements",
    ),
    (node("Sum", "t", "sum", "axis"), "Sum 't' needs an array, and 'sum' is a row for each"),
    (node("Shape", "t", "sum"), "Shape 't' needs an array, and 'sum' is a row for each"),
    (node("Size", "t", "u:1"), "Size 't' needs an array, and 'u:1' is the positions"),
    (node("Unique", "t", "g"), r"Unique 't' needs a vector of integers.* got float32\(3, 2\)"),
    (
        node("UnsortedSegmentSum", "t", "g", "u:1", "size"),
        r"adds up by 'u:1' \(the positions.*'size' \(the number .* same Unique",
    ),
    (node("UnsortedSegmentSum", "t", "g", "u:1", "axis"), r"'axis' \(an array\) segments"),
    (
        node("StridedSlice", "t", "shape", "one", "two", "one", shrink_axis_mask=1),
        r"StridedSlice 't' takes \[1:2\] of 'shape', and only element 0",
    ),
    (
        node("StridedSlice", "t", "u", "zero", "one", "one"),
        "needs an array, and 'u' is the distinct",
    ),
    (node("GatherV2", "t", "g", "u", "bad"), "'t' takes from axis 1 at 'u'"),
    (node("GatherV2", "t", "g", "u:1", "axis"), "needs an array, and 'u:1' is the positions"),
    (node("Mul", "t", "sum", "g"), r"'t' joins 'sum', .* with 'g' of shape \(3, 2\)"),
    (node("Mul", "t", "sum", "u"), "Mul 't' needs an array, and 'u' is the distinct"),
    (node("Mul", "t", "u", "rate"), "Mul 't' needs an array, and 'u' is the distinct"),
    (
        node("ResourceScatterAdd", "t", "w", "other", "sum"),
        r"writes 'sum' \(a row for .*\) at 'other' \(the distinct elements.*same Unique",
    ),
    (node("ResourceScatterAdd", "t", "w", "at", "sum"), "needs an array, and 'sum' is a row for"),
    (
        node("ResourceScatterAdd", "t", "flat", "u", "sum"),
        r"changes rows of the variable 'flat', which has the shape \(\) and no rows",
    ),
    (
        node("ResourceSparseApplyAdagrad", "t", "w", "a", "rate", "g", "at"),
        "variable 'w' at 'at', which depends on .* may stand twice; tf.unique and",
    ),
    (
        node("ResourceSparseApplyAdagrad", "t", "w", "a", "rate", "g", "twice"),
        r"variable 'w' at 'twice' = \[1, 1, 2\], where an index may stand twice",
    ),
    (
        node("ResourceSparseApplyAdagrad", "t", "w", "a", "rate", "g", "rate"),
        r"needs a vector of integers as indices of the variable 'w', got float32\(\)",
    ),
    (
        node("ResourceSparseApplyAdagrad", "t", "w", "a", "zero", "sum", "u"),
        r"needs float32\(\) as lr for the variable 'w', got int32\(1,\)",
    ),
    (
        node("ResourceSparseApplyAdagrad", "t", "w", "flat", "rate", "sum", "u"),
        r"changes 'w', float32\(5, 2\), with 'flat', float32\(\)",
    ),
]


@pytest.mark.parametrize(("last", "message"), REFUSED)
def test_what_only_a_run_knows_is_refused_elsewhere(last: Any, message: str) -> None:
    """Where results of Unique cannot be taken, the message says what they are and may do."""
    graph = momentum(const("bad", 1), const("twice", [1, 1, 2]), last)
    session = tf_graphdef.Session(graph, target="interpret")

    with pytest.raises(ModelError, match=message):
        session.run(["t:0"], {"at:0": np.zeros(3, "int64"), "g:0": np.zeros((3, 2), "f")})


def test_first_positions_are_of_vectors_of_integers() -> None:
    """The operator checks what it gets."""
    with pytest.raises(ShapeError, match=r"first_positions needs a vector, got \(2, 3\)"):
        first_positions(var("x", (2, 3), "int64"))
    with pytest.raises(DTypeError, match="needs integers as elements, got float32"):
        first_positions(var("x", (2,), "float32"))


@pytest.mark.parametrize("part", range(2))
def test_mutated_graphs_give_errors_or_steps(part: int) -> None:
    """Whatever such a graph says, nothing but a PasskitError comes out, soon."""
    assert mutated(range(30 * part, 30 * part + 30)) > 2


def mutated(seeds: Any) -> int:
    """How many of the mutated graphs of these seeds run."""
    data = momentum(*_set()).SerializeToString()
    feeds = {"at:0": np.array([1, 1, 0]), "g:0": np.ones((3, 2), "f")}
    count = 0
    for seed in seeds:
        with within(2):
            try:
                changed = changed_message("GraphDef", data, random.Random(seed))
                session = tf_graphdef.Session(changed, target="interpret")
                session.run("set")
                session.run("step", feeds)
                count += 1
            except PasskitError as error:
                assert len(str(error)) < 10_000
    return count


# Checkpoints.


def test_a_checkpoint_of_tensorflow_goes_on_as_tensorflow_left_it() -> None:
    """Every variable with its slots; the next losses are those of a session that trained so far."""
    found = fixtures()["perceptron"]
    session, feeds = begun("perceptron", target="interpret")
    for _ in range(STEPS):
        session.run("train", feeds)
    fresh = tf_graphdef.Session(found.model, target="interpret")

    fresh.restore(CHECKPOINT)

    assert set(fresh.state.arrays) == set(found.after) and not fresh.state.unset
    for name, value in found.after.items():
        np.testing.assert_array_equal(fresh.state[name], value)
    losses = [s.run(["loss:0", "train"], feeds)[0] for s in (session, fresh)]
    np.testing.assert_allclose(*losses, rtol=1e-4)


def test_some_variables_and_other_names_are_restored() -> None:
    """A list names some; a dict says whose a name in the checkpoint is; objects have names too."""
    graph = model(_variable("mean", 8), _variable("middle", 8), _variable("x", 4, shared_name="v"))
    session = tf_graphdef.Session(graph, target="interpret")
    after = fixtures()["perceptron"].after

    session.restore(f"{CHECKPOINT}.index", ["mean"])
    np.testing.assert_array_equal(session.state["mean"], after["mean"])
    assert set(session.state.arrays) == {"mean"}
    session.restore(CHECKPOINT, {"mean": "middle"})
    np.testing.assert_array_equal(session.state["middle"], after["mean"])

    keras = SAVED / "dense/variables/variables"
    bundle = CheckpointBundle(keras, budget_for(10_000, None))
    bias = bundle.array("variables/1/.ATTRIBUTES/VARIABLE_VALUE")
    named = tf_graphdef.Session(model(_variable("sequential/dense/bias", *bias.shape)))
    named.restore(keras)
    np.testing.assert_array_equal(named.state["sequential/dense/bias"], bias)


def test_what_a_checkpoint_does_not_fit_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All variables that are missing or otherwise shaped at once; nothing is restored then."""
    graph = model(
        _variable("mean", 8), _variable("w1", 8, 11), _variable("w9", 8), _variable("b1", 12)
    )
    graph.node[3].attr["dtype"].type = 2  # float64
    session = tf_graphdef.Session(graph, target="interpret")
    with pytest.raises(ModelError, match="does not fit 3 of the 4 variables") as found:
        session.restore(CHECKPOINT)
    said = str(found.value)
    assert "'w1' is float32(8, 12), and the graph's variable is float32(8, 11)" in said
    assert "'b1' is float32(12,), and the graph's variable is float64(12,)" in said
    assert "'w9' is not there (" in said
    assert not session.state.arrays
    with pytest.raises(ModelError, match="has no variable 'means'; did you mean 'mean'"):
        session.restore(CHECKPOINT, ["means"])
    with pytest.raises(ModelError, match="has 4 variables, and none is to be restored"):
        session.restore(CHECKPOINT, [])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match=r"'nothing.index' cannot be read: No such file"):
        session.restore("nothing")
    with pytest.raises(ModelError, match=r"'gone' cannot be read: No such file.*Saver.save"):
        session.restore("gone/nothing")
    with pytest.raises(ModelError, match="needs 379 bytes, and reading"):
        session.restore(CHECKPOINT, max_nbytes=100)
    data = bytearray(Path(f"{CHECKPOINT}.data-00000-of-00001").read_bytes())
    data[100] ^= 1
    (tmp_path / "p.index").write_bytes(Path(f"{CHECKPOINT}.index").read_bytes())
    (tmp_path / "p.data-00000-of-00001").write_bytes(data)
    whole = tf_graphdef.Session(fixtures()["perceptron"].model)
    with pytest.raises(ModelError, match="were changed after they were written"):
        whole.restore(tmp_path / "p")
    assert not whole.state.arrays
