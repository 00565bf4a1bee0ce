"""Kernels of mapped schedules, which are lowered to loop IR.

CodeGen imports this module for the first kernel of a GPU.
"""

from __future__ import annotations

from attrs import evolve

from passkit.analysis.domain_info import analyze_domain
from passkit.analysis.group import Group
from passkit.checks.ir_races import check_races
from passkit.checks.pack_races import check_pack_races
from passkit.diagnostics import Diagnostic
from passkit.dialects.base import Dialect
from passkit.dialects.c_printer import print_ir
from passkit.dialects.pack_printer import print_pack
from passkit.graph.kernel import Kernel
from passkit.ir.loop import KernelIR
from passkit.ir.pack import PackIR
from passkit.ir.verify import IRForm, verify
from passkit.ir.verify_pack import verify_pack
from passkit.passes.kernels.names import named
from passkit.passes.options import Dump
from passkit.schedule.schedule import Schedule
from passkit.transforms.packs import LoweredPack, lower_pack
from passkit.transforms.pipeline import LoweredNest, Observer, lower_block, lower_joined, lower_nest


def kernel_of(
    group: Group, schedule: Schedule, dialect: Dialect, aliased: frozenset[int]
) -> Kernel:
    """Return the kernel of a group with a mapped schedule, printed in a dialect.

    ``aliased`` are the positions of parameters that share storage with another. Raises:
    CodeGenError if the group cannot be lowered or printed, or its kernel has a race.
    """
    if _has_several_bodies(schedule):
        return _pack_kernel(group, schedule, dialect, aliased)
    return _nest_kernel(group, schedule, dialect, aliased)


def _has_several_bodies(schedule: Schedule) -> bool:
    """Return whether the kernel of a mapped schedule is a pack: of several parts, or of phases."""
    return schedule.pack is not None or (bool(schedule.phase_outputs) and not schedule.is_joined)


def _lowered(
    group: Group,
    schedule: Schedule,
    aliased: frozenset[int],
    dialect: Dialect,
    observe: Observer | None = None,
) -> LoweredNest:
    """Return a group of one loop nest, of joined chunks, or a stitched one, in final form.

    Args:
        group: the group.
        schedule: its schedule.
        aliased: the positions of parameters that share storage with another.
        dialect: the language, for the threads of the device.
        observe: called with the name of each transform and the kernel behind it; None for no call.

    Raises: CodeGenError if the group cannot be lowered.
    """
    if schedule.is_joined:
        return lower_joined(group, schedule, aliased, observe)
    features = dialect.features
    if schedule.block is not None:
        return lower_block(group, schedule, schedule.block, aliased, observe, features)
    assert schedule.nest is not None
    info = analyze_domain(group.graph)
    assert not isinstance(info, Diagnostic)  # the schedule was made from it
    return lower_nest(group, schedule, schedule.nest, info, aliased, observe, features)


def dump_forms(
    group: Group,
    schedule: Schedule,
    aliased: frozenset[int],
    name: str,
    dialect: Dialect,
    dump: Dump,
) -> None:
    """Write the text of loop IR after each transform, for the kernel ``name`` of a group.

    Those of a pack are of each part, and then of the whole kernel. ``dump`` gives the paths of the
    files, ``aliased`` are the positions of parameters that share storage with another, ``dialect``
    is the language. Raises: OSError if a file cannot be written, CodeGenError if the group cannot
    be lowered.
    """

    def write(transform: str, form: KernelIR | PackIR) -> None:
        path = dump.path(f"{name}_{transform}").with_suffix(".ir")
        path.write_text(str(form), encoding="utf-8")

    if _has_several_bodies(schedule):
        write("pack", lower_pack(group, schedule, aliased, write).kernel)
    else:
        _lowered(group, schedule, aliased, dialect, write)


def _pack_kernel(
    group: Group, schedule: Schedule, dialect: Dialect, aliased: frozenset[int]
) -> Kernel:
    """Return the kernel of a group of several loop nests or phases, lowered through loop IR.

    ``aliased`` are the positions of parameters that share storage with another. Raises:
    CodeGenError if the group cannot be lowered or printed, or its kernel has a race.
    """
    lowered = lower_pack(group, schedule, aliased)
    verify_pack(lowered.kernel, "CodeGen")
    text = print_pack(lowered.kernel, "KERNEL", dialect)
    kernel = _kernel_of_text(text, lowered, group, schedule, dialect.name)
    check_pack_races(
        lowered.kernel, kernel.name, lowered.sizes, lowered.part_blocks, lowered.blocks
    )
    if not schedule.phase_outputs:
        return kernel
    seconds = (phase.seconds for phase in schedule.parts)
    return evolve(kernel, phases=tuple(zip(lowered.phase_blocks, seconds, strict=True)))


def _nest_kernel(
    group: Group, schedule: Schedule, dialect: Dialect, aliased: frozenset[int]
) -> Kernel:
    """Return the kernel of a group of one loop nest, of two, or a stitched one, in loop IR.

    ``aliased`` are the positions of parameters that share storage with another. Raises:
    CodeGenError if the group cannot be lowered or printed, or its kernel has a race.
    """
    lowered = _lowered(group, schedule, aliased, dialect)
    verify(lowered.kernel, IRForm.FINAL, "CodeGen")
    text = print_ir(lowered.kernel, "KERNEL", dialect)
    kernel = _kernel_of_text(text, lowered, group, schedule, dialect.name)
    check_races(lowered.kernel, kernel.name, lowered.sizes, lowered.blocks)
    return kernel


def _kernel_of_text(
    text: str, lowered: LoweredNest | LoweredPack, group: Group, schedule: Schedule, dialect: str
) -> Kernel:
    """Return the kernel of a group whose function is called KERNEL in ``text``.

    Args:
        text: the text of the kernel.
        lowered: its loop IR.
        group: the group.
        schedule: its schedule.
        dialect: the name of the language of the text.
    """
    ops = tuple(n.op.name for n in group.ops if n.op is not None)
    name, digest, source = named(text, ops[-1], dialect)
    return Kernel(
        name=name,
        key=digest,
        ast=lowered.kernel,
        source=source,
        grid=lowered.blocks,
        block=lowered.kernel.launch.threads,
        shared_nbytes=lowered.kernel.shared_nbytes,
        sizes=lowered.sizes,
        ops=ops,
        dialect=dialect,
        seconds=schedule.seconds,
    )
