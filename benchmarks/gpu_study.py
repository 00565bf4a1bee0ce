"""Kernels of the GPU study as machine code: printed ones beside those written by hand.

    python benchmarks/gpu_study.py [--rows softmax] [--arch 90] [--texts]
    python benchmarks/gpu_study.py --write   # to tests/golden/gpu_study.txt; with --rows, these
    python benchmarks/gpu_page.py --write    # then to docs/gpu-kernels.md

For each row: registers, spills, shared memory, slow paths, loads before the first use, bytes in
flight and instructions an element, by NVRTC and nvdisasm for sm_80, sm_90 and sm_100; no device. It
exits 1 where a line differs from the table, by the table's compiler.

How it counts: warps of a block in the middle of the grid are executed, instruction by instruction
(`machine_code`), with the launch's sizes and addresses and with normally distributed inputs. So
loops run as often as on a device, branches go where these inputs lead, and every access must lie
in an array. Instructions an element are those that all warps issue, 32 lanes each, over the row's
elements: pairs of figure1, else elements of one input. A thread waits where an instruction reads
what is still being loaded; all loads before that are in flight, and have arrived afterwards. Bytes
in flight are the average over the waits for large arrays; on a multiprocessor, times the threads
that registers, shared memory and the grid leave there. Loads stand before the first use where
there is one wait between two backward branches, taken or not. Slow calls are the branches around
calls of slow paths that are executed for an element: a quarter and more is one in an inner loop. A
row may have as many as the kernel by hand, which are Adam's root and quotient. A line
tells the turns of an access of shared memory, if banks conflict: 1 is without conflicts. What all
this does not see: caches, and time.
"""

from __future__ import annotations

import argparse
import os
import re
import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import adam  # noqa: E402  (after the path)
import cubins  # noqa: E402
import gpu  # noqa: E402
import peers  # noqa: E402
import sass  # noqa: E402
from hand.gpu_kernels import (  # noqa: E402
    HandLaunch,
    adam_launch,
    adam_packed_launch,
    hand_launch,
    tensor_tables,
)
from machine_code.figures import CompiledKernel, KernelFigures, measured  # noqa: E402
from machine_code.listing import constant_words, listings  # noqa: E402
from machine_code.memory import placed  # noqa: E402
from machine_code.warp import WarpLaunch  # noqa: E402
from workloads import Workload  # noqa: E402

import passkit as pk  # noqa: E402
from passkit.program.planning import planned  # noqa: E402
from passkit.runtime.cuda.compiler import program_text  # noqa: E402
from passkit.runtime.cuda.launch_config import launch_config, size_arguments  # noqa: E402
from passkit.values.size import evaluate  # noqa: E402

TABLE = cubins.GOLDEN / "gpu_study.txt"
ARCHITECTURES = (80, 90, 100)
N = 1 << 26
TENSORS = adam.ROWS["adam30"]
COPY_KB, READ_KB, RATIO, SLOW = 40, 64, 1.25, 0.25
"""The limits of a row: KB in flight on a multiprocessor where results are as large as inputs,
where inputs are only read; instructions over those of the kernel written by hand; and how many
slow calls an element it may have beyond that one's."""
LEAST_TURNS = 1.005
"""The turns of an access of shared memory from which on they stand in a line."""
ANYWHERE = 2**31 - 1


@frozen
class StudyLaunch:
    """A kernel's text, and how it is launched.

    Attributes:
        text: all that is compiled.
        name: of the kernel.
        arrays: bytes of its arrays, whether their floats are positive, and their integers.
        numbers: its other arguments, as bytes.
        grid, block, shared: blocks, threads along x and y, dynamic shared memory.
        blocks: those that are executed; the middle one if there are none.
    """

    text: str = field(repr=False)
    name: str
    arrays: tuple[tuple[int, bool, np.ndarray | None], ...]
    numbers: bytes
    grid: int
    block: tuple[int, int]
    shared: int = 0
    blocks: tuple[int, ...] = ()


@frozen
class StudyRow:
    """A row: passkit's launches beside those written by hand.

    Attributes:
        name: the row.
        elements: by which instructions are divided.
        least_kb: KB in flight that it needs; 0 where instructions bind, not memory.
        printed, by_hand: functions that return the launches.
    """

    name: str
    elements: int
    least_kb: int
    printed: Callable[[], list[StudyLaunch]]
    by_hand: Callable[[], list[StudyLaunch]]


def printed_launches(graph: Any, is_positive: bool = False, **options: Any) -> list[StudyLaunch]:
    """Return the launches of a graph's kernels, as passkit plans them."""
    plan = planned(graph, "CodeGen", target="cuda", **options)
    kernels = [plan.attrs["kernel"][n] for n in plan.nodes if n in plan.attrs["kernel"]]
    launches = []
    for kernel in kernels:
        values = dict(zip(kernel.ast.sizes, size_arguments(kernel, {}), strict=True))
        config = launch_config(kernel, {}, blocks=ANYWHERE, threads=256)
        arrays = tuple(
            (int(evaluate(b.extent, values)) * b.dtype.nbytes, is_positive, None)
            for b in kernel.ast.params
        )
        if getattr(kernel.ast, "counters", 0):
            arrays += ((4 * kernel.ast.counters, False, np.zeros(kernel.ast.counters, np.uint32)),)
        several = config.grid > 1 and len(kernel.ast.params) > 8  # tensors packed into one kernel
        launches.append(
            StudyLaunch(
                program_text(kernel),
                kernel.name,
                arrays,
                b"".join(struct.pack("<q", n) for n in size_arguments(kernel, {})),
                config.grid,
                config.block,
                0,
                blocks=spread(config.grid) if several else (),
            )
        )
    return launches


def spread(grid: int, count: int = 12) -> tuple[int, ...]:
    """Return blocks at equal distances."""
    return tuple(sorted({(2 * k + 1) * grid // (2 * count) for k in range(count)}))


def of_workload(work: Workload) -> Callable[[], list[StudyLaunch]]:
    """Return the function that plans a workload."""

    def launches() -> list[StudyLaunch]:
        graph, options = peers.passkit_graph(work, work.together)
        return printed_launches(graph, **options)

    return launches


def of_adam(sizes: Sequence[int]) -> Callable[[], list[StudyLaunch]]:
    """Return the function that plans a step of Adam, in place."""

    def launches() -> list[StudyLaunch]:
        updates = []
        for k, n in enumerate(sizes):
            old = [pk.state(f"{kind}{k}", np.zeros(n, np.float32)) for kind in "pmv"]
            new = adam.updated(*old, pk.var(f"g{k}", (n,), "float32"), pk.ops.sqrt)
            updates += [(o.node, x) for o, x in zip(old, new, strict=True)]
        return printed_launches(pk.Graph([], updates), is_positive=True)

    return launches


def by_hand(hand: HandLaunch | None) -> Callable[[], list[StudyLaunch]]:
    """Return the function that launches a kernel written by hand."""
    assert hand is not None

    def launches() -> list[StudyLaunch]:
        arrays = tuple((4 * n, hand.name == "adam", None) for n in hand.arrays)
        numbers, block = hand.number_bytes, (hand.threads, 1)
        return [StudyLaunch(hand.text, hand.name, arrays, numbers, hand.grid, block)]

    return launches


def adam_packed() -> list[StudyLaunch]:
    """Return the launch of one kernel for all tensors, whose tables are on the device."""
    hand = adam_packed_launch(TENSORS)
    floats = [(4 * n, True, None) for n in TENSORS for _ in range(4)]

    def with_tables(begins: Sequence[int]) -> list[tuple[int, bool, np.ndarray | None]]:
        addresses = [begins[k : k + 4] for k in range(0, len(begins), 4)]
        tables = tensor_tables(addresses, TENSORS)
        return [*((t.nbytes, False, t) for t in tables), *floats]

    regions = placed(with_tables([0] * len(floats)))
    arrays = with_tables([r.begin for r in regions[-len(floats) :]])
    launch = StudyLaunch(
        hand.text,
        hand.name,
        tuple(arrays),
        hand.number_bytes,
        hand.grid,
        (hand.threads, 1),
        blocks=spread(hand.grid),
    )
    return [launch]


def workload_rows() -> Iterator[StudyRow]:
    """Yield rows of the workloads of `gpu.py`, but the one whose kernels are another's, too."""
    for work in gpu.rows(256):
        if work.name == "gelu_custom_ref":
            continue
        shapes = [shape for _, shape in work.inputs]
        elements, least = prod(shapes[0]), COPY_KB
        if work.name == "figure1":  # pairs; bound by instructions
            elements, least = prod(shapes[0][:2]) * shapes[0][1], 0
        elif work.name in ("colsum", "fullsum"):
            least = READ_KB
        hand = by_hand(hand_launch(work.name, shapes))
        yield StudyRow(work.label, elements, least, of_workload(work), hand)


@cache
def rows() -> dict[str, StudyRow]:
    """Return all rows by their names."""
    one = by_hand(adam_launch(N))
    adams = (
        StudyRow(f"adam {N}", N, COPY_KB, of_adam([N]), one),
        StudyRow("adam30", sum(TENSORS), COPY_KB, of_adam(TENSORS), adam_packed),
    )
    return {r.name: r for r in (*workload_rows(), *adams)}


def compiled(launch: StudyLaunch, architecture: int) -> CompiledKernel:
    """Compile a launch's kernel. Raises: NoDisassemblerError; RuntimeError where nvdisasm fails."""
    options = (f"--gpu-architecture=sm_{architecture}", *cubins.OPTIONS)
    image = cubins.nvrtc().compile(launch.text, options)
    log = image.log[image.log.index(f"entry function '{launch.name}'") :]
    log = log.partition("Compile time")[0]
    (registers,), spills, shared = (
        [int(n) for n in re.findall(pattern, log)]
        for pattern in (r"Used (\d+) registers", r"(\d+) bytes spill", r"(\d+) bytes smem")
    )
    listing = listings(sass.disassembled(image.code))[launch.name]
    listing = evolve(listing, constants=constant_words(image.code, launch.name))
    local = sum(i.name in sass.LOCAL for i in listing.instructions)
    return CompiledKernel(launch.name, listing, registers, sum(spills) + local, sum(shared))


def figures(launch: StudyLaunch, architecture: int) -> KernelFigures:
    """Compile a launch for an architecture and measure it."""
    kernel = compiled(launch, architecture)
    regions = placed(launch.arrays)
    addresses = b"".join(struct.pack("<Q", r.begin) for r in regions)
    if launch.name == "adam_packed":  # the tensors are in its first table
        addresses = addresses[: 3 * 8]
    parameters = addresses + launch.numbers
    shape = WarpLaunch(launch.grid, launch.block, parameters, architecture)
    return measured(kernel, shape, regions, launch.shared, launch.blocks or None)


@frozen
class SideFigures:
    """Figures of all launches of a row: sums, and those of the launch that loads most."""

    main: KernelFigures
    kernels: int
    instructions: float
    spilled: int
    slow_calls: float
    waits: int

    def text(self) -> str:
        """Return the figures as part of a line of the table."""
        main = self.main
        return (
            f"{self.instructions:.1f} instructions, {main.registers} registers, "
            f"{self.spilled} spilled, {main.shared} B shared, {self.slow_calls:.2f} slow calls, "
            f"{self.waits} waits, {main.in_flight:.0f} B a thread, "
            f"{main.per_unit / 1024:.0f} KB in flight, {100 * main.sectors:.0f} % of sectors, "
            f"{self.kernels} kernels"
            + (f", {main.turns:.2f} turns a shared access" if main.turns > LEAST_TURNS else "")
        )


def side(launches: Sequence[StudyLaunch], architecture: int, elements: int) -> SideFigures:
    """Measure all launches of a row."""
    each = [figures(x, architecture) for x in launches]
    main = max(each, key=lambda f: f.loaded)
    return SideFigures(
        main,
        len(each),
        sum(f.issued for f in each) * 32 / elements,
        sum(f.spilled for f in each),
        sum(f.slow_calls for f in each) * 32 / elements,
        max(f.waits for f in each if f.loaded >= main.loaded / 8),
    )


@cache
def sides(name: str, architecture: int) -> tuple[SideFigures, SideFigures]:
    """Return the figures of a row on an architecture: passkit's, and those by hand."""
    row = rows()[name]
    return side(printed_of(name), architecture, row.elements), side(
        row.by_hand(), architecture, row.elements
    )


@cache
def printed_of(name: str) -> list[StudyLaunch]:
    """Return passkit's launches of a row."""
    return rows()[name].printed()


def misses(name: str, architecture: int) -> list[str]:
    """Return what a row lacks on an architecture, each as a few words with the figure."""
    own, hand = sides(name, architecture)
    least = rows()[name].least_kb
    ratio, kib = own.instructions / hand.instructions, own.main.per_unit / 1024
    lacks = [f"{own.spilled} spilled"] * bool(own.spilled)
    lacks += [f"{own.slow_calls:.2f} slow calls"] * (own.slow_calls > hand.slow_calls + SLOW)
    if least:
        lacks += [f"{own.waits} waits for loads"] * (own.waits > 1)
        lacks += [f"{kib:.0f} of {least} KB in flight"] * (kib < least)
    return lacks + [f"{ratio:.2f} x the instructions"] * (ratio > RATIO)


def table_lines(names: Iterable[str], architectures: Iterable[int]) -> list[str]:
    """Return two lines of the table for each row and architecture: printed, and by hand."""
    for name in names:
        printed_of(name)
    jobs = [(name, a) for name in names for a in architectures]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        measured_sides = list(pool.map(lambda job: sides(*job), jobs))
    return [
        f"sm_{a} {name}, {who}: {figures.text()}"
        for (name, a), both in zip(jobs, measured_sides, strict=True)
        for who, figures in zip(("printed", "by hand"), both, strict=True)
    ]


def differing_lines(lines: Iterable[str]) -> list[str]:
    """Return lines that are not in the table, if the compiler is the table's."""
    version, *entries = TABLE.read_text().splitlines()
    return [x for x in lines if x not in entries] if version == str(cubins.nvrtc()) else []


def write_table(lines: Iterable[str]) -> None:
    """Write lines to the table; those of other rows stay if the compiler is the table's."""
    version, *entries = TABLE.read_text().splitlines() if TABLE.exists() else ["", ""]
    same = version == str(cubins.nvrtc())
    by_name = {x.rpartition(": ")[0]: x for x in (*(entries if same else ()), *lines)}
    order = [
        f"sm_{a} {name}, {who}"
        for name in rows()
        for a in ARCHITECTURES
        for who in ("printed", "by hand")
    ]
    ordered = [by_name[name] for name in order if name in by_name]
    TABLE.write_text("\n".join([str(cubins.nvrtc()), *ordered]) + "\n")


def worse_lines(lines: Iterable[str]) -> list[str]:
    """Return lines of printed kernels with a figure that is worse than in the table.

    Instructions may be 2 % more and bytes in flight 2 % less. By another compiler than the
    table's, only spills count.
    """
    version, *entries = TABLE.read_text().splitlines()
    before = {x.rpartition(": ")[0]: sass.numbers(x) for x in entries}
    same = version == str(cubins.nvrtc())

    def worse(line: str) -> bool:
        new, old = sass.numbers(line), before.get(line.rpartition(": ")[0], {})
        if not old or not same:
            return bool(new["spilled"])
        more = ("spilled", "slow calls", "waits", "kernels")
        return (
            any(new[n] > old[n] + 0.01 for n in more)
            or new["instructions"] > 1.02 * old["instructions"] + 0.1
            or new["KB in flight"] < 0.98 * old["KB in flight"] - 1
        )

    return [x for x in lines if ", printed: " in x and worse(x)]


def main(arguments: list[str] | None = None) -> int:
    """Run the command line. Return 1 where a line differs from the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--rows", default="", help="rows whose name contains this")
    parser.add_argument("--arch", type=int, choices=ARCHITECTURES, help="one architecture")
    parser.add_argument("--texts", action="store_true", help="print the kernels' texts, too")
    parser.add_argument("--write", action="store_true", help="write these rows to the table")
    options = parser.parse_args(arguments)
    names = [name for name in rows() if options.rows in name]
    architectures = (options.arch,) if options.arch else ARCHITECTURES
    if options.texts:
        for name in names:
            for launch in printed_of(name):
                print(
                    f"// {name}: {launch.grid} blocks of {launch.block}, {launch.shared} B shared"
                )
                print(launch.text.rpartition("#line 1 ")[2])
    lines = table_lines(names, architectures)
    print("\n".join([str(cubins.nvrtc()), *lines]))
    for name in names:
        for a in architectures:
            print(f"sm_{a} {name}: {', '.join(misses(name, a)) or 'met'}")
    if options.write:
        write_table(lines)
        return 0
    wrong = differing_lines(lines)
    print(f"{len(lines)} lines, {len(wrong)} other than in the table", *wrong, sep="\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
