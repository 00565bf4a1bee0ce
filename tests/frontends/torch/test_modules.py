"""Modules and optimizers of PyTorch's own tests; `benchmarks/torch_modules.py` checks them all."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from benchmarks import torch_modules

from passkit.frontends.torch import passkit_backend  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
MODULES = (
    "nn.BatchNorm2d",
    "nn.Conv2d",
    "nn.ConvTranspose1d",
    "nn.CrossEntropyLoss",
    "nn.Embedding",
    "nn.GRUCell",
    "nn.GroupNorm",
    "nn.LSTM",
    "nn.LazyConv3d",
    "nn.MaxPool2d",
    "nn.MultiheadAttention",
    "nn.TransformerEncoderLayer",
)
"""The modules of the sample."""
OPTIMIZERS = ("Adafactor", "Adam", "Adagrad", "LBFGS", "Muon", "RMSprop", "SGD", "SparseAdam")
"""The optimizers of the sample."""


def problem(database: Any, name: str, mode: str) -> str:
    """Return how the samples of an entry differ from PyTorch, "" if they do not."""
    names = [info.name for info in database]
    trial = torch_modules.Trial(
        position=names.index(name),
        dtype="float32",
        mode=mode,
        samples=2,
        options={"target": "interpret"},
    )
    outcome = torch_modules.check(trial)
    assert outcome is not None
    assert outcome.samples > 0
    return outcome.problem


@pytest.mark.parametrize("name", MODULES)
def test_a_module_and_its_gradients_agree_with_pytorch(name: str) -> None:
    """Results, gradients and buffers of a module are those of PyTorch."""
    assert problem(torch_modules.module_db, name, "backward") == ""


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_of_an_optimizer_agree_with_pytorch(name: str) -> None:
    """Parameters and state after three steps are those of PyTorch."""
    assert problem(torch_modules.optim_db, name, "steps") == ""


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64"])
def test_a_product_is_added_with_one_operator(dtype: str) -> None:
    """Dynamo writes ``addcmul_`` with a factor as prims.fma, which passkit has."""
    x, y, z = (torch.randint(-5, 6, (3, 4)).to(getattr(torch, dtype)) for _ in range(3))

    def function(x: Any, y: Any, z: Any) -> Any:
        return x.addcmul_(y, z, value=2)

    options = {"target": "interpret", "fallback": "error"}
    torch._dynamo.reset()
    compiled = torch.compile(function, backend=passkit_backend, options=options)
    expected = function(x.clone(), y, z)
    assert torch.equal(compiled(x, y, z), expected)
    assert torch.equal(x, expected)
