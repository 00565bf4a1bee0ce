"""Memory of a launch: the arrays of a kernel, shared memory of a block, and where accesses go."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
from attrs import frozen

BASE, GAP = 0x7F0000000000, 1 << 20
SHARED_WINDOW = 0x7E0000000000
"""Where generic addresses of shared memory begin."""
SHARED_NBYTES = 256 << 10
SAMPLES = 1 << 12
SECTOR = 32
WIDEST = 16
"""The bytes of the widest access."""
WORD = np.uint64(0xFFFFFFFF)
BANKS, BANK_NBYTES = 32, 4
"""The banks of shared memory, each of which gives so many bytes at a time."""


class StrayAccessError(Exception):
    """An access outside of all arrays, or not aligned: an instruction was computed wrongly."""


@frozen(eq=False)
class MemoryRegion:
    """An array: its begin, bytes and contents.

    ``values`` are integers, whose bytes are read; None for floats, which are normally distributed,
    or their absolute values if ``is_positive``. What is written to it is not read back.
    """

    begin: int
    nbytes: int
    is_positive: bool = False
    values: np.ndarray | None = None


def placed(arrays: Sequence[tuple[int, bool, np.ndarray | None]]) -> list[MemoryRegion]:
    """Place arrays of so many bytes, signs and values in memory, one after the other."""
    begin, regions = BASE, []
    for nbytes, is_positive, values in arrays:
        regions.append(MemoryRegion(begin, nbytes, is_positive, values))
        begin += -(-nbytes // GAP) * GAP + GAP
    return regions


class DeviceMemory:
    """DeviceMemory as one warp sees it.

    ``last`` is the array that the last instruction read, None for shared memory, at
    ``last_addresses``; ``streamed`` are the begins of the arrays of floats that have at least
    a 64th of the largest one's bytes; ``turns`` are those that shared accesses took, and those
    that they would take without conflicts of banks.

    Args:
        regions: the arrays; one of 64 KiB for variables of the module follows.
        all_streamed: whether small arrays of floats are streamed, too.
    """

    def __init__(self, regions: Sequence[MemoryRegion], all_streamed: bool = False) -> None:
        end = max((r.begin + r.nbytes for r in regions), default=BASE)
        self.globals = MemoryRegion((end // GAP + 2) * GAP, 1 << 16)
        self.regions = sorted((*regions, self.globals), key=lambda r: r.begin)
        self.begins = [r.begin for r in self.regions]
        draws = np.random.default_rng(0).standard_normal(SAMPLES, dtype=np.float32)
        self.samples = draws.view(np.uint32).astype(np.uint64)
        self.shared = np.full(SHARED_NBYTES // 4, 0x3F000000, np.uint64)  # 0.5 where unwritten
        self.local = np.zeros(1 << 14, np.uint64)
        least = 0 if all_streamed else max((r.nbytes for r in regions), default=0) // 64
        self.streamed = {r.begin for r in regions if r.nbytes >= least and r.values is None}
        self.last: MemoryRegion | None = None
        self.last_addresses = np.zeros(0, np.uint64)
        self.turns = [0, 0]

    def region(self, addresses: np.ndarray, nbytes: int, is_read: bool = False) -> MemoryRegion:
        """Return the array that addresses lie in. Raises: StrayAccessError if there is none.

        Reads may end with the 16 bytes of the array's last element: ptxas joins loads under
        different conditions where the aligned 16 bytes around the first one have them all.
        """
        low, high = int(addresses.min()), int(addresses.max()) + nbytes
        k = bisect_right(self.begins, low) - 1
        end = 0 if k < 0 else self.regions[k].begin + self.regions[k].nbytes
        if high > (-(-end // WIDEST) * WIDEST if is_read else end):
            raise StrayAccessError(f"{nbytes} bytes at {low:#x} to {high:#x} are in no array")
        return self.regions[k]

    def check(
        self, addresses: np.ndarray, nbytes: int, is_shared: bool, is_read: bool = False
    ) -> MemoryRegion | None:
        """Check alignment and bounds; return the array, or None for shared memory.

        Raises: StrayAccessError.
        """
        if (addresses % np.uint64(nbytes)).any():
            raise StrayAccessError(
                f"an address of {nbytes} bytes is not aligned: {addresses[0]:#x}"
            )
        if is_shared:
            if int(addresses.max()) + nbytes > SHARED_NBYTES:
                raise StrayAccessError(f"shared memory ends before {int(addresses.max()):#x}")
            return None
        return self.region(addresses, nbytes, is_read)

    def _is_shared(self, name: str, addresses: np.ndarray) -> bool:
        return name in ("LDS", "STS") or bool(
            name in ("LD", "ST") and SHARED_WINDOW <= int(addresses[0]) < BASE
        )

    def _count_turns(self, addresses: np.ndarray, nbytes: int, active: np.ndarray) -> None:
        """Count the turns of a shared access: lanes with 128 bytes together take one at least.

        It takes as many as the words that one of the banks has to give.
        """
        lanes = min(len(addresses), BANKS * BANK_NBYTES // nbytes)
        for first in range(0, len(addresses), lanes):
            own = addresses[first : first + lanes][active[first : first + lanes]]
            if len(own):
                words = np.unique(own // np.uint64(BANK_NBYTES)).astype(np.int64)
                self.turns[0] += int(np.bincount(words % BANKS).max())
                self.turns[1] += 1

    def read(
        self, name: str, addresses: np.ndarray, nbytes: int, active: np.ndarray
    ) -> list[np.ndarray]:
        """Return the words that lanes read, of an instruction of some name.

        Raises: StrayAccessError.
        """
        within = addresses[active]
        count = max(1, nbytes // 4)
        words = (addresses >> np.uint64(2))[None] + np.arange(count, dtype=np.uint64)[:, None]
        if name == "LDL":
            return list(self.local[(words % np.uint64(len(self.local))).astype(int)])
        self.last, self.last_addresses = None, within
        if self._is_shared(name, within):
            self.check(within % np.uint64(SHARED_WINDOW), nbytes, True)
            self._count_turns(addresses, nbytes, active)
            return list(self.shared[(words % np.uint64(len(self.shared))).astype(int)])
        region = self.check(within, nbytes, False, is_read=True)
        assert region is not None
        self.last = region
        if region.values is not None:
            return self._integers(region, addresses, count)
        if region is self.globals:
            return list(np.zeros_like(words))
        mixed = (words * np.uint64(2654435761)) >> np.uint64(12)
        values = self.samples[(mixed % np.uint64(SAMPLES)).astype(int)]
        return list(values & np.uint64(0x7FFFFFFF) if region.is_positive else values)

    def _integers(
        self, region: MemoryRegion, addresses: np.ndarray, count: int
    ) -> list[np.ndarray]:
        """Return words of an array whose contents matter."""
        values = np.ascontiguousarray(region.values).reshape(-1).view(np.uint32)
        first = ((addresses - np.uint64(region.begin)) >> np.uint64(2)).astype(np.int64)
        return [
            values[np.clip(first + k, 0, len(values) - 1)].astype(np.uint64) for k in range(count)
        ]

    def write(
        self,
        name: str,
        addresses: np.ndarray,
        nbytes: int,
        words: list[np.ndarray],
        active: np.ndarray,
    ) -> None:
        """Write words of lanes; only shared and local memory keep them.

        Raises: StrayAccessError.
        """
        within = addresses[active]
        is_shared = self._is_shared(name, within)
        if name != "STL":
            self.check(
                within % np.uint64(SHARED_WINDOW) if is_shared else within, nbytes, is_shared
            )
            if not is_shared:
                return
            self._count_turns(addresses, nbytes, active)
        kept = self.local if name == "STL" else self.shared
        for k, word in enumerate(words):
            at = ((within >> np.uint64(2)) + np.uint64(k)) % np.uint64(len(kept))
            value = word[active]
            if nbytes < 4:
                down = (within & np.uint64(3)) * np.uint64(8)
                part = np.uint64((1 << 8 * nbytes) - 1)
                value = kept[at.astype(int)] & ~(part << down) | (value & part) << down
            kept[at.astype(int)] = value & WORD
