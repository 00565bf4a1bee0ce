"""Lowering of a group to a kernel AST: of one loop nest, of several, of a pack, or of phases."""

from __future__ import annotations

from passkit.analysis.group import Group
from passkit.ast.stage import KernelAST
from passkit.schedule.schedule import Schedule
from passkit.schedule.shared_plan import SharedPlan
from passkit.transforms.build_nests import lower_multi_nest
from passkit.transforms.build_stages import lower_single_nest
from passkit.transforms.compose import compose_pack, compose_phases
from passkit.transforms.insert_barriers import insert_barriers
from passkit.transforms.legalize_floats import legalize_floats
from passkit.values.dtype import is_narrow
from passkit.values.size import Extent


def lower(group: Group, schedule: Schedule, shared: SharedPlan) -> tuple[KernelAST, Extent]:
    """Return the kernel AST of a group, and its number of tiles.

    Args:
        group: the group.
        schedule: its schedule.
        shared: the plan of its scratch memory.

    Raises: CodeGenError if the schedule was made for another group.
    """
    if schedule.phase_outputs:
        return compose_phases(group, schedule, shared, lower)
    if schedule.parts:
        ast, tiles = compose_pack(group, schedule, shared, lower)
        return insert_barriers(ast), tiles
    lower_nests = lower_single_nest if schedule.multi_nest is None else lower_multi_nest
    ast, tiles = lower_nests(group, schedule, shared)
    dtypes = [e.dtype for n in group.graph.nodes for e in n.entries]
    has_narrow = any(d is not None and is_narrow(d) for d in dtypes)
    return insert_barriers(legalize_floats(ast) if has_narrow else ast), tiles
