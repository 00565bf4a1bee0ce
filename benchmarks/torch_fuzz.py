"""Random programs of PyTorch through ``torch.compile(backend="passkit")``, compared with eager.

    python benchmarks/torch_fuzz.py [--count 5000] [--seed 0] [--first 0] [--json FILE]
    python benchmarks/torch_fuzz.py --seed 0 --case 17      # print a program, and check it

Each program of `torch_programs.py` is compiled anew and called twice with different data. Results
have to equal PyTorch's in values, dtypes, shapes, strides and whether they need gradients; so do
the inputs and their bases after the call, the gradients, which tensors share memory, and which
results are inputs. A difference that AOTAutograd alone shows, too, is PyTorch's and counted apart.
Strides may differ where PyTorch does not predict them: at axes of one element, in tensors without
elements, and where its fake tensors have others. The memory between the elements of a result with
gaps is not compared.
Every tenth program runs in kernels for the CPU, the others in the interpreter, and every tenth
has symbolic sizes. A program that fails is made small. With ``--json`` the counts are added to
those of other seeds in the file.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import logging
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from itertools import combinations
from pathlib import Path
from typing import Any

import attrs
import torch
import torch._dynamo
from functorch.compile import make_boxed_func, min_cut_rematerialization_partition
from torch._dynamo.backends.common import aot_autograd

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from torch_programs import (  # noqa: E402  (after the path)
    DATA,
    Namespace,
    Observation,
    TorchProgram,
    defined,
    observed,
    random_program,
    shares_storage,
    widened,
)

from passkit.frontends.torch import passkit_backend  # noqa: E402
from passkit.frontends.torch.backend import decompositions  # noqa: E402
from passkit.frontends.torch.reports import recording  # noqa: E402

ROUNDING = {
    "float64": (1e-9, 1e-9),
    "float32": (1e-4, 2e-5),
    "float16": (5e-3, 5e-3),
    "bfloat16": (4e-2, 4e-2),
}
"""Relative and absolute tolerances by the least exact dtype of a program; the absolute one is
multiplied by the largest magnitude of its values."""
SECONDS = 120
"""The time of the processor after which a program counts as hanging."""
STEPS = 60
"""How many smaller programs are tried for one that fails."""

Backend = Callable[..., Any]


@attrs.frozen
class Verdict:
    """The outcome of one program.

    Attributes:
        problem: how it differs from PyTorch, "" if it does not.
        is_pytorchs: whether AOTAutograd without passkit differs in the same way.
        native: whether passkit ran all operators.
        text: the smallest program that fails, "" for none.
    """

    problem: str = ""
    is_pytorchs: bool = False
    native: bool = True
    text: str = ""


def exact_values(program: TorchProgram, data: int) -> Observation | None:
    """Return what a program does in float64; None if it cannot run there."""
    namespace: Namespace = {"torch": torch, "F": torch.nn.functional}
    exec(widened(program.function_text()), namespace)
    try:
        return observed(program, namespace["program"], program.namespace(data, in_float64=True))
    except Exception:
        return None


class Comparison:
    """The comparison of the compiled program with PyTorch.

    Args:
        program: the program.
        data: the number of the data.
        expected: what PyTorch does.
    """

    def __init__(self, program: TorchProgram, data: int, expected: Observation) -> None:
        self.program, self.data, self.expected = program, data, expected
        self._wide: Observation | None = None

    def difference(self, actual: Observation) -> str:
        """Return how a compiled program differs from PyTorch, "" if it does not."""
        expected = self.expected
        if len(actual.results) != len(expected.results):
            return f"count: {len(actual.results)} results, expected {len(expected.results)}"
        for part in ("results", "others", "gradients"):
            pairs = zip(getattr(actual, part), getattr(expected, part), strict=True)
            for position, (a, b) in enumerate(pairs):
                problem = self.tensor_difference(a, b, part, position)
                if problem:
                    return problem
        return sharing_difference(actual, expected)

    def tensor_difference(
        self, a: torch.Tensor | None, b: torch.Tensor | None, part: str, position: int
    ) -> str:
        """Return how two tensors differ, "" if they do not."""
        place = f"{part}[{position}]"
        if a is None or b is None:
            there = b if a is None else a
            if there is None or not bool(there.any()):
                return ""
            return f"gradient: {place} is {a}, expected {b}"
        if a.shape != b.shape:
            return f"shape: {place} is {list(a.shape)}, expected {list(b.shape)}"
        if a.dtype != b.dtype:
            return f"dtype: {place} is {a.dtype}, expected {b.dtype}"
        if not self.is_equal(a.detach(), b.detach(), part, position):
            return f"values: {place} is {shown(a)}, expected {shown(b)}"
        if part == "gradients":
            return ""
        if meant_strides(a) != meant_strides(b):
            return f"strides: {place} has {a.stride()}, expected {b.stride()} of {list(a.shape)}"
        if a.requires_grad != b.requires_grad:
            return f"requires_grad: {place} is {a.requires_grad}, expected {b.requires_grad}"
        return ""

    def is_equal(self, a: torch.Tensor, b: torch.Tensor, part: str, position: int) -> bool:
        """Return whether two tensors are equal up to rounding, or the first one is more exact."""
        if torch.equal(a, b):
            return True
        if not a.dtype.is_floating_point:
            return False
        relative, absolute = self.tolerances()
        if torch.allclose(a, b, rtol=relative, atol=absolute):
            return True
        if self._wide is None:
            self._wide = exact_values(self.program, self.data)
        wide = getattr(self._wide, part, [])[position : position + 1]
        if not wide or wide[0] is None or wide[0].shape != a.shape:
            return False
        return torch.allclose(a.double(), wide[0].detach().double(), rtol=relative, atol=absolute)

    def tolerances(self) -> tuple[float, float]:
        """Return the relative and the absolute tolerance of the program."""
        used = [x for x in ROUNDING if x in str(self.program)]
        relative, absolute = ROUNDING[max(used, key=lambda x: ROUNDING[x][0], default="float32")]
        if self.program.is_exact:
            return relative / 100, absolute / 1000
        return relative, absolute * self.program.largest


def meant_strides(tensor: torch.Tensor) -> list[int]:
    """Return the strides of the axes of more than one element; none of a tensor without elements.

    No element is at the others, which PyTorch's own fake tensors do not predict.
    """
    if not tensor.numel():
        return []
    return [k for k, n in zip(tensor.stride(), tensor.shape, strict=True) if n > 1]


def shown(tensor: torch.Tensor) -> str:
    """Return the first elements of a tensor as text."""
    return f"{tensor.detach().flatten()[:12].tolist()}"


def sharing_difference(actual: Observation, expected: Observation) -> str:
    """Return which tensors share memory, or are the same, unlike those of PyTorch; "" if none."""
    first, second = (x.results + x.others for x in (actual, expected))
    count = len(expected.results)
    for i, j in combinations(range(len(first)), 2):
        names = " and ".join(
            f"results[{k}]" if k < count else f"others[{k - count}]" for k in (i, j)
        )
        kinds = "aliases of results" if j < count else "aliases of inputs"
        is_shared = shares_storage(second[i], second[j])
        if shares_storage(first[i], first[j]) != is_shared:
            return f"{kinds}: {names} {'do not share' if is_shared else 'share'} memory"
        has_elements = second[i].numel() and second[j].numel()
        if (
            is_shared
            and has_elements
            and first[i].storage_offset() - first[j].storage_offset()
            != (second[i].storage_offset() - second[j].storage_offset())
        ):
            return f"offset: {names} lie at other places of their memory"
        if (first[i] is first[j]) != (second[i] is second[j]):
            return f"identity: {names} are the same tensor: {first[i] is first[j]}"
    return ""


def observations(
    program: TorchProgram, backend: Backend, options: dict[str, Any]
) -> Iterator[Observation]:
    """Yield the effects of the calls of a program compiled by a backend, one for each data."""
    torch._dynamo.reset()
    is_dynamic = True if program.is_dynamic else None
    compiled = torch.compile(defined(program), backend=backend, options=options, dynamic=is_dynamic)
    for data in DATA:
        yield observed(program, compiled, program.namespace(data))


def problem_of(
    program: TorchProgram,
    backend: Backend,
    options: dict[str, Any],
    references: Sequence[Observation] | None = None,
) -> str:
    """Return how a program compiled by a backend differs from PyTorch, "" if it does not.

    Args:
        program: the program.
        backend: the backend.
        options: its options.
        references: the effects to compare with, in place of those of eager PyTorch.

    Raises: what PyTorch raises for a program that it cannot run.
    """
    if references is None:
        references = [observed(program, defined(program), program.namespace(k)) for k in DATA]
    kept: list[tuple[torch.Tensor, torch.Tensor]] = []
    calls = observations(program, backend, options)
    for data, expected in zip(DATA, references, strict=True):
        try:
            actual = next(calls)
        except Exception as error:
            return f"error: {type(error).__name__}: {' '.join(str(error).split())[:1500]}"
        problem = Comparison(program, data, expected).difference(actual)
        if problem:
            return problem
        if any(not torch.equal(a, b) for a, b in kept):
            return "reuse: a later call changes the results of an earlier one"
        kept += [(x.detach(), x.detach().clone()) for x in actual.results]
    return ""


def plain_backend(module: Any, inputs: Any, *, options: Any = None) -> Any:
    """Run the graphs that passkit would compile in PyTorch.

    With the option "predicted", their results have the strides of PyTorch's fake tensors.
    """

    def kept(graph: Any, inputs: Any) -> Any:
        if not options:
            return make_boxed_func(graph.forward)
        (nodes,) = graph.graph.output_node().args

        def run(*args: Any) -> list[Any]:
            return [with_predicted_strides(x, n) for x, n in zip(graph(*args), nodes, strict=True)]

        return make_boxed_func(run)

    compiler = aot_autograd(
        fw_compiler=kept,
        bw_compiler=kept,
        inference_compiler=kept,
        decompositions=decompositions(),
        partition_fn=min_cut_rematerialization_partition,
    )
    return compiler(module, inputs)


def with_predicted_strides(value: Any, node: Any) -> Any:
    """Return a result of a graph with the strides of the fake tensor of its node."""
    fake = getattr(node, "meta", {}).get("val")
    if not isinstance(fake, torch.Tensor):
        return value
    strides = [k.node.hint if isinstance(k, torch.SymInt) else k for k in fake.stride()]
    if strides == list(value.stride()):
        return value
    other = torch.empty_strided(value.shape, strides, dtype=value.dtype)
    part = tuple(slice(0, 1) if k == 0 else slice(None) for k in strides)
    other[part].copy_(value[part])
    return other


def is_pytorchs(program: TorchProgram, problem: str, options: dict[str, Any]) -> bool:
    """Return whether AOTAutograd differs without passkit, too, in the same way.

    That is the same error, strides that its fake tensors predict, or else the same effects. Where
    its own graph fails as strides are not those predicted, other strides are PyTorch's, too.
    """
    kind = kind_of(problem)
    if kind == "strides":
        settings: tuple[dict[str, Any], ...] = ({}, {"predicted": True})
        kinds = [kind_of(problem_of(program, plain_backend, x)) for x in settings]
        return any(other == kind or other.startswith("error") for other in kinds)
    if kind != kind_of(problem_of(program, plain_backend, {})):
        return False
    if kind.startswith("error"):
        return True
    references = list(observations(program, plain_backend, {}))
    return not problem_of(program, passkit_backend, options, references)


def kind_of(problem: str) -> str:
    """Return the part of a problem that says what differs; of errors, their type, too."""
    parts = problem.split(": ")
    return ": ".join(parts[:2]) if parts[0] == "error" else parts[0]


def options_of(program: TorchProgram) -> dict[str, Any]:
    """Return the options that a program is compiled with."""
    return {"target": "cpu" if program.number % 10 == 0 else "interpret"}


def check(program: TorchProgram, is_reduced: bool = True) -> Verdict:
    """Return the verdict on a program; one that fails is made small."""
    options = options_of(program)
    with recording() as records, limited(program):
        problem = problem_of(program, passkit_backend, options)
    native = not any(x.externs or x.whole for x in records)
    if not problem:
        return Verdict(native=native)
    if is_pytorchs(program, problem, options):
        return Verdict(problem, True, native, str(program))
    if not is_reduced:
        return Verdict(problem, False, native, str(program))
    smaller, problem = reduced(program, problem, options)
    return Verdict(problem, False, native, str(smaller))


class limited:  # noqa: N801  (a context manager)
    """End the process if the body takes longer than `SECONDS`, and print the program.

    Args:
        program: the program that runs.
    """

    def __init__(self, program: TorchProgram) -> None:
        self.program = program

    def __enter__(self) -> None:
        """Start the clock."""

        def stop(number: int, frame: Any) -> None:
            traceback.print_stack(frame)
            sys.exit(f"hangs: {self.program}")

        signal.signal(signal.SIGPROF, stop)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)

    def __exit__(self, *error: Any) -> None:
        """Stop the clock."""
        signal.setitimer(signal.ITIMER_PROF, 0)


def reduced(
    program: TorchProgram, problem: str, options: dict[str, Any]
) -> tuple[TorchProgram, str]:
    """Return the smallest program found that fails in the same way, and how."""
    tried = 0
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for candidate in smaller_programs(program):
            tried += 1
            if tried > STEPS:
                return program, problem
            try:
                other = problem_of(candidate, passkit_backend, options)
            except Exception:
                continue
            if other and kind_of(other) == kind_of(problem):
                program, problem = candidate, other
                is_smaller = True
                break
    return program, problem


def smaller_programs(program: TorchProgram) -> list[TorchProgram]:
    """Return a program with one part less: a statement from its end, a result, an input."""
    statements, results = program.statements, program.results
    smaller = []
    for k in reversed(range(len(statements))):
        name = statements[k].split(" = ")[0]
        rest = tuple(x for x in results if x != name)
        without = statements[:k] + statements[k + 1 :]
        smaller.append(attrs.evolve(program, statements=without, results=rest))
    smaller += [
        attrs.evolve(program, results=results[:k] + results[k + 1 :]) for k in range(len(results))
    ]
    text = program.function_text().partition("\n")[2]
    unused = tuple(x for x in program.inputs if f"{x}" not in text)
    if unused:
        kept = tuple(x for x in program.inputs if x not in unused)
        smaller.append(attrs.evolve(program, inputs=kept))
    return smaller


def summary(outcomes: Sequence[tuple[TorchProgram, Verdict]], seed: int, first: int) -> Any:
    """Return the counts of the programs of a seed for a file."""
    tags = Counter(tag for program, _ in outcomes for tag in program.tags)
    return {
        "seed": seed,
        "first": first,
        "count": len(outcomes),
        "wrong": sum(bool(x.problem) and not x.is_pytorchs for _, x in outcomes),
        "by_pytorch_too": dict(Counter(kind_of(x.problem) for _, x in outcomes if x.is_pytorchs)),
        "without_a_call_of_pytorch": sum(x.native for _, x in outcomes),
        "on_cpu_kernels": sum(options_of(p)["target"] == "cpu" for p, _ in outcomes),
        "with_symbolic_sizes": sum(p.is_dynamic for p, _ in outcomes),
        "tags": dict(tags.most_common()),
        "failures": [
            {"problem": x.problem, "program": x.text}
            for _, x in outcomes
            if x.problem and not x.is_pytorchs
        ],
    }


def merge(path: Path, run: Any) -> None:
    """Add the counts of a run to a file, in place of an earlier one of the same programs."""
    record = json.loads(path.read_text()) if path.exists() else {"runs": []}
    key = (run["seed"], run["first"])
    runs = [x for x in record["runs"] if (x["seed"], x["first"]) != key]
    runs = sorted([*runs, run], key=lambda x: (x["seed"], x["first"]))
    record = {
        "date": str(date.today()),
        "torch": torch.__version__,
        "programs": sum(x["count"] for x in runs),
        "wrong": sum(x["wrong"] for x in runs),
        "runs": runs,
    }
    path.write_text(json.dumps(record, indent=1) + "\n")


def main() -> int:
    """Check the programs that the command line names, and print those that fail."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--count", type=int, default=5000, help="programs (5000)")
    parser.add_argument("--seed", type=int, default=0, help="the set of programs (0)")
    parser.add_argument("--first", type=int, default=0, help="the number of the first one (0)")
    parser.add_argument("--case", type=int, help="only this one, with its text")
    parser.add_argument("--json", type=Path, help="file that the counts are added to")
    parser.add_argument("--keep", action="store_true", help="do not make failing programs small")
    own = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.getLogger("torch").setLevel(logging.CRITICAL)
    torch.set_num_threads(1)
    faulthandler.enable()
    numbers = range(own.first, own.first + own.count) if own.case is None else [own.case]
    outcomes = []
    begin = time.time()
    for number in numbers:
        program = random_program(own.seed, number)
        if own.case is not None:
            print(program)
        verdict = check(program, not own.keep)
        outcomes.append((program, verdict))
        if verdict.problem and verdict.is_pytorchs:
            print(f"PyTorch's, seed {own.seed}, case {number}: {verdict.problem[:300]}", flush=True)
        elif verdict.problem:
            print(f"FAILED {verdict.problem}\n{verdict.text}\n", flush=True)
    run = summary(outcomes, own.seed, own.first)
    print(
        f"{run['count']} programs, {run['wrong']} wrong, {run['by_pytorch_too']} by PyTorch too, "
        f"{run['without_a_call_of_pytorch']} without a call of PyTorch, "
        f"{(time.time() - begin) / max(1, run['count']):.2f} s each"
    )
    if own.json and own.case is None:
        merge(own.json, run)
    return int(run["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
