"""Measurements by the workers of a Dask cluster."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest

import passkit as pk
from passkit.errors import MissingDependencyError, SettingError
from passkit.tuning import dask
from passkit.tuning.workers import DeadError
from tests.command import json_of, raise_error_of

MODEL = "x: f32[n, 40]; return abs(x), reduce_max(x, axis=0)"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Return a cluster of two worker processes on this machine."""
    distributed: Any = pytest.importorskip("distributed")
    with local_cluster(distributed, 2) as cluster:
        yield cluster


def local_cluster(distributed: Any, count: int) -> Any:
    """Start a cluster of worker processes with a thread each."""
    return distributed.LocalCluster(
        n_workers=count, threads_per_worker=1, dashboard_address="127.0.0.1:0"
    )


def model_in(folder: Path) -> Path:
    """Write the model into a folder, and return its path."""
    path = folder / "model.txt"
    path.write_text(MODEL)
    return path


def connect(address: str, **options: Any) -> None:
    """Connect to a cluster and disconnect."""
    with dask.dask_executor(address, **options):
        pass


@pytest.mark.slow
def test_workers_of_a_cluster_measure(cluster: Any, tmp_path: Path, fresh_cache: Path) -> None:
    """`passkit tune --dask` has the cluster measure, and stores the results here."""
    options = (model_in(tmp_path), "--shape", "x=6,40", "--budget", "2")
    first = json_of("tune", *options, "--dask", cluster.scheduler_address)
    second = json_of("tune", *options)
    assert first["measured"] >= 4 and first["remarks"] == []
    assert all(g["seconds"] > 0 and g["faults"] == {} for g in first["groups"])
    assert second["measured"] == 0


@pytest.mark.slow
def test_an_executor_of_a_cluster(cluster: Any, fresh_cache: Path) -> None:
    """`pk.tune` takes the executor, which knows its workers; functions run in their processes."""
    with dask.dask_executor(cluster.scheduler_address) as executor:
        assert executor.count == 2
        assert executor.submit(sum, [1, 2]).result(30) == 3
        with pytest.raises(ZeroDivisionError):
            executor.submit(divmod, 1, 0).result(30)
        assert pk.tune(pk.parse("x: f32[4]; return abs(x)"), budget=1, executor=executor).measured
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(sum, [1])


@pytest.mark.slow
def test_clusters_without_fitting_workers(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers of another machine are refused, and so is a cluster without workers."""
    distributed: Any = pytest.importorskip("distributed")
    monkeypatch.setattr(dask, "device_key", lambda: "another key")
    with pytest.raises(SettingError, match=r"this process is passkit .* \(another key\)"):
        connect(cluster.scheduler_address)
    with local_cluster(distributed, 0) as empty:
        address = empty.scheduler_address
        with pytest.raises(SettingError, match=re.escape(f"Dask at {address!r} has no workers")):
            connect(address)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nonsense://here"])
def test_no_scheduler_answers(address: str, tmp_path: Path) -> None:
    """The error names the address, and how to start a scheduler."""
    pytest.importorskip("distributed")
    with pytest.raises(SettingError, match=re.escape(f"answers at {address!r} in 0.5 s")):
        connect(address, seconds=0.5)


def test_dask_is_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The error names the package and the extra that installs it."""
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingDependencyError, match=r"package distributed.*passkit\[dask\]"):
        raise_error_of("tune", model_in(tmp_path), "--dask", "tcp://host:8786")


def test_one_executor(tmp_path: Path) -> None:
    """``--dask`` and ``--executor`` exclude each other."""
    arguments = ("--dask", "tcp://host:8786", "--executor", "os:getcwd")
    with pytest.raises(SettingError, match=r"got --dask tcp://host:8786 and --executor os:getcwd"):
        raise_error_of("tune", model_in(tmp_path), *arguments)


class Failing(Executor):
    """An executor whose functions end their workers."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Return a future that failed as Dask's do, or that was cancelled, for ``None``."""
        scheduler: Any = pytest.importorskip("distributed.scheduler")
        future: Future[Any] = Future()
        if fn is None:
            future.cancel()
            return future
        state = scheduler.WorkerState(
            address="tcp://host:1",
            status=scheduler.Status.running,
            pid=1,
            name="first",
            nthreads=1,
            memory_limit=1,
            local_directory="",
            nanny="",
            server_id="",
        )
        future.set_exception(scheduler.KilledWorker("task", state, 3))
        return future


def test_workers_that_end_are_crashes() -> None:
    """A kernel that ends its workers has crashed, as one that ends a process here."""
    executor = dask.DaskExecutor(Failing(), 1)
    with pytest.raises(DeadError, match=r"workers of Dask ended: .*task"):
        executor.submit(sum, [1]).result(1)
    assert executor.submit(None).cancelled()  # type: ignore[arg-type]
