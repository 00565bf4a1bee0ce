"""Compare Spotify's basic-pitch, a real SavedModel, with TensorFlow's stored output.

    python benchmarks/basic_pitch.py [FOLDER]

Without the model's folder, its wheel is downloaded with ``pip download --no-deps basic-pitch``.
Every eighth frame of TensorFlow's output is stored in ``results/basic_pitch.npz``; ``--write``
computes it again with the TensorFlow of this Python.

The network takes the logarithm of a spectrogram whose bands are mostly silent, which enlarges the
rounding errors of the sums before it. The report therefore compares each output with the graph
evaluated in float64. The compiled program's error may be at most twice the interpreter's, and at
most TensorFlow's, which causes most of the difference between both outputs.
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

import passkit as pk  # noqa: E402  (after the path)
from passkit.frontends import tf_graphdef  # noqa: E402
from tests.widened import FLOOR, allowed, in_float64, ulps  # noqa: E402

STORED = ROOT / "benchmarks" / "results" / "basic_pitch.npz"
MODEL_PATH = "basic_pitch/saved_models/icassp_2022/nmp"
FRAME_STEP = 8
TOLERANCE = 3e-3
"""Allowed difference from TensorFlow, relative to the largest value. Its own error is 0.0017."""


def audio() -> Any:
    """Return two seconds of three notes with overtones, as float32 of shape (1, 43844, 1)."""
    seconds = np.arange(43844) / 22050
    frequency = np.select([seconds < 0.7, seconds < 1.4], [220.0, 277.18], 329.63)
    overtones = [np.sin(2 * np.pi * frequency * seconds * k) / k for k in (1, 2, 3)]
    return (0.3 * sum(overtones)).astype(np.float32).reshape(1, -1, 1)


def fetched(folder: Path) -> Path:
    """Download the model's wheel and return the folder of the unpacked SavedModel."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "basic-pitch"]
    subprocess.run([*command, "--dest", str(folder)], check=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as files:
        files.extractall(folder, [n for n in files.namelist() if n.startswith(MODEL_PATH)])
    return folder / MODEL_PATH


def write(model: Path) -> None:
    """Store TensorFlow's output; the model is too old for TensorFlow 2's loader."""
    import tensorflow as tf

    graph = tf.Graph()
    with graph.as_default(), tf.compat.v1.Session(graph=graph) as session:
        meta = tf.compat.v1.saved_model.load(session, ["serve"], str(model))
        signature = meta.signature_def["serving_default"]
        (name,) = (info.name for info in signature.inputs.values())
        output_names = {k: info.name for k, info in signature.outputs.items()}
        outputs = session.run(output_names, {name: audio()})
    np.savez_compressed(STORED, **{k: v[:, ::FRAME_STEP] for k, v in outputs.items()})


def compare(model: Path) -> dict[str, Any]:
    """Load, compile and run the model.

    Returns:
        A report of errors, their verdict (``"good"``), times in seconds, and numbers of operators
        and kernels.
    """
    load_start = time.perf_counter()
    graph = tf_graphdef.load(model)
    loaded = time.perf_counter()
    exe = pk.compile(graph)
    compiled = time.perf_counter()
    feeds = {graph.inputs[0].name: audio()}
    outputs = dict(zip([e.name for e in graph.outputs], exe(feeds), strict=True))
    times = []
    for _ in range(10):
        start = time.perf_counter()
        exe(feeds)
        times.append(time.perf_counter() - start)
    names = [e.name for e in graph.outputs]
    interpreted = dict(zip(names, pk.interpret(graph, feeds), strict=True))
    exact_outputs = dict(zip(names, in_float64(graph, feeds), strict=True))
    errors, accuracy, good = {}, {}, True
    for name, expected in np.load(STORED).items():
        frames = outputs[name][:, ::FRAME_STEP]
        assert frames.shape == expected.shape
        errors[name] = float(np.abs(frames - expected).max() / np.abs(expected).max())
        error, reference_error = (
            ulps(outputs[name], exact_outputs[name]),
            ulps(interpreted[name], exact_outputs[name]),
        )
        tensorflow_error = ulps(expected, exact_outputs[name][:, ::FRAME_STEP])
        accuracy[name] = {
            "compiled": error,
            "interpreted": reference_error,
            "TensorFlow": tensorflow_error,
        }
        good &= errors[name] <= TOLERANCE and error <= allowed(reference_error)
        good &= ulps(frames, exact_outputs[name][:, ::FRAME_STEP]) <= max(FLOOR, tensorflow_error)
    return {
        "errors": errors,
        "ulps_from_float64": accuracy,
        "good": bool(good),
        "load_seconds": loaded - load_start,
        "compile_seconds": compiled - loaded,
        "call_seconds": float(np.median(times)),
        "operators": len(graph.nodes),
        "kernels": len(exe.kernels),
    }


def main() -> int:
    """Print the report. Return 1 if the output is not TensorFlow's."""
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
