"""The time that calls on a device take on the host: on a CUDA driver that does nothing.

    python benchmarks/host_path.py [--rounds 2000] [--only NAME]

Needs gcc and cuda-bindings, and neither NVRTC nor a GPU: `noop_cuda.c` takes the place of
libcuda.so.1 in this process, and no kernel is compiled. Each row prints the least and the median
microseconds of a call, without the device's own time, and how often the call uses each function of
the driver.

Results stay on the device but in rows that say otherwise; nothing is verified, as kernels do not
run. The report goes to `results/host_path.json`.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

RESULTS = ROOT / "benchmarks" / "results" / "host_path.json"
SIZES = tuple(1 + 16 * k for k in range(30))
"""The sizes of the thirty parameters of Adam."""
CALLS = 20
"""The calls of a round."""


def load_noop_driver() -> Any:
    """Load a libcuda.so.1 that does nothing; libraries that look for one find it.

    Raises: CalledProcessError where gcc fails, OSError where there is none.
    """
    path = Path(tempfile.mkdtemp()) / "libcuda.so.1"
    source = ROOT / "benchmarks" / "noop_cuda.c"
    options = ("-shared", "-fPIC", "-O2", "-w", "-Wl,-soname,libcuda.so.1", "-o", str(path))
    subprocess.run(("gcc", *options, str(source)), check=True)
    library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    library.name_of.restype = ctypes.c_char_p
    library.calls_of.restype = ctypes.c_long
    return library


def without_compiler() -> None:
    """Let kernels be compiled to nothing in this process, in a kernel cache of its own."""
    os.environ["PASSKIT_CACHE_DIR"] = tempfile.mkdtemp()
    from passkit.runtime.cuda import compiler  # after the folder is set

    class NoCompiler(compiler.Nvrtc):
        """A compiler for each device, whose machine code has no instructions."""

        version, architectures = (13, 0), (90,)

        def __init__(self) -> None:
            pass

        def compile(self, text: str, options: Sequence[str]) -> compiler.CompiledImage:
            """Return an image without content."""
            return compiler.CompiledImage(b"no code", "")

    compiler.nvrtc = NoCompiler


def driver_calls(library: Any) -> dict[str, int]:
    """Return how often each function was called since the last `forget_calls`, without zeros."""
    names = [library.name_of(k) for k in range(library.num_functions())]
    counts = {name.decode(): int(library.calls_of(name)) for name in names}
    return {name: count for name, count in counts.items() if count}


def rows() -> Mapping[str, Callable[[], Callable[[], Any]]]:
    """Return, for each row, a function that returns its call."""
    import passkit as pk  # after the driver is loaded
    from passkit.runtime.cuda.arrays import new_array

    o = pk.ops

    def arrays(*shape: int, count: int = 1) -> list[Any]:
        """Return arrays on the device."""
        return [new_array(np.dtype("f4"), shape) for _ in range(count)]

    def kernel() -> Callable[[], Any]:
        exe: Any = pk.compile(pk.Graph([o.softmax(pk.var("x", ("n", 1024)))]), target="cuda")
        (x,) = arrays(64, 1024)
        return lambda: exe({"x": x}, out="device")

    def into() -> Callable[[], Any]:
        exe: Any = pk.compile(pk.Graph([o.softmax(pk.var("x", ("n", 1024)))]), target="cuda")
        x, y = arrays(64, 1024, count=2)
        return lambda: exe({"x": x}, out=[y])

    def host() -> Callable[[], Any]:
        exe: Any = pk.compile(pk.Graph([o.softmax(pk.var("x", ("n", 10)))]), target="cuda")
        x = np.zeros((100, 10), np.float32)
        return lambda: exe(x=x)

    def chain() -> Callable[[], Any]:
        x = pk.var("x", ("n",))
        exe: Any = pk.compile(pk.Graph([o.exp(o.sin(o.tanh(x)))]), target="cuda", fusion="none")
        (a,) = arrays(1000)
        return lambda: exe({"x": a}, out="device")

    def chained_calls() -> Callable[[], Any]:
        exe: Any = pk.compile(pk.Graph([o.softmax(pk.var("x", ("n", 1024)))]), target="cuda")
        (first,) = arrays(64, 1024)

        def calls() -> Any:
            x = first
            for _ in range(100):
                (x,) = exe({"x": x}, out="device")
            return x

        return calls

    def operation() -> Callable[[], Any]:
        from passkit import xp

        x, y = (xp.asarray(np.ones(1000, np.float32), device="cuda:0") for _ in range(2))

        def call() -> Any:
            z = x * y + 2.5
            xp.eval(z)
            return z

        return call

    def adam() -> Callable[[], Any]:
        import adam as steps

        exe: Any = steps.passkit(SIZES, 1, "cuda").step
        feeds = {f"g{k}": arrays(n)[0] for k, n in enumerate(SIZES)}
        return lambda: exe(feeds, out="device")

    return {
        "one kernel": kernel,
        "one kernel, out=[array]": into,
        "one kernel, NumPy in and out": host,
        "three kernels": chain,
        "100 calls in a chain": chained_calls,
        "xp.eval(a * b + 2.5)": operation,
        "Adam of 30 tensors": adam,
    }


def measure(call: Callable[[], Any], library: Any, rounds: int) -> dict[str, Any]:
    """Return a call's least and median microseconds, and its calls of the driver."""
    for _ in range(30):
        call()
    library.forget_calls()
    for _ in range(CALLS):
        call()
    counts = {name: count / CALLS for name, count in driver_calls(library).items()}
    times = []
    for _ in range(rounds // CALLS):
        begin = perf_counter()
        for _ in range(CALLS):
            call()
        times.append((perf_counter() - begin) / CALLS * 1e6)
    return {"least": min(times), "median": median(times), "driver": counts}


def main(arguments: list[str] | None = None) -> None:
    """Measure, print microseconds and calls of the driver, and write the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=4000, help="calls of each row")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--json", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    library = load_noop_driver()
    without_compiler()
    report = {}
    for name, build in rows().items():
        if options.only not in name:
            continue
        row = report[name] = measure(build(), library, options.rounds)
        counts = ", ".join(f"{k} {n:g}" for k, n in row["driver"].items())
        print(
            f"{name:30} {row['least']:7.2f} us (median {row['median']:.2f}): {counts}", flush=True
        )
    if not options.only:
        options.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
