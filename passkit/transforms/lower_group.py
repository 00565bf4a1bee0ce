"""Lowering of any group: of one space, stitched of several, packed of parts, or in phases."""

from __future__ import annotations

from passkit.analysis.group import Group
from passkit.ast.stage import KernelAST
from passkit.schedule.schedule import Schedule
from passkit.schedule.shared_plan import SharedPlan
from passkit.transforms.build_nests import lower_stitched
from passkit.transforms.build_pack import packed
from passkit.transforms.build_phases import phased
from passkit.transforms.build_stages import lower_plain
from passkit.transforms.insert_barriers import with_waits
from passkit.transforms.legalize_floats import without_narrow
from passkit.values.dtype import is_narrow
from passkit.values.size import Extent


def lower(group: Group, schedule: Schedule, shared: SharedPlan) -> tuple[KernelAST, Extent]:
    """The kernel AST of a group, and its number of tiles.

    Raises: CodeGenError when the schedule was made for another group.
    """
    if schedule.makes:
        return phased(group, schedule, shared, lower)
    if schedule.parts:
        ast, tiles = packed(group, schedule, shared, lower)
        return with_waits(ast), tiles
    chosen = lower_plain if schedule.stitching is None else lower_stitched
    ast, tiles = chosen(group, schedule, shared)
    dtypes = [e.dtype for n in group.graph.nodes for e in n.entries]
    narrow = any(d is not None and is_narrow(d) for d in dtypes)
    return with_waits(without_narrow(ast) if narrow else ast), tiles
