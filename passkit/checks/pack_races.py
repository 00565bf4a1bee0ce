"""The check that no two threads race for an element of memory, in packs of loop nests.

Parts share no buffer that one of them stores to (`passkit.ir.verify_pack`), so that each is checked
by itself. Each block of the kernel must belong to one part.
"""

from __future__ import annotations

from collections.abc import Sequence

from passkit.checks.ir_races import check_races
from passkit.errors import CodeGenError
from passkit.ir.pack import PackIR
from passkit.values.size import Extent


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
        blocks: the number of blocks of the kernel.

    Raises: CodeGenError for a race, and for a part whose blocks do not begin where those of the
    part before end.
    """
    values = dict(zip(pack.sizes, sizes, strict=True))
    extents = {b.name: b.extent for b in pack.params}
    seen: set[tuple[int, tuple[Extent, ...], tuple[Extent, ...], Extent]] = set()
    end: Extent = 0
    for (nest, part), count in zip(pack.parts, part_blocks, strict=True):
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
    if end != blocks:
        raise CodeGenError(f"kernel {name} has {blocks} blocks, and its parts end at block {end}")
