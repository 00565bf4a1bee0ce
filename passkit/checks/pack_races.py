"""The check that no two threads race for an element of memory, in packs of loop nests.

Parts of a phase share no buffer that one of them stores to (`passkit.ir.verify_pack`), so that each
is checked by itself; between phases all blocks wait for each other. Each block of a phase must
belong to one part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from passkit.checks.ir_races import check_races
from passkit.errors import CodeGenError
from passkit.ir.pack import PackIR, PackPhase
from passkit.values.size import Extent

_Checked = tuple[int, tuple[Extent, ...], tuple[Extent, ...], Extent]
"""A part that was checked: its nest, the extents of its buffers, its sizes, and its blocks."""


def check_pack_races(
    pack: PackIR,
    name: str,
    sizes: Sequence[Extent],
    part_blocks: Sequence[Extent],
    blocks: Extent,
) -> None:
    """Look for races in the nests of a pack, and for blocks of two parts or of none.

    Equal parts are checked once.

    Args:
        pack: the pack; `passkit.ir.verify_pack` has found no violation.
        name: its name, for the error.
        sizes: the values of its size arguments.
        part_blocks: how many blocks each part has of its nest, in the order of the parts.
        blocks: the number of blocks of the grid, which has those of a kernel of one phase.

    Raises: CodeGenError for a race, for a part whose blocks do not begin where those of the part
    before end, and for a phase that does not end where its last part does.
    """
    values = dict(zip(pack.sizes, sizes, strict=True))
    counts = iter(part_blocks)
    seen: set[_Checked] = set()
    for phase in pack.phases:
        end = _check_phase(pack, phase, name, values, counts, seen)
        last = blocks if phase.end is None else values[phase.end]
        if end != last:
            raise CodeGenError(f"kernel {name} has {last} blocks, and its parts end at block {end}")


def _check_phase(
    pack: PackIR,
    phase: PackPhase,
    name: str,
    values: Mapping[str, Extent],
    counts: Iterator[Extent],
    seen: set[_Checked],
) -> Extent:
    """Look for races in the nests of a phase, and return the block at which its parts end.

    Args:
        pack: the pack.
        phase: the phase.
        name: the name of the pack, for errors.
        values: the values of its size arguments.
        counts: how many blocks the next parts have of their nests.
        seen: the parts that were checked, to which those of the phase are added.

    Raises: CodeGenError for a race, and for a part whose blocks do not begin where those of the
    part before end.
    """
    extents = {b.name: b.extent for b in pack.params}
    end: Extent = 0
    for nest, part in phase.parts:
        count = next(counts)
        if values[part.first] != end:
            raise CodeGenError(
                f"kernel {name}: a part begins at block {values[part.first]}, and the part before "
                f"ends at block {end}"
            )
        if part.blocks is not None and values[part.blocks] != count:
            raise CodeGenError(
                f"kernel {name}: the part at block {end} has {count} blocks of its nest, and its "
                f"argument {part.blocks} is {values[part.blocks]}"
            )
        together = pack.side_by_side(nest)
        end = end + (count + (together - 1)) // together
        own_sizes = tuple(values[n] for n in part.sizes)
        own = id(nest), tuple(extents[b] for b in part.buffers), own_sizes, count
        if own not in seen:
            seen.add(own)
            check_races(pack.kernel_of(nest, part), name, own_sizes, count)
    return end
