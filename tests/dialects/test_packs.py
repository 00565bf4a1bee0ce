"""Kernels of several loop nests on GPUs: results on the emulator, for any sizes and addresses."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.ir.loop import KernelIR
from passkit.ir.pack import MAX_WORDS, PackIR
from passkit.values.size import evaluate
from tests.emulator import EmulatedDevice
from tests.emulator.device import EmulatedError
from tests.emulator.fake_driver import fake_cuda
from tests.emulator.programs import emulated
from tests.nest_kernels import feeds_of
from tests.packs import GRAPHS, PackProgram, chain, chains, o, program, program_of, sums
from tests.planned import agrees, plan


def at(array: Any, offset: int) -> Any:
    """Return a copy of an array at so many bytes behind a multiple of 16."""
    raw = np.zeros(array.nbytes + 32, np.uint8)
    start = -raw.ctypes.data % 16 + offset
    copy = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


@cache
def empty_programs() -> tuple[PackProgram, ...]:
    """Return programs of parts of unknown sizes, the first, a middle and the last."""
    return (
        program("unknown sizes"),
        program_of([chain(0, "n"), chain(1, "m")]),
        program_of([*sums(("n", 5, "m"), 64), chain(9, "m", 3)]),
    )


@cache
def device() -> EmulatedDevice:
    """Return a device for which the kernels of all programs are compiled together."""
    emulated_device = EmulatedDevice()
    programs = [*map(program, GRAPHS), *empty_programs()]
    emulated_device.prepare(p.kernel for p in programs)
    return emulated_device


def results_of(own: PackProgram, sizes: dict[str, int], offsets: list[int]) -> list[Any]:
    """Return what a kernel stores for arrays at these offsets from multiples of 16 bytes."""
    feeds = feeds_of(own.graph, sizes)
    outputs = [
        np.zeros([int(evaluate(n, sizes)) for n in e.shape], e.dtype.numpy)
        for e in own.graph.outputs
    ]
    arrays = [*(feeds[name] for name in own.inputs), *outputs]
    placed = [at(a, offsets[k % len(offsets)]) for k, a in enumerate(arrays)]
    count = len(own.inputs)
    device().launch(own.kernel, sizes, placed[:count], placed[count:])
    return placed[count:]


@pytest.mark.parametrize("name", GRAPHS)
def test_results(name: str) -> None:
    """Every part has the results of NumPy, and the same bits wherever its arrays are.

    Arrays are aligned to vectors, or none is, or those of some parts are not.
    """
    own = program(name)
    sizes = {"n": 1500, "m": 37}
    expected = pk.interpret(own.graph, feeds_of(own.graph, sizes))
    for offsets in [0], [own.kernel.ast.params[0].dtype.nbytes], [0, 0, 0, 8, 0]:
        results = results_of(own, sizes, offsets)
        for result, right in zip(results, expected, strict=True):
            np.testing.assert_allclose(result, right, rtol=2e-3, atol=1e-5)


@pytest.mark.parametrize("name", ["short rows", "rows", "odd sizes", "mixed"])
def test_a_part_has_the_bits_of_a_kernel_by_itself(name: str, rng: Any) -> None:
    """A part has the schedule that it has alone."""
    own = program(name)
    feeds = feeds_of(own.graph)
    packed = results_of(own, {}, [0])
    with emulated(EmulatedDevice(rng=rng)) as alone_device:
        graphs = [pk.Graph([e]) for e in own.graph.outputs]
        alone = [pk.compile(graph, target="cuda") for graph in graphs]
        alone_device.prepare(k for exe in alone for k in exe.kernels)
        for graph, exe, result in zip(graphs, alone, packed, strict=True):
            assert all(isinstance(k.ast, KernelIR) for k in exe.kernels)
            (expected,) = exe({n.name: feeds[n.name] for n in graph.inputs})
            assert np.asarray(expected).tobytes() == result.tobytes()


@pytest.mark.parametrize("empty", [{"n": 0, "m": 37}, {"n": 1500, "m": 0}, {"n": 0, "m": 0}])
def test_parts_without_elements(empty: dict[str, int]) -> None:
    """Parts without a block are skipped at any position."""
    for own in empty_programs():
        expected = pk.interpret(own.graph, feeds_of(own.graph, empty))
        if any(a.size for a in expected):
            for result, right in zip(results_of(own, empty, [0]), expected, strict=True):
                np.testing.assert_allclose(result, right, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("count", [1, 2, 40, 160])
def test_any_number_of_parts(count: int, rng: Any) -> None:
    """One part is no pack; a pack has as many parts as a kernel can have arguments for."""
    sizes = [int(n) for n in rng.integers(1, 3000, count)]
    graph = pk.Graph([o.tanh(chain(k, n) + chain(count + k, n)) for k, n in enumerate(sizes)])
    with emulated(EmulatedDevice(rng=rng)) as own_device:
        exe = pk.compile(graph, target="cuda")
        own_device.prepare(exe.kernels)
        feeds = feeds_of(graph)
        agrees(graph, feeds, exe(feeds), rtol=2e-3)
    packs = [k.ast for k in exe.kernels if isinstance(k.ast, PackIR)]
    others = [k.ast for k in exe.kernels if isinstance(k.ast, KernelIR)]
    assert len(others) <= 1 and len(packs) + len(others) == len(exe.kernels)
    assert all(len(p.params) + len(p.sizes) <= MAX_WORDS for p in packs)
    assert sum(len(list(p.parts)) for p in packs) + len(others) == count


def test_updates_in_place(rng: Any) -> None:
    """State is overwritten by parts that read it, and each part reads its own."""
    updates = []
    before = {}
    for k, n in enumerate((5, 1024, 3000, 77)):
        before[f"w{k}"] = rng.standard_normal(n).astype(np.float32)
        state = pk.state(f"w{k}", before[f"w{k}"])
        updates.append((state.node, state - pk.var(f"g{k}", (n,)) * 0.5))
    with fake_cuda():
        exe = pk.compile(pk.Graph([], updates), target="cuda")
        feeds = {f"g{k}": np.full(n, k + 1, np.float32) for k, n in enumerate((5, 1024, 3000, 77))}
        exe(feeds)
        exe(feeds)
        (kernel,) = exe.kernels
        assert isinstance(kernel.ast, PackIR) and len(kernel.ast.aliased) == 8
        for name, value in before.items():
            expected = value - np.float32(0.5) * feeds[name.replace("w", "g")] * 2
            np.testing.assert_allclose(exe.state[name], expected, rtol=1e-5)


def test_a_text_serves_other_sizes() -> None:
    """Sizes are arguments: packs of as many parts have one text, whatever their sizes are."""
    texts = {program_of(chains(sizes)).kernel.source for sizes in ((10, 2000, 30), (512, 9, 99999))}

    assert len(texts) == 1


def test_equal_parts_have_one_body() -> None:
    """Twenty chains are one loop nest, which is printed once."""
    own = program_of(chains(range(2, 22)))

    assert [len(n.parts) for n in own.ir.nests] == [20]
    assert own.kernel.source.count("load_stream<4>(x0_r") == 1


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("mixed", ("(int)blockIdx.x < (int)words.", "(int)blockIdx.x <= (int)words.")),
        ("mixed", ("(int)blockIdx.x - ", "(int)blockIdx.x + 1 - ")),
        ("mixed", ("* 2 + pack_group", "* 2")),
        ("mixed", ("threadIdx.x / 128;", "threadIdx.x / 64;")),
        ("mixed", (" + pack_group * ", " + 0 * ")),
        ("long rows", ("wait_of_group(pack_group, 128);", "")),
        ("long rows", ("wait_of_group(pack_group, 128);", "wait_of_group(0, 128);")),
        ("long rows", ("wait_of_group(pack_group, 128);", "__syncthreads();")),
    ],
)
def test_planted_faults_of_the_text(name: str, change: tuple[str, str]) -> None:
    """The emulator, or a wrong result, shows a fault in the choice of a part, or in a barrier."""
    own = program(name)
    assert change[0] in own.kernel.source
    source = own.kernel.source.replace(*change)
    kernel = evolve(own.kernel, source=source, key=f"the fault {change}")
    faulty = evolve(own, kernel=kernel)
    expected = pk.interpret(own.graph, feeds_of(own.graph))
    try:
        results = results_of(faulty, {}, [0])
    except EmulatedError:
        return
    assert not all(
        np.allclose(a, b, rtol=2e-3, atol=1e-5) for a, b in zip(results, expected, strict=True)
    )


def test_packs_of_plans_keep_their_launches() -> None:
    """A pack of loop nests is one launch, as it was before."""
    planned = plan(pk.Graph(chains((10, 20, 30))), target="cuda")

    assert len(planned.attrs["kernel"]) == 1
