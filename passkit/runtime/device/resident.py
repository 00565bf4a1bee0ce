"""Arrays of other libraries on the device: taken where they are, and written where they are."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from attrs import field, frozen

from passkit.errors import FeedError
from passkit.runtime.native.feeds import Feeds, InputSpec


@frozen(eq=False)
class Resident:
    """An array on the device that belongs to ``owner``, at an address, which a kernel is given.

    ``stream`` is that in which it was last written, None where nobody has to wait. Who has the
    array keeps it while ``held`` lives.
    """

    owner: Any = field(repr=False)
    address: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    plain: bool
    writeable: bool
    stream: int | None = None
    held: Any = field(default=None, repr=False)
    nbytes: int = field(init=False)

    @nbytes.default
    def _nbytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize

    def meets(self, other: Resident) -> bool:
        """Whether it has bytes of another one."""
        return (
            self.address < other.address + other.nbytes
            and other.address < self.address + self.nbytes
        )

    def __str__(self) -> str:
        strided = "" if self.plain else "strided "
        return f"a {strided}{self.dtype}[{', '.join(map(str, self.shape))}] on the device"


Finder = Callable[[Any], Resident | None]
"""What says whether a value is an array on the device."""


Maker = Callable[[np.dtype[Any], tuple[int, ...]], Any]
"""What makes an array on the device, of a dtype and a shape."""


def nowhere(value: Any) -> None:
    """For devices whose arrays no other library has."""


class DeviceFeeds(Feeds):
    """What the inputs of a program on a device need. ``find`` is its `Finder`."""

    find: Finder

    def array(self, spec: InputSpec, value: Any) -> Any:
        """As `Feeds.array`; an array on the device as it is. Raises: FeedError."""
        found = self.find(value)
        if found is None:
            return super().array(spec, value)
        if found.dtype == spec.dtype and len(found.shape) == len(spec.shape) and found.plain:
            return found
        raise FeedError(
            f"input {spec.name!r} needs {spec}, got {found}; pass one whose elements follow each "
            "other, of that type and rank"
        )


def check_out(
    out: Resident, index: int, dtype: np.dtype[Any], shape: tuple[int, ...], others: list[Any]
) -> None:
    """Nothing, where a result can be written to an array. Raises: FeedError where it cannot."""
    right = out.dtype == dtype and out.shape == shape and out.plain and out.writeable
    if not right or any(isinstance(x, Resident) and out.meets(x) for x in others):
        flaw = " that is read-only, or has bytes of an input or another result" * right
        told = "" if out.writeable or right else ", read-only"
        raise FeedError(
            f"out[{index}] needs a plain {dtype}[{', '.join(map(str, shape))}] of its own, got "
            f"{out}{told}{flaw}; pass a new one"
        )
