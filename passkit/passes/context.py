"""The settings that passes run under, such as target, fusion strategy and numerics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from attrs import frozen

from passkit.errors import SettingError, nearest
from passkit.fusion.strategy import Strategy
from passkit.graph.node import Entry, Node
from passkit.library.store import snapshot
from passkit.passes.base import Pass
from passkit.passes.options import (
    DEFAULTS,
    OPTIONS,
    PARSERS,
    Dump,
    Fuel,
    NodeName,
    NodeNames,
    resolve_target,
)
from passkit.passes.pipeline import Pipeline
from passkit.passes.timing import Timing
from passkit.schedule.template import ScheduleText, Template
from passkit.target import Target

if TYPE_CHECKING:
    from typing import Literal

    from passkit.passes.option_types import FusionName, TargetName


@frozen(init=False, eq=False)
class PassContext:
    """The settings of passes; a ``with`` block puts them in force, and blocks nest.

    Options that are not given are taken from the context in force when this one is created, else
    they have their defaults.

    Args:
        target: A Target or its name; "cpu" by default.
        fusion: A strategy that was registered with `register_fusion`, or its name; "stitch" by
            default.
        numerics: "strict" (default) or "fast".
        disabled: Names of passes to skip.
        dump: A folder for the graph after each pass, as text and picture, and for the loop IR of
            GPU kernels after each transform.
        timing: Whether to record the seconds of passes, in ``times``.
        fuel: The number of optional decisions (fusions, rewrites) that may be taken; any by
            default.
        keep_together: Lists of nodes that Fusion must put in one group. Nodes are given by name, or
            as nodes or entries.
        keep_apart: Lists of nodes that Fusion must not put in one group.
        no_fuse: Nodes that form groups of their own.
        templates: By the name of a group, or of an operator in it, how its loops are tiled.
        evaluator: Estimates the seconds of groups: an `Evaluator`, or "model"; by default the
            seconds that `tune` stored on this machine, where there are some, else the cost model.
        passes: The passes of a compilation, in order, by name or as `Pass`; or those to add to the
            default ones, by their position: ``{"after Simplify": ["Mine"], "before Fusion": [p]}``.

    Raises: SettingError if an option has a wrong value, such as an unknown target, strategy or
        disabled pass; RegistryError for an unknown name in ``passes``; ParseError for the text of a
        template; ArgumentError if ``disabled`` or ``dump`` has another type; CacheError if other
        users may write to the cache folder, which has the figures measured for the target "cpu".

    >>> with PassContext(fusion="nnvm"):
    ...     inner = PassContext(numerics="fast")
    >>> inner.fusion, inner.target.name
    ('nnvm', 'cpu')
    """

    target: Target
    fusion: str
    numerics: str
    disabled: tuple[str, ...]
    keep_together: tuple[tuple[NodeName, ...], ...]
    keep_apart: tuple[tuple[NodeName, ...], ...]
    no_fuse: tuple[NodeName, ...]
    templates: tuple[tuple[str, Template | ScheduleText], ...]
    evaluator: Any
    passes: Pipeline
    times: Timing | None
    dump: Dump | None
    fuel: Fuel
    given: frozenset[str]
    """The options that were given, here or in an outer context."""

    def __init__(
        self,
        *,
        target: TargetName | Target | None = None,
        fusion: FusionName | Strategy | None = None,
        numerics: Literal["strict", "fast"] | None = None,
        disabled: Iterable[str] | None = None,
        dump: str | Path | None = None,
        timing: bool | None = None,
        fuel: int | None = None,
        keep_together: Iterable[NodeNames] | None = None,
        keep_apart: Iterable[NodeNames] | None = None,
        no_fuse: NodeNames | None = None,
        templates: Mapping[str | Node | Entry, str | Template | ScheduleText] | None = None,
        evaluator: Any = None,
        passes: Iterable[str | Pass] | Mapping[str, Any] | None = None,
    ) -> None:
        outer = current()
        options = {
            "target": target,
            "fusion": fusion,
            "numerics": numerics,
            "disabled": disabled,
            "dump": dump,
            "timing": timing,
            "fuel": fuel,
            "keep_together": keep_together,
            "keep_apart": keep_apart,
            "no_fuse": no_fuse,
            "templates": templates,
            "evaluator": evaluator,
            "passes": passes,
        }
        self._set_fields(outer, {k: v for k, v in options.items() if v is not None})

    def _set_fields(self, outer: PassContext | None, options: Mapping[str, Any]) -> None:
        """Set all fields: from ``options``, else from ``outer``, else to their defaults.

        Args:
            outer: the context in force, None for the outermost.
            options: the options given, by name, which are parsed here.

        Raises: SettingError for a wrong value, such as an unknown target, strategy or disabled
        pass; RegistryError for an unknown name in ``passes``; ParseError for a template that cannot
        be read; ArgumentError if ``disabled`` is no names or ``dump`` no path; CacheError if other
        users may write to the cache folder, for the target "cpu" by name or without ``outer``;
        KeyError for an unknown option.
        """
        fields: dict[str, Any] = {k: getattr(outer, k) if outer else v for k, v in DEFAULTS.items()}
        fields["target"] = outer.target if outer else resolve_target("cpu")
        fields["fuel"] = outer.fuel if outer else Fuel(None)
        for key, value in options.items():
            fields["times" if key == "timing" else key] = PARSERS[key](value)
        fields["given"] = frozenset(options) | (outer.given if outer else frozenset())
        for key, value in fields.items():
            object.__setattr__(self, key, value)

    def with_options(self, **options: Any) -> PassContext:
        """Return a new context like this one with some options changed.

        An option that is None stays as it is. Timing, dump and fuel that are not changed are
        shared.

        Raises: SettingError for an unknown option, with the nearest; SettingError, RegistryError,
        ParseError or ArgumentError for a wrong value, see `PassContext`; CacheError for the target
        "cpu" by name if other users may write to the cache folder.
        """
        for key in options:
            if key not in OPTIONS:
                raise SettingError(f"passes have no option {key!r}; {nearest(key, OPTIONS)}")
        changed = object.__new__(PassContext)
        changed._set_fields(self, {k: v for k, v in options.items() if v is not None})
        return changed

    def inheriting(self, recorded: Mapping[str, Any]) -> PassContext:
        """Return this context with ``recorded`` values for options that nobody gave.

        ``recorded`` has them by name; other keys, and None, are ignored. The result is this context
        itself if ``recorded`` has no key of an option that was not given.
        """
        missing = {k: v for k, v in recorded.items() if k in OPTIONS and k not in self.given}
        return self.with_options(**missing) if missing else self

    def spend(self, decision: str) -> bool:
        """Use up one unit of fuel for an optional decision; return whether it may be taken.

        ``decision`` is a phrase that is recorded. False if no fuel is left; always True without a
        limit.
        """
        return self.fuel.spend(decision)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Return a context manager that records the seconds of its block under ``name``.

        Records nest as blocks do, in ``times``, whose seconds are updated; without the option
        ``timing`` nothing is recorded.
        """
        if self.times is None:
            yield
            return
        timing = Timing(name)
        parent = _timing.get()
        is_nested = parent is not None and parent[0] is self.times
        token = _timing.set((self.times, timing))
        timing.start = perf_counter()
        try:
            yield
        finally:
            timing.seconds = perf_counter() - timing.start
            _timing.reset(token)
            if is_nested and parent is not None:
                parent[1].children.append(timing)
            else:
                self.times.children.append(timing)
                self.times.seconds += timing.seconds

    def __enter__(self) -> PassContext:
        """Put this context in force until `__exit__`, and return it."""
        _stack.set((*_stack.get(), self))
        return self

    def __exit__(self, *error: object) -> None:
        """End the innermost context in force, also where the block raised an exception."""
        _stack.set(_stack.get()[:-1])


_timing: ContextVar[tuple[Timing, Timing] | None] = ContextVar("passkit_timing", default=None)
_stack: ContextVar[tuple[PassContext, ...]] = ContextVar("passkit_context", default=())


def current() -> PassContext | None:
    """Return the context of the innermost ``with`` block in force, None outside of any."""
    stack = _stack.get()
    return stack[-1] if stack else None


def evaluator_of(context: PassContext) -> Any:
    """Return the evaluator of a context: its option ``evaluator``.

    If that is None, it is the one of the measurements stored in the cache folder, which are read if
    they changed; the cost model answers where there are none.

    Raises: CacheError if other users may write to the folder of the measurements.
    """
    return snapshot().evaluator if context.evaluator is None else context.evaluator
