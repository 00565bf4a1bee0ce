"""Tune a graph: compile it, measure the templates of its groups, and repeat until it is stable.

Source: the schedule tuning of FusionStitching (2018) and the kernel tuning of its Algorithm 3
(2019). Each record is on disk as soon as its group is measured, so that a tuner that was
interrupted continues where it stopped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from time import monotonic
from typing import Any, Unpack

import numpy as np
from attrs import evolve, frozen

from passkit.errors import CompilerError, FeedError, SettingError, nearest
from passkit.fusion.alternatives import alternatives
from passkit.graph.graph import Graph, graph_of_argument
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry
from passkit.library.evaluator import UNFUSED, Evaluator, Record, Sizes, ranked
from passkit.library.store import add, snapshot
from passkit.passes.apply import ApplyPasses
from passkit.passes.context import PassContext, current
from passkit.passes.fusion_hints import nested_hint_options
from passkit.passes.option_types import CompileOptions
from passkit.planner.plan import plan_group
from passkit.program.planning import planned, run_until_fusion
from passkit.runtime.feeds import bind_sizes
from passkit.runtime.native.compiler import INSTALL_HINT, find_compiler
from passkit.schedule.schedule import Schedule, Source
from passkit.schedule.template_of import template_of
from passkit.tuning.executors import MeasuringPool
from passkit.tuning.jobs import Job, jobs, rival_job, sizes_of
from passkit.tuning.measure import MeasureAnswer, RunClock
from passkit.tuning.results import Tuned, Tuning
from passkit.tuning.workers import DeadError, HungError
from passkit.values import arguments
from passkit.values.size import Shape

BUDGET = 8
"""The templates of a group that are measured: the fastest by the cost model."""
RIVALS = 4
"""The number of patterns that are compared with their units in separate kernels: the slowest of the
chosen ones, and of the others those that were nearly chosen."""
MAX_ITERATIONS = 8
"""The most iterations, each of which compiles the graph anew; two usually suffice."""
BASE_LIMIT = 60.0
"""The seconds after which a measurement counts as hung, besides `TEMPLATE_LIMIT`."""
TEMPLATE_LIMIT = 20.0
"""The seconds that each template adds to the limit."""
GRACE = 5.0
"""The seconds after the limit in which an executor may report the failure itself."""
ANALYSES = ("Complete", "InferShape", "InferType")
"""The passes that precede Fusion besides those of the pipeline."""

ProgressReport = Callable[[str, int, int], None]
"""``report(operators, done, total)``: the group that is measured next, and the number of groups of
this iteration that are done."""


@frozen
class TuningLimits:
    """Limits of the measurements of `tune`, whose arguments of these names explain the fields."""

    budget: int
    rivals: int
    at_once: int
    again: bool
    operators: bool


def tune(
    graph: Graph | Entry | Sequence[Entry],
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    executor: Executor | None = None,
    clock: RunClock | None = None,
    budget: int = BUDGET,
    rivals: int = RIVALS,
    at_once: int = 1,
    again: bool = False,
    operators: bool = False,
    report: ProgressReport | None = None,
    **options: Unpack[CompileOptions],
) -> Tuning:
    """Measure the templates of a graph's groups on this machine, for use by later compilations.

    Args:
        graph: The graph, or an entry or sequence of entries, its outputs.
        shapes: Shapes of inputs by name, which give values to unknown sizes; those that they do not
            determine are 64.
        executor: Runs the measurements; by default worker processes do.
        clock: Measures the seconds of a run, see `passkit.tuning.measure.RunClock`; by default the
            wall clock. It needs an executor to which it can be sent.
        budget: The most templates of a group, the fastest by the cost model.
        rivals: How many patterns with a stitched kernel, chosen or nearly so, are compared with
            their units in separate kernels, so that the next plan chooses by that.
        at_once: The number of measurements at the same time.
        again: Whether to measure templates again that were measured before.
        operators: Whether to measure each operator in a kernel of its own as well, which shows the
            gain of fusion.
        report: Called as ``report(operators, done, total)``: the labels of the group measured next,
            the groups done and all groups of this iteration.
        **options: Options of `passkit.compile`; the target must be "cpu".

    Returns:
        The groups with their templates; printed, a table.

    Raises:
        SettingError: If an option has a wrong value, such as another target or an evaluator;
            ``budget`` or ``at_once`` is no int of at least 1, or ``rivals`` none of at least 0; or
            there is a clock without an executor, or the executor of a clock breaks.
        ArgumentError: If another argument has a wrong type.
        FeedError: If a shape is for a name that is not an input, or does not fit the input.
        CompilerError: If there is no C++ compiler.
        CacheError: If the performance library cannot be written.
        PasskitError: If the graph cannot be planned.
    """
    graph = graph_of_argument("tune: graph", graph)
    shapes = arguments.mapping("tune: shapes", shapes, "a mapping of input names to shapes")
    arguments.flag("tune: again", again)
    arguments.flag("tune: operators", operators)
    if report is not None:
        arguments.function("tune: report", report)
    if executor is not None:
        arguments.instance("tune: executor", executor, Executor, "a concurrent.futures.Executor")
    if clock is not None:
        arguments.function("tune: clock", clock)
    context = (current() or PassContext()).with_options(**options)
    limits = TuningLimits(budget, rivals, at_once, again, operators)
    _check(context, executor, clock, limits)
    pool = MeasuringPool(executor, clock)
    try:
        sizes = _sizes(graph, shapes)
        return _Tuner(graph, context, sizes, limits, pool, report or (lambda *_: None)).run()
    finally:
        pool.close()


def _check(
    context: PassContext, executor: Executor | None, clock: RunClock | None, limits: TuningLimits
) -> None:
    """Check that the options of `tune` permit measurements on this machine's CPU.

    Args:
        context: The options of passes, which must have target "cpu" and no evaluator.
        executor: The user's executor, or None.
        clock: The user's clock, or None.
        limits: The limits of the measurements.

    Raises:
        SettingError: If an option has a wrong value, or a clock has no executor.
        CompilerError: If there is no C++ compiler.
    """
    if context.target.name != "cpu":
        raise SettingError(
            f"tune needs target 'cpu', got {context.target.name!r}; leave target out"
        )
    if context.evaluator is not None:
        raise SettingError(
            f"tune needs the evaluator of measurements on this machine, got evaluator="
            f"{context.evaluator!r}; leave evaluator out"
        )
    if clock is not None and executor is None:
        raise SettingError(
            f"tune needs an executor for the clock {clock!r}, got none; give one that runs "
            f"functions in this process, such as executor=ThreadPoolExecutor(1)"
        )
    for name, least in (("budget", 1), ("at_once", 1), ("rivals", 0)):
        value = getattr(limits, name)
        if type(value) is not int or value < least:
            raise SettingError(f"tune needs {name} of at least {least}, got {value!r}")
    if find_compiler() is None:
        raise CompilerError(f"tune needs a C++ compiler, and none was found; {INSTALL_HINT}")


def _sizes(graph: Graph, shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """Return the values of symbolic sizes that ``shapes``, by input name of ``graph``, imply.

    Raises:
        FeedError: If a name is not an input, a shape does not fit the input's or has a negative
            extent, or two shapes give a size different values.
        ArgumentError: If a shape is no sequence of integers.
        ShapeError: If an extent divides by zero.
    """
    declared = {graph.names[n]: n.entries[0].shape for n in graph.inputs}
    for name in shapes:
        if name not in declared:
            raise FeedError(f"tune: shapes: there is no input {name!r}; {nearest(name, declared)}")
    need = "a sequence of integers"
    known_shapes = {
        name: arguments.sequence(f"tune: shape of {name!r}", shape, (int, np.integer), need)
        for name, shape in shapes.items()
    }
    for name, shape in known_shapes.items():
        if not _fits(shape, declared[name]):
            raise FeedError(
                f"tune: shapes: input {name!r} needs shape {show_shape(declared[name])}, got "
                f"{show_shape(shape)}; leave out inputs of known shape"
            )
    return bind_sizes((name, declared[name], shape) for name, shape in known_shapes.items())


def _fits(shape: Sequence[int], declared: Shape | None) -> bool:
    """Return whether a shape has natural numbers, and the rank and numbers of a declared shape.

    Symbolic extents of ``declared`` are any number; None, an unknown shape, has any rank.
    """
    if min(shape, default=0) < 0:
        return False
    if declared is None:
        return True
    pairs = zip(shape, declared, strict=False)
    return len(shape) == len(declared) and all(n == d for n, d in pairs if isinstance(d, int))


@frozen
class _Task:
    """Templates of a job that are measured together.

    Attributes:
        job: The job.
        templates: The usual template, and others.
        failures: The number of times that the measurement has failed.
        is_confirmation: Whether the fastest template is measured once more, in a new process, to
            exclude chance and effects of the position of its arrays in memory.
    """

    job: Job
    templates: tuple[str, ...]
    failures: int = 0
    is_confirmation: bool = False


class _Tuner:
    """Tunes one graph under one context."""

    def __init__(
        self,
        graph: Graph,
        context: PassContext,
        sizes: Mapping[str, int],
        limits: TuningLimits,
        pool: MeasuringPool,
        report: ProgressReport,
    ) -> None:
        """Prepare to tune a graph.

        Args:
            graph: The graph.
            context: The options to compile it under.
            sizes: The values of symbolic sizes, by name.
            limits: The limits of the measurements.
            pool: Runs the measurements.
            report: Called with the progress.
        """
        self.graph = graph
        self.context = context
        self.sizes = sizes
        self.limits = limits
        self.pool = pool
        self.report = report
        self.num_measured = 0
        self.refused: set[tuple[str, Sizes, bool]] = set()
        """Keys of jobs that cannot be measured: group, sizes, and whether it is a comparison."""
        self.remarks: list[str] = []

    def run(self) -> Tuning:
        """Measure and plan again until nothing is left to measure, at most `MAX_ITERATIONS` times.

        Return the groups of the resulting plans, with the numbers of measurements and iterations,
        and the remarks.

        Raises: PasskitError where planning fails; CacheError where records cannot be stored or
        read; SettingError if the executor broke and worker processes cannot use the user's clock.
        """
        iterations = 0
        while iterations < MAX_ITERATIONS:
            pending = [*self.pending_jobs(self.limits.again and iterations == 0)]
            if not pending:
                break
            iterations += 1
            self.measure(pending)
        evaluator = snapshot().evaluator
        groups = [g for p in self.plans(evaluator) for g in _tuned(p, evaluator, self.sizes)]
        return Tuning(tuple(groups), self.num_measured, iterations, tuple(self.remarks))

    def pending_jobs(self, again: bool) -> Iterator[Job]:
        """Yield the distinct jobs of the current plan, except those that cannot be measured.

        With ``again``, these include jobs that were measured before. Raises: PasskitError where
        planning fails.
        """
        visited = set(self.refused)
        for job in self.all_jobs(again):
            key = job.group.key, job.sizes, bool(job.request.apart)
            if key not in visited:
                visited.add(key)
                yield job

    def all_jobs(self, again: bool) -> Iterator[Job]:
        """Yield the jobs of the plan's groups, of single operators, and of rival patterns.

        Jobs may repeat. With ``again``, those that were measured before are included. Raises:
        PasskitError where planning fails, such as CacheError where records cannot be read.
        """
        evaluator = snapshot().evaluator
        options = {"target": "cpu", "numerics": self.context.numerics}
        for fusion in (None, "none") if self.limits.operators else (None,):
            budget = self.limits.budget if fusion is None else 1
            for plan in self.plans(evaluator, fusion):
                yield from jobs(plan, evaluator, self.sizes, budget, options, again)
        if self.limits.rivals and self.context.fusion == "stitch":
            for graph, context in self.graphs(evaluator):
                yield from self._rival_jobs(graph, context, evaluator, options, again)

    def _rival_jobs(
        self,
        graph: Graph,
        context: PassContext,
        evaluator: Evaluator,
        options: Mapping[str, Any],
        again: bool,
    ) -> Iterator[Job]:
        """Yield the jobs of rival patterns of a graph under a context.

        The context is in force while they are made, and not while the caller has one: a caller
        that stops would leave it in force. Raises: PasskitError where planning fails.
        """
        with context:
            before_fusion = ApplyPasses(run_until_fusion(graph), ANALYSES)
            candidates = iter(alternatives(before_fusion, context, self.limits.rivals))
        while True:
            with context:
                rival = next(candidates, None)
                if rival is None:
                    return
                job = rival_job(rival, evaluator, context.target, options, again)
            if job is not None:
                yield job

    def plans(self, evaluator: Evaluator, fusion: str | None = None) -> Iterator[Graph]:
        """Yield the current plans of the graph and of the graphs that its operators hold.

        Args:
            evaluator: Chooses by the measurements so far.
            fusion: The fusion strategy; None for that of the options.

        Raises: PasskitError where planning fails.
        """
        for graph, context in self.graphs(evaluator, fusion):
            with context:
                plan = planned(graph, "SchedulePlan")
            yield plan

    def graphs(
        self, evaluator: Evaluator, fusion: str | None = None
    ) -> Iterator[tuple[Graph, PassContext]]:
        """Yield the graph and the graphs that operators of its plan hold, each with its context.

        Args:
            evaluator: The evaluator of these contexts.
            fusion: The fusion strategy; None for that of the options.

        Raises: PasskitError where planning fails.
        """
        context = self.context.with_options(evaluator=evaluator, fusion=fusion)
        queue = deque([(self.graph, context)])
        while queue:
            graph, context = queue.popleft()
            yield graph, context
            with context:
                plan = planned(graph, "SchedulePlan")
            for node in plan.nodes:
                for nested in (v for v in node.params.values() if isinstance(v, Graph)):
                    hints = nested_hint_options(nested, context)
                    queue.append((nested, context.with_options(templates={}, **hints)))

    def measure(self, pending: Sequence[Job]) -> None:
        """Measure jobs, ``at_once`` at a time; store the records of each task when it ends.

        The cost model's estimates of templates beyond the budget are stored first. Raises:
        CacheError where records cannot be stored; SettingError if the executor broke and worker
        processes cannot use the user's clock.
        """
        add([record for job in pending for record in job.model_records()])
        queue = deque(_Task(job, job.request.templates) for job in pending)
        running: dict[Future[str], tuple[_Task, float]] = {}
        """Futures with their task and the time when they are overdue."""
        while queue or running:
            self.report_progress(pending, [*queue, *(task for task, _ in running.values())])
            while queue and len(running) < self.limits.at_once:
                task = queue.popleft()
                request = evolve(task.job.request, templates=task.templates).text()
                limit = BASE_LIMIT + TEMPLATE_LIMIT * len(task.templates)
                new_process = task.is_confirmation and not running
                future = self.pool.submit(request, limit, new_process)
                running[future] = task, monotonic() + limit + GRACE
            next_deadline = min(deadline for _, deadline in running.values())
            done, _ = wait(running, max(0.0, next_deadline - monotonic()), FIRST_COMPLETED)
            overdue = [f for f, (_, deadline) in running.items() if deadline <= monotonic()]
            for future in done or overdue:
                task, _ = running.pop(future)
                queue.extendleft(reversed(self.finish(task, future)))
        self.report_progress(pending, [])

    def report_progress(self, pending: Sequence[Job], tasks: Sequence[_Task]) -> None:
        """Call ``report`` with the next job's operators and the numbers of jobs done and in total.

        ``pending`` are the jobs of this iteration, ``tasks`` those of their tasks that are left.
        """
        waiting = dict.fromkeys(task.job for task in tasks)
        operators = next((job.operators for job in pending if job in waiting), "")
        self.report(operators, len(pending) - len(waiting), len(pending))

    def finish(self, task: _Task, future: Future[str]) -> list[_Task]:
        """Store the records of a task that has ended, or handle its failure.

        Any other error than a crash or a hang refuses the job for good and becomes a remark.

        Args:
            task: The task.
            future: Its future, which has ended or is overdue.

        Returns:
            Tasks to run next: retries of one that crashed or hung, or a confirmation; else empty.

        Raises:
            SettingError: If the executor broke and the user's clock prevents worker processes.
            CacheError: If records cannot be stored.
        """
        try:
            answer = MeasureAnswer.read(future.result(timeout=0))
        except HungError:
            return self.retry(task, "hung")
        except DeadError:
            return self.retry(task, "crashed")
        except TimeoutError:
            self.remarks.append(self.pool.fall_back("an executor gave no answer in time"))
            return self.retry(task, "hung")
        except BrokenExecutor as error:
            self.remarks.append(self.pool.fall_back(f"the pool of an executor broke: {error}"))
            return self.retry(task, "crashed")
        except Exception as error:  # noqa: BLE001, RUF100  (a user's executor may raise anything)
            job = task.job
            self.refused.add((job.group.key, job.sizes, bool(job.request.apart)))
            self.remarks.append(f"{job.operators}: not measured: {error}")
            return []
        self.write_records(task.job, answer, count=not task.is_confirmation)
        if task.is_confirmation or not answer.beside:
            return []
        usual = task.templates[0]
        records = snapshot().evaluator.records_of(task.job.group, task.job.sizes)
        if task.job.request.apart:
            return self.confirm_rival(task, records.get(UNFUSED))
        best = ranked(usual, [records])[0]
        if best == usual or best not in answer.samples:
            return []
        return [_Task(task.job, (usual, best), is_confirmation=True)]

    def confirm_rival(self, task: _Task, units: Record | None) -> list[_Task]:
        """Return the task as a confirmation if its measurement contradicts the current plan, or [].

        ``units`` is the record of the units in separate kernels, None if there is none.
        """
        share = None if units is None else units.fused_ratio
        if share is None or (share < 1.0) == task.job.chosen:
            return []
        return [evolve(task, is_confirmation=True)]

    def retry(self, task: _Task, fault: str) -> list[_Task]:
        """Return smaller tasks that isolate the template at fault; store the fault of a single one.

        The usual template is first measured alone, then each other one together with it, and by
        itself if the usual one is at fault. Each is tried twice, since something else may have
        ended it. A stored fault is also a remark.

        Args:
            task: The task that failed.
            fault: "hung" or "crashed".

        Returns: The tasks, empty after a second failure. Raises: CacheError where a fault cannot be
        stored.
        """
        usual, *others = task.templates
        job = task.job
        record = snapshot().evaluator.records_of(job.group, job.sizes).get(usual)
        is_measured = record is not None and record.source is Source.MEASURED
        if len(others) > 1 or (others and not is_measured):
            pairs = [_Task(job, (usual, t)) for t in others]
            return pairs if is_measured else [_Task(job, (usual,)), *pairs]
        if others and record is not None and record.fault:
            return [_Task(job, tuple(others))]
        if not task.failures:
            return [evolve(task, failures=1)]
        self.remarks.append(f"{job.operators}: {task.templates[-1]} {fault}")
        self.write_records(job, MeasureAnswer({}, {task.templates[-1]: fault}))
        return []

    def write_records(self, job: Job, answer: MeasureAnswer, count: bool = True) -> None:
        """Store the records of an answer, the measurement of ``job``, on this machine.

        With ``count`` they are counted as measurements of this run. Raises: CacheError where they
        cannot be stored.
        """
        templates = [*dict.fromkeys([*answer.samples, *answer.faults])]
        records: list[Record] = [job.record(t, answer) for t in templates]
        self.num_measured += len(records) if count else 0
        add(records)


def _tuned(plan: Graph, evaluator: Evaluator, sizes: Mapping[str, int]) -> Iterable[Tuned]:
    """Yield the groups of a plan with their usual and present templates.

    Args:
        plan: The graph after SchedulePlan.
        evaluator: The measurements so far.
        sizes: The values of symbolic sizes, by name.
    """
    target = plan.attrs["options"]["target"]
    for node, group in plan.attrs["subgraph"].items():
        records = evaluator.records_of(group, sizes_of(group, sizes))
        default = plan_group(group, target)
        assert isinstance(default, Schedule)
        usual = str(template_of(group, default, target))
        template = str(template_of(group, plan.attrs["schedule"][node], target))
        yield Tuned(
            name=plan.names[node],
            operators=", ".join(n.label for n in group.ops),
            usual=usual,
            template=template,
            before=records[usual].seconds if usual in records else 0.0,
            after=records[template].seconds if template in records else 0.0,
            measured=sum(r.source is Source.MEASURED for t, r in records.items() if t != UNFUSED),
            faults={t: r.fault for t, r in records.items() if r.fault and t != UNFUSED},
        )
