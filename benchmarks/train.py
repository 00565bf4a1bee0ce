"""Check training steps, and time them beside PyTorch, JAX and TensorFlow.

    python benchmarks/train.py check [NAME …] [--small] [--target cpu] [--fusion stitch]
    python benchmarks/train.py check [NAME …] --frontend [--small]
    python benchmarks/train.py endure [NAME …] [--steps 10000]
    python benchmarks/train.py time [NAME …] [--batch 1,8] [--only passkit,jax] [--rounds 5]
                                    [--tensorflow PYTHON]

``check`` compares three steps with an independent NumPy program and exits 1 if an error exceeds
1e-4. With ``--frontend`` it compares the losses of the program written with tinyflow with those of
the benchmark's own graph. ``endure`` measures memory, open files, caches and addresses after each
tenth of many steps, and exits 1 if they grow. ``time`` prints a row for each program, and the
geometric mean; the default programs are the micro-benchmarks, the transformer, and LeNet and a
ResNet at five batch sizes. ``--tensorflow`` names a Python that has it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]  # a checkout that is not installed

import peers  # noqa: E402  (after the path)
from training import (  # noqa: E402
    TrainingProgram,
    agreement,
    micro,
    networks,
    programs,
    tensorflow_process,
    tinyflow_training,
)
from training.endurance import endured, summary  # noqa: E402
from training.rivals import OWN, SETTINGS  # noqa: E402
from training.timing import ProgramTimes, measured, ready  # noqa: E402

TOLERANCE = 1e-4


def chosen(names: list[str]) -> list[TrainingProgram]:
    """Return the programs of these names; the micro-benchmarks by default.

    Raises:
        SystemExit: there is no program of a name.
    """
    by_name = {p.name: p for p in (*micro.PROGRAMS, *networks.PROGRAMS)}
    unknown = set(names) - set(by_name)
    if unknown:
        raise SystemExit(f"no program {', '.join(sorted(unknown))}; there are {', '.join(by_name)}")
    return [by_name[name] for name in names] or list(micro.PROGRAMS)


def check(options: argparse.Namespace) -> int:
    """Compare three steps of each program with the reference. Return 1 if one is wrong."""
    errors = tinyflow_training.errors if options.frontend else agreement.errors
    bad = 0
    for program in chosen(options.names):
        by_figure = errors(program, options.small, target=options.target, fusion=options.fusion)
        worst = max(by_figure, key=lambda name: by_figure[name])
        bad += by_figure[worst] > TOLERANCE
        print(
            f"{program.name:12} {len(by_figure)} figures, "
            f"the worst {by_figure[worst]:.1e}: {worst}",
            flush=True,
        )
    return int(bad > 0)


def endure(options: argparse.Namespace) -> int:
    """Run many steps of each program. Return 1 if memory, files or caches grow."""
    bad = 0
    for program in chosen(options.names):
        snapshots = endured(
            program, options.steps, options.small, target=options.target, fusion=options.fusion
        )
        text, is_flat = summary(snapshots)
        bad += not is_flat
        print(f"{program.name:12} {text}", flush=True)
    return int(bad > 0)


def measure(options: argparse.Namespace) -> int:
    """Time steps of each program in all competitors; print and write the report. Return 0."""
    threads = peers.confine(options.threads)
    chosen(options.names)  # rejects unknown names before anything runs
    names = options.only.split(",")
    rows = programs.rows(options.names, [int(n) for n in options.batch.split(",") if n])
    report: dict[str, ProgramTimes] = {}
    versions = peers.versions(["torch", "jax", "numpy", "onednn-cpu-gomp", "scipy-openblas32"])
    with contextlib.ExitStack() as stack:
        tensorflow = None
        if options.tensorflow:
            process = tensorflow_process.tensorflow_in(options.tensorflow, threads)
            tensorflow = stack.enter_context(process)
            versions["tensorflow"] = tensorflow.version
        print(
            f"{'best round, us a step':16}" + "".join(f"{n:>10}" for n in names) + "  best/passkit",
            flush=True,
        )
        for program in rows:
            entrants, failed = ready(program, names, tensorflow)
            result = ProgramTimes(measured(entrants, options.rounds, options.seconds), failed)
            report[programs.label(program)] = result
            if tensorflow is not None:
                tensorflow_process.leave(tensorflow)
            print(line(programs.label(program), result, names), flush=True)
            for name, reason in failed.items():
                print(f"    {name} is left out: {reason}", flush=True)
            if options.json:
                write_report(options.json, threads, versions, report)
    ratios = [r.speedup for r in report.values() if set(r.times) - set(OWN)]
    if ratios:
        print(
            f"geometric mean {math.exp(statistics.fmean(map(math.log, ratios))):.2f}, "
            f"least {min(ratios):.2f}"
        )
    return 0


def write_report(
    path: Path, threads: int, versions: Mapping[str, str], rows: Mapping[str, ProgramTimes]
) -> None:
    """Write the times of all programs measured so far as JSON."""
    report = {
        "threads": threads,
        "load": os.getloadavg(),
        "versions": versions,
        "settings": SETTINGS | tensorflow_process.SETTINGS,
        "rows": {n: r.as_json() for n, r in rows.items()},
    }
    path.write_text(json.dumps(report, indent=1) + "\n")


def line(name: str, result: ProgramTimes, names: Sequence[str]) -> str:
    """Return a row of the table with two lines: wall-clock and CPU microseconds of a step."""
    cells = [""] * 2
    for n in names:
        times = result.times.get(n)
        cells[0] += f"{times.best * 1e6:10.0f}" if times else f"{'-':>10}"
        cells[1] += f"{min(times.cpu) * 1e6:10.0f}" if times else f"{'-':>10}"
    over = result.over(["unfused"])
    unfused = "" if math.isnan(over) else f"  unfused {over:.2f}"
    return f"{name:16}{cells[0]}  {result.speedup:.2f}{unfused}\n{'    CPU':16}{cells[1]}"


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("what", choices=["check", "endure", "time"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--frontend", action="store_true", help="programs written with tinyflow")
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--fusion", default="stitch")
    parser.add_argument("--only", default="passkit,unfused,eager,compile,jax,scan,graph,xla")
    parser.add_argument("--batch", default="", help="other batch sizes than the program's own")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3, help="of one series")
    parser.add_argument("--tensorflow", default="", help="a Python with tensorflow")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    return {"check": check, "endure": endure, "time": measure}[options.what](options)


if __name__ == "__main__":
    sys.exit(main())
