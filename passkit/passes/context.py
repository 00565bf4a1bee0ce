"""The settings that passes run under: target, fusion, numerics, and what to record on the way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from attrs import frozen

from passkit.errors import SettingError, nearest
from passkit.graph.node import Entry, Node
from passkit.library.store import snapshot
from passkit.passes.base import Pass
from passkit.passes.options import (
    DEFAULTS,
    OPTIONS,
    SETTLE,
    Dump,
    Fuel,
    NodeName,
    NodeNames,
    named_target,
)
from passkit.passes.pipeline import Pipeline
from passkit.passes.timing import Timing
from passkit.plan.strategy import Strategy
from passkit.plan.target import Target
from passkit.templating.template import Template

if TYPE_CHECKING:
    from typing import Literal

    from passkit.passes.keywords import FusionName, TargetName


@frozen(init=False, eq=False)
class PassContext:
    """The settings of passes; a ``with`` block puts them in force, and blocks nest.

    What is not given is taken from the context in force when this one is made, else it has its
    default. ``target`` is a Target or its name ("cpu"), ``fusion`` a strategy that was registered
    with `register_fusion`, or its name ("stitch"), ``numerics`` "strict" or "fast". ``disabled``
    names passes to skip. ``dump`` is a folder for the graph after each pass, as text and picture;
    ``timing`` collects `times`. ``fuel`` is the number of optional decisions (fusions, rewrites)
    that may be taken. ``keep_together`` and ``keep_apart`` are lists of lists of nodes that Fusion
    must, or must not, put in one group; ``no_fuse`` nodes stay alone. Nodes are given by name, or
    as nodes or entries. ``templates`` has by the name of a group, or of an operator in it, how its
    loops are dealt out. ``evaluator`` answers what groups cost: an `Evaluator`, or "model"; by
    default what was measured here. ``passes`` are those of a compilation, in order, by name or as
    `Pass`; or those to add to the default ones, by their place:
    ``{"after Simplify": ["Mine"], "before Fusion": [other]}``.

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
    templates: tuple[tuple[str, Template], ...]
    evaluator: Any
    passes: Pipeline
    times: Timing | None
    dump: Dump | None
    fuel: Fuel
    given: frozenset[str]

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
        templates: Mapping[str | Node | Entry, str | Template] | None = None,
        evaluator: Any = None,
        passes: Iterable[str | Pass] | Mapping[str, Any] | None = None,
    ) -> None:
        outer = current()
        own = {
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
        self._settle(outer, {k: v for k, v in own.items() if v is not None})

    def _settle(self, outer: PassContext | None, own: Mapping[str, Any]) -> None:
        fields: dict[str, Any] = {
            k: getattr(outer, k) if outer else v for k, v in DEFAULTS.items()
        }
        fields["target"] = outer.target if outer else named_target("cpu")
        fields["fuel"] = outer.fuel if outer else Fuel(None)
        for key, value in own.items():
            fields["times" if key == "timing" else key] = SETTLE[key](value)
        fields["given"] = frozenset(own) | (outer.given if outer else frozenset())
        for key, value in fields.items():
            object.__setattr__(self, key, value)

    def with_options(self, **options: Any) -> PassContext:
        """This context with some options changed; timing, dump and fuel go on.

        Raises: SettingError on an unknown option, with the nearest.
        """
        for key in options:
            if key not in OPTIONS:
                raise SettingError(f"passes have no option {key!r}; {nearest(key, OPTIONS)}")
        made = object.__new__(PassContext)
        made._settle(self, {k: v for k, v in options.items() if v is not None})
        return made

    def inheriting(self, recorded: Mapping[str, Any]) -> PassContext:
        """This context, with ``recorded`` standing in for options that nobody gave."""
        missing = {k: v for k, v in recorded.items() if k in OPTIONS and k not in self.given}
        return self.with_options(**missing) if missing else self

    def spend(self, what: str) -> bool:
        """Whether the optional decision ``what`` may be taken; uses up one unit of fuel."""
        return self.fuel.spend(what)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Count the block's seconds under ``name`` in `times`, inside what is being timed."""
        if self.times is None:
            yield
            return
        timing = Timing(name)
        parent = _timing.get()
        inside = parent is not None and parent[0] is self.times
        token = _timing.set((self.times, timing))
        timing.start = perf_counter()
        try:
            yield
        finally:
            timing.seconds = perf_counter() - timing.start
            _timing.reset(token)
            if inside and parent is not None:
                parent[1].children.append(timing)
            else:
                self.times.children.append(timing)
                self.times.seconds += timing.seconds

    def __enter__(self) -> PassContext:
        _stack.set((*_stack.get(), self))
        return self

    def __exit__(self, *error: object) -> None:
        _stack.set(_stack.get()[:-1])


_timing: ContextVar[tuple[Timing, Timing] | None] = ContextVar("passkit_timing", default=None)
_stack: ContextVar[tuple[PassContext, ...]] = ContextVar("passkit_context", default=())


def current() -> PassContext | None:
    """The context in force here: the innermost ``with`` block's."""
    stack = _stack.get()
    return stack[-1] if stack else None


def evaluator_of(context: PassContext) -> Any:
    """What answers costs in a context: its evaluator, else what was measured on this machine."""
    return snapshot().evaluator if context.evaluator is None else context.evaluator
