"""PyTorch's operators through passkit: each OpInfo of the torch wheel, compiled and run eagerly.

    python benchmarks/torch_operators.py [--only softmax] [--dtypes float32,int64] [--samples 5]
        [--target interpret] [--backward] [--jobs 2] [--json FILE]

Each sample of an operator is traced by AOTAutograd, compiled with passkit and compared with
PyTorch at the tolerances of its tests. An entry counts as passed if all its samples agree, and as
native if PyTorch ran no operator of it. With ``--target interpret`` no compiler is needed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

TOLERANCES = {
    "float16": (1e-3, 1e-3),
    "bfloat16": (1.6e-2, 1e-2),
    "float32": (1.3e-5, 1e-5),
    "float64": (1e-7, 1e-7),
}
"""Relative and absolute tolerances by dtype, twice those of PyTorch's tests for float32."""
RANDOM = ("rand", "dropout", "bernoulli", "normal", "multinomial", "uniform", "exponential", "geometric", "cauchy")
"""Parts of the names of operators whose results are random: only shapes are compared."""


def compiled(function: Any, tensors: list[Any], options: dict[str, Any]) -> tuple[Any, list[Any]]:
    """Return the results of a function of tensors through passkit, and its records."""
    from functorch.compile import aot_function

    from passkit.frontends.torch.backend import compile_functional, decompositions
    from passkit.frontends.torch.reports import RECORDS

    RECORDS.clear()

    def compiler(module: Any, inputs: Any) -> Any:
        return compile_functional(module, "extern", options)

    traced = aot_function(function, fw_compiler=compiler, decompositions=decompositions())
    results = traced(*tensors)
    return results, list(RECORDS)


def check_sample(info: Any, sample: Any, dtype: str, options: dict[str, Any], backward: bool) -> tuple[str, list[str]]:
    """Return "" or what is wrong with a sample, and the operators that PyTorch ran."""
    import torch
    from torch.utils import _pytree as pytree

    leaves, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    where = [k for k, x in enumerate(leaves) if isinstance(x, torch.Tensor)]
    tensors = [leaves[k].detach().clone() for k in where]
    if backward:
        for t in tensors:
            t.requires_grad_(t.is_floating_point())

    def function(*own: Any) -> Any:
        full = list(leaves)
        for k, x in zip(where, own, strict=True):
            full[k] = x
        first, args, kwargs = pytree.tree_unflatten(full, spec)
        result = info.op(first, *args, **kwargs)
        return [x for x in pytree.tree_leaves(result) if isinstance(x, torch.Tensor)]

    def graded(run: Any, own: list[Any]) -> list[Any]:
        results = run(*own)
        if not backward:
            return list(results)
        wanted = [x for x in results if x.requires_grad]
        needed = [t for t in own if t.requires_grad]
        if not wanted or not needed:
            return list(results)
        grads = torch.autograd.grad(wanted, needed, [torch.ones_like(x) for x in wanted], allow_unused=True)
        return [*results, *(g for g in grads if g is not None)]

    if not tensors:
        return "", []
    try:
        expected = graded(function, [t.detach().clone().requires_grad_(t.requires_grad) for t in tensors])
    except Exception:
        return "", []
    records: list[Any] = []

    def through(*own: Any) -> Any:
        results, made = compiled(function, list(own), options)
        records.extend(made)
        return results

    try:
        actual = graded(through, tensors)
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:300]}", []
    externs = [e.function + ": " + e.reason for r in records for e in r.externs] + [r.whole for r in records if r.whole]
    if len(actual) != len(expected):
        return f"{len(actual)} results, expected {len(expected)}", externs
    is_random = any(part in info.name for part in RANDOM)
    for a, b in zip(actual, expected, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"{a.dtype}{list(a.shape)}, expected {b.dtype}{list(b.shape)}", externs
        if is_random or "empty" in info.name:
            continue
        rtol, atol = TOLERANCES.get(dtype, (1e-5, 1e-5))
        try:
            torch.testing.assert_close(a, b, rtol=rtol, atol=atol, equal_nan=True)
        except AssertionError as error:
            return str(error).replace("\n", " ")[:300], externs
    return "", externs


def check(task: tuple[int, str, int, dict[str, Any], bool]) -> dict[str, Any] | None:
    """Return the outcome of one operator and dtype; None if it does not take the dtype."""
    import torch
    from torch.testing._internal.common_methods_invocations import op_db

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    position, dtype_name, count, options, backward = task
    info, dtype = op_db[position], getattr(torch, dtype_name)
    if dtype not in info.supported_dtypes("cpu"):
        return None
    if backward and (not info.supports_autograd or not dtype.is_floating_point):
        return None
    begin = time.time()
    name = info.name + (f".{info.variant_test_name}" if info.variant_test_name else "")
    problems: list[str] = []
    externs: Counter[str] = Counter()
    tried = 0
    torch.manual_seed(0)
    try:
        samples = list(islice(info.sample_inputs("cpu", dtype, requires_grad=False), count))
    except Exception as error:
        return {"name": name, "dtype": dtype_name, "samples": 0, "problem": "", "externs": {}, "skipped": str(error)[:100]}
    for sample in samples:
        problem, own = check_sample(info, sample, dtype_name, options, backward)
        tried += 1
        externs.update(own)
        if problem:
            problems.append(problem)
    return {
        "name": name,
        "dtype": dtype_name,
        "samples": tried,
        "problem": problems[0] if problems else "",
        "failed": len(problems),
        "externs": dict(externs),
        "seconds": time.time() - begin,
    }


def main() -> int:
    """Check the operators that the command line names, and print the outcome."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--only", default="", help="operators whose name contains this")
    parser.add_argument("--dtypes", default="float32")
    parser.add_argument("--samples", type=int, default=4, help="samples of each operator")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--backward", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--every", type=int, default=1, help="only every nth operator")
    parser.add_argument("--json", help="file for all outcomes")
    own = parser.parse_args()
    from torch.testing._internal.common_methods_invocations import op_db

    options = {"target": own.target}
    tasks = [
        (k, dtype, own.samples, options, own.backward)
        for k, info in enumerate(op_db)
        if own.only in info.name and k % own.every == 0
        for dtype in own.dtypes.split(",")
    ]
    outcomes = []
    with ProcessPoolExecutor(own.jobs, get_context("spawn")) as pool:
        for outcome in pool.map(check, tasks, chunksize=4):
            if outcome is not None:
                outcomes.append(outcome)
                if outcome["problem"]:
                    print(f"FAILED {outcome['name']} {outcome['dtype']}: {outcome['problem']}", flush=True)
    failed = [x for x in outcomes if x["problem"]]
    native = [x for x in outcomes if not x["externs"] and not x["problem"]]
    reasons: Counter[str] = Counter()
    for x in outcomes:
        reasons.update(set(x["externs"]))
    for reason, n in reasons.most_common(60):
        print(f"{n:4} {reason[:180]}")
    print(
        f"{len(outcomes)} entries, {len(failed)} failed, {len(native)} without a call of PyTorch "
        f"({len(native) / max(1, len(outcomes)):.0%})"
    )
    if own.json:
        Path(own.json).write_text(json.dumps(outcomes, indent=0))
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
