"""Calibration of a CUDA device, and its use by plans."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import passkit as pk
from passkit.cli import doctor
from passkit.library.gpu_profile import read_gpu_profile
from passkit.runtime.cuda.device import adapt_target, calibration_name, device, profiled_target
from passkit.target import MIB, target_of
from passkit.tuning.gpu_calibration import calibrate_gpu
from tests.emulator.fake_driver import FakeDriver, fake_cuda


def test_calibration_with_an_injected_clock(fresh_cache: Path) -> None:
    """2 TB/s and 5 us per launch are measured, stored and used by plans; damaged files are not."""
    driver = FakeDriver()
    driver.seconds_a_byte, driver.seconds_a_launch = 1e-12, 5e-6
    with fake_cuda(driver):
        facts = device().properties
        shipped = profiled_target(target_of("cuda"), facts)
        assert "data sheet figures of Fake" in doctor.gpu_profile_text()
        result = calibrate_gpu(device())
        doctor.calibrate_gpus()
        target = adapt_target(target_of("cuda"))
        assert "GB/s, a launch takes 5 us" in doctor.gpu_profile_text().replace("µs", "us")
        local = read_gpu_profile(calibration_name(facts))

    assert [n for n, _ in result.curve] == [2 * MIB, 4 * MIB, 8 * MIB, 16 * MIB, 32 * MIB]
    assert [speed for _, speed in result.curve] == pytest.approx([2e12] * 5, rel=0.01)
    assert result.launch == pytest.approx(5e-6, rel=1e-3)
    assert local is not None and (target.curve, target.launch) == local
    assert local.launch == pytest.approx(result.launch)
    assert (shipped.curve, shipped.light) != (target.curve, 0) and shipped.light == target.light
    (path,) = (fresh_cache / "tuned").glob("cuda-*.json")
    good = path.read_text()
    large = json.dumps({**json.loads(good), "curve": [[10**400, 1.0]]})
    for torn in (good[:40], good.replace("Fake", "Other"), json.dumps({"format": 1}), large):
        path.write_text(torn)
        assert read_gpu_profile(calibration_name(facts)) is None


def test_without_a_device_nothing_is_measured(
    fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is measured, and nothing is said."""

    def none() -> None:
        raise pk.PasskitError("no device")

    monkeypatch.setattr("passkit.runtime.cuda.device.device", none)
    doctor.calibrate_gpus()
    assert not list(fresh_cache.rglob("cuda-*.json"))


def test_occupancy_is_in_the_stats() -> None:
    """Stats have the occupancy of each kernel, from its registers, threads and shared memory."""
    with fake_cuda():
        exe = pk.compile(pk.Graph([pk.ops.exp(pk.var("x", (8,)))]), target="cuda")
        exe(x=[1.0] * 8)
        reported = exe.stats["occupancy"]

    assert reported == {exe.kernels[0].name: 1.0}
