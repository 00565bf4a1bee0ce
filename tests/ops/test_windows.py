"""Convolutions, pools and batch norms: errors, kernels, gradients and unknown sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.errors import GraphError, ShapeError

pytestmark = pytest.mark.usefixtures("quick_kernels")

ops = pk.ops
IMAGE = pk.var("x", (2, 8, 9, 4))
FILTER = pk.var("f", (3, 3, 4, 6))
OPEN = pk.var("o", (2, None, 9, 4))


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (
            lambda: ops.convolution(IMAGE, FILTER, strides=0),
            ShapeError,
            r"int >= 1 as strides, or 2, one for each .* got 0",
        ),
        (
            lambda: ops.convolution(pk.var("v", (2, 4)), FILTER),
            ShapeError,
            r"one to three spatial axes, got \(2, 4\)",
        ),
        (
            lambda: ops.convolution(IMAGE, pk.var("g", (9, 3, 4, 6))),
            ShapeError,
            r"at least 9 elements with padding at spatial axis 0.* got 8 \+ 0 \+ 0",
        ),
        (
            lambda: ops.convolution(OPEN, FILTER, strides=2, padding="SAME"),
            ShapeError,
            r"'SAME' at stride 2 for the unknown size \w+",
        ),
        (
            lambda: ops.convolution(IMAGE, FILTER, padding=((1, -1), 0)),
            ShapeError,
            r"each of 2 spatial axes, got \(\(1, -1\), 0\)",
        ),
        (
            lambda: ops.convolution(IMAGE, pk.var("g", (3, 4, 6))),
            ShapeError,
            r"a filter of rank 4, .* got \(3, 4, 6\)",
        ),
        (
            lambda: ops.convolution(IMAGE, pk.var("g", (3, None, 4, 6))),
            ShapeError,
            r"filter whose shape is known, got \(3, g.1, 4, 6\)",
        ),
        (
            lambda: ops.convolution(IMAGE, FILTER, groups=4),
            ShapeError,
            r"groups that divide 6 filters, got 4",
        ),
        (
            lambda: ops.convolution(IMAGE, FILTER, groups=2),
            ShapeError,
            r"channels of input and filter, 4 in each of 2 groups, must agree, got 4 and 8",
        ),
        (
            lambda: ops.convolution(pk.var("s", ()), FILTER),
            ShapeError,
            r"one to three spatial axes, got \(\)",
        ),
        (
            lambda: ops.filter_turned(pk.var("g", (4,))),
            ShapeError,
            r"a filter of rank 2, .* got \(4,\)",
        ),
        (
            lambda: ops.filter_turned(FILTER, groups=0),
            ShapeError,
            r"groups that divide 6 filters, got 0",
        ),
        (
            lambda: ops.convolution_backprop_input(FILTER, IMAGE, size=(8, -1)),
            ShapeError,
            r"extents >= 0 as size, got \(8, -1\)",
        ),
        (
            lambda: ops.windows_back(pk.var("w", (1, 2, 1, 3)), size=(-2,)),
            ShapeError,
            r"extents >= 0 as size, got \(-2,\)",
        ),
        (
            lambda: ops.conv2d_transpose(
                pk.var("c", (1, 2, 2, 3)), pk.var("g", (1, 1, 4, 3)), padding=5
            ),
            ShapeError,
            r"conv2d_transpose cuts the padding 5 .* would be \(-8, -8\); pad less",
        ),
        (
            lambda: ops.convolution_backprop_input(FILTER, IMAGE, size=8),
            ShapeError,
            r"2 extents as size, for dy of \(2, 8, 9, 4\), got \(8\,\)",
        ),
        (
            lambda: ops.convolution_backprop_filter(IMAGE, pk.var("s", ()), window=3),
            ShapeError,
            r"input and dy of one rank, .* got \(2, 8, 9, 4\) and \(\)",
        ),
        (
            lambda: ops.conv2d_transpose(IMAGE, pk.var("g", (3, 4, 6))),
            ShapeError,
            r"a filter of rank 4, .* got \(3, 4, 6\)",
        ),
        (
            lambda: ops.conv2d_transpose(IMAGE, FILTER, padding=(1,)),
            ShapeError,
            r"each of 2 spatial axes, got \(1,\)",
        ),
        (
            lambda: ops.dilate(IMAGE, factors=2, padding=0),
            ShapeError,
            r"each axis of \(2, 8, 9, 4\), got 2 and 0",
        ),
        (lambda: ops.windows_back(IMAGE, size=8), ShapeError, "needs a tuple as size, got 8"),
        (
            lambda: ops.windows_back(IMAGE, size=(8, 9)),
            ShapeError,
            r"for 2 spatial axes, got \(2, 8, 9, 4\)",
        ),
        (
            lambda: ops.windows_taken(pk.var("v", (2, 8, 9))),
            ShapeError,
            r"\(batch, \*size, \*window, channels\), got \(2, 8, 9\)",
        ),
        (
            lambda: ops.windows_taken(pk.var("w", (2, 8, None, 4))),
            ShapeError,
            r"a window of known size, got \(w.2,\)",
        ),
        (
            lambda: ops.dilate(IMAGE, factors=(1, 2), padding=((0, 0),)),
            ShapeError,
            r"for each axis of \(2, 8, 9, 4\), got \(1, 2\) and \(\(0, 0\),\)",
        ),
        (
            lambda: ops.conv2d(IMAGE, FILTER, data_format="NCW"),
            GraphError,
            r"'NHWC' or 'NCHW' as data_format, got 'NCW'",
        ),
        (
            lambda: ops.global_avg_pool(pk.var("s", (2,) * 6), data_format="NCHW"),
            GraphError,
            r"'channels_last' or 'channels_first' as data_format, got 'NCHW'",
        ),
        (
            lambda: ops.local_response_normalization(pk.var("s", (2,) * 6), data_format="NCHW"),
            GraphError,
            r"'channels_last' or 'channels_first' as data_format, got 'NCHW'",
        ),
        (lambda: ops.conv1d(IMAGE, FILTER), ShapeError, r"an input of rank 3, got \(2, 8, 9, 4\)"),
        (
            lambda: ops.conv2d_transpose(IMAGE, FILTER, strides=2, output_padding=(1, 2)),
            ShapeError,
            r"an output_padding below the strides \(2, 2\), got \(1, 2\)",
        ),
        (
            lambda: ops.conv2d_transpose(IMAGE, pk.var("g", (3, 3, 6, 4)), output_shape=(20, 20)),
            ShapeError,
            "given and those of the size at spatial axis 0 must agree, got 8 and 18",
        ),
        (
            lambda: ops.windows_back(pk.var("w", (2, 7, 7, 2, 2, 3)), size=(9, 8)),
            ShapeError,
            "given and those of the size at spatial axis 0 must agree, got 7 and 8",
        ),
        (
            lambda: ops.window_products(IMAGE, pk.var("v", (2, 4)), window=3),
            ShapeError,
            r"a second input of rank 4, got \(2, 4\)",
        ),
        (
            lambda: ops.depthwise_conv2d(IMAGE, pk.var("g", (3, 3, 4))),
            ShapeError,
            r"\(height, width, channels, multiplier\), got \(3, 3, 4\)",
        ),
        (
            lambda: ops.max_pool2d(IMAGE, window=(2, 0)),
            ShapeError,
            r"int >= 1 as window, or 2, .* got \(2, 0\)",
        ),
        (
            lambda: ops.global_max_pool(pk.var("v", (2, 4))),
            ShapeError,
            r"\(batch, \*size, channels\), got \(2, 4\)",
        ),
        (lambda: ops.lrn(IMAGE, depth_radius=-1), ShapeError, r"int >= 0 as depth_radius, got -1"),
        (lambda: ops.lrn(pk.var("v", (4,))), ShapeError, r"\(…, channels\), got \(4,\)"),
        (
            lambda: ops.batch_norm(IMAGE, IMAGE, *[pk.var(c, (4,)) for c in "abc"]),
            ShapeError,
            r"each channel as input 1, got \(2, 8, 9, 4\)",
        ),
    ],
)
def test_invalid_calls_raise(build: Any, error: Any, message: str) -> None:
    """The call that builds a node raises an error with the shape or parameter it got."""
    with pytest.raises(error, match=message):
        build()


def step_kinds(entry: Any) -> list[str]:
    """Return the classes of the steps that compute an entry."""
    return [type(s).__name__ for s in pk.compile(entry).steps]


def test_a_pool_fuses_with_its_neighbours() -> None:
    """A pool, a reduction of a view, is one kernel with its producer and consumer."""
    y = ops.exp(ops.max_pool2d(ops.relu(IMAGE), window=2) * 2.0)

    assert step_kinds(y) == ["LaunchStep"]


def test_a_pool_with_channels_first_does_not_transpose() -> None:
    """A pool with channels first is one kernel, vectorized along the rows of images."""
    y = ops.relu(ops.max_pool2d(IMAGE * 2.0, window=2, data_format="NCHW"))
    exe = pk.compile(y)

    assert len(exe.kernels) == 1 and "turn(" not in exe.source
    feeds = {"x": np.random.default_rng(1).normal(size=(2, 8, 9, 4)).astype(np.float32)}
    np.testing.assert_array_equal(exe(feeds)[0], pk.interpret(pk.Graph([y]), feeds)[0])


def test_global_pools_of_any_rank_take_channels_first() -> None:
    """With four spatial axes and channels first, a global pool reduces the axes behind axis 1."""
    y = ops.global_max_pool(pk.var("x", (2, 3, 4, 5, 1, 2)), data_format="channels_first")
    x = np.random.default_rng(1).normal(size=(2, 3, 4, 5, 1, 2)).astype(np.float32)

    (result,) = pk.interpret(pk.Graph([y]), {"x": x})
    np.testing.assert_array_equal(result, x.max(axis=(2, 3, 4, 5)))


def test_a_pool_behind_a_transpose_computes_with_channels_last() -> None:
    """The transposes around a pool between two convolutions with channels first cancel out."""
    inner = ops.transpose(ops.relu(IMAGE) + 1.0, axes=(0, 3, 1, 2))
    y = ops.max_pool2d(inner, window=2, data_format="NCHW")
    exe = pk.compile(ops.transpose(y, axes=(0, 2, 3, 1)))

    assert len(exe.kernels) == 1
    assert "turn(" not in exe.source and "strided" not in exe.source


def test_the_first_maximum_of_a_window_gets_the_gradient() -> None:
    """The gradient goes to the first of equal elements in a window."""
    x = pk.var("x", (1, 4, 1))
    (dx,) = pk.gradients([ops.max_pool1d(x, window=2, strides=1)], [x])
    feeds = {"x": np.float32([[[1], [1], [0], [0]]])}

    assert pk.interpret(pk.Graph([dx]), feeds)[0].ravel().tolist() == [1, 1, 1, 0]


def test_one_plan_serves_all_sizes() -> None:
    """A convolution and a pool of unknown sizes are compiled once for all of them."""
    x, f = pk.var("x", (None, None, 5, 2)), pk.var("f", (3, 3, 2, 4))
    y = ops.avg_pool2d(ops.conv2d(x, f, padding="SAME"), window=2)
    exe, graph = pk.compile(y), pk.Graph([y])
    rng = np.random.default_rng(0)
    for rows, height in ((1, 4), (2, 7), (3, 2)):
        feeds = {
            "x": rng.normal(size=(rows, height, 5, 2)).astype(np.float32),
            "f": rng.normal(size=(3, 3, 2, 4)).astype(np.float32),
        }
        np.testing.assert_allclose(
            exe(feeds)[0], pk.interpret(graph, feeds)[0], rtol=2e-5, atol=1e-5
        )


GRADIENT_CASES: list[tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ("conv2d", (2, 5, 6, 4), (3, 3, 4, 6), {}),
    ("conv2d", (2, 5, 6, 4), (3, 3, 2, 6), {"groups": 2, "strides": 2}),
    ("conv2d", (2, 5, 6, 4), (0, 3, 4, 6), {}),
    ("depthwise_conv2d", (2, 5, 6, 4), (3, 3, 4, 2), {}),
    ("depthwise_conv2d", (0, 5, 6, 4), (3, 3, 4, 2), {}),
]


@pytest.mark.parametrize("name, shape, filters, params", GRADIENT_CASES)
def test_gradients_of_unknown_and_known_sizes_agree(
    name: str, shape: tuple[int, ...], filters: tuple[int, ...], params: dict[str, Any]
) -> None:
    """The number of channels is known by the filter; a batch or a window may be empty."""
    rng = np.random.default_rng(0)
    feeds = {
        "x": rng.normal(size=shape).astype(np.float32),
        "f": rng.normal(size=filters).astype(np.float32),
    }

    def gradients(sizes: tuple[int | None, ...]) -> Any:
        x, f = pk.var("x", sizes), pk.var("f", filters)
        y = pk.get_op(name)(x, f, **params)
        return pk.compile(pk.gradients(ops.sum(y * y), [x, f]))(feeds)

    for static, dynamic in zip(gradients(shape), gradients((None,) * 4), strict=True):
        np.testing.assert_allclose(dynamic, static, rtol=1e-5, atol=1e-5)
    assert [g.shape for g in gradients(shape)] == [shape, filters]


def test_batch_norm_computes_the_factors_once() -> None:
    """The factor of each channel is computed once for each channel, not for each element."""
    vectors = [pk.var(c, (4,)) for c in "abcd"]
    exe = pk.compile(ops.relu(ops.batch_norm(IMAGE, *vectors)))

    texts = [k.source for k in exe.kernels]
    assert sum("rsqrt(" in t for t in texts) == 1
    assert len(texts) == 2 or "store(s" in texts[0]


def test_padding_beyond_memory_is_a_capacity_error():
    """NumPy's convolution refuses padding that it cannot allocate, with the widths."""
    image, window = np.ones((1, 4, 1), np.float32), np.ones((3, 1, 1), np.float32)
    x, w = pk.var("x", image.shape), pk.var("w", window.shape)
    far = ops.conv1d(x, w, padding="SAME", dilations=2**62)

    with pytest.raises(pk.CapacityError, match=r"the padding \[\(46116.*\)\] is too large"):
        pk.interpret(pk.Graph([far]), {"x": image, "w": window})


def test_padding_beyond_64_bits_is_named():
    """An image whose padding has no length in 64 bits is refused with the widths."""
    image, window = np.ones((1, 4, 1), np.float32), np.ones((3, 1, 1), np.float32)
    x, w = pk.var("x", image.shape), pk.var("w", window.shape)
    node = ops.convolution(x, w, padding="SAME", dilations=2**63).node

    with pytest.raises(pk.CapacityError, match=r"the padding \[\(9223372036854775808, 9"):
        node.op.get_attr("FCompute")(node, image, window)
