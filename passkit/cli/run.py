"""``passkit run``: a model on real or random data, before and after fusion."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from attrs import asdict

from passkit import viz
from passkit.ast.folds import Convolution
from passkit.cli.answer import Answer
from passkit.cli.model import (
    add_feed_argument,
    add_model_arguments,
    add_template_argument,
    load,
    model_feeds,
    plan_options,
    read_templates,
)
from passkit.errors import MissingDependencyError, SettingError
from passkit.passes.context import PassContext
from passkit.program.compiler import compile
from passkit.program.executable import Executable
from passkit.reporting import write_report
from passkit.reporting.trace import trace
from passkit.runtime.interpret import interpret
from passkit.runtime.native import onednn
from passkit.runtime.native.register_tiles import FEW_CHANNELS
from passkit.runtime.profile import ExecutionProfile
from passkit.runtime.program import FilterGradient, LibraryCall, LibraryOperation
from passkit.values.tolerance import Deviation, compare
from passkit.values.units import bytes_text, seconds_text, table
from passkit.viz.renderers import ending, rendered

Array = np.ndarray[Any, Any]
BUDGET = 0.3
"""Seconds that each of the two executables is timed for."""
DRAWING = 20.0
"""Seconds after which a plan that is too large to lay out is left as DOT source."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which model, on what, and what to tell about it."""
    add_model_arguments(parser)
    add_feed_argument(parser)
    add_template_argument(parser)
    parser.add_argument("--plan", type=Path, metavar="FILE",
                        help="draw the plan: .svg, .png, .pdf or .dot")  # fmt: skip
    parser.add_argument("--profile", action="store_true", help="the time of each kernel")
    parser.add_argument("--dump", type=Path, metavar="DIR", help="the graph after each pass")
    parser.add_argument("--compare", action="store_true",
                        help="check against the interpreter and stored results; exit 1 when "
                        "they differ")  # fmt: skip
    parser.add_argument("--report", type=Path, metavar="DIR",
                        help="write report.html, a page to click through, with plan.svg, "
                        "kernels.cpp and report.json")  # fmt: skip
    parser.add_argument("--trace", type=Path, metavar="FILE",
                        help="the runs of a profile as JSON for Perfetto")  # fmt: skip


def run(options: argparse.Namespace) -> Answer:
    """Compile with and without fusion, run, compare, time, draw."""
    picture = picture_path(options)
    graph = load(options)
    feeds, stored, source = model_feeds(options, graph)
    with PassContext(dump=options.dump, timing=True if options.trace else None):
        given = read_templates(options.template) or None
        fused = compile(graph, **plan_options(options), templates=given)
    unfused = compile(graph, target=options.target, fusion="none")
    results = dict(zip([o.name for o in fused.outputs], fused(feeds), strict=True))
    unfused(feeds)
    own_feeds = options.feed and {"stored"}
    errors = [] if own_feeds else compare(results, stored, "stored results")
    if options.compare:
        meaning = interpret(graph, feeds)
        errors += compare(results, dict(zip(results, meaning, strict=True)), "the interpreter")
    before, after = alternate(unfused, fused, feeds)
    data: dict[str, object] = {
        "model": str(options.model),
        "target": options.target,
        "fusion": options.fusion,
        "operators": sum(not n.is_variable and not _is_constant(n) for n in graph.nodes),
        "inputs": {k: f"{v.dtype}{list(v.shape)}" for k, v in feeds.items()},
        "outputs": {k: f"{v.dtype}{list(v.shape)}" for k, v in results.items()},
        "data": source,
        "accuracy": None if own_feeds else accuracy(results, stored.get("labels")),
        "unfused": side(unfused, before),
        "fused": side(fused, after),
        "errors": [asdict(e) for e in errors],
    }
    profile = take_profile(options, fused, feeds)
    data["plan"] = draw(fused, picture, profile) if picture is not None else None
    if profile is not None:
        data["profile"] = profile.as_dict()
    data["advice"] = advice(fused)
    if options.trace and profile is not None:
        data["trace"] = write_trace(options.trace, profile, fused)
    if options.report:
        data["report"] = str(write_report(options.report, fused, profile, data, DRAWING))
    failed = options.compare and not all(e.good for e in errors)
    text = describe(data)
    if options.profile:
        text += f"\n\n{profile}"
    return Answer(data, text, 1 if failed else 0)


def _is_constant(node: Any) -> bool:
    return node.op is not None and node.op.name == "constant"


def accuracy(results: Mapping[str, Array], labels: Array | None) -> float | None:
    """The share of rows whose largest score is at the label; None without labels."""
    scores = next(iter(results.values()))
    if labels is None or scores.ndim < 2 or scores.shape[:-1] != labels.shape:
        return None
    return float(np.mean(scores.argmax(-1) == labels))


def alternate(
    first: Executable, second: Executable, feeds: Mapping[str, Array]
) -> tuple[float, float]:
    """Median seconds of a call of each, measured in turns."""
    times: tuple[list[float], list[float]] = ([], [])
    while len(times[0]) < 5 or (sum(map(sum, times)) < 2 * BUDGET and len(times[0]) < 2000):
        for run, kept in zip((first, second), times, strict=True):
            begin = perf_counter()
            run(feeds)
            kept.append(perf_counter() - begin)
    return median(times[0]), median(times[1])


def side(run: Executable, seconds: float) -> dict[str, object]:
    """What one of the two executables costs a call."""
    stats = run.stats
    return {
        "kernels": stats["kernels"],
        "library_calls": stats["library_calls"],
        "steps": len(run.steps),
        "bytes": stats["bytes_read"] + stats["bytes_written"],
        "seconds": seconds,
    }


def picture_path(options: argparse.Namespace) -> Path | None:
    """Return where the plan will be drawn, or None where no picture is asked for.

    Raises: SettingError when the ending of ``--plan`` is no format.
    """
    if options.plan:
        ending(options.plan)
        return Path(options.plan)
    if options.report:
        return Path(options.report) / "plan.svg"
    return None


def draw(run: Executable, path: Path, profile: ExecutionProfile | None) -> str:
    """Draw the plan; where no renderer does in time, it is laid out simply, and the reason told.

    As PNG or PDF that cannot be done: then its DOT source is written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    drawing = viz.plan(run.graph, profile=profile, sizes=run.sizes)
    try:
        drawn, why = rendered(drawing, path, timeout=DRAWING)
    except (MissingDependencyError, SettingError) as error:
        drawn, why = viz.render(drawing, path.with_suffix(".dot")), str(error)
    return f"{drawn}; {why}" if why else str(drawn)


def take_profile(
    options: argparse.Namespace, fused: Executable, feeds: Mapping[str, Array]
) -> ExecutionProfile | None:
    """The profile that an option asks for. A report of what interprets does without."""
    asked = options.profile or options.trace is not None
    if asked or (options.report is not None and fused.program is not None):
        return fused.profile(feeds)
    return None


def write_trace(path: Path, profile: ExecutionProfile, fused: Executable) -> str:
    """The runs of a profile, and the passes before them, for Perfetto."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(trace(profile, fused.context.times)) + "\n", encoding="utf-8")
    return str(path)


def advice(fused: Executable) -> str | None:
    """Return what to install so that a program would run faster here, or None."""
    program = fused.program
    if program is None or fused.target.name != "cpu" or onednn.load_library() is not None:
        return None
    contracts = [s.operation for s in program.steps if isinstance(s, LibraryCall)]
    count = sum(gains_from_library(c) for c in contracts)
    if not count:
        return None
    return f"{onednn.INSTALL_HINT} makes {count} convolution(s) up to twice as fast"


def gains_from_library(contract: LibraryOperation) -> bool:
    """Whether oneDNN computes it quicker than passkit's own kernels."""
    if isinstance(contract, FilterGradient):
        return True
    if not isinstance(contract, Convolution) or contract.groups > 1:
        return False
    return contract.channels < FEW_CHANNELS or prod(contract.window) > 1


def describe(data: Mapping[str, Any]) -> str:
    """The answer as people read it."""
    before, after = data["unfused"], data["fused"]
    facts: list[Sequence[object]] = [
        ("model", f"{data['model']}, {data['operators']} operators"),
        ("inputs", f"{_pairs(data['inputs'])}; {data['data']} values"),
        ("outputs", _pairs(data["outputs"])),
    ]
    if data["accuracy"] is not None:
        facts.append(("accuracy", f"{data['accuracy']:.2%}"))
    facts += [("max error", Deviation(**e)) for e in data["errors"]]
    if data["plan"] is not None:
        facts.append(("plan", data["plan"]))
    rows = [
        ("kernels", before["kernels"], after["kernels"], _ratio(before, after, "kernels")),
        ("library calls", before["library_calls"], after["library_calls"], ""),
        ("bytes moved", bytes_text(before["bytes"]), bytes_text(after["bytes"]),
         _ratio(before, after, "bytes")),
        ("time a run", seconds_text(before["seconds"]), seconds_text(after["seconds"]),
         _ratio(before, after, "seconds")),
    ]  # fmt: skip
    facts += [(key, data[key]) for key in ("report", "trace", "advice") if data.get(key)]
    return f"{table(('', ''), facts)}\n\n{table(('', 'unfused', data['fusion'], ''), rows)}"


def _ratio(before: Mapping[str, float], after: Mapping[str, float], what: str) -> str:
    return f"{before[what] / after[what]:.2f}x less" if after[what] else ""


def _pairs(named: Mapping[str, str]) -> str:
    return ", ".join(f"{k}: {v}" for k, v in named.items())
