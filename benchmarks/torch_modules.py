"""PyTorch's modules and optimizers through passkit: all that its own tests know.

    python benchmarks/torch_modules.py [--only LSTM] [--dtypes float32,float64] [--samples 6]
        [--target interpret] [--jobs 2] [--json FILE]

Modules of PyTorch's ModuleInfos are compiled with `torch.compile` and compared with themselves:
results, buffers after the call, and in the mode "backward" the gradients by inputs and parameters,
in training and evaluation. Of the optimizers of its OptimizerInfos the method ``step`` is compiled;
after three steps parameters and state have to be equal. Where results are not within the tolerances
of PyTorch's tests, they have to be within those of PyTorch in float64.
"""

from __future__ import annotations

import argparse
import copy
import sys
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import attrs
import torch
from torch.testing._internal.common_modules import ModuleInfo, ModuleInput, module_db
from torch.testing._internal.common_optimizers import (
    OptimizerInfo,
    OptimizerInput,
    _get_optim_inputs_including_global_cliquey_kwargs,
    optim_db,
)
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
    is_exact,
    outcome_of,
    prepare_process,
    run_trials,
    with_gradients,
)

SEED = 42
"""The seed before each call, so that random modules draw the same numbers."""
STEPS = 3
"""The steps of an optimizer that are compared."""
HALF_PRECISION = ("Muon",)
"""Optimizers that compute in bfloat16 whatever the dtype of their parameters is."""
BREAK = "Dynamo: Call to `torch._dynamo.graph_break()`"
"""The graph break that PyTorch puts before each step of an optimizer."""
_FLOAT32_STEPS = "torch.compile, with any backend, corrects the bias by a float32 power of the step"
KNOWN_FAILURES: dict[str, str] = {
    "Adam float64": _FLOAT32_STEPS,
    "AdamW float64": _FLOAT32_STEPS,
    "nn.MultiLabelMarginLoss": "PyTorch's decomposition of one row has the shape (1,), eager ()",
}
"""Why entries fail that are known to; a name may be followed by a dtype and a mode."""


class ModuleSample:
    """A module with inputs, as a function of its tensors.

    Args:
        info: the entry of the module.
        inputs: the arguments of its constructor and of a call.
        training: whether it is in training.
        mode: "forward" or "backward".
        dtype: the dtype of its parameters.
    """

    def __init__(
        self,
        info: ModuleInfo,
        inputs: ModuleInput,
        training: bool,
        mode: str,
        dtype: torch.dtype,
    ) -> None:
        own = inputs.constructor_input
        torch.manual_seed(SEED)
        self.module: torch.nn.Module = info.module_cls(*own.args, **own.kwargs)
        self.module.to(dtype).train(training)
        call = inputs.forward_input
        self.leaves, self.spec = pytree.tree_flatten((call.args, call.kwargs))
        self.positions = [k for k, x in enumerate(self.leaves) if isinstance(x, torch.Tensor)]
        self.is_backward = mode == "backward"
        if info.is_lazy:
            self.call(self.module, self.tensors())

    def tensors(self, in_float64: bool = False) -> list[torch.Tensor]:
        """Return copies of the tensors of the call, and set the seed of random modules."""
        torch.manual_seed(SEED)
        copies = [self.leaves[k].detach().clone() for k in self.positions]
        if in_float64:
            copies = [x.double() if x.is_floating_point() else x for x in copies]
        return [
            x.requires_grad_(self.is_backward and self.leaves[k].requires_grad)
            for k, x in zip(self.positions, copies, strict=True)
        ]

    def call(self, module: Callable[..., Any], tensors: Sequence[torch.Tensor]) -> Any:
        """Return the result of a module for other tensors."""
        leaves = list(self.leaves)
        for k, x in zip(self.positions, tensors, strict=True):
            leaves[k] = x
        args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        return module(*args, **kwargs)

    def effects(
        self, owner: torch.nn.Module, run: Callable[..., Any], in_float64: bool = False
    ) -> list[torch.Tensor]:
        """Return the results of a call, the gradients, and the buffers after it.

        Args:
            owner: the module, which has parameters and buffers.
            run: it or its compiled form.
            in_float64: whether its tensors are float64.
        """

        def function(*tensors: torch.Tensor) -> list[torch.Tensor]:
            leaves = pytree.tree_leaves(self.call(run, tensors))
            return [x for x in leaves if isinstance(x, torch.Tensor)]

        parameters = list(owner.parameters()) if self.is_backward else []
        with torch.set_grad_enabled(self.is_backward):
            results = with_gradients(function, self.tensors(in_float64), parameters)
        return [x.detach() for x in (*results, *owner.buffers())]


def module_samples(info: ModuleInfo, trial: Trial) -> list[ModuleSample]:
    """Return the samples of a module, in training and in evaluation where these differ."""
    dtype = getattr(torch, trial.dtype)
    samples = []
    for training in (True, False) if info.train_and_eval_differ else (True,):
        torch.manual_seed(SEED)
        inputs = info.module_inputs_func(
            info,
            device="cpu",
            dtype=dtype,
            requires_grad=trial.mode == "backward",
            training=training,
        )
        own = islice((x for x in inputs if x.forward_input is not None), trial.samples)
        samples += [ModuleSample(info, x, training, trial.mode, dtype) for x in own]
    return samples


def check_module(sample: ModuleSample, trial: Trial) -> tuple[str, list[str]]:
    """Return how a compiled module differs, "" if it does not, and the operators PyTorch ran.

    Raises: SkippedSampleError for a sample that PyTorch cannot run.
    """
    plain, other = copy.deepcopy(sample.module), copy.deepcopy(sample.module)
    try:
        expected = sample.effects(plain, plain)
    except Exception as error:
        raise SkippedSampleError(f"PyTorch: {type(error).__name__}: {str(error)[:100]}") from None
    try:
        with torch._dynamo.config.patch(allow_rnn=True):
            actual, externs = compiled_results(
                lambda compiled: sample.effects(other, compiled(other)), trial.options
            )
    except Exception as error:
        return error_text(error), []

    def exact_results() -> list[torch.Tensor]:
        exact = copy.deepcopy(sample.module).double()
        return sample.effects(exact, exact, in_float64=True)

    return compared(actual, expected, exact_results, trial), externs


def compared(
    actual: Sequence[torch.Tensor],
    expected: Sequence[torch.Tensor],
    exact_results: Callable[[], Sequence[torch.Tensor]],
    trial: Trial,
) -> str:
    """Return how results differ from PyTorch and from its float64, "" if from one they do not."""
    tolerance = TOLERANCES[trial.dtype]
    problem = difference(actual, expected, tolerance)
    if problem and is_exact(actual, expected, exact_results, tolerance):
        return ""
    return problem


def optimizer_samples(info: OptimizerInfo, trial: Trial) -> list[OptimizerInput]:
    """Return the settings of an optimizer that differ in more than its speed."""
    inputs = _get_optim_inputs_including_global_cliquey_kwargs(
        "cpu", getattr(torch, trial.dtype), info, skip=("differentiable",)
    )
    return list(inputs[: trial.samples])


def optimizer_effects(
    info: OptimizerInfo,
    inputs: OptimizerInput,
    dtype: torch.dtype,
    compiled: Callable[[Callable[..., Any]], Callable[..., Any]] = lambda step: step,
) -> list[torch.Tensor]:
    """Return parameters and state of an optimizer after some steps.

    Args:
        info: the entry of the optimizer.
        inputs: its settings.
        dtype: the dtype of the parameters.
        compiled: a function of its step that returns the step to call.
    """
    torch.manual_seed(SEED)
    shapes: tuple[tuple[int, ...], ...] = ((10, 5), (10,), ())
    if info.name == "Muon" or info.only_supports_sparse_grads:
        shapes = ((10, 5), (10, 1))
    parameters = [torch.nn.Parameter(torch.randn(shape).to(dtype)) for shape in shapes]
    settings = {
        k: x.to(dtype) if isinstance(x, torch.Tensor) else x for k, x in inputs.kwargs.items()
    }
    optimizer = info.optim_cls(parameters, **copy.deepcopy(settings))
    step = compiled(optimizer.step)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = sum(((p - 1).square().sum() for p in parameters), start=torch.zeros((), dtype=dtype))
        loss.backward()
        return loss

    for _ in range(STEPS):
        if info.step_requires_closure:
            step(closure)
            continue
        for p in parameters:
            grad = torch.randn(p.shape).to(dtype)
            p.grad = grad.to_sparse() if info.only_supports_sparse_grads else grad
        step()
    state = [
        x
        for p in parameters
        for _, x in sorted(optimizer.state[p].items(), key=lambda item: str(item[0]))
        if isinstance(x, torch.Tensor)
    ]
    return [x.detach() for x in (*parameters, *state)]


def check_optimizer(
    info: OptimizerInfo, inputs: OptimizerInput, trial: Trial
) -> tuple[str, list[str]]:
    """Return how a compiled optimizer differs, "" if it does not, and the operators PyTorch ran.

    Raises: SkippedSampleError for settings that PyTorch cannot run.
    """
    dtype = getattr(torch, trial.dtype)
    try:
        expected = optimizer_effects(info, inputs, dtype)
    except Exception as error:
        raise SkippedSampleError(f"PyTorch: {type(error).__name__}: {str(error)[:100]}") from None

    try:
        actual, externs = compiled_results(
            lambda compiled: optimizer_effects(info, inputs, dtype, compiled), trial.options
        )
    except Exception as error:
        return error_text(error), []

    def exact_results() -> list[torch.Tensor]:
        return optimizer_effects(info, inputs, torch.float64)

    externs = [x for x in externs if x != BREAK]
    if info.name in HALF_PRECISION:
        return difference(actual, expected, TOLERANCES["bfloat16"]), externs
    return compared(actual, expected, exact_results, trial), externs


def check(trial: Trial) -> Outcome | None:
    """Return the outcome of one module or optimizer; None if it does not take the dtype."""
    prepare_process()
    begin = time.time()
    if trial.mode == "steps":
        optimizer = optim_db[trial.position]
        name = optimizer.name
        samples: list[Any] = optimizer_samples(optimizer, trial)

        def check_sample(sample: Any) -> tuple[str, Sequence[str]]:
            return check_optimizer(optimizer, sample, trial)

    else:
        info = module_db[trial.position]
        if getattr(torch, trial.dtype) not in info.supported_dtypes("cpu"):
            return None
        name = info.name
        samples = module_samples(info, trial)

        def check_sample(sample: Any) -> tuple[str, Sequence[str]]:
            return check_module(sample, trial)

    outcome = outcome_of(
        samples, check_sample, name=name, dtype=trial.dtype, mode=trial.mode, seconds=0.0
    )
    return attrs.evolve(outcome, seconds=time.time() - begin)


def main() -> int:
    """Check the modules and optimizers that the command line names, and print the outcome."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    add_arguments(parser, samples=6)
    parser.add_argument("--modes", default="forward,backward,steps")
    own = parser.parse_args()
    trials = [
        Trial(k, dtype, mode, own.samples, {"target": own.target})
        for dtype in own.dtypes.split(",")
        for mode in own.modes.split(",")
        for k, info in enumerate(optim_db if mode == "steps" else module_db)
        if own.only in info.name
    ]
    return run_trials(check, trials, KNOWN_FAILURES, own)


if __name__ == "__main__":
    sys.exit(main())
