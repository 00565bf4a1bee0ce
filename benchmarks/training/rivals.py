"""Training programs in passkit, PyTorch and JAX, each written as its users write one.

Variables stay in memory of the library, and change there. Every library is imported where it is
used: it may be missing in the Python that runs this, such as that of TensorFlow's process.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from training import ProgramInputs, TrainingProgram
from training.entrants import StepImplementation

SETTINGS = {
    "passkit": "pk.compile(graph), target cpu, fusion stitch, numerics strict",
    "unfused": "passkit with fusion none",
    "eager": "autograd and torch.optim: SGD and Adam with fused=True, RMSprop with foreach=True, "
    "sparse rows by index_add_; recurrent networks by nn.LSTM, ragged ones packed",
    "compile": "torch.compile(fullgraph=True, dynamic=False) of the loss, and of optimizer.step; "
    "recurrent networks written out",
    "jax": "jax.jit of jax.value_and_grad and the optimizer, variables donated; recurrent networks "
    "written out",
    "scan": "as jax, recurrent networks by lax.scan",
}


OWN = ("passkit", "unfused")
"""Implementations that are not competitors."""


def passkit(
    program: TrainingProgram, drawn: ProgramInputs, on: str = "cpu", fusion: str = "stitch"
) -> StepImplementation:
    """Compile the step as one graph, for a target."""
    import passkit as pk
    from training.passkit_steps import training_step  # imports passkit

    exe = pk.compile(training_step(program, drawn).graph, target=on, fusion=fusion)
    return StepImplementation(lambda feeds: exe(feeds)[0], dict)


def pytorch(program: TrainingProgram, drawn: ProgramInputs, **options: Any) -> StepImplementation:
    """Build the step in PyTorch, with the options of `torch_steps.torch_step`.

    Raises:
        ImportError: PyTorch is not installed, or finds no CUDA device.
    """
    from training.torch_steps import torch_step  # imports torch

    return torch_step(program, drawn, **options)


def jax(
    program: TrainingProgram, drawn: ProgramInputs, **options: Any
) -> StepImplementation | None:
    """Build the step in JAX, with the options of `jax_steps.jax_step`, which may return None.

    Raises:
        ImportError: JAX is not installed, or finds no such device.
    """
    from training.jax_steps import jax_step  # imports jax

    return jax_step(program, drawn, **options)


RIVALS: dict[str, Callable[..., StepImplementation | None]] = {
    "passkit": passkit,
    "unfused": partial(passkit, fusion="none"),
    "eager": pytorch,
    "compile": partial(pytorch, compiled=True),
    "jax": jax,
    "scan": partial(jax, scan=True),
}
