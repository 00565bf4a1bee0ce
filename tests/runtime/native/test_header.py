"""The precompiled header: used by later compilations, and left out where it does not help."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from passkit.errors import CompilerError
from passkit.runtime.native import build as module
from passkit.runtime.native import header as header_module
from passkit.runtime.native import units
from passkit.runtime.native.build import build
from passkit.runtime.native.cache import KernelCache
from passkit.runtime.native.compiler import find_compiler
from passkit.runtime.native.header import Header
from passkit.runtime.native.units import KernelText, header_of
from tests.runtime.native.sample import HEAD, text

SECTIONS = (HEAD, "static inline int64_t seven() { return 7; }\n")
OTHER = "static inline int64_t two() { return 2; }\n"

pytestmark = pytest.mark.skipif(
    getattr(find_compiler(), "kind", "") != "gcc", reason="only GCC has a precompiled header"
)


@pytest.fixture
def fresh(fresh_cache: Path) -> Iterator[KernelCache]:
    """An empty cache, and a process that has the launcher and remembers no kernels and headers."""
    module.launcher.launcher()
    module.forget()
    header_module._verified.clear()
    header_module._unusable.clear()
    yield KernelCache(fresh_cache)
    header_module._unusable.clear()


@pytest.fixture
def included(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """The header of each process that is started for a unit, in order."""
    headers: list[str | None] = []
    start = units.start_unit

    def recorded(*args: Any) -> Any:
        headers.append(args[4])
        return start(*args)

    monkeypatch.setattr(units, "start_unit", recorded)
    return headers


def kernel(addend: int) -> KernelText:
    """A kernel that writes 9 + ``addend``, by functions of a section of the header and of one more.

    The header has no more of its sections.
    """
    body = f"    *(int64_t *)buf[0] = seven() + two() + {addend};"
    return text(f"sum_{addend}", body, sections=(*SECTIONS, OTHER))


def written(addend: int) -> int:
    """Build such a kernel, and return what it writes."""
    (address,) = build([kernel(addend)], header=SECTIONS).values()
    number = ctypes.c_int64()
    buffers = (ctypes.c_void_p * 1)(ctypes.addressof(number))
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2, ctypes.c_void_p)(address)(
        buffers, None, 0, 1, None
    )
    return number.value


def header(cache: KernelCache) -> Header:
    """The header of these kernels."""
    result = header_of([kernel(0)], SECTIONS, (), find_compiler(), cache)  # type: ignore[arg-type]
    assert result is not None
    return result


def test_later_kernels_include_the_header(
    fresh: KernelCache, included: list[str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first kernel is compiled without; the next ones with it, in a new process, too."""
    numbers = [written(1), written(2)]
    header_module._verified.clear()
    numbers.append(written(3))

    assert numbers == [10, 11, 12]
    assert included[0] is None and None not in included[1:] and len(included) == 3


def test_the_header_is_not_compiled_beside_the_launcher(
    fresh: KernelCache, included: list[str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the launcher is being compiled, kernels are compiled without making a header."""
    with monkeypatch.context() as patch:
        patch.setattr(module.launcher, "prefetch", lambda compiler: True)
        numbers = [written(1)]
    assert fresh.find(header(fresh).key, None) is None
    numbers += [written(2), written(3)]

    assert numbers == [10, 11, 12]
    assert [path is None for path in included] == [True, True, False]


def test_a_damaged_header_is_compiled_again(fresh: KernelCache, included: list[str | None]) -> None:
    """A file that does not have its digest is not used, and replaced."""
    written(1)
    entry = fresh.find(header(fresh).key, None)
    assert entry is not None
    Path(entry.path).write_bytes(b"noise")
    header_module._verified.clear()

    numbers = [written(2), written(3)]

    assert numbers == [11, 12]
    assert [path is None for path in included] == [True, True, False]


def test_what_the_compiler_refuses_is_left_out(
    fresh: KernelCache, included: list[str | None], tmp_path: Path
) -> None:
    """With a header that is none, a kernel is compiled without, and later ones at once."""
    file, own = tmp_path / "file", header(fresh)
    file.write_text("not a precompiled header")
    compiler = find_compiler()
    assert compiler is not None
    fresh.keep(file, {own.key: header_module.NAME}, compiler.fingerprint)

    numbers = [written(1), written(2)]

    assert numbers == [10, 11]
    assert [path is None for path in included] == [False, True, True]
    assert own.key in header_module._unusable


def test_errors_count_lines_of_the_kernel(fresh: KernelCache) -> None:
    """With a header and without, the compiler's message names the line of the kernel's text."""
    wrong = text("wrong", "\n    nine();", sections=SECTIONS)
    written(1)

    with pytest.raises(CompilerError, match=r"kernels\.cpp:3:\d+: error: .nine. was not declared"):
        build([wrong], header=SECTIONS)
    assert header(fresh).link(str(fresh.folder)) is not None


def test_a_compiler_that_fails_makes_no_header(fresh: KernelCache, tmp_path: Path) -> None:
    """A header that cannot be compiled is not tried again, and no kernel fails for it."""
    own = Header(("#error no header\n",), (), find_compiler(), fresh)  # type: ignore[arg-type]

    own.start(str(tmp_path))
    own.finish()

    assert own.key in header_module._unusable
    assert own.link(str(tmp_path)) is None
    own.start(str(tmp_path))
    own.finish()
    assert fresh.find(own.key, None) is None


def test_other_compilers_and_kernels_have_none(fresh: KernelCache) -> None:
    """Only GCC, and only kernels that begin with the header's first section."""
    compiler = find_compiler()
    assert compiler is not None
    clang = compiler._replace(kind="clang")
    other = text("other", "", sections=(OTHER, *SECTIONS))

    assert header_of([kernel(1)], SECTIONS, (), clang, fresh) is None
    assert header_of([kernel(1), other], SECTIONS, (), compiler, fresh) is None
    assert header_of([kernel(1)], (), (), compiler, fresh) is None
