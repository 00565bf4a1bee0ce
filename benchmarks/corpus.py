"""Plans and kernels of a fixed set of graphs, recorded by one version and compared with another.

    python benchmarks/corpus.py record DIR [--only gelu] [--jobs 2] [--tree CHECKOUT]
    python benchmarks/corpus.py print DIR [--tree CHECKOUT]
    python benchmarks/corpus.py compare DIR [--same-code] [--targets cpu,cuda] [--tree CHECKOUT]

`record` builds the graphs (`corpus_graphs`), writes each as JSON to ``DIR/graphs``, and what they
become for each target to ``DIR/TARGET.json``: of each kernel its key, plan, text, shared bytes and
tiles, and the processor's seconds of planning. `print` writes this anew for recorded graphs.
`compare` makes it of the same graphs with this version and reports, for each target, how many
graphs have equal texts (E0), texts that the compiler makes the same code of (E1, with
``--same-code``: g++ -O3 for the CPU, NVRTC for sm_90), and other ones; then other plans, keys,
shared bytes and tiles, and the ratio of the planning times. It exits 1 where a text differs, with
``--same-code`` where code does.

Names that a text declares do not count, nor does the kernel's: they are numbered in order before
texts are compared. With ``--tree`` the passkit of another checkout plans. Without ``--same-code``
nothing is compiled, and no device or compiler is needed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

HERE = Path(__file__).resolve().parent
TARGETS = ("cpu", "cuda", "opencl")
PASSES = ("Fusion", "SchedulePlan", "SharedMemPlan", "CodeGen")
STATEMENTS = {"return", "goto", "else", "case", "typedef", "using", "struct"}
DECLARED = re.compile(r"\b(\w+)[\s*&]+(\w+)\s*(?=[=;,)\[:({])")
BATCH = 8
"""Graphs that a process takes at a time."""

KernelRecord = dict[str, Any]
"""``name``, ``key``, ``plan``, ``text``, ``shared`` and ``tiles`` of a kernel."""


def planned_records(pk: Any, graph: Any, target: str, together: Any) -> dict[str, Any]:
    """Return a graph's kernels in the order of their launches, and the seconds of planning.

    Where planning fails, the error stands in the place of the kernels.
    """
    begin = time.process_time()
    try:
        with pk.PassContext(target=target, keep_together=together or []):
            plan = pk.ApplyPasses(graph, list(PASSES), target=target)
    except pk.PasskitError as error:
        return {"error": f"{type(error).__name__}: {error}", "kernels": []}
    seconds = time.process_time() - begin
    kernels = plan.attrs["kernel"]
    nodes = [n for n in plan.nodes if n in kernels]
    return {
        "seconds": seconds,
        "kernels": [
            {
                "name": kernels[n].name,
                "key": kernels[n].key,
                "plan": plan_text(plan, n),
                "text": str(kernels[n]),
                "shared": str(kernels[n].shared_nbytes),
                "tiles": str(kernels[n].grid),
            }
            for n in nodes
        ],
    }


def plan_text(plan: Any, node: Any) -> str:
    """Return what is planned for a group: its operators, how it is composed, and its template."""
    from passkit.errors import PasskitError

    try:
        from passkit.schedule.template_of import template_of
    except ImportError:  # a version without templates of this kind
        return ""
    if node not in plan.attrs["subgraph"] or node not in plan.attrs["schedule"]:
        return f"{node.op.name}, a kernel of its own"
    group, schedule = plan.attrs["subgraph"][node], plan.attrs["schedule"][node]
    operators = ", ".join(group.called(n) for n in group.ops)
    try:
        template: object = template_of(group, schedule, plan.attrs["options"]["target"])
    except (PasskitError, KeyError) as error:  # groups that templates do not describe
        template = f"no template: {type(error).__name__}"
    return f"{operators}: {schedule.composition.value}\n{template}"


def blanked(text: str, name: str) -> str:
    """Return a kernel's text with numbers in the place of its name and of names that it declares.

    >>> blanked("void f(float *x0) { float sum_1 = x0[0]; y = exp(sum_1); }", "f")
    'void v0(float *v1) { float v2 = v1[0]; y = exp(v2); }'
    """
    local = {m[2] for m in DECLARED.finditer(text) if m[1] not in STATEMENTS and m[2][0].isalpha()}
    local = local - set(re.findall(r"\b(\w+)\(", text)) | {name}
    numbers: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        word = match[0]
        return numbers.setdefault(word, f"v{len(numbers)}") if word in local else word

    return re.sub(r"\b[A-Za-z_]\w*", number, text)


def _import(tree: Path) -> Any:
    """Return passkit of a checkout, with the operators that tests register for their graphs."""
    if sys.path[0] != str(tree):
        sys.path[:0] = [str(tree)]
    import passkit as pk

    with suppress(ImportError):  # an older version
        importlib.import_module("tests.passes.storage_graphs")
    return pk


def _records_of(
    tree: Path, folder: Path, targets: Sequence[str], names: Sequence[str]
) -> list[tuple[str, str, Any]]:
    """Return the records of some graphs of a folder, each with its name and target."""
    pk = _import(tree)
    together = json.loads((folder / "together.json").read_text())
    results = []
    for name in names:
        graph = pk.from_json((folder / "graphs" / f"{name}.json").read_text())
        for target in targets:
            results.append((name, target, planned_records(pk, graph, target, together.get(name))))
    return results


def records(
    tree: Path, folder: Path, jobs: int, targets: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Return the records of all graphs of a folder by target and name; processes share the work."""
    names = sorted(p.stem for p in (folder / "graphs").glob("*.json"))
    by_target: dict[str, dict[str, Any]] = {target: {} for target in targets}
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        parts = [names[k : k + BATCH] for k in range(0, len(names), BATCH)]
        for part in pool.map(partial(_records_of, tree, folder, targets), parts):
            for name, target, record in part:
                by_target[target][name] = record
    return by_target


def write_graphs(pk: Any, folder: Path, only: str) -> int:
    """Write the graphs whose name contains ``only``; return how many there are."""
    import corpus_graphs

    (folder / "graphs").mkdir(parents=True, exist_ok=True)
    together = {}
    for case in corpus_graphs.cases(pk):
        if only in case.name:
            (folder / "graphs" / f"{case.name}.json").write_text(pk.to_json(case.graph))
            if case.together:
                together[case.name] = case.together
    (folder / "together.json").write_text(json.dumps(together))
    return len(list((folder / "graphs").glob("*.json")))


def write_records(folder: Path, by_target: dict[str, dict[str, Any]]) -> None:
    """Write the records of each target."""
    folder.mkdir(parents=True, exist_ok=True)
    for target, of_graphs in by_target.items():
        (folder / f"{target}.json").write_text(json.dumps(of_graphs, indent=0, sort_keys=True))
    print(summary(by_target))


def summary(by_target: dict[str, dict[str, Any]]) -> str:
    """Return how many graphs, kernels and different texts there are for each target."""
    lines = []
    for target, of_graphs in by_target.items():
        kernels = [k for r in of_graphs.values() for k in r["kernels"]]
        errors = Counter(r["error"].partition(":")[0] for r in of_graphs.values() if "error" in r)
        seconds = sum(r.get("seconds", 0) for r in of_graphs.values())
        texts = {blanked(k["text"], k["name"]) for k in kernels}
        lines.append(
            f"{target}: {len(of_graphs)} graphs, {len(kernels)} kernels, {len(texts)} texts, "
            f"{seconds:.1f} s of planning, errors {dict(errors) or 'none'}"
        )
    return "\n".join(lines)


def compared(
    target: str, before: dict[str, Any], after: dict[str, Any], same_code: bool
) -> tuple[list[str], bool]:
    """Return the report of a target as lines, and whether it is as equal as is asked for.

    Args:
        target: the target.
        before: the recorded graphs by name.
        after: the same graphs by this version.
        same_code: whether changed texts are compiled.
    """
    lines, levels, other = [], Counter[str](), Counter[str]()
    for name in sorted(before):
        old, new = before[name], after.get(name, {"kernels": []})
        for what in ("key", "plan", "shared", "tiles"):
            other[what] += [k[what] for k in old["kernels"]] != [k[what] for k in new["kernels"]]
        pairs = list(zip(old["kernels"], new["kernels"], strict=False))
        changed = [
            (a, b)
            for a, b in pairs
            if blanked(a["text"], a["name"]) != blanked(b["text"], b["name"])
        ]
        same_count = len(old["kernels"]) == len(new["kernels"])
        if old.get("error") != new.get("error") or not same_count:
            level = "other kernels"
            detail = new.get("error") or f"{len(old['kernels'])} kernels, now {len(new['kernels'])}"
        elif not changed:
            level, detail = "E0", ""
        else:
            unlike = [
                b for a, b in changed if not (same_code and code(target, a) == code(target, b))
            ]
            level = "other code" if unlike else "E1"
            level = level if same_code and target != "opencl" else "other text"
            detail = f"{len(unlike or changed)} of {len(pairs)} kernels"
        levels[level] += 1
        lines += [f"  {level}: {target}/{name}: {detail}"] * (level != "E0")
    old_s, new_s = (sum(r.get("seconds", 0) for r in of.values()) for of in (before, after))
    counts = ", ".join(f"{n} {level}" for level, n in sorted(levels.items()))
    facts = ", ".join(f"{n} with other {what}" for what, n in other.items())
    head = f"{target}: {counts}; {facts}; planning {new_s:.1f} s, {new_s / max(old_s, 1e-9):.2f} x"
    return [head, *lines], set(levels) <= {"E0", "E1"}


def code(target: str, kernel: KernelRecord) -> object:
    """Return what a compiler makes of a kernel; its text for targets that have none here."""
    if target == "cpu":
        return cpu_code(kernel)
    return cuda_code(kernel) if target == "cuda" else kernel["text"]


def cpu_code(kernel: KernelRecord) -> bytes:
    """Return the section .text of a kernel by g++ -O3. Raises: CalledProcessError."""
    from passkit.passes.rtcgen import FLAGS, sections_of
    from passkit.runtime.native.build import kernel_flags

    source = kernel["text"].replace(kernel["name"], "kernel")
    with TemporaryDirectory() as folder:
        unit, compiled, section = (Path(folder) / n for n in ("k.cpp", "k.o", "text"))
        unit.write_text("".join(sections_of(source)) + f"namespace pk {{\n{source}}}\n")
        flags = [*kernel_flags(), *FLAGS]
        subprocess.run(("g++", *flags, "-c", unit, "-o", compiled), check=True, capture_output=True)
        subprocess.run(("objcopy", "-O", "binary", "-j", ".text", compiled, section), check=True)
        return section.read_bytes()


def cuda_code(kernel: KernelRecord) -> object:
    """Return the instructions of a kernel for sm_90."""
    import cubins
    import sass
    from machine_code.listing import listings

    text = f"{cubins.CUDA.preamble}\n{kernel['text'].replace(kernel['name'], 'kernel')}"
    image = cubins.nvrtc().compile(text, ("--gpu-architecture=sm_90", *cubins.OPTIONS))
    listing = listings(sass.disassembled(image.code))["kernel"]
    return [
        (i.offset, i.guard, i.opcode, tuple(x.text for x in i.operands))
        for i in listing.instructions
    ]


def compare(tree: Path, folder: Path, jobs: int, targets: Sequence[str], same_code: bool) -> int:
    """Print the report of each target. Return 1 unless all are as equal as is asked for."""
    after = records(tree, folder, jobs, targets)
    all_equal = True
    for target in targets:
        before = json.loads((folder / f"{target}.json").read_text())
        lines, is_equal = compared(target, before, after[target], same_code)
        print(*lines, sep="\n")
        all_equal &= is_equal
    return 0 if all_equal else 1


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("command", choices=("record", "compare", "print"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="graphs whose name contains this")
    parser.add_argument("--targets", default=",".join(TARGETS), help="the targets to plan for")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--same-code", action="store_true", help="compile changed texts")
    parser.add_argument("--tree", type=Path, default=HERE.parent, help="the checkout that plans")
    options = parser.parse_args(arguments)
    os.environ.setdefault("PYTHONHASHSEED", "0")
    tree, targets = options.tree.resolve(), options.targets.split(",")
    pk = _import(tree)
    if options.command != "record" and not list(options.folder.glob("graphs/*.json")):
        parser.error(f"{options.folder} has no graphs; `record` writes them, with the texts")
    if options.command == "compare":
        return compare(tree, options.folder, options.jobs, targets, options.same_code)
    if options.command == "record":
        print(f"{write_graphs(pk, options.folder, options.only)} graphs")
    write_records(options.folder, records(tree, options.folder, options.jobs, targets))
    return 0


if __name__ == "__main__":
    sys.path[:0] = [str(HERE)]
    sys.exit(main())
