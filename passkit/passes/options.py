"""Options of passes: their defaults, and parsers that check the values given by a user."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from threading import Lock
from typing import Any

from attrs import define, field

from passkit.errors import ParseError, RegistryError, SettingError
from passkit.fusion.strategy import fusion_name
from passkit.graph.node import Entry, Node
from passkit.library.cpu_profile import calibrated
from passkit.library.evaluator import Evaluator
from passkit.passes.base import find_pass
from passkit.passes.pipeline import Pipeline, parse_pipeline
from passkit.passes.timing import Timing
from passkit.schedule.template import ScheduleText, Template, parse_choice
from passkit.target import Target, target_of
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
    """The number of optional decisions that may still be taken; None is no limit."""

    left: int | None
    spent: list[str] = field(factory=list)
    _lock: Any = field(factory=Lock, repr=False)

    def spend(self, decision: str) -> bool:
        """Use up one unit and record the decision; return whether there was one left.

        Without a limit it is always True, and nothing is recorded.
        """
        if self.left is None:
            return True
        with self._lock:
            if self.left <= 0:
                return False
            self.left -= 1
            self.spent.append(decision)
            return True


@define(eq=False)
class Dump:
    """A folder for the graph after each pass, in numbered files."""

    folder: Path
    count: int = 0
    _lock: Any = field(factory=Lock, repr=False)

    def path(self, name: str) -> Path:
        """Return the next numbered path for a pass, without a suffix; create the folder.

        It is ``{folder}/{number}_{name}`` with a number of three digits, from 000 on. Raises:
        OSError if the folder cannot be created.
        """
        with self._lock:
            number, self.count = self.count, self.count + 1
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder / f"{number:03d}_{name}"


def _one_of(option: str, choices: tuple[str, ...]) -> Callable[[Any], str]:
    """Return a parser of an option that is one of several words.

    The parser raises SettingError, naming ``option`` and ``choices``, for any other value.
    """

    def parse(value: Any) -> str:
        """Return the word. Raises: SettingError if it is none of the choices."""
        if not isinstance(value, str) or value not in choices:
            raise SettingError(
                f"{option} must be one of {', '.join(map(repr, choices))}, got {shown(value)}"
            )
        return str(value)

    return parse


def _parse_disabled(names: Any) -> tuple[str, ...]:
    """Return the option ``disabled``, one name or an iterable of names of passes, as a tuple.

    Raises: SettingError for an unknown pass or one that is required, ArgumentError for other
    values.
    """
    need = "names of passes"
    disabled = (names,) if isinstance(names, str) else sequence("disabled", names, str, need)
    for name in disabled:
        try:
            if find_pass(name).required:
                raise SettingError(f"pass {name} cannot be disabled: later passes rely on it")
        except RegistryError as error:
            raise SettingError(f"disabled: {error}") from None
    return disabled


def _parse_fuel(value: Any) -> Fuel:
    """Return the option ``fuel``, an int >= 0, as a counter.

    Raises: SettingError for anything else, also for bools and NumPy's integers.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise SettingError(f"fuel must be a number of decisions >= 0, got {value!r}")
    return Fuel(value)


def _parse_dump(value: Any) -> Dump:
    """Return the option ``dump``, a folder, which need not exist.

    Raises: SettingError if it is a file, ArgumentError if it is no path.
    """
    folder = path("dump", value, "a folder")
    if folder.exists() and not folder.is_dir():
        raise SettingError(f"dump must be a folder, got the file {str(folder)!r}")
    return Dump(folder)


def _parse_timing(value: Any) -> Timing | None:
    """Return a new tree of times if the option ``timing`` is True, else None.

    Raises: SettingError if it is no bool of Python.
    """
    if not isinstance(value, bool):
        raise SettingError(f"timing must be True or False, got {value!r}")
    return Timing("passes") if value else None


def _nodes(option: str) -> Callable[[Any], tuple[NodeName, ...]]:
    """Return a parser of an option that is a list of nodes, entries or names.

    The parser returns a tuple of nodes and names, and raises SettingError, naming ``option``, for
    other values.
    """

    def parse(value: Any) -> tuple[NodeName, ...]:
        """Return the nodes and names as a tuple; a single one counts as a list.

        Raises: SettingError for other values.
        """
        if isinstance(value, (str, Node, Entry)):
            value = (value,)
        if not isinstance(value, Iterable):
            raise SettingError(f"{option} must be a list of nodes or names, got {value!r}")
        nodes = tuple(v.node if isinstance(v, Entry) else v for v in value)
        for node in nodes:
            if not isinstance(node, (str, Node)):
                raise SettingError(f"{option} must hold nodes or names of nodes, got {node!r}")
        return nodes

    return parse


def _node_groups(option: str) -> Callable[[Any], tuple[tuple[NodeName, ...], ...]]:
    """Return a parser of an option that is a list of lists of nodes, entries or names.

    The parser raises SettingError, naming ``option``, for other values.
    """
    parse_nodes = _nodes(option)

    def parse(value: Any) -> tuple[tuple[NodeName, ...], ...]:
        """Return the lists as tuples of nodes and names. Raises: SettingError for other values."""
        is_list = isinstance(value, Iterable) and not isinstance(value, Entry)
        groups = list(value) if is_list else [value]
        for group in groups:
            if isinstance(group, (str, Node, Entry)) or not isinstance(group, Iterable):
                raise SettingError(
                    f"{option} must be a list of lists of nodes, got {group!r} in it; "
                    f"write {option}=[[…]]"
                )
        return tuple(parse_nodes(group) for group in groups)

    return parse


def _parse_templates(value: Any) -> tuple[tuple[str, Template | ScheduleText], ...]:
    """Return pairs of a name and its parsed template.

    Keys are names, nodes and entries; values are templates, or texts of templates or schedules.

    Raises: SettingError if ``value`` is no such mapping, a key has no name or a name two templates;
    ParseError for a text that is no template.
    """
    if not isinstance(value, Mapping):
        raise SettingError(f"templates must map names to templates, got {value!r}")
    templates: dict[str, Template | ScheduleText] = {}
    for key, template in value.items():
        if not isinstance(key, (str, Node, Entry)) or not isinstance(
            template, (str, Template, ScheduleText)
        ):
            raise SettingError(
                f"templates must map names of nodes to templates, got {key!r}: {template!r}"
            )
        name = node_name(key.node if isinstance(key, Entry) else key)
        if not name:
            raise SettingError(
                f"templates: {key!r} has no name to look it up by; pk.templates(graph) lists the "
                f"names of groups"
            )
        if name in templates:
            raise SettingError(f"templates has two entries for {name!r}; a group has one template")
        try:
            templates[name] = parse_choice(template) if isinstance(template, str) else template
        except ParseError as error:
            raise ParseError(f"templates[{name!r}]: {error}") from None
    return tuple(templates.items())


def resolve_target(value: Any) -> Target:
    """Return a target given by name or as a Target, which is returned itself.

    The target "cpu" given by name has the figures stored for this CPU by an earlier measurement,
    and its default figures where none are stored. Nothing is measured here.

    Raises: SettingError for an unknown name, and anything that is neither a name nor a Target;
    CacheError if other users may write to the folder of the measurements.
    """
    target = target_of(value)
    return target if isinstance(value, Target) else calibrated(target)


def _parse_evaluator(value: Any) -> Any:
    """Return the option ``evaluator``; "model" is the cost model.

    Raises: SettingError unless it has the methods of an Evaluator.
    """
    if isinstance(value, str) and value == "model":
        return MODEL
    if not all(callable(getattr(value, name, None)) for name in ("choose", "seconds")):
        raise SettingError(
            f"evaluator must be 'model' or have the methods choose and seconds of an Evaluator, "
            f"got {value!r}"
        )
    return value


MODEL = Evaluator()
"""The evaluator without measurements: the cost model."""
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
PARSERS: dict[str, Callable[[Any], Any]] = {
    "target": resolve_target,
    "fusion": fusion_name,
    "numerics": _one_of("numerics", NUMERICS),
    "disabled": _parse_disabled,
    "dump": _parse_dump,
    "timing": _parse_timing,
    "fuel": _parse_fuel,
    "keep_together": _node_groups("keep_together"),
    "keep_apart": _node_groups("keep_apart"),
    "no_fuse": _nodes("no_fuse"),
    "templates": _parse_templates,
    "evaluator": _parse_evaluator,
    "passes": parse_pipeline,
}
"""By option: the function that checks a value given by the user, and returns the field's value."""


def node_name(node: object) -> str:
    """Return the name of a node that is given by its name or itself.

    That is a string itself; else the attribute ``name`` of the object, "" for an unnamed node, or
    ``str(node)`` if it has no such attribute.
    """
    return node if isinstance(node, str) else getattr(node, "name", str(node))
