"""Time one step of Adam, in place, in passkit, PyTorch and JAX, alternating in one process.

    python benchmarks/adam.py [--threads 2] [--rounds 5]

The rows are one tensor of 2^21 elements, and thirty of 10 to 10^6. A call takes fresh gradients and
updates parameters and moments in place. JAX arrays are immutable, so its previous arrays are
donated. What is measured and why: README.md. Writes ``benchmarks/results/adam.json``.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))  # a checkout that is not installed

import peers  # noqa: E402  (after the path)

import passkit as pk  # noqa: E402

ROWS = {
    "adam 2^21": [1 << 21],
    "adam30": [round(10 * 10 ** (5 * k / 29)) for k in range(30)],
}
RATE, FIRST, SECOND, TINY = 0.001, 0.9, 0.999, 1e-8  # learning rate, decays, epsilon
FloatArrays = list[np.ndarray]


@frozen
class AdamImplementation:
    """One implementation of an Adam step.

    Attributes:
        step: takes a step with the gradients that ``prepare`` returned.
        prepare: converts NumPy gradients to the library's arrays.
        parameters: returns the current parameters as NumPy arrays.
    """

    step: Callable[[Any], Any]
    prepare: Callable[[FloatArrays], Any]
    parameters: Callable[[], FloatArrays]


def begin(sizes: Sequence[int]) -> tuple[FloatArrays, FloatArrays, FloatArrays]:
    """Draw initial parameters, first moments and second moments for tensors of these sizes."""
    rng = np.random.default_rng(0)
    p, m, v = ([rng.standard_normal(n, dtype=np.float32) for n in sizes] for _ in "pmv")
    return p, m, [x * x for x in v]


def gradients(sizes: Sequence[int], seed: int) -> FloatArrays:
    """Draw the gradients of one step from a seed."""
    rng = np.random.default_rng([1, seed])
    return [rng.standard_normal(n, dtype=np.float32) for n in sizes]


def updated(p: Any, m: Any, v: Any, g: Any, sqrt: Callable[[Any], Any]) -> tuple[Any, Any, Any]:
    """Return the new parameter and the new first and second moments by Adam's formula.

    Args:
        p: the parameter, an array of any library.
        m: its first moment.
        v: its second moment.
        g: its gradient.
        sqrt: the library's square root.
    """
    m = FIRST * m + (1 - FIRST) * g
    v = SECOND * v + (1 - SECOND) * g * g
    return p - RATE * m / (sqrt(v) + TINY), m, v


def passkit(sizes: Sequence[int], threads: int, on: str = "cpu") -> AdamImplementation:
    """Build the step in passkit; parameters and moments are state, updated in place."""
    updates = []
    for k, start in enumerate(zip(*begin(sizes), strict=True)):
        old = [pk.state(f"{kind}{k}", x) for kind, x in zip("pmv", start, strict=True)]
        new = updated(*old, pk.var(f"g{k}", start[0].shape, "float32"), pk.ops.sqrt)
        updates += [(o.node, n) for o, n in zip(old, new, strict=True)]
    exe = pk.compile(pk.Graph([], updates), target=on)
    return AdamImplementation(
        exe,
        lambda gs: {f"g{k}": g for k, g in enumerate(gs)},
        lambda: [exe.state[f"p{k}"] for k in range(len(sizes))],
    )


def _torch(sizes: Sequence[int], threads: int, on: str) -> tuple[Any, Any, Any, Any]:
    """Return the module torch and Adam's three lists of tensors on a device.

    Raises:
        ImportError: torch is not installed, or finds no CUDA device.
    """
    import torch

    if on == "cuda" and not torch.cuda.is_available():
        raise ImportError("PyTorch finds no CUDA device")
    torch.set_num_threads(threads)
    torch.inference_mode().__enter__()
    return torch, *([torch.from_numpy(x).to(on) for x in xs] for xs in begin(sizes))


def _of_torch(step: Callable[[Any], Any], ps: Any, on: str) -> AdamImplementation:
    """Return an implementation whose gradients and parameters are PyTorch tensors."""
    import torch

    return AdamImplementation(
        step,
        lambda gs: [torch.from_numpy(g).to(on) for g in gs],
        lambda: [p.cpu().numpy() for p in ps],
    )


def eager(sizes: Sequence[int], threads: int, on: str = "cpu") -> AdamImplementation:
    """Build the step in PyTorch, tensor by tensor, with in-place operators."""
    _, ps, ms, vs = _torch(sizes, threads, on)

    def step(gs: Any) -> None:
        for p, m, v, g in zip(ps, ms, vs, gs, strict=True):
            m.mul_(FIRST).add_(g, alpha=1 - FIRST)
            v.mul_(SECOND).addcmul_(g, g, value=1 - SECOND)
            p.addcdiv_(m, v.sqrt().add_(TINY), value=-RATE)

    return _of_torch(step, ps, on)


def foreach(sizes: Sequence[int], threads: int, on: str = "cpu") -> AdamImplementation:
    """Build the step with PyTorch's operators on lists of tensors, as its optimizers use them."""
    torch, ps, ms, vs = _torch(sizes, threads, on)

    def step(gs: Any) -> None:
        torch._foreach_mul_(ms, FIRST)
        torch._foreach_add_(ms, gs, alpha=1 - FIRST)
        torch._foreach_mul_(vs, SECOND)
        torch._foreach_addcmul_(vs, gs, gs, value=1 - SECOND)
        roots = torch._foreach_sqrt(vs)
        torch._foreach_add_(roots, TINY)
        torch._foreach_addcdiv_(ps, ms, roots, value=-RATE)

    return _of_torch(step, ps, on)


def fused(sizes: Sequence[int], threads: int, on: str = "cpu") -> AdamImplementation:
    """Build the step with the kernel that `torch.optim.Adam(fused=True)` calls."""
    torch, ps, ms, vs = _torch(sizes, threads, on)
    # At so late a step the bias correction is 1.
    steps = [torch.tensor(1e9, device=on) for _ in sizes]

    def step(gs: Any) -> None:
        torch._fused_adam_(
            ps,
            gs,
            ms,
            vs,
            [],
            steps,
            lr=RATE,
            beta1=FIRST,
            beta2=SECOND,
            weight_decay=0.0,
            eps=TINY,
            amsgrad=False,
            maximize=False,
        )

    return _of_torch(step, ps, on)


def compiled(sizes: Sequence[int], threads: int, on: str = "cpu") -> AdamImplementation:
    """Build the step with `torch.compile` of the formula, written back in place."""
    torch, ps, ms, vs = _torch(sizes, threads, on)

    def formula(ps: Any, ms: Any, vs: Any, gs: Any) -> None:
        for p, m, v, g in zip(ps, ms, vs, gs, strict=True):
            new = updated(p, m, v, g, torch.sqrt)
            for old, value in zip((p, m, v), new, strict=True):
                old.copy_(value)

    torch.compiler.reset()
    function = torch.compile(formula, fullgraph=True, dynamic=False)
    return _of_torch(lambda gs: function(ps, ms, vs, gs), ps, on)


def jax(sizes: Sequence[int], threads: int, on: str = "cpu") -> AdamImplementation:
    """Build the step with `jax.jit`; the old arrays are donated."""
    import jax
    import jax.numpy as jnp

    def formula(state: Any, gs: Any) -> Any:
        return [updated(*old, g, jnp.sqrt) for old, g in zip(state, gs, strict=True)]

    jax_device = peers.jax_device(on)
    function = jax.jit(formula, donate_argnums=0)
    state = [
        tuple(jax.device_put(x, jax_device) for x in parts)
        for parts in zip(*begin(sizes), strict=True)
    ]

    def step(gs: Any) -> None:
        nonlocal state
        state = function(state, gs)
        jax.block_until_ready(state)

    return AdamImplementation(
        step,
        lambda gs: [jax.device_put(g, jax_device) for g in gs],
        lambda: [np.asarray(p) for p, _, _ in state],
    )


RIVALS = {
    "passkit": passkit,
    "eager": eager,
    "foreach": foreach,
    "fused": fused,
    "compile": compiled,
    "jax": jax,
}


def check(rival: AdamImplementation, sizes: Sequence[int]) -> None:
    """Take one step and compare the parameters with those computed in float64.

    Raises:
        AssertionError: a parameter differs by more than 1e-5, relative.
    """
    gs = gradients(sizes, 0)
    wide = [[x.astype(np.float64) for x in xs] for xs in (*begin(sizes), gs)]
    rival.step(rival.prepare(gs))
    for parameter, *old in zip(rival.parameters(), *wide, strict=True):
        np.testing.assert_allclose(parameter, updated(*old, np.sqrt)[0], rtol=1e-5, atol=1e-6)


def series(rival: AdamImplementation, inputs: Sequence[Any], seconds: float = 0.15) -> float:
    """Return the median seconds of a step, after three steps to warm up."""
    time.sleep(0.02)
    times: list[int] = []
    end = time.perf_counter() + seconds
    while len(times) < 10 or time.perf_counter() < end:
        prepared = inputs[len(times) % len(inputs)]
        start = time.perf_counter_ns()
        rival.step(prepared)
        times.append(time.perf_counter_ns() - start)
    return statistics.median(times[3:]) / 1e9


def run(threads: int, rounds: int) -> dict[str, dict[str, float]]:
    """Return the seconds of the best round by row and by implementation that is installed."""
    report: dict[str, dict[str, float]] = {}
    for label, sizes in ROWS.items():
        rivals = {}
        for name, build in RIVALS.items():
            try:
                rivals[name] = build(sizes, threads)
            except ImportError as error:
                print(f"{name} is left out: {error}")
                continue
            check(rivals[name], sizes)
        drawn = [gradients(sizes, seed) for seed in range(2)]
        inputs = {name: [r.prepare(gs) for gs in drawn] for name, r in rivals.items()}
        best = dict.fromkeys(rivals, float("inf"))
        for _ in range(rounds):
            for name, rival in rivals.items():
                best[name] = min(best[name], series(rival, inputs[name]))
        others = [s for name, s in best.items() if name != "passkit"]
        cells = "  ".join(f"{name} {s * 1e6:9.1f} us" for name, s in best.items())
        ratio = f"  best peer / passkit {min(others) / best['passkit']:.2f}" if others else ""
        print(f"{label:10}  {cells}{ratio}")
        report[label] = best
    return report


def main() -> None:
    """Measure all rows and write the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    threads = peers.confine(options.threads)
    report = {
        "threads": threads,
        "versions": peers.versions(["torch", "jax", "numpy"]),
        "seconds": run(threads, options.rounds),
    }
    target = Path(__file__).parent / "results" / "adam.json"
    target.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
