"""Kill processes, start many at once and fill disks: results are right, or an error is passkit's.

    python benchmarks/fault_injection.py                  # 100 kills, 50 processes, 15 full disks
    python benchmarks/fault_injection.py --kills 5 --processes 4 --seed 7 --json FILE

A small program compiles two kernels and compares its results with the interpreter's:

- It is killed at a random moment, with or without its compilers. All runs share the cache folder,
  which is emptied before every tenth. The same program, run again, has to be right.

- Many processes start at once with one empty cache. All have to be right, with equal bits.

- TMPDIR, the cache folder, or both lie on a disk with too few bytes or files. The program is right
  or ends in a PasskitError; with more space it is right. The disk is a tmpfs in a mount namespace
  of its own, which `unshare` creates.

Prints a line for each fault and each kind of injection, and exits 1 if there was a fault. A run of
the usual size writes `results/fault-injection.json`, which ``show.py middle`` reads: the commit,
the date, the counts and the printed lines.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT)]

from random_campaigns import commit  # noqa: E402  (after the path)

RECORD = ROOT / "benchmarks" / "results" / "fault-injection.json"
KILLS, PROCESSES = 100, 50
PATIENCE = 900.0
"""Seconds after which a run counts as hanging."""
DISKS = ("size=4k", "size=100k", "size=1060k", "nr_inodes=3", "nr_inodes=9")
"""Mount options of small disks. Compilers start if TMPDIR takes 1 MiB; root and TMPDIR are inodes.
"""
LARGE_DISK = "size=8m,nr_inodes=200"
FOLDERS_ON_DISK = (("TMPDIR",), ("PASSKIT_CACHE_DIR",), ("TMPDIR", "PASSKIT_CACHE_DIR"))

PROGRAM = """
import hashlib, json, sys
import numpy as np
import passkit as pk
graph = pk.parse(
    "x: f32[n, 70]; e = exp(sub(x, reduce_max(x, axis=1, keepdims=true)));"
    "y = div(e, reduce_sum(e, axis=1, keepdims=true));"
    f"return y, erf(mul(transpose(x), {sys.argv[1]}))"
)
x = np.random.default_rng(0).normal(size=(9, 70)).astype(np.float32)
try:
    run = pk.compile(graph)
    results = run(x=x)
except pk.PasskitError as error:
    print(json.dumps({"error": type(error).__name__}))
else:
    pairs = zip(results, pk.interpret(graph, {"x": x}), strict=True)
    right = all(np.allclose(result, wanted, rtol=1e-5, atol=1e-6) for result, wanted in pairs)
    bits = hashlib.sha256(b"".join(result.tobytes() for result in results)).hexdigest()
    print(json.dumps({"right": right, "bits": bits, "kernels": len(run.kernels)}))
"""

ProgramReport = dict[str, Any]


class FaultBench:
    """A folder with a cache and a TMPDIR, in which programs run, and the number of their faults."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.faults = folder, 0
        self.lines: list[str] = []
        self.cache, self.scratch = folder / "cache", folder / "tmp"
        self.scratch.mkdir(mode=0o700)

    def begin(self, constant: float, **environ: str) -> subprocess.Popen[str]:
        """Start the program; each constant gives another kernel."""
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        env |= {"PASSKIT_CACHE_DIR": str(self.cache), "TMPDIR": str(self.scratch), **environ}
        return subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(constant)],
            env=env,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def end(
        self, process: subprocess.Popen[str], case: str, refusal: bool = False
    ) -> ProgramReport:
        """Wait for a program and return its report.

        A fault is counted unless the results are right and compiled, or ``refusal`` is true and
        the program ended in a PasskitError.
        """
        try:
            out, err = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            err += f"it gave no result within {PATIENCE:.0f} s"
        report: ProgramReport = (
            json.loads(out) if process.returncode == 0 else {"status": process.returncode}
        )
        compiled = report.get("right", False) and report["kernels"] > 0
        self.expect(compiled or (refusal and "error" in report), f"{case}: {report} {err[-2000:]}")
        return report

    def expect(self, holds: bool, case: str) -> None:
        """Count and print a fault unless ``holds``."""
        if not holds:
            self.faults += 1
            self.tell(f"fault: {case}")

    def tell(self, line: str) -> None:
        """Print a line, and keep it for the record."""
        self.lines.append(line)
        print(line, flush=True)

    def forget(self) -> None:
        """Empty the cache."""
        shutil.rmtree(self.cache, ignore_errors=True)

    def compilers(self) -> int:
        """Return the number of compilers' folders, of running and of killed processes."""
        return len(list(self.scratch.glob("passkit-*/run-*")))


def kill(bench: FaultBench, count: int, rng: random.Random) -> None:
    """Kill programs at random moments and run each of them again."""
    started = time.monotonic()
    bench.end(bench.begin(0.5), "the first run")
    length = time.monotonic() - started
    killed = compiling = 0
    for number in range(count):
        if number % 10 == 0:
            bench.forget()
        process = bench.begin(number + 1.5)
        try:
            process.wait(rng.uniform(0, length))
        except subprocess.TimeoutExpired:
            compiling += bench.compilers() > 0
            group = rng.random() < 0.5
            os.killpg(process.pid, signal.SIGKILL) if group else process.kill()
        process.communicate()
        killed += process.returncode == -signal.SIGKILL
        bench.end(bench.begin(number + 1.5), f"after kill {number}")
    bench.end(bench.begin(0.25), "the last run")
    bench.expect(not bench.compilers(), f"{bench.compilers()} folders of compilers are left")
    bench.tell(f"{count} runs, {killed} of them killed, {compiling} while compilers were at work")


def crowd(bench: FaultBench, count: int) -> None:
    """Run many programs at once with one empty cache, then one without a compiler."""
    bench.forget()
    processes = [bench.begin(0.5) for _ in range(count)]
    program_reports = [
        bench.end(process, f"process {k} of {count}") for k, process in enumerate(processes)
    ]
    program_reports.append(
        bench.end(bench.begin(0.5, PASSKIT_CXX="/nonexistent"), "from the cache alone")
    )
    bits = {report.get("bits") for report in program_reports}
    bench.expect(len(bits) == 1, f"{len(bits)} different results")
    bench.tell(f"{count} processes at once: {len(bits)} result")


def full_disks(bench: FaultBench) -> None:
    """Run the program on small disks, which this process mounts in its own namespace."""
    disk, outcomes = bench.folder / "disk", Counter[str]()
    cases = list(product(FOLDERS_ON_DISK, DISKS))
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "none", str(disk), "-o"]
    for folders, options in cases:
        bench.forget()
        subprocess.run([*mount, f"mode=700,{options}"], check=True)
        (disk / "TMPDIR").mkdir()
        environ = {name: str(disk / name) for name in folders}
        case = f"{' and '.join(folders)} on a disk of {options}"
        report = bench.end(bench.begin(0.5, **environ), case, refusal=True)
        outcomes["right" if "right" in report else report.get("error", "fault")] += 1
        subprocess.run([*mount, f"remount,{LARGE_DISK}"], check=True)
        bench.end(bench.begin(0.5, **environ), f"{case}, then with room")
        subprocess.run(["umount", str(disk)], check=True)
    bench.tell(f"{len(cases)} full disks: {dict(outcomes)}")


def disks_of_their_own(bench: FaultBench) -> None:
    """Run `full_disks` in a process that may mount, and add its lines and faults."""
    disks = bench.folder / "disks"
    disks.mkdir()
    command = ["unshare", "--map-root-user", "--mount"]
    command += [sys.executable, __file__, "--disks", str(disks)]
    process = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    for line in process.stdout.splitlines():
        bench.tell(line)
    bench.faults += process.returncode


def main(arguments: list[str] | None = None) -> int:
    """Inject all kinds of faults. Return 1 if there was a fault."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--kills", type=int, default=KILLS, help="runs that are killed")
    parser.add_argument("--processes", type=int, default=PROCESSES, help="processes at once")
    parser.add_argument("--seed", type=int, default=0, help="of the moments of kills (0)")
    parser.add_argument("--json", type=Path, help="the record; of the usual size, in results/")
    parser.add_argument("--disks", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    if args.disks:
        bench = FaultBench(args.disks)
        full_disks(bench)
        return min(bench.faults, 100)
    version, begun = commit(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="passkit-") as folder:
        bench = FaultBench(Path(folder))
        kill(bench, args.kills, random.Random(args.seed))
        crowd(bench, args.processes)
        disks_of_their_own(bench)
    bench.tell(f"{args.kills} kills, {args.processes} processes, full disks: {bench.faults} faults")
    usual = args.kills >= KILLS and args.processes >= PROCESSES
    if path := args.json or (RECORD if usual else None):
        counts = {"kills": args.kills, "processes": args.processes, "faults": bench.faults}
        stamp = {"commit": version, "date": str(date.today())}
        took = {"seconds": round(time.monotonic() - begun)}
        record = {**stamp, **counts, **took, "lines": bench.lines}
        path.write_text(json.dumps(record, indent=1) + "\n")
    return 1 if bench.faults else 0


if __name__ == "__main__":
    sys.exit(main())
