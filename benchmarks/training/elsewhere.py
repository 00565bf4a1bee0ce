"""Rivals in a process of another Python, as TensorFlow and PyTorch seldom share one.

The two ends of a pipe, `Elsewhere` and `serve`: a line of JSON each. The one that waits takes no
time from the other, and both time with the same loop, in turn. Inputs and first values are drawn
anew there, by the same generator from the same seed.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

from attrs import define

SETTINGS = {
    "graph": "tf.function of tf.GradientTape and the operators that tf.compat.v1.train applies, a "
             "process of its own on the same CPUs, intra_op threads = threads; recurrent networks "
             "written out",
    "xla": "as graph, with jit_compile=True",
}


class ElsewhereError(RuntimeError):
    """What went wrong in the other process, in its words."""


class Elsewhere:
    """The process of a Python that has tensorflow; leave it as a context to end it.

    Raises: ElsewhereError where it has none.
    """

    def __init__(self, python: str, threads: int) -> None:
        command = [python, "-m", "training.elsewhere", str(threads)]
        self.process = subprocess.Popen(
            command, cwd=Path(__file__).parents[1], stdin=-1, stdout=-1, text=True
        )
        try:
            self.version: str = self.ask()["version"]
        except ElsewhereError:
            self.__exit__()
            raise

    def __enter__(self) -> Elsewhere:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate(timeout=30)

    def ask(self, **request: Any) -> dict[str, Any]:
        """The answer to a request, or to none: the greeting. Raises: ElsewhereError."""
        if request:
            self.process.stdin.write(json.dumps(request) + "\n")  # type: ignore[union-attr]
            self.process.stdin.flush()  # type: ignore[union-attr]
        line = self.process.stdout.readline()  # type: ignore[union-attr]
        answer: dict[str, Any] = json.loads(line or '{"failed": "the process ended"}')
        if "failed" in answer:
            raise ElsewhereError(answer["failed"])
        return answer

    def enter(self, rival: str, program: str, sizes: dict[str, int]) -> Remote:
        """A rival there, which took its first step. Raises: ElsewhereError."""
        answer = self.ask(enter=rival, program=program, sizes=sizes)
        return Remote(self, answer["key"], answer["loss"])

    def leave(self) -> None:
        """Let all that entered go."""
        self.ask(leave=True)


@define
class Remote:
    """`timing.Entrant` for a rival of the other process."""

    process: Elsewhere
    key: str
    loss: float

    def series(self, seconds: float) -> tuple[float, float]:
        """Times a series of steps there."""
        wall, cpu = self.process.ask(measure=self.key, seconds=seconds)["times"]
        return wall, cpu


def serve(threads: int) -> None:
    """Answer until nothing is asked any more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    say = partial(print, file=answers, flush=True)
    import peers

    threads = peers.confine(threads)
    try:
        from training import with_tensorflow
    except ImportError as error:
        say(json.dumps({"failed": str(error)}))
        return
    from training import programs
    from training.timing import Entrant

    with_tensorflow.threads(threads)
    say(json.dumps({"version": with_tensorflow.tf.__version__}))
    entrants: dict[str, Entrant] = {}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "enter" in request:
                name, asked = request["enter"], (request["program"], request["sizes"])
                program = programs.named(*asked)
                drawn = program.drawn()
                rival = with_tensorflow.rival(program, drawn, xla=name == "xla")
                entrant = Entrant(rival, program.both_feeds(drawn))
                key = f"{name} of {programs.label(program)}"
                entrants[key] = entrant
                say(json.dumps({"key": key, "loss": entrant.loss}))
            elif "leave" in request:
                entrants.clear()
                gc.collect()
                say(json.dumps({}))
            else:
                times = entrants[request["measure"]].series(request["seconds"])
                say(json.dumps({"times": times}))
        except Exception as error:  # the other rivals still count
            say(json.dumps({"failed": f"{type(error).__name__}: {error}"[:300]}))


if __name__ == "__main__":
    serve(int(sys.argv[1]))
