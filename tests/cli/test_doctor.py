"""The doctor: every part is asked, and what is missing is answered with a command."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace as Fake

import pytest

import passkit.program.compiler
from passkit.cli import doctor, main
from passkit.errors import PasskitError
from tests import opencl
from tests.emulator.fake_driver import fake_cuda

Capture = pytest.CaptureFixture[str]


def checks(capsys: Capture, code: int = 0) -> dict[str, dict[str, object]]:
    """What the doctor found, by name."""
    assert main(["doctor", "--json"]) == code
    return {row["name"]: row for row in json.loads(capsys.readouterr().out)}


def test_a_healthy_machine(capsys: Capture) -> None:
    """With a compiler all that needs no device works."""
    found = checks(capsys)

    for name in ("python", "cpu", "interpret", "compiler", "threads", "blas", "cache", "solver"):
        assert found[name]["works"], found[name]
    assert str(found["cpu"]["found"]).startswith("ran 1 kernel")


def test_each_missing_part_has_a_way_out(capsys: Capture) -> None:
    """No check that fails leaves the user without a next step."""
    assert all(row["way_out"] for row in checks(capsys).values() if not row["works"])


def test_without_a_compiler(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter is enough for code 0; the table says how to get a compiler."""
    monkeypatch.setenv("PASSKIT_CXX", "/nonexistent/c++")
    found = checks(capsys)

    assert not found["cpu"]["works"]
    assert found["interpret"]["works"]
    assert "g++" in str(found["compiler"]["way_out"])
    assert "/nonexistent/c++" in str(found["compiler"]["found"])


def test_nothing_works(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """When neither target runs, the code is 1 and the table says what was wrong."""

    def broken(target: str) -> str:
        raise PasskitError(f"no {target} today")

    monkeypatch.setattr(doctor, "_trial", broken)
    found = checks(capsys, code=1)

    assert found["interpret"]["found"] == "no interpret today"


def test_a_wrong_number_of_threads(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting that passkit does not understand is a finding, not a crash."""
    monkeypatch.setenv("PASSKIT_THREADS", "many")

    assert "many" in str(checks(capsys)["threads"]["found"])


def test_wrong_results_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A target that computes something else does not work, whatever it says."""

    class Wrong:
        kernels = ()

        def __call__(self, x: object) -> list[object]:
            return [x]

    monkeypatch.setattr(passkit.program.compiler, "compile", lambda graph, target: Wrong())

    with pytest.raises(RuntimeError, match=r"at x = 3 came out as 3\.0"):
        doctor._trial("cpu")


def test_devices_and_compilers_of_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is installed is shown, with what it offers; what is not, with why."""

    def find(name: str) -> None:
        if name not in there:
            raise ImportError(f"No module named {name!r}")

    there = ["cuda-bindings"]
    compiler = Fake(nvrtcVersion=lambda: (0, 13, 0))
    monkeypatch.setattr(doctor, "import_module", {"cuda.bindings.nvrtc": compiler}.__getitem__)
    monkeypatch.setattr("passkit.runtime.cuda.device.import_driver_module", find)
    monkeypatch.setattr(doctor, "version", lambda name: "13.5.0")

    assert doctor.check_nvrtc().found == "NVRTC 13.0"
    check = doctor.check_cuda_library()
    assert check.works and check.found == (
        "cuda-bindings 13.5.0: these, graphs, grid barriers; no PyCUDA (No module named 'PyCUDA')"
    )
    there.clear()
    check = doctor.check_cuda_library()
    assert not check.works and check.found.startswith("no PyCUDA (No module named 'PyCUDA'); no cu")


def test_a_cuda_device() -> None:
    """What it is, what it can do, and that a kernel runs."""
    with fake_cuda() as driver:
        check = doctor.check_cuda()
        assert check.works and check.found == (
            "Fake (sm_90, a fake): CUDA 13.0, 64 MiB of memory, 2 multiprocessors, 227 KiB of "
            "shared memory for a block, graphs, grid barriers; "
            "planned by the numbers shipped for Fake, of data sheets; ran 1 kernel"
        )
        driver.supports_graphs = False
        assert "no graphs, no grid barriers" in doctor.check_cuda().found


def test_opencl_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them with what they can do, and a trial on one; a platform without any is not enough.

    Without pyopencl the command that installs it is the way out.
    """
    found = ["PoCL (PYOPENCL_CTX=0:0): 1 MiB of local memory", "H0 (PYOPENCL_CTX=1:0)"]
    monkeypatch.setattr("passkit.runtime.opencl.device.describe_devices", lambda: iter(found))
    monkeypatch.setattr(doctor, "_trial", lambda target: f"ran {target}")

    assert doctor.check_opencl().found == f"{found[0]}; {found[1]}; ran opencl"
    found.clear()
    assert doctor.check_opencl() == doctor.Check(
        "opencl", False, "pyopencl finds no device", "pip install 'passkit[opencl]'"
    )
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    check = doctor.check_opencl()
    assert not check.works and "needs pyopencl" in check.found


def test_opencl_of_this_machine() -> None:
    """A kernel runs on the device that is there."""
    opencl.require_pyopencl()

    assert doctor.check_opencl().works and "; ran 1 kernel" in doctor.check_opencl().found


def test_products_without_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matrix products that run on the launcher's own loops work, and count as missing."""
    import passkit.runtime.native.blas as native

    monkeypatch.setattr(native, "blas", lambda: native.NO_BLAS)

    assert not doctor.check_blas().works
    assert doctor.check_blas().found == native.NO_BLAS.name
