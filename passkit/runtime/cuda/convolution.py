"""Program steps of convolutions and gradients of their filters by cuDNN."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from passkit.ast.folds import Convolution
from passkit.runtime.cuda.cudnn import (
    CudnnConvolution,
    CudnnFilterGradient,
    cudnn,
    filters_of,
    padded_result,
    unpadded_geometry,
)
from passkit.runtime.cuda.helper_kernels import LayoutKernel, pad_kernel, transpose_kernel
from passkit.runtime.cuda.launch import DeviceAddress, WorkspaceAllocator
from passkit.runtime.cuda.libraries import LibraryStep, OperandAddresses, UnsupportedError
from passkit.runtime.device.call_memory import CallMemory
from passkit.runtime.native.onednn import Geometry
from passkit.runtime.program import ArrayRef, LibraryCall
from passkit.values.size import Extent

if TYPE_CHECKING:
    from passkit.runtime.cuda.program import CudaBoundProgram


class CudnnStep(LibraryStep):
    """A step on images by cuDNN. Images whose padding cuDNN does not support are padded first.

    Args:
        step: The step.
        convolution: The convolution, with symbolic sizes.
        bound: The program.
        kind: `CudnnConvolution` or `CudnnFilterGradient`.

    Attributes:
        geometry: The convolution with the numbers of this program.
        nbytes: The bytes of the result.
        is_empty: Whether an extent is 0, so that the result is empty or zero.
        convolution: cuDNN's descriptors; None where it is empty.
        pad: The kernel that pads the images first; None where cuDNN pads them.

    Raises:
        UnsupportedError: where cuDNN is not installed, or has no algorithm.
    """

    def __init__(
        self,
        step: LibraryCall,
        convolution: Convolution,
        bound: CudaBoundProgram,
        kind: type[CudnnConvolution],
    ) -> None:
        super().__init__(step, bound)
        library = cudnn(bound.device)
        if isinstance(library, UnsupportedError):
            raise library
        geometry = self.geometry = Geometry(*(self._numbers(x) for x in convolution))
        self.nbytes = bound.number(step.writes[0].nbytes)
        counts = (geometry.batch, geometry.channels, geometry.filters)
        self.is_empty = min(*counts, *geometry.window, *geometry.result) < 1
        self.convolution: CudnnConvolution | None = None
        self.pad: LayoutKernel | None = None
        if self.is_empty:
            return
        has_equal_padding = padded_result(geometry) == tuple(geometry.result)
        if min(geometry.before) >= 0 and has_equal_padding:
            self.convolution = library.convolution(geometry, self.dtype, kind)
            return
        unpadded = unpadded_geometry(geometry)
        self.convolution = library.convolution(unpadded, self.dtype, kind)
        self.pad = pad_kernel(bound.device, geometry, unpadded.size, self.dtype.nbytes)

    def clear(self, result: int, stream: Any) -> None:
        """Enqueue zeros, the value of empty sums, at the address ``result`` in ``stream``.

        Nothing happens for a result without elements. Raises: DriverError where the driver refuses.
        """
        if self.nbytes:
            self.device.driver.fill(result, 0, self.nbytes, stream)

    def _numbers(self, x: Extent | tuple[Extent, ...]) -> Any:
        """Return the number of an extent, or a tuple of those of a tuple, in this program.

        Raises: ShapeError where a size has no value.
        """
        return self.bound.shape(x) if isinstance(x, tuple) else self.bound.number(x)

    @property
    def filters_shape(self) -> tuple[int, int]:
        """The filters as a matrix: (elements of a filter, number of filters).

        A filter has the window times the channels of one group.
        """
        geometry = self.geometry
        return prod(geometry.window) * (geometry.channels // geometry.groups), geometry.filters

    def laid_out(
        self,
        kernel: LayoutKernel | None,
        source: int,
        workspaces: WorkspaceAllocator,
        stream: Any,
    ) -> Any:
        """Enqueue a layout change of an operand; return the memory of the result, with its address.

        Args:
            kernel: the kernel; with None, the operand's own memory is returned.
            source: the operand's device address.
            workspaces: allocates the memory.
            stream: the stream to enqueue the kernel in.

        Raises: DeviceError where the device has no memory left; DriverError where the launch fails.
        """
        if kernel is None:
            return DeviceAddress(source)
        workspace = self.workspace(kernel.nbytes, workspaces)
        kernel.enqueue(source, workspace.address, stream)
        return workspace

    def convolve(self, a: int, b: int, c: int, workspaces: WorkspaceAllocator, stream: Any) -> None:
        """Enqueue cuDNN's call with the device addresses of both operands and of the result.

        Args:
            a: the first operand.
            b: the second operand.
            c: the result.
            workspaces: allocates the workspace that the algorithm needs.
            stream: the stream.

        Raises: DeviceError where the device has no memory left; DriverError where cuDNN fails.
        """
        assert self.convolution is not None
        workspace = self.workspace(self.convolution.workspace, workspaces) or DeviceAddress(0)
        handle = self.device.driver.handle(stream)
        self.convolution.enqueue(a, b, c, workspace.address, handle)


class ConvolutionStep(CudnnStep):
    """A convolution. Constant filters are laid out once, others on the device in each call.

    The arguments and errors are those of `CudnnStep`.
    """

    def __init__(
        self, step: LibraryCall, convolution: Convolution, bound: CudaBoundProgram
    ) -> None:
        super().__init__(step, convolution, bound, CudnnConvolution)
        is_constant = step.reads[1].key in bound.data.constants
        self.has_constant_filters = is_constant and not self.is_empty
        if self.has_constant_filters:
            self.reads = step.reads[:1]  # the step has a copy of the filters
        self.transpose: LayoutKernel | None = None
        self.constant_filters: Any = None
        if not self.is_empty and not self.has_constant_filters:
            self.transpose = transpose_kernel(bound.device, *self.filters_shape, self.dtype.nbytes)

    def address(self, ref: ArrayRef, memory: CallMemory) -> int:
        """Return the device address of the operand ``ref``, uploaded where needed.

        Constant filters are laid out for cuDNN and uploaded at the first call, in device memory
        that the step keeps; ``memory`` is the memory of the call. Raises: DeviceError where the
        device has no memory left.
        """
        if ref is not self.step.reads[1] or not self.has_constant_filters:
            return super().address(ref, memory)
        if self.constant_filters is None:
            filters = np.asarray(self.bound.program.constants[ref.index])
            array = filters_of(filters, self.geometry)
            self.constant_filters = memory.pool.take(array.nbytes)
            memory.upload(self.constant_filters, array.reshape(-1).view(np.uint8)).wait()
        return int(self.constant_filters.address)

    def enqueue(
        self, operands: OperandAddresses, workspaces: WorkspaceAllocator, stream: Any
    ) -> None:
        """Enqueue layout changes and the convolution, or zeros where all sums are empty.

        Args:
            operands: the addresses of images and filters, and that of the result.
            workspaces: allocates the operands' copies and cuDNN's workspace.
            stream: the stream.

        Raises: DriverError where the driver or cuDNN fails; DeviceError where the device has no
        memory left.
        """
        addresses, result = operands
        if self.is_empty:
            self.clear(result, stream)
            return
        source, filters = addresses
        with self.device.lock:
            images = self.laid_out(self.pad, source, workspaces, stream)
            filters_memory = self.laid_out(self.transpose, filters, workspaces, stream)
            self.convolve(images.address, filters_memory.address, result, workspaces, stream)


class FilterGradientStep(CudnnStep):
    """The gradient of a convolution's filters, transposed on the device to passkit's layout.

    The arguments and errors are those of `CudnnStep`.
    """

    def __init__(
        self, step: LibraryCall, convolution: Convolution, bound: CudaBoundProgram
    ) -> None:
        super().__init__(step, convolution, bound, CudnnFilterGradient)
        self.transpose: LayoutKernel | None = None
        if not self.is_empty:
            rows, columns = self.filters_shape
            self.transpose = transpose_kernel(bound.device, columns, rows, self.dtype.nbytes)

    def enqueue(
        self, operands: OperandAddresses, workspaces: WorkspaceAllocator, stream: Any
    ) -> None:
        """Enqueue the gradient and its layout change, or zeros where all sums are empty.

        Args:
            operands: the addresses of the images and of the result's gradient, and that of the
                filters' gradient.
            workspaces: allocates cuDNN's result and its workspace.
            stream: the stream.

        Raises: DriverError where the driver or cuDNN fails; DeviceError where the device has no
        memory left.
        """
        addresses, result = operands
        if self.transpose is None:
            self.clear(result, stream)
            return
        source, gradient = addresses
        with self.device.lock:
            images = self.laid_out(self.pad, source, workspaces, stream)
            filters = self.workspace(self.transpose.nbytes, workspaces)
            self.convolve(images.address, gradient, filters.address, workspaces, stream)
            self.transpose.enqueue(filters.address, result, stream)
