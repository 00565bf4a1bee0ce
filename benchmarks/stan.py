"""Stan's comparison on OpenCL: basic kernels in sequence, one fused kernel, and hand-written ones.

    python benchmarks/stan.py [--size 2048] [--dtype float32] [--only chain] [--json FILE]

Source: Ciglaric, Cesnovar, Strumbelj, Automated OpenCL GPU kernel fusion for Stan Math; the rows
are its expressions. Times are those of the device's events without transfers, the least of ROUNDS,
which alternate. Results of all three are verified against NumPy in float64. ``basic / fused`` is
the gain of fusion, ``fused / hand`` the gain still possible. The device is that of PYOPENCL_CTX,
else the first one.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

import passkit as pk  # noqa: E402  (after the path)
from passkit.runtime.opencl.device import device, pyopencl  # noqa: E402
from passkit.values.units import seconds_text, table  # noqa: E402

o = pk.ops
ROUNDS, RUNS, LOCAL = 4, 5, 64
HEAD = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n#define n {n}\n"
KERNEL = "__kernel void {name}({params}) {{\n  const long i = get_global_id(0);\n  {body}\n}}\n"
TRANSPOSED = "i % n * n + i / n"


@frozen
class HandKernel:
    """A hand-written kernel.

    Attributes:
        body: OpenCL C of one work-item ``i``, which refers to arrays by name.
        reads: names of the arrays that it only reads.
        writes: names of the arrays that it writes.
        items: number of work-items: "n*n", "n" or "1".
    """

    body: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    items: str = "n*n"


@frozen
class StanCase:
    """An expression: as a graph, in NumPy, as basic kernels, and as hand-written kernels."""

    name: str
    graph: Callable[..., Any]
    numpy: Callable[..., Any]
    inputs: tuple[str, ...]
    basic: tuple[HandKernel, ...]
    hand: tuple[HandKernel, ...]


def elementwise(expression: str, *reads: str, to: str = "y") -> HandKernel:
    """Return a kernel that assigns an expression to one element per work-item."""
    return HandKernel(f"{to}[i] = {expression};", reads, (to,))


def rows(expression: str, *reads: str, to: str = "y", stop: str = "n") -> HandKernel:
    """Return a kernel that sums ``expression`` over each row; ``at`` is the element's index."""
    loop = f"for (long at = i * n; at < i * n + {stop}; ++at) s += {expression};"
    return HandKernel(f"T s = 0; {loop} {to}[i] = s;", reads, (to,), "n")


COLUMNS = HandKernel(
    "T s = 0; for (long k = 0; k < n; ++k) s += a[k * n + i]; y[i] = s;", ("a",), ("y",), "n"
)
TOTAL = HandKernel(
    "T s = 0; for (long k = 0; k < n; ++k) s += t[k]; y[i] = s;", ("t",), ("y",), "1"
)
LINKS = (("+", "b"), ("*", "c"), ("-", "d"))


def chain(length: int) -> StanCase:
    """Return a + b * c - d + b ... of ``length`` operators, evaluated from left to right."""
    links = [LINKS[k % 3] for k in range(length)]

    def of(a: Any, b: Any, c: Any, d: Any) -> Any:
        value = a
        for op, name in links:
            other = {"b": b, "c": c, "d": d}[name]
            value = {"+": value + other, "*": value * other, "-": value - other}[op]
        return value

    steps, text = list[HandKernel](), "a[i]"
    for k, (op, name) in enumerate(links):
        source, to = ("a" if k == 0 else f"t{k % 2}"), "y" if k == length - 1 else f"t{(k + 1) % 2}"
        steps.append(elementwise(f"{source}[i] {op} {name}[i]", source, name, to=to))
        text = f"({text} {op} {name}[i])"
    reads = dict.fromkeys(["a", *(name for _, name in links)])
    fused = elementwise(text, *reads)
    return StanCase(f"chain of {length}", of, of, ("a", "b", "c", "d"), tuple(steps), (fused,))


def cases() -> Iterator[StanCase]:
    """Yield all expressions."""
    yield from elementwise_cases()
    yield from reduction_cases()
    yield from combined_cases()


def elementwise_cases() -> Iterator[StanCase]:
    """Yield sums, chains, and a sum with a transposed matrix."""
    add = elementwise("a[i] + b[i]", "a", "b")
    yield StanCase("a + b", lambda a, b: a + b, lambda a, b: a + b, ("a", "b"), (add,), (add,))
    sum_first = elementwise("a[i] + b[i]", "a", "b", to="t")
    yield StanCase(
        "3 (a + b)",
        lambda a, b: 3 * (a + b),
        lambda a, b: 3 * (a + b),
        ("a", "b"),
        (sum_first, elementwise("3 * t[i]", "t")),
        (elementwise("3 * (a[i] + b[i])", "a", "b"),),
    )
    yield from map(chain, (1, 2, 4, 8, 16))
    transposition = elementwise(f"a[{TRANSPOSED}]", "a", to="t")
    yield StanCase(
        "transpose(a) + b",
        lambda a, b: o.transpose(a) + b,
        lambda a, b: a.T + b,
        ("a", "b"),
        (transposition, elementwise("t[i] + b[i]", "t", "b")),
        (elementwise(f"a[{TRANSPOSED}] + b[i]", "a", "b"),),
    )


def reduction_cases() -> Iterator[StanCase]:
    """Yield sums of rows, of columns and of everything."""
    by_row = rows("a[at]", "a")
    yield StanCase(
        "rowwise_sum(a)",
        lambda a: o.reduce_sum(a, axis=1),
        lambda a: a.sum(1),
        ("a",),
        (by_row,),
        (by_row,),
    )
    yield StanCase(
        "colwise_sum(a)",
        lambda a: o.reduce_sum(a, axis=0),
        lambda a: a.sum(0),
        ("a",),
        (COLUMNS,),
        (COLUMNS,),
    )
    partial = rows("a[at]", "a", to="t")
    yield StanCase(
        "sum_2d(a)",
        lambda a: o.reduce_sum(a),
        lambda a: a.sum(),
        ("a",),
        (partial, TOTAL),
        (partial, TOTAL),
    )


def combined_cases() -> Iterator[StanCase]:
    """Yield expressions of several kernels, with a broadcast or a triangle."""
    yield StanCase(
        "rowwise_sum(a * broadcast(v))",
        lambda a, v: o.reduce_sum(a * v, axis=1),
        lambda a, v: (a * v).sum(1),
        ("a", "v"),
        (
            elementwise("v[i % n]", "v", to="t"),
            elementwise("a[i] * t[i]", "a", "t", to="u"),
            rows("u[at]", "u"),
        ),
        (rows("a[at] * v[at - i * n]", "a", "v"),),
    )
    lower = elementwise("i % n <= i / n ? a[i] : 0", "a", to="t")
    both = (
        "T s = 0; for (long k = 0; k < n; ++k) { const T x = k <= i ? a[i * n + k] : 0; s += x; "
        "y[i * n + k] = x * b[i * n + k]; } z[i] = s;"
    )
    yield StanCase(
        "tril(a) * b, rowwise_sum(tril(a))",
        lambda a, b: [o.tril(a) * b, o.reduce_sum(o.tril(a), axis=1)],
        lambda a, b: [np.tril(a) * b, np.tril(a).sum(1)],
        ("a", "b"),
        (lower, elementwise("t[i] * b[i]", "t", "b"), rows("t[at]", "t", to="z")),
        (HandKernel(both, ("a", "b"), ("y", "z"), "n"),),
    )


class HandKernelSequence:
    """Compiled hand-written kernels with their arrays on the device.

    Args:
        steps: the kernels, in order.
        arrays: the inputs by name.
        shapes: shapes of the results, which are called y and z.
        n: rows and columns.
    """

    def __init__(
        self, steps: Sequence[HandKernel], arrays: dict[str, Any], shapes: Any, n: int
    ) -> None:
        self.cl, opencl_device = pyopencl(), device()
        self.queue = opencl_device.measuring_queue().handle
        dtype = next(iter(arrays.values())).dtype
        kind = {4: "float", 8: "double"}[dtype.itemsize]
        flags = self.cl.mem_flags
        names = dict.fromkeys(x for s in steps for x in (*s.reads, *s.writes))
        self.buffers = {
            x: self.cl.Buffer(opencl_device.context, flags.READ_WRITE, n * n * dtype.itemsize)
            for x in names
        }
        for name, array in arrays.items():
            if name in self.buffers:
                self.cl.enqueue_copy(self.queue, self.buffers[name], array)
        text = HEAD.format(n=n) + f"typedef {kind} T;\n"
        for k, step in enumerate(steps):
            params = [f"__global const T *restrict {x}" for x in step.reads]
            params += [f"__global T *restrict {x}" for x in step.writes]
            text += KERNEL.format(name=f"step{k}", params=", ".join(params), body=step.body)
        program = self.cl.Program(opencl_device.context, text).build()
        self.todo = []
        for k, step in enumerate(steps):
            function = getattr(program, f"step{k}")
            function.set_args(*(self.buffers[x] for x in (*step.reads, *step.writes)))
            items = {"n*n": n * n, "n": n}.get(step.items, 1)
            self.todo.append((function, items, LOCAL if items % LOCAL == 0 else 1))
        self.results = dict(zip(("y", "z"), shapes, strict=False))
        self.dtype = dtype

    def seconds(self) -> float:
        """Run all kernels once; return the sum of their events in seconds."""
        events = [
            self.cl.enqueue_nd_range_kernel(self.queue, f, (items,), (local,))
            for f, items, local in self.todo
        ]
        self.queue.finish()
        return sum(e.profile.end - e.profile.start for e in events) / 1e9

    def outputs(self) -> list[Any]:
        """Copy the results to NumPy arrays."""
        arrays = []
        for name, shape in self.results.items():
            array = np.empty(shape, self.dtype)
            self.cl.enqueue_copy(self.queue, array, self.buffers[name])
            arrays.append(array)
        return arrays


def measure(case: StanCase, n: int, dtype: str) -> dict[str, Any]:
    """Run an expression in all three forms.

    Returns:
        A row: seconds and numbers of kernels of each form, the largest error, and whether all are
        right.
    """
    rng = np.random.default_rng(0)
    shapes = {name: (n,) if name == "v" else (n, n) for name in case.inputs}
    arrays = {k: rng.uniform(0.5, 1.5, s).astype(dtype) for k, s in shapes.items()}
    expected = _several(case.numpy(*(a.astype(np.float64) for a in arrays.values())))
    result = case.graph(*(pk.var(k, s, dtype) for k, s in shapes.items()))
    exe = pk.compile(pk.Graph(result if isinstance(result, list) else [result]), target="opencl")
    feeds = {x.name: arrays[x.name] for x in exe.inputs}
    errors = [_error(exe(feeds), expected)]

    def fused() -> float:
        profile = exe.profile(feeds, RUNS, copies=False)
        return min(sum(s for _, s in run) for run in profile.spans) / 1e9

    row: dict[str, Any] = {"row": case.name, "kernels": len(exe.kernels)}
    runs: dict[str, Callable[[], float]] = {"fused": fused}
    for name, steps in (("basic", case.basic), ("hand", case.hand)):
        sequence = HandKernelSequence(steps, arrays, [w.shape for w in expected], n)
        runs[name] = lambda sequence=sequence: min(sequence.seconds() for _ in range(RUNS))  # type: ignore[misc]
        runs[name]()
        row[f"{name} kernels"] = len(steps)
        errors.append(_error(sequence.outputs(), expected))
    # They alternate, so that other load on the machine affects all of them.
    iterations = [{name: run() for name, run in runs.items()} for _ in range(ROUNDS)]
    row |= {name: min(t[name] for t in iterations) for name in runs}
    row["error"] = max(errors)
    row["right"] = row["error"] <= (1e-5 if dtype == "float32" else 1e-13)
    return row


def _several(results: Any) -> list[Any]:
    """Return one or several results as a list of arrays."""
    return (
        list(map(np.asarray, results))
        if isinstance(results, (list, tuple))
        else [np.asarray(results)]
    )


def _error(results: Sequence[Any], expected: Sequence[Any]) -> float:
    """Return the largest error, relative to the largest element of each result."""
    return max(
        float(np.abs(f - w).max() / max(1e-30, np.abs(w).max()))
        for f, w in zip(results, expected, strict=True)
    )


def shown(row: dict[str, Any]) -> tuple[str, ...]:
    """Return the cells of a row."""
    return (
        row["row"],
        *(f"{row[f'{k} kernels']}" for k in ("basic", "hand")),
        f"{row['kernels']}",
        *(seconds_text(row[k]) for k in ("basic", "hand", "fused")),
        f"{row['basic'] / row['fused']:.2f}",
        f"{row['fused'] / row['hand']:.2f}",
        "right" if row["right"] else f"WRONG {row['error']:.1e}",
    )


def main(arguments: list[str] | None = None) -> int:
    """Measure and print. Return 1 if a result is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", type=int, default=2048, help="rows and columns (2048)")
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    print(f"{device()}, {options.size} x {options.size} {options.dtype}")
    measured_rows = [
        measure(c, options.size, options.dtype) for c in cases() if options.only in c.name
    ]
    head = (
        "row",
        "kernels: basic",
        "hand",
        "fused",
        "basic",
        "hand",
        "fused",
        "basic / fused",
        "fused / hand",
        "results",
    )
    print(table(head, map(shown, measured_rows)))
    if options.json is not None:
        report = {"device": str(device()), "size": options.size, "dtype": options.dtype}
        options.json.write_text(json.dumps({**report, "rows": measured_rows}, indent=1) + "\n")
    return int(not all(r["right"] for r in measured_rows))


if __name__ == "__main__":
    sys.exit(main())
