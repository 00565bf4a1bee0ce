"""Run random programs on arrays by `passkit.xp` and by NumPy, and compare every result.

    python benchmarks/fuzz_streams.py [--count 10000] [--first 0] [--length 64] [--compiled 0]

Each program creates, combines, updates, drops and reads arrays, also in another thread. Half of
them run with ``materialize="demand"``, half with "live"; queues are full after 7, 64 or 768
operations. Their operations run one by one in NumPy. ``--compiled`` is the number of further
programs that run as fused kernels, which takes a second for each kernel. Exits 1 if one differs.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from passkit import xp  # noqa: E402  (after the path)
from tests.streams.random_programs import RandomProgram  # noqa: E402

SIZES = (7, 64, 768)
"""The most operations of a queue."""


def failure(seed: int, length: int, is_compiled: bool) -> str | None:
    """Run the program of a seed; return the text of what it raised, None if it is right."""
    explorations = None if is_compiled else 0
    mode = "live" if seed % 2 else "demand"
    with xp.config(
        materialize=mode,
        max_explorations=explorations,
        max_ops=SIZES[seed // 2 % 3],
        small=0 if seed % 5 else 256,
        compile_at=0,
    ):
        try:
            RandomProgram(seed, length).run()
        except Exception:
            return traceback.format_exc(limit=-3)
    return None


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--count", type=int, default=10000, help="programs (10000)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--length", type=int, default=64, help="steps of a program (64)")
    parser.add_argument("--compiled", type=int, default=0, help="programs as kernels (0)")
    options = parser.parse_args(arguments)
    start, wrong = time.monotonic(), 0
    for k in range(options.count + options.compiled):
        is_compiled = k >= options.count
        seed = options.first + k
        text = failure(seed, options.length // (1 + 2 * is_compiled), is_compiled)
        if text is not None:
            wrong += 1
            print(f"seed {seed}{' compiled' if is_compiled else ''}: {text}", flush=True)
    stats = xp.stats()
    print(
        f"{options.count} programs one by one, {options.compiled} as kernels: {wrong} wrong; "
        f"{stats['recorded']:,} operations, {stats['unfused_runs']:,} runs in NumPy, "
        f"{stats['executed_plans']:,} of plans, {stats['aliases']:,} results in place, "
        f"{time.monotonic() - start:.0f} s"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
