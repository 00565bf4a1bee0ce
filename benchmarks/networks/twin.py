"""`torch.compile` in a process of its own: a network as `Twin` of the one in TensorFlow."""

from __future__ import annotations

import gc
import sys
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import compare
import numpy as np
import peers
from attrs import Factory, define
from pipe import Answer, Pipe, serve

from networks import TEN, Array

SETTINGS = (
    "the network written in PyTorch with the model's weights, torch.compile(fullgraph=True, "
    "dynamic=False), Inductor's freezing on, inference_mode, a process of its own on the same "
    "CPUs, torch.set_num_threads(threads)"
)


def torch_in(python: str, threads: int) -> Pipe:
    """The process of a Python that has torch. Raises: PipeError where it has none."""
    return Pipe(python, "networks.twin", threads)


@define
class Twin:
    """`compare.Entrant` for the network that the other process has at hand."""

    torch: Pipe
    error: float
    name: str = "compile"
    medians: dict[str, list[float]] = Factory(lambda: defaultdict(list))

    def median(self, mode: str) -> float:
        """The best of the series' medians."""
        return min(self.medians[mode])

    def measure(self, mode: str, names: tuple[str, ...], effort: compare.Effort) -> None:
        """Times one series there."""
        self.medians[mode].append(self.torch.ask(measure=mode)["median"])


def enter(torch: Pipe, name: str, given: Path) -> Twin:
    """The network of this name, compiled there for the arrays in a file. Raises: PipeError."""
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


def networks(threads: int) -> tuple[str, Answer]:
    """PyTorch's version, and what enters and times networks by it."""
    threads = peers.confine(threads)
    import torch

    torch.set_num_threads(threads)
    torch.inference_mode().__enter__()
    gc.disable()
    entrant: compare.Entrant | None = None

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        nonlocal entrant
        if "enter" in request:
            gc.collect()
            entrant = compiled(torch, request["enter"], request["given"])
            return {"error": entrant.error}
        assert entrant is not None
        entrant.measure(request["measure"], ("x",), compare.FULL)
        return {"median": entrant.medians[request["measure"]][-1]}

    return torch.__version__, answer


if __name__ == "__main__":
    serve(partial(networks, int(sys.argv[1])))
