"""Seconds until a model is compiled by ``torch.compile``: passkit beside Inductor.

    python benchmarks/torch_compile_times.py [--only resnet18] [--backend passkit] [--json FILE]

Each row has the seconds of the first call in a process with empty caches ("cold") and in a second
one, which finds what the first one stored, for both backends, and for passkit those of loading what
`aot_compile` saved and calling it ("loaded"); null where PyTorch cannot save the model's guards.
Importing PyTorch and the backend does not count. A training step is a forward pass and its
gradients.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

WORKLOADS = ("resnet18", "bert", "mlp")
"""Models, of which the last one makes a training step."""
BACKENDS = ("passkit", "inductor")


def model_and_inputs(name: str) -> tuple[Any, tuple[Any, ...]]:
    """Return a model with random weights, and its inputs."""
    import torch
    import torch_models

    if name != "mlp":
        model, x = torch_models.model_and_input(name)
        return model.eval(), (x,)
    torch.manual_seed(0)
    layers = (torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.LayerNorm(256))
    return torch.nn.Sequential(*layers, torch.nn.Linear(256, 10)), (torch.randn(32, 64),)


def measure(name: str, backend: str, saved: str) -> dict[str, Any]:
    """Return the seconds of the first call in this process, with compiling or loading.

    ``backend`` is one of `BACKENDS`, or "load" for the file ``saved``, which "save" writes.
    """
    import torch
    import torch_models

    from passkit.frontends.torch import passkit_backend

    model, inputs = model_and_inputs(name)
    is_training = name == "mlp"
    functions = {"passkit": passkit_backend, "inductor": "inductor"}
    with torch.set_grad_enabled(is_training):
        if backend == "save":
            save(model, inputs, saved)
            return {"seconds": 0.0}
        begin = time.perf_counter()
        if backend == "load":
            with open(saved, "rb") as file:
                loaded = torch.compiler.load_compiled_function(file)
            result = torch_models.tensors(loaded(model, *inputs))[0]
        else:
            compiled = torch.compile(model, backend=functions[backend])
            result = torch_models.tensors(compiled(*inputs))[0]
        if is_training:
            result.sum().backward()
        seconds = time.perf_counter() - begin
    return {"seconds": seconds}


def save(model: Any, inputs: tuple[Any, ...], saved: str) -> None:
    """Compile a model ahead of time, and save it."""
    import torch

    from passkit.frontends.torch import passkit_backend

    compiled = torch.compile(call, backend=passkit_backend, fullgraph=True)
    ahead = compiled.aot_compile(((model, *inputs), {}))
    ahead.save_compiled_function(saved)


def call(model: Any, *inputs: Any) -> Any:
    """Return what a model returns: a function of it can be saved for modules of all classes."""
    return model(*inputs)


def in_process(name: str, backend: str, folder: str) -> float | None:
    """Return the seconds that another process measures, with caches in a folder.

    None if it fails, whose last line of errors is printed.
    """
    environment = {
        **os.environ,
        "PASSKIT_CACHE_DIR": f"{folder}/passkit",
        "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor",
        "PYTHONPATH": str(ROOT),
    }
    (Path(folder) / "passkit").mkdir(mode=0o700, exist_ok=True)
    command = [sys.executable, __file__, "--one", name, backend, f"{folder}/{name}.saved"]
    process = subprocess.run(command, capture_output=True, text=True, env=environment)
    lines = process.stdout.strip().splitlines()
    if process.returncode or not lines:
        print(name, backend, *process.stderr.strip().splitlines()[-1:], file=sys.stderr)
        return None
    return float(json.loads(lines[-1])["seconds"])


def row(name: str, backends: tuple[str, ...], rounds: int) -> dict[str, Any]:
    """Return the medians of a workload: cold, second and loaded, for some backends."""
    times: dict[str, list[float | None]] = {}
    for _ in range(rounds):
        for backend in backends:
            with tempfile.TemporaryDirectory() as folder:
                times.setdefault(f"{backend}_cold", []).append(in_process(name, backend, folder))
                times.setdefault(f"{backend}_second", []).append(in_process(name, backend, folder))
                if backend == "passkit":
                    in_process(name, "save", folder)
                    times.setdefault("passkit_loaded", []).append(in_process(name, "load", folder))
    return {"workload": name} | {key: middle(values) for key, values in times.items()}


def middle(values: list[float | None]) -> float | None:
    """Return the median of seconds; None if a process failed."""
    measured = [x for x in values if x is not None]
    return round(median(measured), 3) if len(measured) == len(values) else None


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="a workload")
    parser.add_argument("--backend", choices=BACKENDS, help="one of the two; default: both")
    parser.add_argument("--rounds", type=int, default=1, help="processes of each kind")
    parser.add_argument("--json", help="the file to add the rows to")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(*options.one)))
        return
    rows = []
    for name in WORKLOADS:
        if options.only in name:
            backends = (options.backend,) if options.backend else BACKENDS
            rows.append(row(name, backends, options.rounds))
            print(rows[-1], flush=True)
    if options.json:
        path = Path(options.json)
        old = json.loads(path.read_text())["rows"] if path.exists() else []
        named: dict[str, dict[str, Any]] = {}
        for x in [*old, *rows]:
            named[x["workload"]] = named.get(x["workload"], {}) | x
        path.write_text(json.dumps({"rows": list(named.values())}, indent=1) + "\n")


if __name__ == "__main__":
    main()
