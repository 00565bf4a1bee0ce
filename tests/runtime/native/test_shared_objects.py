"""Shared objects: loaded while a program uses them, unloaded when the last one is gone."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import passkit as pk
from tests.libraries import quickly
from tests.runtime.native.sample import (
    build,
    build_counts,
    forget,
    keeping_unused,
    launcher_path,
    program,
    text,
)

X = np.arange(12, dtype=np.float32)
MAX_UNUSED = 2


@pytest.fixture(autouse=True)
def fresh(fresh_cache: Path) -> Iterator[None]:
    """An empty cache, a process that remembers no kernel, and few shared objects kept."""
    with keeping_unused(MAX_UNUSED), quickly():
        gc.collect()
        yield


def loaded(folder: Path) -> set[str]:
    """The shared objects with kernels of a cache that are mapped into this process."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    mapped = {line.split()[-1] for line in lines if str(folder / "libraries") in line}
    return mapped - {launcher_path()}


def times(factor: float) -> pk.Executable:
    """A program of its own kernel."""
    x = pk.var("x", (12,), "float32")
    return pk.compile(pk.Graph([pk.ops.mul(x, pk.constant(np.float32(factor)))]))


def test_programs_that_are_gone_leave_no_machine_code(fresh_cache: Path) -> None:
    """A service that makes graphs keeps a bounded number of shared objects, without collecting."""
    most = 0
    for k in range(3 * MAX_UNUSED + 2):
        assert np.array_equal(times(k + 1.5)(x=X)[0], X * (k + 1.5))
        most = max(most, len(loaded(fresh_cache)))
    gc.collect()

    assert MAX_UNUSED < most <= 2 * MAX_UNUSED
    assert len(loaded(fresh_cache)) == MAX_UNUSED


def test_programs_in_use_stay_loaded(fresh_cache: Path) -> None:
    """They run however many others came and went, also through their methods alone."""
    first, positional = times(0.5), times(0.25).run_positional
    for k in range(2 * MAX_UNUSED):
        times(k + 1.5)
    gc.collect()

    assert len(loaded(fresh_cache)) == MAX_UNUSED + 2
    assert np.array_equal(first(x=X)[0], X / 2) and np.array_equal(positional(X)[0], X / 4)


def test_a_kernel_that_was_unloaded_is_loaded_again(fresh_cache: Path) -> None:
    """A graph that comes back is found in the cache; one that was used lately is still loaded."""
    kernel = text("back", "    *(int64_t *)buf[0] = 1;")
    build([kernel])
    before = build_counts()
    build([kernel])
    forget()
    gc.collect()
    assert not loaded(fresh_cache)

    build([kernel])

    changes = {k: build_counts()[k] - before[k] for k in ("compiled", "reused", "loaded")}
    assert changes == {"compiled": 0, "reused": 1, "loaded": 1}


SLOW = """    int64_t *mark = (int64_t *)buf[0];
    __atomic_store_n(mark, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(mark, __ATOMIC_SEQ_CST) == 1) {}
    __atomic_store_n(mark, 3, __ATOMIC_SEQ_CST);"""


def spinning(mark: Any) -> threading.Thread:
    """A thread in a program that sets the number 1, waits until it is another, and sets 3.

    Nobody else holds the program.
    """
    address = build([text("slow", SLOW)])["slow"]
    steps = [("launch", address, 1, False, [("address", mark.ctypes.data, mark)], ())]
    programs = [program(steps, [], seconds=1.0)]  # long enough to release the GIL
    thread = threading.Thread(target=lambda: programs.pop()())
    thread.start()
    while thread.is_alive() and not mark[0]:
        pass
    return thread


def test_a_running_call_keeps_its_code(fresh_cache: Path) -> None:
    """Code is not unloaded under a call, though its program is dropped meanwhile."""
    mark = np.zeros(1, np.int64)
    thread = spinning(mark)
    forget()
    gc.collect()

    assert len(loaded(fresh_cache)) == 1
    mark[0] = 2
    thread.join(60)
    assert mark[0] == 3
    gc.collect()
    assert not loaded(fresh_cache)


class LastWill:
    """An object in a cycle with a program, which it runs when it is collected."""

    results: ClassVar[list[Any]] = []

    def __init__(self, program: pk.Executable) -> None:
        self.program, self.self = program, self

    def __del__(self) -> None:
        self.results.append(self.program(x=X)[0])


def test_finalizers_may_run_programs_that_are_garbage(fresh_cache: Path) -> None:
    """Code is unloaded after all finalizers of a cycle of garbage."""
    LastWill(times(3))
    forget()

    gc.collect()
    gc.collect()

    assert np.array_equal(LastWill.results.pop(), X * 3)
    assert not loaded(fresh_cache)


def test_a_forked_process_unloads_its_own(fresh_cache: Path) -> None:
    """A shared object that a child unloads stays loaded in its parent."""
    run = times(5)
    child = os.fork()
    if child == 0:
        forget()
        del run
        gc.collect()
        os._exit(len(loaded(fresh_cache)))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    assert len(loaded(fresh_cache)) == 1
    assert np.array_equal(run(x=X)[0], X * 5)
