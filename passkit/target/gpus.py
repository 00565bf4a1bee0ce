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

from passkit.target.limits import GpuLimits
from passkit.target.machine import DEVICE, ZEN4, MachineModel
from passkit.target.target import KIB, MIB, Target

RESERVED = KIB
"""Bytes of shared memory that a block has besides its own, from compute capability 8.0 on."""
OF_A_TILE = (
    "tile_seconds",
    "nest_seconds",
    "matrix_seconds",
    "row_pass_seconds",
    "row_reduction_seconds",
    "row_function_seconds",
    "chain_seconds",
    "transposed_seconds",
    "transposed_block_seconds",
)
"""Seconds of what a block does by itself, while others do the same."""


@frozen(kw_only=True)
class Gpu:
    """A GPU as numbers.

    Attributes:
        name: what is in the name that its driver gives.
        capability: its compute capability.
        units: multiprocessors.
        lanes: operations on float32 that a multiprocessor begins in a cycle.
        clock: cycles a second.
        memory: bytes of memory a second, on its data sheet.
        cache: bytes of the second cache.
        cached: bytes of it a second.
        shared: bytes of shared memory of a multiprocessor.
        threads: threads of a multiprocessor at most.
        blocks: blocks of a multiprocessor at most.
        launch: seconds from one launch to the next.
        barrier: seconds in which the blocks of a grid wait for each other.
        latency: seconds from a load to its value while memory is busy. On an H200 they are 650 to
            800 ns (`docs/gpu-kernels.md`); taken to be the same on others.
        reached: the share of ``memory`` that a copy reaches. Measured on an H100.
        function_ops: instructions of an exponential or a quotient, where a sum has one.
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
    latency: float = 7e-7
    reached: float = 0.92
    function_ops: int = 12

    def numbers(self, target: Target) -> Target:
        """Return a target with these numbers in the place of a CPU's.

        Operations are those of all lanes together; tiles and rows begin on all multiprocessors at a
        time.
        """
        light = 1.0 / (self.units * self.lanes * self.clock)
        far = self.reached * self.memory
        return evolve(
            target,
            light=light,
            expensive=self.function_ops * light,
            bandwidth=far,
            curve=((self.cache // 2, self.cached), (2 * self.cache, far)),
            launch=self.launch,
            meeting=self.barrier,
            limits=self.limits,
            machine=self.machine(self.units * self.threads / target.block),
        )

    def machine(self, at_once: float) -> MachineModel:
        """Return what work, rows and libraries take, where ``at_once`` blocks run at a time.

        Nothing is corrected by measured kernels: none of them was measured here.
        """
        steps = self.units * self.lanes * self.clock
        each = {name: getattr(ZEN4, name) / at_once for name in OF_A_TILE}
        return evolve(
            DEVICE,
            library_steps=steps,
            kernel_steps=steps,
            library_call_seconds=self.launch,
            library_caches=(
                (self.cache // 2, self.cached / (self.reached * self.memory)),
                (1 << 62, 1.0),
            ),
            llc_bytes=self.cache,
            min_tiles=self.units,
            in_flight_bytes=self.latency * self.reached * self.memory,
            **each,
        )

    def occupancy(self, registers: int, shared: int, threads: int) -> float:
        """Return the share of a multiprocessor's threads that blocks of a kernel fill, at best 1.

        >>> volta = SHIPPED["V100"]
        >>> volta.occupancy(32, 0, 256), volta.occupancy(255, 0, 256)
        (1.0, 0.125)
        >>> volta.occupancy(32, 36 * KIB, 256)
        0.25
        """
        return self.limits.occupancy(registers, shared, threads)

    @property
    def limits(self) -> GpuLimits:
        """Return the limits of its threads, blocks and multiprocessors."""
        reserved = RESERVED if self.capability >= (8, 0) else 0
        return GpuLimits(
            threads=self.threads, blocks=self.blocks, shared=self.shared, reserved=reserved
        )


SHIPPED = {
    "V100": Gpu(
        name="V100",
        capability=(7, 0),
        units=80,
        lanes=64,
        clock=1.53e9,
        memory=0.9e12,
        cache=6 * MIB,
        cached=2.2e12,
        shared=96 * KIB,
        launch=4e-6,
        barrier=2e-6,
    ),
    "A100": Gpu(
        name="A100",
        capability=(8, 0),
        units=108,
        lanes=64,
        clock=1.41e9,
        memory=2.04e12,
        cache=40 * MIB,
        cached=4.5e12,
        shared=164 * KIB,
    ),
    "H100": Gpu(
        name="H100",
        capability=(9, 0),
        units=132,
        lanes=128,
        clock=1.98e9,
        memory=3.35e12,
        cache=50 * MIB,
        cached=5.6e12,
        shared=228 * KIB,
    ),
    "H200": Gpu(
        name="H200",
        capability=(9, 0),
        units=132,
        lanes=128,
        clock=1.98e9,
        memory=4.8e12,
        cache=50 * MIB,
        cached=5.6e12,
        shared=228 * KIB,
    ),
}
"""By what is in the names that their drivers give."""
SMALL = {(7, 5): (1024, 16, 64), (8, 6): (1536, 16, 100), (8, 9): (1536, 24, 100)}
"""Threads, blocks and KiB of shared memory of multiprocessors that are not built for servers."""


def gpu_of(name: str, capability: tuple[int, int], units: int) -> Gpu:
    """Return the profile of a device: that of its name, else of its kind by multiprocessors."""
    for shipped_name, gpu in SHIPPED.items():
        if shipped_name in name:
            return gpu
    older = [g for g in SHIPPED.values() if g.capability <= capability]
    like = older[-1] if older else SHIPPED["V100"]
    share = units / like.units
    threads, blocks, shared = SMALL.get(capability, (like.threads, like.blocks, like.shared // KIB))
    return evolve(
        like,
        name=name,
        capability=capability,
        units=units,
        memory=like.memory * share,
        cached=like.cached * share,
        cache=max(MIB, int(like.cache * share)),
        threads=threads,
        blocks=blocks,
        shared=shared * KIB,
    )
