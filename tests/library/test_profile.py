"""The profile of the CPU: its file, its use by plans, and its measurement."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from attrs import evolve

import passkit as pk
from passkit.cli import doctor, main
from passkit.errors import CacheError
from passkit.library import store
from passkit.library.cpu_profile import (
    CpuProfile,
    calibrated,
    cpu_profile_digest,
    read_cpu_profile,
    write_cpu_profile,
)
from passkit.library.device import device_key
from passkit.program.plan_cache import plan_key
from passkit.target import cpu, target_of
from passkit.tuning import calibration

ONE = CpuProfile(((1 << 17, 8e10), (1 << 27, 5e9)), 1e-8, 3e-7, ((1 << 15, 1e-9), (1 << 25, 9e-8)))


def test_plans_use_a_written_profile(fresh_cache: Path) -> None:
    """A profile applies to the CPU given by name, and changes the key of the plan cache."""
    graph = pk.Graph([pk.ops.exp(pk.var("x", (3,)))])
    key = plan_key(graph, {})
    assert read_cpu_profile() is None and cpu_profile_digest() == "" and calibrated(cpu()) is cpu()
    write_cpu_profile(ONE)

    assert read_cpu_profile() == ONE
    target = pk.PassContext().target
    assert (target.curve, target.launch, target.meeting) == (ONE.curve, 1e-8, 3e-7)
    assert pk.PassContext(target="cpu").target == target
    assert target.moving(1 << 27) == pytest.approx((1 << 27) / 5e9)
    assert pk.PassContext(target=cpu()).target == cpu()
    assert pk.PassContext(target="blocks").target == target_of("blocks")
    assert plan_key(graph, {}) != key
    before = pk.ApplyPasses(graph, ["Fusion", "SchedulePlan"], target=cpu())
    after = pk.ApplyPasses(graph, ["Fusion", "SchedulePlan"])
    (usual,), (now,) = (g.attrs["schedule"].values() for g in (before, after))
    assert now == evolve(usual, seconds=now.seconds)
    assert store.content().nbytes == store.clear() > 0 and read_cpu_profile() is None


def test_damaged_profiles_are_ignored(fresh_cache: Path) -> None:
    """Damaged, foreign and stale files, and implausible figures, are no profile."""
    write_cpu_profile(ONE)
    (path,) = (fresh_cache / "tuned").glob("*.json")
    good = json.loads(path.read_text())
    bad = [
        {"device": "another"},
        {"format": 0},
        {"curve": []},
        {"curve": [[2, 1.0], [1, 1.0]]},
        {"launch": "x"},
        {"curve": [[1, 0.0]]},
        {"curve": [[float("inf"), 1.0]]},
        {"curve": [[10**400, 1.0]]},
        {"meeting": -1.0},
        {"launch": float("inf")},
        {"latency": [[1]]},
    ]
    for text in ["", "[]", "{", path.read_text()[:-9], *(json.dumps(good | b) for b in bad)]:
        path.write_text(text)
        assert read_cpu_profile() is None, text
    write_cpu_profile(ONE)
    fresh_cache.chmod(0o777)
    with pytest.raises(CacheError, match=f"{fresh_cache} has mode 0777: others may write"):
        read_cpu_profile()


def test_doctor_measures_a_profile(
    fresh_cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`passkit doctor --calibrate` measures a profile, and later runs report it."""
    monkeypatch.setattr(calibration, "SIZES", (1 << 14, 1 << 15))
    monkeypatch.setattr(calibration, "MIN_COPY_BYTES", 0)
    monkeypatch.setattr("passkit.program.copying.SIZES", (1 << 12, 1 << 14))
    monkeypatch.setattr(doctor, "CHECKS", (doctor.check_profile, doctor.check_cpu))
    calibration.copy_speed.cache_clear()
    assert main(["doctor"]) == 0
    assert "default numbers" in capsys.readouterr().out
    assert main(["doctor", "--calibrate", "--json"]) == 0
    calibration.copy_speed.cache_clear()
    (reported, _) = json.loads(capsys.readouterr().out)

    assert reported["works"] and "GB/s in the caches" in reported["found"]
    result = read_cpu_profile()
    assert result is not None and result.meeting > 0 < result.launch < 1e-4
    assert [n for n, _ in result.curve] == [1 << 13, 1 << 15]
    assert result.curve[0][1] >= result.curve[1][1] > 1e8
    assert [n for n, _ in result.latency] == [1 << 14, 1 << 15]
    assert os.listdir(fresh_cache / "tuned").count(f"{device_key()}.json") == 1
