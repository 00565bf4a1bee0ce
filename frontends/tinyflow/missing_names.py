"""Errors for names of TensorFlow that tinyflow does not have; they name an alternative."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from passkit.errors import PasskitError, nearest

ALTERNATIVES = {
    "tf.data": "feed NumPy arrays",
    "tf.estimator": "write the loop: session.run(train_op, feed_dict)",
    "tf.keras": "tf.layers and tf.train; tf_graphdef.load reads Keras models",
    "tf.initializers": "tf.zeros_initializer, tf.glorot_uniform_initializer and their like",
    "tf.enable_eager_execution": "build a graph and run it in a tf.Session",
    "tf.GradientTape": "tf.gradients",
    "tf.function": "session.run compiles its fetches",
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
    "tf.boolean_mask": "multiply by the mask; no shape may depend on values",
    "tf.unique": "np.unique before the feed; no shape may depend on values",
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
"""The alternative for each name of TensorFlow that tinyflow does not have."""


class MissingNameError(PasskitError, AttributeError):
    """A name of TensorFlow that tinyflow does not have."""


def missing_name_handler(
    module: str, names: Callable[[], Mapping[str, Any]]
) -> Callable[[str], NoReturn]:
    """Register a module's names, and create its ``__getattr__``, which suggests alternatives.

    Args:
        module: The public name of the module, such as "tf.nn".
        names: Returns the names of the module, for suggestions.

    Returns:
        A function of a name. It raises MissingNameError; AttributeError for names with two
        underscores, which Python's tools look up.
    """
    _NAMES_BY_MODULE[module] = names

    def missing(name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(f"{module} has no attribute {name!r}")
        full_name = f"{module}.{name}"
        alternative = ALTERNATIVES.get(full_name)
        instruction = (
            f"use {alternative}"
            if alternative and not alternative.startswith(_INSTRUCTION_STARTS)
            else alternative
        )
        raise MissingNameError(
            f"tinyflow has no {full_name}; {instruction or _suggest(module, name)}"
        )

    return missing


_NAMES_BY_MODULE: dict[str, Callable[[], Mapping[str, Any]]] = {}
"""For each module a function that returns its names."""


def _suggest(module: str, name: str) -> str:
    """Return a hint for a missing name: where it is, which name was mistyped, or the page of names.

    Args:
        module: Module in which it was looked up.
        name: The missing name.

    Returns:
        Text for the end of an error message.
    """
    for other, names in _NAMES_BY_MODULE.items():
        if name in names():
            return f"it is {other}.{name}"
    close = [n for n in _NAMES_BY_MODULE[module]() if not n.startswith("_") and _is_typo(name, n)]
    if close:
        return nearest(name, close)
    return "docs/tinyflow.md lists the names that there are"


def _is_typo(typed: str, name: str) -> bool:
    """Return whether the edit distance of two names is at most 1.

    It may be 2 if ``name`` has more than six letters. Letter case is ignored.

    >>> _is_typo("rellu", "relu"), _is_typo("norm", "normal")
    (True, False)
    """
    a, b = typed.lower(), name.lower()
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        above, row = row, [i]
        for j, y in enumerate(b, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (x != y)))
    return row[-1] <= (2 if len(b) > 6 else 1)


_INSTRUCTION_STARTS = (
    "feed",
    "write",
    "build",
    "run",
    "call",
    "fetch",
    "multiply",
    "draw",
    "text",
    "session.run compiles",
)
"""How an alternative begins that is a sentence of its own, not a name to use."""
