"""Measurements by the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from passkit.errors import MissingDependencyError, SettingError
from passkit.library.device import device_key, model_name
from passkit.tuning.workers import DeadError
from passkit.values.version import version

INSTALL = "pip install 'passkit[dask]'"
CONNECT_SECONDS = 10.0
"""The seconds in which a scheduler must answer."""


class DaskExecutor(Executor):
    """An executor whose functions run on the workers of a Dask cluster.

    Futures raise DeadError where a function ended several workers, else what it raised.

    Attributes:
        count: the number of workers.
    """

    def __init__(self, executor: Executor, count: int) -> None:
        """Use the executor of a client that ``count`` workers serve."""
        self._executor = executor
        self.count = count

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Submit a function; return the future of its result."""
        answer: Future[Any] = Future()
        self._executor.submit(fn, *args, **kwargs).add_done_callback(
            lambda done: _hand_on(done, answer)
        )
        return answer

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more functions; with ``wait``, wait for those that run."""
        self._executor.shutdown(wait=wait)


def _hand_on(done: Future[Any], answer: Future[Any]) -> None:
    """Give the result or error of a future that is done to another one."""
    scheduler: Any = import_module("distributed.scheduler")
    if done.cancelled():
        answer.cancel()
        return
    error = done.exception()
    if isinstance(error, scheduler.KilledWorker):
        answer.set_exception(DeadError(f"workers of Dask ended: {error}"))
    elif error is not None:
        answer.set_exception(error)
    else:
        answer.set_result(done.result())


@contextmanager
def dask_executor(address: str, seconds: float = CONNECT_SECONDS) -> Iterator[DaskExecutor]:
    """Connect to a Dask cluster, and disconnect after the ``with`` block.

    Args:
        address: the address of its scheduler, such as "tcp://host:8786".
        seconds: the seconds in which the scheduler must answer.

    Yields:
        An executor for `passkit.tune`, on workers that are machines like this one.

    Raises:
        MissingDependencyError: the package distributed is not installed.
        SettingError: the address is malformed or no scheduler answers there, it has no workers, or
            a worker has another processor, number of threads, or version of passkit.
    """
    try:
        distributed: Any = import_module("distributed")
    except ImportError as error:
        raise MissingDependencyError(
            f"tuning on a Dask cluster needs the package distributed, which cannot be imported: "
            f"{error}; {INSTALL}"
        ) from None
    try:
        client = distributed.Client(address, timeout=seconds, set_as_default=False)
    except (OSError, ValueError, ImportError) as error:
        raise SettingError(
            f"no scheduler of Dask answers at {address!r} in {seconds:g} s "
            f"({str(error) or type(error).__name__}); `dask scheduler` starts one, and prints its "
            f"address, such as tcp://host:8786"
        ) from None
    with client:
        count = _check_workers(client, address)
        with DaskExecutor(client.get_executor(pure=False), count) as executor:
            yield executor


def _check_workers(client: Any, address: str) -> int:
    """Return the number of workers of a cluster, which must be machines like this one.

    Raises: SettingError if there is none, or one is another machine or has another passkit.
    """
    own = machine_text()
    texts: dict[str, Any] = client.run(machine_text, on_error="return")
    if not texts:
        raise SettingError(
            f"the scheduler of Dask at {address!r} has no workers; `dask worker {address} "
            f"--nthreads 1` starts one"
        )
    for worker, other in texts.items():
        if other != own:
            raise SettingError(
                f"worker {worker} of Dask is {other}, and this process is {own}: what it measures "
                f"would not hold here; use workers on machines like this one"
            )
    return len(texts)


def machine_text() -> str:
    """Return passkit's version, the processor, and the key under which its measurements are kept.

    The key tells instruction sets and numbers of threads apart.
    """
    return f"passkit {version()} on {model_name()} ({device_key()})"
