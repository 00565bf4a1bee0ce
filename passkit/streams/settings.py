"""Settings of streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import define

from passkit.streams.recorder import set_limits

if TYPE_CHECKING:
    from attrs import Attribute

MAX_PENDING_BYTES = 2 << 30
"""A queue whose inputs have more bytes is executed although nobody waits for a result."""


def _passed_on(settings: Any, attribute: Attribute[Any], value: Any) -> Any:
    """Tell the recorder the settings that it needs, before ``attribute`` gets a value; return that.

    These are ``small``, ``max_ops``, `MAX_PENDING_BYTES`, whether executions may be repeated, and
    ``aliasing``.
    """
    names = ("small", "max_ops", "materialize", "inplace", "aliasing")
    limits = {name: getattr(settings, name) for name in names} | {attribute.name: value}
    remembers = limits["materialize"] == "demand" and limits["inplace"]
    set_limits(limits["small"], limits["max_ops"], MAX_PENDING_BYTES, remembers, limits["aliasing"])
    return value


@define(on_setattr=_passed_on)
class StreamSettings:
    """How streams queue and run operations; `passkit.xp.config` changes them.

    Attributes:
        max_ops: a queue of this many operations is executed although nobody waits for a result.
        max_explorations: the most plans that are made; further sequences run unfused, in NumPy.
            None for no limit.
        small: results of at most this many elements, of operands that are computed and as small,
            are computed at once in NumPy. 0 queues all operations.
        compile_at: an unknown sequence whose results and inputs have at least this many elements
            together is compiled when it is first seen; a smaller one runs in NumPy at first and is
            compiled when it is seen again.
        materialize: "demand" writes only results that are waited for, and those that were needed
            in earlier runs of the same sequence; "live" writes all that are still referred to.
        inplace: whether results may be stored over arrays that nothing refers to any more.
        aliasing: whether slices and reshaped arrays are views, to which an assignment also changes
            the array that they are made of, as in NumPy.
        device: the name of the device that arrays are created on, where no other one is asked for.
    """

    max_ops: int = 768
    max_explorations: int | None = None
    small: int = 256
    compile_at: int = 1 << 18
    materialize: str = "demand"
    inplace: bool = True
    aliasing: bool = False
    device: str = "cpu"


settings = StreamSettings()
"""The settings in force, for all streams. There is no other object of this class."""
set_limits(settings.small, settings.max_ops, MAX_PENDING_BYTES, True, False)
