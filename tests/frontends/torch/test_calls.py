"""Calls of compiled programs: tensors that the launcher reads and makes, and those it leaves."""

from __future__ import annotations

import ctypes
import gc
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

import passkit.ops as ops  # noqa: E402  (after the skip)
from passkit.errors import FeedError  # noqa: E402
from passkit.frontends.torch import passkit_backend  # noqa: E402
from passkit.frontends.torch import program as programs  # noqa: E402
from passkit.frontends.torch.reports import recording  # noqa: E402
from passkit.graph.graph import Graph  # noqa: E402
from passkit.graph.node import var  # noqa: E402
from passkit.program.executable import Executable  # noqa: E402
from passkit.runtime.native.launcher import pool_stats  # noqa: E402
from passkit.runtime.native.tensors import (  # noqa: E402
    ArgumentResult,
    ComputedResult,
    MappedResult,
    TensorLibrary,
    ValueResult,
    tensor_program,
)

T: Any = torch.randn


@pytest.fixture
def slow_calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list to which calls by arrays, past the launcher's checks, are added."""
    calls: list[Any] = []
    by_arrays = programs.Program._tensors_in_arrays

    def counted(self: Any, args: list[Any]) -> list[Any]:
        calls.append(len(args))
        return by_arrays(self, args)

    monkeypatch.setattr(programs.Program, "_tensors_in_arrays", counted)
    return calls


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Return a function compiled by passkit alone."""
    only = {"fallback": "error"}
    return torch.compile(  # type: ignore[no-any-return]
        function, backend=passkit_backend, options=only, **options
    )


def assert_same(actual: Any, expected: Any) -> None:
    """Compare results: values, dtypes and strides."""
    pairs = (
        [(actual, expected)]
        if isinstance(expected, torch.Tensor)
        else zip(actual, expected, strict=True)
    )
    for a, b in pairs:
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
        if isinstance(b, torch.Tensor):
            assert a.stride() == b.stride()


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (lambda x: x * 2 + 1, [T(8, 512)]),
        (lambda x: x * 2 + 1, [T(300, 512)]),
        (lambda x: x * 2 + 1, [T(64, 8)[::2, 1:]]),
        (lambda x: x * 2 + 1, [T(8, 1, 4).expand(8, 3, 4)]),
        (lambda x: x * 2 + 1, [T(0, 4)]),
        (lambda x: x * 2 + 1, [torch.tensor(3.0)]),
        (lambda x: x * 2 + 1, [T(1, 5)[:, ::5]]),
        (lambda x: x * 2, [T(6, 6).bfloat16()]),
        (lambda x: x * 2, [T(6, 6).half()]),
        (lambda x: x * 2, [torch.arange(9, dtype=torch.uint8)]),
        (lambda x: ~x, [T(6, 6) > 0]),
        (lambda x, y: x + y, [T(4, 4), torch.nn.Parameter(T(4, 4))]),
        (lambda x: (x, (x + 1).t(), x * 2), [T(3, 4)]),
        (lambda x, y: (x + y, 7), [T(3), T(3)]),
        (lambda x: x + 1, [torch.arange(33, dtype=torch.uint8)[1:].view(torch.int8)]),
    ],
    ids=[
        "small",
        "on the pool",
        "strided",
        "expanded",
        "no elements",
        "a scalar",
        "strides of one element",
        "bfloat16",
        "float16",
        "uint8",
        "bools",
        "a parameter",
        "an argument and a transposed result",
        "a number as result",
        "at an odd offset",
    ],
)
def test_the_launcher_reads_and_makes_tensors(
    function: Callable[..., Any], args: Sequence[Any], slow_calls: list[Any]
) -> None:
    """Results equal PyTorch's in value and stride, and no call goes by arrays in Python."""
    fast = compiled(function)
    with torch.no_grad():
        for _ in range(2):
            assert_same(fast(*args), function(*args))
    assert not slow_calls


@pytest.mark.parametrize("extents", [(8, 512), (300, 512)], ids=["small", "on the pool"])
def test_gradients_are_read_and_made_as_well(
    extents: tuple[int, ...], slow_calls: list[Any]
) -> None:
    """Forward and backward equal PyTorch's for tensors that require gradients."""
    x, y = T(extents, requires_grad=True), T(extents, requires_grad=True)
    fast = compiled(lambda x, y: torch.relu(x * y).mean(0))
    fast(x, y).square().sum().backward()
    actual = x.grad, y.grad
    x.grad = y.grad = None
    torch.relu(x * y).mean(0).square().sum().backward()
    assert_same(actual, (x.grad, y.grad))
    assert not slow_calls


def test_saved_tensors_that_are_results(slow_calls: list[Any]) -> None:
    """A result that the gradient needs, too, is returned once more, as the same memory."""
    x = T(8, 512, requires_grad=True)
    fast = compiled(lambda x: torch.tanh(x * 2))
    module = torch.fx.symbolic_trace(lambda x: (torch.tanh(x * 2),))
    with recording() as records:
        result = passkit_backend(module, [x])(x)[0]
    result.sum().backward()
    assert_same(x.grad, 2 * (1 - torch.tanh(2 * x).square()))
    assert [r.program.run is r.program for r in records if r.program] == [False, False]
    result = fast(x)
    with torch.no_grad():
        result.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()
    assert not slow_calls


@pytest.mark.parametrize("size", [5, 700])
def test_symbolic_sizes(size: int, slow_calls: list[Any]) -> None:
    """Results that are sizes come with tensors that the launcher made."""
    fast = compiled(lambda x: (x * 2, x.shape[0] * 3, x.flatten()[:-1]), dynamic=True)
    for n in (size, size + 3):
        x = T(n, 100)
        actual = fast(x)
        assert_same(actual[0], x * 2)
        assert_same(actual[2], x.flatten()[:-1])
        assert actual[1] == n * 3
    assert not slow_calls


def test_arguments_that_are_one_tensor() -> None:
    """One tensor for two arguments is read twice; results do not lie in it."""
    fast = compiled(lambda x, y: x * 2 + y)
    x = T(4, 4)
    before = x.clone()
    result = fast(x, x)
    assert_same(result, before * 3)
    result.zero_()
    assert torch.equal(x, before)


@pytest.mark.parametrize(
    "tensor",
    [T(4, dtype=torch.complex64).conj().imag, T(4, dtype=torch.complex64).conj()],
    ids=["negated", "conjugated"],
)
def test_pending_signs_go_by_arrays(tensor: Any, slow_calls: list[Any]) -> None:
    """Tensors whose memory has other signs than their elements are not read by the launcher."""
    assert tensor.is_neg() or tensor.is_conj()
    module = torch.fx.symbolic_trace(lambda x: (x * 2,))
    run = passkit_backend(module, [tensor])
    assert_same(run(tensor), (tensor * 2,))
    assert run(tensor.resolve_conj().resolve_neg())
    assert slow_calls


def test_inference_mode() -> None:
    """Results inside of inference mode are inference tensors, as PyTorch's are."""
    fast = compiled(lambda x: x + 1)
    with torch.inference_mode():
        result = fast(T(3))
        assert result.is_inference()
    assert not fast(T(3)).is_inference()


def test_results_keep_their_memory_until_they_are_gone() -> None:
    """A view of a large result keeps its memory; the memory returns to the pool after it."""
    fast = compiled(lambda x: x + 1)
    x = T(512, 512)
    fast(x)
    gc.collect()
    before = pool_stats()["live_bytes"]
    part = fast(x)[3]
    fast(torch.zeros(512, 512))
    assert pool_stats()["live_bytes"] > before
    assert_same(part, x[3] + 1)
    del part
    gc.collect()
    assert pool_stats()["live_bytes"] == before


def test_results_may_be_released_by_other_threads() -> None:
    """Autograd's threads, which do not hold the GIL, return memory of results to the pool."""
    fast = compiled(lambda x: torch.sin(x * 2))
    x = T(512, 512, requires_grad=True)
    fast(x).sum().backward()
    x.grad = None
    gc.collect()
    before = pool_stats()["live_bytes"]
    for _ in range(20):
        fast(x).sum().backward()
    x.grad = None
    gc.collect()
    assert pool_stats()["live_bytes"] == before


def test_threads() -> None:
    """Threads call one compiled function at the same time, each with its own arguments."""
    fast = compiled(lambda x: torch.softmax(x * 2, -1))
    inputs = [T(64, 512) for _ in range(4)]
    expected = [torch.softmax(x * 2, -1) for x in inputs]
    fast(inputs[0])
    wrong: list[int] = []

    def work(k: int) -> None:
        for _ in range(50):
            if not torch.allclose(fast(inputs[k]), expected[k], atol=1e-6):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_programs_are_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiled graph that nobody holds is freed, although it refers to itself."""
    created: list[weakref.ref[Any]] = []
    use_tensors = programs.Program._use_tensors

    def noted(self: Any) -> None:
        created.append(weakref.ref(self))
        use_tensors(self)

    monkeypatch.setattr(programs.Program, "_use_tensors", noted)
    run = passkit_backend(torch.fx.symbolic_trace(lambda x: (x * 2,)), [T(3)])
    run(T(3))
    assert [r() is None for r in created] == [False]
    del run
    torch._dynamo.reset()
    gc.collect()
    assert [r() is None for r in created] == [True]


def test_pytorch_without_the_exchange_api(
    monkeypatch: pytest.MonkeyPatch, slow_calls: list[Any]
) -> None:
    """Where PyTorch has no exchange API, calls go by arrays and give the same."""
    monkeypatch.setattr(programs, "API_ATTRIBUTE", "__no_such_api__")
    programs.tensor_library.cache_clear()
    try:
        x = T(5, 5)
        assert_same(compiled(lambda x: (x.t() * 2, x))(x), (x.t() * 2, x))
    finally:
        programs.tensor_library.cache_clear()
    assert slow_calls == [1]


def capsule_of(table: Any) -> Any:
    """Return a capsule with a table of functions, which must outlive it."""
    new_capsule = ctypes.pythonapi.PyCapsule_New
    new_capsule.restype = ctypes.py_object
    new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new_capsule(ctypes.addressof(table), b"dlpack_exchange_api", None)


def doubled() -> Executable:
    """Return a program of one input and one output."""
    return Executable(Graph([ops.mul(var("x", (3,), "float32"), 2.0)]), {})


def test_results_are_computed_arguments_or_values() -> None:
    """A program returns what its results say, and empties the list of arguments."""
    executable, library = doubled(), programs.tensor_library()
    assert library is not None
    results = [
        ValueResult(None),
        ArgumentResult(1),
        ComputedResult(0),
        ComputedResult(0),
        MappedResult(0, torch.Tensor.neg),
    ]
    rows = [(0, executable.inputs[0].dtype)], [executable.outputs[0].dtype]
    run = tensor_program(executable.native_program, library, *rows, results, lambda args: args)
    args = [torch.ones(3), "argument"]
    nothing, argument, first, again, negated = run(args)
    assert torch.equal(negated, -first)
    assert (nothing, argument, args) == (None, "argument", [])
    assert first is again and torch.equal(first, torch.full((3,), 2.0))
    # No tensor, another dtype, another rank, or too few arguments: the fallback gets the list.
    for other in ([3], [torch.ones(3).double(), 0], [torch.ones(1, 3), 0], [], [torch.ones(3)]):
        assert run(other) is other
    with pytest.raises(TypeError, match=r"takes one list of arguments"):
        run((torch.ones(3),))  # type: ignore[arg-type]
    with pytest.raises(FeedError, match=r"axis 0 must be 3 long"):
        run([torch.ones(4), 0])


@pytest.mark.parametrize(
    ("inputs", "outputs", "results", "message"),
    [
        (0, 1, [ComputedResult(0)], r"has 1 inputs and 1 outputs, got 0 and 1"),
        (1, 2, [ComputedResult(0)], r"has 1 inputs and 1 outputs, got 1 and 2"),
        (1, 1, [ValueResult(3)], r"no result is output 0 of the program"),
        (1, 1, [ComputedResult(1)], r"got \('computed', 1, \(\)\)"),
        (1, 1, [ComputedResult(0, (1,))], r"got \('computed', 0, \(1,\)\)"),
        (1, 1, [MappedResult(3, abs)], r"got \('mapped', 3, <built-in function abs>\)"),
        (1, 1, [MappedResult(0, "no")], r"got \('mapped', 0, 'no'\)"),
        (1, 1, [ArgumentResult(-1)], r"got \('argument', -1\)"),
    ],
)
def test_rows_that_do_not_fit_the_program(
    inputs: int, outputs: int, results: list[Any], message: str
) -> None:
    """Inputs, outputs and results are compared with those of the program."""
    executable, library = doubled(), programs.tensor_library()
    assert library is not None
    rows = [(0, executable.inputs[0].dtype)] * inputs, [executable.outputs[0].dtype] * outputs
    with pytest.raises(ValueError, match=message):
        tensor_program(executable.native_program, library, *rows, results, lambda args: args)


def test_an_exchange_api_of_another_version() -> None:
    """The major version of DLPack's functions is checked before they are called."""
    executable = doubled()
    table = (ctypes.c_uint32 * 16)(9, 0)
    library = TensorLibrary(capsule_of(table), (torch.Tensor,), ())
    rows = [(0, executable.inputs[0].dtype)], [executable.outputs[0].dtype]
    results = [ComputedResult(0)]
    with pytest.raises(ValueError, match=r"needs DLPack 1 and views of tensors, got DLPack 9"):
        tensor_program(executable.native_program, library, *rows, results, lambda args: args)


def test_a_library_that_takes_no_tensor() -> None:
    """Where the library refuses a result, the call raises, and no memory is lost."""
    library = programs.tensor_library()
    assert library is not None
    x = var("x", (512, 512), "float32")
    executable = Executable(Graph([ops.mul(x, 2.0), ops.mul(x, 3.0)]), {})
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = (ctypes.c_uint64 * 7)()
    ctypes.memmove(table, pointer(library.api, b"dlpack_exchange_api"), ctypes.sizeof(table))
    release = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
    refused: list[int] = []

    def refuse(managed: int, result: Any) -> int:
        """Release a tensor, as a library does that cannot make an object of it."""
        refused.append(managed)
        release(ctypes.c_uint64.from_address(managed + 16).value)(managed)
        return -1

    function = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(refuse)
    table[4] = ctypes.cast(function, ctypes.c_void_p).value or 0
    refusing = TensorLibrary(capsule_of(table), library.types, ())
    rows = [(0, executable.inputs[0].dtype)], [d.dtype for d in executable.outputs]
    results = [ComputedResult(0), ComputedResult(1)]
    run = tensor_program(executable.native_program, refusing, *rows, results, lambda args: args)
    before = pool_stats()["live_bytes"]
    with pytest.raises(RuntimeError, match="a result could not be made a tensor"):
        run([T(512, 512)])
    assert len(refused) == 1 and pool_stats()["live_bytes"] == before
