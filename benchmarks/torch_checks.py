"""Parts that the checks of PyTorch's operators, modules and optimizers share.

An entry of one of PyTorch's lists is checked with a few samples, in some dtype and mode; its
outcome says whether passkit equals PyTorch and which operators PyTorch ran. Outcomes are printed,
and merged into a file.
"""

from __future__ import annotations

import argparse
import json
import logging
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import attrs
import torch
import torch._dynamo

from passkit.frontends.torch import passkit_backend
from passkit.frontends.torch.reports import GraphRecord, recording

TOLERANCES = {
    "float16": (1e-3, 1e-3),
    "bfloat16": (1.6e-2, 1e-2),
    "float32": (1.3e-5, 1e-5),
    "float64": (1e-7, 1e-7),
}
"""Relative and absolute tolerances by dtype, as in PyTorch's tests."""


@attrs.frozen
class Trial:
    """One entry to check.

    Attributes:
        position: the position of the entry among PyTorch's.
        dtype: the dtype of its samples.
        mode: "forward"; "backward" to compare gradients, too; "steps" for an optimizer.
        samples: the most samples.
        options: options of passkit.compile.
    """

    position: int
    dtype: str
    mode: str
    samples: int
    options: dict[str, Any]

    @property
    def is_backward(self) -> bool:
        """Return whether gradients are compared, too."""
        return self.mode == "backward"


@attrs.frozen
class Outcome:
    """The outcome of the samples of one entry.

    Attributes:
        name: the name of the entry.
        dtype: the dtype of its samples.
        mode: "forward", "backward" or "steps".
        samples: the number of samples that were compared.
        failed: how many of them differ.
        problem: the first difference, "" if there is none.
        externs: the operators that PyTorch ran with reasons, and in how many samples.
        skipped: why no sample was compared, "" if one was.
        seconds: the time that it took.
    """

    name: str
    dtype: str
    mode: str
    samples: int
    failed: int
    problem: str
    externs: dict[str, int]
    skipped: str
    seconds: float

    @property
    def is_native(self) -> bool:
        """Return whether passkit ran all operators."""
        return not self.problem and not self.externs

    @property
    def group(self) -> str:
        """Return the group of outcomes that this one is counted in."""
        return f"{self.dtype} {self.mode}"


class SkippedSampleError(Exception):
    """Why a sample is not compared."""


def outcome_of(
    samples: Iterable[Any],
    check_sample: Callable[[Any], tuple[str, Sequence[str]]],
    **named: Any,
) -> Outcome:
    """Return the outcome of samples.

    Args:
        samples: the samples.
        check_sample: a function of one that returns how it differs, "" if it does not, and the
            operators that PyTorch ran; it raises SkippedSampleError for one to leave out.
        **named: attributes of the outcome.
    """
    problems: list[str] = []
    externs: Counter[str] = Counter()
    skipped: list[str] = []
    compared = 0
    for sample in samples:
        try:
            problem, reasons = check_sample(sample)
        except SkippedSampleError as error:
            skipped.append(str(error))
            continue
        compared += 1
        externs.update(set(reasons))
        if problem:
            problems.append(problem)
    return Outcome(
        samples=compared,
        failed=len(problems),
        problem=problems[0] if problems else "",
        externs=dict(externs),
        skipped="" if compared else (skipped or ["no samples"])[0],
        **named,
    )


def with_gradients(
    function: Callable[..., Sequence[torch.Tensor]],
    tensors: Sequence[torch.Tensor],
    parameters: Sequence[torch.Tensor] = (),
) -> list[torch.Tensor]:
    """Return the results of a function, and the gradients of their sum.

    Args:
        function: the function.
        tensors: its arguments, by which gradients are taken where they need them.
        parameters: other tensors by which gradients are taken.
    """
    results = function(*tensors)
    sources = [x for x in results if x.requires_grad]
    leaves = [t for t in (*tensors, *parameters) if t.requires_grad]
    if not sources or not leaves:
        return list(results)
    seeds = [torch.ones_like(x) for x in sources]
    grads = torch.autograd.grad(sources, leaves, seeds, allow_unused=True)
    return [*results, *(g for g in grads if g is not None)]


def compiled_results(
    call: Callable[[Callable[..., Any]], list[torch.Tensor]], options: Mapping[str, Any]
) -> tuple[list[torch.Tensor], list[str]]:
    """Return results that functions compiled by torch.compile give, and what PyTorch ran.

    Args:
        call: a function that returns the results; its argument compiles a function.
        options: options of passkit.compile.
    """
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()

    def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
        return torch.compile(  # type: ignore[no-any-return]
            function, backend=passkit_backend, options=dict(options), dynamic=False
        )

    with recording() as records:
        results = call(compiled)
    breaks = torch._dynamo.utils.counters["graph_break"]
    reasons = [f"Dynamo: {str(x).splitlines()[0][:150]}" for x in breaks]
    if not records:
        reasons.append("Dynamo: no graph")
    return results, extern_reasons(records) + reasons


def extern_reasons(records: Sequence[GraphRecord]) -> list[str]:
    """Return the operators that PyTorch ran in compiled graphs, with the reasons."""
    calls = [f"{x.function}: {x.reason}" for record in records for x in record.externs]
    return calls + [record.whole for record in records if record.whole]


def difference(
    actual: Sequence[torch.Tensor],
    expected: Sequence[torch.Tensor],
    tolerance: tuple[float, float],
    is_defined: bool = True,
) -> str:
    """Return how results differ, "" if they do not.

    Args:
        actual: the results.
        expected: those of PyTorch.
        tolerance: the relative and the absolute tolerance.
        is_defined: whether elements are compared; else only shapes and dtypes are.
    """
    if len(actual) != len(expected):
        return f"{len(actual)} results, expected {len(expected)}"
    relative, absolute = tolerance
    for a, b in zip(actual, expected, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"{a.dtype}{list(a.shape)}, expected {b.dtype}{list(b.shape)}"
        if not is_defined:
            continue
        try:
            torch.testing.assert_close(a, b, rtol=relative, atol=absolute, equal_nan=True)
        except AssertionError as error:
            return str(error).replace("\n", " ")[:300]
    return ""


def is_exact(
    actual: Sequence[torch.Tensor],
    expected: Sequence[torch.Tensor],
    exact_results: Callable[[], Sequence[torch.Tensor]],
    tolerance: tuple[float, float],
) -> bool:
    """Return whether results are those of PyTorch in float64, where PyTorch's own are not.

    Args:
        actual: the results.
        expected: those of PyTorch.
        exact_results: a function that computes them in float64.
        tolerance: the relative and the absolute tolerance.
    """
    if [(x.shape, x.dtype) for x in actual] != [(x.shape, x.dtype) for x in expected]:
        return False
    try:
        exact = exact_results()
    except Exception:
        return False
    relative, absolute = tolerance
    return len(exact) == len(actual) and all(
        a.shape == e.shape
        and torch.allclose(a.to(e.dtype), e, rtol=relative, atol=absolute, equal_nan=True)
        for a, e in zip(actual, exact, strict=True)
    )


def known_failure(outcome: Outcome, failures: Mapping[str, str]) -> str:
    """Return why an entry is known to fail, "" if it is not.

    Args:
        outcome: the outcome of the entry.
        failures: reasons by the name of an entry, which its dtype and its mode may follow.
    """
    name, dtype, mode = outcome.name, outcome.dtype, outcome.mode
    names = (name, f"{name} {dtype}", f"{name} {dtype} {mode}")
    return next((failures[x] for x in names if x in failures), "")


def error_text(error: Exception) -> str:
    """Return the class and the beginning of the message of an exception, in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"


def prepare_process() -> None:
    """Let PyTorch compute in one thread and print nothing, since checks run in many processes."""
    warnings.simplefilter("ignore")
    logging.getLogger("torch").setLevel(logging.CRITICAL)
    torch.set_num_threads(1)


def add_arguments(parser: argparse.ArgumentParser, samples: int) -> None:
    """Add the options that all lists of entries share.

    Args:
        parser: the parser.
        samples: the default of ``--samples``.
    """
    parser.add_argument("--only", default="", help="entries whose name contains this")
    parser.add_argument("--dtypes", default="float32")
    parser.add_argument("--samples", type=int, default=samples, help="samples of each entry")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path, help="file that the outcomes are merged into")


def run_trials(
    check: Callable[[Trial], Outcome | None],
    trials: Sequence[Trial],
    failures: Mapping[str, str],
    options: argparse.Namespace,
) -> int:
    """Check entries in processes of their own, print the outcomes, and merge them into a file.

    Args:
        check: the function of a trial, None for an entry that does not take its dtype.
        trials: the entries.
        failures: reasons of failures, see `known_failure`.
        options: those of `add_arguments`.

    Returns:
        1 if an entry fails for a reason that is not known, else 0.
    """
    outcomes = []
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        for outcome in pool.map(check, trials, chunksize=4):
            if outcome is None:
                continue
            outcomes.append(outcome)
            if outcome.problem:
                name = f"{outcome.name} {outcome.dtype} {outcome.mode}"
                print(f"FAILED {name}: {outcome.problem}", flush=True)
    print_summary(outcomes, failures)
    if options.json:
        merge(options.json, outcomes, failures)
    return int(any(x.problem and not known_failure(x, failures) for x in outcomes))


def print_summary(outcomes: Sequence[Outcome], failures: Mapping[str, str]) -> None:
    """Print why PyTorch ran operators, what was skipped, and the numbers by group."""
    reasons: Counter[str] = Counter()
    for x in outcomes:
        reasons.update(set(x.externs))
    for reason, n in reasons.most_common():
        print(f"{n:4} {reason[:180]}")
    for x in outcomes:
        if x.skipped:
            print(f"skipped {x.name} {x.dtype}: {x.skipped}")
    for group in dict.fromkeys(x.group for x in outcomes):
        own = [x for x in outcomes if x.group == group and not x.skipped]
        failed = [x for x in own if x.problem]
        explained = [x for x in failed if known_failure(x, failures)]
        native = sum(x.is_native for x in own)
        print(
            f"{group}: {len(own)} entries, {len(failed)} failed ({len(explained)} for a known "
            f"reason), {native} without a call of PyTorch ({native / max(1, len(own)):.1%})"
        )


def merge(path: Path, outcomes: Sequence[Outcome], failures: Mapping[str, str]) -> None:
    """Write outcomes to a file, in place of earlier ones of the same entries.

    The file has for each group the names of entries that failed, that called PyTorch, that were
    skipped, each by the reason, and of those that passkit ran alone.

    Args:
        path: the file.
        outcomes: the outcomes.
        failures: reasons of failures, see `known_failure`.
    """
    record = json.loads(path.read_text()) if path.exists() else {"groups": {}}
    groups: dict[str, Any] = record["groups"]
    for group in dict.fromkeys(x.group for x in outcomes):
        own = [x for x in outcomes if x.group == group]
        replaced = {x.name for x in own}
        old = groups.get(group, {})
        lists = {
            kind: {
                reason: [name for name in names if name not in replaced]
                for reason, names in old.get(kind, {}).items()
            }
            for kind in ("failed", "outside", "skipped")
        }
        native = set(old.get("native", [])) - replaced
        for x in own:
            if x.skipped:
                lists["skipped"].setdefault(x.skipped, []).append(x.name)
            elif x.problem:
                reason = known_failure(x, failures) or f"not known: {x.problem}"
                lists["failed"].setdefault(reason, []).append(x.name)
            elif x.externs:
                for reason in x.externs:
                    lists["outside"].setdefault(reason, []).append(x.name)
            else:
                native.add(x.name)
        kept = {kind: {k: sorted(v) for k, v in y.items() if v} for kind, y in lists.items()}
        groups[group] = _counted(kept, sorted(native))
    record = {"date": str(date.today()), "torch": torch.__version__, "groups": groups}
    text = json.dumps(record, indent=1)
    path.write_text(text + "\n")


def _counted(lists: Mapping[str, Mapping[str, Sequence[str]]], native: Sequence[str]) -> Any:
    """Return the lists of a group with their counts."""
    counts = {kind: len({n for names in x.values() for n in names}) for kind, x in lists.items()}
    entries = len(native) + counts["failed"] + counts["outside"]
    return {
        "entries": entries,
        "failures": counts["failed"],
        "share_without_a_call_of_pytorch": round(len(native) / max(1, entries), 4),
        **lists,
        "native": list(native),
    }
