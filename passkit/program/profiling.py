"""Profile an executable: complete its feeds, and measure each step of a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from passkit.errors import FeedError, PassError
from passkit.program.binder import Binder, CallShapes
from passkit.program.copying import copy_speed
from passkit.program.on_device import DeviceBinder
from passkit.runtime.device.profiling import profile_on_device
from passkit.runtime.native.feeds import FeedChecker
from passkit.runtime.profile import (
    ExecutionProfile,
    profile_program,
    random_feeds,
    unknown_copy_time,
)
from passkit.values import arguments
from passkit.values.size import evaluate, symbols_of

if TYPE_CHECKING:
    from passkit.program.executable import Executable

DEFAULT_SIZE = 64
"""The number that stands for each unknown size if there are neither feeds nor an earlier call."""


def profile_executable(
    executable: Executable,
    binder: Binder | None,
    feeds: Mapping[str, Any] | Sequence[Any] | None,
    named: Mapping[str, Any],
    runs: int,
    copies: bool,
) -> ExecutionProfile:
    """Measure each step of a call; `passkit.Executable.profile` describes the result.

    Args:
        executable: the executable.
        binder: that of the executable, None if it interprets.
        feeds: arrays by input name, or in order. If it is None and ``named`` is empty, the inputs
            are random numbers of the shapes of the last call, before one of `_default_shapes`.
        named: more feeds, by keyword.
        runs: the number of calls, of which the median is taken.
        copies: whether to measure the machine's copy speed, to compare with.

    Raises:
        PassError: The executable interprets.
        FeedError: The feeds do not fit the inputs, or ``runs`` or ``copies`` is no number and the
            name of an input.
        SettingError: ``runs`` is no integer from 1 on, or PASSKIT_THREADS no number of threads.
        ArgumentError: ``copies`` is no bool, or a feed is a masked array.
        ShapeError: A symbolic size has no value or divides by zero.
        CompilerError: The launcher, or the copy to compare with, cannot be compiled.
        CacheError: Other users may write to the cache folder.
        DeviceError: The device fails.
    """
    program = executable.program
    if program is None or binder is None:
        raise PassError(
            f"{executable!r} interprets operator by operator; compile for target 'cpu' to profile "
            f"it"
        )
    inputs = {s.name for s in executable.inputs}
    for option, value in (("runs", runs), ("copies", copies)):
        if option in inputs and not isinstance(value, int):
            raise FeedError(
                f"profile: {option}={arguments.shown(value)} would be the option of this name; "
                f"feed the input in a mapping: profile({{{option!r}: …}})"
            )
    runs = arguments.count("profile: runs", runs, 1)
    arguments.flag("profile: copies", copies)
    if feeds is None and not named:
        shapes = binder.last_shapes or _default_shapes(executable)
        feeds = random_feeds([(s.name, s.dtype) for s in executable.inputs], shapes)
    specs = tuple(s.spec for s in executable.inputs)
    arrays = FeedChecker(specs, executable.source_graph.unread).repair(feeds, named)
    specialized, sizes = binder.fit(tuple(a.shape for a in arrays))
    if specialized is not None:
        program = specialized
    copy_seconds = copy_speed().seconds if copies else unknown_copy_time
    if isinstance(binder, DeviceBinder):
        bound = binder.runtime.bind_program(program, sizes, binder.state)
        return profile_on_device(bound, arrays, runs, copy_seconds)
    return profile_program(program, sizes, arrays, runs, copy_seconds)


def _default_shapes(executable: Executable) -> CallShapes:
    """Return the shapes of the inputs with `DEFAULT_SIZE` for each unknown size."""
    return tuple(
        tuple(evaluate(n, dict.fromkeys(symbols_of([n]), DEFAULT_SIZE)) for n in s.shape)
        for s in executable.inputs
    )
