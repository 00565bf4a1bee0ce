"""PyTorch's operators through passkit: each OpInfo of the torch wheel, compiled and run eagerly.

    python benchmarks/torch_operators.py [--only softmax] [--dtypes float32,int64] [--samples 5]
        [--target interpret] [--backward] [--jobs 2] [--json FILE]

Each sample of an operator is traced by AOTAutograd, compiled with passkit and compared with
PyTorch at the tolerances of its tests, or, where PyTorch is less exact, with its float64.
Functions that create tensors while they are traced go through `torch.compile`. An entry counts as
passed if all its samples agree, and as native if PyTorch ran no operator of it. Entries without
samples that PyTorch runs are skipped. With ``--target interpret`` no compiler is needed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import attrs
import torch
from functorch.compile import aot_function
from torch.testing._internal.common_device_type import precisionOverride, toleranceOverride
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import DecorateInfo, OpInfo, SampleInput
from torch.utils import _pytree as pytree

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from torch_checks import (  # noqa: E402  (after the path)
    TOLERANCES,
    Outcome,
    SkippedSampleError,
    Trial,
    add_arguments,
    compiled_results,
    difference,
    error_text,
    extern_reasons,
    is_exact,
    outcome_of,
    prepare_process,
    run_trials,
    with_gradients,
)

from passkit.frontends.torch.backend import compile_functional, decompositions  # noqa: E402
from passkit.frontends.torch.reports import recording  # noqa: E402

UNINITIALIZED = ("empty",)
"""Parts of the names of operators whose results are not defined: only shapes are compared."""
UP_TO_SIGNS = ("eig", "svd", "lowrank")
"""Parts of the names of operators whose results have arbitrary signs: OpInfo removes them."""
SEED = 42
"""The seed before each call, which OpInfo sets before it calls a random operator, too."""
_EQUAL_ELEMENTS = "of equal elements PyTorch takes any, passkit the first"
_ROUNDED_PRODUCT = "passkit rounds the product to 16 bits before it adds the other operand"
KNOWN_FAILURES: dict[str, str] = {
    "argsort bfloat16": _EQUAL_ELEMENTS,
    "argsort bool": _EQUAL_ELEMENTS,
    "argsort float16": _EQUAL_ELEMENTS,
    "argsort int64": _EQUAL_ELEMENTS,
    "kthvalue int64": _EQUAL_ELEMENTS,
    "sort bfloat16": _EQUAL_ELEMENTS,
    "sort bool": _EQUAL_ELEMENTS,
    "sort float16": _EQUAL_ELEMENTS,
    "sort int64": _EQUAL_ELEMENTS,
    "topk bfloat16": _EQUAL_ELEMENTS,
    "topk int64": _EQUAL_ELEMENTS,
    "baddbmm bfloat16": _ROUNDED_PRODUCT,
    "baddbmm float16": _ROUNDED_PRODUCT,
    "nn.functional.conv_transpose2d bfloat16": _ROUNDED_PRODUCT,
    "nn.functional.conv_transpose3d bfloat16": _ROUNDED_PRODUCT,
    "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu float32": (
        "scores of about 100 are inexact by 1e-5, of which the exponential is taken"
    ),
    "matrix_exp float16": "PyTorch's result is NaN where passkit's is that of float64",
}
"""Why entries fail that are known to; a name may be followed by a dtype and a mode."""


def entry_name(info: OpInfo) -> str:
    """Return the name of an entry with that of its variant."""
    return info.name + (f".{info.variant_test_name}" if info.variant_test_name else "")


def tolerances(info: OpInfo, dtype: str) -> tuple[float, float]:
    """Return the relative and absolute tolerance of an operator; the widest of its tests."""
    relative, absolute = TOLERANCES.get(dtype, TOLERANCES["float32"])
    key = getattr(torch, dtype)
    for decorator in info.decorators or ():
        if not isinstance(decorator, DecorateInfo) or decorator.device_type not in (None, "cpu"):
            continue
        for override in decorator.decorators:
            if isinstance(override, toleranceOverride) and key in override.d:
                absolute = max(absolute, override.d[key].atol)
                relative = max(relative, override.d[key].rtol)
            elif isinstance(override, precisionOverride) and key in override.d:
                absolute = max(absolute, override.d[key])
    return relative, absolute


class SampleFunction:
    """A sample as a function of its tensors, which returns all tensors of the result.

    Args:
        info: the operator.
        sample: the sample.
        is_backward: whether the tensors need gradients.
    """

    def __init__(self, info: OpInfo, sample: SampleInput, is_backward: bool) -> None:
        self.operator: Callable[..., Any] = info.op
        self.process: Callable[[Any], Any] | None = None
        if is_backward or any(part in info.name for part in UP_TO_SIGNS):
            self.process = sample.output_process_fn_grad
        self.leaves, self.spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
        self.positions = [k for k, x in enumerate(self.leaves) if isinstance(x, torch.Tensor)]
        self.needs_grad = [
            is_backward and self.leaves[k].dtype.is_floating_point for k in self.positions
        ]

    def tensors(self) -> list[torch.Tensor]:
        """Return copies of the tensors of the sample, and set the seed of random operators."""
        torch.manual_seed(SEED)
        return [
            self.leaves[k].detach().clone().requires_grad_(needed)
            for k, needed in zip(self.positions, self.needs_grad, strict=True)
        ]

    def __call__(self, *tensors: torch.Tensor) -> list[torch.Tensor]:
        """Return the results of the operator for other tensors."""
        leaves = list(self.leaves)
        for k, x in zip(self.positions, tensors, strict=True):
            leaves[k] = x
        first, args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        result = self.operator(first, *args, **kwargs)
        if self.process is not None:
            result = self.process(result)
        return [x for x in pytree.tree_leaves(result) if isinstance(x, torch.Tensor)]


def traced_results(
    function: SampleFunction, options: dict[str, Any]
) -> tuple[list[torch.Tensor], list[str]]:
    """Return the results through AOTAutograd, and the operators that PyTorch ran."""

    def compiler(module: Any, inputs: Any) -> Any:
        return compile_functional(module, "extern", options)

    traced = aot_function(function, fw_compiler=compiler, decompositions=decompositions())
    with recording() as records:
        results = with_gradients(traced, function.tensors())
    return results, extern_reasons(records)


def dynamo_results(
    function: SampleFunction, options: dict[str, Any]
) -> tuple[list[torch.Tensor], list[str]]:
    """Return the results through torch.compile, and the operators that PyTorch ran."""

    def plain(*tensors: torch.Tensor) -> list[torch.Tensor]:
        return function(*tensors)

    return compiled_results(
        lambda compiled: with_gradients(compiled(plain), function.tensors()), options
    )


def check_sample(info: OpInfo, sample: SampleInput, trial: Trial) -> tuple[str, list[str]]:
    """Return how a sample differs, "" if it does not, and the operators that PyTorch ran.

    Raises: SkippedSampleError for a sample that PyTorch cannot run.
    """
    function = SampleFunction(info, sample, trial.is_backward)
    try:
        expected = with_gradients(function, function.tensors())
    except Exception as error:
        raise SkippedSampleError(f"PyTorch: {type(error).__name__}: {str(error)[:100]}") from None
    try:
        actual, externs = traced_results(function, trial.options)
    except Exception:
        try:
            actual, externs = dynamo_results(function, trial.options)
        except Exception as error:
            return error_text(error), []
    tolerance = tolerances(info, trial.dtype)
    is_defined = not any(part in info.name for part in UNINITIALIZED)
    problem = difference(actual, expected, tolerance, is_defined)
    if not problem or trial.dtype not in ("float16", "bfloat16", "float32"):
        return problem, externs
    is_right = is_exact(actual, expected, lambda: exact_results(function), tolerance)
    return "" if is_right else problem, externs


def exact_results(function: SampleFunction) -> list[torch.Tensor]:
    """Return the results of PyTorch in float64."""
    tensors = [
        t.detach().double().requires_grad_(t.requires_grad) if t.is_floating_point() else t
        for t in function.tensors()
    ]
    return with_gradients(function, tensors)


def check(trial: Trial) -> Outcome | None:
    """Return the outcome of one operator and dtype; None if it does not take the dtype."""
    prepare_process()
    info, dtype = op_db[trial.position], getattr(torch, trial.dtype)
    if dtype not in info.supported_dtypes("cpu"):
        return None
    if trial.is_backward and not (info.supports_autograd and dtype.is_floating_point):
        return None
    begin = time.time()
    torch.manual_seed(0)
    try:
        inputs = info.sample_inputs("cpu", dtype, requires_grad=False)
        samples = list(islice(inputs, trial.samples))
    except Exception as error:
        samples = []
        print(f"{entry_name(info)} {trial.dtype} has no samples: {str(error)[:100]}")
    outcome = outcome_of(
        samples,
        lambda sample: check_sample(info, sample, trial),
        name=entry_name(info),
        dtype=trial.dtype,
        mode=trial.mode,
        seconds=0.0,
    )
    return attrs.evolve(outcome, seconds=time.time() - begin)


def main() -> int:
    """Check the operators that the command line names, and print the outcome."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    add_arguments(parser, samples=4)
    parser.add_argument("--backward", action="store_true")
    parser.add_argument("--every", type=int, default=1, help="only every nth operator")
    parser.add_argument("--first", type=int, default=0, help="the first operator of these")
    own = parser.parse_args()
    mode = "backward" if own.backward else "forward"
    trials = [
        Trial(k, dtype, mode, own.samples, {"target": own.target})
        for dtype in own.dtypes.split(",")
        for k, info in enumerate(op_db)
        if own.only in entry_name(info) and k % own.every == own.first
    ]
    return run_trials(check, trials, KNOWN_FAILURES, own)


if __name__ == "__main__":
    sys.exit(main())
