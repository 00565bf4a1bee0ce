"""Compare casts and constant operands on a target with the interpreter, bit for bit.

    python benchmarks/numerics.py casts --length 3    # every chain, after Simplify
    python benchmarks/numerics.py casts --target blocks
    python benchmarks/numerics.py operands --target cpu --dtypes float32 int64

`casts` runs every chain of casts over all values of the types of 8 and 16 bits, and over values
next to the limits of all types for the wider ones. `operands` calls every elementwise operator of
two or three inputs with special values: all of them arrays, or one of them a constant. Both forms
must give the interpreter's results for arrays. Results of floats may differ by the accuracy that
kernels promise, but not in NaN, infinities, or the sign of zero. Prints each difference, and exits
1 if there is one.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

import numpy as np  # noqa: E402  (after the path)

import passkit as pk  # noqa: E402
from passkit.graph.op import FCodeGen  # noqa: E402
from passkit.values.dtype import dtype_of, largest_finite  # noqa: E402
from tests.libraries import quickly  # noqa: E402
from tests.ops.test_elementwise import REAL, all_values  # noqa: E402

Array = Any
NEAR = {"float16": 2e-3, "bfloat16": 1e-2, "float32": 1e-5, "float64": 1e-12}
"""Relative errors that are allowed, by dtype, for functions that are not correctly rounded."""
REFERENCE = "reference"
CHUNK = 400
"""Number of results of one compiled graph."""


def differs(actual: Array, expected: Array, near: float = 0.0) -> Array:
    """Return a mask of differing elements: in bits, or by more than ``near`` for floats.

    NaN, infinities and signs of zero always have to agree.
    """
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return np.ones(expected.shape, bool)
    nan = (actual != actual) & (expected != expected)
    unequal = ~nan & (actual.view(f"u{actual.itemsize}") != expected.view(f"u{actual.itemsize}"))
    if near and dtype_of(actual.dtype).is_float:
        a, b = actual.astype(np.float64), expected.astype(np.float64)
        unequal &= ~((np.abs(a - b) <= np.abs(b) * near) & (a != 0) & np.isfinite(a))
    return unequal


def results(outputs: list[pk.Entry], feeds: dict[str, Array], target: str) -> list[Array]:
    """Evaluate entries on a target.

    Args:
        outputs: the entries.
        feeds: arrays by name of variable.
        target: a target of `pk.compile`, "interpret" after Simplify, or REFERENCE for the unchanged
            graph.
    """
    values: list[Array] = []
    for k in range(0, len(outputs), CHUNK):
        graph = pk.Graph(outputs[k : k + CHUNK])
        chunk_feeds = {v.name: feeds[v.name] for v in graph.inputs}
        if target == REFERENCE:
            values += pk.interpret(graph, chunk_feeds)
        elif target == "interpret":
            values += pk.interpret(pk.ApplyPasses(graph, ["Simplify"]), chunk_feeds)
        else:
            with quickly():
                exe = pk.compile(graph, target=target)
            values += exe(chunk_feeds)
    return values


def casts(source: str, length: int, target: str) -> Iterator[str]:
    """Yield a message for each chain of ``length`` casts that gives different values."""
    values = all_values(source)
    v = pk.var("v", (None,), source)
    chains = list(itertools.product(REAL, repeat=length))
    outputs = []
    for chain in chains:
        entry = v
        for dtype in chain:
            entry = pk.ops.cast(entry, dtype=dtype)
        outputs.append(entry)
    expected = results(outputs, {"v": values}, REFERENCE)
    for chain, a, b in zip(chains, results(outputs, {"v": values}, target), expected, strict=True):
        for k in np.flatnonzero(differs(a, b))[:1]:
            yield f"{' -> '.join([source, *chain])}: {values[k]} gives {a[k]}, not {b[k]}"


def special(name: str) -> Array:
    """Return the special values of a dtype: limits, zeros, NaN, shift counts."""
    kind = dtype_of(name).numpy
    if name == "bool":
        return np.array([False, True])
    if kind.kind in "iu":
        low, high, bits = int(np.iinfo(kind).min), int(np.iinfo(kind).max), 8 * kind.itemsize
        small = [*range(-3, 4), -7, 7, bits - 1, bits, bits + 1]
        both = {*small, low, low + 1, high - 1, high}
        return np.array(sorted(v for v in both if low <= v <= high), kind)
    most, least = largest_finite(dtype_of(name)), float(np.nextafter(kind.type(0), kind.type(1)))
    size = [0.0, 0.25, 0.5, 1 / 3, 1, 1.5, 2, 3, 4, 7.25, 100.5, np.inf, most, least]
    return np.array([np.nan, *size, *(-v for v in size)]).astype(kind)


def operator_calls(dtype: str) -> tuple[list[str], list[Any], list[Any], dict[str, Array]]:
    """Call every elementwise operator with a constant operand, and with a variable in its place.

    Returns:
        Descriptions, calls with a constant, calls with a variable, and the feeds of all of them.
    """
    values = special(dtype)
    x, y = (a.ravel() for a in np.meshgrid(values, values, indexing="ij"))
    arrays = {"u": values, "x": x, "y": y}
    u, *pair = (pk.var(name, a.shape, dtype) for name, a in arrays.items())
    feeds, variables, names, fixed, computed = dict(arrays), {}, [], [], []
    for name in pk.list_ops():
        op = pk.get_op(name)
        if name not in FCodeGen.rows or op.num_inputs not in (2, 3) or name == "where":
            continue
        others = [u] if op.num_inputs == 2 else pair
        for k, c in itertools.product(range(op.num_inputs), range(values.size)):
            shape = feeds[others[0].name].shape
            spread = f"c{c}_{shape[0]}"
            if spread not in feeds:
                feeds[spread] = np.full(shape, values[c])
                variables[spread] = pk.var(spread, shape, dtype)
            for calls, operand in ((fixed, pk.constant(values[c])), (computed, variables[spread])):
                try:
                    calls.append(op(*others[:k], operand, *others[k:]))
                except pk.DTypeError:  # an operator of other types
                    break
            else:
                names.append(f"{name} of {dtype} with {values[c]} as input {k}")
    return names, fixed, computed, feeds


def operands(dtype: str, target: str) -> Iterator[str]:
    """Yield a message for each operator that differs for a constant operand or on a target."""
    names, fixed, computed, feeds = operator_calls(dtype)
    expected = results(computed, feeds, REFERENCE)
    forms = [(fixed, target)] if target == "interpret" else [(fixed, target), (computed, target)]
    for outputs, where in forms:
        word = "constant" if outputs is fixed else "computed"
        for name, a, b in zip(names, results(outputs, feeds, where), expected, strict=True):
            for k in np.flatnonzero(differs(a, b, NEAR.get(dtype, 0.0)))[:1]:
                yield f"{name}, {word}: {a[k]}, not {b[k]}, at {k}"


def main() -> int:
    """Run one of both sweeps. Return 1 if there is a difference."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sweep", choices=("casts", "operands"))
    parser.add_argument("--target", default="interpret", choices=("interpret", "blocks", "cpu"))
    parser.add_argument("--dtypes", nargs="+", default=REAL, choices=REAL, metavar="DTYPE")
    parser.add_argument("--length", type=int, default=2, help="casts of a chain")
    options = parser.parse_args()
    wrong = 0
    with np.errstate(all="ignore"):
        for dtype in options.dtypes:
            if options.sweep == "casts":
                faults = list(casts(dtype, options.length, options.target))
            else:
                faults = list(operands(dtype, options.target))
            print(*faults, f"{dtype}: {len(faults)} wrong", sep="\n", flush=True)
            wrong += len(faults)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
