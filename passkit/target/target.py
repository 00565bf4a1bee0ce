"""Targets: the numbers of a machine that plans are made from."""

from __future__ import annotations

from math import exp, log

from attrs import field, frozen

from passkit.target.machine import DEVICE, ZEN4, Rates
from passkit.target.residency import Residency

DEVICES = ("opencl", "cuda")
KIB = 1 << 10
MIB = 1 << 20


@frozen
class Target:
    """A machine as numbers. Every threshold of a plan is a field here.

    Units: bytes, seconds, bytes per second. ``scratch`` is the limit of SHARED per tile; where that
    ``grows``, a call may have more if its sizes need it, which is slower; ``tile`` the elements a
    tile should have, ``short_tile`` one of rows of at most ``short_row``;
    ``max_ops`` the operators of a group at most, or ``light_ops`` times as many that are light;
    ``parallel`` the seconds of serial work above which threads pay; ``stream_bytes`` the bytes of
    results from which on they go past the caches, ``stream_apart`` of those that are written pixel
    by pixel. Kernels of at most ``packed`` seconds may be packed, if at most ``packed_bytes`` were
    made for them and ``max_arguments`` are enough: where that saves ``worth`` seconds, or one
    thread soon does it all, ``meeting`` being what threads lose at the end of a kernel. Where it
    was measured, ``curve`` has bytes moved and bytes a second, in place of ``bandwidth``.
    ``rates`` say what the work of kernels and libraries takes.
    A thread of a device takes elements that follow each other by ``access`` bytes at a time, at
    most, and computes with them at once if ``simd``; those of a sub-group hand each other numbers
    where it ``shuffles``. A multiprocessor of a GPU has room for ``residency``.
    Groups are compared by these numbers where they are those of a machine: ``costed``. ``nests``
    says that single loop nests are scheduled by `passkit.planner` and lowered through loop IR.
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
    residency: Residency | None = None
    rates: Rates = field()

    @rates.default
    def _rates(self) -> Rates:
        return ZEN4 if self.lanes > 1 else DEVICE

    def moving(self, nbytes: int) -> float:
        """The seconds in which one thread moves so many bytes: by the curve, if there is one.

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

    def waiting(self, registers: int, shared: int) -> float:
        """How many times longer a kernel takes as few of its threads are there at a time."""
        if self.residency is None:
            return 1.0
        return self.residency.waiting(registers, shared, self.block)

    @property
    def device(self) -> str:
        """What runs the kernels, "opencl" or "cuda"; "" for the CPU, or block by block."""
        return self.dialect if self.dialect in DEVICES and self.name != "blocks" else ""
