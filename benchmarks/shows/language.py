"""How the source reads, by counts and by a blind reader; and that programs stayed the same."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from shows import RESULTS, ROOT, Demand, Figure, tests
from tests import language

BEFORE = RESULTS / "language-before.json"
"""Counts, public names and start-up of the version that this one is compared with."""
READING = RESULTS / "language-reading.json"
"""Answers of a reader who saw signatures and docstrings only, with their marks."""
MIDDLE_ROWS = ("passkit: the middle", "tests: the middle")


def outside_middle(table: Mapping[str, Mapping[str, int]], kind: str) -> int:
    """Return the count of a kind over all folders but the middle's.

    Tests of its new layers count, but for imports of what they test.
    """
    others = (*MIDDLE_ROWS, language.NEW_LAYERS_ROW) if kind == "internal" else MIDDLE_ROWS
    return sum(kinds.get(kind, 0) for row, kinds in table.items() if row not in others)


def at_most(kind: str, limit: int | None) -> Callable[[], Figure]:
    """Return a measurement of one kind's count outside the middle against a limit."""

    def measure() -> Figure:
        before = outside_middle(json.loads(BEFORE.read_text())["counts"], kind)
        after = outside_middle(language.counts(), kind)
        is_met = after < before if limit is None else after <= limit
        return Figure(f"{before} before, {after} now", is_met)

    return measure


def duplicates() -> Figure:
    """Return how many names outside the middle are defined more than once."""
    before = json.loads(BEFORE.read_text())["duplicates"]
    after = sorted(language.duplicate_names())
    return Figure(f"{before} before, {len(after)} now", len(after) <= 10, after)


def table() -> Figure:
    """Print the counts per folder, before and after."""
    before = json.loads(BEFORE.read_text())["counts"]
    after = language.counts()
    print("before", language.as_text(before), "after", language.as_text(after), sep="\n")
    return Figure("printed above", True, {"before": before, "after": after})


def reading(subject: str, least: int, of: int) -> Callable[[], Figure]:
    """Return the marks of the blind reading of one subject: functions, errors or reasons."""

    def measure() -> Figure:
        if not READING.exists():
            return Figure("nobody has read yet", None)
        report = json.loads(READING.read_text())
        answers = report[subject]
        right = sum(bool(a["right"]) for a in answers)
        text = f"{right} of {len(answers)} right, {report['date']}"
        exact = [a["never_misled"] for a in answers if "never_misled" in a]
        if exact:
            text += f"; in {sum(exact)} nothing is left out either"
        return Figure(
            text,
            right >= least and len(answers) >= of,
            answers,
        )

    return measure


def newcomers() -> Figure:
    """Return what stopped people who extended passkit by the contributing page alone."""
    if not READING.exists():
        return Figure("nobody has tried yet", None)
    trials = json.loads(READING.read_text()).get("newcomers", [])
    done = [t["task"] for t in trials if t["done"]]
    return Figure(", ".join(done) or "none", len(done) >= 4, trials)


def base_tree(folder: str) -> Path:
    """Check the compared version out into ``folder``; it is left out of the clone's history."""
    commit = json.loads(BEFORE.read_text())["commit"]
    tree = Path(folder) / "before"
    subprocess.run(["git", "clone", "-q", "--shared", str(ROOT), str(tree)], check=True)
    subprocess.run(["git", "checkout", "-q", commit], cwd=tree, check=True)
    return tree


def kernels() -> Figure:
    """Return whether both versions print equal kernels for the corpus.

    Graphs whose results were wrong before, which `BEFORE` lists, may differ.
    """
    mended = json.loads(BEFORE.read_text())["mended"]
    with tempfile.TemporaryDirectory() as folder:
        corpus = [sys.executable, str(ROOT / "benchmarks" / "corpus.py")]
        old = ["--tree", str(base_tree(folder))]
        subprocess.run([*corpus, "record", f"{folder}/kernels", *old], check=True)
        done = subprocess.run(
            [*corpus, "compare", f"{folder}/kernels"], check=False, text=True, capture_output=True
        )
        lines = done.stdout.strip().splitlines() or [done.stderr.strip()[-200:]]
    differing = {x.split("/")[1].partition(":")[0] for x in lines if x.startswith("  ")}
    text = " | ".join(x for x in lines if not x.startswith("  "))
    is_met = done.returncode == 0 or (bool(differing) and differing <= set(mended))
    reasons = "; ".join(sorted({mended[name] for name in differing if name in mended}))
    return Figure(f"{text}; others: {reasons}" if reasons else text, is_met, lines)


def public_names() -> Figure:
    """Return the public names that came and went."""
    import passkit as pk

    before = set(json.loads(BEFORE.read_text())["names"])
    new, gone = sorted(set(pk.__all__) - before), sorted(before - set(pk.__all__))
    return Figure(f"{len(pk.__all__)} names; new: {new}; gone: {gone}", not gone)


def startup() -> Figure:
    """Return import time and warm start of both versions, measured in turn.

    They are the least of the medians of five rounds. A first compile is reported beside them; the
    time to load every public name is left out, as this version has more names.
    """
    figures: dict[str, list[dict[str, float]]] = {"before": [], "now": []}
    with tempfile.TemporaryDirectory() as folder:
        trees = {"before": base_tree(folder), "now": ROOT}
        for _ in range(5):
            for version, tree in trees.items():
                done = subprocess.run(
                    [sys.executable, str(tree / "benchmarks" / "startup.py")],
                    capture_output=True,
                    text=True,
                    check=True,
                    cwd=tree,
                    env={**os.environ, "PYTHONPATH": str(tree)},
                )
                figures[version].append(_milliseconds(done.stdout))
    lines = {
        name: min(f[name] for f in figures["now"]) / min(f[name] for f in figures["before"])
        for name in figures["now"][0]
        if name != "every public name"
    }
    text = ", ".join(f"{name} {ratio:.2f}" for name, ratio in lines.items())
    judged = [ratio for name, ratio in lines.items() if "compile" not in name]
    return Figure(f"now / before: {text}", max(judged) <= 1.05, figures)


def _milliseconds(printed: str) -> dict[str, float]:
    """Return the median milliseconds of each line of a report of `startup.py`."""
    lines = re.findall(r"^(\S.*?)\s{2,}([\d.]+)\s+[\d.]+", printed, re.MULTILINE)
    return {label: float(median) for label, median in lines}


def suite() -> Figure:
    """Run all tests."""
    return tests("tests", timeout=5400.0)


DEMANDS: tuple[Demand, ...] = (
    Demand("counts per folder, before and after", table),
    Demand('docstrings that begin with "What" <= 10', at_most("what", 10)),
    Demand("variables called found, made, known, wanted <= 40", at_most("vague", 40)),
    Demand("class or alias names defined more than once <= 10", duplicates),
    Demand("starred literals: 0", at_most("starred", 0)),
    Demand("`fmt: skip` <= 10", at_most("skip", 10)),
    Demand("deferred imports: fewer", at_most("deferred", None)),
    Demand("retired words: 0", at_most("retired", 0)),
    Demand("test files that import internals <= 40", at_most("internal", 40)),
    Demand("blind reading: 56 of 60 functions", reading("functions", 56, 60)),
    Demand("blind reading: 9 of 10 error messages", reading("errors", 9, 10)),
    Demand("blind reading: 9 of 10 reasons", reading("reasons", 9, 10)),
    Demand("an operator, a pass, an importer, a tinyflow function by the page", newcomers),
    Demand("public names unchanged", public_names),
    Demand("corpus of printed kernels equal", kernels, slow=True),
    Demand("import time and warm start not worse", startup, slow=True),
    Demand("the suite passes", suite, slow=True),
)
