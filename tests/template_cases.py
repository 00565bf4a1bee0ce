"""Random groups with every template that they can have, and what their kernels must agree on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from attrs import frozen

import passkit as pk
from passkit.errors import PasskitError
from passkit.graph.graph import Graph
from passkit.graph.kernel import Kernel
from passkit.library.candidates import Candidate, candidates_of
from passkit.program.executable import Executable
from passkit.program.planning import planned
from tests.fuzzing import UnequalError, blocks_of, options, runs, said
from tests.random_graphs import random_case
from tests.random_graphs.case import text_of
from tests.random_stitches import random_stitch
from tests.test_random_stitches import agree
from tests.together import prebuilt, together

STITCHED = 4
"""Of so many graphs one is stitched."""


@frozen(eq=False)
class Subject:
    """A graph, how it is compiled natively and block by block, and how a run of it is judged."""

    seed: int
    graph: Graph
    native: Mapping[str, Any]
    blocks: Mapping[str, Any]
    judge: Callable[[Any], None]

    def __str__(self) -> str:
        return f"seed {self.seed}\n{text_of(self.graph)}"


class _Asking:
    """An executable of a planned graph: inputs that the plan could do without are not its own."""

    def __init__(self, run: Executable) -> None:
        self.run, self.state = run, run.state
        self.names = {n.name for n in run.inputs}

    def __call__(self, feeds: Mapping[str, Any]) -> Any:
        return self.run({name: x for name, x in feeds.items() if name in self.names})


def subject(seed: int) -> Subject:
    """The subject of a seed."""
    if seed % STITCHED == 0:
        graph, names = random_stitch(seed // STITCHED)
        together = {"keep_together": names}
        return Subject(
            seed, graph, together, {**together, "target": "blocks"}, lambda run: agree(graph, run)
        )
    case = random_case(seed)
    blocks = {"target": blocks_of(case), "fusion": case.fusion}

    def judge(run: Any) -> None:
        for _ in runs(_Asking(run), case, None):
            pass

    return Subject(seed, case.graph, options(case), blocks, judge)


def ways(graph: Graph, **given: Any) -> dict[str, tuple[Candidate, ...]]:
    """The variants of each group, by the name of its node."""
    plan = planned(graph, "SchedulePlan", **given)
    target = plan.attrs["options"]["target"]
    return {plan.names[n]: candidates_of(g, target) for n, g in plan.attrs["subgraph"].items()}


def overrides(alternatives: Mapping[str, tuple[Candidate, ...]]) -> Iterator[dict[str, Any]]:
    """Templates for all groups at a time, until each has had all of its own."""
    for k in range(max(map(len, alternatives.values()), default=0)):
        yield {name: own[k].template for name, own in alternatives.items() if k < len(own)}


def kernels_of(plan: Graph) -> dict[str, Kernel]:
    """The kernels of a planned graph by the names of the fused nodes."""
    kernels = plan.attrs["kernel"]
    return {plan.names[n]: kernels[n] for n in plan.attrs["subgraph"]}


def texts(one: Subject, target: str) -> tuple[int, dict[str, str]]:
    """How many groups a subject has on a target, and their kernels under each template, by key."""
    how = {**one.native, "target": target}
    fused = planned(one.graph, "Fusion", **how)
    alternatives = ways(fused, **how)
    sources: dict[str, str] = {}
    for given in [{}, *overrides(alternatives)]:
        plan = planned(fused, "CodeGen", **how, templates=given)
        sources |= {k.key: k.source for k in kernels_of(plan).values()}
    return len(alternatives), sources


def wired(subjects: Iterable[Subject]) -> list[list[Graph]]:
    """The native plans of each subject under all its templates, compiled together.

    What is wrong with a subject has no plans here; `check` finds it again and says it.
    """
    plans: list[list[Graph]] = []
    for one in subjects:
        plans.append([])
        with suppress(Exception):
            fused = planned(one.graph, "Fusion", **one.native)
            given = overrides(ways(fused, **one.native))
            plans[-1] = [planned(fused, "CodeGen", **one.native, templates=t) for t in given]
    together(plan for own in plans for plan in own)
    return plans


def check(
    one: Subject, blocks: bool = True, ready: Sequence[Graph] = ()
) -> tuple[int, int, list[str]]:
    """How many groups and templates a subject has, and what is wrong with any of them.

    ``ready`` are its plans, where `wired` has made them.
    """
    try:
        fused = planned(one.graph, "Fusion", **one.native)
        alternatives = ways(fused, **one.native)
        given = list(overrides(alternatives))
        own = [{**one.native, "templates": t} for t in given]
        ready = ready or prebuilt([fused] * len(given), own)
        wrong = [*_alike(one, ready, given), *_results(one, ready, own)]
        if blocks:
            fused = planned(one.graph, "Fusion", **one.blocks)
            own = [{**one.blocks, "templates": t} for t in overrides(ways(fused, **one.blocks))]
            wrong += _results(one, [fused] * len(own), own)
    except Exception as error:  # noqa: BLE001, RUF100
        return 0, 0, [f"{one}\n{said(error)}"]
    return len(alternatives), sum(map(len, alternatives.values())), wrong


def _results(
    one: Subject, plans: Iterable[Graph], options: Iterable[Mapping[str, Any]]
) -> Iterator[str]:
    """Run a subject by each plan under its templates, and yield a text for each wrong result."""
    for plan, own in zip(plans, options, strict=True):
        try:
            one.judge(pk.compile(plan, **own))
        except (UnequalError, AssertionError, PasskitError) as error:
            yield f"{one}\n{_shown(own['templates'])}\n{said(error)}"


def _alike(one: Subject, ready: Sequence[Graph], given: list[dict[str, Any]]) -> Iterator[str]:
    """Two templates of a group whose kernels are one text with the same tiles."""
    seen: dict[tuple[Any, ...], Any] = {}
    for plan, templates in zip(ready, given, strict=True):
        kernels = kernels_of(plan)
        for name, template in templates.items():
            kernel = kernels[name]
            what = name, kernel.source, kernel.sizes, kernel.grid
            if what in seen:
                yield f"{one}\n{name} has one kernel for {seen[what]} and for {template}"
            seen[what] = template


def _shown(templates: Mapping[str, Any]) -> str:
    return "\n".join(f"  {name}: {template}" for name, template in templates.items())
