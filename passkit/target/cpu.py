"""The target of this machine's CPU, by what Linux says of it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from passkit.target.target import KIB, MIB, Target


def _cache_bytes(level: int, default: int) -> int:
    """Return the bytes of a core's cache of a level, by Linux; ``default`` if they are unknown."""
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
    """Return this machine's CPU: half of one core's second cache is scratch.

    Light operators are an instruction or two. GCC compiles 1,300 of them in five seconds, and 100
    rounds of a loop that is written out then take half the time of kernels of 256, each of which
    passes on what 30 rounds leave for others.
    """
    second = _cache_bytes(2, MIB)
    plain, apart = _stream_bytes(second, _cache_bytes(3, 32 * MIB))
    return Target(
        name="cpu",
        dialect="cxx",
        lanes=16,
        scratch=second // 2,
        light_ops=8,
        stream_bytes=plain,
        stream_apart=apart,
        grows=True,
    )


def _stream_bytes(second: int, third: int) -> tuple[int, int]:
    """Return the bytes from which on results are written past the caches, and those of pixels.

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
