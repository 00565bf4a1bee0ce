"""TensorFlow's training steps, in a process of their own.

The module holds both ends: `timing` uses `enter` and `leave`; the other process runs the module as
a script. It draws inputs and first values anew, by the same generator from the same seed.
"""

from __future__ import annotations

import gc
import sys
from functools import partial
from typing import Any

import peers
from attrs import define
from pipe import Pipe, RequestHandler, serve

from training import programs
from training.entrants import LocalEntrant

SETTINGS = {
    "graph": "tf.function of tf.GradientTape and the operators that tf.compat.v1.train applies, a "
    "process of its own on the same CPUs, intra_op threads = threads; recurrent networks "
    "written out",
    "xla": "as graph, with jit_compile=True",
}


def tensorflow_in(python: str, threads: int) -> Pipe:
    """Start the process of a Python that has tensorflow.

    Raises:
        PipeError: that Python has no tensorflow.
    """
    return Pipe(python, "training.tensorflow_process", threads)


@define
class RemoteEntrant:
    """A `entrants.StepTimer` for an implementation in the other process."""

    process: Pipe
    key: str
    loss: float

    def series(self, seconds: float) -> tuple[float, float]:
        """Time a series of steps in the other process."""
        wall, cpu = self.process.ask(measure=self.key, seconds=seconds)["times"]
        return wall, cpu


def enter(process: Pipe, rival: str, program: str, sizes: dict[str, int]) -> RemoteEntrant:
    """Build an implementation in the other process, which takes its first step.

    Args:
        process: the other process.
        rival: "graph" or "xla".
        program: name of the program.
        sizes: its sizes.

    Raises:
        PipeError: the other process failed.
    """
    answer = process.ask(enter=rival, program=program, sizes=sizes)
    return RemoteEntrant(process, answer["key"], answer["loss"])


def leave(process: Pipe) -> None:
    """Drop all implementations of the other process."""
    process.ask(leave=True)


def rivals(threads: int) -> tuple[str, RequestHandler]:
    """Prepare this process.

    Returns:
        TensorFlow's version, and the function that answers requests to build and to time steps.
    """
    threads = peers.confine(threads)
    from training import tensorflow_steps  # imports tensorflow

    tensorflow_steps.threads(threads)
    entrants: dict[str, LocalEntrant] = {}

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        """Time a series (``measure``), drop everything (``leave``), or build a step (``enter``)."""
        if "measure" in request:
            return {"times": entrants[request["measure"]].series(request["seconds"])}
        if "leave" in request:
            entrants.clear()
            gc.collect()
            return {}
        name, program = request["enter"], programs.named(request["program"], request["sizes"])
        drawn = program.drawn()
        rival = tensorflow_steps.rival(program, drawn, xla=name == "xla")
        entrant = LocalEntrant(rival, program.both_feeds(drawn))
        key = f"{name} of {programs.label(program)}"
        entrants[key] = entrant
        return {"key": key, "loss": entrant.loss}

    return tensorflow_steps.tf.__version__, answer


if __name__ == "__main__":
    serve(partial(rivals, int(sys.argv[1])))
