"""Where the windows of TensorFlow's convolutions and pools lie, as passkit's operators take it.

A node says strides, dilations and padding for all axes of its ``data_format``; here they become
those of the spatial axes of an input whose channels are last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import frozen

from passkit import ops
from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.value import Call, Value
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry
from passkit.values.size import Extent, Shape, Size

LAST = {1: "NWC", 2: "NHWC", 3: "NDHWC"}
FIRST = {1: "NCW", 2: "NCHW", 3: "NCDHW"}
"""The formats of so many spatial axes."""

Pairs = tuple[tuple[Extent, Extent], ...]


@frozen
class Windows:
    """The windows of a node: over ``size``, one for each of ``strides``, with padding around."""

    size: Shape
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    around: Pairs
    """What is added in front and behind; sizes where that depends on a call."""
    same: bool
    """Whether it is TensorFlow's SAME of known sizes."""

    @property
    def is_known(self) -> bool:
        """Whether the padding is known before a call."""
        return all(isinstance(n, int) for pair in self.around for n in pair)

    @property
    def padded_size(self) -> Shape:
        """The spatial axes with their padding."""
        return tuple(n + a + b for n, (a, b) in zip(self.size, self.around, strict=True))

    @property
    def params(self) -> dict[str, Any]:
        """What passkit's operators call it; padding that only a call knows is added before."""
        padding: Any = "SAME" if self.same else self.around if self.is_known else 0
        return {"strides": self.strides, "dilations": self.dilations, "padding": padding}

    def padded(self, x: Entry, value: float = 0) -> Entry:
        """``x``, channels last, with what ``params`` leaves out around it."""
        if self.is_known:
            return x
        pairs = tuple(pair if pair != (0, 0) else (0, 0) for pair in self.around)
        made: Entry = ops.pad_with(x, pad_width=((0, 0), *pairs, (0, 0)), value=value)
        return made


def channels_first(call: Call, count: int) -> bool:
    """Whether channels are the second axis. Raises: ModelError for another format."""
    known = (LAST[count], FIRST[count])
    given = call.attr("data_format", "s", known[0].encode())
    if given not in [f.encode() for f in known]:
        raise ModelError(
            f"{call.where} needs the data_format {known[0]} or {known[1]}, got "
            f"{short(given.decode(errors='replace'))}"
        )
    return bool(given == known[1].encode())


def inner_shape(call: Call, x: Value, count: int) -> Shape:
    """The shape of an input, channels last. Raises: ModelError at another rank."""
    shape = call.shape(x)
    if len(shape) != count + 2:
        raise ModelError(
            f"{call.where} needs {short(x.name)} of rank {count + 2}, got {show_shape(shape)}"
        )
    return (shape[0], *shape[2:], shape[1]) if channels_first(call, count) else shape


def spatial(call: Call, what: str, given: Sequence[int], count: int) -> tuple[int, ...]:
    """The entries for spatial axes of a list with one for each axis; none at all is ones.

    Raises: ModelError where the list has another length, or skips images or channels.
    """
    if not given:
        return (1,) * count
    first = channels_first(call, count)
    parts = tuple(given[2:] if first else given[1:-1])
    if len(given) != count + 2 or any(n < 1 for n in given):
        raise ModelError(f"{call.where} needs {count + 2} {what} of at least 1, got {list(given)}")
    if given[0] != 1 or given[1 if first else -1] != 1:
        raise ModelError(
            f"{call.where} needs {what} of 1 for images and channels, got {list(given)}"
        )
    return parts


def windows_of(
    call: Call, size: Shape, window: Sequence[int], strides: Sequence[int] | None = None
) -> Windows:
    """Where the windows of a node lie over ``size``. Raises: ModelError for what is not known."""
    count = len(size)
    step = spatial(call, "strides", strides or call.integers("strides"), count)
    dilation = spatial(call, "dilations", call.integers("dilations"), count)
    reach = [(w - 1) * d + 1 for w, d in zip(window, dilation, strict=True)]
    padding = call.attr("padding", "s")
    if padding == b"VALID":
        around: Pairs = ((0, 0),) * count
    elif padding == b"EXPLICIT":
        around = _explicit(call, count)
    elif padding == b"SAME":
        around = tuple(
            _same(call, n, r, s) for n, r, s in zip(size, reach, step, strict=True)
        )
    else:
        raise ModelError(f"{call.where} needs the padding SAME, VALID or EXPLICIT, got {padding!r}")
    same = padding == b"SAME" and all(isinstance(n, int) for n in size)
    return Windows(size, step, dilation, around, same)


def _explicit(call: Call, count: int) -> Pairs:
    given = call.integers("explicit_paddings")
    first = channels_first(call, count)
    pairs = tuple(zip(given[::2], given[1::2], strict=False))
    others = (0, 1) if first else (0, -1)
    fits = len(given) == 2 * (count + 2) and all(n >= 0 for n in given)
    if not fits or any(pairs[k] != (0, 0) for k in others):
        raise ModelError(
            f"{call.where} needs a pair of paddings for each axis, (0, 0) for images and "
            f"channels, got {list(given)}"
        )
    return pairs[2:] if first else pairs[1:-1]


def _same(call: Call, n: Extent, reach: int, stride: int) -> tuple[Extent, Extent]:
    """Padding for ``ceil(n / stride)`` windows; the odd element goes behind."""
    count = (n + (stride - 1)) // stride
    if isinstance(n, Size) and 2 < reach < stride:
        raise ModelError(
            f"{call.where} cannot tell the padding SAME of a window over {reach} elements at "
            f"stride {stride} for the unknown size {n}; give load the size in shapes="
        )
    if isinstance(n, Size) and reach < stride:
        return (0, 0) if reach == 1 else (0, count * stride - n)
    total = (count - 1) * stride + reach - n
    if isinstance(total, int):
        total = max(total, 0)
    return total // 2, total - total // 2
