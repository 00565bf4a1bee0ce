"""Names that tinyflow does not have: what is there instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from passkit.errors import PasskitError, nearest

INSTEAD = {
    "tf.data": "feed NumPy arrays",
    "tf.estimator": "write the loop: session.run(train_op, feed_dict)",
    "tf.keras": "tf.layers and tf.train; tf_graphdef.load reads Keras models",
    "tf.initializers": "tf.zeros_initializer, tf.glorot_uniform_initializer and their like",
    "tf.enable_eager_execution": "build a graph and run it in a tf.Session",
    "tf.GradientTape": "tf.gradients",
    "tf.function": "session.run compiles what it is asked for",
    "tf.py_func": "run, compute in NumPy, and feed",
    "tf.app": "call your main function",
    "tf.flags": "argparse",
    "tf.gfile": "open and os.path",
    "tf.logging": "the module logging",
    "tf.test": "pytest, and numpy.testing",
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
    "tf.train.import_meta_graph": "the program that built the graph; a Saver keeps values only",
    "tf.contrib.learn": "write the loop: session.run(train_op, feed_dict)",
    "tf.contrib.slim": "tf.layers",
    "tf.contrib.eager": "build a graph and run it in a tf.Session",
    "tf.summary.image": "tf.summary.histogram, or draw what session.run returns",
    "tf.summary.audio": "write what session.run returns",
    "tf.summary.text": "text stays in Python",
    "tf.nn.raw_rnn": "tf.nn.dynamic_rnn",
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
    _MODULES[module] = known

    def missing(name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(f"{module} has no attribute {name!r}")
        full = f"{module}.{name}"
        found = INSTEAD.get(full)
        way = f"use {found}" if found and not found.startswith(_VERBS) else found
        raise MissingNameError(f"tinyflow has no {full}; {way or _suggested(module, name)}")

    return missing


_MODULES: dict[str, Callable[[], Mapping[str, Any]]] = {}
"""The names of each module."""


def _suggested(module: str, name: str) -> str:
    """Where a name is, which one was mistyped, or where the names are listed."""
    for other, known in _MODULES.items():
        if name in known():
            return f"it is {other}.{name}"
    close = [n for n in _MODULES[module]() if not n.startswith("_") and _is_typo(name, n)]
    if close:
        return nearest(name, close)
    return "docs/tinyflow.md lists the names that there are"


def _is_typo(given: str, name: str) -> bool:
    """Whether ``given`` is ``name`` but for a letter, or two of a name of more than six.

    >>> _is_typo("rellu", "relu"), _is_typo("norm", "normal")
    (True, False)
    """
    a, b = given.lower(), name.lower()
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        above, row = row, [i]
        for j, y in enumerate(b, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (x != y)))
    return row[-1] <= (2 if len(b) > 6 else 1)


_VERBS = (
    *("feed", "write", "build", "run", "call", "fetch", "multiply", "draw", "text"),
    *("session.run compiles",),
)
