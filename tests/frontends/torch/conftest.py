"""Fixtures of the tests of the PyTorch frontend: PyTorch's cache is a folder of the test run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session", autouse=True)
def cache_of_pytorch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let PyTorch keep compiled graphs in a temporary folder, so that no run sees earlier ones."""
    name = "TORCHINDUCTOR_CACHE_DIR"
    before = os.environ.get(name)
    os.environ[name] = str(tmp_path_factory.mktemp("inductor"))
    yield
    if before is None:
        del os.environ[name]
    else:
        os.environ[name] = before


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Iterator[None]:
    """Forget what Dynamo compiled before and after each test, and seed PyTorch's generator."""
    torch: Any = pytest.importorskip("torch")
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()
