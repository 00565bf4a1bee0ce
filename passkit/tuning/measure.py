"""Measuring: the kernels of one group under several templates, in turns.

A request and its answer are JSON, so that any process can take the one and give the other. What a
template computes is held against the first one's results, bit by bit: a template must not change
them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from attrs import frozen

import passkit.ops  # noqa: F401  (a group names operators)
from passkit.errors import PasskitError
from passkit.graph.graph import Graph
from passkit.passes.context import PassContext
from passkit.passes.rtcgen import build_kernels
from passkit.plan.evaluator import APART
from passkit.plan.group import FUSED
from passkit.plan.single import as_plan
from passkit.program.compiler import compile
from passkit.program.executable import Executable
from passkit.program.planning import planned
from passkit.runtime.profile import random_feeds
from passkit.serial.json import from_json

FEW, SOME, ROUNDS = 5, 12, 52
"""Rounds in which every template takes part, after which those do that may win, and, from the
second number on, only the first one and the best."""
SLOWER = 1.25
"""How many times the best one's seconds a template may take to stay in."""
LEAST, LONG, TURNS = 5e-5, 4e-3, 31
"""Seconds that a sample takes at least; a short kernel runs several times in it. Between the last
two a round goes on for `LONG` seconds, in so many turns at most, of which the median counts: what
else the machine does comes and goes, and hits some of them."""
SETS, MOST_SETS, ROOM = 3, 16, 64 << 20
"""Sets of inputs that are fed in turns, those whose bits are compared, and the bytes of all."""
ENOUGH = 4096
"""Results whose bits are compared at least, if `MOST_SETS` have as many."""
OTHER_BITS = "other bits"

Clock = Callable[[Callable[[], object], int, str], float]
"""``clock(run, times, template)``: the seconds of one run, found by running so many times."""


def wall(run: Callable[[], object], times: int, template: str) -> float:
    """The clock on the wall."""
    begin = perf_counter()
    for _ in range(times):
        run()
    return (perf_counter() - begin) / times


@frozen
class Request:
    """What to measure: a graph of one group as JSON, input shapes, and texts of templates.

    The first template is the one whose bits count. ``options`` are those of `PassContext`. Where
    `APART` is among the templates, ``apart`` is the graph of several groups that it stands for,
    whose last bits may be others.
    """

    graph: str
    shapes: tuple[tuple[int, ...], ...]
    templates: tuple[str, ...]
    options: Mapping[str, Any]
    apart: str = ""

    def text(self) -> str:
        """As JSON."""
        return json.dumps(
            {"graph": self.graph, "shapes": self.shapes, "templates": self.templates,
             "options": dict(self.options), "apart": self.apart}
        )  # fmt: skip

    @staticmethod
    def read(text: str) -> Request:
        """What `text` wrote."""
        data = json.loads(text)
        shapes = tuple(tuple(s) for s in data["shapes"])
        return Request(data["graph"], shapes, tuple(data["templates"]), data["options"],
                       data["apart"])


@frozen
class Answer:
    """Seconds of single runs by template, and what is wrong with those that must not be taken.

    ``beside`` are those of the first template in the same rounds.
    """

    samples: Mapping[str, tuple[float, ...]]
    faults: Mapping[str, str]
    beside: Mapping[str, tuple[float, ...]] = {}

    def text(self) -> str:
        """As JSON."""
        return json.dumps(
            {"samples": dict(self.samples), "faults": dict(self.faults),
             "beside": dict(self.beside)}
        )  # fmt: skip

    @staticmethod
    def read(text: str) -> Answer:
        """What `text` wrote."""
        data = json.loads(text)
        samples, beside = (
            {k: tuple(v) for k, v in data[what].items()} for what in ("samples", "beside")
        )
        return Answer(samples, data["faults"], beside)


def measure(request: str, clock: Clock = wall) -> str:
    """The answer to a request. Nothing is planned by what was measured before."""
    asked = Request.read(request)
    with PassContext(**asked.options, evaluator="model"):
        return _measured(asked, clock).text()


def _measured(asked: Request, clock: Clock) -> Answer:
    runs, faults = _compiled(asked)
    sets = _inputs(asked, runs)
    usual = asked.templates[0]
    wanted: list[bytes] | None = None
    for template, run in [*runs.items()]:
        try:
            bits = [*_bits(run, sets)]
        except PasskitError as error:
            faults[template] = _said(error)
            continue
        if template == usual:
            wanted = bits
        elif wanted is not None and bits != wanted and template != APART:
            faults[template] = OTHER_BITS
    good = {t: run for t, run in runs.items() if t not in faults}
    samples = _in_turns(good, sets[:SETS], clock)
    first = samples.get(usual, ())
    return Answer(samples, faults, {t: first[: len(own)] for t, own in samples.items() if first})


def _bits(run: Executable, sets: Sequence[Mapping[str, Any]]) -> Iterator[bytes]:
    """A digest of the results on each set of inputs."""
    for feeds in sets:
        sha = sha256()
        for out in run(feeds):
            sha.update(np.ascontiguousarray(out).tobytes())
        yield sha.digest()


def _compiled(asked: Request) -> tuple[dict[str, Executable], dict[str, str]]:
    """An executable for each template, and why others have none; kernels are compiled together."""
    graph = as_plan(from_json(asked.graph))
    (name,) = (graph.names[n] for n in graph.nodes if n.op is FUSED)
    ready: dict[str, Graph] = {}
    faults: dict[str, str] = {}
    ways = {
        t: (as_plan(from_json(asked.apart)), {}) if t == APART else (graph, {name: t})
        for t in asked.templates
    }
    for template, (one, templates) in ways.items():
        try:
            ready[template] = planned(one, "CodeGen", templates=templates)
        except PasskitError as error:
            faults[template] = _said(error)
    kernels = [k for plan in ready.values() for k in plan.attrs["kernel"].values()]
    target = PassContext().target
    with suppress(PasskitError):  # a refused one spoils what it comes with, and later says so
        build_kernels(kernels, target)
    runs: dict[str, Executable] = {}
    for template in ready:
        try:
            one, templates = ways[template]
            runs[template] = compile(one, templates=templates)
        except PasskitError as error:
            faults[template] = _said(error)
    return runs, faults


def _inputs(asked: Request, runs: Mapping[str, Executable]) -> list[dict[str, Any]]:
    """Sets of random inputs: few where they are large, many where results are small.

    A single sum may have the same bits in two orders by chance, and many do not.
    """
    if not runs:
        return []
    run = next(iter(runs.values()))
    specs = [(s.name, s.dtype) for s in run.inputs]
    first = random_feeds(specs, asked.shapes)
    nbytes = max(1, sum(a.nbytes for a in first.values()))
    results = max(1, sum(np.size(out) for out in run(first)))
    count = min(max(SETS, ENOUGH // results), MOST_SETS, max(1, ROOM // nbytes))
    return [first, *(random_feeds(specs, asked.shapes, seed) for seed in range(1, count))]


def _in_turns(
    runs: Mapping[str, Executable], sets: Sequence[Mapping[str, Any]], clock: Clock
) -> dict[str, tuple[float, ...]]:
    """Samples of each, taken in rounds; what is clearly slower leaves after a few of them."""
    calls = {t: [_call(run, feeds) for feeds in sets] for t, run in runs.items()}
    times = {t: _times(own) for t, own in calls.items()}
    samples: dict[str, list[float]] = {t: [] for t in runs}
    racing = list(runs)
    for turn in range(ROUNDS):
        if turn in (FEW, SOME):
            racing = _left(racing, samples, 2 if turn == SOME else len(racing))
        if not racing or (turn >= FEW and len(racing) < 2):
            break
        again = 1
        if turn >= SOME:
            each = max(times[t] * min(samples[t]) for t in racing)
            again = max(1, min(TURNS, int(LONG / max(each, LEAST))))
        own: dict[str, list[float]] = {t: [] for t in racing}
        for _ in range(again):
            for t in racing[turn % len(racing) :] + racing[: turn % len(racing)]:
                own[t].append(clock(calls[t][turn % len(sets)], times[t], t))
        for t, found in own.items():
            samples[t].append(median(found))
    return {t: tuple(found) for t, found in samples.items()}


def _left(
    racing: Sequence[str], samples: Mapping[str, Sequence[float]], most: int
) -> list[str]:
    """The first of those that race, and others that may win, so many in all."""
    if not racing:
        return []
    middles = {t: median(samples[t]) for t in racing}
    limit = SLOWER * min(middles.values())
    others = sorted((t for t in racing[1:] if middles[t] <= limit), key=lambda t: middles[t])
    return [racing[0], *others[: most - 1]]


def _call(run: Executable, feeds: Mapping[str, Any]) -> Callable[[], object]:
    arrays = [feeds[s.name] for s in run.inputs]
    positional = run.run_positional
    return lambda: positional(*arrays)


def _times(calls: Sequence[Callable[[], object]]) -> int:
    """How often a sample runs; what runs first is slow, and counts for nothing."""
    calls[0]()
    begin = perf_counter()
    for call in calls:
        call()
    each = (perf_counter() - begin) / len(calls)
    return max(1, min(1000, int(LEAST / max(each, 1e-9))))


def _said(error: PasskitError) -> str:
    first = str(error).strip().splitlines()
    return f"{type(error).__name__}: {first[0] if first else ''}"[:200]

