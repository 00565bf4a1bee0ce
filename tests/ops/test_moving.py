"""Movement, gathers, scatters and sorting: functions with several results, kernels, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import passkit as pk
from tests.fences import fenced

pytestmark = pytest.mark.usefixtures("quick_kernels")

ops = pk.ops
Function = Callable[..., Any]


def run(*outputs: Any, **feeds: Any) -> list[Any]:
    """Return the interpreter's results."""
    return pk.interpret(pk.Graph(list(outputs)), feeds)


def test_functions_with_several_results_agree_with_numpy() -> None:
    """unstack, array_split, broadcast_arrays and meshgrid give what NumPy's give."""
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    v, w = np.arange(3, dtype=np.float32), np.arange(2, dtype=np.float32)
    x, y, z = pk.var("x", (3, 4)), pk.var("y", (3,)), pk.var("z", (2,))
    feeds = {"x": a, "y": v, "z": w}
    pairs: list[tuple[Any, Any]] = [
        (ops.unstack(x, axis=1), [a[:, k] for k in range(4)]),
        (ops.array_split(x, 3, axis=1), np.array_split(a, 3, 1)),
        (ops.array_split(x, [1, -1, 9]), np.array_split(a, [1, -1, 9])),
        (ops.broadcast_arrays(ops.expand_dims(y, 1), x), np.broadcast_arrays(v[:, None], a)),
        (ops.meshgrid(y, z), np.meshgrid(v, w)),
        (ops.meshgrid(y, z, indexing="ij"), np.meshgrid(v, w, indexing="ij")),
    ]
    for entries, arrays in pairs:
        graph_feeds = {n.name: feeds[n.name] for n in pk.Graph(list(entries)).inputs}
        for result, expected in zip(run(*entries, **graph_feeds), arrays, strict=True):
            np.testing.assert_array_equal(result, expected)
    assert ops.broadcast_arrays() == ()


@pytest.mark.parametrize(
    "key",
    [
        (0,),
        (slice(None), 2),
        (slice(None, None, -2), ...),
        (..., None, slice(1, 3)),
        (1, 2),
        (),
    ],
)
def test_assign_index_agrees_with_numpy(key: Any) -> None:
    """assign_index gives the array after NumPy's assignment, of a number and of an array."""
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    with_number, x = a.copy(), pk.var("x", (3, 4))
    with_number[key] = 7
    shape = a[key].shape
    value = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    with_array = a.copy()
    with_array[key] = value

    results = run(ops.assign_index(x, key, 7), ops.assign_index(x, key, value), x=a)

    np.testing.assert_array_equal(results[0], with_number)
    np.testing.assert_array_equal(results[1], with_array)


@pytest.mark.parametrize("end", [True, False], ids=["end", "begin"])
def test_arbitrary_indices_read_inside_of_arrays(end: bool, rng: Any) -> None:
    """No index, of whatever value, makes a gather touch memory outside of an array."""
    x, v = pk.var("x", (None, None)), pk.var("v", (None,))
    i, j = pk.var("i", (None,), "int64"), pk.var("j", (None, 2), "int32")
    outs = [
        ops.gather(x, i) * 2,
        ops.gather(v, i),
        ops.gather(x, i, axis=1, mode="zero"),
        ops.gather_nd(x, j),
        ops.flip(x, axis=1) + x[:, ::-1],
        ops.transpose(x)[::2, ::2],
    ]
    graph = pk.Graph(outs)
    exe = pk.compile(graph)
    for n in (1, 3, 17, 33):
        indices = rng.integers(-(2**62), 2**62, n)
        indices[: n // 2] = rng.integers(-2 * n, 2 * n, n // 2)
        feeds = {
            "x": rng.random((n, n + 2), dtype=np.float32),
            "v": rng.random(n, dtype=np.float32),
            "i": indices,
            "j": rng.integers(-(2**31), 2**31, (n, 2)).astype(np.int32),
        }
        managers = {k: fenced(a, end) for k, a in feeds.items()}
        results = exe({k: m.__enter__() for k, m in managers.items()})
        for a, b in zip(results, pk.interpret(graph, feeds), strict=True):
            np.testing.assert_array_equal(a, b)
        for m in managers.values():
            m.__exit__(None, None, None)


def test_a_gather_fuses_with_its_neighbours() -> None:
    """The producers of both inputs of a gather and its consumers are one kernel with it."""
    x, i = pk.var("x", (50, 33)), pk.var("i", (None,), "int32")
    y = ops.relu(ops.gather(x * 2 + 1, i * 2 + 1)) - 1
    exe = pk.compile(pk.Graph([y]))
    a = np.random.default_rng(0).normal(size=(50, 33)).astype(np.float32)
    b = np.arange(9, dtype=np.int32)

    np.testing.assert_array_equal(exe(x=a, i=b)[0], np.maximum((a * 2 + 1)[b * 2 + 1], 0) - 1)
    assert len(exe.kernels) == 1 and "gather_at" not in exe.source


def test_transposes_copy_blocks(rng: Any) -> None:
    """Kernels read inputs across the vector lanes by transposing blocks, for all sizes."""
    for dtype in ("float32", "float64", "int8", "int16", "bool"):
        x, y = pk.var("x", (None, None, None), dtype), pk.var("y", (None, None), dtype)
        transposed = ops.transpose(y)
        chosen = ops.where(ops.equal(transposed, transposed), transposed, y[0, 0])
        exe = pk.compile(pk.Graph([ops.transpose(x, (0, 2, 1)), chosen]))
        assert "turn_rows<" in exe.source
        for n, m in ((1, 1), (3, 50), (16, 16), (64, 33), (300, 70)):
            a = (rng.integers(0, 100, (2, n, m)) % 7).astype(dtype)
            b = (rng.integers(0, 100, (m, n)) % 5).astype(dtype)
            results = exe(x=a, y=b)
            np.testing.assert_array_equal(results[0], a.transpose(0, 2, 1))
            np.testing.assert_array_equal(results[1], b.T)


def test_vector_loops_split_where_a_selection_changes(rng: Any) -> None:
    """Each part of a concatenation or padding along the vector lanes is a loop without a select."""
    x, y = pk.var("x", (None, None)), pk.var("y", (None, None))
    outs = [ops.concat(x, y, axis=1) * 2, ops.pad(x, ((0, 0), (3, 5)), constant_values=1) + 1]
    exe = pk.compile(pk.Graph(outs))
    for n, m in ((0, 4), (5, 0), (1, 1), (40, 7), (16, 32), (300, 200)):
        a, b = (rng.random((3, k), dtype=np.float32) for k in (n, m))
        results = exe(x=a, y=b)
        np.testing.assert_array_equal(results[0], np.concatenate([a, b], 1) * 2)
        np.testing.assert_array_equal(
            results[1], np.pad(a, ((0, 0), (3, 5)), constant_values=1) + 1
        )
    assert "_cut0" in exe.source and "select(" not in exe.source


I32, F = np.zeros((2,), np.int32), np.zeros((2, 3), np.float32)
SHAPE_ERRORS: list[tuple[Function, str]] = [
    (lambda x: ops.moveaxis(x, (0, 1), (0,)), r"as many axes in source .*got \(0, 1\) and \(0,\)"),
    (lambda x: ops.matrix_transpose(x[0]), r"matrices in the last two axes, got \(3,\)"),
    (lambda x: ops.rot90(x, axes=(0,)), r"needs two axes to turn, got \(0,\)"),
    (lambda x: ops.rot90(x, k=1.5), "needs an int as k, got 1.5"),
    (lambda x: ops.roll(x, (1, 2)), r"without an axis needs one shift, got \(1, 2\)"),
    (lambda x: ops.roll(x, (1, 2), axis=0), r"a shift for each axis of \(0,\), got \(1, 2\)"),
    (lambda x: ops.roll(x, 0.5, axis=0), "needs ints as shift, got 0.5"),
    (
        lambda x: ops.rotate(pk.var("u", (None, 3)), shift=1, axis=0),
        r"known extent of axis 0, got \(u\.0, 3\); roll takes others",
    ),
    (lambda x: ops.rotate(x, shift=0.5, axis=0), "needs an int as shift, got 0.5"),
    (lambda x: ops.tile(x, (2, -1)), r"needs repetitions >= 0, got \(2, -1\)"),
    (lambda x: ops.repeat(x, -1), "needs ints >= 0 as repeats, got -1"),
    (lambda x: ops.repeat(x, (1, 2), axis=1), "each of the 3 elements of axis 1, got 2"),
    (lambda x: ops.stack(), "stack needs at least one input, got 0"),
    (lambda x: ops.stack(x, x[0]), r"inputs of one shape, got \(2, 3\) and \(3,\)"),
    (lambda x: ops.unstack(pk.var("u", (None,))), "length of axis 0, got u.0; use slice"),
    (lambda x: ops.unstack(x, 2), r"unstack: axis 2 is out of range for \(2, 3\)"),
    (lambda x: ops.array_split(pk.var("u", (None,)), 2), "length of axis 0, got u.0; use slice"),
    (lambda x: ops.array_split(x, 0), "at least one part, got 0"),
    (lambda x: ops.meshgrid(x[0], indexing="yx"), "'xy' or 'ij' as indexing, got 'yx'"),
    (lambda x: ops.meshgrid(x), r"meshgrid needs vectors, got \(2, 3\)"),
    (lambda x: ops.pad(x, ((1, 1), (1, 1), (1, 1))), r"pair for each of 2 axes as pad_width, got"),
    (lambda x: ops.pad_with(x, ((-1, -2), (0, 0))), "cuts axis 0 of length 2 by -1 and -2, below"),
    (lambda x: ops.pad(x, -1, mode="edge"), "in mode 'edge' needs widths >= 0, got -1"),
    (lambda x: ops.shift(x, 1.5), "needs an int as shift, got 1.5"),
    (lambda x: ops.crop(x, (0, 0, 0), (1, 1)), r"at most 2, got \(0, 0, 0\) and \(1, 1\)"),
    (lambda x: ops.full((-1,), 0), r"full needs extents >= 0, got \(-1,\)"),
    (lambda x: ops.arange("a"), "arange needs a finite number as stop, got 'a'"),
    (lambda x: ops.arange(0, 10**400), "arange needs a finite number as stop, got 10{36}"),
    (lambda x: ops.arange(0, 1e300, 1e-300), "from 0 to 1e.300 in steps of 1e-300 has too many"),
    (lambda x: ops.unslice(x[:0], (-1, 3), (0, 0)), r"needs extents >= 0 as shape, got \(-1, 3\)"),
    (lambda x: ops.reshape(pk.var("u"), (-2,)), r"at most one -1, got \(-2,\)"),
    (lambda x: ops.tensordot(x, x, ((0, 0), (0, 1))), r"axes=\(0, 0\) has axis 0 twice"),
    (lambda x: ops.gather(x, I32, batch_dims=False), "batch_dims from 0 to 0, .* got False"),
    (lambda x: ops.gather_nd(x, I32, batch_dims=False), "batch_dims from 0 to 0, got False"),
    (
        lambda x: ops.dilate(x[0], (1,), ((0.5, 0),)),
        r"ints or sizes as padding, got \(0\.5, 0\)",
    ),
    (
        lambda x: ops.dilate(x[0], (2,), ((-6, 0),)),
        r"more than there is off \(3,\): .* shape \(-1,\)",
    ),
    (lambda x: ops.arange(0, 3, 0), "arange needs a step other than 0"),
    (
        lambda x: ops.arange(0, pk.var("u", (None,)).shape[0], 2),
        r"up to the size u.0 needs .*step 2",
    ),
    (lambda x: ops.linspace(0, 1, -1), "linspace needs num >= 0, got -1"),
    (lambda x: ops.one_hot(I32, -2), "one_hot needs depth >= 0, got -2"),
    (lambda x: ops.tril(x, 0.5), "tril needs an int as k, got 0.5"),
    (lambda x: ops.triu(x[0]), r"matrices in the last two axes, got \(3,\)"),
    (lambda x: ops.diagonal(x, 0, 1, 1), "needs two axes, got axis 1 twice"),
    (lambda x: ops.diagonal(pk.var("u", (None, 3))), "which of its axes is shorter, got u.0 and 3"),
    (lambda x: ops.diag_embed(x[0, 0]), "diag_embed needs vectors in the last axis, got a scalar"),
    (lambda x: ops.diag(ops.expand_dims(x, 0)), r"a vector or a matrix, got \(1, 2, 3\)"),
    (lambda x: ops.space_to_depth(x, 0), "needs an int >= 1 as block_size, got 0"),
    (lambda x: ops.space_to_depth(x, 2), r"four axes, NHWC, got \(2, 3\)"),
    (
        lambda x: ops.space_to_depth(ops.full((1, 3, 4, 1), 0), 2),
        "height to be a multiple of 2, got 3",
    ),
    (lambda x: ops.space_to_batch(x, (0,)), r"up to 1 ints >= 1 as block_shape, got \(0,\)"),
    (
        lambda x: ops.resize_nearest(x, (2,), axes=(0, 1)),
        r"a size for each of axes \(0, 1\), got \(2,\)",
    ),
    (
        lambda x: ops.resize_bilinear(pk.var("u", (None, 2)), (2, 2), axes=(0, 1)),
        "at least 1 to read from, got u.0 and 2 at axis 0",
    ),
    (
        lambda x: ops.slice_assign(x, x[0], (0, 0), (1, 3)),
        r"shape \(1, 3\), that of the slice, got \(3,\)",
    ),
    (
        lambda x: ops.strided_slice(x, (0,), (1,), begin_mask="1"),
        "strided_slice needs an int as begin_mask, got '1'",
    ),
    (lambda x: ops.average(x, x[0, :2]), r"cannot stretch the weights \(2,\) to \(2, 3\)"),
    (lambda x: ops.arange(float("nan")), "arange needs a finite number as stop, got nan"),
    (lambda x: ops.eye(3, k=0.5), "eye needs an int as k, got 0.5"),
    (
        lambda x: ops.strided_slice(x, (0,), (1, 2)),
        r"of one length, got \(0,\), \(1, 2\) and \(1,\)",
    ),
    (lambda x: ops.gather(x, I32, batch_dims=2), "batch_dims from 0 to 0, so that axis 0 .* got 2"),
    (lambda x: ops.take_along_axis(x, I32), r"indices of rank 2, as x has, got \(2,\)"),
    (lambda x: ops.gather_nd(x, I32, batch_dims=4), "batch_dims from 0 to 0, got 4"),
    (lambda x: ops.gather_nd(x, np.int64(3)), "gather_nd needs indices with an axis of"),
    (
        lambda x: ops.gather_nd(x, np.zeros((2, 5), int)),
        r"0 to 2 coordinates .* got \(2, 5\) for \(2, 3\)",
    ),
    (lambda x: ops.gather(x[:0], I32), "axis 0 must have an element to read, got 0"),
    (
        lambda x: ops.reverse_sequence(x, I32, axis=0),
        r"batch_axis 0, an axis other than 0, got lengths",
    ),
    (lambda x: ops.sequence_mask(I32, -1), "sequence_mask needs maxlen >= 0, got -1"),
    (lambda x: ops.index_add(x, I32, F, batch_dims=3), "batch_dims from 0 to 0, got 3"),
    (lambda x: ops.index_add(x, I32, F[0]), r"updates of shape \(2, 3\), got \(3,\)"),
    (lambda x: ops.put_along_axis(x, I32, F), r"indices of rank 2, as x has, got \(2,\)"),
    (
        lambda x: ops.segment_sum(x[0], np.zeros((2, 3), int), 2),
        r"first axes of x, got \(2, 3\) for \(3,\)",
    ),
    (lambda x: ops.top_k(x, -1), "top_k needs k >= 0, got -1"),
    (lambda x: ops.top_k(x, 4), r"axis 1 must have k elements \(at least 4\), got 3"),
    (lambda x: ops.searchsorted(x, F[:1]), r"each row of the values, got \(2, 3\) for \(1, 3\)"),
    (lambda x: ops.index_add(x, I32, F, batch_dims=False), "batch_dims from 0 to 0, got False"),
    (
        lambda x: ops.histogram(x, range=(0, float("inf"))),
        r"finite \(low, high\) with low < high as range, got \(0, inf\)",
    ),
    (lambda x: ops.unique(x, -1), "unique needs size >= 0, got -1"),
]


@pytest.mark.parametrize("build, message", SHAPE_ERRORS)
def test_invalid_shapes_and_parameters_raise(build: Function, message: str) -> None:
    """The call that builds a node raises a ShapeError with the shape or parameter it got."""
    with pytest.raises(pk.ShapeError, match=message):
        build(pk.var("x", (2, 3)))


OTHER_ERRORS: list[tuple[type, Function, str]] = [
    (pk.DTypeError, lambda x: ops.gather(x, F), "needs integers as indices, got float32"),
    (pk.DTypeError, lambda x: ops.full((2,), "a"), "full needs a number, got 'a'"),
    (
        pk.DTypeError,
        lambda x: ops.windows(ops.cast(x[None], "int8"), window=2, fill=300),
        "windows of int8 cannot hold 300",
    ),
    (
        pk.DTypeError,
        lambda x: ops.windows(ops.complex(x, x)[None], window=2, fill="least"),
        "complex64 has no smallest and largest value",
    ),
    (pk.DTypeError, lambda x: ops.sum(x, dtype="complex64"), "sum needs .* got complex64"),
    (pk.DTypeError, lambda x: ops.mean(x, dtype="bool"), "mean needs .* got bool"),
    (pk.DTypeError, lambda x: ops.full((), 10**400, "int8"), "of int8 cannot hold 10{36}"),
    (pk.DTypeError, lambda x: ops.full((), 10**400), "of float32 cannot hold 10{36}"),
    (
        pk.DTypeError,
        lambda x: ops.pad(ops.cast(x, "int8"), 1, constant_values=300),
        "of int8 cannot hold 300",
    ),
    (pk.DTypeError, lambda x: ops.arange(0, 3, 0.5, "int32"), r"start and step, got 0 and 0\.5"),
    (
        pk.GraphError,
        lambda x: ops.gather(x, I32, mode="clib"),
        "has no mode 'clib'; did you mean 'clip'",
    ),
    (
        pk.GraphError,
        lambda x: ops.pad(x, 1, mode="edgy"),
        "has no mode 'edgy'; did you mean 'edge'",
    ),
    (pk.GraphError, lambda x: ops.space_to_depth(x, 2, "NHCW"), "has no data_format 'NHCW'"),
    (pk.GraphError, lambda x: ops.searchsorted(x[0], x, "lift"), "has no side 'lift'; did you"),
    (pk.GraphError, lambda x: ops.sized_by(), "sized_by needs at least one input, got none"),
    (pk.GraphError, lambda x: ops.linspace((), 1), r"linspace needs a number as start, got \(\)"),
    (pk.GraphError, lambda x: ops.pinv(x, rtol=-1), "a number >= 0 as rtol, or None, got -1"),
    (pk.GraphError, lambda x: ops.l2_normalize(x, epsilon=-1), "needs epsilon >= 0, got -1.0"),
    (
        pk.GraphError,
        lambda x: ops.clip_by_norm(x, clip_norm=-1),
        r"clip_by_norm needs clip_norm >= 0, got -1\.0",
    ),
    (
        pk.GraphError,
        lambda x: ops.scale_by_global_norm(x[0, 0], x, clip_norm=-2.0),
        r"scale_by_global_norm needs clip_norm >= 0, got -2\.0",
    ),
    (
        pk.GraphError,
        lambda x: ops.fused_batch_norm(x, *[x[0]] * 4, data_format="NHCW"),
        "fused_batch_norm has no data_format 'NHCW'; did you mean 'NHWC'",
    ),
    (
        pk.errors.ArgumentError,
        lambda x: ops.array_split(x, [1, 1.5]),
        "positions to cut at, got 1.5 at index 1",
    ),
    (
        pk.GraphError,
        lambda x: ops.nan_to_num(x, posinf="no"),
        "a number as posinf, or None, got 'no'",
    ),
    (
        pk.GraphError,
        lambda x: ops.random_words(np.int64(3), (2,), stream="a"),
        "random_words needs an int as stream, got 'a'",
    ),
    (
        pk.GraphError,
        lambda x: ops.random_uniform(np.int64(3), (2,), low=float("-inf")),
        r"low < high, a finite distance apart, got -inf and 1\.0",
    ),
    (pk.GraphError, lambda x: ops.matrix_power(x, 1.5), "matrix_power needs an int as n, got 1.5"),
    (
        pk.DTypeError,
        lambda x: ops.argwhere(x, 2, fill_value=float("inf")),
        "argwhere of int64 cannot hold inf",
    ),
    (pk.GraphError, lambda x: ops.argwhere(x), "argwhere needs the parameter 'size'"),
    (
        pk.GraphError,
        lambda x: ops.resize_nearest(x, (1, 1), align_corners=True, axes=(0, 1)),
        "resize_nearest cannot align corners and have half-pixel centers",
    ),
]


@pytest.mark.parametrize("error, build, message", OTHER_ERRORS)
def test_invalid_dtypes_and_words_raise(
    error: type[Exception], build: Function, message: str
) -> None:
    """Dtypes, numbers and words that an operator does not take raise an error."""
    with pytest.raises(error, match=message):
        build(pk.var("x", (2, 3)))
