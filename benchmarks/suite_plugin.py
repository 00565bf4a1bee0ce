"""A pytest plugin for the test suites of other projects: select one array library, write outcomes.

It is loaded by ``-p suite_plugin``; `suites.py` sets its environment:

- ``SUITE_NAME``: the package that is tested
- ``SUITE_BACKEND``: the id of the array library, such as ``passkit.xp``
- ``SUITE_REPORT``: the JSON file that gets the outcomes by test, with the message of a failure
- ``SUITE_SECONDS``: a test that takes longer fails
- ``SUITE_EXPLORATIONS``: the most plans that passkit.xp makes; empty for no limit
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

OURS = "passkit.xp"
"""The id of the backend that suites do not know."""

_outcomes: dict[str, dict[str, Any]] = {}
_skipped_by_marks: set[str] = set()
"""Tests whose marks exclude the library: those for NumPy only, or that name the library."""


def _add_to_scipy() -> None:
    """Make SciPy's fixture ``xp`` yield the selected backend only; SciPy's conftest is imported."""
    conftest: Any = importlib.import_module("scipy.conftest")
    ours = importlib.import_module(OURS)
    conftest.xp_known_backends |= {OURS, ours.__name__}  # marks are compared with the latter
    backend = os.environ["SUITE_BACKEND"]
    parameters = [
        *conftest.xp_available_backends,
        pytest.param(
            ours,
            id=OURS,
            marks=pytest.mark.array_api_backends,
        ),
    ]
    selected = tuple(p for p in parameters if p.id == backend)
    if not selected:
        names = ", ".join(str(p.id) for p in parameters)
        raise pytest.UsageError(f"SciPy has no backend {backend!r}; it has {names}")
    # The marker of a fixture is frozen, and has its parameters since the import.
    object.__setattr__(conftest.xp._fixture_function_marker, "params", selected)
    obey_marks = conftest.skip_or_xfail_xp_backends

    def noting(request: pytest.FixtureRequest, skip_or_xfail: str) -> None:
        try:
            obey_marks(request, skip_or_xfail)
        except (pytest.skip.Exception, pytest.xfail.Exception):
            _skipped_by_marks.add(request.node.nodeid)
            raise

    conftest.skip_or_xfail_xp_backends = noting


def _select_for_sklearn() -> None:
    """Make scikit-learn parametrize its tests with the selected backend only, in two dtypes."""
    arrays: Any = importlib.import_module("sklearn.utils._array_api")
    backend = os.environ["SUITE_BACKEND"]
    device = None if backend == "jax.numpy" else "cpu"  # JAX has devices that are no texts

    def combinations(include_numpy_namespaces: bool = True) -> Iterator[tuple[str, Any, str]]:
        del include_numpy_namespaces
        for dtype in ("float64", "float32"):
            yield backend, device, dtype

    def permutations() -> Iterator[tuple[Any, Any, str]]:
        selected = arrays.NamespaceAndDevice(backend, device)
        yield selected, arrays.NamespaceAndDevice("numpy", None), f"{backend} to numpy"
        for other, place in (("numpy", None), ("array_api_strict", "device1")):
            yield arrays.NamespaceAndDevice(other, place), selected, f"{other} to {backend}"

    arrays.yield_namespace_device_dtype_combinations = combinations
    arrays.yield_mixed_namespace_input_permutations = permutations
    arrays.yield_namespaces = lambda include_numpy_namespaces=True: iter([backend])
    if backend == "jax.numpy":
        importlib.import_module("jax").config.update("jax_enable_x64", True)


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give tests of scikit-learn that list libraries the selected one only."""
    if os.environ["SUITE_NAME"] != "sklearn":
        return
    markers = metafunc.definition.own_markers
    for place, mark in enumerate(markers):
        if mark.name == "parametrize" and mark.args[0] == "library":
            selected = pytest.mark.parametrize("library", [os.environ["SUITE_BACKEND"]])
            markers[place] = selected.mark


def pytest_configure(config: pytest.Config) -> None:
    """Select the array library in the suite that ``SUITE_NAME`` names."""
    del config
    select = {"scipy": _add_to_scipy, "sklearn": _select_for_sklearn}
    select[os.environ["SUITE_NAME"]]()
    # SciPy and scikit-learn write to views in places.
    importlib.import_module(OURS).config(aliasing=True)
    if limit := os.environ.get("SUITE_EXPLORATIONS"):
        importlib.import_module(OURS).config(max_explorations=int(limit))


def _too_late(number: int, frame: Any) -> None:
    """Fail the running test."""
    raise TimeoutError(f"the test takes longer than {os.environ['SUITE_SECONDS']} seconds")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests for lazy libraries, whose arrays have no values; they skip others by name."""
    if os.environ["SUITE_BACKEND"] != OURS:
        return
    for item in items:
        for mark in item.iter_markers("skip_xp_backends"):
            if "torch" in mark.args and mark.kwargs.get("reason") == "lazy backends only":
                item.add_marker(pytest.mark.skip(reason="lazy backends only"))
                _skipped_by_marks.add(item.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Limit the time of a test."""
    del item
    previous = signal.signal(signal.SIGALRM, _too_late)
    signal.alarm(int(os.environ.get("SUITE_SECONDS", "300")))
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note the outcome of a phase of a test; the worst of its phases counts."""
    entry = _outcomes.setdefault(report.nodeid, {"outcome": "passed", "message": ""})
    if report.failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        message = crash.message if crash is not None else str(report.longrepr)[-300:]
        place = f"{crash.path}:{crash.lineno}" if crash is not None else ""
        entry.update(outcome="failed", message=message[:300], place=place)
    elif report.skipped and entry["outcome"] == "passed":
        is_expected_failure = hasattr(report, "wasxfail")
        entry["outcome"] = "xfailed" if is_expected_failure else "skipped"
        entry["message"] = str(report.longrepr)[-200:]
        entry["by_mark"] = report.nodeid in _skipped_by_marks


def pytest_runtest_logfinish(nodeid: str) -> None:
    """Append the outcome of a test to a file beside the report, for those who wait."""
    with Path(os.environ["SUITE_REPORT"]).with_suffix(".jsonl").open("a") as file:
        file.write(json.dumps({"test": nodeid, **_outcomes.get(nodeid, {})}) + "\n")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the outcomes, and what the streams of passkit.xp counted."""
    del session
    counts: Any = {}
    if OURS in sys.modules:
        counts = sys.modules[OURS].stats()
    report = {"outcomes": _outcomes, "stats": counts}
    Path(os.environ["SUITE_REPORT"]).write_text(json.dumps(report, default=str))
