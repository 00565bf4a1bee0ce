"""When operations run, and what ran: evaluation, settings, streams, counters and inspection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from attrs import asdict, fields_dict

from passkit.errors import SettingError, nearest
from passkit.frontends.xp import devices, runtime
from passkit.frontends.xp.array import Array
from passkit.streams.inspection import RunLog, StreamRun
from passkit.streams.settings import StreamSettings, settings
from passkit.streams.stream import Stream
from passkit.values import arguments
from passkit.values.lazy import Lazy

if TYPE_CHECKING:
    from passkit.streams import run_picture
    from passkit.viz.picture import Picture
else:  # drawing takes the planner, which a warm start does not import
    run_picture = Lazy("passkit.streams.run_picture")


def eval(*arrays: Any) -> None:
    """Execute what these arrays need, in one run; without arrays, what all live arrays need.

    The results are computed when this returns, also on a device.

    Args:
        *arrays: arrays of any streams, and nested lists, tuples and mappings of them. Other arrays
            of the same stream stay pending at first; those that an earlier run left pending are
            computed, too. Without any argument, all arrays of this thread's streams that still
            exist. An empty list executes nothing.

    Raises:
        ArgumentError: An argument is nothing of these, such as a NumPy array or None.
        PasskitError: An operation cannot be executed, such as a FeedError of a singular matrix.
        ConcretizationError: An array depends on arguments of a function that is traced.

    >>> from passkit import xp
    >>> x = xp.asarray([1.0, 2.0])
    >>> y, z = x + 1, x * 2
    >>> xp.eval(y, z)
    """
    values = [a._value for a in arrays if type(a) is Array]
    if len(values) < len(arrays):
        values = [a._value for k, argument in enumerate(arrays) for a in _listed(k, argument)]
    if arrays:
        runtime.current_stream().sync(values, "eval")
        for device in {v.type.device for v in values}:
            if device is not None:
                device.finish()
        return
    for stream in runtime.current_streams():
        stream.flush("eval")
        if stream.device is not None:
            stream.device.finish()


def _listed(number: int, argument: Any) -> Iterator[Array]:
    """Yield the arrays of an argument of `eval`, in nested lists, tuples and mappings, too.

    Keys of mappings are not looked at. ``number`` is the position of the argument, for messages.
    Raises: ArgumentError if there is anything else.
    """
    if type(argument) is Array:
        yield argument
        return
    if not isinstance(argument, (list, tuple)) and isinstance(argument, Mapping):
        argument = list(argument.values())
    if isinstance(argument, (list, tuple)):
        for item in argument:
            yield from _listed(number, item)
    else:
        arguments.instance(f"eval: argument {number}", argument, Array, "an array of passkit.xp")
        yield argument


class _Configuration:
    """Settings that were changed; as a context manager, they are restored at its end.

    Args:
        previous: the values before, by the name of the setting.
    """

    def __init__(self, previous: dict[str, Any]) -> None:
        self._previous = previous

    def __enter__(self) -> StreamSettings:
        return settings

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _set(self._previous)


def config(**values: Any) -> _Configuration:
    """Change settings of streams, for all threads.

    The change is made by the call, before a block begins.

    Args:
        **values: fields of `passkit.streams.settings.StreamSettings` by name, such as
            ``small=0``, ``materialize="live"`` or ``max_ops=64``.

    Returns: A context manager that restores the changed settings at its end, and gives its block
        the settings; a plain call keeps them.

    Raises: SettingError for an unknown name or a value that the setting cannot have;
        MissingDependencyError or DeviceError for a device whose package or driver is missing. Then
        no setting is changed.

    >>> from passkit import xp
    >>> with xp.config(small=0):
    ...     y = xp.asarray([1.0, 2.0]) + 1
    """
    previous = {name: value for name, value in asdict(settings).items() if name in values}
    for name, value in values.items():
        _check(name, value)
    _set(values)
    return _Configuration(previous)


def _set(values: dict[str, Any]) -> None:
    """Set fields of the settings of all threads, by name; values are not checked."""
    for name, value in values.items():
        setattr(settings, name, value)


_CHOICES = {"materialize": ("demand", "live")}


def _check(name: str, value: Any) -> None:
    """Raise a SettingError if the setting ``name`` does not exist or cannot have ``value``.

    Flags take only bools, and numbers only ints, not bools, from 0 or 1 on; ``max_explorations``
    may be None, and so may ``device``, for the CPU.

    Raises: SettingError; for a device also as `devices.device_argument`.
    """
    names = list(fields_dict(StreamSettings))
    if name not in names:
        raise SettingError(f"config: there is no setting {name!r}; {nearest(name, names)}")
    if name in _CHOICES:
        if not isinstance(value, str) or value not in _CHOICES[name]:
            valid = ", ".join(map(repr, _CHOICES[name]))
            raise SettingError(f"config: {name} must be one of {valid}, got {value!r}")
    elif name == "device":
        devices.device_argument("config", value, None)
    elif name in ("aliasing", "inplace"):
        if not isinstance(value, bool):
            raise SettingError(f"config: {name} must be True or False, got {value!r}")
    elif not (value is None and name == "max_explorations"):
        least = 1 if name == "max_ops" else 0
        if type(value) is not int or value < least:
            raise SettingError(
                f"config: {name} must be an integer of at least {least}, got {value!r}"
            )


@contextmanager
def eager() -> Iterator[None]:
    """Execute each operation by itself inside the block, as a baseline or to find a fault.

    This holds for all threads. At the end of the block, unless it raises, all arrays of this
    thread's stream that are still referred to are computed.
    """
    with config(max_ops=1, small=0):
        yield
        for stream in runtime.current_streams():
            stream.flush("end of eager()")


@contextmanager
def stream() -> Iterator[Stream]:
    """Queue the operations of this thread in a stream of its own inside the block.

    The block gets the stream. Its operations are executed apart from those around the block, also
    after its end, when they are needed. An array may be used in any stream; another one executes
    what it needs first.
    """
    previous = runtime.current_stream()
    own = Stream(runtime.STORE)
    runtime.set_current_stream(own)
    try:
        yield own
    finally:
        runtime.set_current_stream(previous)


def stats() -> dict[str, int]:
    """Return counters of all streams since the start, or since `reset_stats`.

    They are a dict of these names:

    - ``recorded``: operations that were queued and executed or dropped
    - ``host_operations``: operations without a kernel, computed at once in NumPy
    - ``executed_plans``: runs of a compiled plan; ``unfused_runs``: runs in NumPy, of sequences
      that are new and small
    - ``explorations``: plans that were compiled; ``disk_hits``: plans that an earlier process
      compiled, when first used; ``cache_hits``: runs of a plan that was there
    - ``failed_plans``: runs in NumPy, because compiling the plan failed
    - ``launches``: kernels and library calls that ran
    - ``bytes_read``, ``bytes_written``: bytes of the arrays that executions read and wrote
    - ``bytes_allocated``: bytes of new arrays
    - ``aliases``: results that were stored over an array that nothing referred to any more
    """
    counts = runtime.STORE.counts
    return {name: counts[name] for name in _COUNTERS}


_COUNTERS = (
    "recorded",
    "host_operations",
    "executed_plans",
    "unfused_runs",
    "explorations",
    "disk_hits",
    "cache_hits",
    "failed_plans",
    "launches",
    "bytes_read",
    "bytes_written",
    "bytes_allocated",
    "aliases",
)


def pending_operations() -> int:
    """Return the number of operations in the queues of this thread's streams, of all devices."""
    return sum(len(stream.queue) for stream in runtime.current_streams())


def forget_plans() -> None:
    """Drop all plans in memory; those that are stored on disk are read again when needed."""
    runtime.STORE.forget()


def reset_stats() -> None:
    """Set all counters of `stats` to 0."""
    runtime.STORE.counts.clear()


@contextmanager
def inspect() -> Iterator[RunLog]:
    """Record every execution inside the block, in a list that the block gets.

    Executions of all threads count. Each is a `passkit.streams.inspection.StreamRun`, which says
    why and for which line of code it happened, which plan ran, what was written and what stays
    pending, and why. The list is printed as a table; `picture` draws it. Its ``host_operations``
    lists those that NumPy computed at once. After the block the list does not grow any more.

    >>> from passkit import xp
    >>> with xp.config(small=0), xp.inspect() as runs:
    ...     total = float(xp.asarray(1.0) + 1)
    >>> runs[0].reason
    'float'
    """
    runs = RunLog()
    inspectors = runtime.STORE.inspectors
    inspectors.append(runs)
    try:
        yield runs
    finally:
        inspectors[:] = [each for each in inspectors if each is not runs]


def picture(runs: Sequence[StreamRun], detail: bool | None = None) -> Picture:
    """Draw executions as a time line from top to bottom.

    Each run is a frame with its operations, grouped by kernel. Written values have a double border,
    pending ones a dashed one. Arrows are arrays, inside runs and between them; the bold arrow from
    run to run says why the next one happened.

    Args:
        runs: the runs, as `inspect` records them, or some of them.
        detail: True draws each run, False one box for each plan with the number of its runs. None
            draws each run if there are at most 8 of together at most 160 operations.

    Returns: A drawing, which `passkit.viz.render` writes to a file and notebooks show.

    Raises: ArgumentError if ``runs`` are no runs, or ``detail`` is neither True, False nor None.

    >>> from passkit import xp
    >>> with xp.config(small=0), xp.inspect() as runs:
    ...     total = float(xp.asarray(1.0) + 1)
    >>> "float" in xp.picture(runs).source
    True
    """
    need = "runs, as xp.inspect() records them"
    arguments.sequence("picture: runs", runs, StreamRun, need)
    if detail is not None:
        arguments.flag("picture: detail", detail)
    return run_picture.picture(list(runs), detail)
