"""CUDA programs: which step runs on the device and which on the host, and the CUDA run time.

A library step runs by cuBLASLt or cuDNN where they support it. A kernel that adds a bias to a
product becomes an epilogue of the product, where the result has the same bits: products of float32
and float64 are in that type before they are stored. Other epilogues stay kernels: the library's
relu does not handle NaN, its gelu is an approximation, and with 16 bits one rounding is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import pairwise
from typing import Any

from attrs import evolve

from passkit.graph.kernel import Kernel
from passkit.runtime.cuda.arrays import DeviceArray, find_array, new_array
from passkit.runtime.cuda.compiler import CudaKernel, build
from passkit.runtime.cuda.convolution import ConvolutionStep, FilterGradientStep
from passkit.runtime.cuda.device import (
    CudaDevice,
    CudaQueue,
    adapt_target,
    device,
    pool_of,
)
from passkit.runtime.cuda.driver import DriverError
from passkit.runtime.cuda.graphs import CAPTURES, resident_program, with_graphs
from passkit.runtime.cuda.helper_kernels import delay
from passkit.runtime.cuda.launch import DeviceCopyStep, KernelStep
from passkit.runtime.cuda.libraries import UnsupportedError
from passkit.runtime.cuda.matmul import MatmulStep
from passkit.runtime.device.bound_program import (
    BoundProgram,
    ProgramData,
    StepAction,
    program_data,
)
from passkit.runtime.device.call_memory import CallMemory
from passkit.runtime.device.external_arrays import ExternalArray
from passkit.runtime.device.records import REPLAYS, ResidentProgram
from passkit.runtime.device.runtimes import DeviceRuntime
from passkit.runtime.program import (
    ArrayRef,
    CopyStep,
    FilterGradient,
    LaunchStep,
    LibraryCall,
    MatrixProduct,
    MatrixProductSum,
    PythonCall,
    RuntimeProgram,
)
from passkit.runtime.state import State
from passkit.target import Target

EXACT_BIAS_DTYPES = ("float32", "float64")


def _foreign_streams(arrays: Sequence[Any]) -> dict[int | None, None]:
    """Return the streams of those of ``arrays`` that are on the device and not passkit's own.

    None is among them if the stream of one is not known.
    """
    external = (a for a in arrays if isinstance(a, ExternalArray))
    return dict.fromkeys(a.stream for a in external if not a.is_own)


class CudaBoundProgram(BoundProgram):
    """A program with a number for each size, on a CUDA device.

    Args:
        program: The program.
        data: Its data on the device.
        sizes: The value of each symbolic size.

    Attributes:
        num_host_steps: How many steps run on the host.
        num_library_steps: How many steps run by a library of the device.
        steps_on_host: The positions of library steps that no library of the device supports.

    Raises:
        DeviceError: where a kernel does not fit on the device.
    """

    def __init__(
        self, program: RuntimeProgram, data: ProgramData, sizes: Mapping[str, int]
    ) -> None:
        self.device: CudaDevice = data.device
        self.num_host_steps = sum(isinstance(step, PythonCall) for step in program.steps)
        self.num_library_steps = 0
        self.steps_on_host: set[int] = set()
        with self.device.active("choosing launch configurations"):
            super().__init__(program, data, sizes)
            num_epilogues = join_biases(self)
        self.plan = with_graphs(self)
        data.counts |= {
            "host_steps": self.num_host_steps,
            "device_library_steps": self.num_library_steps,
            "epilogues": num_epilogues,
        }

    def memory(self, inputs: Sequence[Any], outputs: Sequence[Any], queue: Any) -> CallMemory:
        """Return the memory of a call: its arrays, the constants and the variables.

        Before that, ``queue``, which transfers are enqueued in, waits for the streams in which
        others write the external arrays among ``inputs`` and ``outputs``. Raises: DriverError where
        the driver refuses.
        """
        for stream in _foreign_streams((*inputs, *outputs)):
            if stream is not None:
                self.device.driver.wait_for(self.device.stream, stream)
        return super().memory(inputs, outputs, queue)

    def complete(self, memory: CallMemory, external: Sequence[ExternalArray]) -> None:
        """Let those wait for a call, whose work is all enqueued, who use its arrays afterwards.

        The host waits if it takes part, or if the stream of an array of another library is not
        known; other streams of such arrays wait. Raises: DriverError where work in the queue has
        failed.
        """
        streams = _foreign_streams(external)
        handles = [stream for stream in streams if stream is not None]
        if memory.transfer_events or len(handles) < len(streams):
            memory.queue.finish()
            return
        for stream in handles:
            self.device.driver.wait_for(stream, self.device.stream)

    @cached_property
    def resident_program(self) -> ResidentProgram | None:
        """The launches of a call whose arrays are on the device.

        None where it has steps on the host, in a library or copies, or the launcher in C cannot
        call the driver.
        """
        calls = self.device.calls
        steps = [action for action in self.actions if isinstance(action, KernelStep)]
        if calls is None or len(steps) < sum(action is not None for action in self.actions):
            return None
        with self.device.active("preparing launches"):
            return resident_program(self, calls, steps)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Make device and variables usable inside the `with` block.

        After a failure inside, wait for all enqueued work. Raises: DeviceError where a driver call
        fails inside.
        """
        with super().running():
            try:
                yield
            except BaseException:
                with suppress(DriverError):  # no transfer may still use the caller's arrays
                    self.device.queue.finish()
                raise

    def measuring_queue(self) -> CudaQueue:
        """Return a queue whose events can be timed, with a delay that hides the host's time.

        Raises: DeviceError where the driver fails; KernelRefusedError, MissingDependencyError or
        CacheError where the kernel of the delay cannot be built, as `build_text`.
        """
        with self.device.active("preparing to measure"):
            return evolve(self.device.measuring_queue(), keep_busy=delay(self.device))

    def library(self, step: LibraryCall) -> StepAction:
        """Return the function that runs a step by a library of the device, or else of the host.

        Steps on the host are recorded in ``steps_on_host``, with the reason in the statistics.
        """
        try:
            action = device_library_step(step, self)
        except UnsupportedError as reason:
            reasons = self.data.counts.setdefault("on_host_because", ())
            if str(reason) not in reasons:
                self.data.counts["on_host_because"] = (*reasons, str(reason))
            self.num_host_steps += 1
            steps = enumerate(self.program.steps)
            self.steps_on_host.add(next(k for k, other in steps if other is step))
            return super().library(step)
        self.num_library_steps += 1
        return action

    def launch(self, step: LaunchStep) -> KernelStep | None:
        """Return the step that enqueues a kernel, None where its grid is empty.

        Raises: DeviceError where a block does not fit on the device.
        """
        return KernelStep(self, step) if self.number(step.kernel.grid) else None

    def copy(self, step: CopyStep) -> DeviceCopyStep:
        """Return the action that copies a value for ``step``."""
        return DeviceCopyStep(self, step)


def device_library_step(step: LibraryCall, bound: CudaBoundProgram) -> StepAction:
    """Return the action that runs a library step on the device, by cuBLASLt or cuDNN.

    ``bound`` is the program that the step belongs to.

    Raises:
        UnsupportedError: where no library supports it; the message says why.
    """
    match step.operation:
        case MatrixProduct():
            return MatmulStep(step, [step.operation], bound)
        case MatrixProductSum():
            return MatmulStep(step, step.operation.parts, bound)
        case FilterGradient():
            return FilterGradientStep(step, step.operation.of, bound)
    return ConvolutionStep(step, step.operation, bound)


def join_biases(bound: CudaBoundProgram) -> int:
    """Replace products followed by kernels that add a bias by products with an epilogue.

    Changes ``bound.actions``: the product's action becomes None, the kernel's the joined product.
    Products that run on the host, have no terms, or whose joined form cuBLASLt does not support
    stay as they are.

    Returns:
        The number of kernels that were joined.
    """
    count = 0
    for k, (product_step, kernel_step, bias) in _biased_products(bound.program):
        if bound.actions[k] is None or bound.actions[k + 1] is None or k in bound.steps_on_host:
            continue
        product = product_step.operation
        if not isinstance(product, MatrixProduct) or not bound.number(product.k):
            continue  # a sum of nothing
        joined = evolve(product_step, refs=(*product_step.reads, kernel_step.writes[0]))
        try:
            action = MatmulStep(joined, [product], bound, bias)
        except UnsupportedError:
            continue
        bound.actions[k : k + 2] = [None, action]
        count += 1
    return count


def _biased_products(
    program: RuntimeProgram,
) -> Iterator[tuple[int, tuple[LibraryCall, LaunchStep, ArrayRef]]]:
    """Yield products with the kernel after them that only adds a vector to each row.

    Yields:
        The position of the product; its step, the kernel's step, and the vector.
    """
    for k, (first, second) in enumerate(pairwise(program.steps)):
        if not isinstance(first, LibraryCall) or not isinstance(first.operation, MatrixProduct):
            continue
        if not isinstance(second, LaunchStep) or second.kernel.ops != ("add",):
            continue
        (result,) = first.writes
        others = [ref for ref in second.reads if ref.key != result.key]
        if len(second.reads) != 2 or len(others) != 1 or len(second.writes) != 1:
            continue
        (bias,), (target,) = others, second.writes
        is_vector = bias.shape == (first.operation.n,) and target.shape == result.shape
        is_separate = target.key not in {ref.key for ref in (*first.reads, bias)}
        is_exact = result.dtype.name in EXACT_BIAS_DTYPES
        if is_vector and is_separate and is_exact and not _is_read_later(program, k, result):
            yield k, (first, second, bias)


def _is_read_later(program: RuntimeProgram, k: int, product: ArrayRef) -> bool:
    """Return whether anything but the next step may read ``product``, which step ``k`` stores.

    Only values in the arena of ``program`` can be unread; a step that stores over it ends it.
    """
    if product.kind != "arena":
        return True
    for step in program.steps[k + 2 :]:
        if any(ref.key == product.key for ref in step.reads):
            return True
        if any(ref.key == product.key for ref in step.writes):
            return False
    return False


def bind_program(
    program: RuntimeProgram, sizes: Mapping[str, int], state: State
) -> CudaBoundProgram:
    """Return a program bound to ``sizes``, the values of its symbolic sizes, on the CUDA device.

    ``state`` has the program's variables. Raises: DeviceError where there is no driver or device,
    in a fork of the process that opened it, or where a kernel does not fit on it;
    MissingDependencyError without PyCUDA and cuda-bindings; ShapeError where a size has no value.
    """
    data = program_data(program, state, device, pool_of)
    for name in (CAPTURES, REPLAYS):
        data.counts.setdefault(name, 0)
    return CudaBoundProgram(program, data, sizes)


def build_kernels(kernels: Iterable[Kernel], target: Target) -> Mapping[str, CudaKernel]:
    """Return kernels built for this machine's device, by key.

    ``target`` gets the speeds and limits of the device by `adapt_target` first. Raises: DeviceError
    where there is no driver or device, or in a fork of the process that opened it;
    KernelRefusedError where it refuses a kernel; MissingDependencyError without NVRTC, or without
    PyCUDA and cuda-bindings; CacheError where other users may write to the cache folder.
    """
    return build(kernels, device(), adapt_target(target))


def kernel_stats(kernels: Sequence[Kernel]) -> dict[str, Any]:
    """Return entries of `Executable.stats`: "device", the device's name, and "relaxed".

    The latter is empty: no operation is less accurate than on other targets. ``kernels`` has no
    effect. Raises: DeviceError where there is no driver or device, or in a fork of the process that
    opened it; MissingDependencyError without PyCUDA and cuda-bindings.
    """
    return {"device": str(device()), "relaxed": ()}


RUNTIME = DeviceRuntime(
    adapt_target=adapt_target,
    build_kernels=build_kernels,
    bind_program=bind_program,
    kernel_stats=kernel_stats,
    find_array=find_array,
    allocate_array=new_array,
    array_type=DeviceArray,
)
