"""Competitors in a process of another Python, since TensorFlow and PyTorch seldom share one.

The module holds the two ends of a pipe: `Pipe` sends requests and `serve` answers them, each as a
line of JSON. The side that waits uses no CPU, and both time with the same loops, in turn.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any


class PipeError(RuntimeError):
    """An error of the other process, with its message."""


class Pipe:
    """The process of another Python that runs a module's `serve`; leave the context to end it.

    Args:
        python: path of the interpreter.
        module: module whose `__main__` calls `serve`.
        threads: number of threads, passed on the command line.
        environment: environment variables that the process has beside this one's.

    Raises:
        PipeError: that Python lacks what it needs.
    """

    def __init__(
        self,
        python: str,
        module: str,
        threads: int,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.process = subprocess.Popen(
            [python, "-m", module, str(threads)],
            cwd=Path(__file__).parent,
            env={**os.environ, **environment},
            stdin=-1,
            stdout=-1,
            text=True,
        )
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
        """Send a request and return the answer; without a request return the greeting.

        Raises:
            PipeError: the other process failed or ended.
        """
        if request:
            self.process.stdin.write(json.dumps(request) + "\n")  # type: ignore[union-attr]
            self.process.stdin.flush()  # type: ignore[union-attr]
        line = self.process.stdout.readline()  # type: ignore[union-attr]
        answer: dict[str, Any] = json.loads(line or '{"failed": "the process ended"}')
        if "failed" in answer:
            raise PipeError(answer["failed"])
        return answer


RequestHandler = Callable[[dict[str, Any]], dict[str, Any]]


def serve(begin: Callable[[], tuple[str, RequestHandler]]) -> None:
    """Answer requests from standard input until it ends.

    Args:
        begin: Returns a version for the greeting, and the function that answers requests.
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of libraries goes to standard error
    send = partial(print, file=answers, flush=True)
    try:
        version, answer = begin()
    except ImportError as error:
        send(json.dumps({"failed": str(error)}))
        return
    send(json.dumps({"version": version}))
    for line in sys.stdin:
        try:
            response = answer(json.loads(line))
        except Exception as error:  # the other competitors still count
            response = {"failed": f"{type(error).__name__}: {error}"[:300]}
        send(json.dumps(response))
