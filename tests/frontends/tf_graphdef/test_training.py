"""Training graphs of TensorFlow 1 train as they did in TensorFlow."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.errors import FeedError, ModelError
from passkit.frontends import tf_graphdef
from passkit.frontends import tinyflow as tf
from tests.frontends.tf_graphdef.internals import tensor_of
from tests.frontends.tf_graphdef.models import const, message, model, node, placeholder
from tests.frontends.tf_graphdef.reference.saved_training import program
from tests.frontends.tf_graphdef.reference.training import STEPS, Trained, stored

AttrValue = message("AttrValue")
COMPILED = ("perceptron",)
"""The others run in NumPy, which costs no compiler; operators' kernels have tests of their own."""


@cache
def fixtures() -> dict[str, Trained]:
    """Return all models."""
    return stored()


def session_with_initial_values(
    name: str, **options: Any
) -> tuple[tf_graphdef.ModelSession, dict[str, Any]]:
    """Return a session with TensorFlow's initial values, and its feeds."""
    results = fixtures()[name]
    session = tf_graphdef.ModelSession(results.model, **options)
    session.run("init")
    assert set(session.state.arrays) == set(results.before)
    for variable, value in results.before.items():
        session.state[variable] = value
    return session, {f"{k}:0": v for k, v in results.feeds.items()}


NAMES = (
    "lenet",
    "lenet_ref",
    "perceptron",
    "logistic",
    "rules",
    "rules_ref",
    "embeddings",
    "embeddings_ref",
)


@pytest.mark.parametrize("name", NAMES)
def test_three_steps_give_tensorflows_losses_and_variables(name: str) -> None:
    """Losses, and every variable with its slots, equal TensorFlow's after three steps."""
    results = fixtures()[name]
    session, feeds = session_with_initial_values(
        name, target="cpu" if name in COMPILED else "interpret"
    )

    losses = [session.run(["loss:0", "train"], feeds)[0] for _ in range(STEPS)]

    np.testing.assert_allclose(losses, results.losses, rtol=2e-5)
    for variable, value in results.after.items():
        assert not np.array_equal(value, results.before[variable]), variable
        np.testing.assert_allclose(
            session.state[variable], value, rtol=2e-4, atol=2e-6, err_msg=variable
        )


def test_every_stored_model_is_tested() -> None:
    """Every model in the fixtures has a test."""
    assert set(fixtures()) == set(NAMES)


def test_a_train_op_is_an_executable_on_shared_state() -> None:
    """`load` gives a step and an evaluation for any batch size that share one state."""
    results = fixtures()["logistic"]
    shapes = {"x": ("n", 6), "y": ("n",)}
    step, loss = (
        tf_graphdef.load(results.model, ["loss:0"], shapes, targets=t) for t in (["train"], ())
    )
    state = pk.State.of(step)
    for name, value in results.before.items():
        state[name] = value
    train, evaluate = (pk.compile(g, state=state, target="interpret") for g in (step, loss))

    losses = [train(results.feeds)[0] for _ in range(STEPS)]

    np.testing.assert_allclose(losses, results.losses, rtol=2e-5)
    np.testing.assert_allclose(state["w"], results.after["w"], rtol=2e-4)
    half = {k: v[:8] for k, v in results.feeds.items()}
    assert np.isfinite(evaluate(half)[0])
    np.testing.assert_array_equal(state["w"], pk.State(state.arrays)["w"])


def test_reads_come_before_or_after_writes_as_edges_say() -> None:
    """A read sees the writes that precede it by edges and no others, in any order of fetches."""
    session, feeds = session_with_initial_values("perceptron", target="interpret")

    first = session.run(["train", "sooner:0", "later:0", "global_step:0"], feeds)
    again = session.run({"later": "later:0", "sooner": ("sooner:0", "train")}, feeds)

    assert first == [None, 0, 10, 1]
    assert again == {"later": 20, "sooner": (10, None)}


def _variable(name: str, *shape: int, op: str = "VarHandleOp", **attrs: Any) -> Any:
    return node(op, name, dtype=np.dtype("float32"), shape=shape, **attrs)


def test_draws_writes_and_initialization_tests_of_a_session() -> None:
    """Draws differ between runs and repeat in another session; all additions count."""
    graph = model(
        const("shape", [3]),
        const("one", 1.0),
        const("low", 2),
        const("high", 5),
        node("RandomUniform", "u", "shape", dtype=np.dtype("float32"), seed=1),
        node("RandomUniformInt", "k", "shape", "low", "high", Tout=np.dtype("int32")),
        node("RandomShuffle", "s", "shuffled"),
        const("shuffled", np.arange(50, dtype="int32")),
        _variable("w", op="VariableV2"),
        node("Assign", "init", "w", "one"),
        node("AssignAdd", "up", "w", "one"),
        node("AssignAdd", "up2", "w", "one"),
        _variable("h"),
        node("AssignVariableOp", "set", "h", "one"),
        node("VarIsInitializedOp", "is_set", "h"),
        node("VarIsInitializedOp", "is_set_after", "h", "^set"),
        node("NoOp", "both", "^up", "^up2"),
        node("Assert", "never", "one", "^u"),
        node("NoOp", "guarded", "^never", "^up"),
    )
    one, other = (tf_graphdef.ModelSession(graph, target="interpret") for _ in range(2))
    names = ["u:0", "k:0", "s:0"]
    first, second, repeated = one.run(names), one.run(names), other.run(names)

    for a, b, c in zip(first, second, repeated, strict=True):
        np.testing.assert_array_equal(a, c)
        assert not np.array_equal(a, b)
    assert set(first[1]) <= {2, 3, 4} and sorted(first[2]) == list(range(50))
    assert one.run(["is_set:0", "set"]) == [False, None]
    assert one.run(["is_set:0", "is_set_after:0"]) == [True, True]
    assert one.run("init:0") == 1
    assert one.run(["both", "w:0", "up:0"])[1] == 3
    assert one.run(["guarded", "w:0"])[1] == 4
    assert one.run("w:0", {"one:0": np.float32(9)}) == 4


def _refused(*nodes: Any) -> Any:
    return model(
        const("one", 1.0),
        const("two", [1.0, 2.0]),
        const("ints", [1, 2]),
        const("text", 3),
        _variable("w", 2),
        _variable("small", 3),
        *nodes,
    )


ADAM = ("one", "one", "one", "one", "one", "one", "two")


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (
            [node("ResourceApplyAdam", "t", "w", "w", "small", *ADAM)],
            r"got 'w' of float32\(2,\) and 'small' of float32\(3,\)",
        ),
        (
            [node("ResourceApplyGradientDescent", "t", "w", "one", "one")],
            r"needs float32\(2,\) as delta for the variable 'w', got float32\(\)",
        ),
        (
            [node("ResourceApplyGradientDescent", "t", "w", "text", "two")],
            r"needs float32\(\) as alpha for the variable 'w', got int32\(\)",
        ),
        (
            [node("ResourceApplyGradientDescent", "t", "two", "one", "two")],
            "needs the handle of a variable, got 'two', an array",
        ),
        (
            [
                node(
                    "ResourceApplyFtrl",
                    "t",
                    "w",
                    "w",
                    "w",
                    "two",
                    *["one"] * 4,
                    multiply_linear_by_lr=True,
                )
            ],
            "ResourceApplyFtrl 't' needs multiply_linear_by_lr=False, got True",
        ),
        (
            [node("ResourceScatterAdd", "t", "w", "two", "two")],
            "integer indices and rows of float32 for the variable 'w', got float32 and float32",
        ),
        (
            [node("AssignVariableOp", "t", "w", "one")],
            r"needs float32\(2,\) for the variable 'w', got float32\(\)",
        ),
        (
            [_variable("v", None), node("ReadVariableOp", "t", "v")],
            "the variable 'v' needs a known shape to be trained",
        ),
        (
            [_variable("v", 2, shared_name="a/../?"), node("AssignVariableOp", "t", "v", "two")],
            r"the variable 'a/\.\./\?' needs a name that consists of letters",
        ),
        (
            [_variable("v", 1 << 20, 1 << 12), node("ReadVariableOp", "t", "v")],
            "the variable 'v' .*17,179,869,184 bytes",
        ),
        (
            [const("names", np.array(3)), node("NoOp", "t", "^u"), node("NoOp", "u", "^t")],
            "node 'u' reads '(t|u)', which depends on it",
        ),
        (
            [node("AssignAddVariableOp", "t", "w", "two", "^u"), node("NoOp", "u", "^t")],
            "acyclic, and its node 'u' reads 't', which depends on it",
        ),
        ([node("Frobnicate", "f"), node("AssignVariableOp", "t", "w", "f")], "Frobnicate × 1"),
    ],
)
def test_invalid_training_graphs_are_refused(nodes: list[Any], message: str) -> None:
    """Wrong dtypes and shapes, unknown variables, cycles and unsupported operators are named."""
    session = tf_graphdef.ModelSession(_refused(*nodes), target="interpret")

    with pytest.raises(ModelError, match=message):
        session.run("t" if nodes[-1].op != "ReadVariableOp" else "t:0")


def test_invalid_feeds_and_fetches_are_refused() -> None:
    """Unknown names, wrong shapes, missing feeds, and variables without a value are named."""
    graph = model(
        placeholder("x", None, 2),
        _variable("w", 2, op="VariableV2"),
        node("Mul", "y", "x", "w"),
        node("VarHandleOp", "h", dtype=np.dtype("float32"), shape=(2,)),
    )
    session = tf_graphdef.ModelSession(graph, target="interpret")
    x = np.ones((1, 2), "f")

    with pytest.raises(FeedError, match="variable 'w' has no value in this session"):
        session.run("y:0", {"x:0": x})
    with pytest.raises(FeedError, match="placeholder 'x' needs a value in feed_dict"):
        session.run("y:0")
    with pytest.raises(FeedError, match=r"'x' needs a feed of shape \(\?, 2\), got \(3,\)"):
        session.run("y:0", {"x:0": np.ones(3, "f")})
    with pytest.raises(
        FeedError, match=r"'x:0' needs .* of equal lengths, got \[\[1\], \[2, 3\]\]"
    ):
        session.run("y:0", {"x:0": [[1], [2, 3]]})
    with pytest.raises(FeedError, match="got 'z:0'; known: x"):
        session.run("y:0", {"z:0": x})
    with pytest.raises(FeedError, match="keys that name placeholders, .*, got 7"):
        session.run("y:0", {7: x})
    with pytest.raises(FeedError, match="tensors and operations to fetch, got 7"):
        session.run(7)
    with pytest.raises(ModelError, match="has no node 'trains' to run"):
        session.run("trains")
    with pytest.raises(
        ModelError, match="needs arrays as outputs, and 'h' is a handle of a variable"
    ):
        session.run("h:0")
    with pytest.raises(AttributeError, match="tf_graphdef has no 'ModelSessions'"):
        tf_graphdef.ModelSessions  # noqa: B018
    with pytest.raises(
        ModelError, match="reads the variable 'w'.* use tf_graphdef.ModelSession or targets="
    ):
        tf_graphdef.load(fixtures()["logistic"].model, "loss")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shapes": 3}, "shapes must be a mapping of names to shapes, got 3"),
        ({"shapes": {3: (1,)}}, "a name in shapes must be a string, got 3"),
        ({"tags": 3}, "tags must be a name or a sequence of names, got 3"),
        ({"max_nbytes": "9"}, "max_nbytes must be a whole number of at least 0, got '9'"),
        ({"max_rounds": 1.5}, r"max_rounds must be a whole number of at least 0, got 1\.5"),
    ],
)
def test_arguments_of_wrong_types_are_refused(options: dict[str, Any], message: str) -> None:
    """The error names the argument of the session and shows its value."""
    with pytest.raises((pk.ArgumentError, pk.SettingError), match=message):
        tf_graphdef.ModelSession(model(placeholder("x", 2)), **options)


def test_arguments_of_restore_are_checked() -> None:
    """A prefix that is no path, and variables that are no names, are refused."""
    session = tf_graphdef.ModelSession(model(placeholder("x", 2)))

    with pytest.raises(pk.ArgumentError, match="prefix must be a path, got 3"):
        session.restore(3)  # type: ignore[arg-type]
    with pytest.raises(pk.ArgumentError, match="variables must be a name .*, got 3"):
        session.restore("p", 3)  # type: ignore[arg-type]
    with pytest.raises(pk.ArgumentError, match="a name in variables must be a string, got 3"):
        session.restore("p", {3: "w"})  # type: ignore[dict-item]
    with pytest.raises(pk.SettingError, match="max_nbytes must be a whole number .*, got -1"):
        session.restore("p", max_nbytes=-1)


def test_restoring_from_a_checkpoint_is_refused() -> None:
    """The graph's own restore nodes are refused with advice to use session.restore."""
    text = {"dtype": 7, "tensor_shape": {"dim": [{"size": 1}]}, "string_val": [b"w"]}
    names = node("Const", "names")
    names.attr["value"].CopyFrom(AttrValue(tensor=text))
    names.attr["dtype"].type = 7
    restored = node("RestoreV2", "restored", "names", "names", "names")
    graph = model(names, restored, _variable("w", 1), node("Assign", "put", "w", "restored"))

    with pytest.raises(ModelError, match="restores the variable 'w' from a checkpoint"):
        tf_graphdef.ModelSession(graph).run("put")


def test_a_saved_tinyflow_program_trains_equally() -> None:
    """After saving and loading, three steps have equal losses, bit for bit in NumPy."""
    with tf.Graph().as_default():
        fetches, feeds = program(tf)
        session = tf.Session(target="interpret")
    saved = tf_graphdef.save(fetches)
    again = tf_graphdef.ModelSession(saved, target="interpret")
    session.run(fetches["init"])
    again.run("init")
    assert set(again.state.arrays) == set(session.state.arrays)
    for name, value in session.state.arrays.items():
        again.state[name] = value
    inputs = {fetches[k]: v for k, v in feeds.items()}
    named = {f"{k}:0": v for k, v in feeds.items()}

    for _ in range(STEPS):
        loss, later, _ = session.run([fetches[k] for k in ("loss", "later", "train")], inputs)
        assert again.run(["loss:0", "later:0", "train"], named) == [loss, later, None]
    number = {"run_number:0": np.int64(session.runs)}
    drawn = again.run("drawn:0", {**named, **number})
    assert drawn == session.run(fetches["drawn"], inputs) != again.run("drawn:0", named)


def test_additions_and_ordered_reads_are_saved() -> None:
    """Additions to a variable add up, and later reads see them."""
    with tf.Graph().as_default():
        v = tf.Variable(np.float32(1), name="v")
        up, down = tf.assign_add(v, 2.0), tf.assign_sub(v, 0.5)
        with tf.control_dependencies([up]):
            after = v.read_value() * 10
            reset = tf.assign(v, 7.0, name="reset")
        both = tf.group(up, down)
        fetches = {"v": v, "twice": v * 2, "after": after, "both": both, "put": reset}
        data = tf_graphdef.save({**fetches, "init": v.initializer})
    session = tf_graphdef.ModelSession(data, target="interpret")
    session.run("init")

    assert session.run(["v/Read/ReadVariableOp:0", "both"]) == [1, None]
    assert session.run(["after:0", "twice:0"]) == [45, 5]
    session.run("put")
    assert session.run("twice:0") == 14


def test_unsavable_programs_are_refused() -> None:
    """Other objects, operators without an equivalent, and tensors of two graphs are refused."""
    with tf.Graph().as_default():
        one = tf.placeholder("int32", (2,), "one")
        unsavable = tensor_of(pk.ops.gcd(one.entry, one.entry), "unsavable")
    with tf.Graph().as_default():
        other = tf.placeholder("int32", (2,), "other")

    with pytest.raises(ModelError, match="tensors and operations of tinyflow, got 7"):
        tf_graphdef.save(7)
    with pytest.raises(ModelError, match="'other.*belongs to another graph than .*'one"):
        tf_graphdef.save([one, other])
    with pytest.raises(ModelError, match="of 1 operator.*gcd × 1 .*'gcd'.*no equivalent"):
        tf_graphdef.save([unsavable])
