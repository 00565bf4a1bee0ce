"""A fixed sample of 150 of PyTorch's OpInfos; `benchmarks/torch_operators.py` checks them all."""

from __future__ import annotations

import warnings
from typing import Any
from zlib import crc32

import pytest

torch: Any = pytest.importorskip("torch")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from benchmarks import torch_operators
    from benchmarks.torch_checks import known_failure

pytestmark = pytest.mark.filterwarnings("ignore")
COUNT = 150
DTYPES = ("float32", "bfloat16", "int64", "bool")
NAMES = [torch_operators.entry_name(info) for info in torch_operators.op_db]


def number(name: str) -> int:
    """Return a number that stays with a name, so that other entries do not change the sample."""
    return crc32(name.encode())


def dtypes_of(position: int) -> list[str]:
    """Return the dtypes of the sample that an entry takes; none for one that needs a GPU."""
    if NAMES[position].startswith("jiterator_"):
        return []
    supported = torch_operators.op_db[position].supported_dtypes("cpu")
    return [x for x in DTYPES if getattr(torch, x) in supported]


SAMPLE = sorted(filter(dtypes_of, range(len(NAMES))), key=lambda k: number(NAMES[k]))[:COUNT]


@pytest.mark.parametrize("position", SAMPLE, ids=[NAMES[k] for k in SAMPLE])
def test_entry_agrees_with_pytorch(position: int) -> None:
    """The results of an operator, and for floats the gradients, are those of PyTorch."""
    dtypes = dtypes_of(position)
    dtype = dtypes[number(NAMES[position]) // 8 % len(dtypes)]
    is_backward = dtype == "float32" and torch_operators.op_db[position].supports_autograd
    trial = torch_operators.Trial(
        position=position,
        dtype=dtype,
        samples=1,
        options={"target": "interpret"},
        mode="backward" if is_backward else "forward",
    )
    outcome = torch_operators.check(trial)
    assert outcome is not None
    if outcome.skipped:
        pytest.skip(outcome.skipped)
    assert not outcome.problem or known_failure(outcome, torch_operators.KNOWN_FAILURES)
