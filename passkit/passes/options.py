"""Options of passes: what each may be, and what is made of what a caller gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from threading import Lock
from typing import Any

from attrs import define, field

from passkit.errors import ParseError, RegistryError, SettingError
from passkit.graph.node import Entry, Node
from passkit.library.profile import calibrated
from passkit.passes.base import find_pass
from passkit.passes.pipeline import Pipeline, settled
from passkit.passes.timing import Timing
from passkit.plan.evaluator import Evaluator
from passkit.plan.strategy import fusion_name
from passkit.plan.target import Target, target_of
from passkit.templating.template import Template, parse_template
from passkit.values.arguments import path, sequence, shown

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
    "passes",
)

NodeName = str | Node
NodeNames = Iterable[str | Node | Entry]


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


def _one_of(option: str, known: tuple[str, ...]) -> Any:
    def check(value: Any) -> str:
        if not isinstance(value, str) or value not in known:
            raise SettingError(
                f"{option} must be one of {', '.join(map(repr, known))}, got {shown(value)}"
            )
        return str(value)

    return check


def _disabled(names: Any) -> tuple[str, ...]:
    need = "names of passes"
    found = (names,) if isinstance(names, str) else sequence("disabled", names, str, need)
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
    folder = path("dump", value, "a folder")
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


def named_target(value: Any) -> Target:
    """A target; a CPU that is given by its name has the numbers that were measured."""
    found = target_of(value)
    return found if isinstance(value, Target) else calibrated(found)


def _evaluator(value: Any) -> Any:
    if isinstance(value, str) and value == "model":
        return MODEL
    if not all(callable(getattr(value, name, None)) for name in ("choose", "seconds")):
        raise SettingError(
            f"evaluator must be 'model' or have the methods choose and seconds of an Evaluator, "
            f"got {value!r}"
        )
    return value


MODEL = Evaluator()
"""What answers by the model alone."""
DEFAULTS: dict[str, Any] = {
    "target": None,
    "fusion": "stitch",
    "numerics": "strict",
    "disabled": (),
    "keep_together": (),
    "keep_apart": (),
    "no_fuse": (),
    "templates": (),
    "evaluator": None,
    "passes": Pipeline(),
    "times": None,
    "dump": None,
    "fuel": None,
}
SETTLE: dict[str, Any] = {
    "target": named_target,
    "fusion": fusion_name,
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
    "passes": settled,
}


def name_of(what: object) -> str:
    """The name of a node that a caller names, or gives."""
    return what if isinstance(what, str) else getattr(what, "name", str(what))
