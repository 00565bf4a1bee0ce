"""Cases of Keras layers with constant weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.frontends.tf_graphdef.reference.case import Case
from tests.frontends.tf_graphdef.reference.families.convolutions import draw
from tests.frontends.tf_graphdef.reference.families.pools import integers

PLAIN = ("Identity", "Placeholder", "Const", "NoOp", "Reshape", "AddV2", "Squeeze", "ExpandDims")
"""Operators that say little of a layer."""


def cases(tf: Any) -> Iterator[Case]:
    """Yield all cases."""
    for name, layer, inputs in (
        *_convolutions(tf.keras.layers),
        *_pools(tf.keras.layers),
        *_shapes(tf.keras.layers),
        *_dense(tf.keras.layers),
        *_recurrent(tf.keras.layers),
        *_attention(tf.keras.layers),
        *_images(tf.keras.layers),
    ):
        yield _case(tf, name, layer, inputs)


def _case(tf: Any, name: str, layer: Any, inputs: Any) -> Case:
    arrays = list(inputs) if isinstance(inputs, tuple) else [inputs]
    layer(*_grouped(arrays, isinstance(inputs, tuple)))
    trained, others = (
        [_weight(w, k) for k, w in enumerate(group)]
        for group in (layer.trainable_variables, layer.non_trainable_variables)
    )
    how = {"training": False} if layer._call_has_training_arg else {}

    def function(*given: Any) -> Any:
        called = _grouped(list(given), isinstance(inputs, tuple))
        return layer.stateless_call(trained, others, *called, **how)[0]

    specs = [tf.TensorSpec((None, *a.shape[1:]), a.dtype) for a in arrays]
    graph = tf.function(function, input_signature=specs).get_concrete_function().graph
    kinds = [n.op for n in graph.as_graph_def().node]
    op = next((k for k in reversed(kinds) if k not in PLAIN), "Identity")
    return Case(op, f"keras {name}", function, {f"x{k}": a for k, a in enumerate(arrays)})


def _weight(variable: Any, seed: int) -> Any:
    """Return a value for a variable; states of random generators are kept."""
    if "seed" in variable.path:
        return variable
    value = draw(*variable.shape, seed=seed) / np.float32(2)
    return np.abs(value) + np.float32(0.25) if "variance" in variable.path else value


def _grouped(arrays: list[Any], several: bool) -> list[Any]:
    """Return a layer that takes its inputs as a list."""
    return [arrays] if several else arrays


def _convolutions(of: Any) -> Iterator[tuple[str, Any, Any]]:
    line, image, scan = draw(2, 7, 3), draw(2, 6, 5, 4), draw(1, 4, 4, 3, 2)
    for padding in ("same", "valid", "causal"):
        yield f"Conv1D {padding}", of.Conv1D(4, 3, padding=padding, dilation_rate=2), line
    yield "Conv1D groups", of.Conv1D(6, 3, 2, groups=3), line
    for padding in ("same", "valid"):
        yield f"Conv1DTranspose {padding}", of.Conv1DTranspose(4, 3, 2, padding=padding), line
        yield f"Conv2DTranspose {padding}", of.Conv2DTranspose(3, 3, 2, padding=padding), image
        yield f"Conv3DTranspose {padding}", of.Conv3DTranspose(2, 2, 2, padding=padding), scan
        yield f"SeparableConv1D {padding}", of.SeparableConv1D(4, 3, padding=padding), line
        yield f"SeparableConv2D {padding}", of.SeparableConv2D(4, 3, 2, padding=padding), image
        yield f"DepthwiseConv1D {padding}", of.DepthwiseConv1D(3, 2, padding), line
        yield f"DepthwiseConv2D {padding}", of.DepthwiseConv2D(3, 1, padding), image
    yield "Conv2DTranspose output_padding", of.Conv2DTranspose(3, 3, 2, output_padding=1), image
    yield "Conv2DTranspose dilations", of.Conv2DTranspose(3, 3, dilation_rate=2), image
    yield "DepthwiseConv2D multiplier", of.DepthwiseConv2D(3, 2, depth_multiplier=2), image
    yield "DepthwiseConv2D dilations", of.DepthwiseConv2D(2, dilation_rate=2), image
    yield "Conv3D", of.Conv3D(3, 2, padding="same", activation="relu"), scan


def _pools(of: Any) -> Iterator[tuple[str, Any, Any]]:
    data = {1: draw(2, 7, 3), 2: draw(2, 6, 5, 4), 3: draw(1, 4, 4, 3, 2)}
    for rank, x in data.items():
        for kind in ("Max", "Average"):
            layer = getattr(of, f"{kind}Pooling{rank}D")
            yield f"{kind}Pooling{rank}D", layer(2, padding="same"), x
            globally = getattr(of, f"Global{kind}Pooling{rank}D")
            yield f"Global{kind}Pooling{rank}D", globally(keepdims=rank == 2), x
    yield "AdaptiveAveragePooling2D", of.AdaptiveAveragePooling2D((3, 5)), data[2]
    yield "AdaptiveMaxPooling1D", of.AdaptiveMaxPooling1D(7), data[1]


def _shapes(of: Any) -> Iterator[tuple[str, Any, Any]]:
    line, image, scan = draw(2, 4, 3), draw(2, 4, 5, 2), draw(1, 3, 4, 3, 2)
    yield "UpSampling1D", of.UpSampling1D(2), line
    yield "UpSampling2D", of.UpSampling2D((2, 3)), image
    yield "UpSampling3D", of.UpSampling3D(2), scan
    yield "ZeroPadding1D", of.ZeroPadding1D((1, 2)), line
    yield "ZeroPadding3D", of.ZeroPadding3D(1), scan
    yield "Cropping1D", of.Cropping1D((1, 1)), line
    yield "Cropping2D", of.Cropping2D(((1, 0), (2, 1))), image
    yield "Cropping3D", of.Cropping3D(1), scan
    yield "Flatten", of.Flatten(), image
    yield "Permute", of.Permute((3, 1, 2)), image
    yield "RepeatVector", of.RepeatVector(3), draw(2, 4)
    yield "Reshape", of.Reshape((-1, 2)), image
    yield "Concatenate", of.Concatenate(axis=1), (line, draw(2, 2, 3))
    for kind in ("Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum"):
        yield kind, getattr(of, kind)(), (line, draw(2, 4, 3, seed=1))
    yield "Dot", of.Dot((2, 2)), (line, draw(2, 5, 3))
    yield "Dot normalize", of.Dot(1, normalize=True), (draw(2, 4), draw(2, 4, seed=1))


def _dense(of: Any) -> Iterator[tuple[str, Any, Any]]:
    x, row = draw(2, 4, 3), draw(3, 6)
    yield "Dense", of.Dense(5, activation="softmax"), x
    yield "EinsumDense", of.EinsumDense("abc,cde->abde", (None, 2, 5), bias_axes="de"), x
    yield "TimeDistributed", of.TimeDistributed(of.Dense(4)), x
    yield "SpectralNormalization", of.SpectralNormalization(of.Dense(4)), row
    yield "PReLU", of.PReLU(shared_axes=[1]), x
    yield "ReLU", of.ReLU(2.0, 0.1, 0.5), x
    yield "Softmax", of.Softmax(axis=1), x
    yield "ActivityRegularization", of.ActivityRegularization(0.1), x
    yield "BatchNormalization", of.BatchNormalization(axis=1), x
    yield "Dropout", of.Dropout(0.5), x
    yield "GaussianNoise", of.GaussianNoise(0.5), x
    yield "Normalization", of.Normalization(mean=[1.0, 2.0, 3.0], variance=[1.0, 4.0, 9.0]), x
    yield "Rescaling", of.Rescaling(0.5, -1.0), x
    yield "Embedding", of.Embedding(9, 4), integers(3, 5) % 9
    yield "CategoryEncoding", of.CategoryEncoding(9, "multi_hot"), integers(3, 5) % 9
    yield "Discretization", of.Discretization([-1.0, 0.0, 0.5]), row
    for name in (
        "celu",
        "elu",
        "exponential",
        "gelu",
        "glu",
        "hard_shrink",
        "hard_sigmoid",
        "hard_tanh",
        "leaky_relu",
        "linear",
        "log_sigmoid",
        "log_softmax",
        "mish",
        "relu6",
        "selu",
        "silu",
        "soft_shrink",
        "softplus",
        "softsign",
        "sparse_plus",
        "sparsemax",
        "squareplus",
        "tanh_shrink",
    ):
        yield f"Activation {name}", of.Activation(name), row * 2


def _recurrent(of: Any) -> Iterator[tuple[str, Any, Any]]:
    x = draw(2, 4, 3)
    for kind in ("SimpleRNN", "LSTM", "GRU"):
        layer = getattr(of, kind)
        yield f"{kind} unroll", layer(4, unroll=True), x
        yield f"{kind} backwards", layer(4, unroll=True, go_backwards=True), x
    yield "Bidirectional", of.Bidirectional(of.GRU(3, unroll=True, return_sequences=True)), x
    cells = [of.LSTMCell(3), of.GRUCell(4)]
    yield "RNN of cells", of.RNN(of.StackedRNNCells(cells), unroll=True), x
    images = draw(1, 3, 4, 4, 2)
    yield "ConvLSTM2D", of.ConvLSTM2D(2, 3, padding="same", unroll=True), images
    yield "ConvLSTM1D", of.ConvLSTM1D(2, 3, unroll=True), draw(1, 3, 6, 2)


def _attention(of: Any) -> Iterator[tuple[str, Any, Any]]:
    query, value = draw(2, 3, 4), draw(2, 5, 4)
    yield "Attention", of.Attention(use_scale=True), (query, value)
    yield "Attention concat", of.Attention(score_mode="concat"), (query, value)
    yield "AdditiveAttention", of.AdditiveAttention(), (query, value)


def _images(of: Any) -> Iterator[tuple[str, Any, Any]]:
    image = draw(2, 6, 5, 3)
    yield "Resizing", of.Resizing(4, 8), image
    yield "Resizing crop", of.Resizing(4, 4, crop_to_aspect_ratio=True), image
    yield "CenterCrop", of.CenterCrop(3, 3), image
    yield "RandomFlip", of.RandomFlip(), image
    yield "RandomRotation", of.RandomRotation(0.2), image
