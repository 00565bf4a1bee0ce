"""Compilers at work: processes begun, waited for, and their refusals told."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from threading import Event, Timer
from typing import NamedTuple

from passkit.errors import CompilerError
from passkit.runtime.native.compiler import Compiler

TIMEOUT_SECONDS = 600.0

WHOLE_LINES, NEAR_LINES = 60, 6
"""The longest text that an error shows whole, and the lines around each that it names."""


class Compilation(NamedTuple):  # not attrs, whose import the launcher would wait for
    """A process that compiles ``what`` to ``output``; ``source`` is shown when it fails."""

    compiler: Compiler
    what: str
    source: str
    output: Path
    process: subprocess.Popen[bytes]

    def finish(self, timeout: float = TIMEOUT_SECONDS) -> Path:
        """The shared object, when it is there.

        Raises: CompilerError with the compiler's text and the numbered source around its errors.
        """
        late = Event()

        def give_up() -> None:
            late.set()
            self.process.kill()

        alarm = Timer(timeout, give_up)
        alarm.start()
        try:
            status = self.process.wait()  # with a timeout it would look every 50 ms only
        finally:
            alarm.cancel()
        if late.is_set():
            raise CompilerError(
                f"{self.compiler.path} took more than {timeout:g} seconds for {self.what}; set "
                "PASSKIT_CXX to another compiler"
            )
        if status:
            log = self._log()
            raise CompilerError(
                f"{self.compiler.path} refused {self.what} with status {status}; PASSKIT_CXX may "
                f"name another compiler. It says:\n{log}\n\n{excerpt(self.source, log)}"
            )
        return self.output

    def stop(self) -> None:
        """End the process, if it has not ended."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def _log(self) -> str:
        return self.output.with_suffix(".log").read_text(errors="replace").strip()


def begin(
    compiler: Compiler, arguments: Sequence[str], output: Path, what: str, source: str = ""
) -> Compilation:
    """Start the compiler; its text goes to a file beside ``output``.

    Raises: CompilerError when the program cannot be run.
    """
    command = [*compiler.command, *arguments, "-o", str(output)]
    environ = os.environ | {"LC_ALL": "C", "TMPDIR": str(output.parent)}  # messages in one language
    with open(output.with_suffix(".log"), "wb") as log:
        try:
            process = subprocess.Popen(
                command, env=environ, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )
        except OSError as error:
            raise CompilerError(
                f"{compiler.path} cannot be run for {what}: {error}; set PASSKIT_CXX to another "
                "compiler"
            ) from None
    return Compilation(compiler, what, source, output, process)


def excerpt(source: str, log: str) -> str:
    r"""The lines of a text with their numbers; of a long one those around the lines a log names.

    >>> print(excerpt("a\nb\n", "kernel.cpp:2:1: error"))
       1 a
       2 b
    """
    lines = source.splitlines()
    shown = set(range(1, len(lines) + 1))
    if len(lines) > WHOLE_LINES:
        named = {int(n) for n in re.findall(r"[:(](\d+)[:,)]", log) if 0 < int(n) <= len(lines)}
        near = {k for n in named for k in range(n - NEAR_LINES, n + NEAR_LINES + 1)}
        shown &= near or set(range(1, WHOLE_LINES + 1))
    text: list[str] = []
    last = 0
    for k in sorted(shown):
        if k != last + 1:
            text.append("     …")
        text.append(f"{k:4} {lines[k - 1]}")
        last = k
    return "\n".join([*text, "     …"] if last < len(lines) else text)
