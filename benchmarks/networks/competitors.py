"""Competitors on entire models in one process: passkit, TensorFlow, XLA and ONNX Runtime.

TensorFlow and ONNX Runtime are imported only where they run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import peers

import passkit as pk
from networks import NetworkArray
from passkit.frontends import tf_graphdef
from tests.frontends.tf_graphdef.reference.case import Stored

ModelFeeds = Mapping[str, NetworkArray]

SETTINGS = {
    "passkit": "tf_graphdef.load, pk.compile: target cpu, fusion stitch, numerics strict",
    "graph": "TensorFlow: the GraphDef imported and pruned, run as a concrete function",
    "xla": "TensorFlow: the same in tf.function(jit_compile=True)",
    "onnx": "ONNX Runtime: the GraphDef by tf2onnx, CPU provider, intra_op threads = threads",
}


def passkit(case: Stored, feeds: ModelFeeds, threads: int) -> peers.Competitor:
    """Compile the model; the executable is called with arrays by name."""
    executable = pk.compile(tf_graphdef.load(case.model, outputs=list(case.outputs)))
    arguments = ", ".join(f"{name}={name}" for name in feeds)
    return peers.Competitor(executable, f"f({arguments})", lambda a: a, lambda r: r[0])


def _imported(case: Stored) -> tuple[Any, Any]:
    """Return the module tensorflow, and the model as a pruned function."""
    import tensorflow as tf

    graph = tf.compat.v1.GraphDef.FromString(case.model)
    function = tf.compat.v1.wrap_function(
        lambda: tf.graph_util.import_graph_def(graph, name=""), []
    )
    inputs = [function.graph.get_tensor_by_name(f"{name}:0") for name in case.inputs]
    outputs = [function.graph.get_tensor_by_name(name) for name in case.outputs]
    return tf, function.prune(inputs, outputs)


def graph(case: Stored, feeds: ModelFeeds, threads: int) -> peers.Competitor:
    """Run the model in TensorFlow's own executor, after Grappler."""
    tf, function = _imported(case)
    call = f"f({', '.join(feeds)})"
    return peers.Competitor(function, call, tf.constant, lambda r: r[0].numpy())


def xla(case: Stored, feeds: ModelFeeds, threads: int) -> peers.Competitor:
    """Compile the model with XLA for the shapes of these feeds."""
    tf, function = _imported(case)
    specs = [tf.TensorSpec(a.shape, a.dtype) for a in feeds.values()]
    compiled = tf.function(lambda *xs: function(*xs), input_signature=specs, jit_compile=True)
    call = f"f({', '.join(feeds)})"
    return peers.Competitor(
        compiled.get_concrete_function(), call, tf.constant, lambda r: r[0].numpy()
    )


def onnx(case: Stored, feeds: ModelFeeds, threads: int) -> peers.Competitor:
    """Convert the model with tf2onnx and load it in ONNX Runtime."""
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


BUILDERS: dict[str, Callable[[Stored, ModelFeeds, int], peers.Competitor]] = {
    "passkit": passkit,
    "graph": graph,
    "xla": xla,
    "onnx": onnx,
}
