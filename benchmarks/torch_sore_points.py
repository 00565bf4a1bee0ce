"""Small functions that other compilers of PyTorch are slow on, beside Inductor and eager PyTorch.

    python benchmarks/torch_sore_points.py [--only chain] [--json FILE]

Each case runs in two processes with empty caches, one for passkit and one for Inductor, which first
compile a function of one operator. A row has the seconds of the first call, and milliseconds of a
call as the median of several rounds, beside eager PyTorch in the same process; ``kernels`` is what
passkit launches in a call, library calls included.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]
RESULTS = ROOT / "benchmarks" / "results" / "torch_sore_points.json"
LIMIT = 90
"""The most seconds of a process."""


def chain(a: Any, b: Any) -> Any:
    """Return the last of forty sums and products, each made of the two before it."""
    for _ in range(40):
        a, b = (a + b) * 0.5, a * b
    return a, b


def largest_of_sums(x: Any) -> Any:
    """Return where the sums over a strided input's middle axis are largest."""
    return (x[:, :, ::2] * 2 + 1).sum(1).t().argmax(0)


def shifted_windows(x: Any) -> Any:
    """Return images rolled, cut into windows, normalized, and put together again."""
    import torch

    batch, height, width, channels = x.shape
    rolled = torch.roll(x, (-3, -3), (1, 2))
    windows = rolled.view(batch, height // 7, 7, width // 7, 7, channels)
    windows = windows.permute(0, 1, 3, 2, 4, 5).reshape(-1, 49, channels)
    normed = torch.nn.functional.layer_norm(windows, (channels,))
    back = normed.view(batch, height // 7, width // 7, 7, 7, channels)
    back = back.permute(0, 1, 3, 2, 4, 5).reshape(batch, height, width, channels)
    return x + torch.roll(back, (3, 3), (1, 2))


def cases() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Return the function and the arguments of each case."""
    import torch

    torch.manual_seed(0)
    t: Any = torch.randn
    return {
        "chain": (chain, (t(512, 512) * 0.1, t(512, 512) * 0.1)),
        "lstm": (torch.nn.LSTM(64, 64, batch_first=True), (t(8, 20, 64),)),
        "gru": (torch.nn.GRU(64, 64, batch_first=True), (t(8, 20, 64),)),
        "shifted windows": (shifted_windows, (t(2, 56, 56, 96),)),
        "argmax of sums of a strided input": (largest_of_sums, (t(64, 128, 512),)),
        "mean over a strided axis": (lambda x: x[:, ::2].mean(1), (t(64, 256, 256),)),
        "softmax over an outer axis": (lambda x: torch.softmax(x, 0), (t(1000, 1024),)),
    }


def measure(name: str, compiler: str) -> dict[str, Any]:
    """Measure a case with a compiler in this process."""
    import time

    import torch

    from benchmarks.torch_models import distance, milliseconds, tensors, warm_up
    from passkit.frontends.torch import passkit_backend
    from passkit.frontends.torch.reports import recording

    backend = passkit_backend if compiler == "passkit" else compiler
    function, args = cases()[name]
    with torch.no_grad(), torch._dynamo.config.patch(allow_rnn=True):
        warm_up(backend)
        expected = tensors(function(*args))
        compiled = torch.compile(function, backend=backend)
        begin = time.perf_counter()
        with recording() as records:
            actual = tensors(compiled(*args))
        row: dict[str, Any] = {"first_call_seconds": time.perf_counter() - begin}
        row["difference"] = distance(actual, expected)
        row["milliseconds"] = milliseconds(
            {compiler: lambda: compiled(*args), "eager": lambda: function(*args)}, 2
        )
    if records:
        row["graphs"] = len(records)
        row["by_pytorch"] = sum(len(r.externs) for r in records)
        stats = [r.program.executable.stats for r in records if r.program]
        row["kernels"] = sum(s["kernels"] + s["library_calls"] for s in stats)
    return row


def in_process(name: str, compiler: str) -> dict[str, Any]:
    """Return what another process measures, with empty caches."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {
            **os.environ,
            "PASSKIT_CACHE_DIR": cache,
            "TORCHINDUCTOR_CACHE_DIR": f"{cache}/inductor",
            "PYTHONPATH": str(ROOT),
        }
        command = [sys.executable, __file__, "--one", name, "--compiler", compiler]
        try:
            process = subprocess.run(
                command, capture_output=True, text=True, env=environment, timeout=LIMIT
            )
        except subprocess.TimeoutExpired:
            return {"error": f"more than {LIMIT} seconds"}
    if process.returncode:
        return {"error": process.stderr.strip()[-1500:] or "no output"}
    return dict(json.loads(process.stdout.strip().splitlines()[-1]))


def main() -> int:
    """Measure the cases that the command line names, and print a line for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--only", default="", help="cases whose names contain this")
    parser.add_argument("--json", type=Path, default=RESULTS)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--compiler", default="passkit", help=argparse.SUPPRESS)
    own = parser.parse_args()
    if own.one:
        print(json.dumps(measure(own.one, own.compiler)))
        return 0
    rows = json.loads(own.json.read_text()) if own.json.exists() else {}
    failed = 0
    for name in cases():
        if own.only not in name:
            continue
        rows[name] = {way: in_process(name, way) for way in ("passkit", "inductor")}
        own.json.write_text(json.dumps(rows, indent=1) + "\n")
        failed += any("error" in row for row in rows[name].values())
        print(line_of(name, rows[name]), flush=True)
    return int(bool(failed))


def line_of(name: str, row: dict[str, dict[str, Any]]) -> str:
    """Return a case as a line of text."""
    one, other = row["passkit"], row["inductor"]
    if "error" in one:
        return f"{name}: {one['error']}"
    own = (
        f"{name}: {one['kernels']} kernels, difference {one['difference']:.1e}, first call "
        f"{one['first_call_seconds']:.2f} s, a call {one['milliseconds']['passkit']:.3f} ms, eager "
        f"PyTorch {one['milliseconds']['eager']:.3f} ms"
    )
    if "error" in other:
        return f"{own}; Inductor: {other['error']}"
    return (
        f"{own}; Inductor: first call {other['first_call_seconds']:.2f} s, a call "
        f"{other['milliseconds']['inductor']:.3f} ms"
    )


if __name__ == "__main__":
    sys.exit(main())
