"""A compiled program as it is called: feeds checked, results made, and each shape bound once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

import numpy as np

from passkit.plan.kernel import Kernel
from passkit.runtime.device.resident import DeviceFeeds, Finder, Maker, Resident, check_out
from passkit.runtime.device.run import BoundProgram
from passkit.runtime.native.feeds import InputSpec, refuse_out, takes

ON_DEVICE = "device"
"""In place of arrays for results: they stay on the device."""
MOST_BOUNDS = 64
"""As many shapes are remembered as the launcher remembers."""

Shapes = tuple[tuple[int, ...], ...]


class DeviceProgram:
    """What runs an executable on a device; it takes what the launcher's programs take.

    ``bind`` is asked for a `BoundProgram` for shapes that fit the inputs; ``said`` is what the
    device says of kernels, ``find`` finds arrays that are there and ``make`` makes one, which
    ``out="device"`` asks for.
    """

    def __init__(
        self,
        inputs: Sequence[InputSpec],
        bind: Callable[[Shapes], BoundProgram],
        said: Callable[[Sequence[Kernel]], dict[str, Any]],
        find: Finder,
        make: Maker | None = None,
        unread: tuple[str, ...] = (),
    ) -> None:
        self.said, self.make = said, make
        self.find, self.feeds = find, DeviceFeeds(tuple(inputs), unread)
        self.feeds.find = find
        self.bind = bind
        self.bounds: dict[Shapes, BoundProgram] = {}
        self.guard = Lock()
        self.native_calls = self.copies = 0
        self.moved = (0, 0)
        self.counts: dict[str, Any] = {}

    def __call__(self, feeds: Any = None, /, *, out: Any = None, **named: Any) -> list[Any]:
        """Run on arrays. Raises: FeedError for feeds or results that do not fit."""
        return self._run(self.feeds.repair(feeds, named), out)

    def run_positional(self, *arrays: Any) -> Any:
        """The results, or NotImplemented where an array has another type or rank than its input."""
        specs = self.feeds.inputs
        fitting = len(arrays) == len(specs) and all(
            type(a) is np.ndarray and a.dtype == s.dtype and a.ndim == len(s.shape)
            for a, s in zip(arrays, specs, strict=True)
        )
        return self._run(arrays, None) if fitting else NotImplemented

    def stats(self, kernels: Sequence[Kernel]) -> dict[str, Any]:
        """What a device's programs count, as `Executable.stats` has it."""
        moved = dict(zip(("bytes_uploaded", "bytes_downloaded"), self.moved, strict=True))
        return {**self.said(kernels), **self.counts, **moved}

    def _run(self, given: Sequence[Any], out: Any) -> list[Any]:
        arrays = [self._plain(a, s) for a, s in zip(given, self.feeds.inputs, strict=True)]
        bound = self._bound(tuple(a.shape for a in arrays))
        made = self._results(bound.results, arrays, out)
        self.moved = bound(arrays, made)
        self.counts = bound.table.counts
        return [a.owner if isinstance(a, Resident) else a for a in made]

    def _plain(self, array: Any, spec: InputSpec) -> Any:
        """The array itself where a device can take it as it is, else a copy."""
        if isinstance(array, Resident):
            return array
        plain = np.require(array, spec.dtype, ["C", "A"])
        self.copies += plain is not array
        return plain

    def _bound(self, shapes: Shapes) -> BoundProgram:
        with self.guard:
            found = self.bounds.pop(shapes, None)
        if found is None:
            self.feeds.check_shapes(shapes)
            found = self.bind(shapes)
        with self.guard:
            self.bounds[shapes] = found
            if len(self.bounds) > MOST_BOUNDS:
                del self.bounds[next(iter(self.bounds))]
        return found

    def _results(self, results: Any, arrays: list[Any], out: Any) -> list[Any]:
        """Arrays for the results: new ones, or those of ``out`` that are not None."""
        if out is None:
            return [np.empty(shape, dtype) for dtype, shape in results]
        if isinstance(out, str) and out == ON_DEVICE and self.make is not None:
            out = [self.make(dtype, shape) for dtype, shape in results]
        if not isinstance(out, (list, tuple)) or len(out) != len(results):
            refuse_out(out, -1, results, arrays)
        made: list[Any] = []
        for k, (array, (dtype, shape)) in enumerate(zip(out, results, strict=True)):
            there = self.find(array)
            if there is not None:
                check_out(there, k, dtype, shape, [*arrays, *made])
                array = there
            elif array is None:
                array = np.empty(shape, dtype)
            elif not takes(array, dtype, shape, _on_host(arrays, made)):
                refuse_out(out, k, results, arrays)
            made.append(array)
        return made


def _on_host(*several: Sequence[Any]) -> list[Any]:
    """Those arrays that do not stay on the device."""
    return [a for arrays in several for a in arrays if not isinstance(a, Resident)]
