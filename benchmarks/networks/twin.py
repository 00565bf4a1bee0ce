"""`torch.compile` in a process of its own, as PyTorch and TensorFlow seldom share a Python.

The two ends of a pipe: `Twin` asks and `serve` answers, a line of JSON each. The one that waits
takes no time from the other, and both time with the same loops, in turn.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import compare
import numpy as np
import peers
from attrs import Factory, define

from networks import TEN, Array

SETTINGS = (
    "the network written in PyTorch with the model's weights, torch.compile(fullgraph=True, "
    "dynamic=False), Inductor's freezing on, inference_mode, a process of its own on the same "
    "CPUs, torch.set_num_threads(threads)"
)


class TwinError(RuntimeError):
    """What went wrong in the other process, in its words."""


class Torch:
    """The process; leave it as a context to end it."""

    def __init__(self, python: str, threads: int) -> None:
        command = [python, "-m", "networks.twin", str(threads)]
        self.process = subprocess.Popen(
            command, cwd=Path(__file__).parents[1], stdin=-1, stdout=-1, text=True
        )
        try:
            self.version: str = self.ask()["torch"]
        except TwinError:
            self.__exit__()
            raise

    def __enter__(self) -> Torch:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate(timeout=30)

    def ask(self, **request: Any) -> dict[str, Any]:
        """The answer to a request, or to none: the greeting. Raises: TwinError."""
        if request:
            self.process.stdin.write(json.dumps(request) + "\n")  # type: ignore[union-attr]
            self.process.stdin.flush()  # type: ignore[union-attr]
        line = self.process.stdout.readline()  # type: ignore[union-attr]
        answer: dict[str, Any] = json.loads(line or '{"failed": "the process ended"}')
        if "failed" in answer:
            raise TwinError(answer["failed"])
        return answer


@define
class Twin:
    """`compare.Entrant` for the network that the other process has at hand."""

    torch: Torch
    error: float
    name: str = "compile"
    medians: dict[str, list[float]] = Factory(lambda: defaultdict(list))

    def median(self, mode: str) -> float:
        """The best of the series' medians."""
        return min(self.medians[mode])

    def measure(self, mode: str, names: tuple[str, ...], effort: compare.Effort) -> None:
        """Times one series there."""
        self.medians[mode].append(self.torch.ask(measure=mode)["median"])


def enter(torch: Torch, name: str, given: Path) -> Twin:
    """The network of this name, compiled there for the arrays in a file. Raises: TwinError."""
    return Twin(torch, torch.ask(enter=name, given=str(given))["error"])


def keep(path: Path, weights: dict[str, Array], x: Array, result: Array) -> None:
    """What the other process needs, in a file."""
    arrays: dict[str, Any] = {f"weights {k}": v for k, v in weights.items()}
    np.savez(path, x=x, result=result, **arrays)


def compiled(torch: Any, name: str, given: str) -> compare.Entrant:
    """A network by `torch.compile`, checked against TensorFlow's result."""
    from networks import in_torch

    with np.load(given) as arrays:
        weights = {k.partition(" ")[2]: arrays[k] for k in arrays if k.startswith("weights ")}
        x, want = arrays["x"], arrays["result"]
    torch.compiler.reset()
    torch._inductor.config.freezing = True
    function = torch.compile(
        in_torch.Twin(TEN[name], weights).eval(), fullgraph=True, dynamic=False
    )
    sets: list[tuple[Any, ...]] = [(torch.from_numpy(x.copy()),) for _ in range(3)]
    found = function(*sets[0]).numpy()
    error = float(np.abs(found - want).max() / (np.abs(want).max() or 1.0))
    competitor = peers.Competitor(function, "f(x)", torch.from_numpy, lambda r: r.numpy())
    return compare.Entrant("compile", competitor, sets, found.nbytes, error)


def serve(threads: int) -> None:
    """Answer until nothing is asked any more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    say = partial(print, file=answers, flush=True)
    threads = peers.confine(threads)
    import torch

    torch.set_num_threads(threads)
    torch.inference_mode().__enter__()
    gc.disable()
    say(json.dumps({"torch": torch.__version__}))
    entrant: compare.Entrant | None = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "enter" in request:
                gc.collect()
                entrant = compiled(torch, request["enter"], request["given"])
                say(json.dumps({"error": entrant.error}))
            elif entrant is not None:
                entrant.measure(request["measure"], ("x",), compare.FULL)
                say(json.dumps({"median": entrant.medians[request["measure"]][-1]}))
        except Exception as error:  # the other competitors still count
            say(json.dumps({"failed": f"{type(error).__name__}: {error}"[:300]}))


if __name__ == "__main__":
    serve(int(sys.argv[1]))
