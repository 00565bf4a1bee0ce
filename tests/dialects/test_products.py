"""Products of matrices inside kernels: each element is one chain of fma, whatever the layout."""

from __future__ import annotations

import ctypes
import itertools
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from attrs import evolve

from passkit import ast
from passkit.ast.stage import Buffer, Dot, KernelAST, Level, Loop, Matrix, Part, Phase, Place
from passkit.dialects import CXX, OPENCL
from passkit.passes.rtcgen import sections_of
from passkit.transforms.printing import print_kernel
from passkit.values import dtype as dt
from passkit.values.dtype import DType
from tests.dialects.plain_c import PLAIN, call, compiled
from tests.dialects.test_opencl import messages_of
from tests.dialects.test_prelude import OTHERS, options
from tests.fences import fenced
from tests.libraries import libraries

pytestmark = pytest.mark.usefixtures("quick_kernels")
SIZES = ("m", "n", "k", "c_down", "c_along", "a_down", "a_along", "b_down", "b_along")
EXTENTS = [0, 1, 3, 4, 5, 7, 8, 12, 15, 16, 17, 33, 94, 96, 97, 150]
TYPES = [dt.float32, dt.float64, dt.int32, dt.int8, dt.float16, dt.dtype_of("bfloat16")]
MANY = {"native": TYPES, "avx2": TYPES[:3], "sse": TYPES[:2], "x86-64": TYPES[:2]}
KNOWN = [(94, 94, 32), (94, 32, 94), (5, 7, 3), (1, 33, 16), (17, 1, 4)]


def whole(value: int) -> ast.Const:
    """Return a literal index."""
    return ast.const(value, dt.int64)


def kernel(dots: list[Dot], buffers: list[Buffer], sizes: tuple[str, ...] = ()) -> KernelAST:
    """Return a kernel of one tile, whose only stages are products."""
    tile = Loop(ast.Var("tile", dt.int64), whole(0), whole(1), Level.GRID)
    return KernelAST(
        tuple(b for b in buffers if b.place is Place.GLOBAL),
        sizes,
        tuple(b for b in buffers if b.place is Place.SHARED),
        (Phase(tile, (Part((), None, (), tuple(dots)),)),),
    )


def any_product(dtype: DType, *wide: str) -> KernelAST:
    """Return a product whose extents and strides are arguments; ``wide`` buffers are float32."""
    size = {name: ast.Var(name, dt.int64) for name in SIZES}
    c, a, b = (Matrix(x, whole(0), size[f"{x}_down"], size[f"{x}_along"]) for x in "cab")
    dot = Dot("d", (), a, b, c, size["m"], size["n"], size["k"], dtype)
    buffers = [
        Buffer(x, dt.float32 if x in wide else dtype, Place.GLOBAL, 1, x == "c") for x in "abc"
    ]
    return kernel([dot], buffers, SIZES)


def known_products() -> KernelAST:
    """Return products of literal extents: of a and b, then of the result and the transpose of b."""
    dots, buffers = [], list[Buffer]()
    for t, (m, n, k) in enumerate(KNOWN):
        a, b, c, s = (f"{x}{t}" for x in "abcs")
        for name, extent in ((a, m * k), (b, k * n), (c, m * k)):
            buffers.append(Buffer(name, dt.float32, Place.GLOBAL, extent, name == c))
        buffers.append(Buffer(s, dt.float32, Place.SHARED, m * n))
        x, y = Matrix(a, whole(0), whole(k), whole(1)), Matrix(b, whole(0), whole(n), whole(1))
        turned = Matrix(b, whole(0), whole(1), whole(n))
        held = Matrix(s, whole(0), whole(n), whole(1))
        z = Matrix(c, whole(0), whole(k), whole(1))
        dots.append(Dot("s", (), x, y, held, whole(m), whole(n), whole(k), dt.float32))
        dots.append(Dot("c", (), held, turned, z, whole(m), whole(k), whole(n), dt.float32, True))
    return kernel(dots, buffers)


MIXED = [(TYPES[4], "a"), (TYPES[4], "bc"), (TYPES[5], "ab")]
"""Floats of 16 bits, and the buffers that are float32 then."""


class Product(NamedTuple):
    """Extents, the strides of c, a and b, and the sizes of their buffers."""

    sizes: tuple[int, ...]
    lengths: tuple[int, int, int]


def product_of(m: int, n: int, k: int, layouts: tuple[int, int, int]) -> Product:
    """Return a product with given extents, and one of seven layouts of each matrix."""
    strides, lengths = list[int](), []
    for (rows, columns), layout in zip([(m, n), (m, k), (k, n)], layouts, strict=True):
        down, along = [
            (columns, 1),
            (1, rows),
            (columns + 3, 1),
            (2 * columns, 2),
            (1, rows + 5),
            (3, 3 * rows),
            (columns, 1),
        ][layout]
        strides += [down, along]
        last = (rows - 1) * down + (columns - 1) * along
        lengths.append(last + 1 if rows and columns else 0)
    return Product((m, n, k, *strides), (lengths[0], lengths[1], lengths[2]))


def products(count: int, seed: int) -> list[Product]:
    """Return products with random extents and layouts."""
    rng = np.random.default_rng(seed)
    return [
        product_of(*map(int, rng.choice(EXTENTS, 3)), tuple(map(int, rng.integers(0, 7, 3))))
        for _ in range(count)
    ]


def draw(rng: Any, count: int, dtype: DType) -> Any:
    """Return random numbers; integers with random bits."""
    if dtype.is_integer:
        info = np.iinfo(dtype.numpy)
        return rng.integers(info.min, info.max, count, dtype.numpy, endpoint=True)
    return rng.normal(size=count).astype(dtype.numpy)


class Library:
    """Return a function that calls compiled kernels with the arguments of C++ ones."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library

    def __call__(self, name: str, arrays: list[Any], sizes: tuple[int, ...] = ()) -> None:
        """Run the only tile of a kernel."""
        buffers = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
        numbers = (ctypes.c_int64 * max(len(sizes), 1))(*sizes)
        scratch = np.zeros(1 << 16, np.float32)
        getattr(self.library, name)(
            buffers,
            numbers,
            ctypes.c_int64(0),
            ctypes.c_int64(1),
            ctypes.c_void_p(scratch.ctypes.data),
        )


@pytest.fixture(scope="module")
def machines(request: pytest.FixtureRequest) -> dict[str, Library]:
    """Return the kernels in C++ for each instruction set."""
    jobs = []
    for machine in ("native", *OTHERS):
        texts = [print_kernel(any_product(t), f"any_{t.short}", CXX) for t in MANY[machine]]
        texts.append(print_kernel(known_products(), "known", CXX))
        if machine == "native":
            texts += [
                print_kernel(any_product(t, *wide), f"any_{t.short}_{wide}", CXX)
                for t, wide in MIXED
            ]
        text = "".join(texts)
        source = "".join(sections_of(text)) + f"namespace pk {{\n{text}}}\n"
        own = [*options(request, machine), "-fwrapv", "-Wno-unused-parameter"]
        jobs.append((own, source))
    return dict(zip(("native", *OTHERS), map(Library, libraries(jobs)), strict=True))


@pytest.fixture(scope="module")
def chains(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Return the same products in plain C, element by element."""
    texts = [print_kernel(any_product(t), f"any_{t.short}", PLAIN) for t in TYPES[:4]]
    return compiled(
        "".join([*texts, print_kernel(known_products(), "known", PLAIN)]),
        tmp_path_factory.mktemp("chains"),
    )


def rounded(x: Fraction, bits: int) -> Fraction:
    """Return a number rounded to so many bits, ties to even."""
    if x == 0:
        return x
    power = abs(x).numerator.bit_length() - x.denominator.bit_length() - bits
    unit = Fraction(2) ** (power + (abs(x) >= Fraction(2) ** (power + bits)))
    return round(x / unit) * unit


@pytest.mark.parametrize("dtype", TYPES[:2], ids=str)
def test_plain_chains_are_exact(dtype: DType, chains: ctypes.CDLL, rng: Any) -> None:
    """In plain C each element equals exact arithmetic that is rounded once in each step."""
    bits = np.finfo(dtype.numpy).nmant + 1
    for m, n, k in itertools.product([1, 3, 4], [1, 2, 5], [0, 1, 4, 17]):
        p = product_of(m, n, k, (0, 1, 0))
        c, a, b = (draw(rng, length, dtype) for length in p.lengths)
        call(chains, f"any_{dtype.short}", [a, b, c], p.sizes)
        for i, j in itertools.product(range(m), range(n)):
            total = Fraction(0)
            for s in range(k):
                step = Fraction(float(a[i + s * m])) * Fraction(float(b[s * n + j]))
                total = rounded(total + step, bits)
            assert Fraction(float(c[i * n + j])) == total


@pytest.mark.parametrize("machine", ["native", *OTHERS])
def test_every_layout(machine: str, machines: dict[str, Library], chains: ctypes.CDLL) -> None:
    """The bits are equal at all extents and strides, between pages without access rights.

    What lies between the elements of the result stays as it is.
    """
    for dtype in MANY[machine][:4]:
        rng = np.random.default_rng(dtype.nbytes)
        for t, p in enumerate(products(700 if machine == "native" else 250, dtype.nbytes)):
            c, a, b = (draw(rng, length, dtype) for length in p.lengths)
            expected = c.copy()
            call(chains, f"any_{dtype.short}", [a, b, expected], p.sizes)
            with fenced(a, t % 2 == 0) as x, fenced(b, t % 3 == 0) as y, fenced(c, t % 5 < 3) as z:
                machines[machine](f"any_{dtype.short}", [x, y, z], p.sizes)
                assert z.tobytes() == expected.tobytes(), (dtype, p)


@pytest.mark.parametrize("machine", ["native", *OTHERS])
def test_known_extents(
    machine: str, machines: dict[str, Library], chains: ctypes.CDLL, rng: Any
) -> None:
    """Products of literal extents, one of which loads the result of another from scratch."""
    given = [
        [draw(rng, m * k, dt.float32), draw(rng, k * n, dt.float32), np.zeros(m * k, np.float32)]
        for m, n, k in KNOWN
    ]
    expected = [[a, b, c.copy()] for a, b, c in given]
    machines[machine]("known", [x for arrays in given for x in arrays])
    call(chains, "known", [x for arrays in expected for x in arrays])

    for (m, n, k), (a, b, c), (_, _, there) in zip(KNOWN, given, expected, strict=True):
        assert c.tobytes() == there.tobytes()
        x, y = a.reshape(m, k).astype(np.float64), b.reshape(k, n).astype(np.float64)
        np.testing.assert_allclose(c.reshape(m, k), x @ y @ y.T, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", TYPES[4:], ids=str)
def test_floats_of_16_bits(dtype: DType, machines: dict[str, Library], chains: ctypes.CDLL) -> None:
    """Sums of 16-bit floats are float32, and rounded once."""
    rng = np.random.default_rng(16)
    for p in products(200, 16):
        c, a, b = (draw(rng, length, dtype) for length in p.lengths)
        wide = [x.astype(np.float32) for x in (a, b, c)]
        call(chains, "any_f32", wide, p.sizes)
        machines["native"](f"any_{dtype.short}", [a, b, c], p.sizes)
        assert c.tobytes() == wide[2].astype(dtype.numpy).tobytes()


@pytest.mark.parametrize("dtype, wide", MIXED, ids=str)
def test_float32_beside_16_bits(
    dtype: DType, wide: str, machines: dict[str, Library], chains: ctypes.CDLL
) -> None:
    """Scratch may hold float32 where inputs and results have 16 bits."""
    rng = np.random.default_rng(17)
    for p in products(50, 17):
        kinds = [dt.float32 if x in wide else dtype for x in "cab"]
        c, a, b = (draw(rng, length, t) for length, t in zip(p.lengths, kinds, strict=True))
        chain = [x.astype(np.float32) for x in (a, b, c)]
        call(chains, "any_f32", chain, p.sizes)
        machines["native"](f"any_{dtype.short}_{wide}", [a, b, c], p.sizes)
        assert c.tobytes() == chain[2].astype(c.dtype).tobytes()


@pytest.mark.parametrize("machine", ["native", *OTHERS])
def test_nan_and_infinity(machine: str, machines: dict[str, Library]) -> None:
    """NaN reaches the elements that depend on it, and no others in the same block."""
    for m, n, k in itertools.product([1, 7, 17], [1, 15, 33], [1, 20, 70]):
        p = product_of(m, n, k, (0, 0, (m + n) % 2))
        c, a, b = (np.ones(length, np.float32) for length in p.lengths)
        a[-1], b[-1] = np.nan, np.inf
        a[0], b[0] = -np.inf, 0
        machines[machine]("any_f32", [a, b, c], p.sizes)
        rows = a.reshape(m, k).astype(np.float64)
        columns = b.reshape((k, n)) if (m + n) % 2 == 0 else b.reshape((n, k)).T
        with np.errstate(invalid="ignore"):
            expected = (rows[:, :, None] * columns[None]).sum(axis=1)
        np.testing.assert_array_equal(c.reshape(m, n), expected.astype(np.float32))


def test_threads_share_out_all_elements(tmp_path: Path, chains: ctypes.CDLL, rng: Any) -> None:
    """For any number of threads each element is stored by one of them."""
    loop = "for (int64_t {var} = {start} + thread; {var} < {stop}; {var} += threads)"
    shared = evolve(
        PLAIN, kernel="void {name}({params}, int64_t thread, int64_t threads)", lane=loop
    )
    library = compiled(print_kernel(any_product(dt.float64), "shared", shared), tmp_path)
    for (m, n), threads in itertools.product([(1, 1), (1, 6), (5, 1), (7, 9), (8, 4)], [1, 3, 64]):
        p = product_of(m, n, 3, (0, 0, 1))
        c, a, b = (draw(rng, length, dt.float64) for length in p.lengths)
        expected, count = np.full_like(c, np.nan), np.zeros(c.shape, np.int64)
        call(chains, "any_f64", [a, b, expected], p.sizes)
        for thread in range(threads):
            part = np.full_like(c, np.nan)
            call(library, "shared", [a, b, part], (*p.sizes, thread, threads))
            written = ~np.isnan(part)
            assert np.array_equal(part[written], expected[written])
            count += written
        assert (count == 1).all()


def test_each_dialect_says_it_its_way() -> None:
    """A product is one call in C++; in OpenCL threads compute blocks of four elements."""
    cxx, opencl = (print_kernel(known_products(), "f", d) for d in (CXX, OPENCL))

    assert "dot(matrix{s0, 94, 1}, matrix{a0, 32, 1}, matrix{b0, 94, 1}, 94, 94, 32);" in cxx
    assert "dot(matrix{c0, 32, 1}, matrix{s0, 94, 1}, matrix{b0, 1, 94}, 94, 32, 94);" in cxx
    assert "dot_block = get_local_id(0); dot_block < 47 * 47;" in opencl
    assert "dot_block = get_local_id(0); dot_block < 47 * 16;" in opencl
    assert "dot_11 = fma(dot_a1, dot_b1, dot_11);" in opencl
    assert "const long dot_j1 = dot_j0 + 2 < 3 ? dot_j0 + 2 : dot_j0;" in opencl


def test_rows_have_their_own_products() -> None:
    """Inside of a row, the blocks of its product are shared out over all work-items."""
    products = known_products()
    row = Loop(ast.Var("row", dt.int64), whole(0), whole(4), Level.WARP)
    (part,) = products.phases[0].parts
    phase = evolve(products.phases[0], parts=(evolve(part, rows=row),))
    text = print_kernel(evolve(products, phases=(phase,)), "f", OPENCL)
    rows, _, product = text.partition("for (long row = 0; row < 4; ++row) {")

    assert "dot_block" not in rows
    loop = "dot_block = get_local_id(0); dot_block < 47 * 47; dot_block += get_local_size(0)"
    assert loop in product


def test_opencl_syntax(tmp_path: Path) -> None:
    """A C compiler accepts products of every dtype, of literal and symbolic extents."""
    texts = [print_kernel(any_product(t), f"any_{t.short}", OPENCL) for t in TYPES]
    texts += [print_kernel(any_product(t, *w), f"any_{t.short}_{w}", OPENCL) for t, w in MIXED]
    texts.append(print_kernel(known_products(), "known", OPENCL))

    assert "error" not in messages_of(texts, tmp_path)
