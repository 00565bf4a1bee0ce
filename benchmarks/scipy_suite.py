"""Run SciPy's own tests for array libraries on passkit.xp, PyTorch and JAX, and compare counts.

    pip install scipy pytest hypothesis array-api-strict torch jax
    python benchmarks/scipy_suite.py [--only special stats] [--json benchmarks/results/scipy.json]

SciPy's wheel ships its tests. Those that take the fixture ``xp`` run for each array library; the
plugin `suite_plugin.py` adds passkit.xp to the libraries. Each library runs in a process of its
own. The command prints how many tests passed, failed and were skipped by subpackage, and exits with
1 if passkit.xp passes fewer than PyTorch or JAX.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent)]

import suites  # noqa: E402  (after the path)

BACKENDS = ("passkit.xp", "torch", "jax.numpy")


def test_files(only: Sequence[str]) -> list[Path]:
    """Return the files of SciPy that have tests with the fixture ``xp``.

    Args:
        only: names of subpackages, or parts of paths; none for all.
    """
    root = suites.package_folder("scipy")
    files = []
    for path in sorted(root.glob("*/**/tests/test_*.py")):
        name = str(path.relative_to(root))
        if only and not any(part in name for part in only):
            continue
        if re.search(r"\bdef test\w*\([^)]*\bxp\b", path.read_text()):
            files.append(path)
    return files


def subject_of(test: str) -> str:
    """Return the subpackage of a test by its name."""
    matched = re.search(r"scipy/(\w+)/", test)
    return matched.group(1) if matched else "other"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 1 if a competitor passes more tests."""
    options = suites.parser(__doc__, BACKENDS).parse_args(arguments)
    suite = suites.Suite(
        name="scipy",
        files=test_files(options.only),
        options=("-m", "array_api_backends"),
        environment={"SCIPY_ARRAY_API": "1"},
        subject_of=subject_of,
        packages=("scipy", "numpy", "torch", "jax", "array-api-strict"),
    )
    return suites.run(suite, options)


if __name__ == "__main__":
    sys.exit(main())
