"""Mutated models by the thousand: each is loaded, or refused by a PasskitError, in time and memory.

    python benchmarks/fuzz_models.py --count 5000

Each model is loaded in a worker process of bounded memory. A worker that dies, that takes longer
than two seconds of the processor for one model, or in which another error appears, is a failure.
"""

from __future__ import annotations

import argparse
import json
import resource
import select
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
SECONDS = 2.0
"""Of the processor, for one model."""
PATIENCE = 60.0
"""Of the clock: a worker that says nothing for so long hangs."""
MEMORY = 512 << 20
"""Beyond what a worker has before it begins: several times the budget of any model here."""


def work(first: int, count: int) -> int:
    """Load the models of some seeds; a line of JSON before each, and one after it."""
    from passkit.errors import PasskitError
    from tests.frontends.tf_graphdef.mutations import mutant

    mutant(0)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for seed in range(first, first + count):
        model = mutant(seed)
        print(json.dumps({"seed": seed, "model": model.name}), flush=True)
        begun = time.process_time()
        fault = ""
        with tempfile.TemporaryDirectory() as folder:
            try:
                model.load(Path(folder))
                kind = "loaded"
            except PasskitError as error:
                kind = type(error).__name__
                long = len(str(error))
                fault = "" if long < 10_000 else f"a message of {long} letters"
            except BaseException:
                kind, fault = "fault", traceback.format_exc()
        seconds = time.process_time() - begun
        if seconds > SECONDS:
            fault = fault or f"it took {seconds:.1f} s"
        print(json.dumps({"kind": kind, "seconds": seconds, "fault": fault}), flush=True)
    return 0


class Campaign:
    """Workers one after the other, and what they reported."""

    def __init__(self, first: int, count: int) -> None:
        self.next, self.last = first, first + count
        self.kinds: Counter[str] = Counter()
        self.models: Counter[str] = Counter()
        self.slowest = (0.0, -1)
        self.faults: list[tuple[int, str]] = []

    def run(self) -> None:
        """Give the seeds to workers; the seed that costs one its life is a failure."""
        while self.next < self.last:
            command = [sys.executable, __file__, "--worker", "--first", str(self.next)]
            command += ["--count", str(min(500, self.last - self.next))]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
                self._listen(worker)

    def _listen(self, worker: subprocess.Popen[str]) -> None:
        open_ = None
        assert worker.stdout is not None
        while True:
            ready, _, _ = select.select([worker.stdout], [], [], PATIENCE)
            line = worker.stdout.readline() if ready else ""
            if not line:
                worker.kill()
                worker.wait()
                if open_ is not None:
                    said = "it hangs" if not ready else f"the worker died: {worker.returncode}"
                    self.faults.append((open_, said))
                    self.next = open_ + 1
                return
            told: dict[str, Any] = json.loads(line)
            if "seed" in told:
                open_ = told["seed"]
                self.models[told["model"]] += 1
                continue
            assert open_ is not None
            self.kinds[told["kind"]] += 1
            self.slowest = max(self.slowest, (told["seconds"], open_))
            if told["fault"]:
                self.faults.append((open_, told["fault"]))
            self.next, open_ = open_ + 1, None

    def report(self) -> dict[str, Any]:
        """What was found, as numbers."""
        return {
            "models": dict(self.models),
            "outcomes": dict(self.kinds),
            "slowest_seconds": round(self.slowest[0], 3),
            "slowest_seed": self.slowest[1],
            "faults": [{"seed": seed, "what": what} for seed, what in self.faults],
        }


def main() -> int:
    """Try so many models; 1 where one of them gave a fault."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--count", type=int, default=5000, help="models (5000)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--json", action="store_true", help="the report as JSON")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return work(args.first, args.count)
    campaign = Campaign(args.first, args.count)
    campaign.run()
    report = campaign.report()
    if args.json:
        print(json.dumps(report, indent=2))
    else:
        print(f"{sum(campaign.models.values())} models: {dict(campaign.models)}")
        print(f"outcomes: {dict(campaign.kinds)}; slowest {report['slowest_seconds']} s "
              f"(seed {report['slowest_seed']})")  # fmt: skip
        for seed, what in campaign.faults:
            print(f"seed {seed}: {what}")
        print(f"{len(campaign.faults)} faults")
    return 1 if campaign.faults else 0


if __name__ == "__main__":
    sys.exit(main())
