"""Whole models in one process: passkit, TensorFlow, XLA and ONNX Runtime, with their settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import peers

from networks import Array
from tests.frontends.tf_graphdef.reference.case import Stored

Feeds = Mapping[str, Array]

SETTINGS = {
    "passkit": "tf_graphdef.load, pk.compile: target cpu, fusion stitch, numerics strict",
    "graph": "TensorFlow: the GraphDef imported and pruned, run as a concrete function",
    "xla": "TensorFlow: the same in tf.function(jit_compile=True)",
    "onnx": "ONNX Runtime: the GraphDef by tf2onnx, CPU provider, intra_op threads = threads",
}


def passkit(case: Stored, feeds: Feeds, threads: int) -> peers.Competitor:
    """The executable, called with arrays by name."""
    import passkit as pk
    from passkit.frontends import tf_graphdef

    executable = pk.compile(tf_graphdef.load(case.model, outputs=list(case.outputs)))
    arguments = ", ".join(f"{name}={name}" for name in feeds)
    return peers.Competitor(executable, f"f({arguments})", lambda a: a, lambda r: r[0])


def _imported(case: Stored) -> tuple[Any, Any]:
    import tensorflow as tf

    graph = tf.compat.v1.GraphDef.FromString(case.model)
    whole = tf.compat.v1.wrap_function(lambda: tf.graph_util.import_graph_def(graph, name=""), [])
    inputs = [whole.graph.get_tensor_by_name(f"{name}:0") for name in case.inputs]
    outputs = [whole.graph.get_tensor_by_name(name) for name in case.outputs]
    return tf, whole.prune(inputs, outputs)


def graph(case: Stored, feeds: Feeds, threads: int) -> peers.Competitor:
    """TensorFlow's own executor, after grappler."""
    tf, function = _imported(case)
    call = f"f({', '.join(feeds)})"
    return peers.Competitor(function, call, tf.constant, lambda r: r[0].numpy())


def xla(case: Stored, feeds: Feeds, threads: int) -> peers.Competitor:
    """XLA, for the shapes of these feeds."""
    tf, function = _imported(case)
    specs = [tf.TensorSpec(a.shape, a.dtype) for a in feeds.values()]
    compiled = tf.function(lambda *xs: function(*xs), input_signature=specs, jit_compile=True)
    call = f"f({', '.join(feeds)})"
    return peers.Competitor(
        compiled.get_concrete_function(), call, tf.constant, lambda r: r[0].numpy()
    )


def onnx(case: Stored, feeds: Feeds, threads: int) -> peers.Competitor:
    """ONNX Runtime, called with its names."""
    import tensorflow as tf
    import tf2onnx

    with tf.Graph().as_default():
        model, _ = tf2onnx.convert.from_graph_def(
            tf.compat.v1.GraphDef.FromString(case.model),
            input_names=[f"{name}:0" for name in case.inputs],
            output_names=list(case.outputs),
        )
    session = peers.onnx_session(model.SerializeToString(), threads)
    pairs = ", ".join(f"{name + ':0'!r}: {name}" for name in feeds)
    return peers.Competitor(session.run, f"f(None, {{{pairs}}})", lambda a: a, lambda r: r[0])


BUILDERS: dict[str, Callable[[Stored, Feeds, int], peers.Competitor]] = {
    "passkit": passkit,
    "graph": graph,
    "xla": xla,
    "onnx": onnx,
}
