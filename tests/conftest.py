"""Fixtures of all tests: the session's cache folder, fixed seeds, and a record of raised errors."""

from __future__ import annotations

import gc
import os
import random
import shutil
import tempfile
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, nullcontext
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from passkit.passes import context
from tests import raised, workers
from tests.libraries import quickly
from tests.workers import SHARED, WORKER, Board


def own_cache() -> Path:
    """Give this run an empty kernel cache; return the folder of the run.

    A worker finds in the environment the folder of the run that started it: there all workers have
    their cache, so that no kernel is compiled twice. A run that a test or another program starts,
    with a folder to share in its environment, keeps the cache that it is given.
    """
    if WORKER not in os.environ and SHARED in os.environ:
        workers.share(workers.folder())
        return workers.folder().parent
    folder = Path(
        os.environ["PASSKIT_CACHE_DIR"]
        if WORKER in os.environ
        else tempfile.mkdtemp(prefix="passkit-tests-")
    )
    workers.share(folder / "shared")
    if WORKER in os.environ:
        (folder / "board").mkdir(exist_ok=True)
        (folder / "cache").mkdir(mode=0o700, exist_ok=True)
    os.environ["PASSKIT_CACHE_DIR"] = str(folder / "cache" if WORKER in os.environ else folder)
    return folder


IS_OUTER = WORKER not in os.environ and SHARED not in os.environ
"""Whether this run has a folder of its own, which it removes at its end."""
FOLDER = own_cache()  # now, as the conftest.py of a folder may import what is compiled
raised.record(pytest)
BOARD = pytest.StashKey[Board]()
ASIDE, LOOK = 100, 9000
RAN = count(1)
CHUNK = 128
"""The most consecutive tests that a worker gets at a time; towards the end there are fewer.

What the tests of a file share is computed by each worker that has some of them.
"""
ROOT = Path(__file__).resolve().parents[1]
AS_FOR_USERS = frozenset(
    {
        "cli",
        "dialects",
        "library",
        "program",
        "runtime",
        "test_docs.py",
        "test_examples.py",
        "test_guides.py",
        "test_pace.py",
        "test_readme.py",
        "tuning",
    }
)
"""Folders and files whose tests compile kernels with optimization: of printers, of native code, of
whole programs and of what takes time. Of the others only the results of kernels count."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add options to write golden files again, and to compile every dtype."""
    parser.addoption(
        "--update-golden", action="store_true", help="write golden files and the README's blocks"
    )
    parser.addoption(
        "--every-dtype", action="store_true", help="compile every case of an operator, not a few"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Prepare the exchange between workers, and remove the folder of the run at its end.

    Python keeps its compiled modules: else each process that a test starts would compile them anew,
    for a third of a second.
    """
    gc.disable()  # to `pytest_collection_finish`: what is collected stays
    if WORKER in os.environ:
        config.stash[BOARD] = Board(raised.MATCHED, FOLDER / "board")
        return
    config.stash[BOARD] = Board(raised.MATCHED, None)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if getattr(config.option, "maxschedchunk", 0) is None:
        config.option.maxschedchunk = CHUNK
    if IS_OUTER:
        config.add_cleanup(lambda: shutil.rmtree(FOLDER, ignore_errors=True))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the slow tests first, so that no worker waits for one at the end of a whole run.

    The test that asks what the others raised comes last, and only after all of them.
    """
    closing = [i for i in items if i.get_closest_marker("closing")]
    others = [i for i in items if not i.get_closest_marker("closing")]
    others.sort(key=lambda i: i.get_closest_marker("slow") is None)
    whole = not config.getoption("keyword") and {Path(a).resolve() for a in config.args} <= {
        ROOT,
        ROOT / "tests",
    }
    if closing and not whole:
        config.hook.pytest_deselected(items=closing)
    items[:] = others + closing if whole else others


def pytest_collection_finish() -> None:
    """Exempt all objects that exist now from garbage collection, as tests stay to the end."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(1_000_000, 20, 20)
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many tests were skipped because this machine has no NVIDIA GPU."""
    reasons = [
        str(r.longrepr[2]).removeprefix("Skipped: ")
        for r in terminalreporter.stats.get("skipped", ())
        if isinstance(r.longrepr, tuple)
    ]
    skipped = [r for r in reasons if r.startswith("needs an NVIDIA GPU")]
    if skipped:
        why = sorted(set(skipped))
        line = f"{len(skipped)} tests need an NVIDIA GPU, which this machine has not"
        terminalreporter.write_line("\n".join([line, *(f"  {w}" for w in why)]))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Post the raise statements that this worker has matched, for the other workers.

    The test compiles kernels without optimization unless it is in `AS_FOR_USERS`, or marked as
    one whose kernels run longer than that saves.

    Objects that tests leave behind are exempted from garbage collection after every `ASIDE` tests,
    because tests that collect would traverse them each time, which took a tenth of an entire run.
    After every `LOOK` tests all objects are collected, which takes ten seconds and frees cycles of
    arrays; each of two workers runs fewer tests.
    """
    folder = Path(item.path).relative_to(ROOT / "tests").parts[0]
    is_optimized = folder in AS_FOR_USERS or item.get_closest_marker("optimized") is not None
    with nullcontext() if is_optimized else quick(item.config):
        done = yield
    item.config.stash[BOARD].post()
    number = next(RAN)
    if number % LOOK == 0:
        gc.unfreeze()
        gc.collect()
    if number % ASIDE == 0:
        gc.freeze()
    return done


@pytest.fixture
def matched(request: pytest.FixtureRequest) -> set[tuple[str, int]]:
    """Return the raise statements that the tests before this one have matched, in all workers."""
    others = [i for i in request.session.items if not i.get_closest_marker("closing")]
    return request.config.stash[BOARD].gathered(len(others))


@pytest.fixture(autouse=True)
def _no_context_is_left() -> Iterator[None]:
    """Fail a test that leaves a PassContext in force, which would change the tests behind it."""
    yield
    left = innermost = context.current()
    while innermost is not None:
        innermost.__exit__()
        innermost = context.current()
    assert left is None, "the test leaves a PassContext in force"


@pytest.fixture(autouse=True)
def _seeds(request: pytest.FixtureRequest) -> None:
    """Seed the global generators of random numbers by the name of the test."""
    seed = zlib.crc32(request.node.nodeid.encode())
    random.seed(seed)
    np.random.seed(seed)


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Return a generator of random numbers that is seeded by the name of the test."""
    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))


@contextmanager
def quick(config: pytest.Config) -> Iterator[None]:
    """Compile kernels without optimization inside the ``with`` block, in a quarter of the time.

    For tests of many kernels. With --every-dtype kernels are compiled as for users.
    """
    with nullcontext() if config.getoption("--every-dtype") else quickly():
        yield


@pytest.fixture
def quick_kernels(request: pytest.FixtureRequest) -> Iterator[None]:
    """Compile the kernels of a test without optimization."""
    with quick(request.config):
        yield


@pytest.fixture(scope="module")
def quick_module(request: pytest.FixtureRequest) -> Iterator[None]:
    """Compile the kernels of all tests in a file without optimization."""
    with quick(request.config):
        yield


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Return a check that a file has a text; with --update-golden the file is written first."""

    def check(path: Path, text: str) -> None:
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert path.read_text() == text

    return check


@pytest.fixture
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Set an empty cache folder for one test, and yield its path."""
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("PASSKIT_CACHE_DIR", str(folder))
    yield folder
