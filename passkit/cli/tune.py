"""``passkit tune``: measure the kernels of a model, so that later runs use the fastest."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module

from passkit.cli.command_result import CommandResult
from passkit.cli.model import (
    add_feed_argument,
    add_model_arguments,
    load,
    model_feeds,
    plan_options,
)
from passkit.errors import SettingError
from passkit.tuning.dask import DaskExecutor, dask_executor
from passkit.tuning.results import Tuned
from passkit.tuning.tuner import BUDGET, RIVALS, ProgressReport, tune
from passkit.values.terminal import is_terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``passkit tune``: the model, its inputs, and options of the search."""
    add_model_arguments(parser)
    add_feed_argument(parser)
    parser.add_argument(
        "--budget",
        type=int,
        default=BUDGET,
        metavar="N",
        help=f"templates of a kernel to measure; default: {BUDGET}",
    )
    parser.add_argument(
        "--rivals",
        type=int,
        default=RIVALS,
        metavar="N",
        help="alternative groups, which the selection ranked next, to measure besides the "
        f"selected ones; default: {RIVALS}",
    )
    parser.add_argument(
        "--again",
        action="store_true",
        help="measure templates again that were measured before",
    )
    parser.add_argument(
        "--operators",
        action="store_true",
        help="measure each operator by itself, too",
    )
    parser.add_argument(
        "--executor",
        metavar="MODULE:NAME",
        help="a function or class that returns a concurrent.futures.Executor to measure with, "
        "such as mpi4py.futures:MPIPoolExecutor; default: a process on this machine",
    )
    parser.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="the scheduler of a Dask cluster whose workers measure, such as tcp://host:8786",
    )
    parser.add_argument(
        "--at-once",
        type=int,
        metavar="N",
        help="measurements at the same time, for executors of several machines; default: 1, with "
        "--dask the number of workers",
    )


def run(options: argparse.Namespace) -> CommandResult:
    """Measure templates of the model's groups, and return each group with its fastest template.

    The measurements are added to the library of this machine.

    Raises: ModelError, ParseError, FeedError or SettingError for wrong input; OSError where the
    model cannot be read; MissingDependencyError for ``--dask`` without Dask; CacheError where
    measurements cannot be stored; other PasskitErrors where planning fails.
    """
    graph = load(options)
    feeds, _, _ = model_feeds(options, graph)
    if options.dask is not None and options.executor is not None:
        raise SettingError(
            f"tune takes one executor, got --dask {options.dask} and --executor "
            f"{options.executor}; leave one of them out"
        )
    with _progress() as report, _executor(options) as executor:
        workers = executor.count if isinstance(executor, DaskExecutor) else 1
        tuning = tune(
            graph,
            shapes={name: array.shape for name, array in feeds.items()},
            executor=executor,
            budget=options.budget,
            rivals=options.rivals,
            at_once=workers if options.at_once is None else options.at_once,
            again=options.again,
            operators=options.operators,
            report=report,
            **plan_options(options),
        )
    data: dict[str, object] = {
        "model": str(options.model),
        "measured": tuning.measured,
        "rounds": tuning.rounds,
        "changed": tuning.changed,
        "groups": [as_dict(g) for g in tuning.groups],
        "remarks": list(tuning.remarks),
    }
    return CommandResult(data, str(tuning))


def as_dict(group: Tuned) -> dict[str, object]:
    """Return the fields of a tuned group for JSON output; seconds are medians."""
    return {
        "name": group.name,
        "operators": group.operators,
        "usual": group.usual,
        "template": group.template,
        "seconds_usual": group.before,
        "seconds": group.after,
        "gain": group.gain,
        "measured": group.measured,
        "faults": dict(group.faults),
    }


def _executor(options: argparse.Namespace) -> AbstractContextManager[Executor | None]:
    """Return the context of the executor that ``--dask`` or ``--executor`` names.

    Entering it raises what `dask_executor` or `executor_of` raises.
    """
    if options.dask is not None:
        return dask_executor(options.dask)
    return executor_of(options.executor)


@contextmanager
def executor_of(name: str | None) -> Iterator[Executor | None]:
    """Create the executor that ``--executor`` names, and shut it down after the ``with`` block.

    Args:
        name: "MODULE:NAME" of a callable without arguments; None for no executor.

    Yields:
        The executor, or None.

    Raises:
        SettingError: If there is no such callable, it takes arguments, or it does not return an
            executor. Errors of other types than ImportError, AttributeError, TypeError and
            ValueError that it raises propagate.
    """
    if name is None:
        yield None
        return
    module, colon, attribute = name.partition(":")
    try:
        created = getattr(import_module(module), attribute)() if colon else None
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise SettingError(
            f"--executor needs MODULE:NAME of a callable without arguments, and {name!r} cannot "
            f"be called: {error}"
        ) from None
    if not isinstance(created, Executor):
        raise SettingError(
            f"--executor needs MODULE:NAME of a callable that returns an Executor, got {name!r}, "
            f"which returns {created!r}"
        )
    with created:
        yield created


@contextmanager
def _progress() -> Iterator[ProgressReport]:
    """Show a progress bar on standard error if that is a terminal; yield its update function.

    The function takes the operators measured next, and the numbers of groups done and in total.
    Without a terminal it does nothing.
    """
    if not is_terminal(sys.stderr):
        yield lambda operators, done, total: None
        return
    from rich.console import Console  # takes 50 ms, and only terminals need it
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("tune", total=None)

        def report(operators: str, done: int, total: int) -> None:
            """Show the operators measured next, and the number of groups done of ``total``."""
            bar.update(task, description=operators[:60] or "tune", completed=done, total=total)

        yield report
