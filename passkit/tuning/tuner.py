"""The tuner: compile, list what is unmeasured, measure it, write the library; again until stable.

Source: the schedule tuning of FusionStitching (2018) and the kernel tuning of its Algorithm 3
(2019). Each record is on disk as soon as its group is measured, so whatever ends the tuner, the
next one goes on from there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from time import monotonic
from typing import Any, Unpack

from attrs import evolve, frozen

from passkit.errors import CompilerError, FeedError, SettingError, nearest
from passkit.graph.graph import Graph, graph_of_argument
from passkit.graph.node import Entry
from passkit.library.store import add, snapshot
from passkit.passes.apply import ApplyPasses
from passkit.passes.context import PassContext, current
from passkit.passes.fusion.rivals import rivals
from passkit.passes.hints import within
from passkit.passes.keywords import Options
from passkit.plan.evaluator import APART, Evaluator, Record, Sizes, ranked
from passkit.plan.planner import plan_group
from passkit.plan.schedule import Schedule, Source
from passkit.program.planning import planned, prepared
from passkit.runtime.feeds import bind_sizes
from passkit.runtime.native.compiler import INSTALL_HINT, find_compiler
from passkit.templating.naming import template_of
from passkit.tuning.measure import Answer, Clock
from passkit.tuning.pool import Pool
from passkit.tuning.wanted import Job, jobs, rival_job, sizes_of
from passkit.tuning.workers import DeadError, HungError
from passkit.values import arguments
from passkit.values.lazy import Lazy
from passkit.values.units import seconds_text, table

notebook: Any = Lazy("passkit.reporting.notebook")
"""What notebooks show stands above, and is asked for only by them."""

BUDGET, RIVALS = 8, 4
"""Templates of a group that are measured, the most promising by the model; and patterns that were
chosen, the longest ones, and that were not, the nearest to it, each against its units."""
MOST_ROUNDS = 8
"""How often a graph is compiled anew at most; it is stable after two as a rule."""
LIMIT, EACH = 60.0, 20.0
"""Seconds after which a measurement counts as hung: in all, and more for each template."""
ANALYSES = ("Complete", "InferShape", "InferType")
"""What a graph has been through when Fusion gets it."""
GRACE = 5.0
"""Seconds after that in which an executor may say so itself."""

Report = Callable[[str, int, int], None]
"""``report(what, done, total)``: what is measured next, and how many groups of a round are done."""


@frozen
class Tuned:
    """A group after tuning: its usual template and the one that it has now, with their seconds.

    Seconds are 0 where nothing was measured. ``faults`` are those of templates, by their texts.
    """

    name: str
    operators: str
    usual: str
    template: str
    before: float
    after: float
    measured: int
    faults: Mapping[str, str]

    @property
    def gain(self) -> float:
        """How many times longer the usual template takes; 1 where it is the one that was taken."""
        return self.before / self.after if self.before and self.after else 1.0


HEADER = ("kernel", "operators", "usual", "tuned", "gain", "template")


@frozen(repr=False)
class Tuning:
    """The groups of a plan after tuning, in its order, and remarks on what went wrong.

    Printed, it is a table of the groups.

    ``measured`` are the measurements of this run: templates of groups at some sizes.
    """

    groups: tuple[Tuned, ...]
    measured: int
    rounds: int
    remarks: tuple[str, ...] = ()

    @property
    def changed(self) -> int:
        """Groups that have another template than the usual one."""
        return sum(g.template != g.usual for g in self.groups)

    @property
    def summary(self) -> str:
        """How much was measured, and how many kernels have another template now."""
        return (
            f"{self.measured} templates measured; {self.changed} of {len(self.groups)} kernels "
            f"have another"
        )

    @property
    def _notes(self) -> list[str]:
        return [f"remark: {r}" for r in self.remarks]

    def rows(self) -> list[tuple[str, ...]]:
        """Return the groups as rows of texts under HEADER."""
        return [
            (
                g.name,
                g.operators,
                seconds_text(g.before) if g.before else "?",
                seconds_text(g.after) if g.after else "?",
                f"{g.gain:.2f}" if g.template != g.usual else "",
                g.template if g.template != g.usual else "as before",
            )
            for g in self.groups
        ]

    def __str__(self) -> str:
        rows = self.rows()
        return "\n".join([*([table(HEADER, rows)] if rows else []), *self._notes, self.summary])

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Return the groups as a table, for notebooks."""
        found = notebook.listing(str(self), HEADER, self.rows(), [*self._notes, self.summary])
        return found  # type: ignore[no-any-return]


def tune(
    graph: Graph | Entry | Sequence[Entry],
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    executor: Executor | None = None,
    clock: Clock | None = None,
    budget: int = BUDGET,
    rivals: int = RIVALS,
    at_once: int = 1,
    again: bool = False,
    operators: bool = False,
    report: Report | None = None,
    **options: Unpack[Options],
) -> Tuning:
    """Measure the templates of a graph's groups on this machine; later compilations know them.

    ``shapes`` of inputs give numbers to unknown sizes. Kernels run in processes of their own, or
    wherever ``executor`` runs functions, ``at_once`` at a time; ``clock`` is one of your own, which
    such an executor must be able to take along. Of each group the ``budget`` most promising
    templates are measured, those that are not yet, or all of them ``again``; with ``operators``
    each operator by itself, too, so that what fusing gains is known. As many as ``rivals`` patterns
    with a stitched kernel that were chosen, and that nearly were, are measured beside their units,
    so that the next plan chooses by that. ``report`` is told how far it is. ``options`` are those
    of `PassContext`; the target must be "cpu".

    Raises: SettingError for options that do not fit; FeedError for shapes of no input;
    CompilerError without a compiler; CacheError when the library cannot be written.
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
    _check(context, executor, clock, {"budget": budget, "at_once": at_once})
    if type(rivals) is not int or rivals < 0:
        raise SettingError(f"tune needs rivals of at least 0, got {rivals!r}")
    pool = Pool(executor, clock)
    limits = budget, rivals, at_once, again, operators
    try:
        sizes = _sizes(graph, shapes)
        return _Tuner(graph, context, sizes, limits, pool, report or (lambda *_: None)).run()
    finally:
        pool.close()


def _check(
    context: PassContext, executor: Executor | None, clock: Clock | None, counts: Mapping[str, int]
) -> None:
    if context.target.name != "cpu":
        raise SettingError(
            f"tune measures kernels of target 'cpu', got {context.target.name!r}; leave it out"
        )
    if context.evaluator is not None:
        raise SettingError(
            f"tune asks what was measured on this machine, got evaluator="
            f"{context.evaluator!r}; leave it out"
        )
    if clock is not None and executor is None:
        raise SettingError(
            f"a worker process has the clock on the wall, not {clock!r}; give an executor that "
            f"runs functions in this process, such as ThreadPoolExecutor(1)"
        )
    for name, value in counts.items():
        if type(value) is not int or value < 1:
            raise SettingError(f"tune needs {name} of at least 1, got {value!r}")
    if find_compiler() is None:
        raise CompilerError(f"tune compiles kernels, and no C++ compiler was found; {INSTALL_HINT}")


def _sizes(graph: Graph, shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """The numbers of unknown sizes. Raises: FeedError for a shape of no input."""
    declared = {graph.names[n]: n.entries[0].shape for n in graph.inputs}
    for name in shapes:
        if name not in declared:
            raise FeedError(f"shapes: there is no input {name!r}; {nearest(name, declared)}")
    return bind_sizes((name, declared[name], tuple(s)) for name, s in shapes.items())


@frozen
class _Task:
    """Templates of a job that are measured together, and how often that has failed.

    One that is ``sure`` measures again what was the quickest of many, by a process of its own: so
    that it was no luck, nor where its arrays happened to lie.
    """

    job: Job
    templates: tuple[str, ...]
    failed: int = 0
    sure: bool = False


class _Tuner:
    """One graph under one context, and what was done so far."""

    def __init__(
        self,
        graph: Graph,
        context: PassContext,
        sizes: Mapping[str, int],
        limits: tuple[int, int, int, bool, bool],
        pool: Pool,
        report: Report,
    ) -> None:
        self.graph, self.context, self.sizes = graph, context, sizes
        self.budget, self.rivals, self.at_once, self.again, self.operators = limits
        self.pool, self.report = pool, report
        self.measured = 0
        self.refused: set[tuple[str, Sizes, bool]] = set()
        self.remarks: list[str] = []

    def run(self) -> Tuning:
        """Rounds until nothing is unmeasured."""
        rounds = 0
        while rounds < MOST_ROUNDS:
            left = [*self.wanted(self.again and rounds == 0)]
            if not left:
                break
            rounds += 1
            self.measure(left)
        evaluator = snapshot().evaluator
        groups = (g for p in self.plans(evaluator) for g in _tuned(p, evaluator, self.sizes))
        return Tuning(tuple(groups), self.measured, rounds, tuple(self.remarks))

    def wanted(self, again: bool) -> Iterator[Job]:
        """What is not measured: of the plan all groups, of operators by themselves the usual way.

        And of complex patterns how they do beside their units. What cannot be measured is not tried
        again.
        """
        seen = set(self.refused)
        for job in self.all_jobs(again):
            mark = job.group.key, job.sizes, bool(job.request.apart)
            if mark not in seen:
                seen.add(mark)
                yield job

    def all_jobs(self, again: bool) -> Iterator[Job]:
        """The same, with what was refused, or met before."""
        evaluator = snapshot().evaluator
        options = {"target": "cpu", "numerics": self.context.numerics}
        for fusion in (None, "none") if self.operators else (None,):
            budget = self.budget if fusion is None else 1
            for plan in self.plans(evaluator, fusion):
                yield from jobs(plan, evaluator, self.sizes, budget, options, again)
        if self.rivals and self.context.fusion == "stitch":
            for graph, context in self.graphs(evaluator):
                with context:
                    before = ApplyPasses(prepared(graph), ANALYSES)
                    for rival in rivals(before, context, self.rivals):
                        job = rival_job(rival, evaluator, context.target, options, again)
                        if job is not None:
                            yield job

    def plans(self, evaluator: Evaluator, fusion: str | None = None) -> Iterator[Graph]:
        """The graph as it is planned now, and those that operators such as loops hold."""
        for graph, context in self.graphs(evaluator, fusion):
            with context:
                yield planned(graph, "SchedulePlan")

    def graphs(
        self, evaluator: Evaluator, fusion: str | None = None
    ) -> Iterator[tuple[Graph, PassContext]]:
        """The graph, and those inside that its plan still holds, with what they are planned by."""
        todo = deque([(self.graph, self.context.with_options(evaluator=evaluator, fusion=fusion))])
        while todo:
            graph, context = todo.popleft()
            yield graph, context
            with context:
                plan = planned(graph, "SchedulePlan")
            for node in plan.nodes:
                for inner in (v for v in node.params.values() if isinstance(v, Graph)):
                    hints = within(inner, context)
                    todo.append((inner, context.with_options(templates={}, **hints)))

    def measure(self, found: Sequence[Job]) -> None:
        """Measure what is missing; what a task finds is written when it ends."""
        add([record for job in found for record in job.by_model()])
        todo = deque(_Task(job, job.request.templates) for job in found)
        flights: dict[Future[str], tuple[_Task, float]] = {}
        while todo or flights:
            self.report_on(found, [*todo, *(task for task, _ in flights.values())])
            while todo and len(flights) < self.at_once:
                task = todo.popleft()
                request = evolve(task.job.request, templates=task.templates).text()
                limit = LIMIT + EACH * len(task.templates)
                future = self.pool.submit(request, limit, anew=task.sure and not flights)
                flights[future] = task, monotonic() + limit + GRACE
            due = min(due for _, due in flights.values())
            done, _ = wait(flights, max(0.0, due - monotonic()), FIRST_COMPLETED)
            late = [f for f, (_, due) in flights.items() if due <= monotonic()]
            for future in done or late:
                task, _ = flights.pop(future)
                todo.extendleft(reversed(self.ended(task, future)))
        self.report_on(found, [])

    def report_on(self, found: Sequence[Job], tasks: Sequence[_Task]) -> None:
        """Tell how many groups are done, and which is next."""
        waiting = dict.fromkeys(task.job for task in tasks)
        now = next((j.operators for j in found if j in waiting), "")
        self.report(now, len(found) - len(waiting), len(found))

    def ended(self, task: _Task, future: Future[str]) -> list[_Task]:
        """Write what a task found; what has to be tried again is returned."""
        try:
            answer = Answer.read(future.result(timeout=0))
        except HungError:
            return self.failed(task, "hung")
        except DeadError:
            return self.failed(task, "crashed")
        except TimeoutError:
            self.remarks.append(self.pool.give_up("an executor gave no answer in time"))
            return self.failed(task, "hung")
        except BrokenExecutor as error:
            self.remarks.append(self.pool.give_up(f"the pool of an executor broke: {error}"))
            return self.failed(task, "crashed")
        except Exception as error:  # noqa: BLE001, RUF100  (of whatever the executor has run)
            job = task.job
            self.refused.add((job.group.key, job.sizes, bool(job.request.apart)))
            self.remarks.append(f"{job.operators}: not measured: {error}")
            return []
        self.keep(task.job, answer, count=not task.sure)
        if task.sure or not answer.beside:
            return []
        usual = task.templates[0]
        known = snapshot().evaluator.known(task.job.group, task.job.sizes)
        if task.job.request.apart:
            return self.doubted(task, known.get(APART))
        best = ranked(usual, [known])[0]
        if best == usual or best not in answer.samples:
            return []
        return [_Task(task.job, (usual, best), sure=True)]

    def doubted(self, task: _Task, units: Record | None) -> list[_Task]:
        """Once more, where a pattern did otherwise than the plan has it."""
        share = None if units is None else units.fused_share
        if share is None or (share < 1.0) == task.job.chosen:
            return []
        return [evolve(task, sure=True)]

    def failed(self, task: _Task, fault: str) -> list[_Task]:
        """Smaller tasks, to find the template that it was; that one is marked.

        The usual template is first tried alone, then each other one beside it, and by itself if the
        usual one is at fault. All of them twice: something else may have ended it.
        """
        usual, *others = task.templates
        job = task.job
        known = snapshot().evaluator.known(job.group, job.sizes).get(usual)
        tried = known is not None and known.source is Source.MEASURED
        if len(others) > 1 or (others and not tried):
            pairs = [_Task(job, (usual, t)) for t in others]
            return pairs if tried else [_Task(job, (usual,)), *pairs]
        if others and known is not None and known.fault:
            return [_Task(job, tuple(others))]
        if not task.failed:
            return [evolve(task, failed=1)]
        self.remarks.append(f"{job.operators}: {task.templates[-1]} {fault}")
        self.keep(job, Answer({}, {task.templates[-1]: fault}))
        return []

    def keep(self, job: Job, answer: Answer, count: bool = True) -> None:
        """Write the records of an answer."""
        texts = [*dict.fromkeys([*answer.samples, *answer.faults])]
        records: list[Record] = [job.record(t, answer) for t in texts]
        self.measured += len(records) if count else 0
        add(records)


def _tuned(
    plan: Graph, evaluator: Evaluator, sizes: Mapping[str, int]
) -> Iterable[Tuned]:
    """What the groups of a plan have become."""
    target = plan.attrs["options"]["target"]
    for node, group in plan.attrs["subgraph"].items():
        known = evaluator.known(group, sizes_of(group, sizes))
        default = plan_group(group, target)
        assert isinstance(default, Schedule)
        usual = str(template_of(group, default, target))
        now = str(template_of(group, plan.attrs["schedule"][node], target))
        before, after = (known[t].seconds if t in known else 0.0 for t in (usual, now))
        yield Tuned(
            name=plan.names[node],
            operators=", ".join(n.label for n in group.ops),
            usual=usual,
            template=now,
            before=before,
            after=after,
            measured=sum(r.source is Source.MEASURED for t, r in known.items() if t != APART),
            faults={t: r.fault for t, r in known.items() if r.fault and t != APART},
        )
