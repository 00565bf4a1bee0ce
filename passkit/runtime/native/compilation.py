"""Compiler processes: start them, wait for them, and report their errors."""

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

MAX_LINES = 60
"""Up to this many lines an error shows the entire source."""
CONTEXT_LINES = 6
"""Of longer sources it shows this many lines around each that the compiler names."""


class Compilation(NamedTuple):  # attrs would delay the launcher by its import
    """A running compiler.

    Attributes:
        compiler: the compiler.
        subject: the name of the program or kernels that it compiles, for messages.
        source: the source text, of which errors show an excerpt.
        output: the path of the shared object.
        process: the process.
    """

    compiler: Compiler
    subject: str
    source: str
    output: Path
    process: subprocess.Popen[bytes]

    def finish(self, timeout: float = TIMEOUT_SECONDS) -> Path:
        """Wait for the compiler and return the path of the shared object.

        Args:
            timeout: seconds after which the compiler is killed.

        Raises:
            CompilerError: It fails, with its output and the numbered source lines around its
                errors; or it takes too long.
        """
        timed_out = Event()

        def kill() -> None:
            timed_out.set()
            self.process.kill()

        alarm = Timer(timeout, kill)
        alarm.start()
        try:
            status = self.process.wait()  # wait(timeout) would poll every 50 ms
        finally:
            alarm.cancel()
        if timed_out.is_set():
            raise CompilerError(
                f"{self.compiler.path} took more than {timeout:g} seconds to compile "
                f"{self.subject}; set PASSKIT_CXX to another compiler"
            )
        if status:
            log = self._log()
            raise CompilerError(
                f"{self.compiler.path} failed to compile {self.subject}, with status {status}; "
                "PASSKIT_CXX may name another compiler. Its output:\n"
                f"{log}\n\n{excerpt(self.source, log)}"
            )
        return self.output

    def stop(self) -> None:
        """Kill the process if it is running, and wait for its end."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def _log(self) -> str:
        """Return the compiler's messages, or why they cannot be read."""
        try:
            return self.output.with_suffix(".log").read_text(errors="replace").strip()
        except OSError as error:
            return f"({error})"


def start_compilation(
    compiler: Compiler, arguments: Sequence[str], output: Path, subject: str, source: str = ""
) -> Compilation:
    """Start a compiler process, without waiting for it.

    Args:
        compiler: the compiler.
        arguments: its arguments, with source files and without the output.
        output: the path of the shared object; the compiler's messages go to a ``.log`` beside it.
        subject: the name of the program or kernels that it compiles, for messages.
        source: the source text, of which errors show an excerpt.

    Returns:
        The running compilation.

    Raises:
        CompilerError: The program cannot be run.
        OSError: The folder of ``output`` cannot be written.
    """
    command = [*compiler.command, *arguments, "-o", str(output)]
    environ = os.environ | {"LC_ALL": "C", "TMPDIR": str(output.parent)}  # messages in English
    with open(output.with_suffix(".log"), "wb") as log:
        try:
            process = subprocess.Popen(
                command, env=environ, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )
        except OSError as error:
            raise CompilerError(
                f"{compiler.path} cannot be run to compile {subject}: {error}; set PASSKIT_CXX to "
                "another compiler"
            ) from None
    return Compilation(compiler, subject, source, output, process)


def excerpt(source: str, log: str) -> str:
    r"""Return the lines of a source with their numbers; of a long one, those near named lines.

    Of more than `MAX_LINES` lines, it shows those around the lines that the compiler's ``log``
    names, or the first ones if it names none.

    >>> print(excerpt("a\nb\n", "kernel.cpp:2:1: error"))
       1 a
       2 b
    """
    lines = source.splitlines()
    shown = set(range(1, len(lines) + 1))
    if len(lines) > MAX_LINES:
        named = {int(n) for n in re.findall(r"[:(](\d+)[:,)]", log) if 0 < int(n) <= len(lines)}
        near = {k for n in named for k in range(n - CONTEXT_LINES, n + CONTEXT_LINES + 1)}
        shown &= near or set(range(1, MAX_LINES + 1))
    text: list[str] = []
    last = 0
    for k in sorted(shown):
        if k != last + 1:
            text.append("     …")
        text.append(f"{k:4} {lines[k - 1]}")
        last = k
    return "\n".join([*text, "     …"] if last < len(lines) else text)
