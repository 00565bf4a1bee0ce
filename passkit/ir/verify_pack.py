"""The invariants of packs of loop nests, see `passkit.ir.pack`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from passkit.errors import CodeGenError
from passkit.ir.loop import WARP
from passkit.ir.pack import MAX_WORDS, PackedNest, PackIR, PackPart, PackPhase, written_by
from passkit.ir.verify import IRForm, violations


def verify_pack(pack: PackIR, where: str) -> None:
    """Check the invariants of a pack, and those of its nests in final form.

    Args:
        pack: the pack.
        where: the name of the transform that made it, for the error.

    Raises: CodeGenError with the first violation.
    """
    problem = next(pack_violations(pack), None)
    if problem is not None:
        raise CodeGenError(f"{where}: pack of loop nests: {problem}")


def pack_violations(pack: PackIR) -> Iterator[str]:
    """Yield the violations of the invariants of a pack."""
    names = [*(b.name for b in pack.params), *pack.sizes]
    for name, count in Counter(names).items():
        if count > 1:
            yield f"{name} is declared twice"
    if len(names) > MAX_WORDS:
        yield f"{len(names)} arguments exceed {MAX_WORDS}"
    for phase in pack.phases:
        if (phase.end is None) != (len(pack.phases) == 1):
            yield f"a phase of {len(pack.phases)} ends at block {phase.end}"
        elif phase.end is not None and phase.end not in pack.sizes:
            yield f"{phase.end} is no size argument"
        for nest in phase.nests:
            yield from _nest_violations(pack, phase, nest)
        yield from _sharing_violations(pack, phase)
    yield from _order_violations(pack)


def _nest_violations(pack: PackIR, phase: PackPhase, nest: PackedNest) -> Iterator[str]:
    """Yield the violations of a nest of a phase, and of its parts."""
    yield from violations(nest.kernel, IRForm.FINAL)
    own, launch = nest.kernel.launch, pack.launch
    if own.threads > launch.threads:
        yield f"blocks of {launch.threads} threads have no block of {own.threads}"
        return
    if (own.y, own.x) != (launch.y, launch.x) and launch.y > 1:
        yield f"{own.y}x{own.x} threads of a nest in blocks of {launch.y}x{launch.x}"
    is_several = own.threads < launch.threads
    if is_several and own.threads % WARP:
        yield f"{own.threads} threads side by side are no whole warps"
    for part in nest.parts:
        yield from _part_violations(pack, phase, nest, part)
        if is_several != (part.blocks is not None):
            yield f"part {part.first}: {pack.side_by_side(nest)} blocks of the nest in a block"


def _part_violations(
    pack: PackIR, phase: PackPhase, nest: PackedNest, part: PackPart
) -> Iterator[str]:
    """Yield the violations of the arguments of a part of a phase."""
    params = {b.name: b for b in pack.params}
    changing = pack.changing(phase)
    may_change = pack.aliased | changing
    kernel = nest.kernel
    counts = len(part.buffers), len(part.sizes)
    if counts != (len(kernel.params), len(kernel.sizes)):
        yield (
            f"part {part.first} has {counts[0]} buffers and {counts[1]} sizes, its nest "
            f"{len(kernel.params)} and {len(kernel.sizes)}"
        )
        return
    numbers = [*part.sizes, part.first, *([] if part.blocks is None else [part.blocks])]
    for name in numbers:
        if name not in pack.sizes:
            yield f"{name} is no size argument"
    for own, name in zip(kernel.params, part.buffers, strict=True):
        param = params.get(name)
        if param is None:
            yield f"{name} is no parameter"
        elif (param.dtype, param.written and name not in changing) != (own.dtype, own.written):
            written = " written" if param.written else ""
            yield f"{name} is {param.dtype}{written}, and the nest's {own.name} is {own.dtype}"
        elif not own.written and (name in may_change) != (own.name in kernel.aliased):
            yield f"{name} may share memory, or {own.name} of its nest, and not the other"


def _sharing_violations(pack: PackIR, phase: PackPhase) -> Iterator[str]:
    """Yield the violations of parts that share buffers: their blocks do not wait for each other."""
    parts = list(phase.parts)
    uses = Counter(name for _, part in parts for name in set(part.buffers))
    for _, part in parts:
        for name in {n for n in part.buffers if part.buffers.count(n) > 1}:
            yield f"{name} takes the place of two buffers of part {part.first}"
    written = _written(phase)
    for b in pack.params:
        if b.name in written and uses[b.name] != 1:
            yield f"{uses[b.name]} parts write {b.name}"
        if not b.written and b.name in pack.aliased and uses[b.name] > 1:
            yield f"{b.name} may be overwritten, and {uses[b.name]} parts read it"
    for nest, part in parts:
        if not nest.kernel.aliased:
            continue
        kernel = pack.kernel_of(nest, part)
        aliased = [b for b in kernel.params if b.name in kernel.aliased]
        read = {(b.dtype.nbytes, b.extent) for b in aliased if not b.written}
        for b, name in zip(kernel.params, part.buffers, strict=True):
            if b in aliased and b.written and (b.dtype.nbytes, b.extent) not in read:
                yield f"{name} may share memory with an input of another part than its own"


def _order_violations(pack: PackIR) -> Iterator[str]:
    """Yield the violations of the order of phases.

    Exactly one phase writes each output, and only this phase and later ones read it. In a kernel of
    several phases no input shares memory with an output.
    """
    writers = Counter(name for p in pack.phases for name in _written(p))
    for b in pack.params:
        if b.written and writers[b.name] != 1:
            yield f"{writers[b.name]} phases write {b.name}"
    stored: set[str] = set()
    outputs = {b.name for b in pack.params if b.written}
    for number, phase in enumerate(pack.phases):
        own = _written(phase)
        used = {name for nest in phase.nests for part in nest.parts for name in part.buffers}
        for name in sorted(used & outputs - own - stored):
            yield f"phase {number} reads {name}, which no phase in front of it writes"
        stored |= own
    if pack.aliased and len(pack.phases) > 1:
        names = ", ".join(sorted(pack.aliased))
        yield f"{names} may share memory in a kernel of {len(pack.phases)} phases"


def _written(phase: PackPhase) -> set[str]:
    """Return the parameters that a phase writes."""
    return {name for nest in phase.nests for name in written_by(nest)}
