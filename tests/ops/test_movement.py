"""Primitive movement operators agree with NumPy, with their index maps and with indexing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import passkit as pk
from tests.ops.harness import TARGETS, Case, case, check

ops = pk.ops
Function = Callable[..., Any]


def iota(*shape: int) -> Any:
    """Return the numbers from 0 on in a shape: all elements differ."""
    return np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)


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
    (
        "slice to the front",
        lambda x: ops.slice(x, (3,), (-1,), (-2,)),
        lambda x: x[3::-2],
        [(5,)],
    ),
    ("slice of nothing", lambda x: ops.slice(x, (9,), (0,)), lambda x: x[:0], [(5,)]),
    ("split", lambda x: ops.split(x, 3, axis=1)[1], lambda x: np.split(x, 3, 1)[1], [(2, 6)]),
    ("split sizes", lambda x: ops.split(x, [1, 3])[1], lambda x: x[1:], [(4, 2)]),
]
"""Name, call of the operator, call of NumPy, and shapes of the inputs."""

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


def cases() -> Iterator[Case]:
    """Yield a case for each row, and one for each key of Python's indexing."""
    for name, build, reference, shapes in ROWS:
        yield case(name, build, reference, *(iota(*s) for s in shapes))
    for key in KEYS:
        yield case(f"x[{key}]", lambda x, k=key: x[k], lambda x, k=key: x[k], iota(4, 3, 5))


CASES = list(cases())


@pytest.mark.parametrize("k", range(len(CASES)), ids=[c.name for c in CASES])
def test_elements_are_those_of_numpy(k: int) -> None:
    """The interpreter moves elements as NumPy does."""
    check("interpret", [CASES[k]])


@pytest.mark.parametrize("target", [t for t in TARGETS if t != "interpret"])
def test_compiled_elements_are_those_of_numpy(target: str) -> None:
    """One compiled graph of all cases moves elements as NumPy does."""
    check(target, CASES)


def without_compute(op: Any) -> Any:
    """Return an operator with the index map of ``op`` but without its FCompute.

    The interpreter evaluates the index map of such an operator for each element.
    """
    name = f"test_index_map_of_{op.name}"
    if name in pk.list_ops():
        return pk.get_op(name)
    copy = pk.register_op(name, num_inputs=op.num_inputs, params=op.params)
    for attribute in ("FInferShape", "FInferType", "FElement"):
        copy.set_attr(attribute, op.get_attr(attribute))
    return copy


@pytest.mark.parametrize("k", range(len(CASES)), ids=[c.name for c in CASES])
def test_the_index_map_agrees_with_compute(k: int) -> None:
    """An operator gives the same elements by its FElement and by its FCompute."""
    inputs = [pk.var(f"x{j}", a.shape) for j, a in enumerate(CASES[k].arrays)]
    graph = pk.Graph([CASES[k].build(*inputs)])
    copies: dict[Any, Any] = {}
    for node in graph.nodes:
        if node.op is None:
            copies[node] = node.entries[0]
        else:
            sources = [copies[e.node] for e in node.inputs]
            copies[node] = without_compute(node.op)(*sources, **node.params)
    result = copies[graph.outputs[0].node]
    feeds = {e.node.name: a for e, a in zip(inputs, CASES[k].arrays, strict=True)}

    expected = pk.interpret(graph, {n.name: feeds[n.name] for n in graph.inputs})
    actual = pk.interpret(pk.Graph([result]), {n.name: feeds[n.name] for n in graph.inputs})
    np.testing.assert_array_equal(actual[0], expected[0])


def test_movement_of_unknown_sizes() -> None:
    """Reshapes, slices and concats take sizes that are known only at the call."""
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
    results = pk.interpret(pk.Graph(outs), {"x": a})

    expected = [
        a.reshape(4, 3),
        a.reshape(-1),
        a[1:],
        a[-1],
        a[::-1, :2],
        np.concatenate([a, a], 1),
        a[:, ::2],
        np.broadcast_to(a, (3, 3, 4)),
    ]
    for result, array in zip(results, expected, strict=True):
        np.testing.assert_array_equal(result, array)


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
    (lambda x: ops.slice(x, (1, 0), (2, 1)), r"long enough for the slice \(at least 3\), got 2"),
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
    (lambda x: ops.split(pk.var("u", None), 2), "the rank of u is not known here"),
    (lambda x: ops.split(x, []), r"sizes \(\) add up to 0, but axis 0 has length 2"),
]


@pytest.mark.parametrize("build, message", BAD)
def test_invalid_calls_raise(build: Function, message: str) -> None:
    """The call that builds a node raises an error with the parameter or shape it got."""
    with pytest.raises(pk.ShapeError, match=message):
        build(pk.var("x", (2, 3)))


def test_an_empty_axis_is_split_into_no_parts() -> None:
    """No sizes add up to the length of an empty axis, so that there are no slices of it."""
    assert ops.split(pk.var("x", (0, 3)), []) == ()
    assert [e.shape for e in ops.split(pk.var("x", (0, 3)), [0, 0])] == [(0, 3), (0, 3)]


@pytest.mark.parametrize("key, n", [(slice(1, None), 0), (slice(-3, None), 2), (0, 0), (-1, 0)])
def test_slices_outside_of_an_unknown_extent_raise_at_the_call(key: Any, n: int) -> None:
    """Bounds of a slice of an unknown extent are checked when the graph runs."""
    graph = pk.Graph([pk.var("x", (None,))[key]])

    with pytest.raises(pk.PasskitError, match=r"axis 0|element -\d of axis 0|got -1"):
        pk.interpret(graph, {"x": np.zeros(n, np.float32)})


def simplified(entry: pk.Entry) -> list[tuple[str, dict[str, Any]]]:
    """Return the name and parameters of each operator that Simplify leaves."""
    graph = pk.ApplyPasses(pk.Graph([entry]), ["Simplify"])
    return [(node.op.name, dict(node.params)) for node in graph.nodes if node.op is not None]


def test_reshapes_are_merged() -> None:
    """Reshapes in a row become one, and one to the same shape is removed."""
    x = pk.var("x", (2, 3))
    several = ops.reshape(ops.expand_dims(ops.reshape(x, (6,)), 0), (3, 2))

    assert simplified(several) == [("reshape", {"shape": (3, 2)})]
    assert simplified(ops.reshape(x, (2, 3))) == []
    assert simplified(ops.reshape(x, (3, 2))) == [("reshape", {"shape": (3, 2)})]


def test_transposes_are_merged() -> None:
    """Transposes in a row become one, and one that keeps the order of axes is removed."""
    x = pk.var("x", (2, 3, 4))
    there = ops.transpose(x, (1, 2, 0))

    assert simplified(ops.transpose(there, (0, 2, 1))) == [("transpose", {"axes": (1, 0, 2)})]
    assert simplified(ops.transpose(there, (2, 0, 1))) == []
    assert simplified(ops.transpose(x, (1, 0, 2))) == [("transpose", {"axes": (1, 0, 2)})]


def test_slices_of_all_elements_are_removed() -> None:
    """A slice that selects every element, and a concat of one input, are removed."""
    x = pk.var("x", (2, 3))

    assert simplified(ops.slice(x, (0, 0), (-1, 3))) == []
    assert simplified(ops.concat(x)) == []
    assert [name for name, _ in simplified(x[1:])] == ["slice"]
    assert x[:] is x


def test_images_are_not_resized_beyond_what_float32_counts() -> None:
    """A length above 2**24 is refused by all resizing operators, with the length."""
    x = pk.var("x", (1, 4, 4, 1))
    for name in ("resize_nearest", "resize_bilinear", "resize_bicubic", "resize_area"):
        with pytest.raises(pk.ShapeError, match="of at most 16777216, got 16777217 at axis 2"):
            pk.get_op(name)(x, size=(2, 2**24 + 1))


def test_constants_beyond_memory_are_refused() -> None:
    """Repeats and edges of bins that no memory holds are shape errors with their number."""
    x = pk.var("x", (2, 3))

    for count in (2**40, 2**62):
        with pytest.raises(pk.ShapeError, match=f"no memory for {2 * count} repeats"):
            ops.repeat(x, repeats=(count, count), axis=0)
    bins = ops.histogram(x, bins=2**50, range=(0.0, 1.0))
    with pytest.raises(pk.ShapeError, match=f"no memory for the edges of {2**50} bins"):
        pk.ApplyPasses(pk.Graph([bins]), ["Expand"])
