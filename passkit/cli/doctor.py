"""``passkit doctor``: check which parts of passkit work on this machine.

Each check that fails says what to install or to set.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

import numpy as np
from attrs import evolve, frozen

import passkit.ops  # noqa: F401  (the trial programs need operators)
from passkit.cli.command_result import CommandResult
from passkit.errors import PasskitError, PluginWarning
from passkit.fusion.selection.solver import Program, solve
from passkit.graph.graph import Graph
from passkit.graph.node import var
from passkit.library.cpu_profile import read_cpu_profile, write_cpu_profile
from passkit.library.gpu_profile import read_gpu_profile, write_gpu_profile
from passkit.passes.option_types import TargetName
from passkit.program.compiler import compile
from passkit.runtime.cuda import device as cuda
from passkit.runtime.native import onednn
from passkit.runtime.native.blas import blas
from passkit.runtime.native.cache import KernelCache, cache_folder, trusted_folder
from passkit.runtime.native.compiler import INSTALL_HINT, cpu_facts, find_compiler
from passkit.runtime.native.launcher import requested_threads
from passkit.runtime.opencl import device as opencl
from passkit.tuning.calibration import calibrate
from passkit.tuning.gpu_calibration import calibrate_gpu
from passkit.values.plugins import load_plugins
from passkit.values.units import bytes_text, seconds_text, table
from passkit.viz.renderers import INSTALL, renderers


@frozen
class HealthCheck:
    """The result of checking one part of passkit. `as_dict` returns it for JSON output.

    Attributes:
        name: The name of the part.
        works: Whether it works.
        finding: The version or details of the part, or the reason why it does not work.
        way_out: The action to take if it does not work.
    """

    name: str
    works: bool
    finding: str
    way_out: str = ""

    def as_dict(self) -> dict[str, object]:
        """Return the fields under their names in the JSON output."""
        return {
            "name": self.name,
            "works": self.works,
            "found": self.finding,
            "way_out": self.way_out,
        }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--calibrate`` of ``passkit doctor``."""
    parser.add_argument(
        "--calibrate",
        action="store_true",
        help="first measure this CPU, and the CUDA device if there is one; later plans use the "
        "numbers",
    )


def run(options: argparse.Namespace) -> CommandResult:
    """Run all checks, after a calibration if requested, and return them as a table.

    The exit code is 0 if programs can run on the CPU or in the interpreter, else 1. A calibration
    writes its profiles to the cache folder.

    Raises: CompilerError where a calibration finds no C++ compiler; CacheError where a profile
    cannot be written; DeviceError where the CUDA device fails; MissingDependencyError where it has
    no NVRTC; SettingError where PASSKIT_THREADS is no number of threads.
    """
    if options.calibrate:
        write_cpu_profile(calibrate())
        calibrate_gpus()
    checks = [*(check() for check in CHECKS), *check_plugins()]
    rows = [
        (c.name, "yes" if c.works else "no", c.finding, "" if c.works else c.way_out)
        for c in checks
    ]
    works = {c.name: c.works for c in checks}
    text = table(("part", "works", "details", "what to do"), rows)
    code = 0 if works["cpu"] or works["interpret"] else 1
    return CommandResult([c.as_dict() for c in checks], text, code)


def calibrate_gpus() -> None:
    """Measure the CUDA device and store its profile; do nothing if it cannot be opened.

    Raises: DeviceError where the device fails; MissingDependencyError where NVRTC is not installed;
    CacheError where the profile cannot be stored.
    """
    try:
        device = cuda.device()
    except PasskitError:
        return
    write_gpu_profile(cuda.calibration_name(device.properties), calibrate_gpu(device))


def _attempt(name: str, way_out: str, find: Callable[[], str]) -> HealthCheck:
    """Return the check of a part that works unless ``find`` raises an error.

    Args:
        name: The name of the part.
        way_out: The action to take if it does not work.
        find: Returns the finding, or raises a PasskitError, ImportError, OSError or RuntimeError,
            whose first line is the finding; other errors propagate.
    """
    try:
        return HealthCheck(name, True, find(), way_out)
    except (PasskitError, ImportError, PackageNotFoundError, OSError, RuntimeError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        return HealthCheck(name, False, lines[0], way_out)


def check_python() -> HealthCheck:
    """Check that Python is version 3.11 or later.

    The finding has the versions of Python and NumPy, and the system.
    """
    parts = [f"Python {platform.python_version()}", f"NumPy {np.__version__}"]
    is_supported = sys.version_info >= (3, 11)
    return HealthCheck(
        "python", is_supported, f"{', '.join(parts)}, {platform.platform()}", "Python 3.11"
    )


def run_trial(target: TargetName) -> str:
    """Compile and run ``x * 2 + 1`` on a target; return a text such as "ran 1 kernel".

    Raises:
        RuntimeError: If the result is wrong.
        PasskitError: If the target does not work.
    """
    x = var("x", (1000,))
    run = compile(Graph([x * 2.0 + 1.0]), target=target)
    values = np.arange(1000, dtype=np.float32)
    (out,) = run(x=values)
    if not np.array_equal(out, values * 2 + 1):
        raise RuntimeError(f"the result of x * 2 + 1 for x = 3 is {out[3]} instead of 7")
    return f"ran {len(run.kernels)} kernel" if run.kernels else "ran in NumPy"


def check_cpu() -> HealthCheck:
    """Check that a kernel compiles, loads and runs on the CPU.

    Without a C++ compiler nothing is tried, and it does not work.
    """
    if find_compiler() is None:
        return HealthCheck("cpu", False, "no C++ compiler", INSTALL_HINT)
    return _attempt("cpu", "see the compiler's message", lambda: run_trial("cpu"))


def check_interpret() -> HealthCheck:
    """Check that a program runs without a compiler, in the interpreter."""
    return _attempt("interpret", "pip install numpy", lambda: run_trial("interpret"))


def check_compiler() -> HealthCheck:
    """Check that there is a C++ compiler for kernels."""
    compiler = find_compiler()
    if compiler is None:
        finding = os.environ.get("PASSKIT_CXX", "no C++ compiler")
        return HealthCheck("compiler", False, finding, INSTALL_HINT)
    return HealthCheck("compiler", True, f"{compiler.path} ({compiler.kind})")


def check_threads() -> HealthCheck:
    """Report the number of threads that kernels run on.

    It does not work if PASSKIT_THREADS is set to something else than a number of threads.
    """
    return _attempt(
        "threads",
        "set PASSKIT_THREADS to a number",
        lambda: f"{requested_threads()} of {os.cpu_count()} CPUs",
    )


def check_instructions() -> HealthCheck:
    """Report the widest vector instructions of this CPU; this check always works."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            features = set(cpu_facts(file.read(1 << 14))[1])
    except OSError:
        features = set()
    widest = next(
        (
            text
            for text, needed in (
                ("AVX-512: 16 floats at a time", {"avx512f"}),
                ("AVX2 and FMA: 8 floats at a time", {"avx2", "fma"}),
                ("AVX: 8 floats at a time", {"avx"}),
                ("NEON: 4 floats at a time", {"asimd"}),
            )
            if needed <= features
        ),
        "4 floats at a time",
    )
    return HealthCheck("vectors", True, f"{platform.machine()}, {widest}")


def check_blas() -> HealthCheck:
    """Check that matrices are multiplied by OpenBLAS; another library does not work here."""
    check = _attempt("blas", "pip install scipy-openblas32", lambda: blas().name)
    return evolve(check, works=check.works and "openblas" in check.finding)


def check_convolutions() -> HealthCheck:
    """Check for oneDNN, which is faster for few channels, large images and training."""
    path = onednn.find_library()
    if path is None:
        text, works = "no oneDNN; convolutions run in passkit's own kernels", False
    elif onednn.load_library() is None:
        text, works = f"{path} does not load; convolutions run in passkit's own kernels", False
    else:
        text, works = str(path), True
    return HealthCheck("convolutions", works, text, onednn.INSTALL_HINT)


def check_cache() -> HealthCheck:
    """Check that the cache of compiled kernels can be used."""

    def find() -> str:
        """Return the folder of the cache, with its number of kernels and its size.

        Raises: CacheError if other users may write to it; OSError if it is missing and cannot be
        created.
        """
        info = KernelCache(trusted_folder(cache_folder())).info()
        return f"{info.folder}, {info.kernels} kernels, {bytes_text(info.nbytes)}"

    return _attempt("cache", "set PASSKIT_CACHE_DIR to a folder of your own", find)


def check_profile() -> HealthCheck:
    """Check whether plans use numbers that were measured on this CPU.

    Without a stored profile it does not work, and the finding is "default numbers".
    """
    way_out = "passkit doctor --calibrate, while the machine has nothing else to do"

    def find() -> str:
        """Return the figures of the stored profile as text, "" if there is none.

        Raises: CacheError if other users may write to the cache folder.
        """
        profile = read_cpu_profile()
        if profile is None:
            return ""
        (_, fast), *_, (_, slow) = profile.curve
        *caches, (_, beyond) = profile.levels
        levels = ", ".join(f"{seconds_text(s)} in {bytes_text(n)}" for n, s in caches)
        return (
            f"one thread moves {fast / 1e9:.3g} GB/s in the caches and {slow / 1e9:.3g} GB/s from "
            f"memory; a read takes {levels}, {seconds_text(beyond)} beyond; a launch takes "
            f"{seconds_text(profile.launch)}, a barrier {seconds_text(profile.meeting)}"
        )

    check = _attempt("profile", way_out, find)
    return check if check.finding else evolve(check, works=False, finding="default numbers")


def check_pictures() -> HealthCheck:
    """Check for programs or packages that render plans as pictures."""
    names = [r.name for r in renderers()]
    return HealthCheck("pictures", bool(names), ", ".join(names) or "no renderer", INSTALL)


def _packages(*names: str) -> str:
    """Return the names of installed packages with their versions, as one text.

    Raises:
        PackageNotFoundError: If a package is not installed.
    """
    return ", ".join(f"{n} {version(n)}" for n in names)


def check_solver() -> HealthCheck:
    """Check that an integer program can be solved.

    It does not work where a package is missing or no solver finishes.
    """

    def find() -> str:
        """Return the packages and the solver that solved a program, "" if none did.

        Raises: PackageNotFoundError if a package is not installed.
        """
        solution = solve(Program((1.0, 2.0, 1.5), (((0, 1), 1), ((1, 2), 1))))
        if solution is None:
            return ""
        return f"{_packages('pulp', 'highspy')}: {solution.solver} solved a program"

    check = _attempt("solver", "pip install pulp highspy", find)
    return check if check.finding else evolve(check, works=False, finding="no solver finished")


def check_opencl() -> HealthCheck:
    """List OpenCL devices with their features, and check that a kernel runs on the chosen one.

    Without a device it does not work.
    """

    def find() -> str:
        """Return the devices and the result of a trial, "" without a device.

        Raises: MissingDependencyError without pyopencl; what the trial raises, such as DeviceError.
        """
        devices = list(opencl.describe_devices())
        return "; ".join([*devices, run_trial("opencl")] if devices else [])

    check = _attempt("opencl", "pip install 'passkit[opencl]'", find)
    return (
        check if check.finding else evolve(check, works=False, finding="pyopencl finds no device")
    )


def run_torch_trial() -> str:
    """Compile and run ``x * 2 + 1`` by PyTorch's compiler; return a text with PyTorch's version.

    Raises: ImportError without PyTorch; RuntimeError if it does not list the backend, or the result
    is wrong; what the backend raises.
    """
    torch = import_module("torch")
    if "passkit" not in torch.compiler.list_backends():
        raise RuntimeError(f"torch {torch.__version__} does not list the backend")
    x = torch.arange(1000.0)
    out = torch.compile(lambda x: x * 2 + 1, backend="passkit")(x)
    if not torch.equal(out, x * 2 + 1):
        raise RuntimeError(f"the result of x * 2 + 1 for x = 3 is {float(out[3])} instead of 7")
    return f"torch {torch.__version__}: the backend compiled a function"


def check_torch() -> HealthCheck:
    """Check that PyTorch, if it is installed, knows the backend, and that a function runs."""
    return _attempt("torch", "pip install 'passkit[torch]'", run_torch_trial)


def check_nvrtc() -> HealthCheck:
    """Check for NVRTC, NVIDIA's run-time compiler, which needs no device."""

    def find() -> str:
        """Return the version of NVRTC.

        Raises: ImportError without cuda-bindings, RuntimeError if they do not find NVRTC.
        """
        _, major, minor = import_module("cuda.bindings.nvrtc").nvrtcVersion()
        return f"NVRTC {major}.{minor}"

    return _attempt("nvrtc", "pip install cuda-bindings nvidia-cuda-nvrtc", find)


def check_cuda_library() -> HealthCheck:
    """Check for PyCUDA or cuda-bindings, through which passkit calls the CUDA driver.

    One of them suffices; the finding also says why the other one is missing.
    """
    installed, missing = [], []
    for name in cuda.DRIVER_MODULES:
        try:
            cuda.import_driver_module(name)
            installed.append(f"{name} {version(name)}: {CUDA_FEATURES[name]}")
        except (ImportError, PackageNotFoundError) as error:
            missing.append(f"no {name} ({str(error).splitlines()[0]})")
    text = "; ".join([*installed, *missing])
    return HealthCheck("cuda library", bool(installed), text, "pip install 'passkit[cuda]'")


CUDA_FEATURES = {
    "PyCUDA": "launches, memory, events",
    "cuda-bindings": "launches, memory, events, graphs, grid barriers",
}
"""The features that passkit uses of each library."""


def check_cuda() -> HealthCheck:
    """Report the CUDA device, and check that a kernel runs on it."""

    def find() -> str:
        """Return the device, its figures, and the result of a trial.

        Raises: DeviceError without a driver, MissingDependencyError without a package, CacheError
        if other users may write to the cache folder; what the trial raises.
        """
        return f"{cuda.describe_device()}; {gpu_profile_text()}; {run_trial('cuda')}"

    return _attempt("cuda", "NVIDIA's driver and pip install 'passkit[cuda]'", find)


def gpu_profile_text() -> str:
    """Return a text about the figures that plans for the CUDA device use: measured or default ones.

    Raises:
        DeviceError: If there is no CUDA device.
        MissingDependencyError: If no library of the driver is installed.
        CacheError: If other users may write to the cache folder.
    """
    properties = cuda.device().properties
    profile = read_gpu_profile(cuda.calibration_name(properties))
    if profile is None:
        return f"planned with data sheet figures of {cuda.shipped_profile(properties).name}"
    (_, fast), *_, (_, slow) = profile.curve
    return (
        f"measured: copies at {fast / 1e9:.4g} to {slow / 1e9:.4g} GB/s, a launch takes "
        f"{seconds_text(profile.launch)}"
    )


def check_plugins() -> list[HealthCheck]:
    """Report for each plug-in of an installed package whether it was loaded."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PluginWarning)  # the table has the errors
        plugins = load_plugins()
    return [
        HealthCheck(
            f"plug-in {p.name}",
            p.loaded,
            f"{p.distribution} {p.version}, {p.value}: {p.error or 'loaded'}",
            f"repair it, or pip uninstall {p.distribution}",
        )
        for p in plugins
    ]


CHECKS = (
    check_python,
    check_cpu,
    check_interpret,
    check_compiler,
    check_threads,
    check_instructions,
    check_blas,
    check_convolutions,
    check_cache,
    check_profile,
    check_pictures,
    check_solver,
    check_torch,
    check_opencl,
    check_nvrtc,
    check_cuda_library,
    check_cuda,
)
"""The checks in the order of the table."""
