"""Names that tinyflow does not have: what is there instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from passkit.errors import PasskitError, nearest

INSTEAD = {
    "tf.data": "feed NumPy arrays",
    "tf.estimator": "write the loop: session.run(train_op, feed_dict)",
    "tf.keras": "tf.layers and tf.train; tf_graphdef.load reads Keras models",
    "tf.losses": "tf.reduce_mean of what tf.nn has",
    "tf.metrics": "tf.reduce_mean(tf.cast(tf.equal(…), tf.float32))",
    "tf.initializers": "tf.zeros_initializer, tf.glorot_uniform_initializer and their like",
    "tf.enable_eager_execution": "build a graph and run it in a tf.Session",
    "tf.GradientTape": "tf.gradients",
    "tf.function": "session.run compiles what it is asked for",
    "tf.while_loop": "loops of Python, which are unrolled",
    "tf.cond": "tf.where",
    "tf.case": "tf.where",
    "tf.py_func": "run, compute in NumPy, and feed",
    "tf.app": "call your main function",
    "tf.flags": "argparse",
    "tf.gfile": "open and os.path",
    "tf.logging": "the module logging",
    "tf.test": "pytest, and numpy.testing",
    "tf.image": "feed images as NumPy arrays",
    "tf.io": "NumPy reads and writes arrays",
    "tf.read_file": "open(path, 'rb').read()",
    "tf.decode_raw": "np.frombuffer",
    "tf.string_join": "text stays in Python",
    "tf.as_string": "text stays in Python",
    "tf.Print": "fetch the tensor and print it",
    "tf.Assert": "fetch the tensor and check it",
    "tf.sparse_placeholder": "tf.placeholder of dense arrays",
    "tf.SparseTensor": "dense tensors, and tf.gather",
    "tf.boolean_mask": "multiply by the mask; no shape may hang on values",
    "tf.unique": "np.unique before the feed; no shape may hang on values",
    "tf.train.Coordinator": "threads of Python, each with its session",
    "tf.train.start_queue_runners": "feed NumPy arrays",
    "tf.train.batch": "feed NumPy arrays",
    "tf.train.shuffle_batch": "feed NumPy arrays",
    "tf.train.MonitoredTrainingSession": "tf.Session and tf.train.Saver",
    "tf.train.Server": "one process: tf.Session",
    "tf.train.ClusterSpec": "one process: tf.Session",
    "tf.train.AdadeltaOptimizer": "a subclass of tf.train.Optimizer of some ten lines",
    "tf.train.FtrlOptimizer": "a subclass of tf.train.Optimizer of some ten lines",
    "tf.train.import_meta_graph": "the program that built the graph; a Saver keeps values only",
    "tf.contrib.learn": "write the loop: session.run(train_op, feed_dict)",
    "tf.contrib.slim": "tf.layers",
    "tf.contrib.eager": "build a graph and run it in a tf.Session",
    "tf.summary.image": "tf.summary.histogram, or draw what session.run returns",
    "tf.summary.audio": "write what session.run returns",
    "tf.summary.text": "text stays in Python",
    "tf.nn.raw_rnn": "tf.nn.dynamic_rnn",
    "tf.nn.bidirectional_dynamic_rnn": "tf.nn.static_bidirectional_rnn",
    "tf.nn.sampled_softmax_loss": "tf.nn.nce_loss",
    "tf.linalg": "pk.ops, whose operators have gradients",
    "tf.fft": "NumPy before the feed",
    "tf.saved_model": "tf.train.Saver; tf_graphdef.save writes frozen graphs",
    "tf.graph_util": "tf_graphdef.save",
    "tf.import_graph_def": "tf_graphdef.load, whose graphs pk.compile takes",
    "tf.RunOptions": "session.executable(fetches).profile()",
    "tf.RunMetadata": "session.executable(fetches).profile()",
    "tf.GPUOptions": "tf.Session(target='cuda')",
    "tf.assert_equal": "fetch the tensor and check it",
}
"""TensorFlow's name, and the way out."""


class MissingNameError(PasskitError, AttributeError):
    """TensorFlow has a name that tinyflow does not have."""


def lookup(module: str, known: Callable[[], Mapping[str, Any]]) -> Callable[[str], NoReturn]:
    """A module's `__getattr__`, which says what is there instead of a missing name."""

    def missing(name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(f"{module} has no attribute {name!r}")
        full = f"{module}.{name}"
        found = INSTEAD.get(full)
        names = [n for n in known() if not n.startswith("_")]
        way = f"use {found}" if found and not found.startswith(_VERBS) else found
        raise MissingNameError(f"tinyflow has no {full}; {way or nearest(name, names)}")

    return missing


_VERBS = (
    *("feed", "write", "build", "run", "call", "fetch", "multiply", "draw", "text"),
    *("session.run compiles",),
)
