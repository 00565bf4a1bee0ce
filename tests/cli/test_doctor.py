"""`passkit doctor`: checks of each part, and what to do about parts that do not work."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import pytest

from passkit.cli import doctor, main
from passkit.errors import PasskitError
from passkit.runtime.native.blas import NO_BLAS
from tests import opencl
from tests.emulator.fake_driver import fake_cuda

Capture = pytest.CaptureFixture[str]


def checks(capsys: Capture, code: int = 0) -> dict[str, dict[str, object]]:
    """Return the checks that ``passkit doctor --json`` prints, by name."""
    assert main(["doctor", "--json"]) == code
    return {row["name"]: row for row in json.loads(capsys.readouterr().out)}


def test_parts_without_a_device_work_if_there_is_a_compiler(capsys: Capture) -> None:
    """With a compiler, all checks that need no device succeed."""
    results = checks(capsys)

    for name in ("python", "cpu", "interpret", "compiler", "threads", "blas", "cache", "solver"):
        assert results[name]["works"], results[name]
    assert str(results["cpu"]["found"]).startswith("ran 1 kernel")


def test_each_failed_check_says_what_to_do(capsys: Capture) -> None:
    """Every check that fails has a text about what to do."""
    assert all(row["way_out"] for row in checks(capsys).values() if not row["works"])


def test_the_interpreter_suffices_without_a_compiler(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a compiler the exit code is 0, and the table says how to install one."""
    monkeypatch.setenv("PASSKIT_CXX", "/nonexistent/c++")
    results = checks(capsys)

    assert not results["cpu"]["works"]
    assert results["interpret"]["works"]
    assert "g++" in str(results["compiler"]["way_out"])
    assert "/nonexistent/c++" in str(results["compiler"]["found"])


def test_the_exit_code_is_1_if_no_target_runs(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If neither the CPU nor the interpreter runs, the table has the errors."""

    def broken(target: str) -> str:
        raise PasskitError(f"no {target} today")

    monkeypatch.setattr(doctor, "run_trial", broken)
    results = checks(capsys, code=1)

    assert results["interpret"]["found"] == "no interpret today"


def test_an_invalid_number_of_threads_is_reported(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An invalid PASSKIT_THREADS fails the check of threads, without an error."""
    monkeypatch.setenv("PASSKIT_THREADS", "many")

    assert "many" in str(checks(capsys)["threads"]["found"])


def test_a_target_with_wrong_results_does_not_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """The trial program's result is checked, not only that it runs."""

    class Wrong:
        kernels = ()

        def __call__(self, x: object) -> list[object]:
            return [x]

    monkeypatch.setattr(doctor, "compile", lambda graph, target: Wrong())

    with pytest.raises(RuntimeError, match=r"for x = 3 is 3\.0 instead of 7"):
        doctor.run_trial("cpu")


def test_cuda_libraries_are_listed_with_their_features(monkeypatch: pytest.MonkeyPatch) -> None:
    """Installed libraries are listed with their features, others with the reason."""

    def find(name: str) -> None:
        if name not in installed:
            raise ImportError(f"No module named {name!r}")

    installed = ["cuda-bindings"]
    compiler = SimpleNamespace(nvrtcVersion=lambda: (0, 13, 0))
    monkeypatch.setattr(doctor, "import_module", {"cuda.bindings.nvrtc": compiler}.__getitem__)
    monkeypatch.setattr("passkit.runtime.cuda.device.import_driver_module", find)
    monkeypatch.setattr(doctor, "version", lambda name: "13.5.0")

    assert doctor.check_nvrtc().finding == "NVRTC 13.0"
    check = doctor.check_cuda_library()
    assert check.works and check.finding == (
        "cuda-bindings 13.5.0: launches, memory, events, graphs, grid barriers; "
        "no PyCUDA (No module named 'PyCUDA')"
    )
    installed.clear()
    check = doctor.check_cuda_library()
    assert not check.works and check.finding.startswith(
        "no PyCUDA (No module named 'PyCUDA'); no cu"
    )


def test_a_cuda_device_is_described_and_runs_a_kernel() -> None:
    """The check has the device's features, and runs a kernel on it."""
    with fake_cuda() as driver:
        check = doctor.check_cuda()
        assert check.works and check.finding == (
            "Fake (sm_90, a fake): CUDA 13.0, 64 MiB of memory, 2 multiprocessors, 227 KiB of "
            "shared memory for a block, graphs, grid barriers; "
            "planned with data sheet numbers of Fake; ran 1 kernel"
        )
        driver.supports_graphs = False
        assert "no graphs, no grid barriers" in doctor.check_cuda().finding


def test_opencl_devices_are_listed_and_one_runs_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """All devices are listed with their features; a platform without devices does not work.

    Without pyopencl the check says how to install it.
    """
    devices = ["PoCL (PYOPENCL_CTX=0:0): 1 MiB of local memory", "H0 (PYOPENCL_CTX=1:0)"]
    monkeypatch.setattr("passkit.runtime.opencl.device.describe_devices", lambda: iter(devices))
    monkeypatch.setattr(doctor, "run_trial", lambda target: f"ran {target}")

    assert doctor.check_opencl().finding == f"{devices[0]}; {devices[1]}; ran opencl"
    devices.clear()
    assert doctor.check_opencl() == doctor.HealthCheck(
        "opencl", False, "pyopencl finds no device", "pip install 'passkit[opencl]'"
    )
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    check = doctor.check_opencl()
    assert not check.works and "needs pyopencl" in check.finding


def test_opencl_of_this_machine_runs_a_kernel() -> None:
    """A kernel runs on the chosen OpenCL device of this machine."""
    opencl.require_pyopencl()

    assert doctor.check_opencl().works and "; ran 1 kernel" in doctor.check_opencl().finding


def test_matrix_products_without_blas_count_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matrix products run in passkit's own loops then, but the check fails."""
    monkeypatch.setattr(doctor, "blas", lambda: NO_BLAS)

    assert not doctor.check_blas().works
    assert doctor.check_blas().finding == NO_BLAS.name
