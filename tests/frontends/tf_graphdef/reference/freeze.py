"""Freeze the networks in TensorFlow and store them with their inputs and results.

    python -m tests.frontends.tf_graphdef.reference.freeze [NETWORK ...]

Needs TensorFlow; writes a file for each network.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.frontends.tf_graphdef.reference import networks
from tests.frontends.tf_graphdef.reference.case import NETWORKS, Stored, save
from tests.frontends.tf_graphdef.reference.networks.network import Network


def frozen(tf: Any, network: Network) -> Stored:
    """Return a network as one GraphDef with constant weights and a free first dimension."""
    from tensorflow.python.framework.convert_to_constants import (
        convert_variables_to_constants_v2,
    )

    specs = [
        tf.TensorSpec((None, *v.shape[1:]), v.dtype, name=k) for k, v in network.inputs.items()
    ]

    def function(*given: Any) -> Any:
        return network.function(*given)

    traced = tf.function(function, input_signature=specs).get_concrete_function()
    constant = convert_variables_to_constants_v2(traced)
    result = constant(*(tf.constant(v) for v in network.inputs.values()))
    outputs = {
        t.name: np.asarray(v)
        for t, v in zip(constant.outputs, tf.nest.flatten(result), strict=True)
    }
    graph = constant.graph.as_graph_def()
    model = graph.SerializeToString(deterministic=True)
    return Stored(network.name, model, network.inputs, outputs)


def all_networks(tf: Any) -> Iterator[Network]:
    """Return the networks of every file."""
    for results in sorted(m.name for m in pkgutil.iter_modules(networks.__path__)):
        module = importlib.import_module(f"{networks.__name__}.{results}")
        if hasattr(module, "networks"):
            yield from module.networks(tf)


def main(names: list[str]) -> int:
    """Write the named networks, or all."""
    import tensorflow as tf

    NETWORKS.mkdir(exist_ok=True)
    for network in all_networks(tf):
        if not names or network.name in names:
            path = NETWORKS / f"{network.name}.npz"
            save(path, [frozen(tf, network)])
            print(f"{path.name}: {path.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
