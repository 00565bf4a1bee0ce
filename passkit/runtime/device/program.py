"""The callable of a compiled program on a device: checks feeds, creates outputs, binds shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any, NoReturn

import numpy as np

from passkit.graph.kernel import Kernel
from passkit.runtime.device.bound_program import BoundProgram
from passkit.runtime.device.call_memory import ArrayKey
from passkit.runtime.device.external_arrays import (
    ArrayAllocator,
    ArrayFinder,
    DeviceFeeds,
    ExternalArray,
    check_out,
)
from passkit.runtime.device.interface import raise_status
from passkit.runtime.device.launcher import IS_NATIVE, LauncherBase
from passkit.runtime.device.records import REPLAYS
from passkit.runtime.native.feeds import InputSpec, refuse_out, takes

ON_DEVICE = "device"
"""Value of ``out`` that leaves all outputs on the device."""
MAX_BOUND_PROGRAMS = 64
"""How many shapes are remembered, as many as native programs remember."""

InputShapes = tuple[tuple[int, ...], ...]


class DeviceProgram(LauncherBase):
    """Runs an executable on a device; called like the native launcher's programs.

    The launcher repeats a call by itself where a record fits it: its arrays are on the device, or
    contiguous NumPy arrays. A method of this class does all others: `call_slowly` those by name,
    `run_slowly` and `enqueue_slowly` those of `run_positional` and `run_into`.

    Args:
        inputs: The name, dtype and shape that each input needs.
        bind: Returns the program bound to the shapes of a call's inputs, which fit.
        kernel_stats: Returns the entries of `Executable.stats` about kernels.
        find_array: Finds arrays that are on the device.
        allocate_array: Creates an array there for ``out="device"``; None where results cannot stay
            on the device.
        array_type: The type of the device's arrays.
        unread: The names of inputs that no step reads.

    Attributes:
        bound_programs: The bound program of each shape, the most recently used one last.
        native_calls: Calls by the native fast path: always 0.
        copies: The number of inputs that were copied because of their layout, in all calls.
        transferred: The bytes uploaded and downloaded by the last call.
        counts: The statistics of the program's data after the last call.
    """

    def __init__(
        self,
        inputs: Sequence[InputSpec],
        bind: Callable[[InputShapes], BoundProgram],
        kernel_stats: Callable[[Sequence[Kernel]], dict[str, Any]],
        find_array: ArrayFinder,
        allocate_array: ArrayAllocator | None = None,
        unread: tuple[str, ...] = (),
        array_type: type | None = None,
    ) -> None:
        self.array_type = array_type
        self.describe(tuple(s.name for s in inputs), tuple(s.dtype for s in inputs))
        self.kernel_stats = kernel_stats
        self.find_array = find_array
        self.allocate_array = allocate_array
        self.feeds = DeviceFeeds(tuple(inputs), unread)
        self.feeds.find_array = find_array
        self.bind = bind
        self.bound_programs: dict[InputShapes, BoundProgram] = {}
        self.guard = Lock()
        self.native_calls = 0
        self.copies = 0
        self.transferred = (0, 0)
        self.counts: dict[str, Any] = {}
        self._records: dict[InputShapes, tuple[Any, Mapping[ArrayKey, int]]] = {}

    def call_slowly(self, feeds: Any = None, /, *, out: Any = None, **named: Any) -> list[Any]:
        """Run on arrays.

        Args:
            feeds: Arrays by input name or in order.
            out: None for new arrays on the host, "device" for new arrays on the device, or a list
                with an array to fill, or None, for each output.
            **named: Arrays by input name.

        Returns:
            The outputs: NumPy arrays, arrays of the device, or those passed as ``out``.

        Raises:
            FeedError: for feeds or outputs that do not fit.
            ArgumentError: for a feed that is a masked array.
            DeviceError: where a step fails.
            PasskitError: what ``bind`` raises for new shapes, such as ShapeError.
        """
        return self._run(self.feeds.repair(feeds, named), out)

    def run_slowly(self, *arrays: Any) -> Any:
        """Run on an array for each input, in order, and return a list of the outputs, NumPy arrays.

        Returns NotImplemented, and runs nothing, where their number differs from the inputs', or
        one is no plain NumPy array of its input's dtype and rank. Raises: FeedError for shapes that
        do not fit; DeviceError; what ``bind`` raises for new shapes, such as ShapeError.
        """
        specs = self.feeds.inputs
        fitting = len(arrays) == len(specs) and all(
            type(a) is np.ndarray and a.dtype == s.dtype and a.ndim == len(s.shape)
            for a, s in zip(arrays, specs, strict=True)
        )
        return self._run(arrays, None) if fitting else NotImplemented

    def enqueue_slowly(self, out: Sequence[Any] | None, *arrays: Any) -> list[Any]:
        """Run on an array for each input, in order, and return outputs that are on the device.

        They are enqueued: whatever is enqueued next finds them complete.

        Args:
            out: an array of the device for each output, or None for each to allocate; None for all.
                An output may lie over the input that is its donor, see `Executable.donors`.
            *arrays: arrays of the device, or C-contiguous NumPy arrays of the inputs' dtypes.

        Raises: FeedError for shapes that do not fit; DeviceError; what ``bind`` raises for new
        shapes, such as ShapeError.
        """
        inputs = [a if type(a) is np.ndarray else self._external(a) for a in arrays]
        bound = self._bound(tuple([a.shape for a in inputs]))
        assert self.allocate_array is not None
        results = [
            self.allocate_array(dtype, shape) if array is None else array
            for array, (dtype, shape) in zip(
                out or [None] * len(bound.results), bound.results, strict=True
            )
        ]
        self._enqueue(bound, inputs, list(map(self._external, results)))
        return results

    def _enqueue(self, bound: BoundProgram, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Enqueue a bound program on arrays; record its statistics, and how to repeat the call.

        Raises: DeviceError where a step fails.
        """
        self.was_fast = False
        self.transferred = bound(inputs, outputs)
        self.counts = bound.data.counts
        if IS_NATIVE and self.array_type is not None:
            self._remember(bound, tuple([a.shape for a in inputs]))

    def _remember(self, bound: BoundProgram, shapes: InputShapes) -> None:
        """Let the launcher repeat a call of a bound program, if it only launches kernels."""
        assert self.array_type is not None
        with self.guard:
            fixed = bound.fixed_addresses()
            record, addresses = self._records.pop(shapes, (None, None))
            if record is not None and (fixed != addresses or record.owner is not bound):
                self.records.remove(record)
                record = None
            if fixed is None:
                return
            if record is None:
                record = bound.record(self.array_type, shapes, fixed)
                if record is None:
                    return
                self.records.append(record)
            elif bound.data.variable_cells:
                record.expected = bound.data.variables.changes
            self._records[shapes] = record, fixed
            if len(self._records) > MAX_BOUND_PROGRAMS:
                self.records.remove(self._records.pop(next(iter(self._records)))[0])

    def call_failed(self, bound: BoundProgram, position: int, status: int) -> NoReturn:
        """Raise DeviceError: the driver failed after a part of a call was enqueued.

        Args:
            bound: The program that the launcher enqueued.
            position: The number of launches that were enqueued; -1 if all were, and the driver
                failed when the launcher waited for them.
            status: What the driver's function returned.
        """
        if position < 0:
            raise_status(bound.data.device, "a call", status)
        raise_status(bound.data.device, f"launch {position + 1} of a call", status)

    def _external(self, array: Any) -> Any:
        """Return an array of the device as programs take it.

        That is the array's attribute ``external``, or, where there is none, what ``find_array``
        returns.
        """
        return getattr(array, "external", None) or self.find_array(array)

    def stats(self, kernels: Sequence[Kernel]) -> dict[str, Any]:
        """Return the device's part of `Executable.stats`.

        That is the facts about ``kernels``, the counts of the program, and the bytes that the last
        call transferred, 0 before a call.
        """
        fast = self.uploaded, self.downloaded
        uploaded, downloaded = fast if self.was_fast else self.transferred
        counts = dict(self.counts)
        if self.replays:
            counts[REPLAYS] += self.replays
        return {
            **self.kernel_stats(kernels),
            **counts,
            "bytes_uploaded": uploaded,
            "bytes_downloaded": downloaded,
        }

    def _run(self, feeds: Sequence[Any], out: Any) -> list[Any]:
        """Run on an array for each input; return the outputs, and record the call's statistics.

        ``feeds`` has the inputs' arrays in order, ``out`` is as in `call_slowly`. Raises: FeedError
        for shapes or outputs that do not fit; DeviceError where a step fails; what ``bind`` raises
        for new shapes.
        """
        arrays = [self._contiguous(a, s) for a, s in zip(feeds, self.feeds.inputs, strict=True)]
        bound = self._bound(tuple(a.shape for a in arrays))
        outputs = self._outputs(bound.results, arrays, out)
        self._enqueue(bound, arrays, outputs)
        return [a.owner if isinstance(a, ExternalArray) else a for a in outputs]

    def _contiguous(self, array: Any, spec: InputSpec) -> Any:
        """Return an input's array, C-contiguous, aligned and of the dtype of ``spec``.

        It is copied, and the copy counted, only where it is not. An `ExternalArray` is returned as
        it is.
        """
        if isinstance(array, ExternalArray):
            return array
        contiguous = np.require(array, spec.dtype, ["C", "A"])
        self.copies += contiguous is not array
        return contiguous

    def _bound(self, shapes: InputShapes) -> BoundProgram:
        """Return the program bound to the inputs' shapes, from the memo or newly bound.

        The memo keeps the `MAX_BOUND_PROGRAMS` most recently used ones. Raises: FeedError for
        shapes that do not fit the inputs; what ``bind`` raises, such as ShapeError or DeviceError.
        """
        with self.guard:
            bound = self.bound_programs.pop(shapes, None)
        if bound is None:
            self.feeds.check_shapes(shapes)
            bound = self.bind(shapes)
        with self.guard:
            self.bound_programs[shapes] = bound
            if len(self.bound_programs) > MAX_BOUND_PROGRAMS:
                del self.bound_programs[next(iter(self.bound_programs))]
        return bound

    def _outputs(self, results: Any, arrays: list[Any], out: Any) -> list[Any]:
        """Return an array for each output: new ones, or those of ``out`` that are not None.

        An array of ``out`` that is on the device is returned as an `ExternalArray`.

        Args:
            results: The NumPy dtype and shape of each output.
            arrays: The inputs' arrays, which the outputs must not overlap.
            out: As in `call_slowly`.

        Raises:
            FeedError: where ``out`` has another length or an array that does not fit, or is
                "device" and results cannot stay on the device.
        """
        if out is None:
            return [np.empty(shape, dtype) for dtype, shape in results]
        if isinstance(out, str) and out == ON_DEVICE and self.allocate_array is not None:
            out = [self.allocate_array(dtype, shape) for dtype, shape in results]
        if not isinstance(out, (list, tuple)) or len(out) != len(results):
            refuse_out(out, -1, results, arrays)
        outputs: list[Any] = []
        for k, (array, (dtype, shape)) in enumerate(zip(out, results, strict=True)):
            external = self.find_array(array)
            if external is not None:
                check_out(external, k, dtype, shape, [*arrays, *outputs])
                array = external
            elif array is None:
                array = np.empty(shape, dtype)
            elif not takes(array, dtype, shape, _host_arrays(arrays, outputs)):
                refuse_out(out, k, results, arrays)
            outputs.append(array)
        return outputs


def _host_arrays(*sequences: Sequence[Any]) -> list[Any]:
    """Return the arrays of all ``sequences`` that are in host memory, in one list."""
    return [a for arrays in sequences for a in arrays if not isinstance(a, ExternalArray)]
