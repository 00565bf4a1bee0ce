"""Building kernels: compiled once, cached, refused with reasons, in folders that are removed."""

from __future__ import annotations

import os
import resource
import signal
import stat
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from passkit.errors import CompilerError
from passkit.runtime.native import build as module
from passkit.runtime.native import compilation, launcher
from passkit.runtime.native.build import build, kernel_digest, stats
from passkit.runtime.native.cache import open_cache
from passkit.runtime.native.compiler import Compiler, find_compiler
from passkit.runtime.native.extension import Extension
from passkit.runtime.native.units import (
    MAX_UNIT_KERNELS,
    MIN_UNIT_LENGTH,
    KernelText,
    divided,
    unit_text,
)
from passkit.runtime.native.work_folders import work_folder
from tests.runtime.native.sample import HEAD, text

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """
import sys
sys.path.insert(0, {root!r})
import numpy as np
from passkit.runtime.native.build import stats
from tests.runtime.native.sample import binary_program
x = np.arange(1000, dtype=np.float32) / 7
z, = binary_program(parallel=True)(x=x, y=x[::-1].copy())
print(stats.compiled, stats.loaded, z.tobytes().hex())
"""


@pytest.fixture
def fresh(fresh_cache: Path) -> Path:
    """An empty cache, and a process that remembers no kernel."""
    module.forget()
    return fresh_cache


def start(**environ: str) -> subprocess.Popen[str]:
    """Another process that builds and runs the sample program."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(root=str(ROOT))],
        env=os.environ | environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def answer(running: subprocess.Popen[str]) -> tuple[int, int, str]:
    """Return the numbers of kernels compiled and loaded, and the result."""
    out, err = running.communicate(timeout=120)
    assert running.returncode == 0, err
    compiled, loaded, bits = out.split()
    return int(compiled), int(loaded), bits


def constant(value: int, symbol: str = "constant", **more: Any) -> KernelText:
    """A kernel that writes a number; its text differs for each."""
    return text(symbol, f"    *(int64_t *)buf[0] = {value};", key=f"{symbol}{value}", **more)


def test_a_kernel_is_compiled_once(fresh: Path) -> None:
    """Later builds reuse the loaded kernel, and other processes load it from the cache."""
    before = stats.as_dict()
    kernel = constant(1)

    first = build([kernel])
    again = build([kernel, kernel._replace(key="another name")])
    module.forget()
    loaded = build([kernel])

    after = stats.as_dict()
    assert list(first) == ["constant1"] and set(again) == {"constant1", "another name"}
    assert set(again.values()) == {first["constant1"]} == set(loaded.values())
    changes = {k: after[k] - before[k] for k in ("compiled", "reused", "loaded", "processes")}
    assert changes == {"compiled": 1, "reused": 2, "loaded": 1, "processes": 1}
    assert after["seconds"] > before["seconds"]


def test_few_processes_compile_many_kernels(fresh: Path) -> None:
    """Kernels are put together in units, one a core; a name is in a unit once."""
    before = stats.processes
    kernels = [constant(k, f"constant_{k}") for k in range(10)]

    addresses = build([*kernels, constant(99, "constant_0")])

    assert len(set(addresses.values())) == 11
    cores = len(os.sched_getaffinity(0))
    assert stats.processes - before <= max(2, min(cores, 2)) + 1
    assert len(list((fresh / "kernels").iterdir())) >= 11


def test_units_are_balanced_and_bounded() -> None:
    """No unit has too many kernels or a symbol twice; every kernel is in one."""
    kernels = [constant(k, f"f{k % 290}") for k in range(300)]

    units = divided(kernels)

    assert sum(len(u) for u in units) == 300
    assert all(len(u) <= MAX_UNIT_KERNELS and len({k.symbol for k in u}) == len(u) for u in units)


def test_a_second_process_needs_enough_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two long kernels are two units where there are two cores, two short ones are one."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    short = [constant(k, f"f{k}") for k in range(2)]
    comment = "// " + "x" * MIN_UNIT_LENGTH + "\n"
    long = [kernel._replace(source=comment + kernel.source) for kernel in short]

    assert [len(divided(kernels)) for kernels in (short, long)] == [1, 2]


def test_sections_come_once_and_in_order() -> None:
    """A unit has every section of its kernels once, each after those it needs."""
    a = text("a", "", sections=("base\n", "exp\n"))
    b = text("b", "", sections=("base\n", "table\n", "log\n"))

    whole = unit_text([a, b])

    parts = ["base", "exp", "table", "log", '#line 1 "kernels.cpp"', "void a(", "void b("]
    assert [whole.count(part) for part in parts] == [1] * 7
    assert sorted(parts, key=whole.index) == parts


def test_the_digest_has_all_that_machine_code_depends_on() -> None:
    """Text, symbol, sections and flags are in the digest; the caller's key is not."""
    kernel = constant(1)
    others = [constant(2), kernel._replace(symbol="g"), kernel._replace(sections=(HEAD, HEAD))]

    digests = {kernel_digest(k) for k in [kernel, *others]}

    assert len(digests | {kernel_digest(kernel, ("-mno-avx2",))}) == 5
    assert kernel_digest(kernel._replace(key="other")) == kernel_digest(kernel)


def test_extra_flags_reach_the_compiler(fresh: Path) -> None:
    """Kernels can be compiled for narrower vectors, or with definitions, and are kept apart."""
    kernel = text("defined", "    *(int64_t *)buf[0] = VALUE;")

    one, two = (build([kernel], flags=(f"-DVALUE={k}",))["defined"] for k in (1, 2))

    assert one != two


def test_a_compiler_error_shows_the_source(fresh: Path) -> None:
    """The error has the compiler's output and the numbered source."""
    kernel = text("broken", "    int64_t a = 1;\n    undeclared += a;")
    with pytest.raises(
        CompilerError,
        match=r"(?s)failed to compile broken, with status 1; .*kernels\.cpp:3.*'undeclared'.*"
        r"\n   3     undeclared \+= a;",
    ):
        build([kernel])
    good = constant(5)
    assert build([good]) and not list(fresh.rglob(".new-*"))


def test_a_long_source_is_shown_around_its_errors() -> None:
    """The error for a long source shows the lines around those that the compiler names."""
    source = "\n".join(f"line {k};" for k in range(1, 501))
    shown = compilation.excerpt(
        source, "kernels.cpp:250:3: error: no\nkernels.cpp:253:1: error: no"
    )
    lines = shown.splitlines()

    assert " 250 line 250;" in lines
    assert lines[0].strip() == "…"
    assert lines[1] == " 244 line 244;"
    assert lines[-2] == " 259 line 259;"
    assert compilation.excerpt(source, "killed").splitlines()[59] == "  60 line 60;"


def test_without_a_compiler_only_the_cache_serves(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a compiler cached kernels load; others raise with a hint what to install."""
    build([constant(1)])
    module.forget()
    monkeypatch.setenv("PASSKIT_CXX", "/nonexistent")

    assert build([constant(1)])
    with pytest.raises(CompilerError, match=rf"kernel constant is not in the cache {fresh}, and"):
        build([constant(2)])


def test_another_compiler_compiles_again(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of a compiler that was replaced are stale."""
    build([constant(1)])
    actual = find_compiler()
    assert actual is not None
    other = Compiler(actual.command, actual.kind, "newer")
    monkeypatch.setattr(module, "find_compiler", lambda: other)
    module.forget()
    before = stats.compiled

    build([constant(1)])

    assert stats.compiled == before + 1


def test_damaged_entries_are_compiled_again(fresh: Path) -> None:
    """A torn library, a torn entry, and an entry with a wrong symbol are all replaced."""
    kernel, before = constant(1), stats.compiled
    build([kernel])
    for count, damage in enumerate(("library", "entry", "symbol", "garbage"), 2):
        entry = fresh / "kernels" / f"{kernel_digest(kernel)}.json"
        if damage == "library":
            for path in (fresh / "libraries").glob("*.so"):
                half = path.read_bytes()[: path.stat().st_size // 2]
                path.unlink()  # this process has the whole file in memory
                path.write_bytes(half)
        elif damage == "entry":
            os.truncate(entry, 20)
        elif damage == "symbol":
            entry.write_text(entry.read_text().replace('"constant"', '"absent"'))
        else:
            (entry.parent / "foreign.json").write_bytes(os.urandom(100))
            entry.unlink()
        module.forget()
        build([kernel])
        assert stats.compiled == before + count, damage


def test_a_cache_that_cannot_be_written_still_builds(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """With a read-only cache kernels are compiled for this process, and a warning is logged."""
    monkeypatch.setenv("PASSKIT_CACHE_DIR", "/sys/kernel/passkit")

    assert build([constant(4711)])["constant4711"]
    assert "set PASSKIT_CACHE_DIR" in caplog.text


def test_two_processes_share_a_cache(fresh_cache: Path) -> None:
    """Two processes start with an empty cache at once; a third one compiles nothing."""
    first, second = start(), start()
    bits = {answer(first)[2], answer(second)[2]}

    assert len(bits) == 1
    assert answer(start()) == (0, 6, *bits)
    assert answer(start(PASSKIT_CXX="/nonexistent", PASSKIT_THREADS="1")) == (0, 6, *bits)
    assert all(stat.S_IMODE(p.stat().st_mode) & 0o077 == 0 for p in fresh_cache.rglob("*"))


def test_a_missing_compiler_or_header_is_named(
    fresh_cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A missing compiler or Python header is named in the error."""
    cache = open_cache()
    with pytest.raises(
        CompilerError, match=rf"launcher is not in the cache {fresh_cache}, and there is no"
    ):
        launcher.EXTENSION._start(None, cache)
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(CompilerError, match=rf"{tmp_path} has no Python\.h; install them"):
        launcher.EXTENSION._start(find_compiler(), cache)


def test_a_damaged_launcher_is_compiled_again(fresh_cache: Path) -> None:
    """An entry for the launcher that is no extension module is replaced."""
    cache = open_cache()
    fake = fresh_cache / "fake.so"
    fake.write_bytes(b"not an extension")
    cache.store(fake, {launcher.cache_key(): "PyInit__passkit_launcher"}, "gcc")

    assert launcher.EXTENSION._load(cache).builtin("gemm_f32")
    entry = cache.find(launcher.cache_key(), None)
    assert entry is not None and entry.library.stat().st_size > 10_000


def test_the_launcher_compiles_in_the_background(
    fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`prefetch` starts to compile the launcher, and `launcher` waits for it."""
    monkeypatch.setattr(launcher.EXTENSION, "_module", None)

    assert launcher.prefetch()
    pending = launcher.EXTENSION._pending
    assert launcher.prefetch()

    assert pending is not None and launcher.EXTENSION._pending is pending
    assert launcher.EXTENSION._load(open_cache()).num_threads() >= 1
    assert pending[1].process.returncode == 0
    assert not launcher.prefetch(), "it is in the cache now"
    assert vars(launcher.EXTENSION)["_pending"] is None


def script(folder: Path, body: str) -> Compiler:
    """A compiler that is a shell script."""
    path = folder / "c++"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return Compiler((str(path),), "gcc", "x")


def test_compilers_that_hang_or_do_not_start_raise(tmp_path: Path) -> None:
    """A compiler is killed after a time, and one that cannot be started is named."""
    sleeping = script(tmp_path, "sleep 60")
    slow = compilation.start_compilation(sleeping, [], tmp_path / "a.so", "f, g")
    with pytest.raises(CompilerError, match=r"took more than 0\.1 seconds to compile f, g; set"):
        slow.finish(0.1)
    assert slow.process.returncode is not None
    absent = Compiler((str(tmp_path / "absent"),), "gcc", "x")
    with pytest.raises(CompilerError, match=r"absent cannot be run to compile f: .*No such file"):
        compilation.start_compilation(absent, [], tmp_path / "b.so", "f")
    failing = compilation.start_compilation(
        script(tmp_path, "echo no; exit 3"), [], tmp_path / "c.so", "h", "a\nb"
    )
    with pytest.raises(CompilerError, match=r"(?s)failed to compile h, .*3;.*no\n\n   1 a\n   2 b"):
        failing.finish()


# Folders for compilers.

KILLED = """
import os, signal
from passkit.runtime.native.work_folders import work_folder
folder = work_folder()
open(os.path.join(folder.name, "0.cpp"), "w").write("text")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_folders_of_killed_processes_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next process removes them, and keeps those of running processes."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    base = tmp_path / f"passkit-{os.geteuid()}"
    with work_folder() as mine:
        ended = subprocess.run([sys.executable, "-c", KILLED])
        assert ended.returncode == -signal.SIGKILL and len([*base.iterdir()]) == 2
        (base / "run-without-a-lock").mkdir()
        with work_folder() as other:
            assert {p.name for p in base.iterdir()} == {Path(mine).name, Path(other).name}
    assert not [*base.iterdir()]


def test_the_spare_folder_is_used_where_tmpdir_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If TMPDIR is full the spare folder is used; without one the error names TMPDIR."""
    monkeypatch.setenv("TMPDIR", "/sys/kernel")
    with work_folder(str(tmp_path)) as name:
        assert Path(name).is_relative_to(tmp_path)
    with pytest.raises(
        CompilerError, match="free bytes, and none can be used: .*/sys/kernel.*set TMPDIR"
    ):
        work_folder()


def test_what_was_compiled_and_cannot_be_loaded_raises(fresh: Path, tmp_path: Path) -> None:
    """A library without the kernel's function, and a module without an init function, are named."""
    kernel = KernelText("k", "absent", 'extern "C" void other() {}')
    with pytest.raises(CompilerError, match=r"cannot load the compiled library .*'absent'"):
        build([kernel])
    (tmp_path / "empty.c").write_text("int nothing;")
    flags = ["-shared", "-fPIC"]
    extension = Extension("empty", str(tmp_path), ["empty.c"], flags, "the empty module")
    with pytest.raises(CompilerError, match=r"cannot import the empty module, .*PyInit_empty"):
        extension.module()


def test_an_unreadable_log_does_not_hide_a_failure(tmp_path: Path) -> None:
    """The error of a compiler whose messages cannot be read says why."""
    compiler = find_compiler()
    assert compiler
    source = tmp_path / "bad.cpp"
    source.write_text("not C++")
    running = compilation.start_compilation(compiler, [str(source)], tmp_path / "bad.so", "bad")
    (tmp_path / "bad.log").unlink()
    with pytest.raises(CompilerError, match=r"failed to compile bad, with status 1.*\n.*bad\.log"):
        running.finish()


def test_a_limit_of_file_sizes_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under a limit too low for a compiler an error says so, and nothing is left."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 12, before[1]))
    try:
        with pytest.raises(CompilerError, match="free bytes, .*File too large.*ulimit -f"):
            work_folder()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not [*(tmp_path / f"passkit-{os.geteuid()}").iterdir()]


def test_a_folder_that_others_can_write_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another user's folder of that name in a shared TMPDIR raises."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    base = tmp_path / f"passkit-{os.geteuid()}"
    base.mkdir()
    base.chmod(0o777)
    with pytest.raises(CompilerError, match=f"{base} is not a folder that belongs to this user"):
        work_folder()
