"""The settings that passes run under: target, fusion, numerics, and what to record on the way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import Any

from attrs import define, field, frozen

from passkit.errors import ParseError, RegistryError, SettingError, nearest
from passkit.graph.node import Entry, Node
from passkit.library.profile import calibrated
from passkit.library.store import snapshot
from passkit.passes.base import find_pass
from passkit.plan.evaluator import Evaluator
from passkit.plan.target import Target, target_of
from passkit.templating.template import Template, parse_template

FUSIONS = ("none", "nnvm", "xla", "deep", "stitch")
"""Every operator alone; pairs of elementwise ones; XLA's basic rules; what grows from results by
work and span; groups of one iteration space with several results, and packs."""
NUMERICS = ("strict", "fast")
OPTIONS = (
    "target",
    "fusion",
    "numerics",
    "disabled",
    "dump",
    "timing",
    "fuel",
    "keep_together",
    "keep_apart",
    "no_fuse",
    "templates",
    "evaluator",
)


@define(eq=False)
class Timing:
    """Seconds spent in a pass and in what it called, as a tree."""

    name: str
    seconds: float = 0.0
    children: list[Timing] = field(factory=list)
    start: float = 0.0
    """When it began, by `perf_counter`."""

    @property
    def self_seconds(self) -> float:
        """Seconds not spent in children."""
        return self.seconds - sum(c.seconds for c in self.children)

    def __str__(self) -> str:
        rows: list[tuple[str, Timing]] = []
        stack = [("", self)]
        while stack:
            indent, timing = stack.pop()
            rows.append((indent + timing.name, timing))
            stack += [(indent + "  ", c) for c in reversed(timing.children)]
        width = max(len(name) for name, _ in rows)
        total = self.seconds or 1.0
        return "\n".join(
            f"{name:<{width}}  {t.seconds * 1e3:10.3f} ms  self {t.self_seconds * 1e3:10.3f} ms  "
            f"{100 * t.seconds / total:5.1f} %"
            for name, t in rows
        )


@define(eq=False)
class Fuel:
    """How many optional decisions may still be taken; None is no limit."""

    left: int | None
    spent: list[str] = field(factory=list)
    _lock: Any = field(factory=Lock, repr=False)

    def spend(self, what: str) -> bool:
        """Take one decision if the fuel allows it, and note what it was."""
        if self.left is None:
            return True
        with self._lock:
            if self.left <= 0:
                return False
            self.left -= 1
            self.spent.append(what)
            return True


@define(eq=False)
class Dump:
    """A folder that receives the graph after each pass, numbered."""

    folder: Path
    count: int = 0
    _lock: Any = field(factory=Lock, repr=False)

    def path(self, name: str) -> Path:
        """The next numbered path for a pass, without a suffix."""
        with self._lock:
            number, self.count = self.count, self.count + 1
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder / f"{number:03d}_{name}"


NodeName = str | Node
NodeNames = Iterable[str | Node | Entry]


@frozen(init=False, eq=False)
class PassContext:
    """The settings of passes; a ``with`` block puts them in force, and blocks nest.

    What is not given is taken from the context in force when this one is made, else it has its
    default. ``target`` is a Target or its name ("cpu"), ``fusion`` one of `FUSIONS` ("stitch"),
    ``numerics`` "strict" or "fast". ``disabled`` names passes to skip. ``dump`` is a folder for the
    graph after each pass, as text and picture; ``timing`` collects `times`. ``fuel`` is the number
    of optional decisions (fusions, rewrites) that may be taken. ``keep_together`` and
    ``keep_apart`` are lists of lists of nodes that Fusion must, or must not, put in one group;
    ``no_fuse`` nodes stay alone. Nodes are given by name, or as nodes or entries. ``templates`` has
    by the name of a group, or of an operator in it, how its loops are dealt out. ``evaluator``
    answers what groups cost: an `Evaluator`, or "model"; by default what was measured here.

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
    times: Timing | None
    dump: Dump | None
    fuel: Fuel
    given: frozenset[str]

    def __init__(
        self,
        *,
        target: str | Target | None = None,
        fusion: str | None = None,
        numerics: str | None = None,
        disabled: Iterable[str] | None = None,
        dump: str | Path | None = None,
        timing: bool | None = None,
        fuel: int | None = None,
        keep_together: Iterable[NodeNames] | None = None,
        keep_apart: Iterable[NodeNames] | None = None,
        no_fuse: NodeNames | None = None,
        templates: Mapping[str | Node | Entry, str | Template] | None = None,
        evaluator: Any = None,
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
        }
        self._settle(outer, {k: v for k, v in own.items() if v is not None})

    def _settle(self, outer: PassContext | None, own: Mapping[str, Any]) -> None:
        fields: dict[str, Any] = {
            k: getattr(outer, k) if outer else v for k, v in _DEFAULTS.items()
        }
        fields["target"] = outer.target if outer else _target("cpu")
        fields["fuel"] = outer.fuel if outer else Fuel(None)
        for key, value in own.items():
            fields["times" if key == "timing" else key] = _SETTLE[key](value)
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


def _one_of(option: str, known: tuple[str, ...]) -> Any:
    def check(value: Any) -> str:
        if value not in known:
            raise SettingError(
                f"{option} must be one of {', '.join(map(repr, known))}, got {value!r}"
            )
        return str(value)

    return check


def _disabled(names: Any) -> tuple[str, ...]:
    found = (names,) if isinstance(names, str) else tuple(names)
    for name in found:
        try:
            if find_pass(name).required:
                raise SettingError(f"pass {name} cannot be disabled: later passes rely on it")
        except RegistryError as error:
            raise SettingError(f"disabled: {error}") from None
    return found


def _fuel(value: Any) -> Fuel:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise SettingError(f"fuel must be a number of decisions >= 0, got {value!r}")
    return Fuel(value)


def _folder(value: Any) -> Dump:
    folder = Path(value)
    if folder.exists() and not folder.is_dir():
        raise SettingError(f"dump must be a folder, got the file {str(folder)!r}")
    return Dump(folder)


def _timer(value: Any) -> Timing | None:
    if not isinstance(value, bool):
        raise SettingError(f"timing must be True or False, got {value!r}")
    return Timing("passes") if value else None


def _nodes(option: str) -> Any:
    def check(value: Any) -> tuple[NodeName, ...]:
        if isinstance(value, (str, Node, Entry)):
            value = (value,)
        if not isinstance(value, Iterable):
            raise SettingError(f"{option} must be a list of nodes or names, got {value!r}")
        found = tuple(v.node if isinstance(v, Entry) else v for v in value)
        for node in found:
            if not isinstance(node, (str, Node)):
                raise SettingError(f"{option} must hold nodes or names of nodes, got {node!r}")
        return found

    return check


def _groups(option: str) -> Any:
    def check(value: Any) -> tuple[tuple[NodeName, ...], ...]:
        groups = list(value) if isinstance(value, Iterable) else [value]
        for group in groups:
            if isinstance(group, (str, Node, Entry)) or not isinstance(group, Iterable):
                raise SettingError(
                    f"{option} must be a list of lists of nodes, got {group!r} in it; "
                    f"write {option}=[[…]]"
                )
        return tuple(_nodes(option)(g) for g in groups)

    return check


def _templates(value: Any) -> tuple[tuple[str, Template], ...]:
    if not isinstance(value, Mapping):
        raise SettingError(f"templates must map names to templates, got {value!r}")
    found: dict[str, Template] = {}
    for what, template in value.items():
        if not isinstance(what, (str, Node, Entry)) or not isinstance(template, (str, Template)):
            raise SettingError(
                f"templates must map names of nodes to templates, got {what!r}: {template!r}"
            )
        name = name_of(what.node if isinstance(what, Entry) else what)
        if not name:
            raise SettingError(
                f"templates go by name, and {what!r} has none; pk.templates(graph) has the names "
                f"of groups"
            )
        if name in found:
            raise SettingError(f"templates has two for {name!r}; a group has one")
        try:
            found[name] = parse_template(template) if isinstance(template, str) else template
        except ParseError as error:
            raise ParseError(f"templates[{name!r}]: {error}") from None
    return tuple(found.items())


def _target(value: Any) -> Target:
    """A target; a CPU that is given by its name has the numbers that were measured."""
    found = target_of(value)
    return found if isinstance(value, Target) else calibrated(found)


def _evaluator(value: Any) -> Any:
    if value == "model":
        return MODEL
    if not all(callable(getattr(value, name, None)) for name in ("choose", "seconds")):
        raise SettingError(
            f"evaluator must be 'model' or have the methods choose and seconds of an Evaluator, "
            f"got {value!r}"
        )
    return value


MODEL = Evaluator()
"""What answers by the model alone."""
_DEFAULTS: dict[str, Any] = {
    "target": None,
    "fusion": "stitch",
    "numerics": "strict",
    "disabled": (),
    "keep_together": (),
    "keep_apart": (),
    "no_fuse": (),
    "templates": (),
    "evaluator": None,
    "times": None,
    "dump": None,
    "fuel": None,
}
_SETTLE: dict[str, Any] = {
    "target": _target,
    "fusion": _one_of("fusion", FUSIONS),
    "numerics": _one_of("numerics", NUMERICS),
    "disabled": _disabled,
    "dump": _folder,
    "timing": _timer,
    "fuel": _fuel,
    "keep_together": _groups("keep_together"),
    "keep_apart": _groups("keep_apart"),
    "no_fuse": _nodes("no_fuse"),
    "templates": _templates,
    "evaluator": _evaluator,
}


def name_of(what: object) -> str:
    """The name of a node that a caller names, or gives."""
    return what if isinstance(what, str) else getattr(what, "name", str(what))
