"""``passkit doctor``: what works on this machine, and what to install for the rest."""

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
from attrs import asdict, evolve, frozen

import passkit.ops  # noqa: F401  (the trial programs need operators)
from passkit.cli.answer import Answer
from passkit.errors import PasskitError, PluginWarning
from passkit.graph.graph import Graph
from passkit.graph.node import var
from passkit.library.cpu_profile import read_cpu_profile, write_cpu_profile
from passkit.passes.option_types import TargetName
from passkit.runtime.native import onednn
from passkit.runtime.native.cache import KernelCache, cache_folder, trusted_folder
from passkit.runtime.native.compiler import INSTALL_HINT, cpu_facts, find_compiler
from passkit.runtime.native.launcher import requested_threads
from passkit.tuning.calibration import calibrate
from passkit.values.plugins import load_plugins
from passkit.values.units import bytes_text, seconds_text, table
from passkit.viz.renderers import INSTALL, renderers


@frozen
class Check:
    """One thing that may work: whether it does, what was found, and what to do if it does not."""

    name: str
    works: bool
    found: str
    way_out: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Whether to measure."""
    parser.add_argument("--calibrate", action="store_true",
                        help="measure this CPU, and a CUDA device, first; later plans go by their "
                             "numbers")  # fmt: skip


def run(options: argparse.Namespace) -> Answer:
    """Try everything; 0 while programs can run at all."""
    if options.calibrate:
        write_cpu_profile(calibrate())
        calibrate_gpus()
    checks = [*(check() for check in CHECKS), *check_plugins()]
    rows = [
        (c.name, "yes" if c.works else "no", c.found, "" if c.works else c.way_out) for c in checks
    ]
    works = {c.name: c.works for c in checks}
    text = table(("what", "works", "found", "to get it"), rows)
    return Answer([asdict(c) for c in checks], text, 0 if works["cpu"] or works["interpret"] else 1)


def calibrate_gpus() -> None:
    """Measure the CUDA device, if there is one."""
    from passkit.library.gpu_profile import write_gpu_profile
    from passkit.runtime.cuda.device import calibration_name, device
    from passkit.tuning.gpu_calibration import calibrate_gpu

    try:
        own = device()
    except PasskitError:
        return
    write_gpu_profile(calibration_name(own.properties), calibrate_gpu(own))


def _attempt(name: str, way_out: str, find: Callable[[], str]) -> Check:
    """A check that works unless finding it fails in a way that tells why."""
    try:
        return Check(name, True, find(), way_out)
    except (PasskitError, ImportError, PackageNotFoundError, OSError, RuntimeError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        return Check(name, False, lines[0], way_out)


def check_python() -> Check:
    """The interpreter and the packages that decide what numbers come out."""
    parts = [f"Python {platform.python_version()}", f"NumPy {np.__version__}"]
    good = sys.version_info >= (3, 11)
    return Check("python", good, f"{', '.join(parts)}, {platform.platform()}", "Python 3.11")


def _trial(target: TargetName) -> str:
    """Compile and run ``x * 2 + 1`` on a target."""
    from passkit.program.compiler import compile  # the checks before it must not depend on it

    x = var("x", (1000,))
    run = compile(Graph([x * 2.0 + 1.0]), target=target)
    values = np.arange(1000, dtype=np.float32)
    (out,) = run(x=values)
    if not np.array_equal(out, values * 2 + 1):
        raise RuntimeError(f"x * 2 + 1 at x = 3 came out as {out[3]}")
    return f"ran {len(run.kernels)} kernel" if run.kernels else "ran in NumPy"


def check_cpu() -> Check:
    """Whether a kernel compiles, loads and runs."""
    if find_compiler() is None:
        return Check("cpu", False, "no C++ compiler", INSTALL_HINT)
    return _attempt("cpu", "see the compiler's message", lambda: _trial("cpu"))


def check_interpret() -> Check:
    """Whether programs run without a compiler."""
    return _attempt("interpret", "pip install numpy", lambda: _trial("interpret"))


def check_compiler() -> Check:
    """The C++ compiler that kernels are given to."""
    found = find_compiler()
    if found is None:
        return Check("compiler", False, os.environ.get("PASSKIT_CXX", "none found"), INSTALL_HINT)
    return Check("compiler", True, f"{found.path} ({found.kind})")


def check_threads() -> Check:
    """How many threads kernels share."""
    return _attempt(
        "threads",
        "set PASSKIT_THREADS to a number",
        lambda: f"{requested_threads()} of {os.cpu_count()} CPUs",
    )


def check_instructions() -> Check:
    """The widest vectors that this CPU has."""
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
    return Check("vectors", True, f"{platform.machine()}, {widest}")


def check_blas() -> Check:
    """The library that multiplies matrices."""

    def find() -> str:
        from passkit.runtime.native.blas import blas  # loads the launcher, which may need compiling

        return blas().name

    check = _attempt("blas", "pip install scipy-openblas32", find)
    return evolve(check, works=check.works and "openblas" in check.found)


def check_convolutions() -> Check:
    """Whether oneDNN is there for what it does quicker: few channels, large images, training."""
    path = onednn.find_library()
    if path is None:
        text, works = "no oneDNN; convolutions run in passkit's own kernels", False
    elif onednn.load_library() is None:
        text, works = f"{path} does not load; convolutions run in passkit's own kernels", False
    else:
        text, works = str(path), True
    return Check("convolutions", works, text, onednn.INSTALL_HINT)


def check_cache() -> Check:
    """Whether compiled kernels can be kept."""

    def find() -> str:
        info = KernelCache(trusted_folder(cache_folder())).info()
        return f"{info.folder}, {info.kernels} kernels, {bytes_text(info.nbytes)}"

    return _attempt("cache", "set PASSKIT_CACHE_DIR to a folder of your own", find)


def check_profile() -> Check:
    """Whether plans go by numbers that were measured on this CPU, and which."""
    way_out = "passkit doctor --calibrate, while the machine has nothing else to do"

    def find() -> str:
        found = read_cpu_profile()
        if found is None:
            return ""
        (_, fast), *_, (_, slow) = found.curve
        *caches, (_, far) = found.levels
        levels = ", ".join(f"{seconds_text(s)} in {bytes_text(n)}" for n, s in caches)
        return (
            f"one thread moves {fast / 1e9:.3g} GB/s in the caches and {slow / 1e9:.3g} from "
            f"memory; a read takes {levels}, {seconds_text(far)} beyond; a kernel "
            f"{seconds_text(found.launch)}, and {seconds_text(found.meeting)} where threads meet"
        )

    check = _attempt("profile", way_out, find)
    return check if check.found else evolve(check, works=False, found="numbers as shipped")


def check_pictures() -> Check:
    """What draws plans."""
    names = [r.name for r in renderers()]
    return Check("pictures", bool(names), ", ".join(names) or "no renderer", INSTALL)


def _packages(*names: str) -> str:
    return ", ".join(f"{n} {version(n)}" for n in names)


def check_solver() -> Check:
    """The solver of integer programs, and whether it solves one."""

    def find() -> str:
        from passkit.selection.solver import Program, solve  # few commands have one

        found = solve(Program((1.0, 2.0, 1.5), (((0, 1), 1), ((1, 2), 1))))
        if found is None:
            return ""
        return f"{_packages('pulp', 'highspy')}: {found.solver} solved a program"

    check = _attempt("solver", "pip install pulp highspy", find)
    return check if check.found else evolve(check, works=False, found="no solver that finishes")


def check_opencl() -> Check:
    """OpenCL devices, what they can do, and whether a kernel runs on the one that is chosen."""

    def find() -> str:
        from passkit.runtime.opencl.device import describe_devices  # few machines have one

        found = list(describe_devices())
        return "; ".join([*found, _trial("opencl")] if found else [])

    check = _attempt("opencl", "pip install 'passkit[opencl]'", find)
    return check if check.found else evolve(check, works=False, found="pyopencl finds no device")


def check_nvrtc() -> Check:
    """NVIDIA's run-time compiler, which needs no device."""

    def find() -> str:
        _, major, minor = import_module("cuda.bindings.nvrtc").nvrtcVersion()
        return f"NVRTC {major}.{minor}"

    return _attempt("nvrtc", "pip install cuda-bindings nvidia-cuda-nvrtc", find)


def check_cuda_library() -> Check:
    """What asks the CUDA driver: PyCUDA, and for graphs and grid barriers cuda-bindings."""
    from passkit.runtime.cuda.device import DRIVER_MODULES, import_driver_module

    found, missing = [], []
    for name in DRIVER_MODULES:
        try:
            import_driver_module(name)
            found.append(f"{name} {version(name)}{OFFERS[name]}")
        except (ImportError, PackageNotFoundError) as error:
            missing.append(f"no {name} ({str(error).splitlines()[0]})")
    text = "; ".join([*found, *missing])
    return Check("cuda library", bool(found), text, "pip install 'passkit[cuda]'")


OFFERS = {"PyCUDA": ": launches, memory, events", "cuda-bindings": ": these, graphs, grid barriers"}


def check_cuda() -> Check:
    """The CUDA device, and whether a kernel runs on it."""

    def find() -> str:
        from passkit.runtime.cuda.device import describe_device  # few machines have one

        return f"{describe_device()}; {_gpu_profile()}; {_trial('cuda')}"

    return _attempt("cuda", "NVIDIA's driver and pip install 'passkit[cuda]'", find)


def _gpu_profile() -> str:
    """Which numbers plans for the CUDA device go by."""
    from passkit.library.gpu_profile import read_gpu_profile
    from passkit.runtime.cuda.device import calibration_name, device, shipped_profile

    properties = device().properties
    found = read_gpu_profile(calibration_name(properties))
    if found is None:
        shipped = shipped_profile(properties)
        return f"planned by the numbers shipped for {shipped.name}, of data sheets"
    (_, fast), *_, (_, slow) = found.curve
    return (
        f"measured: copies of {fast / 1e9:.4g} to {slow / 1e9:.4g} GB/s, a launch "
        f"{seconds_text(found.launch)}"
    )


def check_plugins() -> list[Check]:
    """Each plug-in of an installed package, and whether it was loaded."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PluginWarning)  # the table says it
        found = load_plugins()
    return [
        Check(
            f"plug-in {p.name}",
            p.loaded,
            f"{p.distribution} {p.version}, {p.value}: {p.error or 'loaded'}",
            f"repair it, or pip uninstall {p.distribution}",
        )
        for p in found
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
    check_opencl,
    check_nvrtc,
    check_cuda_library,
    check_cuda,
)
