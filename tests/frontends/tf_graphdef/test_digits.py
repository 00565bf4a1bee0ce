"""The shipped digits model gives TensorFlow's results, and damaged copies give errors."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.errors import PasskitError
from passkit.frontends import tf_graphdef
from tests.frontends.tf_graphdef.models import DIGITS, OP_IMPORTERS, GraphDef, attr

STORED = dict(np.load(DIGITS.with_suffix(".npz")))
CASES = len(STORED["x"])


def test_the_files_are_small_and_complete() -> None:
    """Held-out digits, labels and TensorFlow's results are shipped with the model."""
    assert DIGITS.stat().st_size + DIGITS.with_suffix(".npz").stat().st_size < 300_000
    assert {k: (v.shape, v.dtype.name) for k, v in STORED.items()} == {
        "x": ((CASES, 8, 8), "float32"),
        "labels": ((CASES,), "int32"),
        "probabilities": ((CASES, 10), "float32"),
    }


def test_the_graph_has_a_free_batch_size() -> None:
    """The graph has one input with a free batch size, one output, and layers to fuse."""
    graph = tf_graphdef.load(DIGITS)
    ops = [n.op.name for n in graph.nodes if n.op]

    assert [(n.name, str(n.entries[0].shape)) for n in graph.inputs] == [("x", "(x.0, 8, 8)")]
    assert [(e.name, str(e.shape)) for e in graph.outputs] == [("probabilities", "(x.0, 10)")]
    assert ops.count("matmul") == 3
    assert {"erf", "rsqrt", "reduce_mean", "relu", "softmax"} <= {*ops}


@pytest.mark.parametrize("batch", [1, 7, CASES])
def test_interpreted_results_are_tensorflows(batch: int) -> None:
    """Interpreted results equal TensorFlow's."""
    graph = tf_graphdef.load(DIGITS)

    results = pk.interpret(graph, {"x": STORED["x"][:batch]})[0]

    np.testing.assert_allclose(results, STORED["probabilities"][:batch], rtol=0, atol=1e-5)


def test_compiled_results_are_tensorflows() -> None:
    """Compiled results equal TensorFlow's at any batch size, with one compilation."""
    exe = pk.compile(tf_graphdef.load(DIGITS))

    for batch in (1, 7, CASES):
        results = exe(x=STORED["x"][:batch])[0]
        np.testing.assert_allclose(results, STORED["probabilities"][:batch], rtol=0, atol=1e-5)
    right = results.argmax(1) == STORED["labels"]
    assert right.mean() >= 0.97


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Return a copy with some bytes flipped, removed, duplicated or truncated."""
    out = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 5, 20])):
        at = rng.randrange(len(out))
        match rng.randrange(5):
            case 0:
                out[at] ^= 1 << rng.randrange(8)
            case 1:
                out[at] = rng.randrange(256)
            case 2:
                del out[at : at + rng.randrange(1, 30)]
            case 3:
                out[at:at] = out[:20]
            case 4:
                del out[max(at, 10) :]
    return bytes(out)


def without_weights() -> Any:
    """Return the model with one element for each weight, so that mutations hit its structure."""
    graph = GraphDef.FromString(DIGITS.read_bytes())
    for node in graph.node:
        tensor = node.attr["value"].tensor
        if node.op == "Const" and len(tensor.tensor_content) > 64:
            tensor.float_val.extend([0.5])
            tensor.tensor_content = b""
    return graph


VALUES: list[Any] = [True, 3, -1, "NCHW", [0], [5, -7], np.dtype("int32"), np.dtype("bool"), (2, 3)]
VALUES += [np.zeros((2, 1), np.int32), np.ones(3, np.float32), {"type": 7}, {}]


def rewired(rng: random.Random) -> Any:
    """Return a well-formed copy with other operators, inputs, attributes or shapes."""
    graph = without_weights()
    for _ in range(rng.choice([1, 2, 5, 20])):
        node = rng.choice(graph.node)
        keys = sorted(node.attr) or ["T"]
        match rng.randrange(6):
            case 0:
                node.op = rng.choice([*OP_IMPORTERS, "Placeholder", "NoOp"])
            case 1 if node.input:
                node.input[rng.randrange(len(node.input))] = rng.choice(graph.node).name
            case 2:
                node.input.append(rng.choice(["", "^"]) + rng.choice(graph.node).name)
            case 3:
                node.attr[rng.choice(keys)].CopyFrom(attr(rng.choice(VALUES)))
            case 4 if node.op == "Const":
                dim = node.attr["value"].tensor.tensor_shape.dim.add()
                dim.size = rng.choice([0, 1, 2, -1, 1 << 31, (1 << 63) - 1])
            case 5:
                node.name = rng.choice([rng.choice(graph.node).name, 'a"\n', "fresh"])
    return graph


def outcome(source: Any) -> str:
    """Return the kind of passkit's error, or "graph"; other errors are raised."""
    try:
        tf_graphdef.load(source)
    except PasskitError as error:
        assert len(str(error)) < 10_000
        return type(error).__name__
    return "graph"


def test_damaged_files_give_errors_or_graphs() -> None:
    """Loading damaged files raises nothing but PasskitError."""
    rng = random.Random(1)
    whole, bare = DIGITS.read_bytes(), without_weights().SerializeToString()

    results = {outcome(damaged(whole if k % 3 == 0 else bare, rng)) for k in range(400)}

    assert {"graph", "ModelError"} <= results


def test_rewired_models_give_errors_or_graphs() -> None:
    """Well-formed files without meaning are refused with a PasskitError."""
    rng = random.Random(2)

    results = {outcome(rewired(rng)) for _ in range(800)}

    assert {"graph", "ModelError", "ShapeError", "DTypeError"} <= results
