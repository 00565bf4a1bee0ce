"""Random graphs on an OpenCL device against `interpret`."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest

from tests.fuzzing import check_all, check_opencl, opencl_gpu_of, opencl_of
from tests.minimising import minimised
from tests.opencl import require_pyopencl
from tests.random_graphs import random_case

require_pyopencl()
COUNT = 20


@pytest.mark.slow
@pytest.mark.opencl
def test_random_graphs() -> None:
    """Graphs of every kind in groups of 1, 64 and 256: plain, strided, and with out=."""
    cases = [random_case(seed) for seed in range(COUNT)]

    failures, (exact, near, anything) = check_all(cases, opencl_of)

    assert not failures, "\n\n".join(str(minimised(f, 20, check_opencl)) for f in failures[:3])
    assert exact + near > 20 * anything
    assert Counter(opencl_of(c).block for c in cases).keys() == {1, 64, 256}


@pytest.mark.slow
@pytest.mark.opencl
def test_random_graphs_as_on_a_gpu() -> None:
    """Graphs of every kind, whose loop nests are scheduled as for a GPU."""
    cases = [random_case(seed) for seed in range(COUNT)]

    failures, (exact, near, anything) = check_all(cases, opencl_gpu_of)

    by = partial(check_opencl, target=opencl_gpu_of)
    assert not failures, "\n\n".join(str(minimised(f, 20, by)) for f in failures[:3])
    assert exact + near > 20 * anything
