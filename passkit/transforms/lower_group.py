"""Lowering of any group: of one space, stitched of several, packed of parts, or in phases."""

from __future__ import annotations

from passkit.analysis.group import Group
from passkit.ast.stage import KernelAST
from passkit.schedule.schedule import Schedule
from passkit.schedule.shared_plan import SharedPlan
from passkit.transforms.build_nests import lower_multi_nest
from passkit.transforms.build_pack import build_pack
from passkit.transforms.build_phases import build_phases
from passkit.transforms.build_stages import lower_single_nest
from passkit.transforms.insert_barriers import insert_barriers
from passkit.transforms.legalize_floats import legalize_floats
from passkit.values.dtype import is_narrow
from passkit.values.size import Extent


def lower(group: Group, schedule: Schedule, shared: SharedPlan) -> tuple[KernelAST, Extent]:
    """The kernel AST of a group, and its number of tiles.

    Raises: CodeGenError when the schedule was made for another group.
    """
    if schedule.phase_outputs:
        return build_phases(group, schedule, shared, lower)
    if schedule.parts:
        ast, tiles = build_pack(group, schedule, shared, lower)
        return insert_barriers(ast), tiles
    chosen = lower_single_nest if schedule.multi_nest is None else lower_multi_nest
    ast, tiles = chosen(group, schedule, shared)
    dtypes = [e.dtype for n in group.graph.nodes for e in n.entries]
    narrow = any(d is not None and is_narrow(d) for d in dtypes)
    return insert_barriers(legalize_floats(ast) if narrow else ast), tiles
