"""Compilers at work: processes begun, waited for, and their refusals told."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from threading import Event, Timer
from typing import NamedTuple

from passkit.errors import CompilerError
from passkit.runtime.native.compiler import Compiler

TIMEOUT_SECONDS = 600.0


class Compilation(NamedTuple):  # not attrs, whose import the launcher would wait for
    """A process that compiles ``what`` to ``output``; ``source`` is shown when it fails."""

    compiler: Compiler
    what: str
    source: str
    output: Path
    process: subprocess.Popen[bytes]

    def finish(self, timeout: float = TIMEOUT_SECONDS) -> Path:
        """The shared object, when it is there.

        Raises: CompilerError with the compiler's text and the numbered source.
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
            raise CompilerError(
                f"{self.compiler.path} refused {self.what} with status {status}; PASSKIT_CXX may "
                f"name another compiler. It says:\n{self._log()}\n\n{numbered(self.source)}"
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


def numbered(source: str) -> str:
    r"""The lines of a text with their numbers.

    >>> print(numbered("a\nb\n"))
       1 a
       2 b
    """
    return "\n".join(f"{k:4} {line}" for k, line in enumerate(source.splitlines(), 1))
