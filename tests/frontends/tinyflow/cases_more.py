"""Rows of the surface: losses, measures, pictures, control flow, and layers of tf.contrib."""

from __future__ import annotations

import numpy as np

from passkit.frontends import tinyflow as tf
from passkit.graph.graph import post_order
from tests.frontends.tinyflow.cases_layers import LAYER, _trained
from tests.frontends.tinyflow.cases_math import X, Y
from tests.frontends.tinyflow.cases_nn import FIRST, IMAGE, SECOND, STEPS, _cell
from tests.frontends.tinyflow.surface import Also, Refused, Row, lazy, values

SOME = np.array([[2.0], [0.0]], np.float32)
PART = 1 / (1 + np.exp(-X))
OTHER = 1 / (1 + np.exp(-Y))
CLASSES = np.array([0, 2], np.int32)
PICTURE, SECOND_PICTURE = abs(IMAGE[0]), abs(SECOND[0])


def _lost(f, **k):
    """A loss, and what is collected."""
    out = f(**k)
    kept = {key: len(found) for key, found in tf.get_default_graph().collections.items()}
    return [values(out), kept]


def _measured(f, **k):
    """A measure after two updates, its variables' names, and what is collected."""
    value, update = f(**k)
    with tf.Session(target="interpret") as session:
        session.run(tf.local_variables_initializer())
        found = [float(session.run(update)) for _ in range(2)]
        last = float(session.run(value))
    return [found, last, value.name, [v.name for v in tf.local_variables()],
            [len(tf.get_collection(key)) for key in ("mine", "yours")]]


def _total(f, **k):
    """A sum of losses, of which some are under a scope."""
    with tf.name_scope("s"):
        tf.losses.mean_squared_error(X, Y)
    tf.losses.absolute_difference(X, Y)
    for name in ("s/w", "w"):
        tf.get_variable(name, [2], initializer=tf.ones_initializer(), regularizer=tf.nn.l2_loss)
    found = f(**k)
    return [t.name for t in found] if isinstance(found, list) else values(found)


def _added(f, **k):
    f(**k)
    return {key: len(found) for key, found in tf.get_default_graph().collections.items()}


WEIGHED = {
    "weights": SOME,
    "scope": "other",
    "loss_collection": "mine",
    "reduction": "weighted_sum",
}
PAIR = Row({"labels": PART, "predictions": OTHER},
           {"labels": OTHER, "predictions": PART + 0.1, **WEIGHED}, _lost)
MEASURE = Row({"labels": CLASSES, "predictions": np.array([0, 1], np.int32)},
              {"labels": CLASSES + 1, "predictions": CLASSES,
               "weights": np.array([1.0, 0.25], np.float32), "metrics_collections": "mine",
               "updates_collections": ["yours"]}, _measured)
HITS = Row({"labels": np.array([1, 0, 1]), "predictions": np.array([1, 1, 0])},
           {"labels": np.array([0, 0, 1]), "predictions": np.array([0, 0, 0]),
            "weights": np.array([1.0, 0.25, 0.5], np.float32), "metrics_collections": "mine",
            "updates_collections": ["yours"]}, _measured)
LOSSES = {
    **{f"losses.{n}": PAIR for n in ("absolute_difference", "mean_squared_error")},
    "losses.huber_loss": Row(PAIR.base, {**PAIR.other, "delta": 0.01}, _lost),
    "losses.log_loss": Row(PAIR.base, {**PAIR.other, "epsilon": 0.1}, _lost),
    "losses.cosine_distance": Row(
        {**PAIR.base, "axis": 1},
        {**PAIR.other, "axis": Also(0, {"weights": 1.0}), "dim": Also(1, {"axis": None})}, _lost),
    "losses.hinge_loss": Row({"labels": PART, "logits": X},
                             {"labels": OTHER, "logits": Y, **WEIGHED}, _lost),
    "losses.mean_pairwise_squared_error": Row(
        PAIR.base, {k: v for k, v in PAIR.other.items() if k != "reduction"}, _lost),
    "losses.sigmoid_cross_entropy": Row(
        {"multi_class_labels": PART, "logits": X},
        {"multi_class_labels": OTHER, "logits": Y, "label_smoothing": 0.2, **WEIGHED}, _lost),
    "losses.softmax_cross_entropy": Row(
        {"onehot_labels": PART, "logits": X},
        {"onehot_labels": OTHER, "logits": Y, "label_smoothing": 0.2, **WEIGHED,
         "weights": SOME[:, 0]}, _lost),
    "losses.sparse_softmax_cross_entropy": Row(
        {"labels": CLASSES, "logits": X},
        {"labels": CLASSES[::-1].copy(), "logits": Y, **WEIGHED, "weights": SOME[:, 0]}, _lost),
    "losses.compute_weighted_loss": Row({"losses": X}, {"losses": Y, **WEIGHED}, _lost),
    "losses.add_loss": Row({"loss": 1.0},
                           {"loss": Also(None, {"loss_collection": "x"}), "loss_collection": "y"},
                           _added),
    "losses.get_losses": Row({}, {"scope": "s", "loss_collection": "none"}, _total),
    "losses.get_regularization_losses": Row({}, {"scope": "nothing"}, _total),
    "losses.get_regularization_loss": Row({}, {"scope": "nothing"}, _total),
    "losses.get_total_loss": Row({}, {"add_regularization_losses": False, "scope": "s"}, _total),
}
METRICS = {
    **{f"metrics.{n}": MEASURE for n in (
        "accuracy", "mean_squared_error", "mean_absolute_error", "root_mean_squared_error")},
    **{f"metrics.{n}": HITS for n in ("precision", "recall")},
    "metrics.mean": Row({"values": X}, {
        "values": Y, "weights": SOME, "metrics_collections": "mine",
        "updates_collections": "yours"}, _measured),
}


def _converted(f, **k):
    """Pictures, and how many operators make them: a cast alone keeps numbers within its bounds."""
    out = f(**k)
    return [values(out), len(post_order(out.op.nodes))]


TWO = {"images": IMAGE, "size": [3, 7]}
SIZED = Row(TWO, {"images": SECOND, "size": [2, 2], "align_corners": True,
                  "half_pixel_centers": True})
BOX = {"offset_height": 1, "offset_width": 1, "target_height": 2, "target_width": 2}
OTHER_BOX = {"offset_height": 0, "offset_width": 0, "target_height": 3, "target_width": 3}
PADDED = {"offset_height": 1, "offset_width": 1, "target_height": 8, "target_width": 8}
OTHER_PADDED = {"offset_height": 0, "offset_width": 0, "target_height": 9, "target_width": 9}
TURNED = Row({"image": PICTURE}, {"image": SECOND_PICTURE})
IMAGES = {
    **{f"image.{n}": TURNED for n in (
        "flip_left_right", "flip_up_down", "transpose_image", "per_image_standardization")},
    "image.random_flip_left_right": Row(
        {"image": np.concatenate([IMAGE] * 8)}, {"image": np.concatenate([SECOND] * 8), "seed": 3}),
    "image.rgb_to_grayscale": Row({"images": abs(X[None])}, {"images": abs(Y[None])}),
    "image.grayscale_to_rgb": Row({"images": PICTURE[..., :1]},
                                  {"images": SECOND_PICTURE[..., :1]}),
    "image.convert_image_dtype": Row(
        {"image": 2 * PICTURE, "dtype": tf.uint8},
        {"image": SECOND_PICTURE, "dtype": tf.float64, "saturate": True}, _converted),
    "image.adjust_brightness": Row({"image": PICTURE, "delta": 0.1},
                                   {"image": SECOND_PICTURE, "delta": 0.2}),
    "image.adjust_contrast": Row({"images": PICTURE, "contrast_factor": 2.0},
                                 {"images": SECOND_PICTURE, "contrast_factor": 0.5}),
    "image.central_crop": Row({"image": PICTURE, "central_fraction": 0.5},
                              {"image": SECOND_PICTURE, "central_fraction": 1.0}),
    "image.crop_to_bounding_box": Row({"image": PICTURE, **BOX},
                                      {"image": SECOND_PICTURE, **OTHER_BOX}),
    "image.pad_to_bounding_box": Row({"image": PICTURE, **PADDED},
                                     {"image": SECOND_PICTURE, **OTHER_PADDED}),
    "image.resize_image_with_crop_or_pad": Row(
        {"image": PICTURE, "target_height": 3, "target_width": 9},
        {"image": SECOND_PICTURE, "target_height": 2, "target_width": 4}),
    "image.resize_bilinear": SIZED,
    "image.resize_nearest_neighbor": SIZED,
    "image.resize_images": Row(TWO, {"images": SECOND, "size": [2, 2], "method": 1,
                                     "align_corners": True, "preserve_aspect_ratio": True}),
}
YES = lazy(lambda: tf.random_uniform([]) >= 0.0)
NO = lazy(lambda: tf.random_uniform([]) < 0.0)
ROWS_OF = lazy(lambda: tf.constant(X))


def _looped(f, **k):
    """What a loop gives, the structure of that, and whether it has a gradient."""
    out = f(**k)
    end = out[0] if isinstance(out, list) else out
    return [isinstance(out, list), values(end), tf.gradients(end, k["loop_vars"])[0] is None]


def _folded(f, **k):
    """What a fold gives, and whether it has a gradient."""
    out = f(**k)
    return [values(out), tf.gradients(out, k["elems"])[0] is None]


FOLD = {"fn": lambda a, b: a + b, "elems": ROWS_OF}
OTHER_FOLD = {
    "fn": lambda a, b: a - b, "elems": lazy(lambda: tf.constant(Y)),
    "initializer": lazy(lambda: tf.ones([3])), "parallel_iterations": Refused(3),
    "back_prop": False, "swap_memory": Refused(True),
}
CONTROL = {
    "cond": Row(
        {"pred": YES, "true_fn": lambda: tf.constant(1.0), "false_fn": lambda: tf.constant(2.0)},
        {"pred": NO, "true_fn": lambda: tf.constant(3.0),
         "false_fn": Also(lambda: tf.constant(4.0), {"pred": NO}), "strict": Refused(True),
         "fn1": Also(lambda: tf.constant(5.0), {"true_fn": None}),
         "fn2": Also(lambda: tf.constant(6.0), {"false_fn": None})}),
    "case": Row(
        {"pred_fn_pairs": lazy(lambda: [(NO(), lambda: tf.constant(1.0))]),
         "default": lambda: tf.constant(2.0)},
        {"pred_fn_pairs": lazy(lambda: [(YES(), lambda: tf.constant(1.0))]),
         "default": lambda: tf.constant(3.0), "exclusive": Refused(True),
         "strict": Refused(True)}),
    "while_loop": Row(
        {"cond": lambda a: tf.reduce_sum(a) < 10.0, "body": lambda a: a * a + 1.0,
         "maximum_iterations": 6, "loop_vars": lazy(lambda: [tf.constant(X[0])])},
        {"cond": lambda a: tf.reduce_sum(a) < 50.0, "body": lambda a: a + 3.0,
         "loop_vars": lazy(lambda: [tf.constant(Y[0])]),
         "shape_invariants": Refused([tf.TensorShape.of([4])]),
         "parallel_iterations": Refused(3), "back_prop": False, "swap_memory": Refused(True),
         "maximum_iterations": 1, "return_same_structure": True}, _looped),
    "scan": Row(FOLD, {**OTHER_FOLD, "infer_shape": Refused(False), "reverse": True}, _folded),
    "foldl": Row(FOLD, OTHER_FOLD, _folded),
    "map_fn": Row(
        {"fn": lambda a: a * a, "elems": ROWS_OF},
        {"fn": lambda a: -a, "elems": lazy(lambda: tf.constant(Y)), "dtype": Refused(tf.int32),
         "parallel_iterations": Refused(3), "back_prop": False, "swap_memory": Refused(True),
         "infer_shape": Refused(False), "fn_output_signature": Refused(tf.float32)}, _folded),
}
CONTRIB_LAYER = {
    "activation_fn": tf.sigmoid, "normalizer_fn": tf.contrib.layers.batch_norm,
    "normalizer_params": Also({"decay": 0.5},
                              {"normalizer_fn": tf.contrib.layers.batch_norm}),
    "weights_initializer": tf.ones_initializer(), "weights_regularizer": tf.nn.l2_loss,
    "biases_initializer": tf.ones_initializer(), "biases_regularizer": tf.nn.l2_loss,
    "reuse": Refused(True), "variables_collections": Refused("mine"),
    "outputs_collections": "mine", "trainable": False, "scope": "other",
}


def _kept(f, **k):
    """What a layer gives, its variables after a step of training, and what is collected."""
    out = f(**k)
    found = len(tf.get_collection("mine"))
    updates = len(tf.get_collection("update_ops"))
    return [values(out) if not tf.trainable_variables() else _trained(lambda: out), found, updates]


def _regular(f, **k):
    return values(f(**k)(tf.constant(X)))


POOLS = Row({"inputs": IMAGE, "kernel_size": 2},
            {"inputs": SECOND, "kernel_size": 3, "stride": 1,
             "padding": Also("SAME", {"kernel_size": 3}),
             "data_format": Also("NCHW", {"inputs": FIRST}), "outputs_collections": "mine",
             "scope": "other"}, _kept)
CONTRIB = {
    "contrib.layers.fully_connected": Row(
        {"inputs": X, "num_outputs": 2}, {"inputs": Y, "num_outputs": 3, **CONTRIB_LAYER}, _kept),
    "contrib.layers.convolution2d": Row(
        {"inputs": IMAGE, "num_outputs": 2, "kernel_size": 3},
        {"inputs": SECOND, "num_outputs": 3, "kernel_size": 2, "stride": 2, "padding": "VALID",
         "data_format": Also("NCHW", {"inputs": FIRST}), "rate": 2, **CONTRIB_LAYER}, _kept),
    "contrib.layers.max_pool2d": POOLS,
    "contrib.layers.avg_pool2d": POOLS,
    "contrib.layers.dropout": Row(
        {"inputs": X}, {"inputs": Y, "keep_prob": 0.9, "noise_shape": [2, 1],
                        "is_training": False, "outputs_collections": "mine", "scope": "other"},
        _kept),
    "contrib.layers.one_hot_encoding": Row(
        {"labels": [1, 0], "num_classes": 3},
        {"labels": [1, 2], "num_classes": 4, "on_value": 2.0, "off_value": -1.0,
         "outputs_collections": "mine", "scope": "other"}, _kept),
    "contrib.layers.batch_norm": Row(
        {"inputs": X},
        {"inputs": Y, "decay": 0.5, "center": False, "scale": True, "epsilon": 0.5,
         "activation_fn": tf.nn.relu, "param_initializers": {"beta": tf.ones_initializer()},
         "param_regularizers": {"beta": tf.nn.l2_loss}, "updates_collections": Refused(None),
         "is_training": False, "reuse": Refused(True), "variables_collections": Refused("mine"),
         "outputs_collections": "mine", "trainable": False, "scope": "other"}, _kept),
    "contrib.layers.l1_regularizer": Row({"scale": 0.5}, {"scale": 2.0, "scope": "s"}, _regular),
    "contrib.layers.l2_regularizer": Row({"scale": 0.5}, {"scale": 2.0, "scope": "s"}, _regular),
}
STEP = STEPS.transpose(1, 0, 2)
LONG = np.concatenate([STEP, STEP + 1, STEP - 1], 1)


def _called(inputs, **call):
    """What is seen of a layer as an object: of its call, and of a step of training."""
    def see(f, **k):
        layer = f(**k)
        return _trained(lambda: layer(inputs, **call))

    return see


OBJECT = {k: v for k, v in LAYER.items() if k != "reuse"}
POOL = Row({"pool_size": 2, "strides": 2},
           {"pool_size": 1, "strides": 1, "padding": Also("same", {"pool_size": 3}),
            "data_format": "channels_first"}, lambda f, **k: values(f(**k)(STEP)))
SEQUENCE = {"kernel_size": 1, "strides": 2, "padding": "same", "dilation_rate": 2,
            "data_format": "channels_first"}
OBJECTS = {
    "layers.Dense": Row({"units": 2}, {"units": 3, **OBJECT}, _called(X)),
    "layers.Conv1D": Row({"filters": 2, "kernel_size": 2},
                         {"filters": 3, **SEQUENCE, **OBJECT}, _called(LONG)),
    "layers.conv1d": Row(
        {"inputs": LONG, "filters": 2, "kernel_size": 2},
        {"inputs": LONG + 1, "filters": 3, **SEQUENCE, **LAYER}, _trained),
    **{f"layers.{n}": Row({"inputs": STEP, **POOL.base}, {"inputs": STEP + 1, **POOL.other})
       for n in ("max_pooling1d", "average_pooling1d")},
    **{f"layers.{n}": POOL for n in ("MaxPooling1D", "AveragePooling1D")},
    "nn.rnn_cell.LSTMCell": Row(
        {"num_units": 2},
        {"num_units": 3, "activation": tf.nn.relu, "reuse": Refused(True), "dtype": tf.float64,
         "use_peepholes": True, "cell_clip": 0.01, "initializer": tf.ones_initializer(),
         "num_proj": 3, "proj_clip": Also(0.001, {"num_proj": 3}), "num_unit_shards": Refused(2),
         "num_proj_shards": Refused(2), "forget_bias": 0.0, "state_is_tuple": False},
        _cell(lambda: tf.nn.rnn_cell.LSTMCell)),
}
ROWS = {**LOSSES, **METRICS, **IMAGES, **CONTROL, **CONTRIB, **OBJECTS}
