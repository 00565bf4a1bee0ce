"""A libcuda.so.1 whose calls go to the fake driver: real PyCUDA and cuda-bindings run on it.

A plugin of pytest: ``pytest -p tests.emulator.libcuda -m cuda tests/runtime/cuda``. What libraries
are installed then find a driver, and kernels run on the emulated machine. Source: cuda.h 13.0.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from passkit.runtime.cuda import compiler as compilers
from passkit.runtime.cuda import cublaslt, cudnn, libraries
from passkit.runtime.cuda.driver import DriverError, LaunchParams
from tests.emulator.compiling import folder, run
from tests.emulator.fake_driver import FakeDriver, FakeNvrtc
from tests.emulator.fake_libraries import FakeLibraries
from tests.emulator.native_calls import CODES, NUMBERS, at, word

TEXTS = {code: ctypes.create_string_buffer(text.encode()) for code, text in CODES.items()}
HOST = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint64))
WORDS = ", ".join(f"word a{k}" for k in range(12))
SOURCE = f"""
typedef unsigned long long word;
typedef int (*Host)(const char *, word *);
static Host host;
void serve(Host own) {{ host = own; }}
#define FN(name) int name({WORDS}) {{ \\
  word v[] = {{{", ".join(f"a{k}" for k in range(12))}}}; return host ? host(#name, v) : 3; }}
"""


def put(address: int, kind: Any, value: Any) -> None:
    """Write a number to an address."""
    kind.from_address(address).value = value


def int32(value: int) -> int:
    """Return an argument of 32 bits, whose upper bits are undefined."""
    return int(ctypes.c_int32(value & 0xFFFFFFFF).value)


class DriverCalls:
    """The driver API by its names in cuda.h; each function gets its arguments as words."""

    def __init__(self, driver: FakeDriver) -> None:
        self.driver, self.contexts = driver, 0
        self.held: dict[int, Any] = {}
        self.address: Callable[[str], int] = lambda name: 0

    def keep(self, value: Any) -> int:
        """Return a handle of an object."""
        self.held[id(value)] = value
        return id(value)

    def give(self, address: int, value: Any) -> None:
        """Store a handle of an object at an address."""
        put(address, ctypes.c_uint64, self.keep(value))

    def cuInit(self, v: Any) -> None:  # noqa: N802, D102
        pass

    def cuGetErrorString(self, v: Any) -> None:  # noqa: N802, D102
        put(v[1], ctypes.c_uint64, ctypes.addressof(TEXTS[int32(v[0])]))

    def cuGetProcAddress(self, v: Any) -> None:  # noqa: N802, D102
        name = ctypes.string_at(v[0]).decode()
        put(v[1], ctypes.c_uint64, self.address(name))
        if v[4]:
            put(v[4], ctypes.c_int32, 0 if self.address(name) else 1)

    def cuDriverGetVersion(self, v: Any) -> None:  # noqa: N802, D102
        major, minor = self.driver.properties.version
        put(v[0], ctypes.c_int32, 1000 * major + 10 * minor)

    def cuDeviceGetCount(self, v: Any) -> None:  # noqa: N802, D102
        put(v[0], ctypes.c_int32, 1)

    def cuDeviceGet(self, v: Any) -> None:  # noqa: N802, D102
        put(v[0], ctypes.c_int32, 0)

    def cuDeviceGetName(self, v: Any) -> None:  # noqa: N802, D102
        ctypes.memmove(v[0], self.driver.properties.name.encode() + b"\0", 5)

    def cuDeviceTotalMem(self, v: Any) -> None:  # noqa: N802, D102
        put(v[0], ctypes.c_uint64, self.driver.properties.limits.global_nbytes)

    def cuDeviceComputeCapability(self, v: Any) -> None:  # noqa: N802, D102
        for where, number in zip(v[:2], self.driver.properties.capability, strict=True):
            put(where, ctypes.c_int32, number)

    def cuDeviceGetAttribute(self, v: Any) -> None:  # noqa: N802, D102
        own, (major, minor) = self.driver.properties.limits, self.driver.properties.capability
        values = {
            1: own.threads,
            5: own.grid,
            16: own.units,
            75: major,
            76: minor,
            95: own.cooperative,
            97: own.shared_nbytes,
        }
        put(v[0], ctypes.c_int32, values[int32(v[1])])

    def cuDevicePrimaryCtxRetain(self, v: Any) -> None:  # noqa: N802, D102
        self.give(v[0], self.driver)

    def cuDevicePrimaryCtxRelease(self, v: Any) -> None:  # noqa: N802, D102
        pass

    def cuCtxPushCurrent(self, v: Any) -> None:  # noqa: N802, D102
        assert self.held[v[0]] is self.driver
        self.driver.local.depth = getattr(self.driver.local, "depth", 0) + 1

    def cuCtxPopCurrent(self, v: Any) -> None:  # noqa: N802, D102
        self.driver.local.depth -= 1
        put(v[0], ctypes.c_uint64, id(self.driver))

    def cuCtxGetCurrent(self, v: Any) -> None:  # noqa: N802, D102
        put(v[0], ctypes.c_uint64, id(self.driver) if getattr(self.driver.local, "depth", 0) else 0)

    cuCtxSetCurrent = cuCtxPushCurrent  # noqa: N815

    def cuCtxGetDevice(self, v: Any) -> None:  # noqa: N802, D102
        put(v[0], ctypes.c_int32, 0)

    def cuModuleLoadData(self, v: Any) -> None:  # noqa: N802, D102
        self.give(v[0], [ctypes.string_at(v[1])])

    cuModuleLoadDataEx = cuModuleLoadData  # noqa: N815

    def cuModuleUnload(self, v: Any) -> None:  # noqa: N802, D102
        pass

    def cuModuleGetFunction(self, v: Any) -> None:  # noqa: N802, D102
        (image,) = self.held[v[1]]
        self.give(v[0], self.driver.load(image, ctypes.string_at(v[2]).decode()))

    def cuFuncGetAttribute(self, v: Any) -> None:  # noqa: N802, D102
        used = self.driver.attributes(self.held[v[2]])
        values = {0: used.threads, 1: used.shared, 3: used.local, 4: used.registers}
        put(v[0], ctypes.c_int32, values[int32(v[1])])

    def cuFuncSetBlockShape(self, v: Any) -> None:  # noqa: N802, D102
        pass

    def cuOccupancyMaxActiveBlocksPerMultiprocessor(self, v: Any) -> None:  # noqa: N802, D102
        spec = self.driver.blocks_at_once(self.held[v[1]], int32(v[2]), v[3])
        put(v[0], ctypes.c_int32, spec)

    def cuMemAlloc(self, v: Any) -> None:  # noqa: N802, D102
        put(v[0], ctypes.c_uint64, self.driver.allocate(v[1]))

    def cuMemFree(self, v: Any) -> None:  # noqa: N802, D102
        self.driver.free(v[0])

    def cuStreamCreate(self, v: Any) -> None:  # noqa: N802, D102
        assert int32(v[1]) == 1, "a stream that waits for the default one"
        put(v[0], ctypes.c_uint64, self.driver.stream())

    def cuStreamDestroy(self, v: Any) -> None:  # noqa: N802, D102
        pass

    def cuStreamSynchronize(self, v: Any) -> None:  # noqa: N802, D102
        self.driver.finish(v[0])

    def cuStreamWaitEvent(self, v: Any) -> None:  # noqa: N802, D102
        _, other = self.held[v[1]]
        self.driver.wait_for(v[0], other)

    def cuMemcpyHtoDAsync(self, v: Any) -> None:  # noqa: N802, D102
        self.driver.upload(v[0], at(v[1], v[2]), v[3])

    def cuMemcpyDtoHAsync(self, v: Any) -> None:  # noqa: N802, D102
        self.driver.download(at(v[0], v[2]), v[1], v[3])

    def cuMemcpyDtoDAsync(self, v: Any) -> None:  # noqa: N802, D102
        self.driver.copy(v[0], v[1], v[2], v[3])

    def cuMemsetD8Async(self, v: Any) -> None:  # noqa: N802, D102
        self.driver.fill(v[0], v[1] & 0xFF, v[2], v[3])

    def cuEventCreate(self, v: Any) -> None:  # noqa: N802, D102
        self.give(v[0], [0.0])

    def cuEventRecord(self, v: Any) -> None:  # noqa: N802, D102
        self.held[v[0]][:] = [*self.driver.event(v[1]), v[1]]

    def cuEventDestroy(self, v: Any) -> None:  # noqa: N802, D102
        del self.held[v[0]]

    def cuEventElapsedTime(self, v: Any) -> None:  # noqa: N802, D102
        seconds = self.driver.seconds(self.held[v[1]], self.held[v[2]])
        put(v[0], ctypes.c_float, 1e3 * seconds)

    def params(
        self, function: int, shape: Any, shared: int, places: int, extra: int
    ) -> LaunchParams:
        """Return a launch whose arguments are behind pointers, or packed in a buffer."""
        own = self.held[function]
        grid, *rest = map(int32, shape)
        assert rest[:2] == [1, 1] and rest[4] == 1
        count = own.arity
        if places:
            arguments = list(own.words(places))
        else:  # CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_SIZE, CU_LAUNCH_PARAM_END
            told = {word(extra + 16 * k): word(extra + 16 * k + 8) for k in range(2)}
            assert word(told[2]) == 8 * count and word(extra + 32) == 0
            arguments = [word(told[1] + 8 * k) for k in range(count)]
        return LaunchParams(own, grid, (rest[2], rest[3]), int32(shared), tuple(arguments))

    def cuLaunchKernel(self, v: Any) -> None:  # noqa: N802, D102
        self.driver.launch(self.params(v[0], v[1:7], v[7], v[9], v[10]), v[8])

    def cuLaunchCooperativeKernel(self, v: Any) -> None:  # noqa: N802, D102
        self.driver.launch(cooperative(self.params(v[0], v[1:7], v[7], v[9], 0)), v[8])

    def cuGraphCreate(self, v: Any) -> None:  # noqa: N802, D102
        self.give(v[0], [])

    def node(self, at: int) -> LaunchParams:
        """Return the launch of CUDA_KERNEL_NODE_PARAMS."""
        shape = [ctypes.c_uint32.from_address(at + 8 + 4 * k).value for k in range(7)]
        return self.params(word(at), shape[:6], shape[6], word(at + 40), word(at + 48))

    def cuGraphAddKernelNode(self, v: Any) -> None:  # noqa: N802, D102
        graph = self.held[v[1]]
        before = [self.held[word(v[2] + 8 * k)] for k in range(v[3])]
        assert before == graph[-1:], "each node is behind the one before"
        graph.append([self.node(v[4])])
        self.give(v[0], graph[-1])

    def cuGraphKernelNodeSetAttribute(self, v: Any) -> None:  # noqa: N802, D102
        assert int32(v[1]) == 2 and ctypes.c_int32.from_address(v[2]).value == 1
        self.held[v[0]][0] = cooperative(self.held[v[0]][0])

    def cuGraphInstantiate(self, v: Any) -> None:  # noqa: N802, D102
        nodes = self.held[v[1]]
        recorded = isinstance(nodes, tuple)
        launches = list(nodes) if recorded else self.driver.graph([params for (params,) in nodes])
        self.give(v[0], (nodes, launches))

    cuGraphInstantiateWithFlags = cuGraphInstantiate  # noqa: N815

    def cuStreamBeginCapture(self, v: Any) -> None:  # noqa: N802, D102
        assert int32(v[1]) == 1, "other threads go on meanwhile"
        self.driver.begin(v[0])

    def cuStreamEndCapture(self, v: Any) -> None:  # noqa: N802, D102
        self.give(v[1], tuple(self.driver.end(v[0])))

    def cuGraphLaunch(self, v: Any) -> None:  # noqa: N802, D102
        self.driver.replay(self.held[v[0]][1], v[1])

    def cuGraphExecDestroy(self, v: Any) -> None:  # noqa: N802, D102
        self.driver.drop(self.held.pop(v[0])[1])

    def cuGraphDestroy(self, v: Any) -> None:  # noqa: N802, D102
        del self.held[v[0]]


def cooperative(params: LaunchParams) -> LaunchParams:
    """Return a launch as a cooperative one."""
    return LaunchParams(
        params.function, params.grid, params.block, params.shared, params.arguments, True
    )


def exported_names() -> list[str]:
    """Return the functions that a library may link to, those of PyCUDA included."""
    names = {n for n in vars(DriverCalls) if n.startswith("cu")} | {
        "cuGetProcAddress_v2",
        "cuCtxPushCurrent_v2",
        "cuCtxPopCurrent_v2",
        "cuMemcpyHtoDAsync_v2",
        "cuMemcpyDtoHAsync_v2",
    }
    spec = find_spec("pycuda")
    if spec is not None and spec.origin is not None:
        for path in Path(spec.origin).parent.glob("_driver*.so"):
            symbols = subprocess.run(("nm", "-D", "-u", str(path)), capture_output=True, text=True)
            names |= set(re.findall(r"\bcu[A-Z]\w+", symbols.stdout))
    return sorted(names)


def load_libcuda(driver: FakeDriver) -> Any:
    """Load a libcuda.so.1 into this process; libraries that look for it get this one."""
    source = folder().new().with_suffix(".c")
    names = exported_names()
    source.write_text(SOURCE + "\n".join(f"FN({n})" for n in names) + "\n")
    path = source.with_name("libcuda.so.1")
    options = ("-shared", "-fPIC", "-w", "-Wl,-soname,libcuda.so.1", "-o", str(path))
    run("gcc", *options, str(source))
    library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    calls = DriverCalls(driver)

    def address(name: str) -> int:
        values = name if name in names else f"{name}_v2"
        has = hasattr(DriverCalls, re.sub(r"_v\d$", "", name))
        pointer = ctypes.cast(getattr(library, values), ctypes.c_void_p).value if has else 0
        return pointer or 0

    @HOST
    def host(name: bytes, words: Any) -> int:
        call = getattr(calls, re.sub(r"_v\d$", "", name.decode()), None)
        if call is None:
            return 801
        try:
            call([words[k] for k in range(12)])
        except DriverError as error:
            return NUMBERS.get(error.message, 999)
        except Exception:
            sys.excepthook(*sys.exc_info())
            return 999
        return 0

    calls.address = address
    library.serve(host)
    library.held = host, calls
    return library


@pytest.fixture(autouse=True, scope="session")
def _served() -> Iterator[None]:
    """Give the test session this driver, a compiler for it, and fake libraries."""
    driver, compiler = FakeDriver(), FakeNvrtc()
    driver.libraries = FakeLibraries(driver, ())
    library = load_libcuda(driver)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compilers, "nvrtc", lambda: compiler)
        for module in (cublaslt, cudnn, libraries):
            patch.setattr(module, "load_library", driver.libraries.load_library)
        yield
    assert library.held
