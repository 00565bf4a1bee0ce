"""Targets: the numbers of a machine that plans are made from."""

from __future__ import annotations

from math import exp, log

from attrs import field, frozen

from passkit.target.heuristics import FusionHeuristics, NestHeuristics, TilingHeuristics
from passkit.target.limits import GpuLimits
from passkit.target.machine import DEVICE, ZEN4, MachineModel

DEVICES = ("opencl", "cuda")
KIB = 1 << 10
MIB = 1 << 20


@frozen(cache_hash=True)
class Target:
    """A machine as numbers, by which fusion and schedules are chosen.

    `attrs.evolve` makes a target of another one: ``evolve(target, block=64)``, or, for a field of
    one of its parts, ``evolve(target, fusion=evolve(target.fusion, pattern_ops=24))``.

    Attributes:
        name: its name in ``target=``, and in the registry.
        dialect: the name of the dialect that prints its kernels.
        lanes: elements of a vector, in float32. 1 on devices, which have threads instead.
        scratch: bytes of scratch of a tile at most: shared memory on a GPU, on a CPU half of the
            second cache of a core.
        tile: elements of a tile.
        short_row: elements of the longest row of which tiles have many.
        short_tile: elements of a tile of such rows.
        max_ops: operators of a group at most.
        light_ops: how many times as many operators a group has at most that are light: an
            instruction or two.
        max_buffers: inputs of a kernel at most.
        parallel: seconds of serial work from which on threads pay.
        bandwidth: bytes of memory that one thread of a CPU, or a whole device, moves in a second.
        light: seconds of a light operator for one element.
        expensive: seconds of an expensive one, such as a quotient or exp.
        launch: seconds to launch a kernel.
        stream_bytes: bytes of results from which on they are written past the caches.
        stream_apart: the same of results that are written pixel by pixel.
        packed: seconds of a kernel at most that may be packed.
        packed_bytes: bytes of values at most that were computed for packed kernels and wait.
        max_arguments: arguments of a packed kernel at most.
        worth: seconds that packing saves at least.
        meeting: seconds that threads lose at the end of a kernel; those in which the blocks of a
            grid wait for each other.
        warp: threads of a warp, or of a sub-group.
        block: threads of a block, or work-items of a work-group.
        access: bytes of the widest access of a thread.
        simd: whether a thread computes with all elements of an access at once.
        shuffles: whether the threads of a warp, which are a sub-group, exchange values without
            memory. Only OpenCL has targets that do and others that do not.
        grows: whether a call may have more scratch than ``scratch`` where its sizes need it.
        curve: pairs of bytes that a kernel moves and bytes a second, in place of ``bandwidth``;
            ``passkit doctor --calibrate`` measures it.
        costed: whether the numbers are those of a machine, so that groups are compared by them.
        nests: whether single loop nests are scheduled by `passkit.planner`, and lowered through
            loop IR.
        cooperates: whether blocks of a grid wait for each other and count themselves, and groups of
            a block's threads wait by themselves, as phases, joined chunks and packs of loop nests
            need. A target of loop nests without has other kernels for such groups.
        limits: what threads, blocks and multiprocessors of a GPU have.
        machine: the seconds of work, tiles and library calls.
        fusion: thresholds of fusion.
        tiling: thresholds of tiles.
        rules: thresholds of the schedule rules of loop nests on GPUs.
    """

    name: str
    dialect: str
    lanes: int
    scratch: int
    tile: int = 8192
    short_row: int = 256
    short_tile: int = 1024
    max_ops: int = 256
    light_ops: int = 1
    max_buffers: int = 48
    parallel: float = 6e-6
    bandwidth: float = 2e10
    light: float = 6e-11
    expensive: float = 4e-10
    launch: float = 5e-8
    stream_bytes: int = 32 * MIB
    stream_apart: int = 32 * MIB
    packed: float = 2.5e-5
    packed_bytes: int = MIB
    max_arguments: int = 1024
    worth: float = 2e-6
    meeting: float = 5e-7
    warp: int = 32
    block: int = 256
    access: int = 16
    simd: bool = False
    shuffles: bool = False
    grows: bool = False
    curve: tuple[tuple[int, float], ...] = ()
    costed: bool = True
    nests: bool = False
    cooperates: bool = False
    limits: GpuLimits = field(factory=GpuLimits)
    machine: MachineModel = field()
    fusion: FusionHeuristics = field(factory=FusionHeuristics)
    tiling: TilingHeuristics = field(factory=TilingHeuristics)
    rules: NestHeuristics = field(factory=NestHeuristics)

    @machine.default
    def _machine(self) -> MachineModel:
        return ZEN4 if self.lanes > 1 else DEVICE

    def moving(self, nbytes: int) -> float:
        """Return the seconds in which bytes are moved: by the curve, if there is one.

        Between its points, and beyond them, bytes a second are those of the nearest two and ends.

        >>> from attrs import evolve
        >>> far = Target("t", "cxx", 16, 0, bandwidth=1e9)
        >>> near = evolve(far, curve=((1000, 4e9), (100_000, 1e9)))
        >>> [round(t.moving(n) * 1e6, 3) for t in (far, near) for n in (500, 10_000, 10**6)]
        [0.5, 10.0, 1000.0, 0.125, 5.0, 1000.0]
        """
        if not self.curve or nbytes <= 0:
            return nbytes / self.bandwidth
        (least, speed), *_ = self.curve
        for most, other in self.curve:
            if nbytes <= most:
                share = log(nbytes / least) / log(most / least) if most > least < nbytes else 0.0
                return nbytes / exp(log(speed) + share * (log(other) - log(speed)))
            least, speed = most, other
        return nbytes / speed

    def slowdown(self, registers: int, shared: int) -> float:
        """Return how many times longer a kernel takes as few of its threads are resident, from 1.

        Args:
            registers: registers of a thread.
            shared: bytes of shared memory of a block.
        """
        return self.limits.slowdown(registers, shared, self.block)

    @property
    def has_thread_maps(self) -> bool:
        """Whether threads of a GPU have the points of loop nests, which are lowered to loop IR."""
        return self.nests and self.name != "blocks"

    @property
    def has_maps_only(self) -> bool:
        """Whether kernels are those of loop nests only, as the language has no others."""
        return self.has_thread_maps and self.cooperates

    @property
    def device(self) -> str:
        """Return the API of the device that runs the kernels, "opencl" or "cuda".

        It is "" for the CPU, and for "blocks".
        """
        return self.dialect if self.dialect in DEVICES and self.name != "blocks" else ""
