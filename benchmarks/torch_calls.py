"""Microseconds of small calls through ``torch.compile``: passkit beside Inductor and eager PyTorch.

    python benchmarks/torch_calls.py [--rounds 300] [--json FILE]

Each row is a function of small arrays, called without gradients or followed by its gradient; each
round calls every variant 20 times, one variant after another, and the medians over the rounds are
shown. "dynamo" is the same function with a backend that computes nothing: guards and AOTAutograd's
wrapper alone, which no backend can go below.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

CALLS = 20
"""The calls of a variant in a round."""


def scaled(x: Any) -> Any:
    """Return one multiplication and addition, and a maximum."""
    return (x * 2 + 1).relu()


def chain(x: Any) -> Any:
    """Return five operations, one after another."""
    return ((x * 2 + 1).sigmoid() - x).tanh()


CASES = {
    "8x512": (scaled, (8, 512)),
    "64x512": (scaled, (64, 512)),
    "chain of 5, 8x512": (chain, (8, 512)),
}
"""The functions and the shapes of their argument."""


def nothing(module: Any, example_inputs: Any) -> Callable[..., Any]:
    """Return the compiled form of a graph that returns zeros of the right shapes, made once."""
    import torch

    (results,) = module.graph.find_nodes(op="output")[0].args
    values = [r.meta["val"] for r in results]
    zeros = [torch.zeros(tuple(v.shape), dtype=v.dtype) for v in values]

    def run(args: list[Any]) -> list[Any]:
        """Return the same tensors in each call."""
        args.clear()
        return list(zeros)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


def variants(function: Callable[[Any], Any]) -> dict[str, Callable[[Any], Any]]:
    """Return the function by backend."""
    import torch
    from torch._dynamo.backends.common import aot_autograd

    from passkit.frontends.torch import passkit_backend

    def compiled(backend: Any) -> Callable[[Any], Any]:
        """Return a copy of the function, so that Dynamo keeps the backends apart."""
        return torch.compile(lambda x: function(x), backend=backend)  # type: ignore[no-any-return]

    def in_torch(compiler: Callable[..., Any]) -> Callable[..., Any]:
        """Return a compiler that is called outside of modes in which tensors are fake."""

        def compile_graph(module: Any, inputs: Any) -> Callable[..., Any]:
            """Compile a graph."""
            from torch._subclasses.fake_tensor import unset_fake_temporarily

            with unset_fake_temporarily():
                return compiler(module, inputs)

        return compile_graph

    return {
        "passkit": compiled(passkit_backend),
        "inductor": compiled("inductor"),
        "dynamo": compiled(aot_autograd(fw_compiler=in_torch(nothing))),
        "eager": function,
    }


def microseconds(
    functions: dict[str, Callable[[Any], Any]], x: Any, with_gradient: bool, rounds: int
) -> dict[str, float]:
    """Return the median microseconds of a call of each function, in rounds that alternate."""
    import torch

    gradient = torch.ones_like(functions["eager"](x))
    times: dict[str, list[float]] = {name: [] for name in functions}
    with torch.set_grad_enabled(with_gradient):
        for k in range(rounds + 3):
            for name, function in functions.items():
                begin = time.perf_counter()
                for _ in range(CALLS):
                    y = function(x)
                    if with_gradient:
                        x.grad = None
                        y.backward(gradient)
                if k >= 3:
                    times[name].append((time.perf_counter() - begin) / CALLS)
    return {name: round(median(values) * 1e6, 2) for name, values in times.items()}


def rows(rounds: int) -> list[dict[str, Any]]:
    """Return a row for each case, without and with its gradient."""
    import torch

    measured_rows = []
    for name, (function, extents) in CASES.items():
        for with_gradient in (False, True):
            torch._dynamo.reset()
            torch.manual_seed(0)
            x = torch.randn(extents, requires_grad=with_gradient)
            times = microseconds(variants(function), x, with_gradient, rounds)
            measured_rows.append({"case": name, "gradient": with_gradient, "microseconds": times})
            print(name, "with gradient" * with_gradient, times, flush=True)
    return measured_rows


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=300, help="rounds of 20 calls")
    parser.add_argument("--json", help="the file to write")
    options = parser.parse_args()
    measured = rows(options.rounds)
    if options.json:
        import torch

        result = {"torch": torch.__version__, "rows": measured}
        Path(options.json).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
