"""Which compiler is found, and what is taken for the machine's instruction set."""

from __future__ import annotations

import doctest
import sys
from pathlib import Path
from types import ModuleType

import pytest

from passkit.runtime.native import compilation, feeds
from passkit.runtime.native import compiler as module
from passkit.runtime.native.compiler import find_compiler, instruction_set, kernel_flags


def program(folder: Path, name: str) -> Path:
    """An executable file."""
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_compilers_are_tried_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PASSKIT_CXX comes first, then g++, clang++ and ziglang; without them there is none."""
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    for k, names in enumerate([["g++", "clang++", "mine"], ["clang++"], []]):
        (tmp_path / str(k)).mkdir()
        for name in names:
            program(tmp_path / str(k), name)
    both, clang, none = ({"PATH": str(tmp_path / str(k))} for k in range(3))

    actual = find_compiler(both | {"PASSKIT_CXX": "mine -Wall"})
    assert actual is not None and actual.command == (str(tmp_path / "0" / "mine"), "-Wall")
    actual = find_compiler(both)
    assert actual is not None and (actual.kind, actual.path) == ("gcc", str(tmp_path / "0" / "g++"))
    actual = find_compiler(clang)
    assert actual is not None and actual.kind == "clang"
    assert find_compiler(none) is None


def test_ziglang_is_the_last_resort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler from PyPI serves where the system has none."""
    package = tmp_path / "ziglang"
    package.mkdir()
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    path = {"PATH": str(tmp_path / "nothing")}
    assert find_compiler(path) is None
    module._find.cache_clear()
    program(package, "zig")

    actual = find_compiler(path)

    assert actual is not None and actual.kind == "zig"
    assert actual.command == (sys.executable, "-m", "ziglang", "c++")
    module._find.cache_clear()


@pytest.mark.parametrize("name", ["/nonexistent", "no-such-compiler -O2", " "])
def test_a_compiler_that_is_not_there_means_none(name: str) -> None:
    """If PASSKIT_CXX names no program, no other compiler is tried."""
    assert find_compiler({"PASSKIT_CXX": name, "PATH": "/usr/bin"}) is None


def test_a_path_with_a_space_is_one_program(tmp_path: Path) -> None:
    """An existing file is a program even where its name has spaces."""
    path = program(tmp_path, "my c++")

    actual = find_compiler({"PASSKIT_CXX": str(path), "PATH": ""})

    assert actual is not None and actual.command == (str(path),)


def test_the_fingerprint_tells_compilers_apart(tmp_path: Path) -> None:
    """Another file, size or time is another compiler; no process is started."""
    prints = set()
    for text in ("#!/bin/sh\n", "#!/bin/sh\n#\n"):
        path = program(tmp_path, "g++")
        path.write_text(text)
        module._find.cache_clear()
        actual = find_compiler({"PATH": str(tmp_path)})
        assert actual is not None
        prints.add(actual.fingerprint)

    assert len(prints) == 2


def test_the_instruction_set_has_model_and_features() -> None:
    """It depends on what determines -march=native only, in any order."""
    text = "vendor_id\t: G\nmodel\t: 7\ncpu MHz\t: {}\nflags\t: {}\n\nmodel: 9\n"

    a = module.cpu_facts(text.format(1000, "sse avx2 tsc nopl"))
    b = module.cpu_facts(text.format(2000, "avx2 pni sse"))

    assert a == b == (("G", "7"), ("avx2", "sse"))
    assert module.cpu_facts("Features : asimd fp\nCPU part : 0xd0c\n") == (
        ("0xd0c",),
        ("asimd", "fp"),
    )
    assert module.cpu_facts("") == ((), ())
    assert len(instruction_set()) == 16


def test_flags_keep_results_exact() -> None:
    """No flag allows the compiler to change results."""
    flags = kernel_flags()

    assert "-ffp-contract=off" in flags
    assert not {"-ffast-math", "-Ofast", "-funsafe-math-optimizations"} & set(flags)


@pytest.mark.parametrize(("kind", "number"), [("gcc", 1), ("clang", 0), ("zig", 0)])
def test_only_gcc_has_parameters(kind: str, number: int) -> None:
    """Only GCC has parameters, which raise a limit of dead store elimination."""
    actual = module.Compiler(("cxx",), kind, "").parameters

    assert [p.startswith("--param=dse-") for p in actual] == [True] * number


@pytest.mark.parametrize("taught", [module, feeds, compilation], ids=lambda m: m.__name__)
def test_examples_in_docstrings(taught: ModuleType) -> None:
    """The examples in docstrings are correct."""
    assert doctest.testmod(taught).failed == 0
