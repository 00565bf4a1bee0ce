"""Packs of loop nests: text, invariants, races, and planted faults that the checks find."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve, frozen

import passkit as pk
from passkit.checks.pack_races import check_pack_races
from passkit.errors import CodeGenError, ParseError
from passkit.ir.loop import LaunchShape
from passkit.ir.pack import MAX_GROUPS, MAX_WORDS, STATIC_SHARED_NBYTES, PackIR, blocks_side_by_side
from passkit.ir.pack_text import parse_pack_ir
from passkit.ir.verify_pack import verify_pack
from passkit.schedule.actions import Bind, SplitAxis, Tile
from passkit.transforms.packs import lower_pack
from passkit.values.size import Extent, evaluate
from tests.kernel_interpreter import KernelFault, run_pack
from tests.nest_kernels import feeds_of
from tests.packs import GRAPHS, PackProgram, chains, program, program_of, random_outputs
from tests.planned import plan
from tests.schedule.nests import rule

SIZES = {"n": 1500, "m": 37}


def part_blocks(own: PackProgram) -> list[Extent]:
    """Return how many blocks each part of a kernel has of its nest."""
    pack = own.ir
    values = dict(zip(pack.sizes, own.kernel.sizes, strict=True))
    firsts = [values[part.first] for _, part in pack.parts]
    ends = [*firsts[1:], own.kernel.grid]
    return [
        end - first if part.blocks is None else values[part.blocks]
        for (_, part), first, end in zip(pack.parts, firsts, ends, strict=True)
    ]


def run(own: PackProgram, pack: PackIR, is_aligned: bool = True) -> None:
    """Run a pack, and compare its results. Raises: KernelFault, AssertionError."""
    sizes = [evaluate(n, SIZES) for n in own.kernel.sizes]
    feeds = feeds_of(own.graph, SIZES)
    expected = pk.interpret(own.graph, feeds)
    outputs = [np.zeros_like(np.asarray(a)) for a in expected]
    blocks = evaluate(own.kernel.grid, SIZES)
    run_pack(pack, blocks, sizes, [feeds[n] for n in own.inputs], outputs, is_aligned)
    for result, right in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(result, right, rtol=2e-3, atol=1e-5)


@pytest.mark.parametrize("name", GRAPHS)
def test_a_text_is_read_as_the_pack_that_it_is_of(name: str) -> None:
    """Reading the text of a pack gives the pack again."""
    pack = program(name).ir

    assert parse_pack_ir(str(pack)) == pack
    with_comment = evolve(pack, comment="of parts")
    assert parse_pack_ir(str(with_comment)).comment == "of parts"


@pytest.mark.parametrize("is_aligned", [True, False])
@pytest.mark.parametrize("name", ["odd sizes", "mixed", "unknown sizes", "a number for all"])
def test_packs_are_interpreted(name: str, is_aligned: bool) -> None:
    """An interpreter that knows only what packs mean gets the results of NumPy."""
    own = program(name)
    run(own, own.ir, is_aligned)


def test_the_forms_of_parts_are_dumped(tmp_path: Path) -> None:
    """With the option dump, CodeGen writes the forms of each part, and then the pack."""
    own = program("two parts")
    plan(pk.Graph(GRAPHS["two parts"]()), target="cuda", dump=tmp_path)

    files = sorted(tmp_path.glob("*.ir"))
    names = [f.stem.partition(f"{own.kernel.name}_")[2] for f in files]
    assert names.count("build_loops") == names.count("guard_alignment") == 2
    assert names[-1] == "pack" and parse_pack_ir(files[-1].read_text()) == own.ir


REFUSED = [
    ("pack 1x256", "packet 1x256", "line 1, column 1: expected 'pack', got 'packet'"),
    ("pack 1x256", "pack 256", "line 1, column 6: expected the threads of a block"),
    ("part x0, x1, y0", "x0, x1, y0", "expected 'part', got 'x0'"),
    ("first n4", "begin n4", "expected 'first', got 'begin'"),
    ("kernel 1x256", "nest 1x256", "expected 'kernel', got 'nest'"),
]


@pytest.mark.parametrize(("old", "new", "message"), REFUSED)
def test_texts_that_are_no_packs_are_refused(old: str, new: str, message: str) -> None:
    """The error has line and column, what was expected and what came."""
    text = str(program_of(chains((5, 1500, 70))).ir)
    old = old.replace("n4", text.split(" first ")[1].split()[0])
    new = new.replace("n4", text.split(" first ")[1].split()[0])
    with pytest.raises(ParseError, match=message):
        parse_pack_ir(text.replace(old, new, 1))


@frozen
class PackFault:
    """A change of the text of a pack.

    Attributes:
        program: the name of a program of `tests.packs`.
        old: what is replaced, once.
        new: what takes its place.
        message: what the check of invariants says; "" where it sees nothing.
        is_race: whether the check of races and blocks finds it.
    """

    program: str
    old: str
    new: str
    message: str = ""
    is_race: bool = False


FAULTS = {
    "parts with one output": PackFault(
        "two parts", "part x2, x3, y1", "part x2, x3, y0", "2 parts write y0"
    ),
    "an unknown parameter": PackFault(
        "two parts", "part x0, x1, y0", "part x0, x9, y0", "x9 is no parameter"
    ),
    "an input in place of an output": PackFault(
        "two parts", "part x0, x1, y0", "part x0, y0, x1", "y0 is float32 written, and the nest's"
    ),
    "one buffer twice": PackFault(
        "two parts", "part x0, x1, y0", "part x0, x0, y0", "x0 takes the place of two buffers"
    ),
    "too few buffers": PackFault(
        "two parts", "part x0, x1, y0", "part x0, y0", "has 2 buffers and 1 sizes, its nest 3 and 1"
    ),
    "an unknown size": PackFault("two parts", "size n0 first", "size n7 first", "n7 is no size"),
    "a size twice": PackFault("two parts", "size n0, n1", "size n0, n0", "n0 is declared twice"),
    "another dtype": PackFault(
        "two parts", "param x1: f32", "param x1: f64", "x1 is float64, and the nest's x1 is float32"
    ),
    "threads that are no blocks": PackFault(
        "two parts", "pack 1x256", "pack 1x128", "blocks of 128 threads have no block of 256"
    ),
    "memory that is shared in one": PackFault(
        "two parts", "part x0", "aliased x0, y0\npart x0", "x0 may share memory, or x0 of its nest"
    ),
    "no number of blocks": PackFault(
        "mixed", " blocks n", " # n", "2 blocks of the nest in a block"
    ),
    "rows of threads in rows of others": PackFault(
        "mixed", "pack 1x256", "pack 2x128", "1x256 threads of a nest in blocks of 2x128"
    ),
    "a fault inside of a nest": PackFault(
        "two parts", "width 4 stream", "width 3 stream", "an access of 3 elements"
    ),
    "parts that begin together": PackFault("two parts", "first n3", "first n2", is_race=True),
    "a part that ends early": PackFault("two parts", "first n2", "first n1", is_race=True),
    "sizes of another part": PackFault("odd sizes", "size n0 ", "size n1 "),
    "threads that meet": PackFault("odd sizes", "tx * 4 + first", "tx * 0 + first", is_race=True),
}


@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults(name: str) -> None:
    """Each fault is found: by the invariants, by the check of races, or by the interpreter."""
    fault = FAULTS[name]
    own = program(fault.program)
    text = str(own.ir)
    assert fault.old in text
    pack = parse_pack_ir(text.replace(fault.old, fault.new, 1 if not fault.is_race else -1))
    if fault.message:
        with pytest.raises(CodeGenError, match=fault.message):
            verify_pack(pack, "a test")
        return
    verify_pack(pack, "a test")
    if fault.is_race:
        with pytest.raises(CodeGenError, match="begins at block|has a race|divide"):
            check_pack_races(pack, "k", own.kernel.sizes, part_blocks(own), own.kernel.grid)
        return
    with pytest.raises((KernelFault, AssertionError)):
        run(own, pack)


def test_blocks_of_no_part_are_refused() -> None:
    """The grid ends where the last part does, and a nest has the blocks that its argument says."""
    own = program("mixed")
    pack, sizes, blocks = own.ir, own.kernel.sizes, own.kernel.grid
    counts = part_blocks(own)
    with pytest.raises(CodeGenError, match=f"kernel k has {blocks + 1} blocks, and its parts end"):
        check_pack_races(pack, "k", sizes, counts, blocks + 1)
    number = next(k for k, (_, part) in enumerate(pack.parts) if part.blocks is not None)
    wrong = [n + (k == number) for k, n in enumerate(counts)]
    with pytest.raises(CodeGenError, match=f"has {wrong[number]} blocks of its nest, and its arg"):
        check_pack_races(pack, "k", sizes, wrong, blocks)
    second = pack.sizes.index(list(pack.parts)[1][1].first)
    late = tuple(n + (k == second) for k, n in enumerate(sizes))
    message = f"a part begins at block {late[second]}, and the part before ends at block "
    with pytest.raises(CodeGenError, match=f"{message}{sizes[second]}"):
        check_pack_races(pack, "k", late, counts, blocks)


def test_more_arguments_than_a_kernel_has_are_refused() -> None:
    """A kernel has at most 4 KB of arguments."""
    pack = program("two parts").ir
    many = evolve(pack, sizes=tuple(f"n{k}" for k in range(MAX_WORDS)))
    with pytest.raises(CodeGenError, match=f"{MAX_WORDS + 6} arguments exceed {MAX_WORDS}"):
        verify_pack(many, "a test")


@pytest.mark.parametrize(
    ("all_threads", "threads", "nbytes", "blocks"),
    [
        (256, 64, 0, 4),
        (512, 160, 0, 3),
        (1024, 32, 0, MAX_GROUPS),
        (1024, 64, 1024, MAX_GROUPS),
        (1024, 64, 20000, 2),
        (256, 64, STATIC_SHARED_NBYTES // 4, 4),
        (256, 64, STATIC_SHARED_NBYTES // 4 + 16, 3),
        (1024, 32, STATIC_SHARED_NBYTES, 1),
        (128, 128, STATIC_SHARED_NBYTES + 16, 1),
    ],
)
def test_blocks_side_by_side(all_threads: int, threads: int, nbytes: int, blocks: int) -> None:
    """Threads, barriers and shared memory each limit them; there is always one."""
    own = LaunchShape(1, threads, 1)

    assert blocks_side_by_side(LaunchShape(1, all_threads, 1), own, nbytes) == blocks
    assert blocks * nbytes <= STATIC_SHARED_NBYTES or blocks == 1


@pytest.mark.parametrize("is_aligned", [True, False])
def test_a_block_has_as_many_blocks_of_a_nest_as_barriers(is_aligned: bool) -> None:
    """A block of 32 warps runs 15 blocks of one warp side by side; its other warps are idle."""

    def threads_by_size(nest: Any, gpu: Any) -> Any:
        threads = 32 if nest.axes[0].extent < 600 else 1024
        return [Tile("i0", threads), SplitAxis("i0", threads, Bind.THREAD_X)]

    with rule(threads_by_size):
        own = program_of(chains((500, 2000)))
    pack = own.ir

    assert pack.launch.threads == 1024
    assert [pack.side_by_side(nest) for nest in pack.nests] == [MAX_GROUPS, 1]
    assert own.kernel.grid == 2 + 2  # 16 blocks of 32 points, and 2 of 1024
    assert f"* {MAX_GROUPS} + pack_group" in own.kernel.source
    assert f"if (pack_group < {MAX_GROUPS} && " in own.kernel.source
    run(own, pack, is_aligned)


def aliased_program(outputs: Any) -> tuple[Any, Any]:
    """Return the group and the schedule of a graph that is one kernel."""
    planned = plan(pk.Graph(outputs), target="cuda")
    (node,) = planned.attrs["kernel"]
    return planned.attrs["subgraph"][node], planned.attrs["schedule"][node]


def test_memory_that_two_parts_share_is_refused() -> None:
    """An output may only overwrite an input that its own part reads, and no other one."""
    factor = pk.var("w", (300,))
    group, schedule = aliased_program(
        [pk.var("x", (300,)) * factor, pk.ops.exp(pk.var("y", (40,))), pk.var("z", (300, 4)) * 2.0]
    )
    names = [n.name for n in group.graph.inputs]
    output = len(names)
    for shared, message in (
        ((names.index("y"), output), "y0 may share memory with an input of another part"),
        ((names.index("x"), output), ""),
    ):
        lowered = lower_pack(group, schedule, frozenset(shared))
        if message:
            with pytest.raises(CodeGenError, match=message):
                verify_pack(lowered.kernel, "a test")
        else:
            verify_pack(lowered.kernel, "a test")


@pytest.mark.parametrize("seed", range(12))
def test_random_packs(seed: int) -> None:
    """Random parts in one kernel have the results of NumPy, and their texts are read again."""
    outputs = random_outputs(np.random.default_rng(seed))
    planned = plan(pk.Graph(outputs), target="cuda")
    for node, kernel in planned.attrs["kernel"].items():
        if not isinstance(kernel.ast, PackIR):
            continue
        assert parse_pack_ir(str(kernel.ast)) == kernel.ast
        graph = pk.Graph(list(node.entries))
        feeds = feeds_of(graph)
        arrays = [feeds[planned.names[e.node]] for e in node.inputs]
        expected = [np.asarray(a) for a in pk.interpret(graph, feeds)]
        results = [np.zeros_like(a) for a in expected]
        run_pack(kernel.ast, kernel.grid, kernel.sizes, arrays, results, bool(seed % 2))
        for result, right in zip(results, expected, strict=True):
            np.testing.assert_allclose(result, right, rtol=5e-3, atol=5e-3)
