"""Models with random weights through ``torch.compile(backend="passkit")``, beside other ways.

    python benchmarks/torch_models.py [--only resnet] [--training] [--inductor] [--json FILE]

Each model runs in processes of its own: a first one with empty caches, whose compilation counts as
cold, and a second one, which finds what the first one stored. A row has the largest difference to
eager PyTorch, the operators that passkit ran, seconds of the first call in both processes, and
milliseconds of a call beside eager PyTorch (and Inductor), in rounds that alternate. With
``--training`` a step of SGD follows, whose weights are compared, too.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

VISION = (
    "alexnet",
    "densenet121",
    "efficientnet_b0",
    "googlenet",
    "mnasnet1_0",
    "mobilenet_v2",
    "mobilenet_v3_small",
    "regnet_y_400mf",
    "resnet18",
    "resnet50",
    "shufflenet_v2_x1_0",
    "squeezenet1_1",
    "swin_t",
    "vgg11",
    "vit_b_32",
    "convnext_tiny",
)
"""Models of torchvision."""
TRANSFORMERS = ("bert", "distilbert", "gpt2", "roberta", "albert", "electra")
"""Configurations of transformers, made small: 2 layers of 128 units."""


def model_and_inputs(name: str) -> tuple[Any, tuple[Any, ...]]:
    """Return a model in evaluation mode with random weights, and its inputs."""
    import torch

    torch.manual_seed(0)
    if name in VISION:
        import torchvision

        size = 224 if name in ("swin_t", "vit_b_32", "googlenet") else 128
        options = {"init_weights": False} if name == "googlenet" else {}
        model = getattr(torchvision.models, name)(weights=None, **options)
        return model.eval(), (torch.randn(2, 3, size, size),)
    import transformers

    sizes = {
        "hidden_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 256,
    }
    config = transformers.AutoConfig.for_model(name, **sizes)
    model = transformers.AutoModel.from_config(config)
    return model.eval(), (torch.randint(0, 1000, (2, 64)),)


def first_result(results: Any) -> Any:
    """Return the first tensor of a model's results."""
    import torch
    from torch.utils import _pytree as pytree

    if hasattr(results, "to_tuple"):
        results = results.to_tuple()
    return next(x for x in pytree.tree_leaves(results) if isinstance(x, torch.Tensor))


def milliseconds(functions: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Return the median milliseconds of calls of some functions, in rounds that alternate."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for function in functions.values():
        function()
    for _ in range(rounds):
        for name, function in functions.items():
            begin = time.perf_counter()
            function()
            times[name].append(time.perf_counter() - begin)
    return {name: median(values) * 1e3 for name, values in times.items()}


def measure(name: str, inductor: bool, training: bool, rounds: int) -> dict[str, Any]:
    """Return a row of the table for a model, in this process."""
    import copy

    import torch

    from passkit.frontends.torch import passkit_backend
    from passkit.frontends.torch.reports import recording

    model, inputs = model_and_inputs(name)
    row: dict[str, Any] = {"model": name}
    with torch.no_grad():
        expected = first_result(model(*inputs))
        compiled = torch.compile(model, backend=passkit_backend)
        begin = time.perf_counter()
        with recording() as records:
            actual = first_result(compiled(*inputs))
        row["first_call_seconds"] = time.perf_counter() - begin
        row["difference"] = float((actual - expected).abs().max())
        row["magnitude"] = float(expected.abs().max())
        row["graphs"] = len(records)
        row["operators"] = sum(r.nodes for r in records)
        row["by_pytorch"] = sum(r.nodes if r.whole else len(r.externs) for r in records)
        functions = {
            "passkit": lambda: compiled(*inputs),
            "eager": lambda: model(*inputs),
        }
        if inductor:
            torch._dynamo.reset()
            rival = torch.compile(model)
            begin = time.perf_counter()
            rival(*inputs)
            row["inductor_first_call_seconds"] = time.perf_counter() - begin
            functions["inductor"] = lambda: rival(*inputs)
        if rounds:
            row["milliseconds"] = milliseconds(functions, rounds)
    if training:
        row["training_difference"] = training_difference(model, copy.deepcopy(model), inputs)
    return row


def training_difference(model: Any, copy: Any, inputs: tuple[Any, ...]) -> float:
    """Return the largest relative difference of weights after a step of SGD, compiled and not."""
    import torch

    from passkit.frontends.torch import passkit_backend

    torch._dynamo.reset()
    for run, own in ((model, model), (torch.compile(copy, backend=passkit_backend), copy)):
        optimizer = torch.optim.SGD(own.parameters(), lr=1e-3)
        first_result(run(*inputs)).square().mean().backward()
        optimizer.step()
    return max(
        float((a - b).abs().max() / (a.abs().max() + 1e-6))
        for a, b in zip(model.parameters(), copy.parameters(), strict=True)
    )


def in_process(name: str, cache: str, *options: str) -> dict[str, Any]:
    """Return the row of a model that another process measures, with caches in a folder."""
    environment = {
        **os.environ,
        "PASSKIT_CACHE_DIR": f"{cache}/passkit",
        "TORCHINDUCTOR_CACHE_DIR": f"{cache}/inductor",
        "PYTHONPATH": str(ROOT),
    }
    (Path(cache) / "passkit").mkdir(mode=0o700, exist_ok=True)
    process = subprocess.run(
        [sys.executable, __file__, "--one", name, *options],
        capture_output=True,
        text=True,
        env=environment,
        timeout=1800,
    )
    lines = process.stdout.strip().splitlines()
    if process.returncode or not lines:
        last = process.stderr.strip().splitlines()[-1:] or ["no output"]
        return {"model": name, "error": last[0][:300]}
    return dict(json.loads(lines[-1]))


def main() -> int:
    """Measure the models that the command line names, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--only", default="", help="models whose name contains this")
    parser.add_argument("--training", action="store_true")
    parser.add_argument("--inductor", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    own = parser.parse_args()
    if own.one:
        print(json.dumps(measure(own.one, own.inductor, own.training, own.rounds)))
        return 0
    rows = []
    options = ["--rounds", str(own.rounds)]
    options += ["--inductor"] * own.inductor + ["--training"] * own.training
    for name in (*VISION, *TRANSFORMERS):
        if own.only not in name:
            continue
        with tempfile.TemporaryDirectory() as cache:
            row = in_process(name, cache, *options)
            if "error" not in row:
                again = in_process(name, cache, "--rounds", "0")
                row["second_process_seconds"] = again.get("first_call_seconds")
        rows.append(row)
        print(json.dumps(row), flush=True)
    if own.json:
        own.json.write_text(json.dumps(rows, indent=1))
    return int(any("error" in row for row in rows))


if __name__ == "__main__":
    sys.exit(main())
