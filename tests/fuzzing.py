"""Check random graphs: compiled results equal interpreted ones, however the program is called.

Many graphs are planned first and their kernels compiled in one go, so that one compiler process
serves dozens of them.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache, partial
from typing import Any
from unittest.mock import patch

import numpy as np
from attrs import evolve, frozen

import passkit as pk
from passkit.errors import PasskitError
from passkit.graph.graph import Graph
from passkit.program import planner
from passkit.program.executable import Executable
from passkit.program.planning import DEFAULT_PIPELINE
from passkit.runtime.device.runtimes import runtime_of
from passkit.runtime.feeds import bind_sizes
from passkit.runtime.program import LaunchStep
from passkit.target import Target, cpu
from passkit.target import target_of as named
from tests.error_bounds import Value, bounded, mismatch, openness
from tests.fences import fenced
from tests.raised import ROOT
from tests.random_graphs import Case
from tests.teams import team_of
from tests.together import together

OPENCL = named("opencl")
Targets = Callable[[Case], Target]
PLAN = DEFAULT_PIPELINE[: DEFAULT_PIPELINE.index("CodeGen") + 1]


@frozen
class Failure:
    """A case with wrong results, and in which way they are wrong."""

    case: Case
    what: str

    def __str__(self) -> str:
        return f"{self.case}\n{self.what}"


class UnequalError(Exception):
    """A case whose results are wrong; the message says where they differ."""


def target_of(case: Case) -> Target:
    """The CPU, with tiles so small that small arrays have several, and threads share them.

    Half of those cases write every result past the caches, as large ones are.
    """
    if case.tile == cpu().tile:
        return cpu()
    past = {"stream_bytes": 0, "stream_apart": 0} if case.seed % 2 else {}
    return evolve(cpu(), tile=case.tile, parallel=0.0, **past)


def blocks_of(case: Case) -> Target:
    """The same target for the block interpreter; a third of the cases plan for single lanes."""
    lanes = 1 if case.seed % 3 == 0 else cpu().lanes
    return evolve(target_of(case), name="blocks", lanes=lanes)


def opencl_of(case: Case) -> Target:
    """An OpenCL device, by small tiles and work-groups of 1, 64 or 256 items, with vectors or not.

    One item with vectors is what a CPU has; several with them find what lanes do not agree upon.
    """
    block, access, simd = ((1, 32, True), (64, 16, False), (256, 16, False), (64, 16, True))[
        case.seed % 4
    ]
    return evolve(OPENCL, tile=min(case.tile, OPENCL.tile), block=block, access=access, simd=simd)


def opencl_gpu_of(case: Case) -> Target:
    """An OpenCL device for which loop nests are scheduled as for a GPU, whatever it is."""
    return evolve(OPENCL, tile=min(case.tile, OPENCL.tile), nests=True)


OF_OPENCL = (opencl_of, opencl_gpu_of)
"""The targets of OpenCL devices."""


def options(case: Case, target: Targets = target_of) -> dict[str, Any]:
    """Return the options that a case is compiled with."""
    return {"target": target(case), "fusion": case.fusion}


def check_all(
    cases: Iterable[Case], target: Targets = target_of
) -> tuple[list[Failure], np.ndarray]:
    """Compile cases together and run them.

    Returns: The failures, and how many elements were compared exactly, within bounds, or not.
    """
    cases, failures, compared = list(cases), [], np.zeros(3, np.int64)
    plans: dict[int, Graph] = {}
    for case in cases:
        try:
            own = options(case, target)
            plan = pk.ApplyPasses(case.graph, PLAN, **{**own, "target": limited(own["target"])})
            _must_feed_alike(plan, case.graph)
            plans[id(case.graph)] = plan
        except Exception as error:  # noqa: BLE001, RUF100
            failures.append(Failure(case, said(error)))
    together(plans.values())
    failed = {f.case.seed for f in failures}
    by = partial(check_opencl, target=target) if target in OF_OPENCL else check
    with continued(plans):
        for case in cases:
            if case.seed not in failed and (what := by(case, compared)) is not None:
                failures.append(Failure(case, what))
    return failures, compared


def limited(target: Target) -> Target:
    """Return a target with the limits of its device, with which programs for it are planned."""
    return runtime_of(target).adapt_target(target) if target.device else target


def _must_feed_alike(plan: Graph, graph: Graph) -> None:
    """Check that positional arrays mean the same inputs for a plan as for its graph."""
    left = [plan.names[n] for n in plan.inputs]
    expected = [name for n in graph.inputs if (name := graph.names[n]) in left]
    if left != expected:
        raise UnequalError(f"the plan is fed {left}, not {expected}")


@contextmanager
def continued(plans: Mapping[int, Graph]) -> Iterator[None]:
    """Let compilations inside continue with the plan of a graph, given by its id."""
    usual = planner.plan_graph

    def planned(graph: Graph) -> Graph:
        return usual(plans.get(id(graph), graph))

    with patch.object(planner, "plan_graph", planned):
        yield


def check(case: Case, compared: Any = None) -> str | None:
    """Return how the results of a compiled case are wrong, or None."""
    try:
        _check(case, compared)
    except UnequalError as mismatched:
        return str(mismatched)
    except Exception as error:  # noqa: BLE001, RUF100
        return said(error)
    return None


def check_blocks(case: Case, compared: Any = None) -> str | None:
    """Return how a case run block by block is wrong, or None; races of its kernels count, too."""
    return _elsewhere(case, blocks_of, compared)


def check_opencl(case: Case, compared: Any = None, target: Targets = opencl_of) -> str | None:
    """Return what is wrong with a case on an OpenCL device, or None.

    A warning is wrong too, but for those of operators that have no kernel there, such as scans.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", pk.InterpretedWarning)
        return _elsewhere(case, target, compared)


def _elsewhere(case: Case, target: Targets, compared: Any) -> str | None:
    try:
        exe = pk.compile(case.graph, **options(case, target))
        for where, feeds, results, before in runs(exe, case, compared):
            if target in OF_OPENCL:
                _must_be_opencls(exe)
                for how, again in _given(exe, feeds, results, before):
                    _same(f"{where}, {how}", again, results)
    except UnequalError as mismatched:
        return str(mismatched)
    except Exception as error:  # noqa: BLE001, RUF100
        return said(error)
    return None


def _must_be_opencls(exe: Executable) -> None:
    """Check that OpenCL launches every kernel."""
    launches = [s for s in exe.steps if isinstance(s, LaunchStep)]
    if len(launches) != len(exe.kernels) or any(s.kernel.dialect != "opencl" for s in launches):
        raise UnequalError(f"{len(launches)} of {len(exe.kernels)} kernels are launched by OpenCL")


def said(error: BaseException) -> str:
    """Return an error and where it was raised, relative to the checkout."""
    import traceback

    last = traceback.extract_tb(error.__traceback__)[-1]
    file = os.path.relpath(last.filename, ROOT)
    return f"{type(error).__name__}: {error} ({file}:{last.lineno})"


def _check(case: Case, compared: Any) -> None:
    exe = pk.compile(case.graph, **options(case))
    for where, feeds, results, before in runs(exe, case, compared):
        after = {n: v.copy() for n, v in exe.state.arrays.items()}
        for how, again in _variants(exe, feeds, results, before):
            _same(f"{where}, {how}", again, results)
            _same(f"{where}, {how}: state", list(exe.state.arrays.values()), list(after.values()))


def runs(
    exe: Any, case: Case, compared: Any
) -> Iterator[tuple[str, dict[str, Any], list[Any], dict[str, Any]]]:
    """Yield for each run with right results its name, feeds, results, and the state before it."""
    for number, (feeds, meant) in enumerate(zip(case.feeds, meaning(case), strict=True)):
        where = f"run {number}"
        before = {n: v.copy() for n, v in exe.state.arrays.items()}
        if isinstance(meant, PasskitError):
            _must_refuse(exe, feeds, where, meant)
            continue
        results = _run(exe, feeds, where)
        _compare(where, results, meant, compared)
        _compare_state(exe, meant, where)
        yield where, feeds, results, before


@frozen
class Meaning:
    """The interpreter's results of one run, bounds of their errors, and the states after it."""

    results: list[Any]
    values: list[Value]
    state: dict[str, Any]
    bounds: dict[str, Value]


@lru_cache(maxsize=128)  # a batch, which is checked on one target after the other
def meaning(case: Case) -> tuple[Meaning | PasskitError, ...]:
    """Interpret each run of a case; return its results, or the error that refuses it."""
    pure = pk.ApplyPasses(case.graph, ["Functionalize"])
    state: dict[str, Any] = {}
    bounds = {n.name: Value(n.params["initial"]) for n in case.graph.states}
    meanings: list[Meaning | PasskitError] = []
    for feeds in case.feeds:
        try:
            results = pk.interpret(case.graph, feeds, state)
        except PasskitError as error:
            meanings.append(error)
            continue
        sizes = bind_sizes(
            (n.name, n.entries[0].shape, feeds[n.name].shape) for n in case.graph.inputs
        )
        values = bounded(pure, feeds, sizes, bounds)
        after = {name: array.copy() for name, array in state.items()}
        meanings.append(Meaning(results, values, after, dict(bounds)))
    return tuple(meanings)


def _must_refuse(exe: Executable, feeds: Any, where: str, error: PasskitError) -> None:
    try:
        exe(feeds)
    except PasskitError:
        return
    raise UnequalError(f"{where}: interpret refuses, and the executable does not: {error}")


def _run(exe: Executable, feeds: Any, where: str, **more: Any) -> list[Any]:
    kept = {k: v.copy() for k, v in feeds.items()}
    results = exe(feeds, **more)
    for name, array in feeds.items():
        if array.tobytes() != kept[name].tobytes():
            raise UnequalError(f"{where}: input '{name}' was written")
    return results


def _compare(where: str, results: Sequence[Any], meant: Meaning, compared: Any) -> None:
    for k, (a, b, value) in enumerate(zip(results, meant.results, meant.values, strict=True)):
        own = mismatch(value.array, Value(b))
        if own is not None:
            raise UnequalError(f"{where}: bounds of output {k} are not about interpret's: {own}")
        what = mismatch(a, value)
        if what is not None:
            raise UnequalError(f"{where}: output {k} {what}")
        if compared is not None:
            compared += openness(value)


def _compare_state(exe: Executable, meant: Meaning, where: str) -> None:
    for name, array in meant.state.items():
        what = mismatch(exe.state[name], evolve(meant.bounds[name], array=array))
        if what is not None:
            raise UnequalError(f"{where}: state '{name}' {what}")


def _same(where: str, results: Sequence[Any], expected: Sequence[Any]) -> None:
    for k, (a, b) in enumerate(zip(results, expected, strict=True)):
        what = mismatch(a, Value(b))  # exactly; one NaN is as good as another
        if what is not None:
            raise UnequalError(f"{where}: output {k} {what}")


def _variants(
    exe: Executable, feeds: Any, results: list[Any], before: dict[str, Any]
) -> Iterable[tuple[str, list[Any]]]:
    """Repeat a run on 1, 2 and 4 threads, on guarded and fenced arrays, from the same state."""
    for number in (1, 2, 4):
        with team_of(number):
            done = _again(exe, f"{number} thread(s)", feeds, before)
        yield done
    yield from _given(exe, feeds, results, before)
    yield _again(exe, "guarded inputs", {k: _poisoned(v) for k, v in feeds.items()}, before)
    for end in (True, False):
        with ExitStack() as stack:
            fences = {k: stack.enter_context(fenced(v, end)) for k, v in feeds.items()}
            yield _again(exe, "fenced inputs", fences, before)


def _again(
    exe: Executable, how: str, given: Any, before: dict[str, Any], **more: Any
) -> tuple[str, list[Any]]:
    """Run once more from the state before."""
    for name, array in before.items():
        exe.state[name] = array
    return how, _run(exe, given, how, **more)


def _given(
    exe: Executable, feeds: Any, results: list[Any], before: dict[str, Any]
) -> Iterator[tuple[str, list[Any]]]:
    """Repeat a run on strided inputs, and into arrays of the caller."""
    yield _again(exe, "strided inputs", {k: _strided(v) for k, v in feeds.items()}, before)
    guarded = [_guarded(a) for a in results]
    how, again = _again(exe, "out=", feeds, before, out=[inner for inner, _ in guarded])
    for k, (inner, whole) in enumerate(guarded):
        if again[k] is not inner:
            raise UnequalError(f"out={k} is not what is returned")
        size = inner.nbytes
        if (whole[:64] != 0xA5).any() or (whole[64 + size :] != 0xA5).any():
            raise UnequalError(f"output {k} is written past its ends")
    yield how, again


def _strided(array: Any) -> Any:
    """The same elements, not contiguous in memory."""
    if array.ndim == 0 or array.size == 0:
        return array
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
    wide[..., ::2] = array
    return wide[..., ::2] if array.size % 2 else np.asfortranarray(array)


def _guarded(like: Any) -> tuple[Any, Any]:
    """An array for a result, and the bytes around it."""
    whole = np.full(like.nbytes + 128, 0xA5, np.uint8)
    return whole[64 : 64 + like.nbytes].view(like.dtype).reshape(like.shape), whole


def _poisoned(array: Any) -> Any:
    """Return the array between poisoned bytes, which change results that depend on them."""
    if array.dtype == np.bool_:
        return array
    whole = np.full(array.nbytes + 256, 0x7F, np.uint8)
    inner = whole[128 : 128 + array.nbytes].view(array.dtype).reshape(array.shape)
    inner[...] = array
    return inner
