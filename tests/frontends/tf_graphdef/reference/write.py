"""Write the fixtures: trace the cases in TensorFlow and store models, inputs and results.

    python -m tests.frontends.tf_graphdef.reference.write [FAMILY ...]

Only this module needs TensorFlow. `page.py` then writes docs/tf_ops.md from the fixtures.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from typing import Any

import numpy as np

from tests.frontends.tf_graphdef.reference import families
from tests.frontends.tf_graphdef.reference.case import FIXTURES, Array, Case, Stored, save


def traced(tf: Any, case: Case) -> Stored:
    """Trace and run a case in TensorFlow.

    Raises:
        Exception: TensorFlow's, if the case is no valid use.
    """
    specs = [tf.TensorSpec(_shape(case, v), v.dtype, name=k) for k, v in case.inputs.items()]

    def function(*given: Any) -> Any:
        return case.function(*given)  # its other arguments have defaults of any kind

    traced = tf.function(function, input_signature=specs).get_concrete_function()
    graph = traced.graph.as_graph_def()
    bodies = [f.node_def for f in graph.library.function]
    if not any(n.op == case.op for nodes in (graph.node, *bodies) for n in nodes):
        raise ValueError(f"{case.name}: its graph has no {case.op}")
    run = tf.function(function, jit_compile=True) if case.jit else traced
    result = run(*(tf.constant(v) for v in case.inputs.values()))
    result = result if isinstance(result, list | tuple) else [result]
    outputs = {t.name: np.asarray(v.numpy()) for t, v in zip(traced.outputs, result, strict=True)}
    return Stored(case.name, graph.SerializeToString(deterministic=True), case.inputs, outputs)


def _shape(case: Case, value: Array) -> tuple[int | None, ...]:
    """Return the shape of an input in the model."""
    if case.free_size and value.ndim > 1:
        return (*(None,) * (value.ndim - 1), value.shape[-1])
    return (None, *value.shape[1:]) if case.free and value.ndim else value.shape


def main(names: list[str]) -> int:
    """Write the named families, or all."""
    import tensorflow as tf

    known_names = sorted(m.name for m in pkgutil.iter_modules(families.__path__))
    for family in names or known_names:
        module = importlib.import_module(f"{families.__name__}.{family}")
        cases: dict[str, Stored] = {}
        for case in module.cases(tf):
            assert case.name not in cases, f"two cases are called {case.name}"
            try:
                cases[case.name] = traced(tf, case)
            except Exception as error:
                error.add_note(f"in the case {case.name}")
                raise
        path = FIXTURES / f"{family}.npz"
        save(path, cases.values())
        print(f"{path.name}: {len(cases)} cases, {path.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
