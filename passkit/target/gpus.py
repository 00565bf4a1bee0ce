"""Profiles of GPUs: the numbers by which plans for them are made, shipped for four of them.

Sources: NVIDIA's architecture papers and data sheets of V100 SXM2, A100 SXM4 (80 GB), H100 SXM5 and
H200 SXM: multiprocessors, clocks, memory, caches, lanes; CUDA C++ Programming Guide, technical
specifications per compute capability: registers, threads, blocks, shared memory. Bandwidths of the
second cache and the cost of a launch are of published micro-benchmarks, rounded. Only a copy on an
H100 was measured here: 3.0 TB/s of 256 MiB, of 3.35 on its sheet. `passkit doctor --calibrate`
measures curve and launch on a device.
"""

from __future__ import annotations

from attrs import evolve, frozen

from passkit.target.machine import DEVICE, ZEN4, Rates
from passkit.target.residency import Residency
from passkit.target.target import KIB, MIB, Target

REACHED = 0.92
"""Of the bandwidth on a data sheet, what a copy reaches."""
HEAVY = 12
"""Instructions of an exponential, a quotient or alike, where a sum has one."""
RESERVED = KIB
"""Shared memory that a block has besides its own."""
OF_A_TILE = ("tile", "part", "matrix", "sweep", "fold", "curve", "chain", "copied", "turned")
"""Rates of what a block does by itself, while others do the same."""


@frozen(kw_only=True)
class Gpu:
    """A GPU as numbers. Units: bytes, bytes a second, cycles a second, seconds.

    ``units`` are multiprocessors, each with ``lanes`` for float32, room for so many ``threads`` and
    ``blocks`` and ``shared`` bytes; a ``launch`` follows another one after so many seconds, blocks
    of a grid wait ``barrier`` for each other.
    """

    name: str
    capability: tuple[int, int]
    units: int
    lanes: int
    clock: float
    memory: float
    cache: int
    cached: float
    shared: int
    threads: int = 2048
    blocks: int = 32
    launch: float = 3e-6
    barrier: float = 1.5e-6

    def numbers(self, target: Target) -> Target:
        """A target with these numbers in the place of a CPU's.

        Operations are those of all lanes together; tiles and rows begin on all multiprocessors at a
        time.
        """
        light = 1.0 / (self.units * self.lanes * self.clock)
        far = REACHED * self.memory
        return evolve(
            target,
            light=light,
            expensive=HEAVY * light,
            bandwidth=far,
            curve=((self.cache // 2, self.cached), (2 * self.cache, far)),
            launch=self.launch,
            meeting=self.barrier,
            residency=self.residency,
            rates=self.rates(self.units * self.threads / target.block),
        )

    def rates(self, at_once: float) -> Rates:
        """What work, rows and libraries take where so many blocks run at a time.

        Nothing is corrected by measured kernels: none of them was measured here.
        """
        steps = self.units * self.lanes * self.clock
        each = {name: getattr(ZEN4, name) / at_once for name in OF_A_TILE}
        return evolve(
            DEVICE,
            library=steps,
            flops=steps,
            call=self.launch,
            caches=((self.cache // 2, self.cached / (REACHED * self.memory)), (1 << 62, 1.0)),
            far=self.cache,
            few=self.units,
            **each,
        )

    def occupancy(self, registers: int, shared: int, threads: int) -> float:
        """The share of a multiprocessor's threads that blocks of a kernel fill. 0 where none fits.

        >>> volta = SHIPPED["V100"]
        >>> volta.occupancy(32, 0, 256), volta.occupancy(255, 0, 256)
        (1.0, 0.125)
        >>> volta.occupancy(32, 36 * KIB, 256)
        0.25
        """
        return self.residency.occupancy(registers, shared, threads)

    @property
    def residency(self) -> Residency:
        """What is on a multiprocessor at a time."""
        reserved = RESERVED if self.capability >= (8, 0) else 0
        return Residency(self.threads, self.blocks, self.shared, reserved)


SHIPPED = {
    "V100": Gpu(name="V100", capability=(7, 0), units=80, lanes=64, clock=1.53e9, memory=0.9e12,
                cache=6 * MIB, cached=2.2e12, shared=96 * KIB, launch=4e-6, barrier=2e-6),
    "A100": Gpu(name="A100", capability=(8, 0), units=108, lanes=64, clock=1.41e9, memory=2.04e12,
                cache=40 * MIB, cached=4.5e12, shared=164 * KIB),
    "H100": Gpu(name="H100", capability=(9, 0), units=132, lanes=128, clock=1.98e9, memory=3.35e12,
                cache=50 * MIB, cached=5.6e12, shared=228 * KIB),
    "H200": Gpu(name="H200", capability=(9, 0), units=132, lanes=128, clock=1.98e9, memory=4.8e12,
                cache=50 * MIB, cached=5.6e12, shared=228 * KIB),
}  # fmt: skip
"""By what is in the names that their drivers give."""
SMALL = {(7, 5): (1024, 16, 64), (8, 6): (1536, 16, 100), (8, 9): (1536, 24, 100)}
"""Threads, blocks and KiB of shared memory of multiprocessors that are not built for servers."""


def gpu_of(name: str, capability: tuple[int, int], units: int) -> Gpu:
    """The profile of a device: that of its name, else of its kind, by its multiprocessors."""
    for known, gpu in SHIPPED.items():
        if known in name:
            return gpu
    older = [g for g in SHIPPED.values() if g.capability <= capability]
    like = older[-1] if older else SHIPPED["V100"]
    share = units / like.units
    threads, blocks, shared = SMALL.get(
        capability, (like.threads, like.blocks, like.shared // KIB)
    )
    return evolve(
        like, name=name, capability=capability, units=units, memory=like.memory * share,
        cached=like.cached * share, cache=max(MIB, int(like.cache * share)), threads=threads,
        blocks=blocks, shared=shared * KIB,
    )  # fmt: skip
