"""Runs in TensorFlow what passkit saved, and writes docs/tf_save.md from what comes out.

    python -m tests.frontends.tf_graphdef.reference.saved TENSORFLOW_PYTHON
    python -m tests.frontends.tf_graphdef.reference.saved          (the page alone)

The first makes a model of every specimen in tests/ops, runs them by a Python that has TensorFlow,
and keeps for each operator and element type how far the results are apart.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import passkit as pk
from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.export import graph_def
from passkit.frontends.tf_graphdef.export.registry import OP_EXPORTERS
from passkit.graph.graph import Graph
from tests.frontends.tf_graphdef.reference.case import FIXTURES, Array, Stored, difference, stored

ROOT = Path(__file__).resolve().parents[4]
PAGE, RESULTS = ROOT / "docs" / "tf_save.md", FIXTURES / "saved.json"
DIGITS = ROOT / "examples" / "models" / "digits"

CANNOT = {
    "expm": "TensorFlow has it as Python code only",
    "first_positions": "how many elements TensorFlow's Unique finds is data",
    "gcd": "Euclid's loop",
    "lcm": "Euclid's loop",
    "segment_prod": "TensorFlow scatters no products",
    "unique": "how many elements are found is data",
}
"""Operators that are never written, with the reason."""

IN_PART = {
    **dict.fromkeys(["lstsq", "matrix_rank", "pinv"], "not for floats of 16 bits"),
    **dict.fromkeys(
        ["index_mul", "scatter_rows", "tensor_scatter_nd_mul"], "TensorFlow scatters no products"
    ),
}
"""Operators that are written for some element types or parameters only."""

DIFFERENCES = {
    "convolution": "an empty batch, for which TensorFlow's oneDNN gives a wrong shape",
    "erfinv": "the least numbers, of which TensorFlow makes 0",
    "erfcinv": "the least numbers, whose half TensorFlow takes for 0",
    "igamma": "an infinite x and a, of which TensorFlow makes 0",
    "igammac": "an infinite x and a, of which TensorFlow makes 0",
    "zeta": "a q that is NaN where x is 1, of which TensorFlow makes infinity",
    "ldexp": "denormal numbers, which TensorFlow takes for 0",
    "logcumsumexp": "NaN, which TensorFlow leaves out",
}
"""Operators that are equal but for some inputs."""

UP_TO_SIGN = ("eigh", "qr", "svd")
"""Operators whose results are vectors that may point either way."""


def feeds_of(graph: Graph, arrays: tuple[Array, ...]) -> dict[str, Array]:
    """Return the arrays of a trial by the names of the graph's inputs."""
    return {n.name: arrays[int(n.name.rpartition("_")[2])] for n in graph.inputs}


def models() -> Iterator[tuple[str, Stored]]:
    """Yield every specimen: its operator, and the saved model with inputs and passkit's results."""
    specimens = import_module("tests.ops.specimens")
    names = import_module("tests.ops.test_values").NAMES
    for name in names:
        for specimen in specimens.SPECIMENS.get(name, ()):
            for dtype in specimen.dtypes():
                for k, trial in enumerate(specimen.drawn(dtype)):
                    graph = pk.Graph(specimen.build(trial, "x"))
                    try:
                        message = graph_def(graph)
                    except ModelError:
                        yield name, Stored(f"{name} {k} {dtype}", b"", {}, {})
                        continue
                    outputs = [n.name for n in message.node][-len(graph.outputs) :]
                    data = message.SerializeToString(deterministic=True)
                    for m, arrays in enumerate(trial.feeds):
                        feeds = feeds_of(graph, arrays)
                        results = dict(zip(outputs, pk.interpret(graph, feeds), strict=True))
                        yield name, Stored(f"{name} {k}.{m} {dtype}", data, feeds, results)


def digits() -> Stored:
    """Return the example's model, loaded and saved again."""
    from passkit.frontends import tf_graphdef

    graph = tf_graphdef.load(DIGITS.with_suffix(".pb"))
    x = np.load(DIGITS.with_suffix(".npz"))["x"]
    (results,) = pk.interpret(graph, {"x": x})
    data = tf_graphdef.save(graph)
    return Stored("digits.pb 0 float32", data, {"x": x}, {"probabilities": results})


def networks() -> Iterator[tuple[str, Stored]]:
    """Yield TensorFlow's networks, loaded and saved again, with TensorFlow's results."""
    from passkit.frontends import tf_graphdef

    for path in sorted((FIXTURES / "networks").glob("*.npz")):
        (case,) = stored(path)
        graph = tf_graphdef.load(case.model, outputs=list(case.outputs))
        message = graph_def(graph)
        names = [n.name for n in message.node][-len(graph.outputs) :]
        outputs = dict(zip(names, case.outputs.values(), strict=True))
        data = message.SerializeToString(deterministic=True)
        yield path.stem, Stored(f"{path.stem} 0 float32", data, case.inputs, outputs)


def flushed(x: Array) -> Array:
    """Return numbers with denormals replaced by 0, as TensorFlow computes."""
    if x.dtype.kind != "f":
        return x
    return np.where(np.abs(x) < np.finfo(x.dtype).tiny, np.zeros_like(x), x)


def relative_difference(op: str, got: Array, want: Array) -> float:
    """Return the largest difference relative to the tolerance."""
    if op in UP_TO_SIGN:
        got, want = np.abs(got), np.abs(want)
    return difference(flushed(got), flushed(want))


RUNNER = """
import pickle, sys
import tensorflow as tf

folder = sys.argv[1]
with open(folder + "/models", "rb") as file:
    models = pickle.load(file)
results = []
for data, outputs, runs in models:
    message = tf.compat.v1.GraphDef.FromString(data)
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(message, name="")
    with tf.compat.v1.Session(graph=graph) as session:
        for feeds in runs:
            given = {name + ":0": value for name, value in feeds.items()}
            results.append(session.run([name + ":0" for name in outputs], given))
with open(folder + "/results", "wb") as file:
    pickle.dump((tf.__version__, results), file)
"""


def run(python: str, cases: list[Stored]) -> tuple[str, list[list[Array]]]:
    """Run cases in a process with TensorFlow; return its version and results."""
    import pickle  # between two processes of ours

    with tempfile.TemporaryDirectory() as folder:
        packed: list[tuple[bytes, list[str], list[dict[str, Array]]]] = []
        for case in cases:
            if not packed or packed[-1][0] != case.model:
                packed.append((case.model, list(case.outputs), []))
            packed[-1][2].append(dict(case.inputs))
        Path(folder, "models").write_bytes(pickle.dumps(packed, protocol=4))
        subprocess.run([python, "-c", RUNNER, folder], check=True)
        results: tuple[str, list[list[Array]]] = pickle.loads(Path(folder, "results").read_bytes())
    return results


def measured(python: str) -> dict[str, Any]:
    """Count equal and refused models for each operator and dtype, with the largest error.

    Raises:
        AssertionError: If a result is wrong, except for operators in DIFFERENCES.
    """
    named = [*models(), ("digits.pb", digits())]
    whole = list(networks())
    cases = [case for _, case in named if case.model]
    version, results = run(python, cases + [case for _, case in whole])
    actual: dict[str, dict[str, list[Any]]] = {}
    result = iter(results)
    for op, case in named:
        cell = actual.setdefault(op, {}).setdefault(case.parts[2], [0, 0, 0.0])
        if not case.model:
            cell[1] += 1
            continue
        for got, want in zip(next(result), case.outputs.values(), strict=True):
            try:
                error = relative_difference(op, np.asarray(got), want)
                assert error <= 1, f"{case.name} is wrong: {error:.3g} of the tolerance"
            except AssertionError:
                if op not in DIFFERENCES:
                    raise
                continue
            cell[2] = max(cell[2], float(f"{error:.2g}"))
        cell[0] += 1
    worst = 0.0
    for (name, case), outputs in zip(whole, result, strict=True):
        for got, want in zip(outputs, case.outputs.values(), strict=True):
            error = difference(np.asarray(got), want) / 10  # 1e-4 of the largest value
            assert error <= 1, f"{name} is wrong: {error:.3g} of the tolerance"
            worst = max(worst, error)
    return {
        "tensorflow": version,
        "models": len(cases),
        "networks": len(whole),
        "worst": float(f"{worst:.1g}"),
        "ways": {op: written_as(op) for op in actual},
        "operators": actual,
    }


HEAD = """# Saving for TensorFlow

`tf_graphdef.save(graph, "model.pb")` writes a frozen GraphDef, which TensorFlow runs, and
TensorBoard and Netron open; a `.pbtxt` file gets its text form. TensorFlow is not needed for it.

```python
import passkit as pk
from passkit.frontends import tf_graphdef

x = pk.var("x", ("n", 4))
graph = pk.Graph([pk.ops.softmax(x @ pk.var("w", (4, 3)))])
data = tf_graphdef.save(graph)  # or save(graph, "model.pb")
```

* Inputs and outputs keep their names. Symbolic sizes become arithmetic on shapes.
* An operator is TensorFlow's own where that means the same (*equivalent*); else it is written
  as the operators it expands to (*parts*), as its kernel expression (*expression*), or by the
  elements it reads (*gathers*). So operators that you register yourself can be saved.
* Where TensorFlow has no kernel for an element type, it is computed in a wider one, between casts.
* State variables become constants of their initial values; a graph that assigns is refused.
* Tensors and operations of tinyflow are written with their variables, so that TensorFlow 1 trains
  them: `save({{"loss": loss, "train": train, "init": init}}, "model.pb")`. The command
  `python -m tests.frontends.tf_graphdef.reference.saved_training PYTHON` compares three steps.
* All operators that cannot be written are named in one `ModelError`.

TensorFlow {tensorflow} ran {models:,} models that passkit saved, made of the specimens of its own
tests, and gave passkit's results: floats to 1e-5 of the largest value in float32, 1e-10 in float64,
2e-3 and 2e-2 in float16 and bfloat16; integers and booleans exactly. TensorFlow takes denormal
numbers for 0. Eigenvectors, singular vectors and the factors of QR are so up to their sign.
{networks} networks that TensorFlow wrote were loaded, saved, and run by it again: their results
are the first ones to {worst} of a tolerance of 1e-4 of the largest value.
`python -m tests.frontends.tf_graphdef.reference.saved PYTHON` measures it and writes this page.

| operator | as | equal for | largest error, of the tolerance | refused |
|---|---|---|---|---|
"""


def written_as(op: str) -> str:
    """Return how an operator is written."""
    if op in CANNOT or op not in pk.list_ops():  # the model of the example is none
        return ""
    if op in OP_EXPORTERS:
        return "equivalent"
    results = pk.get_op(op)
    kinds = {"FExpand": "parts", "FCodeGen": "expression", "FElement": "gathers"}
    return next((kind for attr, kind in kinds.items() if results.has_attr(attr)), "")


def page(results: dict[str, Any]) -> str:
    """Return the text of the page."""
    rows = []
    for op, cells in sorted(results["operators"].items()):
        equal = ", ".join(d for d, (good, _, _) in cells.items() if good)
        error = max(e for _, _, e in cells.values())
        refused = ", ".join(
            f"{d}{' in part' if good else ''}" for d, (good, bad, _) in cells.items() if bad
        )
        why = {**IN_PART, **CANNOT}.get(
            op, f"differs for {DIFFERENCES[op]}" if op in DIFFERENCES else ""
        )
        last = f"{refused}: {why}" if refused and why else refused or why
        rows.append(f"| {op} | {results['ways'][op]} | {equal} | {error:.1g} | {last} |")
    return HEAD.format(**results) + "\n".join(rows) + "\n"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measurements = measured(sys.argv[1])
        lines = [
            f"  {json.dumps(op)}: {json.dumps(c)}" for op, c in measurements["operators"].items()
        ]
        rest = {key: value for key, value in measurements.items() if key != "operators"}
        head = json.dumps(rest)[1:-1]
        RESULTS.write_text(f'{{{head}, "operators": {{\n' + ",\n".join(lines) + "\n}}\n")
    PAGE.write_text(page(json.loads(RESULTS.read_text())))
    print(PAGE.read_text().split("\n\n")[4])
