"""Selection: the strategy "stitch" chooses which groups become one, by what that gains.

It begins with seed groups. Larger patterns of them are explored, and those are chosen that gain
most together: by a tree if they are nested, else by integer programming. The result is never slower
than the seed groups, by the same costs.

Source: FusionStitching (2019), fusion plans.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import evolve, frozen

from passkit.diagnostics import Diagnostic
from passkit.fusion.cluster_groups import ClusterGroups
from passkit.fusion.explore import Explorer, Members
from passkit.fusion.fusion_plan import FusionPlan
from passkit.fusion.memory import Memory
from passkit.fusion.options import FusionOptions
from passkit.fusion.report import EdgeDecisions, SelectionReport
from passkit.fusion.score import MODEL, Costs, Scorer
from passkit.fusion.selection.exact import exact
from passkit.fusion.selection.problem import Pattern, Problem, Selection
from passkit.fusion.split import Bodies, may_differ, splits
from passkit.graph.graph import Graph
from passkit.graph.node import is_leaf
from passkit.schedule.cost import peak_seconds

ROUNDS = 8
"""How often patterns are selected, if a GPU has no maps for some."""


@frozen(eq=False)
class Exploration:
    """The patterns of a fusion plan.

    Attributes:
        fusion_plan: the plan, in which groups that are better split are split.
        explorer: the exploration of its clusters.
        problem: the patterns that pay.
        selection: the best selection of these.
    """

    fusion_plan: FusionPlan
    explorer: Explorer
    problem: Problem
    selection: Selection

    @property
    def groups(self) -> ClusterGroups:
        """The clusters."""
        return self.explorer.groups

    def seconds(self, numbers: Iterable[int]) -> float:
        """Return the seconds of clusters, each a kernel of its own."""
        return sum(self.explorer.costs[k] for k in numbers)

    def report(self, chosen: int, after: float, peaks: tuple[int, int]) -> SelectionReport:
        """Return the selection in numbers.

        Args:
            chosen: how many patterns were chosen in the end.
            after: the seconds of all kernels and calls afterwards.
            peaks: the largest bytes of values between kernels, before and after.
        """
        candidates = self.explorer.candidates.values()
        return SelectionReport(
            operators=len(self.groups.quotient.cluster_of),
            units=len(self.groups),
            tried=len(candidates),
            pool=len(self.problem.patterns),
            rows=self.selection.rows,
            cuts=self.selection.cuts,
            solver=self.selection.solver,
            gap=self.selection.gap,
            chosen=chosen,
            before=sum(self.explorer.costs),
            after=after,
            measured=sum(c.is_measured for c in candidates),
            peaks=peaks,
        )


def explored(
    graph: Graph,
    fusion_plan: FusionPlan,
    context: FusionOptions,
    costs: Costs = MODEL,
) -> Exploration | None:
    """Return the patterns of a fusion plan, and the best selection; None as in `selected`."""
    if not context.target.costed or _is_final(graph, fusion_plan):
        return None
    groups = ClusterGroups(graph, fusion_plan, context)
    limits = context.target.fusion
    budget = min(
        limits.planned_ops,
        limits.planned_ops_base + limits.planned_ops_each * len(groups.quotient.cluster_of),
    )
    scorer = Scorer(context.target, costs, budget)
    parts_of = {k: b for k, b in splits(groups, scorer).items() if _spend_for_split(groups, k)}
    if parts_of:
        fusion_plan = _split(groups, fusion_plan, parts_of)
        groups = ClusterGroups(graph, fusion_plan, context)
    explorer = Explorer(groups, scorer)
    problem, selection = _solved(explorer)
    return Exploration(fusion_plan, explorer, problem, selection)


def _solved(explorer: Explorer) -> tuple[Problem, Selection]:
    """Return the patterns that pay, and the best selection of them.

    Patterns that a GPU has no maps for are none. Only those that are selected are tested, and after
    some rounds no others are chosen.
    """
    few = explorer.scorer.target.fusion.enumerated_patterns
    problem = explorer.run()
    mapped: set[Members] = set()
    for round_ in range(ROUNDS):
        selection = exact(problem, few)
        chosen = [problem.patterns[k].members for k in selection.chosen]
        refused = [m for m in chosen if m not in mapped and explorer.refuse(m)]
        if not refused:
            break
        mapped.update(m for m in chosen if m not in refused)
        patterns = explorer.patterns()
        if round_ == ROUNDS - 2:
            patterns = [p for p in patterns if p.members in mapped]
        problem = Problem(problem.predecessors, patterns)
    return problem, selection


def selected(
    graph: Graph,
    fusion_plan: FusionPlan,
    context: FusionOptions,
    costs: Costs = MODEL,
) -> tuple[FusionPlan, SelectionReport | None]:
    """Return the plan with groups merged, with each other and with products, if that pays.

    Args:
        graph: the graph.
        fusion_plan: the groups to begin with.
        context: the target, the hints and the fuel.
        costs: the source of seconds.

    Returns: the plan, and the selection in numbers. The latter is None if nothing can be chosen:
        one kernel computes all operators element by element, or the target has no cost model.
    """
    exploration = explored(graph, fusion_plan, context, costs)
    if exploration is None:
        return fusion_plan, None
    explorer, start = exploration.explorer, exploration.fusion_plan
    patterns = _affordable(exploration)
    result = start
    before = after = float(sum(explorer.costs))
    peaks = (explorer.memory.peak,) * 2
    if patterns:
        result = _merged(exploration, patterns)
        groups = ClusterGroups(graph, result, context)
        total, memory = _total_seconds(groups, explorer), Memory(groups)
        lost = peak_seconds(explorer.memory.beyond(memory.peak), context.target)
        if total is None or total + lost >= before:
            patterns, result = [], start
        else:
            after, peaks = total, (peaks[0], memory.peak)
    log = list(EdgeDecisions(explorer, patterns).final(start.log))
    return evolve(result, log=log), exploration.report(len(patterns), after, peaks)


def _is_final(graph: Graph, fusion_plan: FusionPlan) -> bool:
    """Return whether all operators are in one group that no split can make faster."""
    nodes = [n for n in graph.nodes if not is_leaf(n)]
    grouped = sum(map(len, fusion_plan.groups))
    return len(fusion_plan.groups) == 1 and grouped == len(nodes) and not may_differ(nodes)


def _spend_for_split(groups: ClusterGroups, number: int) -> bool:
    """Return whether there is fuel to split a cluster."""
    first = groups.quotient.clusters[number].nodes[0]
    return groups.context.spend(f"split at {groups.graph.names[first]}")


def _split(
    groups: ClusterGroups, fusion_plan: FusionPlan, parts_of: dict[int, Bodies]
) -> FusionPlan:
    """Return the plan with some clusters split into their parts."""
    parts = [(body, ()) for bodies in parts_of.values() for body in bodies]
    return fusion_plan.with_groups(parts).with_log(
        groups.graph,
        Diagnostic("fused.domain"),
        lambda d: Diagnostic("cost.apart", {"producer": d.producer, "consumer": d.consumer}),
    )


def _affordable(exploration: Exploration) -> list[Pattern]:
    """Return the selected patterns, as far as there is fuel for them."""
    groups, patterns = exploration.groups, exploration.problem.patterns
    affordable = []
    for k in exploration.selection.chosen:
        first = groups.quotient.clusters[min(patterns[k].members)].nodes[0]
        if groups.context.spend(f"stitch {groups.graph.names[first]}"):
            affordable.append(patterns[k])
    return affordable


def _merged(exploration: Exploration, patterns: Sequence[Pattern]) -> FusionPlan:
    """Return the plan with a group for each pattern."""
    quotient, fusion_plan = exploration.groups.quotient, exploration.fusion_plan
    return fusion_plan.with_groups(quotient.nodes(p.members) for p in patterns)


def _total_seconds(groups: ClusterGroups, explorer: Explorer) -> float | None:
    """Return the seconds of all clusters that may be merged; None if one cannot be a kernel.

    Those that are as they were take as long as they did.
    """
    start = explorer.groups
    cost_before = {
        (*cluster.nodes, *start.live_outs[k]): explorer.costs[k]
        for k, cluster in enumerate(start.quotient.clusters)
        if start.is_open(k) and explorer.costs[k]
    }
    total = 0.0
    for k, cluster in enumerate(groups.quotient.clusters):
        if groups.is_open(k) and not groups.takes_no_time[k]:
            cost: float | Diagnostic | None
            cost = cost_before.get((*cluster.nodes, *groups.live_outs[k]))
            if cost is None:
                cost = explorer.scorer.cost(groups.group([k]), bounded=False)
            if isinstance(cost, Diagnostic) and len(cluster.nodes) > 1:
                return None
            total += cost if isinstance(cost, float) else 0.0
    return total
