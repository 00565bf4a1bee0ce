"""Packs of several phases: text, invariants, races, and planted faults that the checks find."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from attrs import evolve, frozen

import passkit as pk
from passkit.checks.pack_races import check_pack_races
from passkit.errors import CodeGenError, ParseError
from passkit.graph.kernel import Kernel
from passkit.ir.pack import PackIR
from passkit.ir.pack_text import parse_pack_ir
from passkit.ir.verify_pack import verify_pack
from passkit.transforms.packs import lower_pack
from passkit.values.size import evaluate
from tests.kernel_interpreter import KernelFault, run_pack
from tests.nest_kernels import feeds_of
from tests.planned import plan, target
from tests.random_phases import random_phases

PROGRAMS = {
    "total": "x: f32[300, 512]; t = tanh(x); return div(t, add(reduce_sum(abs(t)), 1.0))",
    "columns": (
        "x: f32[n, 96]; m = reduce_mean(x, axis=0, keepdims=true); d = sub(x, m);"
        "v = reduce_mean(mul(d, d), axis=0, keepdims=true); return div(d, add(v, 1.0))"
    ),
}
"""Graphs whose operators are one kernel of two phases, by name."""
SIZES = (37, 1)


@frozen(eq=False)
class PhasedProgram:
    """A graph that is one kernel of several phases.

    Attributes:
        graph: the results of the kernel, in its order.
        inputs: the names of its inputs, in its order.
        kernel: its kernel.
    """

    graph: pk.Graph
    inputs: tuple[str, ...]
    kernel: Kernel

    @property
    def ir(self) -> PackIR:
        """Return the kernel in final form."""
        assert isinstance(self.kernel.ast, PackIR)
        return self.kernel.ast


def program_of(planned: pk.Graph) -> PhasedProgram | None:
    """Return the kernel of a planned graph that has the most phases; None if all have one."""
    kernels = planned.attrs["kernel"]
    node = max(kernels, key=lambda n: len(kernels[n].phases))
    if not kernels[node].phases:
        return None
    body = planned.attrs["subgraph"][node].graph
    return PhasedProgram(body, tuple(body.names[n] for n in body.inputs), kernels[node])


@cache
def program(name: str) -> PhasedProgram:
    """Return the program of this name."""
    graph = pk.parse(PROGRAMS[name])
    operators = [graph.names[n] for n in graph.nodes if n.op is not None]
    own = program_of(plan(graph, target="cuda", keep_together=[operators]))
    assert own is not None
    return own


def run(own: PhasedProgram, pack: PackIR, n: int, is_aligned: bool = True) -> None:
    """Run a pack, and compare its results. Raises: KernelFault, AssertionError."""
    values = {"n": n}
    sizes = [evaluate(size, values) for size in own.kernel.sizes]
    feeds = feeds_of(own.graph, values)
    expected = [np.asarray(a) for a in pk.interpret(own.graph, feeds)]
    outputs = [np.zeros_like(a) for a in expected]
    blocks = evaluate(own.kernel.grid, values)
    run_pack(pack, blocks, sizes, [feeds[name] for name in own.inputs], outputs, is_aligned)
    for result, right in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(
            result.astype(np.float64), right.astype(np.float64), rtol=5e-3, atol=5e-3
        )


@pytest.mark.parametrize("is_aligned", [True, False])
@pytest.mark.parametrize("name", PROGRAMS)
def test_phases_are_interpreted(name: str, is_aligned: bool) -> None:
    """An interpreter that knows only what phases mean gets the results of NumPy."""
    own = program(name)
    assert len(own.ir.phases) == 2 == len(own.kernel.phases)
    assert parse_pack_ir(str(own.ir)) == own.ir
    for n in SIZES:
        run(own, own.ir, n, is_aligned)


def test_a_phase_loads_what_an_earlier_one_stored_as_elements_that_change() -> None:
    """The read-only path of a GPU may have an old value, so that these loads do not take it."""
    source = program("columns").kernel.source
    _, second = source.split("_1_0(", 1)
    assert "wait_of_grid(&" in second
    loads = [line for line in second.splitlines() if "load_" in line and " x1 + " in line]
    assert loads and all("load_changing" in line for line in loads)


@frozen
class PhaseFault:
    """A change of the text of a pack of several phases.

    Attributes:
        program: the name of a program.
        old: what is replaced, once.
        new: what takes its place.
        message: what the check of invariants says; "" where it sees nothing.
        race: what the check of races and blocks says; "" where it sees nothing.
    """

    program: str
    old: str
    new: str
    message: str = ""
    race: str = ""


FAULTS = {
    "phases in another order": PhaseFault(
        "columns", "", "", "phase 0 reads y1, which no phase in front of it writes"
    ),
    "one phase with an end": PhaseFault("columns", "", "", "a phase of 1 ends at block n"),
    "a phase without its end": PhaseFault("columns", "", "", "a phase of 2 ends at block None"),
    "an end that is no size": PhaseFault("total", "phase n2", "phase m2", "m2 is no size argument"),
    "an output of two phases": PhaseFault(
        "total", "y1, y0", "y1, y1", "y1 is float32 written, and the nest's y0 is float32"
    ),
    "an output of no phase": PhaseFault(
        "total", "size n0", "param y2: f32[5] written\nsize n0", "0 phases write y2"
    ),
    "a value that does not change": PhaseFault(
        "columns", "aliased x1", "# aliased", "y1 may share memory, or x1 of its nest, and not"
    ),
    "memory that changes between phases": PhaseFault(
        "columns", "", "", "x0 may share memory in a kernel of 2 phases"
    ),
    "a phase that ends early": PhaseFault("total", "phase n2", "phase n1", race="its parts end at"),
}


def changed(fault: PhaseFault, name: str) -> PackIR:
    """Return the pack of a program with the fault of this name."""
    pack = program(fault.program).ir
    first, second = pack.phases
    if name == "phases in another order":
        return evolve(pack, phases=(second, first))
    if name == "one phase with an end":
        return evolve(pack, phases=(evolve(first, nests=(*first.nests, *second.nests)),))
    if name == "a phase without its end":
        return evolve(pack, phases=(first, evolve(second, end=None)))
    if name == "memory that changes between phases":
        nests = [
            evolve(nest, kernel=evolve(nest.kernel, aliased=nest.kernel.aliased | {"x0"}))
            for nest in pack.nests
        ]
        phases = tuple(evolve(p, nests=(n,)) for p, n in zip(pack.phases, nests, strict=True))
        return evolve(pack, phases=phases, aliased=frozenset(["x0"]))
    text = str(pack)
    assert fault.old in text
    return parse_pack_ir(text.replace(fault.old, fault.new, 1))


@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults(name: str) -> None:
    """Each fault is found by the invariants, or by the check of races."""
    fault = FAULTS[name]
    own, pack = program(fault.program), changed(fault, name)
    if fault.message:
        with pytest.raises(CodeGenError, match=fault.message):
            verify_pack(pack, "a test")
        return
    verify_pack(pack, "a test")
    counts = part_blocks(own)
    check_pack_races(own.ir, "k", own.kernel.sizes, counts, own.kernel.grid)
    with pytest.raises(CodeGenError, match=fault.race):
        check_pack_races(pack, "k", own.kernel.sizes, counts, own.kernel.grid)


def part_blocks(own: PhasedProgram) -> tuple[pk.Size | int, ...]:
    """Return how many blocks each part of a kernel has of its nest."""
    graph = pk.parse(PROGRAMS["total"])
    operators = [graph.names[n] for n in graph.nodes if n.op is not None]
    planned = plan(graph, target="cuda", keep_together=[operators])
    ((node, group),) = planned.attrs["subgraph"].items()
    lowered = lower_pack(group, planned.attrs["schedule"][node], frozenset())
    assert lowered.kernel == own.ir
    return lowered.part_blocks


def test_a_phase_that_is_left_out_is_noticed() -> None:
    """The results of a phase without blocks are not stored."""
    own = program("total")
    pack = own.ir
    sizes = tuple(f"{n}_own" if n == pack.phases[1].end else n for n in pack.sizes)
    empty = evolve(
        pack,
        sizes=(*sizes, "none"),
        phases=(pack.phases[0], evolve(pack.phases[1], end="none")),
    )
    kernel = evolve(own.kernel, sizes=(*own.kernel.sizes, 0))
    with pytest.raises(KernelFault, match="is not stored"):
        run(PhasedProgram(own.graph, own.inputs, kernel), empty, 1)


def test_a_text_whose_phase_has_no_name_is_refused() -> None:
    """The error has the place, and says what is needed."""
    text = str(program("total").ir).replace("phase n", "phase 4 n", 1)
    with pytest.raises(ParseError, match="expected a name, got '4'"):
        parse_pack_ir(text)


@pytest.mark.parametrize("seed", range(300, 312))
def test_random_phases(seed: int) -> None:
    """Random groups of phases have the results of NumPy, and their texts are read again."""
    graph, names = random_phases(seed)
    small = target("cuda", scratch=2048, tile=64, short_tile=64, parallel=1e-9)
    planned = plan(graph, target=small, keep_together=names)
    for node, kernel in planned.attrs["kernel"].items():
        assert isinstance(kernel.ast, PackIR) or not kernel.phases
        if not kernel.phases:
            continue
        body = planned.attrs["subgraph"][node].graph
        own = PhasedProgram(body, tuple(body.names[n] for n in body.inputs), kernel)
        assert parse_pack_ir(str(own.ir)) == own.ir
        for n in SIZES:
            run(own, own.ir, n, bool(seed % 2))
