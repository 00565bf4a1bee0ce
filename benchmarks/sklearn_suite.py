"""Run scikit-learn's own tests for array libraries on passkit.xp, PyTorch and JAX.

    pip install scikit-learn pytest array-api-strict torch jax
    python benchmarks/sklearn_suite.py [--only metrics] [--json benchmarks/results/sklearn.json]

scikit-learn's wheel ships its tests. Some are parametrized with array libraries; the plugin
`suite_plugin.py` runs these for the selected library, in float64 and float32. Each library runs in
a process of its own. The command prints how many tests passed, failed and were skipped by
subpackage, and exits with 1 if passkit.xp passes fewer than PyTorch or JAX.
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
    """Return the files of scikit-learn that test array libraries.

    Args:
        only: names of subpackages, or parts of paths; none for all.
    """
    root = suites.package_folder("sklearn")
    files = []
    for path in sorted(root.glob("**/tests/test_*.py")):
        name = str(path.relative_to(root))
        if only and not any(part in name for part in only):
            continue
        if "yield_namespace_device_dtype_combinations" in path.read_text():
            files.append(path)
    return files


def subject_of(test: str) -> str:
    """Return the subpackage of a test by its name."""
    matched = re.search(r"sklearn/(\w+)/", test)
    return matched.group(1) if matched else "other"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 1 if a competitor passes more tests."""
    options = suites.parser(__doc__, BACKENDS).parse_args(arguments)
    suite = suites.Suite(
        name="sklearn",
        files=test_files(options.only),
        options=("-k", "{backend}"),
        environment={"SCIPY_ARRAY_API": "1"},
        subject_of=subject_of,
        packages=("scikit-learn", "scipy", "numpy", "torch", "jax"),
    )
    return suites.run(suite, options)


if __name__ == "__main__":
    sys.exit(main())
