"""Measure the kernels of one group under several templates, in alternation.

A request and its answer are JSON texts, so that any process can take the request and return the
answer. The outputs of each template are compared with those of the first one, bit by bit: a
template must not change them.
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

import passkit.ops  # noqa: F401  (graphs name operators)
from passkit.analysis.group import FUSED
from passkit.analysis.single import as_plan
from passkit.errors import PasskitError
from passkit.graph.graph import Graph
from passkit.library.evaluator import UNFUSED
from passkit.passes.context import PassContext
from passkit.passes.rtcgen import build_kernels
from passkit.program.compiler import compile
from passkit.program.executable import Executable
from passkit.program.planning import planned
from passkit.runtime.profile import random_feeds
from passkit.serial.json import from_json

ROUNDS = 52
"""The number of rounds. In each round, all templates run one after another."""
FIRST_ROUNDS = 5
"""The number of rounds after which templates that are much slower than the fastest are dropped."""
SHORT_ROUNDS = 12
"""The number of rounds after which long rounds of two templates begin: the first, and the fastest
other."""
MAX_SLOWDOWN = 1.25
"""Templates that take more than this factor times the seconds of the fastest are dropped."""
MIN_SAMPLE_SECONDS = 5e-5
"""The least seconds of a sample; a short kernel runs several times in it."""
ROUND_SECONDS = 4e-3
"""The seconds of a long round, whose median sample counts, since other work on the machine affects
only some samples."""
MAX_SAMPLES_PER_ROUND = 31
"""The most samples of a template in a long round."""
NUM_TIMED_INPUTS = 3
"""The sets of inputs that are fed in alternation while samples are taken."""
MAX_INPUTS = 16
"""The most sets of inputs for which outputs are compared."""
MAX_INPUT_BYTES = 64 << 20
"""The most bytes of all sets of inputs."""
MIN_COMPARED_ELEMENTS = 4096
"""The least elements of outputs that are compared, if `MAX_INPUTS` sets have as many."""
OTHER_BITS = "other bits"
"""The fault of a template whose outputs differ from those of the first template."""

RunClock = Callable[[Callable[[], object], int, str], float]
"""``clock(run, times, template)``: the seconds of one run, measured by running ``times`` times."""


def wall_clock(run: Callable[[], object], times: int, template: str) -> float:
    """Call ``run`` ``times`` times and return the mean seconds of a call, by `perf_counter`.

    ``times`` is 1 or more. ``template``, which a user's clock may need, has no effect.
    """
    begin = perf_counter()
    for _ in range(times):
        run()
    return (perf_counter() - begin) / times


@frozen
class Request:
    """A request to measure the kernel of a group under several templates.

    Attributes:
        graph: The graph of the group as JSON.
        shapes: The shapes of its inputs.
        templates: The texts of templates. The outputs of the first one are the reference.
        options: Options of `PassContext`.
        apart: If `UNFUSED` is among the templates: the graph of several groups that it stands
            for, as JSON, whose last bits may differ.
    """

    graph: str
    shapes: tuple[tuple[int, ...], ...]
    templates: tuple[str, ...]
    options: Mapping[str, Any]
    apart: str = ""

    def text(self) -> str:
        """Return the request as JSON."""
        fields = {
            "graph": self.graph,
            "shapes": self.shapes,
            "templates": self.templates,
            "options": dict(self.options),
            "apart": self.apart,
        }
        return json.dumps(fields)

    @staticmethod
    def read(text: str) -> Request:
        """Return the request that the method `text` wrote as ``text``.

        Raises: ValueError for a text that is no JSON; KeyError or TypeError for other JSON.
        """
        fields = json.loads(text)
        return Request(
            graph=fields["graph"],
            shapes=tuple(tuple(shape) for shape in fields["shapes"]),
            templates=tuple(fields["templates"]),
            options=fields["options"],
            apart=fields["apart"],
        )


@frozen
class MeasureAnswer:
    """The answer to a request.

    Attributes:
        samples: By template: the seconds of single runs.
        faults: By template that must not be used: what is wrong with it.
        beside: By template: the samples of the first template in the same rounds.
    """

    samples: Mapping[str, tuple[float, ...]]
    faults: Mapping[str, str]
    beside: Mapping[str, tuple[float, ...]] = {}

    def text(self) -> str:
        """Return the answer as JSON."""
        fields = {
            "samples": dict(self.samples),
            "faults": dict(self.faults),
            "beside": dict(self.beside),
        }
        return json.dumps(fields)

    @staticmethod
    def read(text: str) -> MeasureAnswer:
        """Return the answer that the method `text` wrote as ``text``.

        Raises: ValueError for a text that is no JSON; KeyError, TypeError or AttributeError for
        other JSON.
        """
        fields = json.loads(text)
        samples = {template: tuple(seconds) for template, seconds in fields["samples"].items()}
        beside = {template: tuple(seconds) for template, seconds in fields["beside"].items()}
        return MeasureAnswer(samples, fields["faults"], beside)


def measure(request: str, clock: RunClock = wall_clock) -> str:
    """Measure the kernels of a group; this runs in a worker.

    Plans do not depend on earlier measurements. A template that cannot be compiled or fails becomes
    a fault of the answer, not an error; only if the first that compiles fails when it runs, that is
    an error.

    Args:
        request: The text of a `Request`.
        clock: Returns the seconds of one run.

    Returns:
        The text of the `MeasureAnswer`.

    Raises:
        PasskitError: If the graph of the request is damaged, its options are wrong, or the first
            template that compiles fails when it runs.
        ValueError: If the text is no JSON; a KeyError or TypeError if the JSON is no request.
    """
    parsed = Request.read(request)
    with PassContext(**parsed.options, evaluator="model"):
        return _answer(parsed, clock).text()


def _answer(request: Request, clock: RunClock) -> MeasureAnswer:
    """Compile a group under each template, compare the outputs, time the kernels, and answer.

    ``request`` has the group and the templates, of which the first is the reference; ``clock``
    returns the seconds of one run. Templates that fail or have other outputs than the first are
    faults, and not timed. `UNFUSED` may have other outputs.

    Raises: PasskitError if the graph is damaged, or the first executable fails.
    """
    executables, faults = _compiled(request)
    inputs = _inputs(request, executables)
    usual = request.templates[0]
    reference: list[bytes] | None = None
    for template, executable in [*executables.items()]:
        try:
            digests = [*_output_digests(executable, inputs)]
        except PasskitError as error:
            faults[template] = _first_line(error)
            continue
        if template == usual:
            reference = digests
        elif reference is not None and digests != reference and template != UNFUSED:
            faults[template] = OTHER_BITS
    sound = {t: executable for t, executable in executables.items() if t not in faults}
    samples = _samples(sound, inputs[:NUM_TIMED_INPUTS], clock)
    usual_samples = samples.get(usual, ())
    beside = {t: usual_samples[: len(own)] for t, own in samples.items() if usual_samples}
    return MeasureAnswer(samples, faults, beside)


def _output_digests(executable: Executable, inputs: Sequence[Mapping[str, Any]]) -> Iterator[bytes]:
    """Yield a SHA-256 digest of all outputs for each set of inputs, which are arrays by name.

    Raises:
        PasskitError: If the executable fails.
    """
    for feeds in inputs:
        sha = sha256()
        for out in executable(feeds):
            sha.update(np.ascontiguousarray(out).tobytes())
        yield sha.digest()


def _compiled(request: Request) -> tuple[dict[str, Executable], dict[str, str]]:
    """Return an executable for each template, and the faults of templates that cannot be compiled.

    Both are by template; a fault is the first line of the error. All kernels are compiled together.

    Raises: ParseError if a graph of the request cannot be read; another PasskitError if an operator
    in it refuses its inputs.
    """
    graph = as_plan(from_json(request.graph))
    (name,) = (graph.names[n] for n in graph.nodes if n.op is FUSED)
    variants: dict[str, tuple[Graph, dict[str, str]]] = {
        t: (as_plan(from_json(request.apart)), {}) if t == UNFUSED else (graph, {name: t})
        for t in request.templates
    }
    plans: dict[str, Graph] = {}
    faults: dict[str, str] = {}
    for template, (variant, templates) in variants.items():
        try:
            plans[template] = planned(variant, "CodeGen", templates=templates)
        except PasskitError as error:
            faults[template] = _first_line(error)
    kernels = [k for plan in plans.values() for k in plan.attrs["kernel"].values()]
    target = PassContext().target
    with suppress(PasskitError):  # if one is refused, each is compiled separately below
        build_kernels(kernels, target)
    executables: dict[str, Executable] = {}
    for template in plans:
        try:
            variant, templates = variants[template]
            executables[template] = compile(variant, templates=templates)
        except PasskitError as error:
            faults[template] = _first_line(error)
    return executables, faults


def _inputs(request: Request, executables: Mapping[str, Executable]) -> list[dict[str, Any]]:
    """Return sets of random inputs, by name: fewer if they are large, more if outputs are small.

    ``request`` has their shapes; the first of ``executables`` runs once, to count the elements of
    its outputs. A single sum may have equal bits in two orders by chance, but many sums do not.
    Without executables there are none.

    Raises: PasskitError where that executable fails.
    """
    if not executables:
        return []
    executable = next(iter(executables.values()))
    specs = [(s.name, s.dtype) for s in executable.inputs]
    first = random_feeds(specs, request.shapes)
    nbytes = max(1, sum(a.nbytes for a in first.values()))
    num_elements = max(1, sum(np.size(out) for out in executable(first)))
    num_needed = max(NUM_TIMED_INPUTS, MIN_COMPARED_ELEMENTS // num_elements)
    count = min(num_needed, MAX_INPUTS, max(1, MAX_INPUT_BYTES // nbytes))
    return [first, *(random_feeds(specs, request.shapes, seed) for seed in range(1, count))]


def _samples(
    executables: Mapping[str, Executable], inputs: Sequence[Mapping[str, Any]], clock: RunClock
) -> dict[str, tuple[float, ...]]:
    """Return the seconds of each template, one sample for each round in which it ran.

    Slower templates are dropped early. Without executables the result is empty.

    Args:
        executables: The compiled group by template.
        inputs: Sets of arrays by input name, one for each round, used cyclically.
        clock: Returns the seconds of one run.
    """
    calls = {t: [_call(e, feeds) for feeds in inputs] for t, e in executables.items()}
    times = {t: _runs_per_sample(template_calls) for t, template_calls in calls.items()}
    samples: dict[str, list[float]] = {t: [] for t in executables}
    racing = list(executables)
    for number in range(ROUNDS):
        if number == FIRST_ROUNDS:
            racing = _fastest(racing, samples, len(racing))
        elif number == SHORT_ROUNDS:
            racing = _fastest(racing, samples, 2)
        if not racing or (number >= FIRST_ROUNDS and len(racing) < 2):
            break
        num_samples = 1
        if number >= SHORT_ROUNDS:
            slowest = max(times[t] * min(samples[t]) for t in racing)
            fitting = int(ROUND_SECONDS / max(slowest, MIN_SAMPLE_SECONDS))
            num_samples = max(1, min(MAX_SAMPLES_PER_ROUND, fitting))
        start = number % len(racing)
        order = racing[start:] + racing[:start]
        of_round: dict[str, list[float]] = {t: [] for t in racing}
        for _ in range(num_samples):
            for t in order:
                of_round[t].append(clock(calls[t][number % len(inputs)], times[t], t))
        for t, seconds in of_round.items():
            samples[t].append(median(seconds))
    return {t: tuple(seconds) for t, seconds in samples.items()}


def _fastest(
    racing: Sequence[str], samples: Mapping[str, Sequence[float]], count: int
) -> list[str]:
    """Return at most ``count`` templates to continue with: the first and the fastest others.

    Others that are slower than the fastest by more than `MAX_SLOWDOWN` are dropped. ``racing`` are
    the templates that are still timed, ``samples`` their seconds so far.
    """
    if not racing:
        return []
    medians = {t: median(samples[t]) for t in racing}
    limit = MAX_SLOWDOWN * min(medians.values())
    others = sorted((t for t in racing[1:] if medians[t] <= limit), key=lambda t: medians[t])
    return [racing[0], *others[: count - 1]]


def _call(executable: Executable, feeds: Mapping[str, Any]) -> Callable[[], object]:
    """Return a function without arguments that runs an executable on ``feeds``, arrays by name.

    The executable does not interpret.
    """
    arrays = [feeds[s.name] for s in executable.inputs]
    positional = executable.run_positional
    return lambda: positional(*arrays)


def _runs_per_sample(calls: Sequence[Callable[[], object]]) -> int:
    """Return the number of runs in a sample, 1 to 1000, so that it takes `MIN_SAMPLE_SECONDS`.

    Each call runs once to be timed; the first runs once before, since a first run is slow.
    """
    calls[0]()
    begin = perf_counter()
    for call in calls:
        call()
    seconds = (perf_counter() - begin) / len(calls)
    return max(1, min(1000, int(MIN_SAMPLE_SECONDS / max(seconds, 1e-9))))


def _first_line(error: PasskitError) -> str:
    """Return the type of an error and the first line of its text, 200 characters at most."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:200]
