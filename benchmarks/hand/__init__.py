"""Kernels written by hand, compiled at first use: the standard for generated ones.

``kernel(name)`` is a callable on NumPy arrays that returns a fresh array;
``HandwrittenKernel.seconds`` times the kernel in isolation, in a C loop. Results of 1 MB and more
come from recycled huge-page slabs, which are fastest; smaller results and all scratch come from
NumPy.
"""

import ctypes
import hashlib
import math
import mmap
import os
import subprocess
import tempfile
import weakref
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from attrs import field, frozen, mutable

FOLDER = Path(__file__).parent
SOURCES = ("threads.cpp", "elementwise.cpp", "rows.cpp", "attention.cpp")
FLAGS = (
    "-O3",
    "-march=native",
    "-std=c++17",
    "-fopenmp",
    "-shared",
    "-fPIC",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=off",
    "-mprefer-vector-width=512",
)
NEEDS = frozenset({"avx512f", "avx512dq"})
HUGE_PAGE = 2 << 20
SLAB_NBYTES = 1 << 20  # from here on results are slabs
KEEP_NBYTES = 1 << 30  # free slabs kept at most

KernelShape = tuple[int, ...]


class UnavailableError(RuntimeError):
    """The kernels cannot be built or run on this machine; the message says why."""


@cache
def library() -> ctypes.CDLL:
    """Return the shared library of all kernels, compiled into the temporary folder once per source.

    Raises:
        UnavailableError: the CPU lacks AVX-512, or there is no compiler, or it fails.
    """
    flags = _cpu_flags()
    if missing := NEEDS - set(flags.split()):
        raise UnavailableError(
            f"the hand-written kernels need {' and '.join(sorted(missing))}, which this CPU lacks"
        )
    compiler = os.environ.get("CXX", "g++")
    texts = [(FOLDER / name).read_bytes() for name in (*SOURCES, "vector.h", "tables.h")]
    digest = hashlib.sha256(
        b"\0".join([*texts, compiler.encode(), *map(str.encode, FLAGS), flags.encode()])
    ).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"passkit-hand-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid() or folder.stat().st_mode & 0o022:
        raise UnavailableError(f"{folder} may be written by others; remove it or set TMPDIR")
    shared_object = folder / f"{digest}.so"
    if not shared_object.exists():
        draft = folder / f"{digest}.{os.getpid()}.so"
        command = [compiler, *FLAGS, *(str(FOLDER / name) for name in SOURCES), "-o", str(draft)]
        try:
            process = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError as error:
            message = f"no compiler named {compiler!r}; install g++ or set CXX"
            raise UnavailableError(message) from error
        if process.returncode:
            raise UnavailableError(f"{compiler} failed:\n{process.stderr}")
        draft.rename(shared_object)
    return ctypes.CDLL(str(shared_object))


def _cpu_flags() -> str:
    """Return the line of CPU flags of Linux, or ""."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line for line in lines if line.startswith("flags")), "")


def set_threads(count: int) -> None:
    """Run the kernels on ``count`` threads, with the workers pinned to CPUs of this process."""
    cpus = sorted(os.sched_getaffinity(0))
    thread_cpus = (ctypes.c_int64 * count)(*(cpus[t % len(cpus)] for t in range(count)))
    library().hand_threads(ctypes.c_int64(count), thread_cpus)
    for each in KERNELS.values():  # their scratch has a part for each thread
        each.forget()


@mutable
class SlabPool:
    """Huge-page memory that is reused when the arrays on it are gone."""

    free: dict[int, list[mmap.mmap]] = field(factory=dict)
    free_nbytes: int = 0

    def empty(self, shape: KernelShape) -> np.ndarray:
        """Return a float32 array whose memory returns to the pool when its last view is dropped."""
        nbytes = math.prod(shape) * 4
        if nbytes < SLAB_NBYTES:
            return np.empty(shape, np.float32)
        length = -(-nbytes // HUGE_PAGE) * HUGE_PAGE + HUGE_PAGE
        stock = self.free.get(length)
        if stock:
            slab = stock.pop()
            self.free_nbytes -= length
        else:
            slab = mmap.mmap(-1, length)
            slab.madvise(mmap.MADV_HUGEPAGE)
        # The raw buffer is the base of every view; its end is the end of the last one.
        raw = (ctypes.c_char * length).from_buffer(slab)
        weakref.finalize(raw, self._give_back, slab, length).atexit = False
        offset = -ctypes.addressof(raw) % HUGE_PAGE
        return np.frombuffer(raw, np.float32, nbytes // 4, offset).reshape(shape)

    def clear(self) -> None:
        """Return the free slabs to the system."""
        self.free.clear()
        self.free_nbytes = 0

    def _give_back(self, slab: mmap.mmap, length: int) -> None:
        if self.free_nbytes + length <= KEEP_NBYTES:
            self.free.setdefault(length, []).append(slab)
            self.free_nbytes += length


POOL = SlabPool()


@frozen
class KernelCallPlan:
    """The result's shape, the size arguments and the scratch of a kernel for some input shapes."""

    result: KernelShape
    sizes: Any
    scratch: np.ndarray | None


@frozen
class HandwrittenKernel:
    """One kernel: its C name, the sizes it takes, its result's shape and its scratch.

    A call costs about 2 us of Python and ctypes besides the kernel; ``seconds`` leaves that out.
    """

    name: str
    result: Callable[[list[KernelShape]], KernelShape]
    sizes: Callable[[list[KernelShape]], tuple[int, ...]]
    scratch: Callable[[list[KernelShape]], int] = lambda shapes: 0
    _plans: dict[tuple[KernelShape, ...], KernelCallPlan] = field(
        factory=dict, init=False, repr=False, eq=False
    )

    def forget(self) -> None:
        """Drop the plans of all input shapes."""
        self._plans.clear()

    def _plan(self, arrays: tuple[np.ndarray, ...]) -> KernelCallPlan:
        key = tuple(a.shape for a in arrays)
        plan = self._plans.get(key)
        if plan is None:
            shapes = list(key)
            sizes, elements = self.sizes(shapes), self.scratch(shapes)
            scratch = np.empty(elements, np.float32) if elements else None
            plan = KernelCallPlan(
                self.result(shapes), (ctypes.c_int64 * len(sizes))(*sizes), scratch
            )
            self._plans[key] = plan
        return plan

    def __call__(self, *arrays: np.ndarray) -> np.ndarray:
        """Compute the result for contiguous, writable float32 arrays, in fresh memory."""
        plan = self._plan(arrays)
        out = POOL.empty(plan.result)
        _function(self.name)(_pointers(arrays, out, plan.scratch), plan.sizes)
        return out

    def seconds(self, sets: list[tuple[np.ndarray, ...]], calls: int) -> float:
        """Time a C loop of ``calls`` calls over the sets of inputs, each with its own result.

        Returns:
            Seconds of one call.
        """
        plan = self._plan(sets[0])
        outs = [POOL.empty(plan.result) for _ in sets]
        lists = [
            _pointers(inputs, out, plan.scratch) for inputs, out in zip(sets, outs, strict=True)
        ]
        table = (ctypes.c_void_p * len(lists))(*(ctypes.addressof(p) for p in lists))
        timer = library().hand_time
        timer.restype = ctypes.c_double
        spent = timer(
            _function(self.name),
            table,
            ctypes.c_int64(len(lists)),
            plan.sizes,
            ctypes.c_int64(calls),
        )
        return float(spent) / calls / 1e9


@cache
def _function(name: str) -> Any:
    function = getattr(library(), name)
    function.restype = None
    return function


def _pointers(arrays: tuple[np.ndarray, ...], out: np.ndarray, scratch: np.ndarray | None) -> Any:
    """Return the array of addresses that a kernel takes."""
    buffers = (*arrays, out) if scratch is None else (*arrays, out, scratch)
    address, view = ctypes.addressof, ctypes.c_char.from_buffer
    return (ctypes.c_void_p * len(buffers))(*[address(view(b)) for b in buffers])


def _elements(shapes: list[KernelShape]) -> tuple[int, ...]:
    return (math.prod(shapes[0]),)


def _rows(shapes: list[KernelShape]) -> tuple[int, ...]:
    return (math.prod(shapes[0][:-1]), shapes[0][-1])


def _same(shapes: list[KernelShape]) -> KernelShape:
    return shapes[0]


def _figure1(shapes: list[KernelShape]) -> KernelShape:
    """Return the length of four concatenated results: (B, 94, N), and three of (B, 94, 1)."""
    q, _, v = shapes[:3]
    return (math.prod(q[:2]) * (v[2] + 3),)


def _threads() -> int:
    return int(library().omp_get_max_threads())


KERNELS = {
    k.name: k
    for k in (
        HandwrittenKernel("gelu_erf", _same, _elements),
        HandwrittenKernel("gelu_custom_erf", _same, _elements),
        HandwrittenKernel("chain", _same, _rows),
        HandwrittenKernel("small20", _same, _elements),
        HandwrittenKernel(
            "softmax", _same, _rows, lambda shapes: 2 * _threads() * shapes[0][-1] + 16
        ),
        HandwrittenKernel("layer_norm", _same, _rows),
        HandwrittenKernel("bias_gelu", _same, _rows),
        HandwrittenKernel(
            "column_sum",
            lambda shapes: shapes[0][1:],
            _rows,
            lambda shapes: _threads() * shapes[0][-1],
        ),
        HandwrittenKernel("full_sum", lambda shapes: (), _elements),
        HandwrittenKernel("plain_sum", lambda shapes: (), _elements),
        HandwrittenKernel(
            "attention",
            _same,
            lambda shapes: shapes[0],
            lambda shapes: _threads() * (shapes[0][2] + 8) * -(-shapes[0][1] // 16) * 16,
        ),
        HandwrittenKernel(
            "figure1",
            _figure1,
            lambda shapes: (shapes[0][0], shapes[0][2], shapes[2][2]),
            lambda shapes: _threads() * 1024,
        ),
    )
}


def kernel(name: str) -> HandwrittenKernel:
    """Return the kernel of a name.

    Raises:
        KeyError: there is none.
    """
    return KERNELS[name]
