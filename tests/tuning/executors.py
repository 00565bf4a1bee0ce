"""Executors for `pk.tune` that stand in for worker processes, and the ways in which those fail."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import passkit as pk
from passkit.analysis.group import FUSED
from passkit.library.evaluator import UNFUSED
from passkit.tuning.measure import MeasureAnswer, Request
from passkit.tuning.workers import DeadError, HungError, Workers

__all__ = ["SAMPLES", "UNFUSED", "DeadError", "HungError", "Inline", "ScriptedExecutor", "Workers"]

SAMPLES = 40
"""Measurements of each template."""


def group_key(request: Request) -> str:
    """Return the key of the group whose kernel a request measures."""
    (node,) = (n for n in pk.from_json(request.graph).nodes if n.op is FUSED)
    return str(node.params["body"].key)


class ScriptedExecutor(Executor):
    """An executor with made-up answers: groups in ``quick`` take half as long as their units.

    Other groups take twice as long, or the same if ``equal``. If ``bad`` is `UNFUSED`, measurements
    of units fail; if it is another text, those of groups do.
    """

    def __init__(self, *quick: str, equal: bool = False, bad: str = "") -> None:
        self.quick, self.equal, self.bad = quick, equal, bad
        self.pairs: list[str] = []
        self.count = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Answer a request at once, without running it."""
        request, self.count = Request.read(args[0]), self.count + 1
        usual, *rest = request.templates
        seconds = dict.fromkeys(request.templates, 2e-6)
        if UNFUSED in rest:
            key = group_key(request)
            self.pairs.append(key)
            seconds[UNFUSED] = 2e-6 if self.equal else 4e-6 if key in self.quick else 1e-6
        samples = {t: (s,) * SAMPLES for t, s in seconds.items()}
        beside = dict.fromkeys(samples, samples[usual])
        future: Future[Any] = Future()
        if self.bad and any((t == UNFUSED) == (self.bad == UNFUSED) for t in request.templates):
            future.set_exception(DeadError("signal 11"))
            return future
        future.set_result(MeasureAnswer(samples, {}, beside).text())
        return future


class Inline(Executor):
    """An executor that runs functions where they are submitted.

    ``answers`` may return the error of a request instead; ``requests`` are those so far.
    """

    def __init__(self, answers: Callable[[Request], Exception | None] = lambda r: None) -> None:
        self.answers = answers
        self.requests: list[Request] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call a function now."""
        self.requests.append(Request.read(args[0]))
        future: Future[Any] = Future()
        error = self.answers(self.requests[-1])
        if error is not None:
            future.set_exception(error)
            return future
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as raised:
            future.set_exception(raised)
        return future
