"""API cases of losses, metrics, images, control flow, tf.contrib and layer objects."""

from __future__ import annotations

import numpy as np

import passkit as pk
from passkit.frontends import tinyflow as tf
from tests.frontends.tinyflow.layer_cases import LAYER, train_once
from tests.frontends.tinyflow.math_cases import X, Y
from tests.frontends.tinyflow.nn_cases import FIRST, IMAGE, SECOND, STEPS, observe_cell
from tests.frontends.tinyflow.surface import CallCase, CombinedValue, RejectedValue, lazy, values

SOME = np.array([[2.0], [0.0]], np.float32)
PART = 1 / (1 + np.exp(-X))
OTHER = 1 / (1 + np.exp(-Y))
CLASSES = np.array([0, 2], np.int32)
PICTURE, SECOND_PICTURE = abs(IMAGE[0]), abs(SECOND[0])


def _observe_loss(f, **k):
    """Return a loss, and the number of values in each collection."""
    out = f(**k)
    counts = {
        key: len(values_in_collection)
        for key, values_in_collection in tf.get_default_graph().collections.items()
    }
    return [values(out), counts]


def _observe_metric(f, **k):
    """Return a metric after two updates, its variables' names, and sizes of collections."""
    value, update = f(**k)
    with tf.Session(target="interpret") as session:
        session.run(tf.local_variables_initializer())
        updates = [float(session.run(update)) for _ in range(2)]
        last = float(session.run(value))
    return [
        updates,
        last,
        value.name,
        [v.name for v in tf.local_variables()],
        [len(tf.get_collection(key)) for key in ("mine", "yours")],
    ]


def _observe_total(f, **k):
    """Return a sum or list of collected losses, some of which are under a scope."""
    with tf.name_scope("s"):
        tf.losses.mean_squared_error(X, Y)
    tf.losses.absolute_difference(X, Y)
    for name in ("s/w", "w"):
        tf.get_variable(name, [2], initializer=tf.ones_initializer(), regularizer=tf.nn.l2_loss)
    losses = f(**k)
    return [t.name for t in losses] if isinstance(losses, list) else values(losses)


def _added(f, **k):
    f(**k)
    return {key: len(collected) for key, collected in tf.get_default_graph().collections.items()}


WEIGHTED = {
    "weights": SOME,
    "scope": "other",
    "loss_collection": "mine",
    "reduction": "weighted_sum",
}
PAIR = CallCase(
    {"labels": PART, "predictions": OTHER},
    {"labels": OTHER, "predictions": PART + 0.1, **WEIGHTED},
    _observe_loss,
)
METRIC = CallCase(
    {"labels": CLASSES, "predictions": np.array([0, 1], np.int32)},
    {
        "labels": CLASSES + 1,
        "predictions": CLASSES,
        "weights": np.array([1.0, 0.25], np.float32),
        "metrics_collections": "mine",
        "updates_collections": ["yours"],
    },
    _observe_metric,
)
POSITIVES = CallCase(
    {"labels": np.array([1, 0, 1]), "predictions": np.array([1, 1, 0])},
    {
        "labels": np.array([0, 0, 1]),
        "predictions": np.array([0, 0, 0]),
        "weights": np.array([1.0, 0.25, 0.5], np.float32),
        "metrics_collections": "mine",
        "updates_collections": ["yours"],
    },
    _observe_metric,
)
LOSSES = {
    **{f"losses.{n}": PAIR for n in ("absolute_difference", "mean_squared_error")},
    "losses.huber_loss": CallCase(PAIR.base, {**PAIR.other, "delta": 0.01}, _observe_loss),
    "losses.log_loss": CallCase(PAIR.base, {**PAIR.other, "epsilon": 0.1}, _observe_loss),
    "losses.cosine_distance": CallCase(
        {**PAIR.base, "axis": 1},
        {
            **PAIR.other,
            "axis": CombinedValue(0, {"weights": 1.0}),
            "dim": CombinedValue(1, {"axis": None}),
        },
        _observe_loss,
    ),
    "losses.hinge_loss": CallCase(
        {"labels": PART, "logits": X}, {"labels": OTHER, "logits": Y, **WEIGHTED}, _observe_loss
    ),
    "losses.mean_pairwise_squared_error": CallCase(
        PAIR.base, {k: v for k, v in PAIR.other.items() if k != "reduction"}, _observe_loss
    ),
    "losses.sigmoid_cross_entropy": CallCase(
        {"multi_class_labels": PART, "logits": X},
        {"multi_class_labels": OTHER, "logits": Y, "label_smoothing": 0.2, **WEIGHTED},
        _observe_loss,
    ),
    "losses.softmax_cross_entropy": CallCase(
        {"onehot_labels": PART, "logits": X},
        {
            "onehot_labels": OTHER,
            "logits": Y,
            "label_smoothing": 0.2,
            **WEIGHTED,
            "weights": SOME[:, 0],
        },
        _observe_loss,
    ),
    "losses.sparse_softmax_cross_entropy": CallCase(
        {"labels": CLASSES, "logits": X},
        {"labels": CLASSES[::-1].copy(), "logits": Y, **WEIGHTED, "weights": SOME[:, 0]},
        _observe_loss,
    ),
    "losses.compute_weighted_loss": CallCase(
        {"losses": X}, {"losses": Y, **WEIGHTED}, _observe_loss
    ),
    "losses.add_loss": CallCase(
        {"loss": 1.0},
        {"loss": CombinedValue(None, {"loss_collection": "x"}), "loss_collection": "y"},
        _added,
    ),
    "losses.get_losses": CallCase({}, {"scope": "s", "loss_collection": "none"}, _observe_total),
    "losses.get_regularization_losses": CallCase({}, {"scope": "nothing"}, _observe_total),
    "losses.get_regularization_loss": CallCase({}, {"scope": "nothing"}, _observe_total),
    "losses.get_total_loss": CallCase(
        {}, {"add_regularization_losses": False, "scope": "s"}, _observe_total
    ),
}
METRICS = {
    **{
        f"metrics.{n}": METRIC
        for n in (
            "accuracy",
            "mean_squared_error",
            "mean_absolute_error",
            "root_mean_squared_error",
        )
    },
    **{f"metrics.{n}": POSITIVES for n in ("precision", "recall")},
    "metrics.mean": CallCase(
        {"values": X},
        {
            "values": Y,
            "weights": SOME,
            "metrics_collections": "mine",
            "updates_collections": "yours",
        },
        _observe_metric,
    ),
}


def _observe_conversion(f, **k):
    """Return images, and the number of their nodes: a cast does not change numbers within range."""
    out = f(**k)
    return [values(out), len(pk.Graph([out.entry]).nodes)]


IMAGE_AND_SIZE = {"images": IMAGE, "size": [3, 7]}
SIZED = CallCase(
    IMAGE_AND_SIZE,
    {"images": SECOND, "size": [2, 2], "align_corners": True, "half_pixel_centers": True},
)
BOX = {"offset_height": 1, "offset_width": 1, "target_height": 2, "target_width": 2}
OTHER_BOX = {"offset_height": 0, "offset_width": 0, "target_height": 3, "target_width": 3}
PADDED = {"offset_height": 1, "offset_width": 1, "target_height": 8, "target_width": 8}
OTHER_PADDED = {"offset_height": 0, "offset_width": 0, "target_height": 9, "target_width": 9}
FLIPPED = CallCase({"image": PICTURE}, {"image": SECOND_PICTURE})
IMAGES = {
    **{
        f"image.{n}": FLIPPED
        for n in ("flip_left_right", "flip_up_down", "transpose_image", "per_image_standardization")
    },
    "image.random_flip_left_right": CallCase(
        {"image": np.concatenate([IMAGE] * 8)}, {"image": np.concatenate([SECOND] * 8), "seed": 3}
    ),
    "image.rgb_to_grayscale": CallCase({"images": abs(X[None])}, {"images": abs(Y[None])}),
    "image.grayscale_to_rgb": CallCase(
        {"images": PICTURE[..., :1]}, {"images": SECOND_PICTURE[..., :1]}
    ),
    "image.convert_image_dtype": CallCase(
        {"image": 2 * PICTURE, "dtype": tf.uint8},
        {"image": SECOND_PICTURE, "dtype": tf.float64, "saturate": True},
        _observe_conversion,
    ),
    "image.adjust_brightness": CallCase(
        {"image": PICTURE, "delta": 0.1}, {"image": SECOND_PICTURE, "delta": 0.2}
    ),
    "image.adjust_contrast": CallCase(
        {"images": PICTURE, "contrast_factor": 2.0},
        {"images": SECOND_PICTURE, "contrast_factor": 0.5},
    ),
    "image.central_crop": CallCase(
        {"image": PICTURE, "central_fraction": 0.5},
        {"image": SECOND_PICTURE, "central_fraction": 1.0},
    ),
    "image.crop_to_bounding_box": CallCase(
        {"image": PICTURE, **BOX}, {"image": SECOND_PICTURE, **OTHER_BOX}
    ),
    "image.pad_to_bounding_box": CallCase(
        {"image": PICTURE, **PADDED}, {"image": SECOND_PICTURE, **OTHER_PADDED}
    ),
    "image.resize_image_with_crop_or_pad": CallCase(
        {"image": PICTURE, "target_height": 3, "target_width": 9},
        {"image": SECOND_PICTURE, "target_height": 2, "target_width": 4},
    ),
    "image.resize_bilinear": SIZED,
    "image.resize_nearest_neighbor": SIZED,
    "image.resize_images": CallCase(
        IMAGE_AND_SIZE,
        {
            "images": SECOND,
            "size": [2, 2],
            "method": 1,
            "align_corners": True,
            "preserve_aspect_ratio": True,
        },
    ),
}
YES = lazy(lambda: tf.random_uniform([]) >= 0.0)
NO = lazy(lambda: tf.random_uniform([]) < 0.0)
ROWS_OF_X = lazy(lambda: tf.constant(X))


def _observe_loop(f, **k):
    """Return the result of a loop, whether it is a list, and whether it has a gradient."""
    out = f(**k)
    end = out[0] if isinstance(out, list) else out
    return [isinstance(out, list), values(end), tf.gradients(end, k["loop_vars"])[0] is None]


def _observe_accumulation(f, **k):
    """Return the result of scan, foldl or map_fn, and whether it has a gradient."""
    out = f(**k)
    return [values(out), tf.gradients(out, k["elems"])[0] is None]


ACCUMULATION = {"fn": lambda a, b: a + b, "elems": ROWS_OF_X}
OTHER_ACCUMULATION = {
    "fn": lambda a, b: a - b,
    "elems": lazy(lambda: tf.constant(Y)),
    "initializer": lazy(lambda: tf.ones([3])),
    "parallel_iterations": RejectedValue(3),
    "back_prop": False,
    "swap_memory": RejectedValue(True),
}
CONTROL = {
    "cond": CallCase(
        {"pred": YES, "true_fn": lambda: tf.constant(1.0), "false_fn": lambda: tf.constant(2.0)},
        {
            "pred": NO,
            "true_fn": lambda: tf.constant(3.0),
            "false_fn": CombinedValue(lambda: tf.constant(4.0), {"pred": NO}),
            "strict": RejectedValue(True),
            "fn1": CombinedValue(lambda: tf.constant(5.0), {"true_fn": None}),
            "fn2": CombinedValue(lambda: tf.constant(6.0), {"false_fn": None}),
        },
    ),
    "case": CallCase(
        {
            "pred_fn_pairs": lazy(lambda: [(NO(), lambda: tf.constant(1.0))]),
            "default": lambda: tf.constant(2.0),
        },
        {
            "pred_fn_pairs": lazy(lambda: [(YES(), lambda: tf.constant(1.0))]),
            "default": lambda: tf.constant(3.0),
            "exclusive": RejectedValue(True),
            "strict": RejectedValue(True),
        },
    ),
    "while_loop": CallCase(
        {
            "cond": lambda a: tf.reduce_sum(a) < 10.0,
            "body": lambda a: a * a + 1.0,
            "maximum_iterations": 6,
            "loop_vars": lazy(lambda: [tf.constant(X[0])]),
        },
        {
            "cond": lambda a: tf.reduce_sum(a) < 50.0,
            "body": lambda a: a + 3.0,
            "loop_vars": lazy(lambda: [tf.constant(Y[0])]),
            "shape_invariants": RejectedValue([tf.TensorShape.of([4])]),
            "parallel_iterations": RejectedValue(3),
            "back_prop": False,
            "swap_memory": RejectedValue(True),
            "maximum_iterations": 1,
            "return_same_structure": True,
        },
        _observe_loop,
    ),
    "scan": CallCase(
        ACCUMULATION,
        {**OTHER_ACCUMULATION, "infer_shape": RejectedValue(False), "reverse": True},
        _observe_accumulation,
    ),
    "foldl": CallCase(ACCUMULATION, OTHER_ACCUMULATION, _observe_accumulation),
    "map_fn": CallCase(
        {"fn": lambda a: a * a, "elems": ROWS_OF_X},
        {
            "fn": lambda a: -a,
            "elems": lazy(lambda: tf.constant(Y)),
            "dtype": RejectedValue(tf.int32),
            "parallel_iterations": RejectedValue(3),
            "back_prop": False,
            "swap_memory": RejectedValue(True),
            "infer_shape": RejectedValue(False),
            "fn_output_signature": RejectedValue(tf.float32),
        },
        _observe_accumulation,
    ),
}
CONTRIB_LAYER = {
    "activation_fn": tf.sigmoid,
    "normalizer_fn": tf.contrib.layers.batch_norm,
    "normalizer_params": CombinedValue(
        {"decay": 0.5}, {"normalizer_fn": tf.contrib.layers.batch_norm}
    ),
    "weights_initializer": tf.ones_initializer(),
    "weights_regularizer": tf.nn.l2_loss,
    "biases_initializer": tf.ones_initializer(),
    "biases_regularizer": tf.nn.l2_loss,
    "reuse": RejectedValue(True),
    "variables_collections": RejectedValue("mine"),
    "outputs_collections": "mine",
    "trainable": False,
    "scope": "other",
}


def _observe_contrib_layer(f, **k):
    """Return a layer's output, its variables after a training step, and collection sizes."""
    out = f(**k)
    collected = len(tf.get_collection("mine"))
    updates = len(tf.get_collection("update_ops"))
    return [
        values(out) if not tf.trainable_variables() else train_once(lambda: out),
        collected,
        updates,
    ]


def _observe_regularizer(f, **k):
    return values(f(**k)(tf.constant(X)))


POOLS = CallCase(
    {"inputs": IMAGE, "kernel_size": 2},
    {
        "inputs": SECOND,
        "kernel_size": 3,
        "stride": 1,
        "padding": CombinedValue("SAME", {"kernel_size": 3}),
        "data_format": CombinedValue("NCHW", {"inputs": FIRST}),
        "outputs_collections": "mine",
        "scope": "other",
    },
    _observe_contrib_layer,
)
CONTRIB = {
    "contrib.layers.fully_connected": CallCase(
        {"inputs": X, "num_outputs": 2},
        {"inputs": Y, "num_outputs": 3, **CONTRIB_LAYER},
        _observe_contrib_layer,
    ),
    "contrib.layers.convolution2d": CallCase(
        {"inputs": IMAGE, "num_outputs": 2, "kernel_size": 3},
        {
            "inputs": SECOND,
            "num_outputs": 3,
            "kernel_size": 2,
            "stride": 2,
            "padding": "VALID",
            "data_format": CombinedValue("NCHW", {"inputs": FIRST}),
            "rate": 2,
            **CONTRIB_LAYER,
        },
        _observe_contrib_layer,
    ),
    "contrib.layers.max_pool2d": POOLS,
    "contrib.layers.avg_pool2d": POOLS,
    "contrib.layers.dropout": CallCase(
        {"inputs": X},
        {
            "inputs": Y,
            "keep_prob": 0.9,
            "noise_shape": [2, 1],
            "is_training": False,
            "outputs_collections": "mine",
            "scope": "other",
        },
        _observe_contrib_layer,
    ),
    "contrib.layers.one_hot_encoding": CallCase(
        {"labels": [1, 0], "num_classes": 3},
        {
            "labels": [1, 2],
            "num_classes": 4,
            "on_value": 2.0,
            "off_value": -1.0,
            "outputs_collections": "mine",
            "scope": "other",
        },
        _observe_contrib_layer,
    ),
    "contrib.layers.batch_norm": CallCase(
        {"inputs": X},
        {
            "inputs": Y,
            "decay": 0.5,
            "center": False,
            "scale": True,
            "epsilon": 0.5,
            "activation_fn": tf.nn.relu,
            "param_initializers": {"beta": tf.ones_initializer()},
            "param_regularizers": {"beta": tf.nn.l2_loss},
            "updates_collections": RejectedValue(None),
            "is_training": False,
            "reuse": RejectedValue(True),
            "variables_collections": RejectedValue("mine"),
            "outputs_collections": "mine",
            "trainable": False,
            "scope": "other",
        },
        _observe_contrib_layer,
    ),
    "contrib.layers.l1_regularizer": CallCase(
        {"scale": 0.5}, {"scale": 2.0, "scope": "s"}, _observe_regularizer
    ),
    "contrib.layers.l2_regularizer": CallCase(
        {"scale": 0.5}, {"scale": 2.0, "scope": "s"}, _observe_regularizer
    ),
}
STEP = STEPS.transpose(1, 0, 2)
LONG = np.concatenate([STEP, STEP + 1, STEP - 1], 1)


def _observe_layer_object(inputs, **call):
    """Return an observer of a layer object: its output, and its variables after a training step."""

    def observe(f, **k):
        layer = f(**k)
        return train_once(lambda: layer(inputs, **call))

    return observe


OBJECT = {k: v for k, v in LAYER.items() if k != "reuse"}
POOL = CallCase(
    {"pool_size": 2, "strides": 2},
    {
        "pool_size": 1,
        "strides": 1,
        "padding": CombinedValue("same", {"pool_size": 3}),
        "data_format": "channels_first",
    },
    lambda f, **k: values(f(**k)(STEP)),
)
SEQUENCE = {
    "kernel_size": 1,
    "strides": 2,
    "padding": "same",
    "dilation_rate": 2,
    "data_format": "channels_first",
}
OBJECTS = {
    "layers.Dense": CallCase({"units": 2}, {"units": 3, **OBJECT}, _observe_layer_object(X)),
    "layers.Conv1D": CallCase(
        {"filters": 2, "kernel_size": 2},
        {"filters": 3, **SEQUENCE, **OBJECT},
        _observe_layer_object(LONG),
    ),
    "layers.conv1d": CallCase(
        {"inputs": LONG, "filters": 2, "kernel_size": 2},
        {"inputs": LONG + 1, "filters": 3, **SEQUENCE, **LAYER},
        train_once,
    ),
    **{
        f"layers.{n}": CallCase({"inputs": STEP, **POOL.base}, {"inputs": STEP + 1, **POOL.other})
        for n in ("max_pooling1d", "average_pooling1d")
    },
    **{f"layers.{n}": POOL for n in ("MaxPooling1D", "AveragePooling1D")},
    "nn.rnn_cell.LSTMCell": CallCase(
        {"num_units": 2},
        {
            "num_units": 3,
            "activation": tf.nn.relu,
            "reuse": RejectedValue(True),
            "dtype": tf.float64,
            "use_peepholes": True,
            "cell_clip": 0.01,
            "initializer": tf.ones_initializer(),
            "num_proj": 3,
            "proj_clip": CombinedValue(0.001, {"num_proj": 3}),
            "num_unit_shards": RejectedValue(2),
            "num_proj_shards": RejectedValue(2),
            "forget_bias": 0.0,
            "state_is_tuple": False,
        },
        observe_cell(lambda: tf.nn.rnn_cell.LSTMCell),
    ),
}
CASES = {**LOSSES, **METRICS, **IMAGES, **CONTROL, **CONTRIB, **OBJECTS}
