"""Killed processes, many processes at once and full disks: right results or passkit's own errors.

    python benchmarks/hardships.py                  # 100 kills, 50 processes, 15 full disks
    python benchmarks/hardships.py --kills 5 --processes 4 --seed 7

A small program compiles two kernels and compares its results with the interpreter's:

- It is killed at a random moment, alone or with its compilers. The cache folder is shared by all
  runs, and emptied before every tenth. The same program, run again, has to be right.
- Many processes begin at once with one empty cache. All have to be right, to the same bits.
- TMPDIR, the cache folder, or both lie on a disk with too few bytes or files. The program is right
  or ends in a PasskitError; with room again it is right. The disk is a tmpfs in a mount namespace
  of its own, which `unshare` makes.

It prints a line for each fault and each hardship, and exits 1 where there was a fault.
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
from itertools import product
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 900.0
"""Seconds after which a run counts as hanging."""
DISKS = ("size=4k", "size=100k", "size=1060k", "nr_inodes=3", "nr_inodes=9")
"""Disks by mount options. Compilers start where TMPDIR takes 1 MiB; root and TMPDIR are inodes."""
ROOM = "size=8m,nr_inodes=200"
PLACES = (("TMPDIR",), ("PASSKIT_CACHE_DIR",), ("TMPDIR", "PASSKIT_CACHE_DIR"))

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

Said = dict[str, Any]


class Bench:
    """A folder with a cache and a TMPDIR, the programs that run there, and their faults."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.faults = folder, 0
        self.cache, self.scratch = folder / "cache", folder / "tmp"
        self.scratch.mkdir(mode=0o700)

    def begin(self, constant: float, **environ: str) -> subprocess.Popen[str]:
        """Start the program; another constant makes another kernel."""
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

    def end(self, process: subprocess.Popen[str], case: str, refusal: bool = False) -> Said:
        """Wait for a program; unless it is right, or may refuse and does, count a fault."""
        try:
            out, err = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            err += f"it hangs for {PATIENCE:.0f} s"
        said: Said = json.loads(out) if process.returncode == 0 else {"status": process.returncode}
        compiled = said.get("right", False) and said["kernels"] > 0
        self.expect(compiled or (refusal and "error" in said), f"{case}: {said} {err[-2000:]}")
        return said

    def expect(self, holds: bool, case: str) -> None:
        """Count a fault and print it, unless all is well."""
        if not holds:
            self.faults += 1
            print(f"fault: {case}", flush=True)

    def forget(self) -> None:
        """Empty the cache."""
        shutil.rmtree(self.cache, ignore_errors=True)

    def compilers(self) -> int:
        """The number of folders of compilers, at work or left by killed processes."""
        return len(list(self.scratch.glob("passkit-*/run-*")))


def kill(bench: Bench, count: int, rng: random.Random) -> None:
    """Kill programs at random moments; each is then run again."""
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
    print(
        f"{count} runs, {killed} of them killed, {compiling} while compilers were at work",
        flush=True,
    )


def crowd(bench: Bench, count: int) -> None:
    """Run many programs at once with one empty cache, then one without a compiler."""
    bench.forget()
    processes = [bench.begin(0.5) for _ in range(count)]
    said = [bench.end(process, f"process {k} of {count}") for k, process in enumerate(processes)]
    said.append(bench.end(bench.begin(0.5, PASSKIT_CXX="/nonexistent"), "from the cache alone"))
    bits = {one.get("bits") for one in said}
    bench.expect(len(bits) == 1, f"{len(bits)} different results")
    print(f"{count} processes at once: {len(bits)} result", flush=True)


def full_disks(bench: Bench) -> None:
    """Run the program with small disks, which this process mounts in its own namespace."""
    disk, outcomes, cases = bench.folder / "disk", Counter[str](), list(product(PLACES, DISKS))
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "none", str(disk), "-o"]
    for places, small in cases:
        bench.forget()
        subprocess.run([*mount, f"mode=700,{small}"], check=True)
        (disk / "TMPDIR").mkdir()
        environ = {name: str(disk / name) for name in places}
        case = f"{' and '.join(places)} on a disk of {small}"
        said = bench.end(bench.begin(0.5, **environ), case, refusal=True)
        outcomes["right" if "right" in said else said.get("error", "fault")] += 1
        subprocess.run([*mount, f"remount,{ROOM}"], check=True)
        bench.end(bench.begin(0.5, **environ), f"{case}, then with room")
        subprocess.run(["umount", str(disk)], check=True)
    print(f"{len(cases)} full disks: {dict(outcomes)}", flush=True)


def main() -> int:
    """Try all hardships; 1 where one of them gave a fault."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--kills", type=int, default=100, help="runs that are killed (100)")
    parser.add_argument("--processes", type=int, default=50, help="processes at once (50)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments of kills (0)")
    parser.add_argument("--disks", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.disks:
        bench = Bench(args.disks)
        full_disks(bench)
        return min(bench.faults, 100)
    with tempfile.TemporaryDirectory(prefix="passkit-") as folder:
        bench = Bench(Path(folder))
        kill(bench, args.kills, random.Random(args.seed))
        crowd(bench, args.processes)
        disks = Path(folder, "disks")
        disks.mkdir()
        command = ["unshare", "--map-root-user", "--mount"]
        command += [sys.executable, __file__, "--disks", str(disks)]
        bench.faults += subprocess.run(command, check=False).returncode
    print(f"{args.kills} kills, {args.processes} processes, full disks: {bench.faults} faults")
    return 1 if bench.faults else 0


if __name__ == "__main__":
    sys.exit(main())
