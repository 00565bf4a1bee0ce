"""Spotify's basic-pitch, a real SavedModel: TensorFlow's output, without TensorFlow.

    python benchmarks/basic_pitch.py [FOLDER]

Without the folder of its model, its wheel is fetched: ``pip download --no-deps basic-pitch``.
What TensorFlow computes is kept beside this, every eighth frame of it; ``--write`` writes it anew
with the TensorFlow of the Python it runs in.

The network takes the logarithm of a spectrogram whose bands are mostly silent, which enlarges the
errors of the sums behind it. So the report compares each output with the graph in float64: the
error of the compiled program may be at most twice the interpreter's, and no larger than
TensorFlow's, which is in turn most of what lies between TensorFlow's output and ours.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
KEPT = ROOT / "benchmarks" / "results" / "basic_pitch.npz"
INSIDE = "basic_pitch/saved_models/icassp_2022/nmp"
EVERY = 8
TOLERANCE = 3e-3
"""Of the largest value: how far TensorFlow's output may be from ours. Its own error is 0.0017."""


def audio() -> Any:
    """Two seconds of three notes, one after the other, with overtones."""
    at = np.arange(43844) / 22050
    note = np.select([at < 0.7, at < 1.4], [220.0, 277.18], 329.63)
    parts = [np.sin(2 * np.pi * note * at * k) / k for k in (1, 2, 3)]
    return (0.3 * sum(parts)).astype(np.float32).reshape(1, -1, 1)


def fetched(folder: Path) -> Path:
    """The model out of its wheel, unpacked into a folder."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "basic-pitch"]
    subprocess.run([*command, "--dest", str(folder)], check=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as files:
        files.extractall(folder, [n for n in files.namelist() if n.startswith(INSIDE)])
    return folder / INSIDE


def write(model: Path) -> None:
    """Keep what TensorFlow computes; the model is too old for its newer loader."""
    import tensorflow as tf

    graph = tf.Graph()
    with graph.as_default(), tf.compat.v1.Session(graph=graph) as session:
        meta = tf.compat.v1.saved_model.load(session, ["serve"], str(model))
        signature = meta.signature_def["serving_default"]
        (name,) = (info.name for info in signature.inputs.values())
        wanted = {k: info.name for k, info in signature.outputs.items()}
        found = session.run(wanted, {name: audio()})
    np.savez_compressed(KEPT, **{k: v[:, ::EVERY] for k, v in found.items()})


def compare(model: Path) -> dict[str, Any]:
    """Error and times of the model, loaded, compiled and run."""
    import passkit as pk
    from passkit.frontends import tf_graphdef
    from tests.widened import FLOOR, allowed, in_float64, ulps

    begun = time.perf_counter()
    graph = tf_graphdef.load(model)
    loaded = time.perf_counter()
    exe = pk.compile(graph)
    compiled = time.perf_counter()
    feeds = {graph.inputs[0].name: audio()}
    found = dict(zip([e.name for e in graph.outputs], exe(feeds), strict=True))
    times = []
    for _ in range(10):
        start = time.perf_counter()
        exe(feeds)
        times.append(time.perf_counter() - start)
    names = [e.name for e in graph.outputs]
    interpreted = dict(zip(names, pk.interpret(graph, feeds), strict=True))
    exact = dict(zip(names, in_float64(graph, feeds), strict=True))
    errors, accuracy, good = {}, {}, True
    for name, wanted in np.load(KEPT).items():
        got = found[name][:, ::EVERY]
        assert got.shape == wanted.shape
        errors[name] = float(np.abs(got - wanted).max() / np.abs(wanted).max())
        ours, meaning = ulps(found[name], exact[name]), ulps(interpreted[name], exact[name])
        theirs = ulps(wanted, exact[name][:, ::EVERY])
        accuracy[name] = {"compiled": ours, "interpreted": meaning, "TensorFlow": theirs}
        good &= errors[name] <= TOLERANCE and ours <= allowed(meaning)
        good &= ulps(got, exact[name][:, ::EVERY]) <= max(FLOOR, theirs)
    return {
        "errors": errors,
        "ulps_from_float64": accuracy,
        "good": bool(good),
        "load_seconds": loaded - begun,
        "compile_seconds": compiled - loaded,
        "call_seconds": float(np.median(times)),
        "operators": len(graph.nodes),
        "kernels": len(exe.kernels),
    }


def main() -> int:
    """Print the figures; 1 where the output is not TensorFlow's."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("model", type=Path, nargs="?", help="the SavedModel's folder")
    parser.add_argument("--write", action="store_true", help="keep what TensorFlow computes")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = args.model or fetched(Path(folder))
        if args.write:
            write(model)
            return 0
        report = compare(model)
    print(json.dumps(report, indent=2))
    return 0 if report["good"] else 1


if __name__ == "__main__":
    sys.exit(main())
