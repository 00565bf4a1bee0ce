"""Measure what passkit promises: print each demand, its figure, and whether it is met.

    python benchmarks/show.py core [--quick] [--only softmax] [--json FILE] [--peers PYTHON]
                                   [--torch PYTHON] [--onnx PYTHON] [--tensorflow PYTHON]
                                   [--scripts CHECKOUT] [--suite CHECKOUT] [--steps FILE]

Exits 0 whether demands are met or not, and prints how many are. Each module of `shows/` holds the
table of one subject.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]  # a checkout that is not installed

import shows  # noqa: E402  (after the path)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return 0."""
    subjects = sorted(
        module.name
        for module in pkgutil.iter_modules(shows.__path__)
        if "\nDEMANDS" in (HERE / "shows" / f"{module.name}.py").read_text()
    )
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("subject", choices=subjects)
    parser.add_argument("--only", default="", help="rows whose demand contains this")
    parser.add_argument("--quick", action="store_true", help="without peers and fresh clones")
    parser.add_argument("--json", type=Path, help="write the rows, with their numbers, to a file")
    parser.add_argument("--peers", default=sys.executable, help="a Python with torch and jax")
    parser.add_argument("--torch", help="a Python with torch, where that of --peers has none")
    parser.add_argument("--onnx", help="a Python with onnxruntime, where that of --peers has none")
    parser.add_argument("--tensorflow", default="", help="a Python with tensorflow")
    parser.add_argument("--scripts", default="", help="a checkout of TensorFlow-Examples")
    parser.add_argument("--suite", default="", help="a checkout of array-api-tests")
    parser.add_argument("--steps", type=Path, help="a report of `train.py time`, not measured anew")
    options = parser.parse_args(arguments)
    shows.peers_python, shows.torch_python = options.peers, options.torch or options.peers
    shows.onnx_python = options.onnx or options.peers
    shows.tensorflow_python, shows.scripts = options.tensorflow, options.scripts
    shows.suite, shows.steps = options.suite, options.steps
    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"the machine is busy (load {load:.1f}): times will not hold", file=sys.stderr)
    subject = importlib.import_module(f"shows.{options.subject}")
    rows = shows.show(subject.DEMANDS, options.only, options.quick)
    if options.json:
        report = {"subject": options.subject, "load": load, "rows": shows.as_json(rows)}
        options.json.write_text(json.dumps(report, indent=1, default=str) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
