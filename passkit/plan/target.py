"""Targets: what a machine is called and the numbers that plans are made from."""

from __future__ import annotations

from functools import cache
from math import exp, log
from pathlib import Path

from attrs import evolve, field, frozen

from passkit.errors import SettingError
from passkit.plan.rates import DEVICE, ZEN4, Rates
from passkit.plan.residency import Residency
from passkit.values.named import NamedRegistry

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


def _cache_bytes(level: int, default: int) -> int:
    """The size of one core's cache, as Linux tells it."""
    folder = Path("/sys/devices/system/cpu/cpu0/cache")
    try:
        for index in folder.glob("index*"):
            kind = (index / "type").read_text().strip()
            if (index / "level").read_text().strip() == str(level) and kind != "Instruction":
                text = (index / "size").read_text().strip()
                return int(text.rstrip("KM")) * (MIB if text.endswith("M") else KIB)
    except (OSError, ValueError):
        pass
    return default


@cache
def cpu() -> Target:
    """This machine's CPU: half of one core's L2 is scratch.

    Light operators are an instruction or two. GCC compiles 1,300 of them in five seconds, and 100
    rounds of a loop that is written out then take half the time of kernels of 256, each of which
    passes on what 30 rounds leave for others.
    """
    second = _cache_bytes(2, MIB)
    plain, apart = _stream_bytes(second, _cache_bytes(3, 32 * MIB))
    return Target(
        *("cpu", "cxx", 16, second // 2),
        light_ops=8,
        stream_bytes=plain,
        stream_apart=apart,
        grows=True,
    )


def _stream_bytes(second: int, third: int) -> tuple[int, int]:
    """From how many bytes on a result had better go past the caches, and one written apart.

    Measured on guests of two cores: Sapphire Rapids gains from 3 MB on, its third cache being no
    faster than memory; Zen 4, whose third cache is fast, from 12 MB of 32 on, where as many are
    read. Zen 3, which unlike it has no AVX-512, is up to a fifth slower past the caches at every
    size to 128 MB, but for pixels that are written one by one: those take half of the time.
    """
    try:
        facts = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")[:4096]
    except OSError:
        facts = ""
    if "GenuineIntel" in facts:
        return second * 3 // 2, second * 3 // 2
    most = third * 3 // 8
    return (8 * third if "AuthenticAMD" in facts and "avx512f" not in facts else most), most


_targets: NamedRegistry[Target] = NamedRegistry("target", SettingError, unknown="is not known")


@cache
def _register_shipped() -> None:
    """Register the targets that passkit ships, where nobody has registered one of the name."""
    from passkit.plan.gpus import SHIPPED  # it makes targets of these

    cuda = Target("cuda", "cuda", 1, 48 * KIB, max_arguments=256, nests=True)
    shipped = {
        "cpu": cpu(),
        "interpret": evolve(cpu(), name="interpret"),
        "blocks": evolve(cpu(), name="blocks"),
        "opencl": Target(
            *("opencl", "opencl", 1, 32 * KIB), launch=1e-5, max_arguments=128, costed=False
        ),
        "cuda": SHIPPED["H100"].numbers(cuda),
    }
    for name, target in shipped.items():
        _targets.register(name, target)


def target_of(what: str | Target) -> Target:
    """The target of a name, or the target given. Raises: SettingError with the nearest name."""
    if isinstance(what, Target):
        return what
    _register_shipped()
    return _targets[what]


def list_targets() -> list[str]:
    """The names of all targets, sorted."""
    _register_shipped()
    return _targets.names()


def register_target(target: Target) -> Target:
    """Make a target of your own known by its name; a later one of the same name replaces it.

    Its ``dialect`` prints the kernels, and is looked up when one is made.

    Raises: SettingError for what is no Target.
    """
    if not isinstance(target, Target):
        raise SettingError(
            f"register_target needs a pk.Target, got {target!r}; "
            f"attrs.evolve(target_of('opencl'), name=…) makes one of another"
        )
    _register_shipped()
    _targets.register(target.name, target)
    return target
