"""Exploration: sets of clusters that grow across cuts, within budgets, each examined once."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.analysis.group import Group
from passkit.fusion.cluster_groups import ClusterGroups
from passkit.fusion.explore import Explorer, substitution
from passkit.fusion.score import Costs, Scorer
from passkit.fusion.seed import seed_plan
from passkit.passes.context import PassContext
from passkit.target import Target, cpu
from tests.fusion.test_select import SLOW, analysed, attention

o = pk.ops
AMPLE = 10_000


def explorer_of(graph: pk.Graph, budget: int = AMPLE, target: Target = SLOW) -> Explorer:
    """Return an exploration that has run, in which so many operators may be planned."""
    graph = analysed(graph)
    with PassContext(target=target) as context:
        explorer = Explorer(
            ClusterGroups(graph, seed_plan(graph, context), context),
            Scorer(target, Costs(counted_seconds), budget),
        )
        planned.clear()
        explorer.run()
    return explorer


planned: list[Group] = []


def counted_seconds(group: Group, target: Target) -> float:
    """Return a tenth of a millisecond for each kernel, and remember the group."""
    planned.append(group)
    return 1e-4


def chain(count: int) -> pk.Graph:
    """Return products with an activation after each, and two uses of every other value."""
    values = [pk.var("x", (32, 16))]
    for k in range(count):
        y = o.tanh(o.matmul(values[-1], pk.var(f"w{k}", (16, 16))))
        values.append(y + values[-1] if k % 2 else y)
    return pk.Graph([values[-1], values[1]])


def test_sets_grow_across_cuts() -> None:
    """Product, softmax and product are one set, which cuts at products never give."""
    explorer = explorer_of(attention(64, 94, 32), target=cpu())
    groups = explorer.groups
    products = {k for k in range(len(groups)) if groups.is_product(k)}
    everything = frozenset(range(len(groups)))

    assert len(products) == 2 and everything in explorer.candidates
    assert everything not in substitution(groups.predecessors, products)


def test_sets_have_all_that_is_between_their_clusters() -> None:
    """No path leaves an examined set and returns; what is on paths is added to it."""
    explorer = explorer_of(chain(6))
    quotient = explorer.groups.quotient
    spread = [m for m in explorer.candidates if len(m) > 2]

    assert spread and all(quotient.can_merge(m) for m in explorer.candidates)
    for members in spread:
        ends = frozenset((min(members), max(members)))
        assert explorer.closed(ends) <= members


@pytest.mark.parametrize("budget", [0, 20, 60])
def test_no_more_operators_are_planned_than_the_budget(budget: int) -> None:
    """Kernels that were planned have at most so many operators; equal ones are planned once."""
    explorer = explorer_of(chain(8), budget)
    keys = [g.key for g in planned]

    assert sum(len(g.ops) for g in planned) == budget - explorer.scorer.left <= budget
    assert len(keys) == len(set(keys))
    assert len(explorer.candidates) < len(explorer_of(chain(8)).candidates)


def test_a_set_is_examined_once() -> None:
    """The second time a set is asked for it is not scored again."""
    explorer = explorer_of(chain(4))
    left, (members, candidate) = explorer.scorer.left, next(iter(explorer.candidates.items()))
    planned.clear()

    assert explorer.examine(members) is candidate
    assert (planned, explorer.scorer.left) == ([], left)


def test_sets_are_limited() -> None:
    """A set has at most as many clusters, and operators, as the target's limits say."""
    few = evolve(SLOW, fusion=evolve(SLOW.fusion, pattern_groups=3))
    small = evolve(SLOW, fusion=evolve(SLOW.fusion, pattern_ops=4))
    sizes = {len(m) for m in explorer_of(chain(8), target=few).candidates}
    explorer = explorer_of(chain(8), target=small)
    clusters = explorer.groups.quotient.clusters
    counts = [sum(len(clusters[k].nodes) for k in m) for m in explorer.candidates]

    assert max(sizes) == 3 < max(map(len, explorer_of(chain(8)).candidates))
    assert counts and np.max(counts) <= 4
