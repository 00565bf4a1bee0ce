"""`passkit doctor`: checks of each part, and what to do about parts that do not work."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace

import pytest

from passkit.cli.doctor import check_torch, run_torch_trial
from passkit.errors import PasskitError
from tests import opencl
from tests.command import json_of
from tests.emulator.fake_driver import fake_cuda


def checks(code: int = 0) -> dict[str, dict[str, object]]:
    """Return the checks that ``passkit doctor --json`` prints, by name."""
    return {row["name"]: row for row in json_of("doctor", code=code)}


def write_package(folder: Path, name: str, version: str, *files: str) -> None:
    """Write the metadata of an installed package that has some files, and the files, empty."""
    metadata = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
    (metadata / "RECORD").write_text("".join(f"{file},,\n" for file in files))
    for file in files:  # some versions of importlib.metadata leave out those that do not exist
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).touch()


def test_parts_without_a_device_work_if_there_is_a_compiler() -> None:
    """With a compiler, all checks that need no device succeed."""
    results = checks()

    for name in ("python", "cpu", "interpret", "compiler", "threads", "blas", "cache", "solver"):
        assert results[name]["works"], results[name]
    assert str(results["cpu"]["found"]).startswith("ran 1 kernel")


def test_each_failed_check_says_what_to_do() -> None:
    """Every check that fails has a text about what to do."""
    assert all(row["way_out"] for row in checks().values() if not row["works"])


def test_the_interpreter_suffices_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a compiler the exit code is 0, and the table says how to install one."""
    monkeypatch.setenv("PASSKIT_CXX", "/nonexistent/c++")
    results = checks()

    assert not results["cpu"]["works"]
    assert results["interpret"]["works"]
    assert "g++" in str(results["compiler"]["way_out"])
    assert "/nonexistent/c++" in str(results["compiler"]["found"])


def test_the_exit_code_is_1_if_no_target_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """If neither the CPU nor the interpreter runs, the table has the errors."""

    def broken(target: str) -> str:
        raise PasskitError(f"no {target} today")

    monkeypatch.setattr("passkit.cli.doctor.run_trial", broken)
    results = checks(code=1)

    assert results["interpret"]["found"] == "no interpret today"


def test_an_invalid_number_of_threads_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """An invalid PASSKIT_THREADS fails the check of threads, without an error."""
    monkeypatch.setenv("PASSKIT_THREADS", "many")

    assert "many" in str(checks()["threads"]["found"])


def test_a_target_with_wrong_results_does_not_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """The trial program's result is checked, not only that it runs."""

    class Wrong:
        kernels = ()

        def __call__(self, x: object) -> list[object]:
            return [x]

    monkeypatch.setattr("passkit.cli.doctor.compile", lambda graph, target: Wrong())
    results = checks(code=1)

    for name in ("cpu", "interpret"):
        assert not results[name]["works"]
        assert results[name]["found"] == "the result of x * 2 + 1 for x = 3 is 3.0 instead of 7"


def test_cuda_libraries_are_listed_with_their_features(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Installed libraries are listed with their features, others with the reason."""
    write_package(tmp_path, "cuda-bindings", "13.5.0")
    monkeypatch.syspath_prepend(tmp_path)
    compiler = SimpleNamespace(nvrtcVersion=lambda: (0, 13, 0))
    monkeypatch.setitem(sys.modules, "cuda.bindings.nvrtc", compiler)
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "pycuda.driver", None)
    with fake_cuda():
        results = checks()

    assert results["nvrtc"]["works"] and results["nvrtc"]["found"] == "NVRTC 13.0"
    assert results["cuda library"]["works"] and results["cuda library"]["found"] == (
        "cuda-bindings 13.5.0: launches, memory, events, graphs, grid barriers; "
        "no PyCUDA (import of pycuda.driver halted; None in sys.modules)"
    )
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", None)
    missing = checks()["cuda library"]
    assert not missing["works"] and missing["found"] == (
        "no PyCUDA (import of pycuda.driver halted; None in sys.modules); "
        "no cuda-bindings (import of cuda.bindings.driver halted; None in sys.modules)"
    )


def test_a_cuda_device_is_described_and_runs_a_kernel() -> None:
    """The check has the device's features, and runs a kernel on it."""
    with fake_cuda() as driver:
        check = checks()["cuda"]
        assert check["works"] and check["found"] == (
            "Fake (sm_90, a fake): CUDA 13.0, 64 MiB of memory, 2 multiprocessors, 227 KiB of "
            "shared memory for a block, graphs, grid barriers; "
            "planned with data sheet figures of Fake; ran 1 kernel"
        )
        driver.supports_graphs = False
        assert "no graphs, no grid barriers" in str(checks()["cuda"]["found"])


def test_opencl_devices_are_listed_and_one_runs_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """All devices are listed with their features; a platform without devices does not work.

    Without pyopencl the check says how to install it.
    """
    devices = ["PoCL (PYOPENCL_CTX=0:0): 1 MiB of local memory", "H0 (PYOPENCL_CTX=1:0)"]
    monkeypatch.setattr("passkit.runtime.opencl.device.describe_devices", lambda: iter(devices))
    monkeypatch.setattr("passkit.cli.doctor.run_trial", lambda target: f"ran {target}")

    assert checks()["opencl"]["found"] == f"{devices[0]}; {devices[1]}; ran opencl"
    devices.clear()
    assert checks()["opencl"] == {
        "name": "opencl",
        "works": False,
        "found": "pyopencl finds no device",
        "way_out": "pip install 'passkit[opencl]'",
    }
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    check = checks()["opencl"]
    assert not check["works"] and "needs pyopencl" in str(check["found"])


def test_opencl_of_this_machine_runs_a_kernel() -> None:
    """A kernel runs on the chosen OpenCL device of this machine."""
    opencl.require_pyopencl()
    check = checks()["opencl"]

    assert check["works"] and "; ran 1 kernel" in str(check["found"])


def test_matrix_products_without_blas_count_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matrix products run in passkit's own loops then, but the check fails."""
    name = "the launcher's own loops"
    monkeypatch.setattr("passkit.cli.doctor.blas", lambda: SimpleNamespace(name=name))
    check = checks()["blas"]

    assert not check["works"] and check["found"] == name
    assert check["way_out"] == "pip install scipy-openblas32"


def test_a_missing_or_broken_onednn_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The check says what is missing, and what to install."""

    def no_package(name: str) -> None:
        raise PackageNotFoundError(name)

    with monkeypatch.context() as patch:
        patch.setattr("importlib.metadata.files", no_package)
        check = checks()["convolutions"]
    assert not check["works"] and str(check["found"]).startswith("no oneDNN")
    assert check["way_out"] == "pip install onednn-cpu-gomp"

    write_package(tmp_path, "onednn-cpu-gomp", "9.9", "lib/libdnnl.so.3")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("passkit.runtime.native.onednn.load_library", lambda: None)
    check = checks()["convolutions"]
    assert not check["works"]
    assert str(check["found"]).startswith(f"{tmp_path}/lib/libdnnl.so.3 does not load")


def fake_torch(backends: list[str], result: list[float]) -> SimpleNamespace:
    """Return a module like PyTorch with these backends, whose compiled functions return a list."""
    return SimpleNamespace(
        __version__="9.0",
        arange=lambda n: 3.0,
        compile=lambda function, backend: lambda x: result,
        compiler=SimpleNamespace(list_backends=lambda: backends),
        equal=lambda actual, expected: actual[3] == expected,
    )


def test_the_backend_of_pytorch_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """It works where PyTorch lists the backend, and a compiled function has the right result."""
    monkeypatch.setitem(sys.modules, "torch", fake_torch(["passkit"], [0, 0, 0, 7.0]))
    assert check_torch().finding == "torch 9.0: the backend compiled a function"

    monkeypatch.setitem(sys.modules, "torch", fake_torch(["passkit"], [0, 0, 0, 8.0]))
    with pytest.raises(RuntimeError, match=r"for x = 3 is 8\.0 instead of 7"):
        run_torch_trial()

    monkeypatch.setitem(sys.modules, "torch", fake_torch(["inductor"], []))
    with pytest.raises(RuntimeError, match=r"torch 9\.0 does not list the backend"):
        run_torch_trial()
    assert not check_torch().works
