"""``passkit tune``: measure the kernels of a model, so that later runs know the best."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from importlib import import_module

from passkit.cli.answer import Answer
from passkit.cli.model import (
    add_feed_argument,
    add_model_arguments,
    load,
    model_feeds,
    plan_options,
)
from passkit.errors import SettingError
from passkit.tuning.results import Tuned
from passkit.tuning.tuner import BUDGET, RIVALS, ProgressReport, tune
from passkit.values.terminal import is_terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which model, at which sizes, and how thoroughly."""
    add_model_arguments(parser)
    add_feed_argument(parser)
    parser.add_argument("--budget", type=int, default=BUDGET, metavar="N",
                        help=f"templates of a kernel to measure; default: {BUDGET}")  # fmt: skip
    parser.add_argument("--rivals", type=int, default=RIVALS, metavar="N",
                        help="groups that were nearly chosen to measure beside what was; "
                        f"default: {RIVALS}")  # fmt: skip
    parser.add_argument("--again", action="store_true",
                        help="measure what was measured before, too")  # fmt: skip
    parser.add_argument("--operators", action="store_true",
                        help="measure each operator by itself, too")  # fmt: skip
    parser.add_argument("--executor", metavar="MODULE:NAME",
                        help="what makes a concurrent.futures.Executor to measure with, such as "
                        "mpi4py.futures:MPIPoolExecutor; default: a process here")  # fmt: skip
    parser.add_argument("--at-once", type=int, default=1, metavar="N",
                        help="measurements at a time, for many machines")  # fmt: skip


def run(options: argparse.Namespace) -> Answer:
    """Measure what was not measured, and tell what changed."""
    graph = load(options)
    feeds, _, _ = model_feeds(options, graph)
    with _progress() as report, executor_of(options.executor) as executor:
        found = tune(
            graph,
            shapes={name: array.shape for name, array in feeds.items()},
            executor=executor,
            budget=options.budget,
            rivals=options.rivals,
            at_once=options.at_once,
            again=options.again,
            operators=options.operators,
            report=report,
            **plan_options(options),
        )
    data: dict[str, object] = {
        "model": str(options.model),
        "measured": found.measured,
        "rounds": found.rounds,
        "changed": found.changed,
        "groups": [as_dict(g) for g in found.groups],
        "remarks": list(found.remarks),
    }
    return Answer(data, str(found))


def as_dict(group: Tuned) -> dict[str, object]:
    """A group as JSON can hold it; seconds are medians."""
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


@contextmanager
def executor_of(name: str | None) -> Iterator[Executor | None]:
    """What `--executor` names, made and ended. Raises: SettingError where it makes none."""
    if name is None:
        yield None
        return
    module, colon, attribute = name.partition(":")
    try:
        made = getattr(import_module(module), attribute)() if colon else None
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise SettingError(f"--executor {name!r} cannot be made: {error}") from None
    if not isinstance(made, Executor):
        raise SettingError(
            f"--executor needs MODULE:NAME of what makes an Executor, got {name!r}, which makes "
            f"{made!r}"
        )
    with made:
        yield made


@contextmanager
def _progress() -> Iterator[ProgressReport]:
    """A bar on standard error where somebody watches."""
    if not is_terminal(sys.stderr):
        yield lambda what, done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("tune", total=None)

        def report(what: str, done: int, total: int) -> None:
            bar.update(task, description=what[:60] or "tune", completed=done, total=total)

        yield report
