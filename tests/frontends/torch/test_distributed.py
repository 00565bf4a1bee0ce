"""Training by two processes, one of which is killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from threading import Timer
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from tests.frontends.torch.test_networks import ROOT, free_port  # noqa: E402  (after the skip)

WORKER = """
import sys
from datetime import timedelta
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from passkit.frontends.torch import passkit_backend

rank, port = int(sys.argv[1]), sys.argv[2]
dist.init_process_group(
    "gloo",
    init_method=f"tcp://127.0.0.1:{port}",
    rank=rank,
    world_size=2,
    timeout=timedelta(seconds=60),
)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
trained = torch.compile(
    DistributedDataParallel(model), backend=passkit_backend, options={"target": "interpret"}
)
for step in range(1000000):
    trained(torch.ones(6, 8)).square().mean().backward()
    if step == 2:
        print("training", flush=True)
"""
SECONDS = 120
"""The time in which both workers have to train, and the second one has to end after the first."""


def start_worker(rank: int, port: str) -> subprocess.Popen[str]:
    """Start a process that trains until it is killed."""
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, str(rank), port],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )


def test_a_worker_whose_peer_is_killed_ends_with_an_error() -> None:
    """The other process raises an error of the connection, and does not wait for ever."""
    port = str(free_port())
    with start_worker(0, port) as first, start_worker(1, port) as second:
        clocks = [Timer(SECONDS, worker.kill) for worker in (first, second)]
        try:
            for clock, worker in zip(clocks, (first, second), strict=True):
                clock.start()
                assert worker.stdout is not None
                assert worker.stdout.readline() == "training\n"
            first.kill()
            _, errors = second.communicate(timeout=SECONDS)
        finally:
            for clock, worker in zip(clocks, (first, second), strict=True):
                clock.cancel()
                worker.kill()
    # 1, or -SIGABRT where threads of the process group are still running at the end.
    assert second.returncode not in (0, -signal.SIGKILL), "it did not end by itself"
    assert re.search(r"Connection (closed|reset) by peer", errors), errors[-2000:]
