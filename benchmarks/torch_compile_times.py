"""Seconds until a model is compiled by ``torch.compile``: passkit beside Inductor.

    python benchmarks/torch_compile_times.py [--only resnet18] [--json FILE]

Each row has the seconds of the first call in a process with empty caches ("cold") and in a second
one, which finds what the first one stored, for both backends, and for passkit those of loading what
`aot_compile` saved and calling it ("loaded"). Importing PyTorch and the backend does not count. A
training step is a forward pass and its gradients.
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
        return torch_models.model_and_inputs(name)
    torch.manual_seed(0)
    layers = (torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.LayerNorm(256))
    return torch.nn.Sequential(*layers, torch.nn.Linear(256, 10)), (torch.randn(32, 64),)


def measure(name: str, backend: str, saved: str) -> dict[str, Any]:
    """Return the seconds of the first call in this process; ``saved`` is a file for `aot_compile`.

    With the backend "load" the file is loaded, else passkit saves it after the first call.
    """
    import torch
    import torch_models

    from passkit.frontends.torch import passkit_backend

    model, inputs = model_and_inputs(name)
    is_training = name == "mlp"
    functions = {"passkit": passkit_backend, "inductor": "inductor"}
    with torch.set_grad_enabled(is_training):
        begin = time.perf_counter()
        if backend == "load":
            with open(saved, "rb") as file:
                loaded = torch.compiler.load_compiled_function(file, external_data={"model": model})
            result = torch_models.first_result(loaded(*inputs))
        else:
            compiled = torch.compile(model, backend=functions[backend])
            result = torch_models.first_result(compiled(*inputs))
        if is_training:
            result.sum().backward()
        seconds = time.perf_counter() - begin
        if backend == "passkit":
            save(model, inputs, saved)
    return {"seconds": seconds}


def save(model: Any, inputs: tuple[Any, ...], saved: str) -> None:
    """Compile a model ahead of time, and save it."""
    import torch

    from passkit.frontends.torch import passkit_backend

    torch._dynamo.reset()
    forward = torch.compile(model.forward, backend=passkit_backend, fullgraph=True)
    ahead = forward.aot_compile((inputs, {}))
    ahead.save_compiled_function(saved, external_data={"model": model})


def in_process(name: str, backend: str, folder: str) -> float:
    """Return the seconds that another process measures, with caches in a folder; -1 if it fails."""
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
        print(process.stderr[-2000:], file=sys.stderr)
        return -1.0
    return float(json.loads(lines[-1])["seconds"])


def row(name: str, rounds: int) -> dict[str, Any]:
    """Return the medians of a workload: cold, second and loaded, for each backend."""
    times: dict[str, list[float]] = {}
    for _ in range(rounds):
        for backend in BACKENDS:
            with tempfile.TemporaryDirectory() as folder:
                times.setdefault(f"{backend}_cold", []).append(in_process(name, backend, folder))
                times.setdefault(f"{backend}_second", []).append(in_process(name, backend, folder))
                if backend == "passkit":
                    times.setdefault("passkit_loaded", []).append(in_process(name, "load", folder))
    return {"workload": name} | {key: round(median(x), 3) for key, x in times.items()}


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="a workload")
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
            rows.append(row(name, options.rounds))
            print(rows[-1], flush=True)
    if options.json:
        path = Path(options.json)
        old = json.loads(path.read_text())["rows"] if path.exists() else []
        named = {x["workload"]: x for x in [*old, *rows]}
        path.write_text(json.dumps({"rows": list(named.values())}, indent=1) + "\n")


if __name__ == "__main__":
    main()
