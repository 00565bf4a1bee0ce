"""Time new processes: to import passkit, to compile GELU, to run it from the cache.

    python benchmarks/startup.py [--runs 9] [--imports ROWS]

Each figure is taken in new processes, whose clock starts once NumPy is imported. Byte code is
written to a folder of its own and exists before the first counted run, as after an installation.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

IMPORT = """
import json, time, numpy
start, cpu = time.perf_counter(), time.process_time()
import passkit
wall, spent = time.perf_counter() - start, time.process_time() - cpu
[getattr(passkit, name) for name in passkit.__all__]
names = time.perf_counter() - start
print(json.dumps({"wall": wall, "cpu": spent, "names": names}))
"""

# From import to result; `compile` and the first call count as compilation.
GELU = """
import hashlib, json, sys, time, numpy as np
array = np.random.default_rng(0).standard_normal((64, 1000), dtype=np.float32)
start, cpu = time.perf_counter(), time.process_time()
import passkit as pk
x = pk.var("x", (None, 1000), "float32")
y = x * (pk.ops.erf(x / 2**0.5) + 1) / 2
graph = pk.Graph([y])
begin = time.perf_counter()
exe = pk.compile(graph)
(result,) = exe(x=array)
end, spent = time.perf_counter(), time.process_time() - cpu
heavy = [m for m in ("attrs", "pathlib", "pulp", "highspy", "rich", "platformdirs", "graphviz",
                     "subprocess", "google") if m in sys.modules]
print(json.dumps({"wall": end - start, "cpu": spent, "compile": end - begin, "heavy": heavy,
                  "compiled": exe.stats["compiled"], "target": exe.stats["target"],
                  "bits": hashlib.sha256(result.tobytes()).hexdigest()}))
"""


class FreshProcesses:
    """Start new interpreters with byte code and kernel cache in a folder of their own."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="passkit-startup-"))

    def __enter__(self) -> FreshProcesses:
        return self

    def __exit__(self, *error: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, text: str, variables: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Run a program in a new process and return its last line, parsed as JSON.

        Args:
            text: the program.
            variables: further environment variables.

        Raises:
            RuntimeError: the process failed; the message is its last line.
        """
        environ = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        environ |= {
            "PASSKIT_CACHE_DIR": str(self.folder / "cache"),
            "PYTHONPYCACHEPREFIX": str(self.folder / "bytecode"),
            "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
        }
        process = subprocess.run(
            [sys.executable, "-c", text],
            env=environ | dict(variables or {}),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=120,
        )
        if process.returncode:
            raise RuntimeError(process.stderr.strip().splitlines()[-1])
        answer: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
        return answer

    def forget(self) -> None:
        """Empty the kernel cache."""
        shutil.rmtree(self.folder / "cache", ignore_errors=True)


def measure(runs: int = 9) -> dict[str, Any]:
    """Return samples of imports, first compilations, warm starts, and one without a compiler."""
    with FreshProcesses() as processes:
        processes.run(IMPORT)
        processes.run(GELU)
        samples: dict[str, Any] = {"import": [processes.run(IMPORT) for _ in range(runs)]}
        samples["first"] = []
        for _ in range(runs):
            processes.forget()
            samples["first"].append(processes.run(GELU))
        samples["warm"] = [processes.run(GELU) for _ in range(runs)]
        samples["no_compiler"] = processes.run(GELU, {"PASSKIT_CXX": "/nonexistent"})
        return samples


def median(samples: list[dict[str, Any]], key: str) -> float:
    """Return the median of one figure."""
    return statistics.median(s[key] for s in samples)


def least(samples: list[dict[str, Any]], key: str) -> float:
    """Return the least of one figure."""
    return float(min(s[key] for s in samples))


def imports(rows: int) -> None:
    """Print the modules that a warm start imports besides NumPy, the slowest first."""
    with FreshProcesses() as processes:
        processes.run(GELU)
        processes.run(GELU)
        environ = os.environ | {
            "PASSKIT_CACHE_DIR": str(processes.folder / "cache"),
            "PYTHONPYCACHEPREFIX": str(processes.folder / "bytecode"),
            "PYTHONPATH": str(ROOT),
        }
        process = subprocess.run(
            [sys.executable, "-X", "importtime", "-c", GELU],
            text=True,
            env=environ,
            capture_output=True,
        )
    lines = process.stderr.splitlines()
    begin = max(k for k, x in enumerate(lines) if x.endswith("| numpy"))
    table = [(int(x.split("|")[0].split(":")[1]), x.split("|")[2]) for x in lines[begin + 1 :]]
    for spent, name in sorted(table, reverse=True)[:rows]:
        print(f"{spent / 1e3:8.2f} ms  {name.strip()}")
    print(f"{sum(t for t, _ in table) / 1e3:8.2f} ms  in all, {len(table)} modules")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--imports", type=int, default=0, help="rows of modules by import time")
    options = parser.parse_args()
    if options.imports:
        imports(options.imports)
        return
    samples_by_kind = measure(options.runs)
    print(f"{'milliseconds':34}{'median':>9}{'least':>9}{'CPU':>9}")
    for title, samples, key in (
        ("import passkit", "import", "wall"),
        ("every public name", "import", "names"),
        ("first compile of GELU", "first", "compile"),
        ("warm start, import to result", "warm", "wall"),
    ):
        rows = samples_by_kind[samples]
        print(
            f"{title:34}{median(rows, key) * 1e3:9.1f}{least(rows, key) * 1e3:9.1f}"
            f"{least(rows, 'cpu') * 1e3:9.1f}"
        )
    last = samples_by_kind["no_compiler"]
    is_same = last["bits"] == samples_by_kind["first"][0]["bits"]
    print(
        f"without a compiler: {last['compiled']} compiled, {'equal' if is_same else 'OTHER'} bits, "
        f"imported of the heavy: {last['heavy']}"
    )


if __name__ == "__main__":
    main()
