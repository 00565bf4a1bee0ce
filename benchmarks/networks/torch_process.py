"""`torch.compile` in a process of its own: networks in PyTorch with TensorFlow's weights.

The module holds both ends: `models.py` uses `torch_in`, `keep` and `enter`; the other process runs
the module as a script.
"""

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
from pipe import Pipe, RequestHandler, serve

from networks import TEN, NetworkArray

SETTINGS = (
    "the network written in PyTorch with the model's weights, torch.compile(fullgraph=True, "
    "dynamic=False), Inductor's freezing on, inference_mode, a process of its own on the same "
    "CPUs, torch.set_num_threads(threads)"
)


def torch_in(python: str, threads: int) -> Pipe:
    """Start the process of a Python that has torch.

    Raises:
        PipeError: that Python has no torch.
    """
    return Pipe(python, "networks.torch_process", threads)


@define
class TorchProcessEntrant:
    """An entrant like `compare.WorkloadEntrant`, for the network that the other process holds."""

    torch: Pipe
    error: float
    name: str = "compile"
    medians: dict[str, list[float]] = Factory(lambda: defaultdict(list))

    def median(self, mode: str) -> float:
        """Return the least of the series' medians, in seconds."""
        return min(self.medians[mode])

    def measure(self, mode: str, names: tuple[str, ...], effort: compare.MeasuringEffort) -> None:
        """Time one series in the other process."""
        self.medians[mode].append(self.torch.ask(measure=mode)["median"])


def enter(torch: Pipe, name: str, path: Path) -> TorchProcessEntrant:
    """Compile a network in the other process, for the arrays in a file.

    Raises:
        PipeError: the other process failed.
    """
    return TorchProcessEntrant(torch, torch.ask(enter=name, given=str(path))["error"])


def keep(
    path: Path, weights: dict[str, NetworkArray], x: NetworkArray, result: NetworkArray
) -> None:
    """Write weights, input and expected result to a file for the other process."""
    arrays: dict[str, Any] = {f"weights {k}": v for k, v in weights.items()}
    np.savez(path, x=x, result=result, **arrays)


def compiled(torch: Any, name: str, path: str) -> compare.WorkloadEntrant:
    """Compile a network with `torch.compile` and compute its error against TensorFlow's result."""
    from networks import in_torch  # imports torch

    with np.load(path) as arrays:
        weights = {k.partition(" ")[2]: arrays[k] for k in arrays if k.startswith("weights ")}
        x, expected = arrays["x"], arrays["result"]
    torch.compiler.reset()
    torch._inductor.config.freezing = True
    function = torch.compile(
        in_torch.TorchNetwork(TEN[name], weights).eval(), fullgraph=True, dynamic=False
    )
    sets: list[tuple[Any, ...]] = [(torch.from_numpy(x.copy()),) for _ in range(3)]
    result = function(*sets[0]).numpy()
    error = float(np.abs(result - expected).max() / (np.abs(expected).max() or 1.0))
    competitor = peers.Competitor(function, "f(x)", torch.from_numpy, lambda r: r.numpy())
    return compare.WorkloadEntrant("compile", competitor, sets, result.nbytes, error)


def networks(threads: int) -> tuple[str, RequestHandler]:
    """Prepare this process.

    Returns:
        PyTorch's version, and the function that answers requests to compile and to time networks.
    """
    threads = peers.confine(threads)
    import torch

    torch.set_num_threads(threads)
    torch.inference_mode().__enter__()
    gc.disable()
    entrant: compare.WorkloadEntrant | None = None

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        """Compile a network (``enter``), or time the compiled one (``measure``)."""
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
