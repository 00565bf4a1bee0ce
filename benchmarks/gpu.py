"""passkit on an NVIDIA GPU, beside PyTorch, JAX and CuPy: one command, one table.

    python benchmarks/gpu.py [--mib 256] [--rows softmax] [--only compile,jax]
                             [--output benchmarks/results/gpu.json]

Inputs are on the device, each of ``--mib`` MiB, more than any L2; results are verified against
NumPy in float64. ``call`` is a public call's share of a batch of calls that ends when the device is
idle, by the host's clock; ``device`` is what events of the device say of passkit's kernels, and
``of copy speed`` how fast these move the inputs and results, by what a copy on the device reaches.
Behind these rows come steps of Adam and of training (`gpu_steps`). Every peer's setting is in
SETTINGS. Without a device it says so, and nothing is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import date
from functools import partial
from itertools import chain
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import gpu_hand  # noqa: E402
import gpu_steps  # noqa: E402
import peers  # noqa: E402
import workloads  # noqa: E402
from hand.gpu_kernels import hand_launch  # noqa: E402
from operator_workloads import figure1  # noqa: E402
from peers import Competitor  # noqa: E402
from workloads import Workload  # noqa: E402

from passkit.errors import PasskitError  # noqa: E402
from passkit.runtime.cuda.device import (  # noqa: E402
    CudaDevice,
    device,
    pool_of,
)
from passkit.values.units import bytes_text, seconds_text, table  # noqa: E402

SETTINGS = {
    "hand": "the kernels of hand/gpu, launched by the driver alone",
    "passkit": "pk.compile(graph, target='cuda'), fusion stitch; exe(x=...) on arrays of the "
    "device, out= there",
    "eager": "PyTorch, inference_mode, operators one by one",
    "compile": "torch.compile(fullgraph=True, dynamic=False), inference_mode",
    "autotune": "the same with mode='max-autotune'",
    "jax": "jax.jit on the first GPU, float32, JAX_DEFAULT_MATMUL_PRECISION=highest",
    "cupy": "CuPy, operators one by one",
    "foreach, fused": "Adam by PyTorch's operators on lists, and by its own kernel",
    "training": "as in train.py, on the device: feeds there, a step ends when the device is idle; "
    "scan is jax with lax.scan",
}
os.environ.setdefault("JAX_DEFAULT_MATMUL_PRECISION", "highest")  # else its products round to tf32
BATCH_SECONDS, ROUNDS = 0.2, 5
PACKAGES = (
    "passkit",
    "pycuda",
    "cuda-bindings",
    "nvidia-cuda-nvrtc",
    "torch",
    "jax",
    "numpy",
    "cupy-cuda13x",
    "cupy-cuda12x",
)


def rows(mib: int) -> list[Workload]:
    """Return the workloads; the first input of each has ``mib`` MiB."""
    n = max(1, mib * (1 << 20) // 4)

    def matrix(width: int) -> tuple[int, int]:
        return max(1, n // width), width

    wide, norm, short = matrix(1024), matrix(768), matrix(40)
    square = (isqrt(n), isqrt(n))
    plain = (("x", (n,)),)
    return [
        Workload("gelu_erf", workloads.gelu_erf, plain),
        Workload("gelu_custom_ref", workloads.gelu_custom_ref, plain),
        Workload("gelu_custom_erf", workloads.gelu_custom_erf, plain),
        Workload("softmax", workloads.softmax(-1), (("x", short),)),
        Workload("softmax", workloads.softmax(-1), (("x", wide),)),
        Workload("softmax", workloads.softmax(-1), (("x", matrix(16384)),)),
        Workload("layer_norm", workloads.layer_norm, (("x", norm), ("g", (768,)), ("b", (768,)))),
        Workload("rms_norm", workloads.rms_norm, (("x", norm), ("g", (768,)))),
        Workload("bias_gelu", workloads.bias_gelu, (("x", wide), ("b", (1024,)))),
        Workload("colsum", workloads.colsum, (("x", wide), ("y", wide)), tolerance=2e-5),
        Workload("fullsum", workloads.fullsum, (("x", (n,)), ("y", (n,))), tolerance=2e-5),
        Workload("transpose_add", workloads.transpose_add, (("x", square), ("y", square))),
        *(
            Workload(
                "figure1",
                figure1,
                tuple(zip("xyzwv", shapes, strict=True)),
                together=True,
                results=4,
                tolerance=3e-5,
            )
            for shapes in figures(mib)
        ),
    ]


def figures(mib: int) -> list[tuple[tuple[int, ...], ...]]:
    """Return the shapes of figure1: 15,616 tiles, whose product alone is 552 MB, or very few."""
    b, t = (15616, 94) if mib else (3, 33)
    return [((b, t, k), (b, k, t), (b, t, n), (t,), (n,)) for k, n in ((1, 8), (32, 32))]


class PooledArray:
    """An array in passkit's pool, which others import by the CUDA array interface."""

    def __init__(self, own: CudaDevice, array: np.ndarray) -> None:
        self.own, self.like = own, array
        with own.active("preparing an input"):
            self.buffer = pool_of(own).take(array.nbytes)
            own.queue.upload(self.buffer, array.reshape(-1).view(np.uint8)).wait()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        where = (self.buffer.address, False)
        return {
            "shape": self.like.shape,
            "typestr": self.like.dtype.str,
            "data": where,
            "version": 3,
            "stream": None,
        }

    def numpy(self) -> np.ndarray:
        """Return a copy in host memory."""
        result = np.empty_like(self.like)
        with self.own.active("reading a result"):
            self.own.queue.download(result.reshape(-1).view(np.uint8), self.buffer).wait()
        return result


def on_device(own: CudaDevice, array: np.ndarray) -> PooledArray:
    """Return a copy of an array in passkit's pool."""
    return PooledArray(own, array)


def passkit(work: Workload, own: CudaDevice) -> Competitor:
    """Build passkit's competitor, which writes to arrays that stay on the device."""
    competitor = peers._passkit(work, work.together, target="cuda")
    exe = competitor.function
    outs = [PooledArray(own, np.zeros(s.shape, s.dtype.numpy)) for s in exe.outputs]

    def call(*arrays: PooledArray) -> list[PooledArray]:
        result: list[PooledArray] = exe(dict(zip(work.names, arrays, strict=True)), out=outs)
        return result

    def numpy(result: list[PooledArray]) -> np.ndarray:
        arrays = [x.numpy() for x in result]
        return peers.joined(arrays) if work.results > 1 else arrays[0]

    def device_figures(arrays: Sequence[PooledArray], nbytes: int, speed: float) -> dict[str, Any]:
        feeds = {n: x.numpy() for n, x in zip(work.names, arrays, strict=True)}
        return gpu_steps.device_figures(exe, feeds, nbytes, speed)

    call.device_figures = device_figures  # type: ignore[attr-defined]
    return Competitor(call, "", lambda a: PooledArray(own, a), numpy)


def eager(work: Workload, own: CudaDevice) -> Competitor:
    """Build PyTorch's competitor, operator by operator."""
    return _of_torch(peers.eager(work, 1))


def compiled(work: Workload, own: CudaDevice) -> Competitor:
    """Build torch.compile's competitor."""
    return _of_torch(peers.compiled(work, 1))


def autotune(work: Workload, own: CudaDevice) -> Competitor:
    """Build the competitor of torch.compile with mode="max-autotune"."""
    import torch

    plain = peers.eager(work, 1).function
    function = torch.compile(plain, fullgraph=True, dynamic=False, mode="max-autotune")
    return _of_torch(Competitor(function, "", torch.from_numpy, peers.joined))


def _of_torch(competitor: Competitor) -> Competitor:
    import torch

    if not torch.cuda.is_available():
        raise ImportError("PyTorch finds no CUDA device")
    return evolve(
        competitor,
        prepare=lambda a: torch.from_numpy(a).cuda(),
        numpy=lambda r: peers.joined([x.cpu() for x in r] if isinstance(r, tuple) else r.cpu()),
    )


def jax(work: Workload, own: CudaDevice) -> Competitor:
    """Build jax.jit's competitor."""
    import jax as library

    gpu = peers.jax_device("cuda")
    return evolve(peers.jax(work, 1), prepare=lambda a: library.device_put(a, gpu))


def cupy(work: Workload, own: CudaDevice) -> Competitor:
    """Build CuPy's competitor, operator by operator."""
    import cupy as library
    from cupyx.scipy.special import erf

    space = {name: getattr(library, name) for name in ("abs", "exp", "tanh", "where", "maximum")}
    functions = type(
        "Functions",
        (),
        {
            **{name: staticmethod(f) for name, f in space.items()},
            "erf": staticmethod(erf),
            "rsqrt": staticmethod(lambda x: 1 / library.sqrt(x)),
            "max": staticmethod(lambda x, axis: library.max(x, axis, keepdims=True)),
            "sum": staticmethod(lambda x, axis: library.sum(x, axis, keepdims=True)),
            "mean": staticmethod(lambda x, axis: library.mean(x, axis, keepdims=True)),
            "total": staticmethod(lambda x, axis: library.sum(x, axis)),
            "matmul": staticmethod(library.matmul),
            "log": staticmethod(library.log),
            "transpose": staticmethod(library.transpose),
        },
    )

    def numpy(result: Any) -> np.ndarray:
        several = isinstance(result, tuple)
        return peers.joined([library.asnumpy(x) for x in result] if several else result.get())

    return Competitor(lambda *xs: work.formula(functions, *xs), "", library.asarray, numpy)


def by_hand(work: Workload, own: CudaDevice) -> Competitor:
    """Build the competitor of the kernel written by hand.

    Raises:
        ImportError: no kernel was written for the workload or for its sizes.
    """
    launch = hand_launch(work.name, [shape for _, shape in work.inputs])
    if launch is None:
        raise ImportError("no kernel was written by hand for these sizes")
    kernel = gpu_hand.LoadedHandKernel(launch, own)
    rest = [PooledArray(own, np.zeros(n, np.float32)) for n in launch.arrays[len(work.inputs) :]]
    results = rest[-len(launch.results) :]

    def addresses(arrays: Sequence[PooledArray]) -> list[int]:
        return [x.buffer.address for x in (*arrays, *rest)]

    def call(*arrays: PooledArray) -> list[PooledArray]:
        kernel.enqueue(addresses(arrays))
        return results

    def device_figures(arrays: Sequence[PooledArray], nbytes: int, speed: float) -> dict[str, Any]:
        return gpu_hand.device_figures(kernel, addresses(arrays), nbytes, speed)

    def numpy(arrays: list[PooledArray]) -> np.ndarray:
        shaped = [x.numpy().reshape(s) for x, s in zip(arrays, launch.results, strict=True)]
        return peers.joined(shaped) if work.results > 1 else shaped[0]

    call.device_figures = device_figures  # type: ignore[attr-defined]
    return Competitor(call, "", lambda a: PooledArray(own, a), numpy)


BUILDERS: dict[str, Callable[[Workload, CudaDevice], Competitor]] = {
    "passkit": passkit,
    "hand": by_hand,
    "eager": eager,
    "compile": compiled,
    "autotune": autotune,
    "jax": jax,
    "cupy": cupy,
}


def settle(own: CudaDevice) -> None:
    """Wait until the streams of all libraries are idle."""
    with own.active("waiting for the device"):
        own.queue.finish()
    for name, wait in (
        ("torch", "torch.cuda.synchronize()"),
        ("jax", "jax.effects_barrier()"),
        ("cupy", "cupy.cuda.Device().synchronize()"),
    ):
        if name in sys.modules and (name != "torch" or sys.modules[name].cuda.is_available()):
            eval(wait, {name: sys.modules[name]})


def batch(call: Callable[[], Any], own: CudaDevice) -> float:
    """Return the seconds of a call: the best of several batches, each including the final wait."""

    def timed(count: int) -> float:
        begin = time.perf_counter()
        for _ in range(count):
            result = call()
        if hasattr(result, "block_until_ready"):
            result.block_until_ready()
        settle(own)
        return time.perf_counter() - begin

    timed(2)
    once = timed(1)
    count = max(1, min(1000, round(BATCH_SECONDS / ROUNDS / once)))
    return min(timed(count) / count for _ in range(ROUNDS))


def copying(own: CudaDevice, nbytes: int) -> float:
    """Return the bytes a second that a copy on the device reads and writes, measured by events."""
    queue = own.measuring_queue()
    with own.active("measuring a copy"):
        one, other = (pool_of(own).take(nbytes) for _ in range(2))
        done = [queue.copy(other, one, nbytes) for _ in range(ROUNDS + 1)]
        queue.finish()
        return 2 * nbytes / min(queue.seconds(d) for d in done[1:])


def measure(
    work: Workload, own: CudaDevice, speed: float, among: Collection[str] = ()
) -> dict[str, Any]:
    """Measure a row: each competitor's error and seconds of a call, or why there are none.

    Args:
        work: The workload.
        own: The device.
        speed: The bytes a second of a copy.
        among: The competitors to measure beside passkit and the kernels by hand; all if empty.
    """
    arrays = work.arrays(1)
    expected = work.reference(arrays)
    row: dict[str, Any] = {"row": work.label}
    for name, build in BUILDERS.items():
        if among and name not in ("passkit", "hand", *among):
            row[name] = {"missing": "not asked for"}
            continue
        try:
            competitor = build(work, own)
            given = [competitor.prepare(a) for a in arrays]
            result = np.asarray(competitor.numpy(competitor.function(*given)), np.float64)
        except ImportError as error:
            row[name] = {"missing": str(error).splitlines()[0]}
            continue
        error = work.error(result, expected)
        if not error <= work.tolerance:
            row[name] = {"wrong": error}
            continue
        row[name] = {"error": error, "call": batch(partial(competitor.function, *given), own)}
        if hasattr(competitor.function, "device_figures"):
            nbytes = sum(a.nbytes for a in arrays) + 4 * result.size
            row[name] |= competitor.function.device_figures(given, nbytes, speed)
    return row


def shown(row: dict[str, Any]) -> tuple[str, ...]:
    """Return a row of the table: peers as multiples of passkit's call, above 1 if it is faster."""
    own = row["passkit"]
    if "call" not in own:
        return (row["row"], *(["wrong"] * 3), *(["-"] * (len(BUILDERS) - 1)))
    cells = [seconds_text(own["call"]), seconds_text(own["device"]), f"{own['of copy']:.0%}"]
    for name in list(BUILDERS)[1:]:
        call, wrong = row[name].get("call"), "wrong" in row[name]
        cells.append(f"{call / own['call']:.2f}" if call else "wrong" if wrong else "-")
    return (row["row"], *cells)


def with_state(
    mib: int, chosen: str, own: CudaDevice, speed: float
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield rows of Adam and of training, each with the part of the report that it belongs to."""
    for label, sizes in gpu_steps.adam_rows(mib).items():
        if chosen in label:
            yield "rows", gpu_steps.adam_row(label, sizes, own, speed, batch, on_device)
    with gpu_steps.with_gradients():
        for program in gpu_steps.training_programs(not mib):
            if chosen in program.name:
                yield "training", gpu_steps.training_row(program, not mib, own, batch, on_device)


def printed(report: dict[str, list[dict[str, Any]]]) -> None:
    """Print tables of what was measured."""
    plain = [r for r in report["rows"] if not r["row"].startswith("adam")]
    steps = [r for r in report["rows"] if r["row"].startswith("adam")]
    if plain:
        print(
            table(
                ("row", "call", "device", "of copy speed", *list(BUILDERS)[1:]), map(shown, plain)
            )
        )
    for measured, names in (
        (steps, gpu_steps.ADAM_RIVALS[1:]),
        (report["training"], gpu_steps.TRAINED[1:]),
    ):
        if measured:
            print(table(("row", "step", *names), [gpu_steps.table_row(r, names) for r in measured]))


def main(arguments: list[str] | None = None) -> int:
    """Measure and print. Return 1 without a device, or where a result of passkit is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--rows", default="")
    parser.add_argument("--only", default="", help="peers, by comma; of rows that are no steps")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args(arguments)
    try:
        own = device()
    except PasskitError as error:
        print(f"no CUDA device, so nothing was measured: {error}")
        return 1
    nbytes = max(1, options.mib) << 20
    speed = copying(own, nbytes if options.mib else 1 << 16)
    facts = own.properties
    version = ".".join(map(str, facts.version))
    print(f"{own}, CUDA {version}; a copy moves {bytes_text(int(speed))}/s")
    report: dict[str, Any] = {
        "date": date.today().isoformat(),
        "gpu": facts.name,
        "architecture": facts.architecture,
        "driver": list(facts.version),
        "library": own.driver.name,
        "versions": peers.versions(PACKAGES),
        "settings": SETTINGS,
        "copy": speed,
        "mib": options.mib,
        "rows": [],
        "training": [],
    }
    among = [name for name in options.only.split(",") if name]
    plain = (
        ("rows", measure(w, own, speed, among)) for w in rows(options.mib) if options.rows in w.name
    )
    for part, row in chain(plain, with_state(options.mib, options.rows, own, speed)):
        report[part].append(row)
        if options.output is not None:  # what comes later may take long
            options.output.write_text(json.dumps(report, indent=1) + "\n")
    printed(report)
    return int(any("call" not in r["passkit"] for r in (*report["rows"], *report["training"])))


if __name__ == "__main__":
    sys.exit(main())
