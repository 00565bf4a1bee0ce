"""Casts and constant operands by the thousand: a target against the interpreter, bit for bit.

    python benchmarks/numerics.py casts --length 3    # every chain, after Simplify
    python benchmarks/numerics.py casts --target blocks
    python benchmarks/numerics.py operands --target cpu --dtypes float32 int64

`casts` runs every chain of casts over all values of the types of 8 and 16 bits, and over values
next to the limits of all types for the wider ones. `operands` calls every elementwise operator of
two or three inputs with special values: all of them arrays, or one of them a constant. Both forms
must give what the interpreter gives for arrays; results of floats may differ by the accuracy that
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
"""Relative errors, of functions that are not correctly rounded and of composites, that are passed
over; what this tool looks for is larger."""
REFERENCE = "reference"
CHUNK = 400
"""Results of one compiled graph."""


def differs(found: Array, wanted: Array, near: float = 0.0) -> Array:
    """Where arrays differ: in bits; or floats by more than ``near``, in NaN, inf, or signs of 0."""
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        return np.ones(wanted.shape, bool)
    nan = (found != found) & (wanted != wanted)
    unequal = ~nan & (found.view(f"u{found.itemsize}") != wanted.view(f"u{found.itemsize}"))
    if near and dtype_of(found.dtype).is_float:
        a, b = found.astype(np.float64), wanted.astype(np.float64)
        unequal &= ~((np.abs(a - b) <= np.abs(b) * near) & (a != 0) & np.isfinite(a))
    return unequal


def results(outputs: list[pk.Entry], feeds: dict[str, Array], target: str) -> list[Array]:
    """The values of entries, as `interpret` has them (REFERENCE) or on a target, after Simplify."""
    found: list[Array] = []
    for k in range(0, len(outputs), CHUNK):
        graph = pk.Graph(outputs[k : k + CHUNK])
        given = {v.name: feeds[v.name] for v in graph.inputs}
        if target == REFERENCE:
            found += pk.interpret(graph, given)
        elif target == "interpret":
            found += pk.interpret(pk.ApplyPasses(graph, ["Simplify"]), given)
        else:
            with quickly():
                exe = pk.compile(graph, target=target)
            found += exe(given)
    return found


def casts(source: str, length: int, target: str) -> Iterator[str]:
    """The chains of casts that begin at a type and give other values on a target."""
    values = all_values(source)
    v = pk.var("v", (None,), source)
    chains = list(itertools.product(REAL, repeat=length))
    outputs = []
    for chain in chains:
        entry = v
        for dtype in chain:
            entry = pk.ops.cast(entry, dtype=dtype)
        outputs.append(entry)
    wanted = results(outputs, {"v": values}, REFERENCE)
    for chain, a, b in zip(chains, results(outputs, {"v": values}, target), wanted, strict=True):
        for k in np.flatnonzero(differs(a, b))[:1]:
            yield f"{' -> '.join([source, *chain])}: {values[k]} gives {a[k]}, not {b[k]}"


def special(name: str) -> Array:
    """The values of a type where operators have corners."""
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


def operands(dtype: str, target: str) -> Iterator[str]:
    """The operators that give other values for a constant than for an array, or on a target."""
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
            for kept, operand in ((fixed, pk.constant(values[c])), (computed, variables[spread])):
                try:
                    kept.append(op(*others[:k], operand, *others[k:]))
                except pk.DTypeError:  # an operator of other types
                    break
            else:
                names.append(f"{name} of {dtype} with {values[c]} as input {k}")
    wanted = results(computed, feeds, REFERENCE)
    forms = [(fixed, target)] if target == "interpret" else [(fixed, target), (computed, target)]
    for outputs, where in forms:
        word = "constant" if outputs is fixed else "computed"
        for name, a, b in zip(names, results(outputs, feeds, where), wanted, strict=True):
            for k in np.flatnonzero(differs(a, b, NEAR.get(dtype, 0.0)))[:1]:
                yield f"{name}, {word}: {a[k]}, not {b[k]}, at {k}"


def main() -> int:
    """Run one of both sweeps."""
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
