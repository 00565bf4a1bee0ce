"""cuBLASLt and cuDNN without a device: what is called is done in NumPy, from the descriptors alone.

Arguments are those of the C functions. What a library would refuse, or do wrong, raises: extents
that do not fit, leading dimensions, addresses off their promised alignment, too little workspace, a
stream that is none.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from math import prod
from typing import Any

import numpy as np

from passkit.runtime.cuda.cublaslt import (
    DATA_TYPES,
    ComputeType,
    LayoutAttribute,
    LtEpilogue,
    MatmulAttribute,
    PreferenceAttribute,
)
from passkit.runtime.cuda.cudnn import DATA_TYPES as DNN_DATA_TYPES
from passkit.runtime.cuda.libraries import CUBLASLT, CUDNN, SharedLibrary, UnsupportedError
from passkit.values import dtype as dt

WORKSPACE = 1000
DTYPES = {int(kind): dt.dtype_of(name).numpy for name, kind in DATA_TYPES.items()}
DNN_DTYPES = {kind: dt.dtype_of(name).numpy for name, kind in DNN_DATA_TYPES.items()}


class FakeLibrary:
    """The objects that a library has created, by address; each is destroyed once."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self.held: dict[int, dict[Any, Any]] = {}
        self.made = 0
        self.counts: Counter[str] = Counter()

    def new(self, ref: Any, **values: Any) -> int:
        """Create an object, and store its address where ``ref`` points."""
        self.made += 1
        ref._obj.value = 0x1000 + self.made
        self.held[ref._obj.value] = values
        return 0

    def drop(self, handle_ref: Any) -> int:
        """Destroy an object."""
        del self.held[handle_ref.value]
        return 0

    def at(self, handle_ref: Any) -> dict[Any, Any]:
        """Return an object."""
        return self.held[handle_ref.value]

    def set(self, handle_ref: Any, key: Any, ref: Any, size: Any) -> int:
        """Set an attribute, and check its size."""
        assert ctypes.sizeof(ref._obj) == size.value
        self.at(handle_ref)[key.value] = ref._obj.value
        return 0

    def enqueued(self, name: str, stream: Any, workspace: Any, nbytes: int, what: Any) -> int:
        """Enqueue work that overwrites the workspace."""
        self.counts[name] += 1
        assert stream.value in self.driver.streams, f"{name} in no stream"
        self.driver.record(name, stream.value)

        def run() -> None:
            if nbytes:
                self.driver.at(workspace.value, nbytes).fill(0xEE)
            what()

        self.driver.later(stream.value, run)
        return 0


class FakeLt(FakeLibrary):
    """cuBLASLt's products, computed by NumPy from the descriptors."""

    def __getattr__(self, name: str) -> Any:
        for kind in ("MatmulDesc", "MatrixLayout", "MatmulPreference"):
            if name == f"cublasLt{kind}SetAttribute":
                return self.set
            if name == f"cublasLt{kind}Destroy":
                return self.drop
        raise AttributeError(name)

    def cublasLtCreate(self, handle: Any) -> int:  # noqa: N802
        """Create a handle."""
        return self.new(handle)

    def cublasLtMatmulPreferenceCreate(self, handle_ref: Any) -> int:  # noqa: N802
        """Create the preferences of the heuristic."""
        return self.new(handle_ref)

    def cublasLtMatmulDescCreate(self, handle_ref: Any, compute: Any, scale: Any) -> int:  # noqa: N802
        """Create a product."""
        double = compute.value == ComputeType.FLOAT64
        assert scale.value == DATA_TYPES["float64" if double else "float32"]
        scalar = ctypes.c_double if double else ctypes.c_float
        start = {
            MatmulAttribute.TRANSPOSE_A: 0,
            MatmulAttribute.TRANSPOSE_B: 0,
            MatmulAttribute.EPILOGUE: 1,
        }
        self.new(handle_ref)
        self.at(handle_ref._obj).update({**start, "scalar": scalar})
        return 0

    def cublasLtMatrixLayoutCreate(  # noqa: N802
        self, handle_ref: Any, kind: Any, rows: Any, columns: Any, leading: Any
    ) -> int:
        """Create a column-major matrix."""
        assert leading.value >= rows.value > 0 and columns.value > 0
        shape = kind.value, rows.value, columns.value, leading.value
        self.new(handle_ref)
        self.at(handle_ref._obj).update(
            {"shape": shape, LayoutAttribute.BATCH_COUNT: 1, LayoutAttribute.BATCH_STRIDE: 0}
        )
        return 0

    def cublasLtMatmulAlgoGetHeuristic(self, *arguments: Any) -> int:  # noqa: N802
        """Return one algorithm, none, or a failure, as planted."""
        _, description, a, b, c, d, preference, requested, output, count = arguments
        if self.counts["failing"]:
            return 7
        self.check(description, a, b, c, d)
        given = self.at(preference)
        sides = (
            PreferenceAttribute.ALIGNMENT_A,
            PreferenceAttribute.ALIGNMENT_B,
            PreferenceAttribute.ALIGNMENT_C,
            PreferenceAttribute.ALIGNMENT_D,
        )
        assert (
            given[PreferenceAttribute.WORKSPACE] >= WORKSPACE
            and given[PreferenceAttribute.REDUCTIONS] == 2
        )
        assert requested.value >= 1
        output._obj.workspace = WORKSPACE
        output._obj.algorithm.data[0] = given[sides[0]]
        assert all(given[s] == given[sides[0]] for s in sides)
        count._obj.value = 0 if self.counts["unable"] else 1
        return 0

    def check(self, description: Any, *layouts: Any) -> tuple[int, int, int, int]:
        """Rows, columns, depth and batch of a product whose matrices fit."""
        own = self.at(description)
        (kind, *a), (of_b, *b), (of_c, *c), (of_d, *d) = (self.at(x)["shape"] for x in layouts)
        assert kind == of_b == of_c == of_d and c == d
        double = kind == DATA_TYPES["float64"]
        assert double == (own["scalar"] is ctypes.c_double)
        m, k = (a[1], a[0]) if own[MatmulAttribute.TRANSPOSE_A] else (a[0], a[1])
        other, n = (b[1], b[0]) if own[MatmulAttribute.TRANSPOSE_B] else (b[0], b[1])
        assert k == other and c[:2] == [m, n], (a, b, c)
        (batch,) = {self.at(x)[LayoutAttribute.BATCH_COUNT] for x in layouts}
        return m, n, k, batch

    def cublasLtMatmul(self, *arguments: Any) -> int:  # noqa: N802
        """Enqueue a product."""
        (
            _,
            description,
            one,
            a,
            of_a,
            b,
            of_b,
            old,
            c,
            of_c,
            d,
            of_d,
            algorithm,
            workspace,
            nbytes,
            stream,
        ) = arguments
        own = dict(self.at(description))
        adds = old._obj.value
        assert isinstance(one._obj, own["scalar"]) and one._obj.value == 1 and adds in (0, 1)
        _, _, _, batch = self.check(description, of_a, of_b, of_c, of_d)
        alignment = algorithm._obj.data[0]
        assert all(x.value % alignment == 0 for x in (a, b, c, d)), "off their alignment"
        assert c.value == d.value and nbytes.value >= WORKSPACE
        sides = [(x.value, dict(self.at(y))) for x, y in ((a, of_a), (b, of_b), (d, of_d))]

        def run() -> None:
            for k in range(batch):
                x, y, z = (self.matrix(at, layout, k) for at, layout in sides)
                x = x.T if own[MatmulAttribute.TRANSPOSE_A] else x
                y = y.T if own[MatmulAttribute.TRANSPOSE_B] else y
                output = x.astype(np.float64) @ y.astype(np.float64)
                if own[MatmulAttribute.EPILOGUE] == LtEpilogue.BIAS:
                    raw = self.driver.at(
                        own[MatmulAttribute.BIAS_POINTER], output.shape[0] * z.itemsize
                    )
                    output = output + raw.view(z.dtype).astype(np.float64)[:, None]
                z[...] = (output + z if adds else output).astype(z.dtype)

        return self.enqueued("cublasLtMatmul", stream, workspace, nbytes.value, run)

    def matrix(self, address: int, layout: dict[Any, Any], number: int) -> Any:
        """Return a matrix of a batch as a strided view."""
        kind, rows, columns, leading = layout["shape"]
        dtype = DTYPES[kind]
        address += number * layout[LayoutAttribute.BATCH_STRIDE] * dtype.itemsize
        count = (columns - 1) * leading + rows
        flat = self.driver.at(address, count * dtype.itemsize).view(dtype)
        steps = dtype.itemsize, leading * dtype.itemsize
        return np.lib.stride_tricks.as_strided(flat, (rows, columns), steps)


class FakeDnn(FakeLibrary):
    """cuDNN's convolutions, computed by NumPy from the descriptors."""

    def __getattr__(self, name: str) -> Any:
        for kind in ("Tensor", "Filter", "Convolution"):
            if name == f"cudnnCreate{kind}Descriptor":
                return self.new
            if name == f"cudnnDestroy{kind}Descriptor":
                return self.drop
        raise AttributeError(name)

    def cudnnCreate(self, handle: Any) -> int:  # noqa: N802
        """Create a handle."""
        return self.new(handle)

    def cudnnSetStream(self, handle: Any, stream: Any) -> int:  # noqa: N802
        """Set the stream."""
        self.at(handle)["stream"] = stream
        return 0

    def cudnnSetTensorNdDescriptor(  # noqa: N802
        self, handle_ref: Any, kind: Any, count: Any, dims: Any, steps: Any
    ) -> int:
        """Describe an array: batch, channels, then the spatial axes, with strides."""
        assert count.value == len(dims) == len(steps) >= 4
        self.at(handle_ref).update(kind=kind.value, dims=tuple(dims), steps=tuple(steps))
        return 0

    def cudnnSetFilterNdDescriptor(  # noqa: N802
        self, handle_ref: Any, kind: Any, order: Any, count: Any, dims: Any
    ) -> int:
        """Describe filters with channels last in memory."""
        assert order.value == 1 and count.value == len(dims)
        _, channels, *window = dims
        steps, step = [], channels
        for w in reversed(window):
            steps.append(step)
            step *= w
        self.at(handle_ref).update(
            kind=kind.value, dims=tuple(dims), steps=(step, 1, *reversed(steps))
        )
        return 0

    def cudnnSetConvolutionNdDescriptor(  # noqa: N802
        self,
        handle_ref: Any,
        count: Any,
        pads: Any,
        strides: Any,
        dilations: Any,
        mode: Any,
        kind: Any,
    ) -> int:
        """Describe padding, strides and dilation."""
        assert count.value == len(pads) and mode.value == 1
        own = {"pads": tuple(pads), "strides": tuple(strides), "dilations": tuple(dilations)}
        self.at(handle_ref).update(kind=kind.value, groups=1, **own)
        return 0

    def cudnnSetConvolutionGroupCount(self, handle_ref: Any, count: Any) -> int:  # noqa: N802
        """Set the groups of channels."""
        self.at(handle_ref)["groups"] = count.value
        return 0

    def cudnnSetConvolutionMathType(self, handle_ref: Any, kind: Any) -> int:  # noqa: N802
        """Set the math type, which excludes TF32."""
        self.at(handle_ref)["math"] = kind.value
        return 0

    def check(self, x: Any, w: Any, how: Any, y: Any) -> None:
        """The extents of a result are those that cuDNN computes."""
        source, filters, own, result = map(self.at, (x, w, how, y))
        kind = source["kind"]
        assert kind == filters["kind"] == result["kind"]
        half = kind in (DNN_DATA_TYPES["float16"], DNN_DATA_TYPES["bfloat16"])
        added = DNN_DATA_TYPES["float32"] if half else kind
        assert (own["kind"], own["math"]) == (added, 1 if half else 3)
        batch, channels, *size = source["dims"]
        count, part, *window = filters["dims"]
        assert channels == part * own["groups"] and count % own["groups"] == 0
        output = [
            (n + 2 * p - (k - 1) * d - 1) // s + 1
            for n, p, k, d, s in zip(
                size, own["pads"], window, own["dilations"], own["strides"], strict=True
            )
        ]
        assert result["dims"] == (batch, count, *output), (result["dims"], output)

    def cudnnGetConvolutionForwardAlgorithm_v7(self, *arguments: Any) -> int:  # noqa: N802
        """Return two algorithms, of which the first one is not deterministic."""
        _, x, w, how, y, *asked = arguments
        return self.fill_algorithms(x, w, how, y, *asked)

    def cudnnGetConvolutionBackwardFilterAlgorithm_v7(  # noqa: N802
        self, *arguments: Any
    ) -> int:
        """Return two algorithms for the gradient of filters."""
        _, x, y, how, w, *asked = arguments
        return self.fill_algorithms(x, w, how, y, *asked)

    def fill_algorithms(
        self, x: Any, w: Any, how: Any, y: Any, requested: Any, count: Any, ways: Any
    ) -> int:
        """Fill the array of algorithms."""
        if self.counts["failing"]:
            return 3000
        self.check(x, w, how, y)
        assert requested.value == len(ways)
        ways[0].algorithm, ways[0].determinism = 5, 0
        ways[1].algorithm, ways[1].determinism, ways[1].memory = 1, 1, WORKSPACE
        ways[0].math = ways[1].math = self.at(how)["math"]
        count._obj.value = 1 if self.counts["unable"] else 2
        return 0

    def cudnnConvolutionForward(self, *arguments: Any) -> int:  # noqa: N802
        """Enqueue a convolution."""
        _, _, x, _, w, _, how, *_, y, _ = arguments
        self.check(x, w, how, y)
        return self.run("cudnnConvolutionForward", convolve, *arguments)

    def cudnnConvolutionBackwardFilter(self, *arguments: Any) -> int:  # noqa: N802
        """Enqueue a gradient of filters."""
        _, _, x, _, y, _, how, *_, w, _ = arguments
        self.check(x, w, how, y)
        return self.run("cudnnConvolutionBackwardFilter", convolve_back, *arguments)

    def run(self, name: str, make: Callable[..., None], *arguments: Any) -> int:
        """Enqueue the computation of an array from two."""
        handle, one, x, a, y, b, how, way, workspace, nbytes, zero, z, c = arguments
        assert (one._obj.value, zero._obj.value, way.value) == (1, 0, 1)
        assert nbytes.value >= WORKSPACE
        own = dict(self.at(how))
        sides = [(p.value, dict(self.at(d))) for p, d in ((a, x), (b, y), (c, z))]

        def run() -> None:
            make(*(self.array(*s) for s in sides), own)

        return self.enqueued(name, self.at(handle)["stream"], workspace, nbytes.value, run)

    def array(self, address: int, own: dict[str, Any]) -> Any:
        """Return an array as its descriptor says."""
        dtype = DNN_DTYPES[own["kind"]]
        flat = self.driver.at(address, prod(own["dims"]) * dtype.itemsize).view(dtype)
        steps = [s * dtype.itemsize for s in own["steps"]]
        return np.lib.stride_tricks.as_strided(flat, own["dims"], steps)


def window_slices(
    source: Any, filters: Any, result: Any, own: dict[str, Any]
) -> Iterator[tuple[Any, ...]]:
    """Yield for each element of the window: its index, the images' and the result's elements.

    Both are those of a group's channels: (batch, channels, ...).
    """
    pads = [(0, 0), (0, 0), *((p, p) for p in own["pads"])]
    padded = np.pad(source.astype(np.float64), pads)
    part, many = filters.shape[1], filters.shape[0] // own["groups"]
    for at in product(*map(range, filters.shape[2:])):
        steps = zip(at, own["dilations"], own["strides"], result.shape[2:], strict=True)
        windows = [slice(k * d, k * d + (n - 1) * s + 1, s) for k, d, s, n in steps]
        here = padded[(slice(None), slice(None), *windows)]
        for g in range(own["groups"]):
            rows = slice(g * many, (g + 1) * many)
            yield (rows, slice(None), *at), here[:, g * part : (g + 1) * part], result[:, rows]


def convolve(source: Any, filters: Any, result: Any, own: dict[str, Any]) -> None:
    """Fill a result of shape (batch, channels, ...)."""
    output = np.zeros(result.shape)
    for at, one, sums in window_slices(source, filters, output, own):
        sums += np.einsum("nc...,kc->nk...", one, filters[at])
    result[...] = output


def convolve_back(source: Any, result: Any, filters: Any, own: dict[str, Any]) -> None:
    """Fill filters of shape (filters, channels, ...)."""
    for at, one, other in window_slices(source, filters, result.astype(np.float64), own):
        rows = (a.reshape(*a.shape[:2], -1) for a in (one, other))
        filters[at] = np.einsum("ncp,nkp->kc", *rows)


class FakeLibraries:
    """Both fake libraries of a driver; ``absent`` ones are not installed."""

    def __init__(self, driver: Any, absent: tuple[SharedLibrary, ...] = ()) -> None:
        self.lt, self.dnn, self.absent = FakeLt(driver), FakeDnn(driver), absent

    def load_library(self, library: SharedLibrary) -> Any:
        """Return a library. Raises: UnsupportedError."""
        if library in self.absent:
            raise UnsupportedError(
                f"{library.name} cannot be loaded (absent); pip install {library.wheels[0]}"
            )
        return {CUBLASLT: self.lt, CUDNN: self.dnn}[library]
