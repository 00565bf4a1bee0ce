"""Translation units: kernels that a process of the compiler compiles together."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from passkit.errors import CompilerError
from passkit.runtime.native.compiler import Compiler, kernel_flags
from passkit.values.progress import progress

if TYPE_CHECKING:
    from pathlib import Path

    from passkit.runtime.native.cache import KernelCache
    from passkit.runtime.native.compilation import Compilation
    from passkit.runtime.native.header import Header

MIN_UNIT_LENGTH = 800
"""The characters of kernels for each process below which another one is not worth it: they are
compiled in the time that the common sections take."""
MAX_UNIT_KERNELS = 120
"""The most kernels of a unit, whose common sections take a third of a second to compile."""


class KernelText(NamedTuple):
    """The source text of one kernel.

    Attributes:
        key: the caller's name for the kernel.
        symbol: the function that ``source`` defines as ``extern "C"``.
        source: the C++ text of the kernel.
        sections: texts that come first, each after those that it needs; kernels share them.
    """

    key: str
    symbol: str
    source: str
    sections: tuple[str, ...] = ()


def divided(kernels: Sequence[KernelText]) -> list[list[KernelText]]:
    """Divide kernels into translation units of nearly equal length; none without kernels.

    There is one per core, fewer if they would have less than `MIN_UNIT_LENGTH` characters on
    average, and more where a unit would exceed `MAX_UNIT_KERNELS` or have a symbol twice.
    """
    count, length = len(kernels), sum(len(k.source) for k in kernels)
    number = max(
        1,
        min(len(os.sched_getaffinity(0)), count, length // MIN_UNIT_LENGTH),
        -(-count // MAX_UNIT_KERNELS),
    )
    units: list[list[KernelText]] = [[] for _ in range(number)]
    for kernel in sorted(kernels, key=lambda k: (-len(k.source), k.symbol)):
        candidates = [
            u
            for u in units
            if len(u) < MAX_UNIT_KERNELS and all(k.symbol != kernel.symbol for k in u)
        ]
        if candidates:
            min(candidates, key=lambda u: sum(len(k.source) for k in u)).append(kernel)
        else:
            units.append([kernel])
    return [unit for unit in units if unit]


class UnitCompiler:
    """Compiles units, with the precompiled header if it is there.

    Args:
        units: the kernels of each.
        compiler: the compiler.
        flags: its flags in addition to `kernel_flags`.
        header: the header; None for none.
        folder: a folder for the compiler's files.

    Attributes:
        running: the compilations so far, by the numbers of the units.
        processes: the number of processes that were started for units.
    """

    def __init__(
        self,
        units: Sequence[Sequence[KernelText]],
        compiler: Compiler,
        flags: tuple[str, ...],
        header: Header | None,
        folder: str,
    ) -> None:
        self.units, self.compiler, self.flags = units, compiler, flags
        self.header, self.folder = header, folder
        self.running: list[Compilation] = []
        self.processes = 0
        self._included = header.link(folder) if header else None

    def start(self, number: int) -> None:
        """Start to compile the next unit, whose number is ``number``.

        Raises: CompilerError where the compiler cannot be run; OSError where the folder cannot be
        written.
        """
        self.running.append(self._started(number, self._included))

    def start_header(self) -> None:
        """Start to compile the header for later units if the cache does not have it."""
        if self.header is not None and self._included is None:
            self.header.start(self.folder)

    def finish(self, number: int) -> Path:
        """Return the library of a unit; where that fails with the header, compile it without.

        Raises: CompilerError where it fails without; OSError where the folder cannot be written.
        """
        try:
            return self.running[number].finish()
        except CompilerError:
            if self.header is None or self._included is None:
                raise
        self.running[number] = self._started(number, None)
        library = self.running[number].finish()
        self.header.give_up()
        return library

    def stop(self) -> None:
        """Kill the processes that are running."""
        for compilation in self.running:
            compilation.stop()
        if self.header is not None:
            self.header.stop()

    def _started(self, number: int, included: str | None) -> Compilation:
        """Start to compile a unit, and return its compilation; ``included`` is the header's path.

        Raises: CompilerError where the compiler cannot be run; OSError where the folder cannot be
        written.
        """
        from pathlib import Path

        self.processes += 1
        source = Path(self.folder, f"{number}.cpp")
        common = self.header.sections if self.header and included else ()
        return start_unit(self.units[number], self.compiler, self.flags, source, included, common)


def compiled(
    units: Sequence[Sequence[KernelText]],
    compiler: Compiler,
    flags: tuple[str, ...],
    header: Header | None,
    folder: str,
) -> tuple[list[Path], int]:
    """Compile units, one per core at a time; return their libraries and the number of processes.

    Args:
        units: the kernels of each.
        compiler: the compiler.
        flags: its flags in addition to `kernel_flags`.
        header: the precompiled header; None for none. It is compiled, too, if the cache lacks it.
        folder: a folder for the compiler's files.

    Raises: CompilerError where the compiler fails on a kernel or cannot be run; OSError where the
    folder cannot be written; CacheError where others can write to the cache folder.
    """
    cores = len(os.sched_getaffinity(0))
    work = UnitCompiler(units, compiler, flags, header, folder)
    with progress("compiling kernels", len(units)) as step:
        try:
            for number in range(len(units)):
                if number >= cores:
                    work.finish(number - cores)
                    step()
                work.start(number)
            work.start_header()
            libraries = []
            for number in range(len(units)):
                libraries.append(work.finish(number))
                if number >= len(units) - cores:
                    step()
            if header is not None:
                header.finish()
        finally:
            work.stop()
    return libraries, work.processes


def header_of(
    kernels: Iterable[KernelText],
    sections: Sequence[str],
    flags: tuple[str, ...],
    compiler: Compiler,
    cache: KernelCache,
) -> Header | None:
    """Return the precompiled header for some kernels.

    Args:
        kernels: the kernels.
        sections: its sections.
        flags: the compiler's flags in addition to `kernel_flags`.
        compiler: the compiler.
        cache: the cache that keeps it.

    Returns: None for compilers without one, and if a kernel begins with another section.
    """
    if compiler.kind != "gcc" or not sections:
        return None
    if any(kernel.sections[:1] != (sections[0],) for kernel in kernels):
        return None
    from passkit.runtime.native.header import Header  # other compilers need none

    return Header(sections, flags, compiler, cache)


def start_unit(
    unit: Sequence[KernelText],
    compiler: Compiler,
    flags: tuple[str, ...],
    source: Path,
    header: str | None = None,
    common: Sequence[str] = (),
) -> Compilation:
    """Start to compile a translation unit, whose shared object will lie beside its source.

    Args:
        unit: the kernels.
        compiler: the compiler.
        flags: its flags in addition to `kernel_flags`.
        source: the path to write the text to.
        header: the path of a precompiled header; None for none.
        common: the sections that the header has.

    Raises: CompilerError where the compiler cannot be run; OSError where the folder cannot be
    written.
    """
    from passkit.runtime.native.compilation import start_compilation

    source.write_text(unit_text(unit, common))
    arguments = [*kernel_flags(), *compiler.parameters, *flags]
    arguments += ["-include", header] if header else []
    arguments += [str(source), *compiler.libraries]
    subject = ", ".join(kernel.symbol for kernel in unit)
    output = source.with_suffix(".so")
    return start_compilation(compiler, arguments, output, subject, _kernel_text(unit))


def unit_text(kernels: Sequence[KernelText], common: Sequence[str] = ()) -> str:
    """Return the text of a translation unit: each section once, then the kernels.

    ``#line`` makes the compiler's messages count lines from the first kernel. Sections in
    ``common`` are left out.
    """
    sections = dict.fromkeys(x for kernel in kernels for x in kernel.sections if x not in common)
    head = "".join(f'#line 1 "section{number}.h"\n{text}\n' for number, text in enumerate(sections))
    return f'{head}#line 1 "kernels.cpp"\n{_kernel_text(kernels)}'


def _kernel_text(kernels: Sequence[KernelText]) -> str:
    """Return the sources of several kernels as one text, without their sections."""
    return "\n".join(kernel.source.rstrip("\n") + "\n" for kernel in kernels)
