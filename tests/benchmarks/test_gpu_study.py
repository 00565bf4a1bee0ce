"""Machine code executed without a device: what kernels of the GPU study cost."""

from __future__ import annotations

import importlib
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
FEW = ("gelu_erf 67108864", "softmax 65536x1024")
"""The others, and other architectures, by ``python benchmarks/gpu_study.py``."""
STUDIED = {"gelu_erf 67108864": 24, "softmax 65536x1024": 16, "layer_norm 87381x768": 12}
"""Instructions an element of kernels by hand, counted in their listings by eye."""
PLANTED = """extern "C" __global__ void planted(const float *x, float *y, float z, int n) {
  for (int k = threadIdx.x; k < n; k += 1 << 20) {
    float a = x[k] / z;
    if (a > 3.0e38f) a = x[0];
    y[k] = a / x[k + (1 << 20)];
  }
}
"""
LISTING = """
	.section	.text.f,"ax",@progbits
f:
        /*0000*/                   S2R R0, SR_TID.X ;
        /*0010*/                   LDC.64 R2, c[0x0][0x210] ;
        /*0020*/                   IMAD.WIDE R2, R0, 0x4, R2 ;
        /*0030*/                   BSSY B0, `(.L_x_1) ;
        /*0040*/                   ISETP.GE.AND P0, PT, R0, 0x8, PT ;
        /*0050*/               @P0 BRA `(.L_x_2) ;
        /*0060*/                   MOV R4, RZ ;
.L_x_0:
        /*0070*/                   IADD3 R4, R4, 0x1, RZ ;
        /*0080*/                   ISETP.LT.AND P1, PT, R4, R0, PT ;
        /*0090*/               @P1 BRA `(.L_x_0) ;
        /*00a0*/                   BRA `(.L_x_3) ;
.L_x_2:
        /*00b0*/                   MOV R4, 0x64 ;
.L_x_3:
        /*00c0*/                   BSYNC B0 ;
.L_x_1:
        /*00d0*/                   STG.E desc[UR4][R2.64], R4 ;
        /*00e0*/                   EXIT ;
"""


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the scripts be imported."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


@pytest.fixture
def study() -> Any:
    """Return the script; skip the test without NVRTC or nvdisasm."""
    pytest.importorskip("cuda.bindings.nvrtc", reason="cuda-bindings is not installed")
    module = importlib.import_module("gpu_study")
    try:
        module.sass.nvdisasm()
    except module.sass.NoDisassemblerError as error:
        pytest.skip(str(error))
    return module


def recorded(memory: Any, begin: int) -> dict[int, int]:
    """Return the words that will be written to an array, by index."""
    words: dict[int, int] = {}
    write = memory.write

    def noting(name: str, addresses: Any, nbytes: int, values: Any, active: Any) -> None:
        write(name, addresses, nbytes, values, active)
        for k, value in enumerate(values):
            for address, word in zip(addresses[active], value[active], strict=True):
                words[(int(address) - begin) // 4 + k] = int(word)

    memory.write = noting
    return words


def warp(listing: str, arrays: list[int], threads: int = 32, numbers: bytes = b"") -> Any:
    """Return a warp of the kernel f of a listing, and its memory."""
    from machine_code.listing import listings
    from machine_code.memory import DeviceMemory, placed
    from machine_code.warp import Warp, WarpLaunch

    regions = placed([(n, False, None) for n in arrays])
    parameters = b"".join(struct.pack("<Q", r.begin) for r in regions) + numbers
    memory = DeviceMemory(regions)
    shape = WarpLaunch(1, (threads, 1), parameters, 90)
    return Warp(listings(listing)["f"], shape, memory, 0, 0), memory


def test_lanes_diverge_and_meet() -> None:
    """Lanes with loops of their own lengths are counted as one warp until the longest has ended."""
    one, memory = warp(LISTING, [128])
    words = recorded(memory, memory.regions[0].begin)
    trace = one.run()

    assert [words[k] for k in range(32)] == [1, 1, 2, 3, 4, 5, 6, 7] + [100] * 24
    assert list(trace.issued) == [1] * 7 + [7] * 3 + [1, 1, 1, 1, 1]


def test_reads_may_end_with_the_last_16_bytes_of_an_array() -> None:
    """The compiler joins loads where the aligned 16 bytes have an element; stores it does not."""
    from machine_code.memory import DeviceMemory, StrayAccessError, placed

    memory = DeviceMemory(placed([(376, False, None)]))
    last = np.array([memory.regions[0].begin + 368], np.uint64)

    assert memory.check(last, 16, False, is_read=True) is memory.regions[0]
    with pytest.raises(StrayAccessError, match="16 bytes at 0x7f0000000170 .* in no array"):
        memory.check(last, 16, False)


def test_code_that_cannot_be_executed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors name the instruction, the stray address and the endless loop."""
    from machine_code import warp as module
    from machine_code.memory import StrayAccessError
    from machine_code.operations import UnknownInstructionError

    odd = LISTING.replace("BSYNC B0", "WGMMA.X R0, R1")
    with pytest.raises(UnknownInstructionError, match=r"0xc0: WGMMA\.X R0, R1"):
        warp(odd, [128])[0].run()
    with pytest.raises(UnknownInstructionError, match="special register SR_PM0"):
        warp(LISTING.replace("SR_TID.X", "SR_PM0"), [128])[0].run()
    with pytest.raises(StrayAccessError, match=r"4 bytes at 0x7f0000000000 .* in no array"):
        warp(LISTING, [64])[0].run()
    with pytest.raises(StrayAccessError, match="an address of 4 bytes is not aligned"):
        warp(LISTING.replace("0x4, R2", "0x2, R2"), [128])[0].run()
    shared = LISTING.replace("STG.E desc[UR4][R2.64]", "STS [R2+0x40000]")
    with pytest.raises(StrayAccessError, match="shared memory ends before"):
        warp(shared, [128])[0].run()
    monkeypatch.setattr(module, "MOST_STEPS", 1000)
    with pytest.raises(module.EndlessWarpError, match="more than 1000 instructions"):
        warp(LISTING.replace("@P1 BRA", "    BRA"), [128])[0].run()
    alone = LISTING.replace("BSYNC B0", "WARPSYNC R4").replace("MOV R4, 0x64", "EXIT")
    assert warp(alone, [128])[0].run().instructions > 20  # for lanes that have ended nobody waits


def test_kernels_by_hand_compute_what_they_say(study: Any) -> None:
    """GELU and softmax of one warp are NumPy's, for all architectures."""
    from machine_code.memory import DeviceMemory, placed
    from machine_code.warp import Warp, WarpLaunch

    def results(name: str, architecture: int) -> tuple[np.ndarray, np.ndarray]:
        (launch,) = study.rows()[name].by_hand()
        kernel, regions = study.compiled(launch, architecture), placed(launch.arrays)
        addresses = b"".join(struct.pack("<Q", r.begin) for r in regions)
        shape = WarpLaunch(launch.grid, launch.block, addresses + launch.numbers, architecture)
        memory = DeviceMemory(regions)
        words = recorded(memory, regions[-1].begin)
        Warp(kernel.listing, shape, memory, 3, 1).run()
        at = np.array(sorted(words))
        lanes = np.full(32, True)
        x = [
            memory.read("LDG", np.full(32, regions[0].begin + 4 * k, np.uint64), 4, lanes)[0][0]
            for k in at
        ]
        y = np.array([words[k] for k in at], np.uint32).view(np.float32)
        return np.array(x, np.uint32).view(np.float32).astype(np.float64), y

    for architecture in study.ARCHITECTURES:
        x, y = results("gelu_erf 67108864", architecture)
        erf = np.array([math.erf(a / math.sqrt(2)) for a in x])
        np.testing.assert_allclose(y, x * (erf + 1) / 2, rtol=2e-6, atol=1e-7)
        x, y = results("softmax 65536x1024", architecture)
        e = np.exp(x - x.max())
        assert len(y) == 1024
        np.testing.assert_allclose(y, e / e.sum(), rtol=2e-6, atol=0)


def test_counts_are_those_of_the_listings(study: Any) -> None:
    """Instructions of kernels by hand are within a tenth of what was counted by eye."""
    for name, count in STUDIED.items():
        hand = study.side(study.rows()[name].by_hand(), 90, study.rows()[name].elements)
        assert abs(hand.instructions / count - 1) < 0.1 and hand.slow_calls == hand.spilled == 0
        assert hand.waits == 1 and hand.main.per_unit >= 64 * 1024


def test_slow_paths_and_late_loads_are_found(study: Any) -> None:
    """A division, and a load behind the first use of another one, count."""
    n = 1 << 20
    arrays = tuple((4 * k, True, None) for k in (2 * n, n))
    numbers = struct.pack("<fi", 3.0, n)
    launch = study.StudyLaunch(PLANTED, "planted", arrays, numbers, 1, (256, 1))
    figures = study.figures(launch, 90)

    assert figures.slow_calls == 2 * 8 and figures.waits == 2 and figures.spilled == 0
    assert figures.in_flight == 4 and figures.sectors == 1


def test_printed_kernels_are_no_worse_than_the_table(study: Any) -> None:
    """Of some rows, for sm_90; ``gpu_study.py --write`` writes what is better."""
    lines = study.table_lines(FEW, [90])
    printed = lines[::2]

    assert len(lines) == 2 * len(FEW) and study.worse_lines(lines) == []
    assert study.differing_lines(lines[1::2]) == []
    assert study.worse_lines([printed[0].replace(" 0 spilled", " 8 spilled")])
    if study.TABLE.read_text().splitlines()[0] == str(study.cubins.nvrtc()):
        slower = f"{study.sass.numbers(printed[0])['instructions'] + 9:.1f} instructions"
        head, _, rest = printed[0].partition(": ")
        worse = f"{head}: {slower}, {rest.partition(', ')[2]}"
        assert study.worse_lines([worse]) == [worse] and study.differing_lines([worse]) == [worse]


def test_lines_of_some_rows_are_written(
    study: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other rows stay, in their order, unless another compiler wrote them."""
    old = study.TABLE.read_text().splitlines()[1:]
    monkeypatch.setattr(study, "TABLE", tmp_path / "table.txt")
    changed = old[40].replace(" registers", "1 registers")
    for version, kept in ((str(study.cubins.nvrtc()), [*old[:40], changed, *old[41:]]), ("x", [])):
        study.TABLE.write_text("\n".join([version, *old]) + "\n")
        study.write_table([changed])
        written = study.TABLE.read_text().splitlines()
        assert written == [str(study.cubins.nvrtc()), *(kept or [changed])]
