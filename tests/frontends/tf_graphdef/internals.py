"""Adapters to functions inside the importer and exporter that tests need.

Checkpoints are opened without a model, programs hold operators that tinyflow has no function for,
and models are refused at a size that a test can write.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import passkit as pk
from passkit.frontends.tf_graphdef.checkpoint_bundle import CheckpointBundle
from passkit.frontends.tf_graphdef.export import graph_exporter
from passkit.frontends.tf_graphdef.proto import budget_for
from passkit.frontends.tinyflow.tensors import as_tensor


def open_checkpoint(prefix: str | Path, nbytes: int = 10_000) -> Any:
    """Open the checkpoint ``PREFIX.index``, whose ``keys``, ``array`` and ``string`` tests read.

    Args:
        prefix: The path without ``.index``.
        nbytes: The size of the model file, which bounds the memory that reading takes.
    """
    return CheckpointBundle(Path(prefix), budget_for(nbytes, None))


def tensor_of(entry: pk.Entry, name: str) -> Any:
    """Return a tensor of tinyflow's default graph that an operator of passkit computes."""
    return as_tensor(entry, name)


@contextmanager
def largest_model(nbytes: int) -> Iterator[None]:
    """Refuse models of more than ``nbytes`` bytes when they are saved, instead of 2 GiB."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph_exporter, "_LARGEST", nbytes)
        yield
