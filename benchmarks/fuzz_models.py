"""Mutated files by the thousand: each is read and run, or refused by a PasskitError, in bounds.

    python benchmarks/fuzz_models.py                        # 2,000 of each kind
    python benchmarks/fuzz_models.py --count 50 --kinds json,text
    python benchmarks/fuzz_models.py --kinds json --first 1234 --count 1     # one again

The kinds are GraphDefs, SavedModels, graphs as JSON and as text, and saved programs. A mutant is
loaded, a graph is then planned and interpreted with small arrays, and a saved program is run
without a compiler. Each mutant has a process of its own.

A fault is: an error other than a PasskitError, a message longer than a page, more than five seconds
of the processor or one GiB of memory, a crash, machine code other than the saved one, or another
result of a program whose graph and state are whole. A graph may say that it runs for long, so
interpreting is broken off after a second.
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
SECONDS = 5.0
"""Of the processor, to load one mutant and to plan it."""
RUNNING = 1.0
"""Seconds of the processor after which interpreting is broken off."""
PATIENCE = 120.0
"""Of the clock: a process that takes so long hangs."""
MEMORY = 1 << 30
"""Bytes beyond what the process has before it begins."""
LONGEST = 4_000
"""Characters of a message."""
KINDS = ("graphdef", "saved_model", "json", "text", "program")
PLAN = ("InferShape", "InferType", "Fusion", "CodeGen")


class Outcome(NamedTuple):
    """The outcome of one mutant: how far it got or the name of its error, and its fault."""

    kind: str
    seconds: float
    fault: str


class Enough(BaseException):
    """Interpreting has taken long enough."""


def attempt(load: Callable[[], Any]) -> Outcome:
    """Load, plan and run one mutant in a process of its own.

    Args:
        load: Gives a graph or an executable.
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
        said = pipe.read()
    _, status, usage = os.wait4(child, 0)
    seconds = usage.ru_utime + usage.ru_stime
    if not ready:
        return Outcome("fault", seconds, f"it hangs for {PATIENCE:.0f} s")
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        return Outcome("fault", seconds, f"the process died of {name} after {seconds:.1f} s")
    if not said:
        return Outcome("fault", seconds, "the process died without a word")
    return Outcome(*json.loads(said))


def _bound() -> None:
    """Bound what this process may take: memory, time of the processor, files of its own."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    seconds = round(2 * SECONDS + RUNNING)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for output in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), output)


def _outcome(load: Callable[[], Any]) -> Outcome:
    """Load and run a mutant in this process, and return its outcome."""
    from passkit.errors import PasskitError

    stage, fault = "load", ""
    begun = time.process_time()
    ended = None
    try:
        loaded = load()
        stage = "plan"
        _plan(loaded)
        stage, ended = "run", time.process_time()
        kind = _run(loaded)
    except PasskitError as error:
        kind = f"{stage}: {type(error).__name__}"
        said = "\n".join((str(error), *getattr(error, "__notes__", ())))
        if len(said) > LONGEST:
            fault = f"a message of {len(said)} characters: {said[:200]}"
    except BaseException:
        kind, fault = "fault", f"{stage}: {traceback.format_exc()[-4000:]}"
    seconds = (ended or time.process_time()) - begun
    if seconds > SECONDS:
        fault = fault or f"it took {seconds:.1f} s"
    return Outcome("fault" if fault else kind, seconds, fault)


def _plan(loaded: Any) -> None:
    """Plan a graph; an executable is planned."""
    import passkit as pk

    if isinstance(loaded, pk.Graph):
        pk.ApplyPasses(loaded, PLAN)


def _run(loaded: Any) -> str:
    """Run a graph or an executable with small arrays, for a second at most."""
    import passkit as pk
    from tests.mutants import feeds_of

    is_graph = isinstance(loaded, pk.Graph)
    feeds = feeds_of(loaded if is_graph else loaded.source_graph)
    if feeds is None:
        return "planned"
    if not is_graph:
        loaded(**feeds)
        return "ran"

    def stop(*_: object) -> None:
        raise Enough

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, RUNNING)
    try:
        pk.interpret(loaded, feeds)
    except Enough:
        return "ran for a second"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return "ran"


class Campaign:
    """Mutants one after the other, and what came of them."""

    def __init__(self) -> None:
        self.models: Counter[str] = Counter()
        self.outcomes: dict[str, Counter[str]] = {}
        self.slowest = (0.0, "", -1)
        self.faults: list[dict[str, Any]] = []

    def add(self, kind: str, seed: int, outcome: Outcome) -> None:
        """Count one outcome."""
        self.models[kind] += 1
        self.outcomes.setdefault(kind, Counter())[outcome.kind] += 1
        self.slowest = max(self.slowest, (outcome.seconds, kind, seed))
        if outcome.fault:
            self.faults.append({"kind": kind, "seed": seed, "what": outcome.fault})

    def report(self) -> dict[str, Any]:
        """What was found, as numbers."""
        return {
            "models": dict(self.models),
            "outcomes": {kind: dict(count) for kind, count in self.outcomes.items()},
            "slowest_seconds": round(self.slowest[0], 3),
            "slowest": [self.slowest[1], self.slowest[2]],
            "faults": self.faults,
        }


def prepare(folder: Path) -> None:
    """Save the programs that are changed, and keep the launcher alone in another cache."""
    from passkit.runtime.native.cache import KernelCache
    from passkit.runtime.native.launcher import cache_key, launcher
    from tests.mutants import save_programs

    save_programs(folder / "programs")
    built = KernelCache(Path(launcher().__file__).parents[1])
    built.copy_to(KernelCache(folder / "cache"), [cache_key()])


def campaign(kinds: list[str], first: int, count: int, folder: Path) -> Campaign:
    """Try so many mutants of each kind."""
    if "program" in kinds:
        command = [sys.executable, __file__, "--prepare", str(folder)]
        subprocess.run(command, check=True)
    os.environ["PASSKIT_CACHE_DIR"] = str(folder / "cache")
    os.environ["PASSKIT_CXX"] = "/nonexistent"  # what a mutant needs is not compiled
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # a process with threads must not fork
    (folder / "cache").mkdir(mode=0o700, exist_ok=True)
    from tests.mutants import mutant

    warnings.simplefilter("ignore")  # that a program is interpreted, for want of a compiler
    _warm_up()
    found = Campaign()
    for kind in kinds:
        mutant(kind, first, folder / "programs")  # what they share is made before the first fork
        for seed in range(first, first + count):
            with tempfile.TemporaryDirectory() as own:

                def load(kind: str = kind, seed: int = seed, own: str = own) -> Any:
                    return mutant(kind, seed, folder / "programs").load(Path(own))

                found.add(kind, seed, attempt(load))
    return found


def _warm_up() -> None:
    """Import what loading, planning and interpreting import, once for all processes."""
    from passkit.frontends import tf_graphdef
    from passkit.program import compiler, saved
    from tests.frontends.tf_graphdef.models import DIGITS
    from tests.random_graphs import random_case

    assert compiler and saved
    for graph in (tf_graphdef.load(DIGITS), random_case(0).graph):
        _plan(graph)
        _run(graph)
    gc.freeze()  # a collection in a child would copy the pages of all that is here


def main() -> int:
    """Try so many mutants; 1 where one of them gave a fault."""
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
        found = campaign(args.kinds.split(","), args.first, args.count, Path(folder))
    if args.json:
        print(json.dumps(found.report(), indent=2))
        return 1 if found.faults else 0
    for kind, outcomes in found.outcomes.items():
        print(f"{found.models[kind]} of {kind}: {dict(outcomes.most_common())}")
    seconds, kind, seed = found.slowest
    print(f"slowest: {seconds:.2f} s of the processor ({kind}, seed {seed})")
    for fault in found.faults:
        print(f"{fault['kind']}, seed {fault['seed']}: {fault['what']}")
    print(f"{len(found.faults)} faults")
    return 1 if found.faults else 0


if __name__ == "__main__":
    sys.exit(main())
