"""How a kernel runs as loop nests: its schedule, its rule, and what it takes of a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from attrs import evolve, frozen

from passkit.analysis.domain_info import DomainInfo, analyze_domain
from passkit.analysis.group import Group
from passkit.diagnostics import Diagnostic
from passkit.ir.loop import LaunchShape
from passkit.planner.cpu import RULES, tile_nest
from passkit.planner.nests import scheduled_nest
from passkit.planner.packs import packed_nests
from passkit.schedule.block import BlockSchedule
from passkit.schedule.block_memory import staged_operands
from passkit.schedule.block_nest import BlockNest, ProductPart
from passkit.schedule.block_text import block_text
from passkit.schedule.compose import blocks_of_pack, side_by_side
from passkit.schedule.limits import shared_nbytes
from passkit.schedule.loop_nest import LoopNest
from passkit.schedule.nest import NestSchedule
from passkit.schedule.pack import PackSchedule
from passkit.schedule.phases import groups_of_parts
from passkit.schedule.schedule import Schedule
from passkit.schedule.shared_plan import largest
from passkit.schedule.template_loops import operator_names
from passkit.schedule.text import pack_text, schedule_text, tile_schedule_text
from passkit.target import Target
from passkit.transforms.block_parts import block_nest
from passkit.values.size import Extent
from passkit.values.units import bytes_text


@frozen
class NestResources:
    """The resources of a GPU that the kernel of a nest takes.

    Attributes:
        threads: The threads of a block.
        blocks: The blocks of the grid.
        resident_blocks: The blocks that a multiprocessor is counted on to have at a time.
        registers: The registers that a thread has at most with so many blocks.
        shared_nbytes: The bytes of shared memory that a block has for rows, columns or tiles.
        thread_nbytes: The bytes of inputs that a thread loads before it computes.
        multiprocessors: The multiprocessors of the target; 0 if they are not known.
    """

    threads: int
    blocks: Extent
    resident_blocks: int
    registers: int
    shared_nbytes: int
    thread_nbytes: int
    multiprocessors: int

    @property
    def nbytes_in_flight(self) -> int:
        """The bytes that the threads of a multiprocessor load at a time."""
        return self.thread_nbytes * self.threads * self.resident_blocks

    @property
    def waves(self) -> float | None:
        """The number of times that blocks fill all multiprocessors; None for an unknown number."""
        at_once = self.multiprocessors * self.resident_blocks
        return self.blocks / at_once if at_once and isinstance(self.blocks, int) else None

    def as_dict(self) -> dict[str, object]:
        """Return the numbers as a dict that JSON can hold; symbolic ones are texts."""
        return {
            "threads": self.threads,
            "blocks": self.blocks if isinstance(self.blocks, int) else str(self.blocks),
            "resident_blocks": self.resident_blocks,
            "registers": self.registers,
            "shared_bytes": self.shared_nbytes,
            "thread_bytes": self.thread_nbytes,
            "bytes_in_flight": self.nbytes_in_flight,
            "waves": self.waves,
        }

    def __str__(self) -> str:
        """Return the numbers as one line."""
        shared = f", {bytes_text(self.shared_nbytes)} shared" if self.shared_nbytes else ""
        waves = "" if self.waves is None else f" in {self.waves:.2f} waves"
        return (
            f"{self.threads} threads{shared}, {self.resident_blocks} blocks per multiprocessor "
            f"(up to {self.registers} registers), {bytes_text(self.thread_nbytes)} in flight per "
            f"thread, {bytes_text(self.nbytes_in_flight)} per multiprocessor, "
            f"{self.blocks} blocks{waves}"
        )


@frozen
class NestReport:
    """How a kernel runs as one loop nest, or a pack of several, or why it does not.

    Attributes:
        text: The text of its schedule; empty if it has none.
        rule: The name of the rule that made the schedule.
        resources: What it takes of the GPU; None on a CPU, and without a schedule.
        diagnostic: Why it has no schedule; None with one.
        description: Without a schedule, the loops that it has instead, as one line.
        is_own: Whether a rule of the user's made the schedule on a CPU.
    """

    text: str
    rule: str
    resources: NestResources | None
    diagnostic: Diagnostic | None
    description: str
    is_own: bool = False

    @property
    def is_of_gpu(self) -> bool:
        """Whether it is of a GPU, whose kernels are loop nests, or are not possible."""
        return self.resources is not None or self.diagnostic is not None

    @property
    def is_printed(self) -> bool:
        """Whether it says more than the template does: not of a CPU's built-in rules."""
        return self.is_own or self.resources is not None or not self.text

    def as_dict(self) -> dict[str, object]:
        """Return the report as a dict that JSON can hold: of the schedule, or of the reason."""
        if self.text:
            resources = {} if self.resources is None else {"resources": self.resources.as_dict()}
            return {"text": self.text, "rule": self.rule, **resources}
        assert self.diagnostic is not None
        return {
            "code": self.diagnostic.code,
            "reason": str(self.diagnostic),
            "description": self.description,
        }

    def __str__(self) -> str:
        """Return the report as indented lines."""
        if not self.text:
            return f"  no schedule of a nest: {self.diagnostic}\n  {self.description}"
        resources = "" if self.resources is None else f": {self.resources}"
        origin = f"schedule rule {self.rule}" if self.rule else "schedule of the option templates"
        lines = [f"{origin}{resources}", *self.text.splitlines()]
        return "\n".join(f"  {line}" for line in lines)


def resources_of_pack(
    pack: PackSchedule, nests: Sequence[LoopNest], target: Target
) -> NestResources:
    """Return what a schedule of several nests in one kernel takes of a target.

    Bytes that a thread loads are those of the nest where they are least.
    """
    pairs = zip(side_by_side(pack, nests), pack.parts, nests, strict=True)
    each = [(together, resources_of(s, nest, target)) for together, s, nest in pairs]
    launch = pack.launch
    return NestResources(
        threads=launch.threads,
        blocks=blocks_of_pack(pack, nests),
        resident_blocks=launch.blocks,
        registers=registers_per_thread(launch, target),
        shared_nbytes=max(together * r.shared_nbytes for together, r in each),
        thread_nbytes=min(r.thread_nbytes for _, r in each),
        multiprocessors=each[0][1].multiprocessors,
    )


def registers_per_thread(launch: LaunchShape, target: Target) -> int:
    """Return the registers that a thread of a target has at most with the blocks of a launch."""
    fair_share = target.limits.registers // (launch.threads * launch.blocks) // 8 * 8
    return min(target.limits.thread_registers, fair_share)


def nest_report(group: Group, schedule: Schedule, target: Target) -> NestReport | None:
    """Return how a group runs as a loop nest, or a pack of several, or why it does not.

    The result is None for a target that has no schedule rules, and on a CPU for a kernel of several
    nests, or with a template that was given or measured.

    Args:
        group: The group.
        schedule: Its schedule.
        target: The target that it was planned for.
    """
    if not target.nests:
        if target.lanes == 1 or not schedule.rule:
            return None
        info = analyze_domain(group.graph)
        assert isinstance(info, DomainInfo)  # the schedule was made from it
        text = tile_schedule_text(schedule, tile_nest(info), target)
        return NestReport(text, schedule.rule, None, None, "", schedule.rule not in dict(RULES))
    if schedule.pack is not None:
        nests = packed_nests(group, schedule)
        text = pack_text(schedule.pack, nests, target)
        resources = resources_of_pack(schedule.pack, nests, target)
        return NestReport(text, schedule.rule, resources, None, "")
    if schedule.is_joined:
        return _joined_report(group, schedule, target)
    if schedule.block is not None:
        return _block_report(group, schedule, schedule.block, target)
    if schedule.is_mapped and schedule.phase_outputs:
        return _phases_report(group, schedule, target)
    if schedule.nest is None:
        reason = schedule.no_nest or Diagnostic("tile.composition")
        return NestReport("", "", None, reason, str(schedule))
    nest = scheduled_nest(group, schedule)
    text = schedule_text(schedule.nest, nest, target)
    return NestReport(text, schedule.rule, resources_of(schedule.nest, nest, target), None, "")


def _joined_report(group: Group, schedule: Schedule, target: Target) -> NestReport:
    """Return how the chunks of a reduction and their join run in one launch.

    The join runs in blocks of the chunks, whose shared memory has the arrays of both.
    """
    nests = [
        (plan.nest, scheduled_nest(own, plan))
        for own, plan in zip(groups_of_parts(group, schedule), schedule.parts, strict=True)
        if plan.nest is not None
    ]
    text = "\n".join(schedule_text(own, nest, target) for own, nest in nests)
    resources = resources_of(*nests[0], target)
    shared = sum(shared_nbytes(own, nest) for own, nest in nests)
    return NestReport(text, schedule.rule, evolve(resources, shared_nbytes=shared), None, "")


def _phases_report(group: Group, schedule: Schedule, target: Target) -> NestReport:
    """Return how phases run in one launch, in which all blocks wait for each other in between.

    The bytes that a thread loads are those of the phase where they are least, among the phases that
    load any before they compute.
    """
    phases = zip(groups_of_parts(group, schedule), schedule.parts, strict=True)
    reports = [r for own, plan in phases if (r := nest_report(own, plan, target)) is not None]
    each = [r.resources for r in reports if r.resources is not None]
    launch = schedule.launch
    assert launch is not None  # the schedule is mapped
    resources = NestResources(
        threads=launch.threads,
        blocks=reduce(largest, (r.blocks for r in each)),
        resident_blocks=launch.blocks,
        registers=registers_per_thread(launch, target),
        shared_nbytes=max(r.shared_nbytes for r in each),
        thread_nbytes=min((r.thread_nbytes for r in each if r.thread_nbytes), default=0),
        multiprocessors=each[0].multiprocessors,
    )
    rules = ", ".join(dict.fromkeys(r.rule for r in reports))
    return NestReport("\n".join(r.text for r in reports), rules, resources, None, "")


def _block_report(
    group: Group, schedule: Schedule, block: BlockSchedule, target: Target
) -> NestReport:
    """Return how a stitched group runs, with the schedule ``block`` of its parts."""
    nest = block_nest(group, schedule)
    assert isinstance(nest, BlockNest)
    name = list(operator_names(group.graph.nodes).values())[-1]
    operands = [x for x in staged_operands(nest, block) if block.is_early or x.product == 0]
    products = [nest.parts[x.product] for x in operands]
    nbytes = sum(
        x.lines * x.side.length * p.dtype.nbytes
        for x, p in zip(operands, products, strict=True)
        if isinstance(p, ProductPart)
    )
    resources = NestResources(
        threads=block.threads,
        blocks=nest.tiles,
        resident_blocks=block.blocks,
        registers=registers_per_thread(block.launch, target),
        shared_nbytes=block.shared_nbytes,
        thread_nbytes=-(-nbytes // block.threads),
        multiprocessors=target.machine.min_tiles if target.limits.shared else 0,
    )
    text = block_text(block, nest, name, target.name)
    return NestReport(text, schedule.rule, resources, None, "")


def resources_of(schedule: NestSchedule, nest: LoopNest, target: Target) -> NestResources:
    """Return what a schedule of a nest takes of a target."""
    launch = schedule.launch
    nbytes = dict(zip(nest.traffic.streams, nest.traffic.stream_nbytes, strict=True))
    own = (schedule.reduced or schedule.kept).per_thread
    if schedule.columns is not None:
        own *= schedule.columns.per_thread
    turned = {k for k, _ in schedule.transpose.inputs} if schedule.transpose else set()
    loaded = [nbytes[k] for k in schedule.cached]
    loaded += [r.nbytes for r in nest.traffic.transposed if r.input in turned]
    return NestResources(
        threads=launch.threads,
        blocks=schedule.blocks([a.extent for a in nest.axes]),
        resident_blocks=launch.blocks,
        registers=registers_per_thread(launch, target),
        shared_nbytes=shared_nbytes(schedule, nest),
        thread_nbytes=sum(loaded) * own,
        multiprocessors=target.machine.min_tiles if target.limits.shared else 0,
    )
