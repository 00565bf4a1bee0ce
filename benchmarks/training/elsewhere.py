"""TensorFlow's rivals, in a process of their own.

Inputs and first values are drawn anew there, by the same generator from the same seed.
"""

from __future__ import annotations

import gc
import sys
from functools import partial
from typing import Any

from attrs import define
from pipe import Answer, Pipe, serve

SETTINGS = {
    "graph": "tf.function of tf.GradientTape and the operators that tf.compat.v1.train applies, a "
             "process of its own on the same CPUs, intra_op threads = threads; recurrent networks "
             "written out",
    "xla": "as graph, with jit_compile=True",
}


def tensorflow_in(python: str, threads: int) -> Pipe:
    """The process of a Python that has tensorflow. Raises: PipeError where it has none."""
    return Pipe(python, "training.elsewhere", threads)


@define
class Remote:
    """`timing.Entrant` for a rival of the other process."""

    process: Pipe
    key: str
    loss: float

    def series(self, seconds: float) -> tuple[float, float]:
        """Times a series of steps there."""
        wall, cpu = self.process.ask(measure=self.key, seconds=seconds)["times"]
        return wall, cpu


def enter(process: Pipe, rival: str, program: str, sizes: dict[str, int]) -> Remote:
    """A rival there, which took its first step. Raises: PipeError."""
    found = process.ask(enter=rival, program=program, sizes=sizes)
    return Remote(process, found["key"], found["loss"])


def leave(process: Pipe) -> None:
    """Let all that entered go."""
    process.ask(leave=True)


def rivals(threads: int) -> tuple[str, Answer]:
    """TensorFlow's version, and what enters and times rivals by it."""
    import peers

    threads = peers.confine(threads)
    from training import programs, with_tensorflow
    from training.timing import Entrant

    with_tensorflow.threads(threads)
    entrants: dict[str, Entrant] = {}

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        if "measure" in request:
            return {"times": entrants[request["measure"]].series(request["seconds"])}
        if "leave" in request:
            entrants.clear()
            gc.collect()
            return {}
        name, program = request["enter"], programs.named(request["program"], request["sizes"])
        drawn = program.drawn()
        rival = with_tensorflow.rival(program, drawn, xla=name == "xla")
        entrant = Entrant(rival, program.both_feeds(drawn))
        key = f"{name} of {programs.label(program)}"
        entrants[key] = entrant
        return {"key": key, "loss": entrant.loss}

    return with_tensorflow.tf.__version__, answer


if __name__ == "__main__":
    serve(partial(rivals, int(sys.argv[1])))
