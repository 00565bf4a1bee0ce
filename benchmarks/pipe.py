"""Competitors in a process of another Python, as TensorFlow and PyTorch seldom share one.

The two ends of a pipe: `Pipe` asks and `serve` answers, a line of JSON each. The one that waits
takes no time from the other, and both time with the same loops, in turn.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any


class PipeError(RuntimeError):
    """What went wrong in the other process, in its words."""


class Pipe:
    """A module's `serve` in the process of another Python; leave it as a context to end it.

    Raises: PipeError where that Python lacks what it needs.
    """

    def __init__(self, python: str, module: str, threads: int) -> None:
        self.process = subprocess.Popen(
            [python, "-m", module, str(threads)],
            cwd=Path(__file__).parent, stdin=-1, stdout=-1, text=True,
        )  # fmt: skip
        try:
            self.version: str = self.ask()["version"]
        except PipeError:
            self.__exit__()
            raise

    def __enter__(self) -> Pipe:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate(timeout=30)

    def ask(self, **request: Any) -> dict[str, Any]:
        """The answer to a request, or to none: the greeting. Raises: PipeError."""
        if request:
            self.process.stdin.write(json.dumps(request) + "\n")  # type: ignore[union-attr]
            self.process.stdin.flush()  # type: ignore[union-attr]
        line = self.process.stdout.readline()  # type: ignore[union-attr]
        answer: dict[str, Any] = json.loads(line or '{"failed": "the process ended"}')
        if "failed" in answer:
            raise PipeError(answer["failed"])
        return answer


Answer = Callable[[dict[str, Any]], dict[str, Any]]


def serve(begin: Callable[[], tuple[str, Answer]]) -> None:
    """Answer until nothing is asked any more; ``begin`` gives a version and what answers."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    say = partial(print, file=answers, flush=True)
    try:
        version, answer = begin()
    except ImportError as error:
        say(json.dumps({"failed": str(error)}))
        return
    say(json.dumps({"version": version}))
    for line in sys.stdin:
        try:
            said = answer(json.loads(line))
        except Exception as error:  # the other competitors still count
            said = {"failed": f"{type(error).__name__}: {error}"[:300]}
        say(json.dumps(said))
