"""``passkit run``: run a model on real or random data, with and without fusion."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from attrs import asdict
from numpy.typing import NDArray

from passkit import viz
from passkit.ast.folds import Convolution
from passkit.cli.command_result import CommandResult
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
from passkit.graph.node import Node
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
from passkit.values.json_values import write_json
from passkit.values.tolerance import Deviation, compare
from passkit.values.units import bytes_text, seconds_text, table
from passkit.viz.renderers import picture_format, render_with_note

TIMING_SECONDS = 0.3
"""Seconds for which each of the two executables is timed."""
LAYOUT_SECONDS = 20.0
"""Seconds after which a plan is drawn in the simple layout."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``passkit run``: the model, its inputs, checks and files to write."""
    add_model_arguments(parser)
    add_feed_argument(parser)
    add_template_argument(parser)
    parser.add_argument(
        "--plan",
        type=Path,
        metavar="FILE",
        help="draw the plan: .svg, .png, .pdf or .dot",
    )
    parser.add_argument("--profile", action="store_true", help="print the time of each kernel")
    parser.add_argument(
        "--dump", type=Path, metavar="DIR", help="write the graph after each pass into a folder"
    )
    parser.add_argument(
        "--compare",
        action="store_true",
        help="compare results with those of the interpreter and with stored results; exit 1 if "
        "they differ",
    )
    parser.add_argument(
        "--report",
        type=Path,
        metavar="DIR",
        help="write an interactive page, report.html, with plan.svg, kernels.cpp and report.json",
    )
    parser.add_argument(
        "--trace",
        type=Path,
        metavar="FILE",
        help="write the runs of a profile as JSON for Perfetto",
    )


def run(options: argparse.Namespace) -> CommandResult:
    """Compile with and without fusion, run, compare and time both, and write requested files.

    The exit code is 1 if results differ under ``--compare``, else 0.

    Raises: ModelError, ParseError, FeedError or SettingError for wrong input; other PasskitErrors
    where compilation or a run fails; OSError where a file cannot be read or written.
    """
    picture = picture_path(options)
    graph = load(options)
    feeds, stored, source = model_feeds(options, graph)
    with PassContext(dump=options.dump, timing=True if options.trace else None):
        fixed_templates = read_templates(options.template) or None
        fused = compile(graph, **plan_options(options), templates=fixed_templates)
    unfused = compile(graph, target=options.target, fusion="none")
    results = dict(zip([o.name for o in fused.outputs], fused(feeds), strict=True))
    unfused(feeds)
    has_own_feeds = bool(options.feed)
    errors = [] if has_own_feeds else compare(results, stored, "stored results")
    if options.compare:
        expected = interpret(graph, feeds)
        errors += compare(results, dict(zip(results, expected, strict=True)), "the interpreter")
    before, after = time_alternately(unfused, fused, feeds)
    data: dict[str, object] = {
        "model": str(options.model),
        "target": options.target,
        "fusion": options.fusion,
        "operators": sum(not n.is_variable and not _is_constant(n) for n in graph.nodes),
        "inputs": {k: f"{v.dtype}{list(v.shape)}" for k, v in feeds.items()},
        "outputs": {k: f"{v.dtype}{list(v.shape)}" for k, v in results.items()},
        "data": source,
        "accuracy": None if has_own_feeds else accuracy(results, stored.get("labels")),
        "unfused": costs(unfused, before),
        "fused": costs(fused, after),
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
        data["report"] = str(write_report(options.report, fused, profile, data, LAYOUT_SECONDS))
    failed = options.compare and not all(e.good for e in errors)
    text = describe(data)
    if options.profile:
        text += f"\n\n{profile}"
    return CommandResult(data, text, 1 if failed else 0)


def _is_constant(node: Node) -> bool:
    """Return whether a node is a constant."""
    return node.op is not None and node.op.name == "constant"


def accuracy(results: Mapping[str, NDArray[Any]], labels: NDArray[Any] | None) -> float | None:
    """Return the share of rows whose largest score is at the label.

    Args:
        results: The outputs of the model; the first has a row of scores for each label.
        labels: The positions of the correct scores, an integer for each row; None if unknown.

    Returns:
        A number from 0 to 1; None without labels or outputs, or if the first output has less than
        two axes or its other axes than the last are not those of the labels.
    """
    scores = next(iter(results.values()), None)
    if labels is None or scores is None:
        return None
    if scores.ndim < 2 or scores.shape[:-1] != labels.shape:
        return None
    return float(np.mean(scores.argmax(-1) == labels))


def time_alternately(
    first: Executable, second: Executable, feeds: Mapping[str, NDArray[Any]]
) -> tuple[float, float]:
    """Return the median seconds of a call of two executables, which are called alternately.

    ``first`` and ``second`` both take ``feeds``, arrays by input name. Each is called at least 5
    and at most 2000 times, for about TIMING_SECONDS.
    """
    times: tuple[list[float], list[float]] = ([], [])
    while len(times[0]) < 5 or (sum(map(sum, times)) < 2 * TIMING_SECONDS and len(times[0]) < 2000):
        for run, samples in zip((first, second), times, strict=True):
            begin = perf_counter()
            run(feeds)
            samples.append(perf_counter() - begin)
    return median(times[0]), median(times[1])


def costs(run: Executable, seconds: float) -> dict[str, object]:
    """Return figures of one call of the executable ``run`` for JSON output.

    They are the numbers of kernels, library calls, steps and bytes moved, and ``seconds``. The
    bytes are those for the sizes of the latest call, 0 if sizes are symbolic and there was none.
    """
    stats = run.stats
    return {
        "kernels": stats["kernels"],
        "library_calls": stats["library_calls"],
        "steps": len(run.steps),
        "bytes": stats["bytes_read"] + stats["bytes_written"],
        "seconds": seconds,
    }


def picture_path(options: argparse.Namespace) -> Path | None:
    """Return the path of the picture that ``--plan`` or ``--report`` requests, else None.

    Raises:
        SettingError: If the suffix of ``--plan`` is not a picture format.
    """
    if options.plan:
        picture_format(options.plan)
        return Path(options.plan)
    if options.report:
        return Path(options.report) / "plan.svg"
    return None


def draw(run: Executable, path: Path, profile: ExecutionProfile | None) -> str:
    """Draw the plan to a file; return its path as text, with the reason if it was drawn otherwise.

    If no renderer is there or it fails or takes too long, an SVG has the simple layout; instead of
    a PNG or PDF the DOT source is written beside it.

    Args:
        run: The executable.
        path: The file, whose folder is created.
        profile: Times to show in the picture; None for none.

    Raises: OSError where the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    drawing = viz.plan(run.graph, profile=profile, sizes=run.sizes)
    try:
        written, note = render_with_note(drawing, path, timeout=LAYOUT_SECONDS)
    except (MissingDependencyError, SettingError) as error:
        written, note = viz.render(drawing, path.with_suffix(".dot")), str(error)
    return f"{written}; {note}" if note else str(written)


def take_profile(
    options: argparse.Namespace, fused: Executable, feeds: Mapping[str, NDArray[Any]]
) -> ExecutionProfile | None:
    """Return a profile of the fused executable if an option needs one, else None.

    ``feeds`` are the arrays of its inputs, by name. A report needs one unless the model is
    interpreted.

    Raises: PassError where ``--profile`` or ``--trace`` needs one and the model is interpreted.
    """
    is_required = options.profile or options.trace is not None
    if is_required or (options.report is not None and fused.program is not None):
        return fused.profile(feeds)
    return None


def write_trace(path: Path, profile: ExecutionProfile, fused: Executable) -> str:
    """Write the runs of a profile, and the passes of the executable ``fused`` before them, as JSON.

    The folder of ``path`` is created. Return the path as text. Raises: OSError where it cannot be
    written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, trace(profile, fused.context.times), indent=None)
    return str(path)


def advice(fused: Executable) -> str | None:
    """Return a text about oneDNN if installing it makes a program faster on this CPU, else None."""
    program = fused.program
    if program is None or fused.target.name != "cpu" or onednn.load_library() is not None:
        return None
    operations = [s.operation for s in program.steps if isinstance(s, LibraryCall)]
    count = sum(gains_from_library(o) for o in operations)
    if not count:
        return None
    return f"{onednn.INSTALL_HINT} makes {count} convolution(s) up to twice as fast"


def gains_from_library(operation: LibraryOperation) -> bool:
    """Return whether oneDNN computes a library operation faster than passkit's own kernels."""
    if isinstance(operation, FilterGradient):
        return True
    if not isinstance(operation, Convolution) or operation.groups > 1:
        return False
    return operation.channels < FEW_CHANNELS or prod(operation.window) > 1


def describe(data: Mapping[str, Any]) -> str:
    """Return the result of the command as text: a table of facts, and one of costs.

    ``data`` is the result for JSON output.
    """
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
        (
            "bytes moved",
            bytes_text(before["bytes"]),
            bytes_text(after["bytes"]),
            _ratio(before, after, "bytes"),
        ),
        (
            "time per run",
            seconds_text(before["seconds"]),
            seconds_text(after["seconds"]),
            _ratio(before, after, "seconds"),
        ),
    ]
    facts += [(key, data[key]) for key in ("report", "trace", "advice") if data.get(key)]
    return f"{table(('', ''), facts)}\n\n{table(('', 'unfused', data['fusion'], ''), rows)}"


def _ratio(before: Mapping[str, float], after: Mapping[str, float], key: str) -> str:
    """Return the factor by which cost ``key`` is smaller with fusion, such as "2.00x less".

    ``before`` and ``after`` are the costs without and with fusion; if it is larger, the factor is
    below 1. Return "" if the cost with fusion is 0.
    """
    return f"{before[key] / after[key]:.2f}x less" if after[key] else ""


def _pairs(values: Mapping[str, str]) -> str:
    """Return names with values, such as "x: float32[32]"."""
    return ", ".join(f"{k}: {v}" for k, v in values.items())
