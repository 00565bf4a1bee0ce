"""Run random groups under all their templates in C++ and block by block, and compare with NumPy.

    python benchmarks/fuzz_templates.py --count 5000 --jobs 2 [--texts]

A subject is a random graph, most of which have several groups; a quarter are one stitched kernel.
Each worker process takes some dozen, so that a crash costs one of them and names its seed. With
--texts their CUDA C is compiled instead, by nvcc or NVRTC, and their OpenCL C by a C compiler.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from campaign import reports  # noqa: E402  (after the path)

from tests.dialects import test_cuda, test_opencl  # noqa: E402
from tests.template_cases import check, subject, texts  # noqa: E402

PROCESS = 25


def work(first: int, count: int) -> int:
    """Check the subjects of some seeds; print a line of JSON for each."""
    for seed in range(first, first + count):
        print(json.dumps({"start": seed}), flush=True)
        groups, templates, wrong = check(subject(seed))
        report = {"groups": groups, "templates": templates, "wrong": wrong}
        report["last"] = seed == first + count - 1
        print(json.dumps(report), flush=True)
    return 0


def compile_texts(first: int, count: int) -> int:
    """Compile the CUDA C and OpenCL C of the subjects of some seeds, all at once."""
    print(json.dumps({"start": first}), flush=True)
    groups, compiled, wrong = 0, 0, []
    for target, compile_all in (("cuda", test_cuda.errors_of), ("opencl", test_opencl.messages_of)):
        sources: dict[str, str] = {}
        for seed in range(first, first + count):
            num_groups, new_sources = texts(subject(seed), target)
            groups += num_groups if target == "cuda" else 0
            sources |= new_sources
        compiled += len(sources)
        with tempfile.TemporaryDirectory() as folder:
            errors = compile_all([*sources.values()], Path(folder)) or ""
        if "error" in errors:
            wrong.append(f"seeds {first} to {first + count - 1}, {target}\n{errors}")
    print(json.dumps({"groups": groups, "templates": compiled, "wrong": wrong, "last": True}))
    return 0


def main() -> int:
    """Run worker processes until there are ``--count`` groups. Return 1 if anything failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--count", type=int, default=5000, help="groups (5000)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time (1)")
    parser.add_argument("--texts", action="store_true", help="compile CUDA C and OpenCL C")
    parser.add_argument("--worker", type=int, default=0, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return (compile_texts if args.texts else work)(args.first, args.worker)
    return TemplateCampaign(args.count, args.first, args.jobs, args.texts).run()


class TemplateCampaign:
    """Worker processes over ranges of seeds, and the sum of their reports."""

    def __init__(self, count: int, first: int, jobs: int, texts: bool) -> None:
        self.count, self.next, self.jobs, self.texts = count, first, jobs, texts
        self.groups = self.templates = self.failed = 0
        self.start = time.monotonic()

    def run(self) -> int:
        """Check until there are enough groups. Return 1 if anything failed."""
        for report in reports(self.commands(), self.jobs):
            if "crashed" in report:
                self.failed += 1
                code, seed = report["crashed"], report["start"]
                print(f"seed {seed}: the process ended with {code}", flush=True)
                continue
            self.groups += report["groups"]
            self.templates += report["templates"]
            self.failed += len(report["wrong"])
            for text in report["wrong"]:
                print(f"\n{text}\n", flush=True)
            if report["last"]:
                spent = time.monotonic() - self.start
                print(f"{self.groups} groups, {self.failed} failed, {spent:.0f} s", flush=True)
        print(f"{self.groups} groups, {self.templates} templates, {self.failed} failed")
        return 1 if self.failed else 0

    def commands(self) -> Iterator[list[str]]:
        """Yield the command line of the next worker while there are too few groups."""
        while self.groups < self.count:
            command = [sys.executable, "-X", "faulthandler", __file__]
            command += ["--first", str(self.next), "--worker", str(PROCESS)]
            yield command + ["--texts"] * self.texts
            self.next += PROCESS


if __name__ == "__main__":
    sys.exit(main())
