"""Networks that other compilers find hard, and training by two processes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from passkit.frontends.torch import passkit_backend, report  # noqa: E402  (after the skip)

ROOT = Path(__file__).resolve().parents[3]
T: Any = torch.randn


def deep_chain(x: Any, y: Any) -> Any:
    """Return sums and products of each other, 40 deep."""
    for _ in range(40):
        x, y = (x + y) * 0.5, x * y * 0.5
    return x, y


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (deep_chain, [T(16, 16) * 0.1, T(16, 16) * 0.1]),
        (torch.nn.LSTM(8, 12, batch_first=True), [T(2, 5, 8)]),
        (torch.nn.GRU(8, 12, batch_first=True), [T(2, 5, 8)]),
        (lambda x: (x * 2 + 1).t().argmax(0), [T(16, 8)]),
        (lambda x: x[:, ::2].mean(0), [T(16, 8)]),
        (lambda x: torch.softmax(x, 0), [T(16, 8)]),
        (lambda x: torch.roll(x, (-1, -1), (1, 2)).unflatten(1, (2, 2)).sum(-1), [T(2, 4, 4, 3)]),
    ],
    ids=["deep chain", "LSTM", "GRU", "argmax", "strided mean", "outer softmax", "shifted windows"],
)
def test_hard_cases_equal_pytorch(function: Callable[..., Any], args: list[Any]) -> None:
    """Results equal PyTorch's, recurrent layers included."""
    torch._dynamo.reset()
    with torch.no_grad(), torch._dynamo.config.patch(allow_rnn=True):
        actual = torch.compile(function, backend=passkit_backend)(*args)
        torch.testing.assert_close(actual, function(*args), rtol=1e-4, atol=1e-5)


def test_a_softmax_over_an_outer_axis_is_one_kernel() -> None:
    """All of it runs in passkit, in one graph."""
    shown = report(lambda x: torch.softmax(x, 0), T(16, 8))
    assert (shown.graphs, shown.externs) == (1, ())


WORKER = """
import sys
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from passkit.frontends.torch import passkit_backend

rank, port = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
torch.manual_seed(0)
layers = [torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)]
model = torch.nn.Sequential(*layers)
x, y = torch.randn(12, 8), torch.randn(12, 1)
trained = torch.compile(DistributedDataParallel(model), backend=passkit_backend)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    loss = (trained(x[rank * 6 : rank * 6 + 6]) - y[rank * 6 : rank * 6 + 6]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.manual_seed(0)
layers = [torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)]
alone = torch.nn.Sequential(*layers)
optimizer = torch.optim.SGD(alone.parameters(), lr=0.1)
for _ in range(3):
    loss = (alone(x) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
for a, b in zip(model.parameters(), alone.parameters()):
    torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
print("equal")
dist.destroy_process_group()
"""


def free_port() -> int:
    """Return a port of this machine that nobody listens on."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def test_two_processes_train_as_one() -> None:
    """DistributedDataParallel with two processes has the weights of one with the whole batch."""
    port = str(free_port())
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(rank), port],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for rank in range(2)
    ]
    for worker in workers:
        output, errors = worker.communicate(timeout=300)
        assert (worker.returncode, output.strip()) == (0, "equal"), errors[-2000:]
