"""Load damaged files: each must run, or be refused by a PasskitError, within limits.

    python benchmarks/fuzz_models.py                        # 2,000 of each kind
    python benchmarks/fuzz_models.py --count 50 --kinds json,text
    python benchmarks/fuzz_models.py --kinds json --first 1234 --count 1     # one again

The kinds are GraphDefs, SavedModels, graphs as JSON and as text, and saved programs. A mutant is
loaded. A graph is then planned and interpreted with small arrays; a saved program is run without a
compiler. Each mutant has a process of its own.

A fault is: an error other than a PasskitError, a message longer than a page, more than five seconds
of CPU time or one GiB of memory, a crash, machine code other than the saved one, or a different
result of a program whose graph and state are intact. A valid graph may run for long, so
interpretation stops after a second.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # a process with threads must not fork

import passkit as pk  # noqa: E402  (after the path and the number of threads)
from passkit.errors import PasskitError  # noqa: E402
from passkit.frontends import tf_graphdef  # noqa: E402
from passkit.program import compiler as _compiler  # noqa: E402, F401  (forked processes share it)
from passkit.program import saved as _saved  # noqa: E402, F401
from passkit.runtime.native.cache import KernelCache  # noqa: E402
from passkit.runtime.native.launcher import cache_key, launcher  # noqa: E402
from tests.frontends.tf_graphdef.models import DIGITS  # noqa: E402
from tests.mutants import feeds_of, mutant, save_programs  # noqa: E402
from tests.random_graphs import random_case  # noqa: E402

SECONDS = 5.0
"""CPU seconds allowed to load and to plan one mutant."""
RUNNING = 1.0
"""CPU seconds after which interpretation stops."""
PATIENCE = 120.0
"""Wall-clock seconds after which a process counts as hanging."""
MEMORY = 1 << 30
"""Bytes allowed beyond what the process has before it begins."""
LONGEST = 4_000
"""Largest allowed length of an error message, in characters."""
KINDS = ("graphdef", "saved_model", "json", "text", "program")
PLAN = ("InferShape", "InferType", "Fusion", "CodeGen")


class MutantOutcome(NamedTuple):
    """The outcome of one mutant.

    Attributes:
        kind: the stage that it reached, with the name of its error if there was one.
        seconds: CPU time.
        fault: a description of the fault, or "".
    """

    kind: str
    seconds: float
    fault: str


class TimeLimitReached(BaseException):
    """Raised in the interpreter when its CPU time is used up."""


def attempt(load: Callable[[], Any]) -> MutantOutcome:
    """Load, plan and run one mutant in a process of its own.

    Args:
        load: Returns a graph or an executable.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(reading)
            _bound()
            os.write(writing, json.dumps(_outcome(load)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        ready, _, _ = select.select([pipe], [], [], PATIENCE)
        if not ready:
            os.kill(child, signal.SIGKILL)
        answer = pipe.read()
    _, status, usage = os.wait4(child, 0)
    seconds = usage.ru_utime + usage.ru_stime
    if not ready:
        return MutantOutcome("fault", seconds, f"it gave no result within {PATIENCE:.0f} s")
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        return MutantOutcome("fault", seconds, f"the process died of {name} after {seconds:.1f} s")
    if not answer:
        return MutantOutcome("fault", seconds, "the process ended without a result")
    return MutantOutcome(*json.loads(answer))


def _bound() -> None:
    """Limit this process: memory, CPU time, no core file, no output."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    seconds = round(2 * SECONDS + RUNNING)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for output in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), output)


def _outcome(load: Callable[[], Any]) -> MutantOutcome:
    """Load and run a mutant in this process, and return its outcome."""
    stage, fault = "load", ""
    start = time.process_time()
    plan_end = None
    try:
        loaded = load()
        stage = "plan"
        _plan(loaded)
        stage, plan_end = "run", time.process_time()
        kind = _run(loaded)
    except PasskitError as error:
        kind = f"{stage}: {type(error).__name__}"
        message = "\n".join((str(error), *getattr(error, "__notes__", ())))
        if len(message) > LONGEST:
            fault = f"a message of {len(message)} characters: {message[:200]}"
    except BaseException:
        kind, fault = "fault", f"{stage}: {traceback.format_exc()[-4000:]}"
    seconds = (plan_end or time.process_time()) - start
    if seconds > SECONDS:
        fault = fault or f"it took {seconds:.1f} s"
    return MutantOutcome("fault" if fault else kind, seconds, fault)


def _plan(loaded: Any) -> None:
    """Plan a graph; an executable is planned already."""
    if isinstance(loaded, pk.Graph):
        pk.ApplyPasses(loaded, PLAN)


def _run(loaded: Any) -> str:
    """Run a graph or an executable with small arrays, for at most `RUNNING` seconds."""
    is_graph = isinstance(loaded, pk.Graph)
    feeds = feeds_of(loaded if is_graph else loaded.source_graph)
    if feeds is None:
        return "planned"
    if not is_graph:
        loaded(**feeds)
        return "ran"

    def stop(*_: object) -> None:
        raise TimeLimitReached

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, RUNNING)
    try:
        pk.interpret(loaded, feeds)
    except TimeLimitReached:
        return "ran for a second"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return "ran"


class MutantCampaign:
    """Counts of the outcomes of mutants, and the list of faults."""

    def __init__(self) -> None:
        self.models: Counter[str] = Counter()
        self.outcomes: dict[str, Counter[str]] = {}
        self.slowest = (0.0, "", -1)
        self.faults: list[dict[str, Any]] = []

    def add(self, kind: str, seed: int, outcome: MutantOutcome) -> None:
        """Count one outcome."""
        self.models[kind] += 1
        self.outcomes.setdefault(kind, Counter())[outcome.kind] += 1
        self.slowest = max(self.slowest, (outcome.seconds, kind, seed))
        if outcome.fault:
            self.faults.append({"kind": kind, "seed": seed, "what": outcome.fault})

    def report(self) -> dict[str, Any]:
        """Return the counts and faults for JSON."""
        return {
            "models": dict(self.models),
            "outcomes": {kind: dict(count) for kind, count in self.outcomes.items()},
            "slowest_seconds": round(self.slowest[0], 3),
            "slowest": [self.slowest[1], self.slowest[2]],
            "faults": self.faults,
        }


def prepare(folder: Path) -> None:
    """Save the programs that are to be damaged, and copy the launcher into a cache of its own."""
    save_programs(folder / "programs")
    built = KernelCache(Path(launcher().__file__).parents[1])
    built.copy_to(KernelCache(folder / "cache"), [cache_key()])


def campaign(kinds: list[str], first: int, count: int, folder: Path) -> MutantCampaign:
    """Try ``count`` mutants of each kind, with seeds from ``first`` on."""
    if "program" in kinds:
        command = [sys.executable, __file__, "--prepare", str(folder)]
        subprocess.run(command, check=True)
    os.environ["PASSKIT_CACHE_DIR"] = str(folder / "cache")
    os.environ["PASSKIT_CXX"] = "/nonexistent"  # nothing may be compiled
    (folder / "cache").mkdir(mode=0o700, exist_ok=True)
    warnings.simplefilter("ignore")  # programs are interpreted for lack of a compiler
    _warm_up()
    result = MutantCampaign()
    for kind in kinds:
        # files shared by mutants are created before the first fork
        mutant(kind, first, folder / "programs")
        for seed in range(first, first + count):
            with tempfile.TemporaryDirectory() as scratch:

                def load(kind: str = kind, seed: int = seed, scratch: str = scratch) -> Any:
                    return mutant(kind, seed, folder / "programs").load(Path(scratch))

                result.add(kind, seed, attempt(load))
    return result


def _warm_up() -> None:
    """Load, plan and interpret once, so that forked processes share what that imports."""
    for graph in (tf_graphdef.load(DIGITS), random_case(0).graph):
        _plan(graph)
        _run(graph)
    gc.freeze()  # a collection in a child would copy all pages of this process


def main() -> int:
    """Try mutants. Return 1 if one of them had a fault."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--count", type=int, default=2000, help="mutants of each kind (2000)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--kinds", default=",".join(KINDS), help=f"some of {','.join(KINDS)}")
    parser.add_argument("--json", action="store_true", help="the report as JSON")
    parser.add_argument("--prepare", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.prepare:
        prepare(args.prepare)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        result = campaign(args.kinds.split(","), args.first, args.count, Path(folder))
    if args.json:
        print(json.dumps(result.report(), indent=2))
        return 1 if result.faults else 0
    for kind, outcomes in result.outcomes.items():
        print(f"{result.models[kind]} of {kind}: {dict(outcomes.most_common())}")
    seconds, kind, seed = result.slowest
    print(f"slowest: {seconds:.2f} s of the processor ({kind}, seed {seed})")
    for fault in result.faults:
        print(f"{fault['kind']}, seed {fault['seed']}: {fault['what']}")
    print(f"{len(result.faults)} faults")
    return 1 if result.faults else 0


if __name__ == "__main__":
    sys.exit(main())
