"""Training steps: are they right, and how fast are they beside PyTorch, JAX and TensorFlow.

    python benchmarks/train.py check [NAME …] [--small] [--target cpu] [--fusion stitch]
    python benchmarks/train.py check [NAME …] --frontend [--small]
    python benchmarks/train.py endure [NAME …] [--steps 10000]
    python benchmarks/train.py time [NAME …] [--batch 1,8] [--only passkit,jax] [--rounds 5]
                                    [--tensorflow PYTHON]

``check`` compares three steps with an independent NumPy rebuild and exits 1 where one is off by
more than 1e-4; with ``--frontend`` it compares the losses of the same program written with tinyflow
with those of the benchmark's own graph. ``endure`` looks at memory, open files, caches and
addresses after each tenth of many steps, and exits 1 where they grow. ``time`` prints a row for
each program, and the geometric mean; without names those of the micro-benchmarks, the transformer,
and of LeNet and a ResNet at five batch sizes. ``--tensorflow`` names a Python that has it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]  # a checkout that is not installed

import peers  # noqa: E402  (after the path)
from training import Program, micro, networks  # noqa: E402

if TYPE_CHECKING:
    from training.timing import Result

TOLERANCE = 1e-4


def chosen(names: list[str]) -> list[Program]:
    """The programs of these names, or the micro-benchmarks."""
    known = {p.name: p for p in (*micro.PROGRAMS, *networks.PROGRAMS)}
    unknown = set(names) - set(known)
    if unknown:
        raise SystemExit(f"no program {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    return [known[name] for name in names] or list(micro.PROGRAMS)


def check(options: argparse.Namespace) -> int:
    """Three steps of each beside the reference."""
    from training.agreement import errors

    if options.frontend:
        from training.in_tinyflow import errors

    bad = 0
    for program in chosen(options.names):
        found = errors(program, options.small, target=options.target, fusion=options.fusion)
        worst = max(found, key=lambda name: found[name])
        bad += found[worst] > TOLERANCE
        print(f"{program.name:12} {len(found)} figures, the worst {found[worst]:.1e}: {worst}",
              flush=True)
    return int(bad > 0)


def endure(options: argparse.Namespace) -> int:
    """What many steps of each leave behind."""
    from training.endurance import endured, summary

    bad = 0
    for program in chosen(options.names):
        found = endured(program, options.steps, options.small,
                        target=options.target, fusion=options.fusion)
        text, flat = summary(found)
        bad += not flat
        print(f"{program.name:12} {text}", flush=True)
    return int(bad > 0)


def measure(options: argparse.Namespace) -> int:
    """Steps of each beside the rivals."""
    threads = peers.confine(options.threads)
    from training import elsewhere, programs
    from training.rivals import OWN, SETTINGS
    from training.timing import Result, measured, ready

    chosen(options.names)  # a name that is none is named before anything runs
    names = options.only.split(",")
    rows = programs.rows(options.names, [int(n) for n in options.batch.split(",") if n])
    report: dict[str, Result] = {}
    versions = peers.versions(["torch", "jax", "numpy", "onednn-cpu-gomp", "scipy-openblas32"])
    with contextlib.ExitStack() as stack:
        there = None
        if options.tensorflow:
            process = elsewhere.Elsewhere(options.tensorflow, threads)
            there = stack.enter_context(process)
            versions["tensorflow"] = there.version
        print(f"{'best round, us a step':16}" + "".join(f"{n:>10}" for n in names)
              + "  best/passkit", flush=True)
        for program in rows:
            entrants, failed = ready(program, names, there)
            result = Result(measured(entrants, options.rounds, options.seconds), failed)
            report[programs.label(program)] = result
            if there is not None:
                there.leave()
            print(line(programs.label(program), result, names), flush=True)
            for name, why in failed.items():
                print(f"    {name} is left out: {why}", flush=True)
            if options.json:
                made = {"threads": threads, "load": os.getloadavg(), "versions": versions,
                        "settings": SETTINGS | elsewhere.SETTINGS,
                        "rows": {n: r.as_json() for n, r in report.items()}}
                options.json.write_text(json.dumps(made, indent=1) + "\n")
    ratios = [r.speedup for r in report.values() if set(r.times) - set(OWN)]
    if ratios:
        print(f"geometric mean {math.exp(statistics.fmean(map(math.log, ratios))):.2f}, "
              f"least {min(ratios):.2f}")
    return 0


def line(name: str, result: Result, names: Sequence[str]) -> str:
    """A row of the table, and one of CPU seconds."""
    cells = [""] * 2
    for n in names:
        times = result.times.get(n)
        cells[0] += f"{times.best * 1e6:10.0f}" if times else f"{'-':>10}"
        cells[1] += f"{min(times.cpu) * 1e6:10.0f}" if times else f"{'-':>10}"
    over = result.over(["unfused"])
    more = "" if math.isnan(over) else f"  unfused {over:.2f}"
    return f"{name:16}{cells[0]}  {result.speedup:.2f}{more}\n{'    CPU':16}{cells[1]}"


def main() -> int:
    """The command line."""
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
    parser.add_argument("--seconds", type=float, default=0.3, help="of a rival's turn in a round")
    parser.add_argument("--tensorflow", default="", help="a Python with tensorflow")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    return {"check": check, "endure": endure, "time": measure}[options.what](options)


if __name__ == "__main__":
    sys.exit(main())
