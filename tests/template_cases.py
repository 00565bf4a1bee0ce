"""Random groups with all their templates, under which kernels must have equal results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from attrs import evolve, frozen

import passkit as pk
from passkit.errors import FeedError, PasskitError
from passkit.graph.graph import Graph
from passkit.graph.kernel import Kernel
from passkit.library.candidates import Candidate, candidates_of
from passkit.program.executable import Executable
from passkit.program.planning import planned
from passkit.runtime.feeds import bind_sizes
from tests.fuzzing import UnequalError, blocks_of, options, runs, said
from tests.random_graphs import random_case
from tests.random_graphs.case import text_of
from tests.random_stitches import random_stitch
from tests.test_random_stitches import agree
from tests.together import prebuilt, together

MULTI_NEST_PERIOD = 4
"""One of so many graphs has a multi-nest kernel."""


@frozen(eq=False)
class Subject:
    """A random graph.

    Attributes:
        seed: its seed.
        graph: the graph.
        native: the options of native compilation.
        blocks: the options of the block interpreter.
        judge: compares the results of an executable with the interpreter.
    """

    seed: int
    graph: Graph
    native: Mapping[str, Any]
    blocks: Mapping[str, Any]
    judge: Callable[[Any], None]

    def __str__(self) -> str:
        return f"seed {self.seed}\n{text_of(self.graph)}"


class _StateOfGraph:
    """The variables of a graph: those of its plan, and initial values of others, which stay."""

    def __init__(self, run: Executable, graph: Graph) -> None:
        self.own = run.state
        self.others = {n.name: n.params["initial"] for n in graph.states}

    @property
    def arrays(self) -> Mapping[str, Any]:
        """The arrays of the plan's variables."""
        return self.own.arrays

    def __getitem__(self, name: str) -> Any:
        return self.own[name] if name in self.own.arrays else self.others[name]


class _OfGraph:
    """An executable of a plan that lacks inputs and variables of its graph which nothing reads."""

    def __init__(self, run: Executable, graph: Graph) -> None:
        self.run, self.state = run, _StateOfGraph(run, graph)
        self.names = {n.name for n in run.inputs}

    def __call__(self, feeds: Mapping[str, Any]) -> Any:
        return self.run({name: x for name, x in feeds.items() if name in self.names})


def subject(seed: int) -> Subject:
    """Return the subject of a seed."""
    if seed % MULTI_NEST_PERIOD == 0:
        graph, names = random_stitch(seed // MULTI_NEST_PERIOD)
        together = {"keep_together": names}
        return Subject(
            seed, graph, together, {**together, "target": "blocks"}, lambda run: agree(graph, run)
        )
    case = random_case(seed)
    case = evolve(case, feeds=tuple(f for f in case.feeds if _has_general_shapes(case.graph, f)))
    blocks = {"target": blocks_of(case), "fusion": case.fusion}

    def judge(run: Any) -> None:
        for _ in runs(_OfGraph(run, case.graph), case, None):
            pass

    return Subject(seed, case.graph, options(case), blocks, judge)


def _has_general_shapes(graph: Graph, feeds: Mapping[str, Any]) -> bool:
    """Return whether arrays have the shapes that inference finds for the inputs of a graph.

    A graph that is planned for these takes no others. Compiled from the source graph, others are
    planned at the call, without templates: an undeclared extent of 1 broadcasts, for example.
    """
    complete = pk.ApplyPasses(graph, "Complete")
    names = complete.names
    try:
        bind_sizes(
            (names[n], complete.shape(n.entries[0]), feeds[names[n]].shape) for n in complete.inputs
        )
    except FeedError:
        return False
    return True


def candidates_by_group(graph: Graph, **options: Any) -> dict[str, tuple[Candidate, ...]]:
    """Return the candidates of each group, by the name of its node."""
    plan = planned(graph, "SchedulePlan", **options)
    target = plan.attrs["options"]["target"]
    return {plan.names[n]: candidates_of(g, target) for n, g in plan.attrs["subgraph"].items()}


def overrides(alternatives: Mapping[str, tuple[Candidate, ...]]) -> Iterator[dict[str, Any]]:
    """Yield the k-th templates of all groups, for each k."""
    for k in range(max(map(len, alternatives.values()), default=0)):
        yield {name: own[k].template for name, own in alternatives.items() if k < len(own)}


def kernels_of(plan: Graph) -> dict[str, Kernel]:
    """Return the kernels of a planned graph by the names of the fused nodes."""
    kernels = plan.attrs["kernel"]
    return {plan.names[n]: kernels[n] for n in plan.attrs["subgraph"]}


def texts(one: Subject, target: str) -> tuple[int, dict[str, str]]:
    """Return the number of groups of a subject on a target, and the texts of kernels by key.

    The kernels are those under all templates.
    """
    options = {**one.native, "target": target}
    fused = planned(one.graph, "Fusion", **options)
    alternatives = candidates_by_group(fused, **options)
    sources: dict[str, str] = {}
    for templates in [{}, *overrides(alternatives)]:
        plan = planned(fused, "CodeGen", **options, templates=templates)
        sources |= {k.key: k.source for k in kernels_of(plan).values()}
    return len(alternatives), sources


def native_plans(subjects: Iterable[Subject]) -> list[list[Graph]]:
    """Return the native plans of each subject under all its templates, compiled together.

    A subject with an error has no plans; `check` reports the error.
    """
    plans: list[list[Graph]] = []
    for one in subjects:
        plans.append([])
        with suppress(Exception):
            fused = planned(one.graph, "Fusion", **one.native)
            given = overrides(candidates_by_group(fused, **one.native))
            plans[-1] = [planned(fused, "CodeGen", **one.native, templates=t) for t in given]
    together(plan for own in plans for plan in own)
    return plans


def check(
    one: Subject, blocks: bool = True, ready: Sequence[Graph] = ()
) -> tuple[int, int, list[str]]:
    """Return the numbers of groups and templates of a subject, and a text for each fault.

    Args:
        one: the subject.
        blocks: whether to run the block interpreter, too.
        ready: the plans of the subject by `native_plans`, if there are any.
    """
    try:
        fused = planned(one.graph, "Fusion", **one.native)
        alternatives = candidates_by_group(fused, **one.native)
        given = list(overrides(alternatives))
        own = [{**one.native, "templates": t} for t in given]
        ready = ready or prebuilt([fused] * len(given), own)
        faults = [*_alike(one, ready, given), *_results(one, ready, own)]
        if blocks:
            fused = planned(one.graph, "Fusion", **one.blocks)
            own = [
                {**one.blocks, "templates": t}
                for t in overrides(candidates_by_group(fused, **one.blocks))
            ]
            faults += _results(one, [fused] * len(own), own)
    except Exception as error:  # noqa: BLE001, RUF100
        return 0, 0, [f"{one}\n{said(error)}"]
    return len(alternatives), sum(map(len, alternatives.values())), faults


def _results(
    one: Subject, plans: Iterable[Graph], options: Iterable[Mapping[str, Any]]
) -> Iterator[str]:
    """Run a subject by each plan under its templates, and yield a text for each wrong result."""
    for plan, own in zip(plans, options, strict=True):
        try:
            one.judge(pk.compile(plan, **own))
        except (UnequalError, AssertionError, PasskitError) as error:
            yield f"{one}\n{_templates_text(own['templates'])}\n{said(error)}"


def _alike(one: Subject, ready: Sequence[Graph], given: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a text for two templates of a group with equal kernels."""
    seen: dict[tuple[Any, ...], Any] = {}
    for plan, templates in zip(ready, given, strict=True):
        kernels = kernels_of(plan)
        for name, template in templates.items():
            kernel = kernels[name]
            identity = name, kernel.source, kernel.sizes, kernel.grid
            if identity in seen:
                yield f"{one}\n{name} has one kernel for {seen[identity]} and for {template}"
            seen[identity] = template


def _templates_text(templates: Mapping[str, Any]) -> str:
    """Return a line for each template."""
    return "\n".join(f"  {name}: {template}" for name, template in templates.items())
