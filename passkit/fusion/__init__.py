"""Fusion: which operators share a kernel, as a strategy decides and legality allows.

The pass `passes/fusion.py` asks a strategy for a `FusionPlan`, contracts each of its groups to a
fused node, and then forms phases, joins and packs of these nodes. To read in this order:

- `fusion_plan`: groups of operators, and the log of decisions; `contract`: a fused node for each.
- `legality`, with `fusible` and `domain_cluster`: why operators cannot share a kernel.
- `strategies`: "none", "nnvm", "xla", "deep" (with `common_splits`) and "stitch"; `strategy`: their
  registry; `check_plan`: the groups that a strategy of a user returns.
- "stitch": `seed` (groups of one iteration domain), `split`, `explore` (sets of groups), `score`
  (their seconds) and `memory` (their peak), `selection` (those that gain most together), `select`
  (all these in turn), `recompute`, `report`.
- on the contracted graph: `phases`, `joins` and `pack`, by `union`.
- `keep_together`: the option; `alternatives`: groups that a tuner compares with their parts.
"""
