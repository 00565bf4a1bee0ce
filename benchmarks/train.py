"""Training steps: are they right, and how fast are they beside PyTorch and JAX.

    python benchmarks/train.py check [NAME …] [--small] [--target cpu] [--fusion stitch]
    python benchmarks/train.py check [NAME …] --frontend [--small]
    python benchmarks/train.py endure [NAME …] [--steps 10000]
    python benchmarks/train.py time [NAME …] [--only passkit,jax] [--rounds 5]

``check`` compares three steps with an independent NumPy rebuild and exits 1 where one is off by
more than 1e-4; with ``--frontend`` it compares the losses of the same program written with tinyflow
with those of the benchmark's own graph. ``endure`` looks at memory, open files, caches and
addresses after each tenth of many steps, and exits 1 where they grow. ``time`` prints
a row for each program, and the geometric mean.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from pathlib import Path

from attrs import evolve

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]  # a checkout that is not installed

import peers  # noqa: E402  (after the path)
from training import Program, micro, networks  # noqa: E402

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
    from training.timing import measured, ready, speedup

    report: dict[str, dict[str, float]] = {}
    for program in chosen(options.names):
        if options.batch:
            program = evolve(program, sizes={**program.sizes, "batch": options.batch})
        rivals = ready(program, options.only.split(","))
        print(f"{program.name} is ready", file=sys.stderr, flush=True)
        times = report[program.name] = measured(program, rivals, options.rounds)
        cells = "  ".join(f"{name} {s * 1e6:8.0f} us" for name, s in times.items())
        print(f"{program.name:12} {cells}  best peer / passkit {speedup(times):.2f}", flush=True)
    ratios = [speedup(times) for times in report.values()]
    print(f"geometric mean {math.exp(statistics.fmean(map(math.log, ratios))):.2f}, "
          f"least {min(ratios):.2f}")
    if options.json:
        made = {"threads": threads, "versions": peers.versions(["torch", "jax", "numpy"]),
                "seconds": report}
        options.json.write_text(json.dumps(made, indent=1) + "\n")
    return 0


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
    parser.add_argument("--only", default="passkit,eager,compile,jax,scan")
    parser.add_argument("--batch", type=int, help="another batch size than the program's own")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    return {"check": check, "endure": endure, "time": measure}[options.what](options)


if __name__ == "__main__":
    sys.exit(main())
