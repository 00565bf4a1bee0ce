"""Programs: how they are called, what they check, what they count, what they own."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest

from passkit.errors import FeedError, SettingError
from passkit.runtime.native.feeds import InputSpec, make_program
from passkit.runtime.native.launcher import (
    builtin,
    find_symbol,
    launcher,
    open_library,
    requested_threads,
    set_num_threads,
)
from passkit.runtime.native.shared_objects import SharedObject
from tests.runtime.native.sample import F32, addresses, binary_program, launch, program

I64 = np.dtype("int64")


def vectors(n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Two random vectors."""
    return rng.random(n, np.float32), rng.random(n, np.float32)


@pytest.mark.parametrize("n", [0, 1, 255, 256, 1000, 300_000])
def test_all_calling_conventions_give_the_same_bits(n: int, rng: np.random.Generator) -> None:
    """Names, a dict, a tuple, both at once, run, run_positional and out= give the same bits."""
    p, (x, y) = binary_program(), vectors(n, rng)
    expected, out = 2 * x + y, [np.empty_like(x)]

    calls = [
        p(x=x, y=y),
        p(y=y, x=x),
        p({"x": x, "y": y}),
        p({"x": x}, y=y),
        p((x, y)),
        p(None, x=x, y=y),
        p.run({"x": x, "y": y}),
        p.run((x, y)),
        p.run((x, y), None),
        p.run_positional(x, y),
        p(x=x, y=y, out=None),
        p(x=x, y=y, out=[None]),
        p([x, y]),
    ]
    given = p({"x": x, "y": y}, out=out)

    assert all(type(c) is list and np.array_equal(c[0], expected) for c in calls)
    assert given[0] is out[0] and np.array_equal(out[0], expected)
    assert (p.native_calls, p.launches) == (14, 14)


def test_results_are_new_arrays(rng: np.random.Generator) -> None:
    """Each call allocates its results."""
    p, (x, y) = binary_program(), vectors(10, rng)
    first = p(x=x, y=y)[0]
    kept = first.copy()

    p(x=y, y=x)

    assert np.array_equal(first, kept) and first.flags.writeable


def test_strided_swapped_and_unaligned_inputs_are_copied_and_counted() -> None:
    """Inputs of any strides and byte order give the same bits; each copy counts."""
    p = binary_program()
    x = np.arange(20, dtype=np.float32)
    odd = np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(np.float32)
    expected = p(x=x[::2].copy(), y=x[::2].copy())[0]

    for form in (x[::2], x[::2].astype(">f4")):
        assert np.array_equal(p(x=form, y=x[::2].copy())[0], expected)
    assert p.copies == 2
    assert np.array_equal(p(x=x[::-1], y=x[::-1])[0], 3 * x[::-1])
    assert np.array_equal(p(x=odd, y=x)[0], 3 * x)
    assert p.copies == 5


def test_equal_types_with_other_numbers_and_subclasses_fit() -> None:
    """int64 is one type whatever C calls it; subclasses of ndarray are arrays; none is copied."""
    p = program(
        [("copy", ("input", 0), ("output", 0), 24)], [(I64.num, (3,))], [InputSpec("x", I64, (3,))]
    )
    x = np.arange(3, dtype=np.longlong)

    assert np.array_equal(p(x=x)[0], x) and p(x=x)[0].dtype == I64
    assert np.array_equal(p(x=x.view(np.recarray))[0], x)
    assert p.copies == 0


def test_python_numbers_and_lists_are_converted() -> None:
    """Lists and numbers become arrays where nothing is lost."""
    p = binary_program()

    assert p(x=[1, 2], y=(0.5, 1))[0].tolist() == [2.5, 5.0]
    assert p({"x": [], "y": []})[0].shape == (0,)


def test_each_shape_is_bound_once_and_few_are_kept() -> None:
    """bind is asked once a shape; the 64 used last are kept; forget() drops them."""
    asked = []

    def bind(shapes: tuple[tuple[int, ...], ...]) -> Any:
        asked.append(shapes)
        return launcher().Bound(shapes, [], 0, 0, [])

    p = make_program([InputSpec("x", F32, (None, None))], 0, bind)
    for n in [1, 2, 1, 2, 3, 1]:
        p(x=np.zeros((n, 4), "f4"))
    assert asked == [((1, 4),), ((2, 4),), ((3, 4),)]
    for n in range(100):
        p(x=np.zeros((1, n), "f4"))
        p(x=np.zeros((1, 4), "f4"))

    assert p.num_bounds == 64
    assert asked.count(((1, 4),)) == 1
    p.forget()
    assert p.num_bounds == 0


def test_run_positional_declines_what_does_not_fit() -> None:
    """Another type, rank, number or kind of argument gives NotImplemented, so that jit retraces."""
    p, x = binary_program(), np.zeros(3, "f4")

    for args in [(x,), (x, x, x), (x, x.astype("f8")), (x[None], x), (x, [1, 2, 3]), (x, None)]:
        assert p.run_positional(*args) is NotImplemented
    assert p.run_positional(x, x[::-1])[0].tolist() == [0, 0, 0]


def test_an_error_of_bind_reaches_the_caller() -> None:
    """An exception of bind reaches the caller, and the next call calls bind again."""

    def bind(shapes: Any) -> Any:
        raise ZeroDivisionError(f"no plan for {shapes}")

    p = make_program([InputSpec("x", F32, (None,))], 1, bind)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match=r"no plan for \(\(3,\),\)"):
            p(x=np.zeros(3, "f4"))


def test_bind_must_return_a_fitting_bound() -> None:
    """Something else, other shapes and another number of outputs are refused."""
    answers: list[Any] = []
    bound = launcher().Bound
    p = make_program([InputSpec("x", F32, (None,))], 0, lambda shapes: answers.pop())
    answers += [
        None,
        bound(((4,),), [], 0, 0, []),
        bound(((3,),), [(1, ())], 0, 0, []),
        bound(((3, 1),), [], 0, 0, []),
        bound((), [], 0, 0, []),
    ]

    while answers:
        with pytest.raises(TypeError, match=r"bind must return a Bound .* 0 outputs, got"):
            p(x=np.zeros(3, "f4"))


def test_steps_share_the_arena() -> None:
    """A temporary in the arena carries values from one step to the next; copies move bytes."""
    n, x = 1000, np.arange(1000, dtype=np.float32)
    p = program(
        [
            launch("axpy", 4, [("input", 0), ("input", 0), ("arena", 4096)], n),
            launch("product", 4, [("arena", 4096), ("input", 0), ("output", 0)], n),
            ("copy", ("arena", 4096), ("output", 1), 4 * n),
            ("copy", ("output", 0, 4), ("output", 2), 4),
        ],
        [(F32.num, (n,)), (F32.num, (10, 100)), (F32.num, ())],
        [InputSpec("x", F32, (n,))],
        arena=4096 + 4 * n,
    )

    squares, tripled, one = p(x=x)

    assert np.array_equal(squares, 3 * x * x)
    assert np.array_equal(tripled.ravel(), 3 * x)
    assert one.shape == () and one == 3
    assert (p.native_calls, p.launches) == (1, 2)


def test_phases_are_of_one_launch() -> None:
    """Steps of kind "phase" run like others, and count as what the launch before them began."""
    n, x = 1000, np.arange(1000, dtype=np.float32)
    first = launch("axpy", 4, [("input", 0), ("input", 0), ("arena", 0)], n)
    then = launch("product", 4, [("arena", 0), ("input", 0), ("output", 0)], n)
    p = program(
        [first, ("phase", *then[1:])], [(F32.num, (n,))], [InputSpec("x", F32, (n,))], arena=4 * n
    )

    (actual,) = p(x=x)

    assert np.array_equal(actual, 3 * x * x) and (p.native_calls, p.launches) == (1, 1)


def test_a_large_copy_is_complete(rng: np.random.Generator) -> None:
    """A copy of several blocks, divided among threads, has every byte."""
    n = (1 << 20) + 12345
    x = rng.integers(0, 255, n, np.uint8)
    p = program(
        [("copy", ("input", 0), ("output", 0), n)],
        [(x.dtype.num, (n,))],
        [InputSpec("x", x.dtype, (n,))],
    )

    assert np.array_equal(p(x=x)[0], x)


def test_python_steps_get_arrays() -> None:
    """A Python step reads inputs, constants and temporaries and writes results."""
    table = np.arange(4, dtype=np.float32)
    kept = []

    def reverse(ins: list[Any], outs: list[Any]) -> None:
        x, constant, temporary = ins
        assert not x.flags.writeable
        outs[0][...] = temporary[::-1] + constant
        kept.append(temporary)

    def view(ref: Any, shape: tuple[int, ...] = (4,)) -> Any:
        return (ref, F32.num, shape)

    p = program(
        [
            launch("axpy", 1, [("input", 0), ("input", 0), ("arena", 0)], 4),
            (
                "python",
                reverse,
                [
                    view(("input", 0)),
                    view(("address", table.ctypes.data, table)),
                    view(("arena", 0)),
                ],
                [view(("output", 0))],
            ),
            launch("product", 1, [("output", 0), ("output", 0), ("output", 1)], 4),
        ],
        [(F32.num, (4,)), (F32.num, (4,))],
        [InputSpec("x", F32, (4,))],
        arena=64,
    )
    x = np.array([1, 2, 3, 4], "f4")

    first, second = p(x=x)
    p(x=x * 0)

    assert first.tolist() == [12, 10, 8, 6]
    assert np.array_equal(second, first * first)
    assert kept[0].tolist() == [3, 6, 9, 12], "a temporary that was kept is not written again"
    assert p.native_calls == 4


def test_an_error_in_a_python_step_ends_the_run() -> None:
    """An exception of a Python step reaches the caller; later steps do not run."""

    def fail(ins: list[Any], outs: list[Any]) -> None:
        raise KeyError(len(outs))

    p = program([("python", fail, [], []), launch("nothing", 1, [])], [])

    with pytest.raises(KeyError, match="0"):
        p()
    assert p.launches == 0


def test_a_python_step_may_run_another_program(rng: np.random.Generator) -> None:
    """Runs nest: the inner one has an arena and scratch of its own."""
    x, _ = vectors(1000, rng)
    inner = program(
        [
            launch("axpy", 4, [("input", 0), ("input", 0), ("arena", 0)], 1000),
            ("copy", ("arena", 0), ("output", 0), 4000),
        ],
        [(F32.num, (1000,))],
        [InputSpec("x", F32, (1000,))],
        arena=4000,
    )

    def call(ins: list[Any], outs: list[Any]) -> None:
        outs[0][...] = inner(x=ins[0])[0]

    outer = program(
        [
            launch("axpy", 4, [("input", 0), ("input", 0), ("arena", 0)], 1000),
            (
                "python",
                call,
                [(("arena", 0), F32.num, (1000,))],
                [(("output", 0), F32.num, (1000,))],
            ),
            launch("product", 4, [("arena", 0), ("output", 0), ("output", 1)], 1000),
        ],
        [(F32.num, (1000,))] * 2,
        [InputSpec("x", F32, (1000,))],
        arena=4000,
    )

    first, second = outer(x=x)

    assert np.array_equal(first, 3 * (3 * x)) and np.array_equal(second, (3 * x) * first)


def test_scratch_is_aligned_and_private() -> None:
    """Every thread has scratch memory of the requested size, aligned to 4096 bytes."""
    p = program(
        [launch("scratch_address", 16, [("output", 0)], 10_000, parallel=True)],
        [(I64.num, (16,))],
        scratch=10_000,
    )

    addresses = p()[0]

    assert (addresses % 4096 == 0).all() and (addresses != 0).all()


def test_several_threads_share_a_program(rng: np.random.Generator) -> None:
    """Threads with sizes of their own get their own results."""
    p, wrong = binary_program(parallel=True, seconds=1.0), []

    def work(seed: int) -> None:
        local = np.random.default_rng(seed)
        for _ in range(200):
            x, y = vectors(int(local.integers(0, 5000)), local)
            if not np.array_equal(p(x=x, y=y)[0], 2 * x + y):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()

    assert not wrong and p.native_calls == 800


def test_the_gil_is_released_for_long_runs() -> None:
    """Another Python thread goes on while a run that is said to be long is under way."""
    counter = np.zeros(1, np.int64)
    step = launch("spend", 1, [("address", counter.ctypes.data, counter)], 30_000_000)
    seen = []
    ticker = threading.Thread(target=lambda: seen.append(int(counter[0])))
    p = program([step], [], seconds=0.1)

    runner = threading.Thread(target=p)
    runner.start()
    ticker.start()
    ticker.join()
    runner.join()

    assert seen == [0] and counter[0] == 1


def test_a_lock_is_held_during_a_run() -> None:
    """Programs that update State run one at a time; an error releases the lock."""
    lock, held = threading.Lock(), []

    def look(ins: list[Any], outs: list[Any]) -> None:
        held.append(lock.locked())
        raise ValueError(f"call {len(held)}")

    def bind(shapes: Any) -> Any:
        return launcher().Bound(shapes, [], 0, 0, [("python", look, [], [])])

    p = make_program([], 0, bind, lock)
    for k in (1, 2):
        with pytest.raises(ValueError, match=f"call {k}"):
            p()

    assert held == [True, True] and not lock.locked()


def test_calls_leak_no_references(rng: np.random.Generator) -> None:
    """Reference counts and live objects are the same after a thousand calls of every kind."""
    p, (x, y) = binary_program(), vectors(1000, rng)
    feeds, out = {"x": x, "y": y}, [np.empty(1000, "f4")]
    swapped = x.astype(">f4")

    def all_kinds() -> None:
        p(x=x, y=y), p(feeds), p((x, y)), p(feeds, out=out), p(x=swapped, y=y), p(x=x[::-1], y=y)
        p.run_positional(x, y), p.run_positional(x, None), p.run((x, y), out)
        for bad in ({}, {"x": x}, {"x": x, "y": None}, {"x": x, "q": y}):
            with pytest.raises(FeedError, match=r"'[xyq]'"):
                p(bad)
        with pytest.raises(FeedError, match="got float64"):
            p(feeds, out=[np.empty(1000)])

    all_kinds()
    gc.collect()
    objects = (x, y, out[0], feeds, p, F32, np.dtype(">f4"), NotImplemented)
    before, count = [sys.getrefcount(o) for o in objects], len(gc.get_objects())
    for _ in range(1000 // 20):
        all_kinds()
    gc.collect()

    after = [sys.getrefcount(o) for o in objects]
    assert all(a - b < 5 for a, b in zip(after, before, strict=True)), (before, after)
    assert len(gc.get_objects()) - count < 100


class Constant:
    """Something that a step keeps alive."""


def cyclic_program() -> tuple[Any, list[weakref.ref[Any]]]:
    """A program that its own bind refers to; its bind and what its steps keep."""
    constant = Constant()
    owner: list[Any] = []

    def bind(shapes: Any) -> Any:
        step = launch("nothing", 1, [("address", 0, owner), ("address", 0, constant)])
        return launcher().Bound(shapes, [], 0, 0, [step])

    owner.append(make_program([], 0, bind))
    return owner[0], [weakref.ref(bind), weakref.ref(constant)]


def test_programs_and_bounds_are_collected() -> None:
    """A program in a reference cycle is collected, with the objects that its steps keep alive."""
    p, refs = cyclic_program()
    p()
    gc.collect()
    assert all(r() is not None for r in refs)

    del p
    gc.collect()

    assert all(r() is None for r in refs)


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([None], "a step must be a 'launch', 'phase', 'copy' or 'python' tuple, got None"),
        ([("jump", 1)], r"got \('jump', 1\)"),
        ([("launch", 0, 1, False, [], ())], "needs an address, got 0"),
        ([("launch", 1, 1, False, [("input", 1)], ())], r"\('input', 1\), but there are 1 inputs"),
        ([("launch", 1, 1, False, [("output", -1)], ())], r"refers to \('output', -1\)"),
        ([("launch", 1, 1, False, [("arena", 65)], ())], "and 64 bytes of arena"),
        ([("launch", 1, 1, False, [("heap", 0)], ())], r"refers to \('heap', 0\)"),
        ([("launch", 1, 1, False, [7], ())], r"such as \('input', 0\), got 7"),
        ([("launch", 1, 1, False, [], (2**70,))], "too (big|large)"),
        ([("launch", 1, 1, False, 3, ())], "'int' object is not iterable"),
        ([("copy", ("input", 0), ("output", 0), -4)], "at least 0, got -4"),
        ([("python", 3, [], [])], r"\(callable, inputs, outputs\), got \('python', 3"),
        ([("python", len, [3], [])], r"\(reference, type number, shape\), got 3"),
        ([("python", len, [(("arena", 32), 11, (9,))], [])], "does not fit in 64 bytes of arena"),
        ([("python", len, [(("input", 0), 999, ())], [])], "one of NumPy's, got 999"),
        ([("python", len, [(("input", 0), 11, (-1,))], [])], r"must not be negative, got \(-1,\)"),
    ],
)
def test_malformed_steps_raise(steps: Any, message: str) -> None:
    """A malformed step or a reference out of range raises, and nothing runs."""
    with pytest.raises((TypeError, ValueError, OverflowError), match=message):
        launcher().Bound(((4,),), [(11, (4,))], 64, 0, steps)


def test_malformed_bounds_and_programs_raise() -> None:
    """Invalid shapes, types, sizes and inputs raise."""
    bound, built = launcher().Bound, launcher().Program
    with pytest.raises(TypeError, match="a shape must be a tuple .* got 3"):
        bound((3,), [], 0, 0, [])
    with pytest.raises(TypeError, match=r"\(type number, shape\) and, .* overwrite, got 11"):
        bound((), [11], 0, 0, [])
    with pytest.raises(ValueError, match="one of NumPy's, got 17"):
        bound((), [(np.dtype(object).num, ())], 0, 0, [])
    with pytest.raises(MemoryError, match=r"exceeds 2\*\*63 bytes"):
        bound((), [(11, (2**40, 2**40))], 0, 0, [])
    with pytest.raises(ValueError, match="got -1 and 0"):
        bound((), [], -1, 0, [])
    with pytest.raises(TypeError, match="got 1 and 7"):
        built([], 1, 7)
    with pytest.raises(TypeError, match=r"\(name, type number, ndim\), got 'x'"):
        built(["x"], 1, len)
    with pytest.raises(ValueError, match="input 'x' needs 0 to 64 dimensions, got 99"):
        built([("x", 11, 99)], 1, len)
    with pytest.raises(TypeError, match="got 2 positional arguments"):
        built([], 0, len)({}, [])
    with pytest.raises(TypeError, match="feeds do not fit"):
        built([("x", 11, 1)], 0, len)(x=1)
    with pytest.raises(TypeError, match=r"repair must return 1 arrays that fit .* got \(7,\)"):
        built([("x", 11, 1)], 0, len, lambda feeds, named: (7,))(x=1)
    with pytest.raises(MemoryError, match=f"no memory for an array of {2**50} bytes"):
        program([], [(np.dtype("u1").num, (2**50,))])()


def test_programs_with_many_inputs_and_outputs() -> None:
    """Programs too large for the arrays on the stack give the same results."""
    count = 70
    specs = [InputSpec(f"x{k}", F32, (2,)) for k in range(count)]
    p = program(
        [("copy", ("input", k), ("output", count - 1 - k), 8) for k in range(count)],
        [(F32.num, (2,))] * count,
        specs,
    )
    arrays = [np.full(2, k, "f4") for k in range(count)]

    results = p({f"x{k}": a for k, a in enumerate(arrays)})

    assert [int(r[1]) for r in results] == list(range(count))[::-1]
    assert len(p(tuple(arrays))) == count


def test_an_input_may_be_called_feeds_or_self() -> None:
    """Only `out` is taken as a name; an input of that name is fed in a dict."""
    specs = [InputSpec(name, F32, ()) for name in ("feeds", "self", "out")]
    p = program([("copy", ("input", 2), ("output", 0), 4)], [(F32.num, ())], specs)
    one = np.float32(1)

    assert p({"feeds": one, "self": one, "out": np.float32(5)})[0] == 5
    assert p({"out": np.float32(6)}, feeds=one, self=one)[0] == 6


def test_missing_libraries_and_symbols_are_named() -> None:
    """A missing library, symbol or built-in kernel is named."""
    with pytest.raises(OSError, match=r"/no/such\.so"):
        open_library("/no/such.so")
    with pytest.raises(LookupError, match="no symbol 'f'"):
        find_symbol(open_library("libc.so.6"), "f")
    with pytest.raises(ValueError, match="PyCapsule_GetPointer called with invalid"):
        find_symbol(0, "f")
    with pytest.raises(LookupError, match="no built-in kernel 'gemm_i8'"):
        builtin("gemm_i8")
    assert builtin("gemm_f32") and addresses()["axpy"]


def test_denormals_survive_loading() -> None:
    """Loading kernels leaves the floating-point control word as it was."""
    p = program([launch("control_word", 1, [("output", 0)])], [(I64.num, ())])

    word = int(p()[0])

    assert word & 0x8040 == 0, "flush-to-zero and denormals-are-zero are off"
    tiny = np.float32(1e-40)
    assert binary_program("product")(x=np.full(1, tiny), y=np.ones(1, "f4"))[0] == tiny


def test_out_must_be_like_the_result() -> None:
    """out= takes plain arrays of the result's type and shape that share no memory."""
    p, x = binary_program(), np.arange(4, dtype=np.float32)
    y = np.ones(4, "f4")
    with pytest.raises(FeedError, match=r"a list of 1 arrays or None, got float32\[4\]"):
        p(x=x, y=y, out=np.empty(4, "f4"))
    with pytest.raises(FeedError, match=r"a list of 1 arrays or None, got a list .* of 2"):
        p(x=x, y=y, out=[None, None])
    with pytest.raises(
        FeedError, match=r"out\[0\] needs a contiguous float32\[4\], got float64\[4\];"
    ):
        p(x=x, y=y, out=[np.empty(4)])
    with pytest.raises(FeedError, match=r"got float32\[5\]; pass np\.empty\(\(4,\), 'float32'\)"):
        p(x=x, y=y, out=[np.empty(5, "f4")])
    with pytest.raises(FeedError, match=r"got float32\[4\] that is strided"):
        p(x=x, y=y, out=[np.empty(8, "f4")[::2]])
    with pytest.raises(
        FeedError, match=r"out\[0\] needs memory of its own, and its addresses overlap"
    ):
        p(x=x, y=y, out=[x])
    with pytest.raises(FeedError, match="got a str"):
        p(x=x, y=y, out=["z"])
    q = program([], [(F32.num, (4,))] * 2)
    with pytest.raises(FeedError, match=r"out\[1\] needs memory of its own"):
        q(out=[y, y])


def test_the_number_of_threads_is_a_setting() -> None:
    """PASSKIT_THREADS is a number from 1 to 64; without it there is a thread for each CPU."""
    assert requested_threads({"PASSKIT_THREADS": " 3 "}) == 3
    assert requested_threads({}) == min(64, len(os.sched_getaffinity(0)))
    for bad in ("0", "65", "-1", "two"):
        with pytest.raises(SettingError, match=rf"needs a number from 1 to 64, got '{bad}'"):
            requested_threads({"PASSKIT_THREADS": bad})
    with pytest.raises(ValueError, match="must be 1 to 64, got 65"):
        set_num_threads(65)
    with pytest.raises(TypeError, match="str"):
        set_num_threads("2")  # type: ignore[arg-type]


def test_addresses_are_of_one_process() -> None:
    """Copies of an address are the address; it cannot be pickled."""
    address = SharedObject("libc.so.6").address("abs")

    assert copy.deepcopy([address])[0] is address
    with pytest.raises(
        TypeError, match=r"address 0x\w+ of a function in .* is not valid in another process"
    ):
        pickle.dumps(address)
