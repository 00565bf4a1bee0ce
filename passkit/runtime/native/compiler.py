"""The C++ compiler of this machine, its flags, and what its machine code depends on."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from typing import NamedTuple

KERNEL_FLAGS = (
    "-O3",
    "-march=native",
    "-std=c++17",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=off",
    "-shared",
    "-fPIC",
    "-fno-exceptions",
    "-fno-rtti",
)
INSTALL_HINT = "install g++ or clang++ (or `pip install ziglang`), or set PASSKIT_CXX to a compiler"

# The flags in /proc/cpuinfo on which -march=native depends.
_X86_FEATURES = re.compile(
    "3dnowprefetch|abm|adx|aes|amx|avx|bmi|cx16|f16c|fma|fsgsbase|gfni|movbe|movdir|pclmul|popcnt"
    "|prefetchw|rdrnd|rdseed|serialize|sha|sse|ssse|vaes|vpclmul|xsave"
)
_CPU_FIELDS = ("vendor_id", "cpu family", "model", "CPU implementer", "CPU part", "CPU variant")


class Compiler(NamedTuple):
    """A compiler of C++ and, with ``-x c``, of C.

    Attributes:
        command: the program and its first arguments.
        kind: "gcc", "clang" or "zig".
        fingerprint: a digest of the command and of its file, which identifies a version.
    """

    command: tuple[str, ...]
    kind: str
    fingerprint: str

    @property
    def path(self) -> str:
        """Return the command as text, its words separated by blanks, for messages."""
        return " ".join(self.command)

    @property
    def libraries(self) -> tuple[str, ...]:
        """The options that link kernels to libraries, by the kind of compiler.

        With GCC, kernels are not linked with the C++ library, which they do not need, nor on Linux
        with the C library, which each process has loaded: reading its symbols would double the time
        of linking. The plug-in for link-time optimization would double it, too.
        """
        if self.kind != "gcc":
            return ("-lm",)
        libraries = ("-lm", "-lgcc") if sys.platform == "linux" else ("-lm", "-lc", "-lgcc")
        return ("-nostdlib", "-fno-use-linker-plugin", *libraries)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The options that raise a limit of GCC; none for other compilers.

        Beyond 800 operators dead store elimination would stop and leave vectors in memory: 1,000
        operators would take 20 times as long to compile, and 10 times as long to run.
        """
        return ("--param=dse-max-alias-queries-per-store=100000",) if self.kind == "gcc" else ()


def kernel_flags() -> tuple[str, ...]:
    """Return the flags for kernels on this machine, which all supported compilers take.

    On x86-64 they ask for vectors of 512 bits.
    """
    if platform.machine() in ("x86_64", "AMD64"):
        return (*KERNEL_FLAGS, "-mprefer-vector-width=512")
    return KERNEL_FLAGS


def find_compiler(environ: Mapping[str, str] = os.environ) -> Compiler | None:
    """Return the first of PASSKIT_CXX, g++, clang++ and ziglang; None if there is none.

    PASSKIT_CXX is a path, or a command with arguments. If it is set, not empty and names no
    program, the result is None: no other is tried. No process is started. ``environ`` are the
    environment variables.
    """
    return _find(environ.get("PASSKIT_CXX"), environ.get("PATH", os.defpath))


@cache
def _find(setting: str | None, path: str) -> Compiler | None:
    """Return the compiler that ``setting``, the variable PASSKIT_CXX, specifies.

    Args:
        setting: a path, or a command with arguments; None or "" takes the first of g++, clang++ and
            the package ziglang.
        path: the folders to search, as in PATH.

    Returns: None if there is none.
    """
    if setting:
        words = [setting] if os.path.exists(setting) else setting.split()
        program = _which(words[0], path) if words else None
        return _compiler((program, *words[1:]), program) if program else None
    for name in ("g++", "clang++"):
        if program := _which(name, path):
            return _compiler((program,), program)
    spec = find_spec("ziglang")
    if spec and spec.submodule_search_locations:
        program = os.path.join(spec.submodule_search_locations[0], "zig")
        if os.path.exists(program):
            return _compiler((sys.executable, "-m", "ziglang", "c++"), program)
    return None


def _which(name: str, path: str) -> str | None:
    """Return the path of a program like `shutil.which`, whose import would take longer.

    Args:
        name: the program.
        path: the folders to search, as in PATH.

    Returns: None if there is no such executable file.
    """
    folders = [""] if os.path.dirname(name) else path.split(os.pathsep)
    for folder in folders:
        program = os.path.join(folder, name)
        if os.path.isfile(program) and os.access(program, os.X_OK):
            return program
    return None


def _compiler(command: tuple[str, ...], program: str) -> Compiler:
    """Return the compiler of a command, with its kind and a digest that identifies its version.

    The kind is "zig" or "clang" where the name of a file in ``command``, or of the file to which
    ``program`` links, says so, else "gcc". ``program`` is the path of the command's executable.
    """
    real = os.path.realpath(program)
    facts = os.stat(real)
    text = f"{command} {real} {facts.st_size} {facts.st_mtime_ns}"
    names = {os.path.basename(word) for word in (*command, real)}
    kind = "zig" if "ziglang" in names or any(n.startswith("zig") for n in names) else "gcc"
    if kind == "gcc" and any("clang" in name for name in names):
        kind = "clang"
    return Compiler(command, kind, sha256(text.encode()).hexdigest()[:16])


@cache
def instruction_set() -> str:
    """Return a digest of this machine's architecture, CPU features and C library version.

    Without /proc/cpuinfo the features are left out. It has 16 hexadecimal digits and is computed
    once in a process.
    """
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            text = file.read(1 << 14)
    except OSError:
        text = ""
    libc = os.confstr("CS_GNU_LIBC_VERSION") if "CS_GNU_LIBC_VERSION" in os.confstr_names else ""
    facts = cpu_facts(text)
    return sha256(f"{platform.machine()} {libc} {facts}".encode()).hexdigest()[:16]


def cpu_facts(cpuinfo: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    r"""Return the model and the sorted features of the first processor.

    ``cpuinfo`` is the text of /proc/cpuinfo. Of x86 features, those that determine -march=native
    are returned. The model has the values of the fields that are present: vendor, family, model.

    >>> cpu_facts("vendor_id : X\nmodel : 7\nflags : fpu avx2 tsc fma\n\nmodel : 9\n")
    (('X', '7'), ('avx2', 'fma'))
    """
    first = cpuinfo.split("\n\n", 1)[0]
    fields: dict[str, str] = {}
    for line in first.splitlines():
        name, _, value = line.partition(":")
        fields[name.strip()] = value.strip()
    flags = fields.get("flags", "").split()
    features = [flag for flag in flags if _X86_FEATURES.match(flag)]
    features += fields.get("Features", "").split()
    model = tuple(fields[name] for name in _CPU_FIELDS if name in fields)
    return model, tuple(sorted(features))
