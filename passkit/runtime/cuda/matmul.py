"""Program steps of matrix products by cuBLASLt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product as cartesian_product
from typing import TYPE_CHECKING, Any

from passkit.runtime.cuda.cublaslt import (
    ALIGNMENT,
    CublasLt,
    LtEpilogue,
    LtMatmul,
    MatmulShape,
    cublaslt,
)
from passkit.runtime.cuda.launch import WorkspaceAllocator
from passkit.runtime.cuda.libraries import LibraryStep, OperandAddresses, UnsupportedError
from passkit.runtime.program import ArrayRef, LibraryCall, MatrixProduct
from passkit.runtime.table_binder import batch_axes
from passkit.values.dtype import DType

if TYPE_CHECKING:
    from passkit.runtime.cuda.program import CudaBoundProgram


class MatmulStep(LibraryStep):
    """A matrix product, or the sum of several.

    Args:
        step: The step.
        products: The products; each uses the next two operands of the step.
        bound: The program.
        bias: A vector that is added to each row of a single product; None for none.

    Raises:
        UnsupportedError: where cuBLASLt is not installed, or does not support a product.
    """

    def __init__(
        self,
        step: LibraryCall,
        products: Sequence[MatrixProduct],
        bound: CudaBoundProgram,
        bias: ArrayRef | None = None,
    ) -> None:
        super().__init__(step, bound, *([] if bias is None else [bias]))
        library = cublaslt(bound.device)
        if isinstance(library, UnsupportedError):
            raise library
        self.nbytes = bound.number(step.writes[0].nbytes)
        self.products: list[tuple[int, BatchedMatmul]] = []
        for k, product in enumerate(products):
            if self.nbytes and bound.number(product.k):
                accumulates = bool(self.products)
                epilogue = LtEpilogue.NONE if bias is None or accumulates else LtEpilogue.BIAS
                batched = BatchedMatmul(library, product, bound, self.dtype, epilogue, accumulates)
                self.products.append((2 * k, batched))

    def enqueue(
        self, operands: OperandAddresses, workspaces: WorkspaceAllocator, stream: Any
    ) -> None:
        """Enqueue the products, or zeros where all sums are empty.

        Args:
            operands: the addresses of the operands, of the bias if there is one, and of the result.
            workspaces: allocates cuBLASLt's workspace.
            stream: the stream.

        Raises: DriverError where the library fails; DeviceError where the device has no memory
        left; UnsupportedError where the library has no product for addresses with less alignment.
        """
        addresses, result = operands
        driver = self.device.driver
        if not self.products and self.nbytes:
            driver.fill(result, 0, self.nbytes, stream)
        biases = addresses[len(self.step.reads) :]
        for k, product in self.products:
            for matrices in product.matrices(addresses[k], addresses[k + 1], result):
                with self.device.lock:
                    matmul = product.matmul(all(m % ALIGNMENT == 0 for m in matrices))
                    workspace = self.workspace(matmul.workspace, workspaces)
                    workspace_address = 0 if workspace is None else workspace.address
                    bias = () if product.shape.accumulates else biases
                    matmul.enqueue(*matrices, workspace_address, driver.handle(stream), *bias)


class BatchedMatmul:
    """Products of a batch of matrices. Where a batch is broadcast, there are several calls.

    Args:
        library: The library.
        product: The product.
        bound: The program.
        dtype: The type of an element.
        epilogue: What the library does to the result.
        accumulates: Whether the product is added to the result's old value.

    Raises:
        UnsupportedError: where the library does not support it.
    """

    def __init__(
        self,
        library: CublasLt,
        product: MatrixProduct,
        bound: CudaBoundProgram,
        dtype: DType,
        epilogue: LtEpilogue,
        accumulates: bool,
    ) -> None:
        m, n, k = (bound.number(x) for x in (product.m, product.n, product.k))
        batch_a, batch_b = bound.shape(product.batch_a), bound.shape(product.batch_b)
        *outer, (batch, *strides) = batch_axes(batch_a, batch_b, m * k, k * n, m * n)
        one_matrix_b = not outer and strides[1] == 0 and strides[0] == m * k
        if one_matrix_b and not product.transpose_a and batch > 1:
            # The matrix on the right serves all rows of the batch at once.
            m, batch, strides = m * batch, 1, [0, 0, 0]
        self.shape = MatmulShape(
            dtype=dtype,
            m=m,
            n=n,
            k=k,
            transpose_a=product.transpose_a,
            transpose_b=product.transpose_b,
            batch=batch,
            strides=(strides[0], strides[1], strides[2]),
            epilogue=epilogue,
            accumulates=accumulates,
        )
        self.offsets = [
            [
                dtype.nbytes * sum(i * axis[1 + side] for i, axis in zip(at, outer, strict=True))
                for side in range(3)
            ]
            for at in cartesian_product(*(range(axis[0]) for axis in outer))
        ]
        """Byte offsets of a, b and c for each call."""
        self.library = library
        self.matmuls: dict[bool, LtMatmul] = {}
        self.matmul(True)

    def matrices(self, a: int, b: int, c: int) -> Iterator[tuple[int, int, int]]:
        """Yield the device addresses of both operands and the result, for each call of the library.

        ``a``, ``b`` and ``c`` are the addresses of the arrays.
        """
        for offset_a, offset_b, offset_c in self.offsets:
            yield a + offset_a, b + offset_b, c + offset_c

    def matmul(self, aligned: bool) -> LtMatmul:
        """Return the library's product, created at the first use.

        With ``aligned``, all addresses must be multiples of `ALIGNMENT`. Raises: UnsupportedError
        where the library has no algorithm for the shape and alignment.
        """
        if aligned not in self.matmuls:
            alignment = ALIGNMENT if aligned else self.shape.dtype.nbytes
            self.matmuls[aligned] = self.library.matmul(self.shape, alignment)
        return self.matmuls[aligned]
