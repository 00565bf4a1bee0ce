"""Random groups under all their templates: C++ = blocks = interpreted; prints every fault.

    python benchmarks/fuzz_templates.py --count 5000 --jobs 2

A subject is a random graph, most of which have several groups; a quarter are one stitched kernel.
Each process takes some dozen, so that a crash costs one of them and names its seed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
PROCESS = 25


def work(first: int, count: int) -> int:
    """Check the subjects of some seeds; a line of JSON for each."""
    from tests.template_cases import check, subject

    for seed in range(first, first + count):
        print(json.dumps({"seed": seed}), flush=True)
        groups, templates, wrong = check(subject(seed))
        report = {"groups": groups, "templates": templates, "wrong": wrong}
        print(json.dumps(report), flush=True)
    return 0


def main() -> int:
    """Run processes, several at a time, until there were as many groups as asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--count", type=int, default=5000, help="groups (5000)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time (1)")
    parser.add_argument("--worker", type=int, default=0, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return work(args.first, args.worker)
    return Campaign(args.count, args.first, args.jobs).run()


class Campaign:
    """Processes, and what they reported."""

    def __init__(self, count: int, first: int, jobs: int) -> None:
        self.count, self.next, self.jobs = count, first, jobs
        self.groups = self.templates = self.failed = 0
        self.start = time.monotonic()

    def run(self) -> int:
        """Check until there are enough groups; 1 when anything failed."""
        running: list[subprocess.Popen[str]] = []
        while running or self.groups < self.count:
            while self.groups < self.count and len(running) < self.jobs:
                running.append(self.begin())
            self.finish(running.pop(0))
        print(f"{self.groups} groups, {self.templates} templates, {self.failed} failed")
        return 1 if self.failed else 0

    def begin(self) -> subprocess.Popen[str]:
        """A process for the next seeds."""
        command = [sys.executable, "-X", "faulthandler", __file__]
        command += ["--first", str(self.next), "--worker", str(PROCESS)]
        self.next += PROCESS
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def finish(self, process: subprocess.Popen[str]) -> None:
        """Read what a process reports, to its end."""
        assert process.stdout is not None
        seed = None
        for line in process.stdout:
            if not line.startswith("{"):  # LAPACK tells what it was asked for in vain
                continue
            report = json.loads(line)
            if "seed" in report:
                seed = report["seed"]
                continue
            self.groups += report["groups"]
            self.templates += report["templates"]
            self.failed += len(report["wrong"])
            for text in report["wrong"]:
                print(f"\n{text}\n", flush=True)
        if process.wait() != 0:
            self.failed += 1
            print(f"seed {seed}: the process ended with {process.returncode}", flush=True)
        spent = time.monotonic() - self.start
        print(f"{self.groups} groups, {self.failed} failed, {spent:.0f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
