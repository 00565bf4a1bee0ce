"""Movement operators: their index maps, NumPy's functions and Python's indexing agree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.graph.op import FElement
from passkit.runtime.interpret import derive
from tests.ops.harness import TARGETS, Case, case, check

ops = pk.ops
Function = Callable[..., Any]


def iota(*shape: int) -> Any:
    """The numbers from 0 in a shape, so that every element is told from the others."""
    return np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)


# name: our spelling, NumPy's, shapes of the inputs
ROWS: list[tuple[str, Function, Function, list[tuple[int, ...]]]] = [
    *[
        (
            f"reshape {list(s)}->{list(t)}",
            lambda x, t=t: ops.reshape(x, t),
            lambda x, t=t: x.reshape(t),
            [s],
        )
        for s, t in [
            ((), (1, 1)),
            ((1,), ()),
            ((6,), (2, 3)),
            ((2, 3), (3, 2)),
            ((4, 6), (6, 4)),
            ((2, 3, 4), (6, 4)),
            ((2, 3, 4), (2, 12)),
            ((6, 4), (2, 3, 2, 2)),
            ((0, 3), (5, 0)),
            ((2, 1, 3), (3, 1, 2)),
            ((1, 5), (5, 1)),
            ((2, 3, 4), (-1, 3)),
            ((24,), (2, -1, 1)),
        ]
    ],
    *[
        (
            f"expand_dims {a}",
            lambda x, a=a: ops.expand_dims(x, a),
            lambda x, a=a: np.expand_dims(x, a),
            [(2, 3)],
        )
        for a in [0, 1, 2, -1, (0, 2), (1, -1)]
    ],
    ("squeeze", lambda x: ops.squeeze(x), np.squeeze, [(1, 3, 1, 2)]),
    ("squeeze 0", lambda x: ops.squeeze(x, 0), lambda x: np.squeeze(x, 0), [(1, 3, 1)]),
    ("squeeze -1", lambda x: ops.squeeze(x, (-1,)), lambda x: np.squeeze(x, -1), [(0, 1)]),
    *[
        (
            f"transpose {a}",
            lambda x, a=a: ops.transpose(x, a),
            lambda x, a=a: np.transpose(x, a),
            [(2, 3, 4)],
        )
        for a in [None, (0, 1, 2), (2, 0, 1), (1, 0, 2), (-1, 0, 1)]
    ],
    ("transpose scalar", lambda x: ops.transpose(x), np.transpose, [()]),
    *[
        (
            f"broadcast {list(s)}->{list(t)}",
            lambda x, t=t: ops.broadcast_to(x, t),
            lambda x, t=t: np.broadcast_to(x, t),
            [s],
        )
        for s, t in [((), (3,)), ((3,), (2, 3)), ((2, 1), (2, 5)), ((1, 1), (2, 0)), ((4,), (4,))]
    ],
    (
        "concat 0",
        lambda x, y: ops.concat(x, y),
        lambda x, y: np.concatenate([x, y]),
        [(2, 3), (1, 3)],
    ),
    (
        "concat -1",
        lambda x, y, z: ops.concat([x, y, z], axis=-1),
        lambda x, y, z: np.concatenate([x, y, z], -1),
        [(2, 3), (2, 0), (2, 4)],
    ),
    ("concat of one", lambda x: ops.concat(x, axis=1), lambda x: x, [(2, 3)]),
    ("slice", lambda x: ops.slice(x, (1, 2), (2, -1)), lambda x: x[1:3, 2:], [(4, 5)]),
    ("slice by 2", lambda x: ops.slice(x, (3,), (2,), (-2,)), lambda x: x[3::-2][:2], [(5,)]),
    ("slice of nothing", lambda x: ops.slice(x, (9,), (0,)), lambda x: x[:0], [(5,)]),
    ("split", lambda x: ops.split(x, 3, axis=1)[1], lambda x: np.split(x, 3, 1)[1], [(2, 6)]),
    ("split sizes", lambda x: ops.split(x, [1, 3])[1], lambda x: x[1:], [(4, 2)]),
]
KEYS: list[Any] = [
    0,
    -1,
    slice(None),
    slice(1, 3),
    slice(None, None, 2),
    slice(None, None, -1),
    slice(3, 0, -2),
    slice(-2, None),
    slice(5, 2),
    slice(100),
    (..., 0),
    (0, ..., -1),
    (slice(None), 1),
    (None, 0),
    (slice(1, None), None, ..., None),
    (0, 0, 0),
    (Ellipsis,),
    (slice(0, 2), None, 1, slice(None)),
    np.int64(1),
]


def table() -> Iterator[Case]:
    """The rows, and every key of Python's indexing."""
    for name, ours, numpys, shapes in ROWS:
        yield case(name, ours, numpys, *(iota(*s) for s in shapes))
    for key in KEYS:
        yield case(f"x[{key}]", lambda x, k=key: x[k], lambda x, k=key: x[k], iota(4, 3, 5))


CASES = list(table())


@pytest.mark.parametrize("k", range(len(CASES)), ids=[c.name for c in CASES])
def test_movement(k: int) -> None:
    """An operator moves elements as NumPy does."""
    check("interpret", [CASES[k]])


@pytest.mark.parametrize("target", [t for t in TARGETS if t != "interpret"])
def test_natively(target: str) -> None:
    """A target runs all cases, in one graph."""
    check(target, CASES)


@pytest.mark.parametrize("k", range(len(CASES)), ids=[c.name for c in CASES])
def test_the_index_map_agrees(k: int) -> None:
    """FElement, evaluated over the grid of indices, gives what FCompute gives."""
    c = CASES[k]
    graph = pk.Graph([c.build(*(pk.var(f"x{j}", a.shape) for j, a in enumerate(c.arrays)))])
    feeds = dict(zip(graph.inputs, c.arrays, strict=False))
    for node in graph.nodes:
        if node.op is None or not FElement.get(node.op.name):
            continue
        arrays = [feeds[e.node] for e in node.inputs]
        feeds[node] = np.asarray(node.op.get_attr("FCompute")(node, *arrays))

        np.testing.assert_array_equal(derive(node, *arrays)[0], feeds[node])


def test_unknown_sizes() -> None:
    """Sizes that only a call brings flow through reshape, slices and concat."""
    x = pk.var("x", (None, "n"))
    rows, n = x.shape
    outs = [
        ops.reshape(x, (n, rows)),
        ops.reshape(x, (-1,)),
        x[1:],
        x[-1],
        x[::-1, :2],
        ops.concat(x, x, axis=1),
        x[:, ::2],
        ops.broadcast_to(x, (3, rows, n)),
    ]
    a = iota(3, 4)
    found = pk.interpret(pk.Graph(outs), {"x": a})

    wanted = [
        a.reshape(4, 3),
        a.reshape(-1),
        a[1:],
        a[-1],
        a[::-1, :2],
        np.concatenate([a, a], 1),
        a[:, ::2],
        np.broadcast_to(a, (3, 3, 4)),
    ]
    for f, w in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(f, w)


BAD: list[tuple[Function, str]] = [
    (lambda x: ops.reshape(x, (4,)), r"as many elements as \(2, 3\) has, 6, got \(4,\), which has"),
    (lambda x: ops.reshape(x, (-1, -1)), r"at most one -1, got \(-1, -1\)"),
    (lambda x: ops.reshape(x, (4, -1)), r"cannot fill in -1: \(2, 3\) has 6 elements, \(4, -1\)"),
    (lambda x: ops.reshape(x, ("n",)), r"needs ints or sizes as shape, got \('n',\)"),
    (lambda x: ops.expand_dims(x, 5), "axis 5 is out of range; there are axes -3 to 2"),
    (lambda x: ops.squeeze(x, 0), r"needs length 1 at axis 0, got \(2, 3\)"),
    (lambda x: ops.transpose(x, (0,)), r"needs 2 axes, one for each of the input, got \(0,\)"),
    (lambda x: ops.transpose(x, (0, 0)), r"axes=\(0, 0\) has axis 0 twice"),
    (lambda x: ops.broadcast_to(x, (2, 4)), r"cannot stretch \(2, 3\) to \(2, 4\)"),
    (lambda x: ops.broadcast_to(x, (3,)), r"cannot stretch \(2, 3\) to \(3,\)"),
    (lambda x: ops.broadcast_to(x, (-2, 2, 3)), r"needs extents >= 0, got \(-2, 2, 3\)"),
    (lambda x: ops.concat(x, x[0]), r"differ at axis 0 only, got \(2, 3\) and \(3,\)"),
    (lambda x: ops.concat(), "concat needs at least one input, got none"),
    (lambda x: ops.slice(x, (0,), (1,)), r"needs 2 extents as begin, .* got \(0,\)"),
    (lambda x: ops.slice(x, (0, 0), (1, 1), (0, 1)), r"ints other than 0 as step, got \(0, 1\)"),
    (lambda x: ops.slice(x, (0, 0), (-2, 1)), "needs sizes >= 0 or -1, got -2 at axis 0"),
    (lambda x: ops.slice(x, (-1, 0), (1, 1)), "reads element -1 of axis 0; begin must be >= 0"),
    (lambda x: ops.slice(x, (1, 0), (2, 1)), "axis 0 must be long enough for the slice, got 2 for"),
    (lambda x: x[2], "index 2 is out of range for axis 0 of x, length 2"),
    (lambda x: x[0, 0, 0], "x has 2 axes, got 3 indices"),
    (lambda x: x[..., ...], r"x\[…\] has more than one '...'"),
    (lambda x: x["a"], "'...' and None, got str; pk.ops.where chooses by value"),
    (lambda x: x[1.5:], "axis 0 of x is sliced by ints, got 1.5; pk.ops.gather"),
    (lambda x: x[:, ::"2"], "axis 1 of x is sliced by ints, got '2'"),
    (lambda x: ops.strided_slice(x, 0, 1), "one length, got 0, 1 and 1"),
    (lambda x: ops.top_k(x, (1, 2)), r"top_k needs one int or size as k, got \(1, 2\)"),
    (lambda x: ops.expand_dims(x, None), "expand_dims needs an int, or several, as axis, got None"),
    (lambda x: ops.searchsorted(pk.var("s", ()), x), r"a vector, or .* got \(\) for \(2, 3\)"),
    (lambda x: ops.invert_permutation(ops.cast(x, "int32")), r"needs a vector, got \(2, 3\)"),
    (lambda x: ops.rotary_embedding(x[:, :2], offset=(1,)), r"one int or size as offset, got \(1,"),
    (
        lambda x: ops.rows_along_axis(ops.cast(x, "int32"), shape=(2, 3), updates=(4,)),
        r"got \(4,\) for \(2, 3\) and \(2, 3\)",
    ),
    (lambda x: x[::0], "the step of an index of x must not be 0"),
    (lambda x: ops.split(x, 4), "axis 0 of length 2 does not fall into 4 equal parts"),
    (lambda x: ops.split(x, [1, 2]), r"sizes \(1, 2\) add up to 3, but axis 0 has length 2"),
    (lambda x: ops.split(x, 1, axis=3), r"axis 3 is out of range for \(2, 3\)"),
    (lambda x: pk.var("u", None)[0], "the rank of u is not known here"),
]


@pytest.mark.parametrize("build, message", BAD)
def test_what_is_refused(build: Function, message: str) -> None:
    """What does not fit is refused when the node is made, with what was given."""
    with pytest.raises(pk.ShapeError, match=message):
        build(pk.var("x", (2, 3)))


@pytest.mark.parametrize("key, n", [(slice(1, None), 0), (slice(-3, None), 2), (0, 0), (-1, 0)])
def test_slices_that_do_not_fit_the_call(key: Any, n: int) -> None:
    """Where the extent is not known before, bounds must fit at the call."""
    graph = pk.Graph([pk.var("x", (None,))[key]])

    with pytest.raises(pk.PasskitError, match=r"axis 0|element -\d of axis 0|got -1"):
        pk.interpret(graph, {"x": np.zeros(n, np.float32)})


def test_reshapes_collapse() -> None:
    """A reshape of a reshape is one, and one to the same shape is none."""
    x = pk.var("x", (2, 3))
    again = ops.reshape(ops.expand_dims(ops.reshape(x, (6,)), 0), (3, 2)).node
    simplify = again.op.get_attr("FSimplify")

    assert simplify(again).node.inputs[0].node.op.name == "reshape"
    assert simplify(ops.reshape(x, (2, 3)).node) is x
    assert simplify(ops.reshape(x, (3, 2)).node) is None


def test_transposes_collapse() -> None:
    """A transpose of a transpose is one; the identity is none."""
    x = pk.var("x", (2, 3, 4))
    twice = ops.transpose(ops.transpose(x, (1, 2, 0)), (2, 0, 1)).node
    simplify = twice.op.get_attr("FSimplify")
    once = simplify(twice)

    assert once.node.params["axes"] == (0, 1, 2)
    assert simplify(once.node) is x
    assert simplify(ops.transpose(x, (1, 0, 2)).node) is None


def test_slices_of_everything_go() -> None:
    """A slice that takes everything, and a concat of one, are simplified away."""
    x = pk.var("x", (2, 3))
    whole, part = ops.slice(x, (0, 0), (-1, 3)).node, x[1:].node

    assert whole.op.get_attr("FSimplify")(whole) is x
    assert part.op.get_attr("FSimplify")(part) is None
    assert x[:] is x
