"""Pipelines: the passes of a compilation in their order, and where a user's passes join them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

from passkit.errors import PassError, RegistryError, SettingError, nearest
from passkit.passes.base import Pass, find_pass, provider

DEFAULT_PIPELINE = (
    "Functionalize",
    "Expand",
    "Simplify",
    "MatchLibrary",
    "FuseMatmulSums",
    "SplitReduce",
    "Fusion",
    "SchedulePlan",
    "SharedMemPlan",
    "CodeGen",
    "RTCGen",
    "PlanMemory",
)
"""The passes of a compilation, in order; implied ones are run in between where they are needed."""

STAGES = {
    "Fusion": "subgraph",
    "SchedulePlan": "schedule",
    "SharedMemPlan": "shared",
    "CodeGen": "kernel",
    "RTCGen": "rtc",
    "PlanMemory": "storage",
}
"""The annotation that each pass of the default pipeline leaves; it tells how far a graph is."""
OPTIONAL = ("SchedulePlan", "SharedMemPlan")
"""Stages that a list of passes may leave out: CodeGen then takes default plans."""
FORM = 'passes must be a list of passes, or a mapping such as {"after Simplify": ["Mine"]}'

_ANCHOR = re.compile(r"\s*(after|before)\s+(\S+)\s*")


@frozen(eq=False)
class Pipeline:
    """Passes in order. ``added`` are those of a user's, by where they join the default ones.

    ``added`` is None where the user gave the whole list.
    """

    passes: tuple[str | Pass, ...] = DEFAULT_PIPELINE
    added: Mapping[str, tuple[str | Pass, ...]] | None = None

    @property
    def is_default(self) -> bool:
        """Whether nobody changed it."""
        return self.passes == DEFAULT_PIPELINE

    def names(self) -> list[str]:
        """The names of its passes."""
        return [p if isinstance(p, str) else p.name for p in self.passes]

    def position(self, stage: str) -> int | None:
        """Where the pass stands that provides what the default pass called ``stage`` does."""
        for k, each in enumerate(self.passes):
            if each == stage:
                return k
            if each not in DEFAULT_PIPELINE and STAGES.get(stage) in _pass(each).provides:
                return k
        return None

    def written(self) -> Any:
        """The pipeline by names, as `settled` reads it and a file can hold it.

        Raises: PassError for a pass that cannot be found by its name.
        """
        for each in self.passes:
            if isinstance(each, Pass) and _registered(each.name) is not each:
                raise PassError(
                    f"pass {each.name} is not registered, so a file cannot name it; make it with "
                    f"pk.register_pass({each.name!r})"
                )
        if self.added is None:
            return self.names()
        return {where: [_pass(p).name for p in more] for where, more in self.added.items()}


def settled(value: Any) -> Pipeline:
    """The pipeline that a user asks for by ``passes=``: a list, or passes by where they join.

    A list is the whole pipeline. Memory is planned last, whether or not the list says so. The keys
    of a mapping are "after NAME" and "before NAME", NAME a pass of `DEFAULT_PIPELINE`; its values
    are passes, or lists of them. Passes are given by name or as `Pass`.

    Raises: SettingError for another value, an unknown place, and a pass that stands before what it
    depends on; RegistryError for an unknown pass, with the nearest name.
    """
    if isinstance(value, Pipeline):
        return value
    if isinstance(value, Mapping):
        made = _joined(value)
    elif isinstance(value, (str, Pass)):
        raise SettingError(f"{FORM}, got {value!r}; write [{value!r}]")
    elif not isinstance(value, Iterable):
        raise SettingError(f"{FORM}, got {value!r}")
    else:
        given = tuple(_checked(p) for p in value)
        if not given:
            raise SettingError(f"{FORM}, got an empty list")
        whole = Pipeline(given)
        last = () if whole.position("PlanMemory") is not None else ("PlanMemory",)
        made = Pipeline((*given, *last))
    _check_order(made)
    return made


def _joined(value: Mapping[Any, Any]) -> Pipeline:
    """The default pipeline with a user's passes in their places."""
    added: dict[str, tuple[str | Pass, ...]] = {}
    for where, more in value.items():
        match = _ANCHOR.fullmatch(where) if isinstance(where, str) else None
        if match is None:
            raise SettingError(
                f'passes: the place of a pass is "after NAME" or "before NAME", got {where!r}'
            )
        side, anchor = match.groups()
        if anchor not in DEFAULT_PIPELINE:
            raise SettingError(
                f"passes: {where!r} names no pass of the default pipeline; "
                f"{nearest(anchor, DEFAULT_PIPELINE)}"
            )
        several = [more] if isinstance(more, (str, Pass)) else more
        if isinstance(several, Mapping) or not isinstance(several, Iterable):
            raise SettingError(f"passes[{where!r}] must be a list of passes, got {more!r}")
        added[f"{side} {anchor}"] = tuple(_checked(p) for p in several)
    passes: list[str | Pass] = []
    for name in DEFAULT_PIPELINE:
        passes += (*added.get(f"before {name}", ()), name, *added.get(f"after {name}", ()))
    return Pipeline(tuple(passes), added)


def _checked(what: Any) -> str | Pass:
    """A pass as it was given, which exists. Raises: RegistryError, SettingError."""
    if isinstance(what, Pass):
        return what
    if not isinstance(what, str):
        raise SettingError(
            f"passes: a pass is given by name or as a Pass, got {what!r}; register_pass makes one "
            f"of a function"
        )
    try:
        return find_pass(what).name
    except RegistryError as error:
        raise RegistryError(f"passes: {error}") from None


def _pass(what: str | Pass) -> Pass:
    return find_pass(what) if isinstance(what, str) else what


def _registered(name: str) -> Pass | None:
    try:
        return find_pass(name)
    except RegistryError:
        return None


def _check_order(pipeline: Pipeline) -> None:
    """Check that no pass of a user's stands before the pass that provides what it depends on."""
    resolved = [_pass(p) for p in pipeline.passes]
    for k, each in enumerate(resolved):
        before = {a for p in resolved[:k] for a in p.provides}
        for annotation in each.depends:
            later = [p for p in resolved[k + 1 :] if annotation in p.provides]
            if annotation in before or not later or provider(annotation, each.name).implied:
                continue
            raise SettingError(
                f"passes: {each.name} depends on '{annotation}', which {later[0].name} provides "
                f"later; place {each.name} after {later[0].name}"
            )


def needed(pipeline: Pipeline, last: str) -> Iterator[str]:
    """The stages up to ``last``, itself one, that a pipeline must have and has not."""
    for stage in STAGES if last in STAGES else ():
        if stage not in OPTIONAL and pipeline.position(stage) is None:
            yield stage
        if stage == last:
            return


def parsed(texts: Sequence[str]) -> list[str] | dict[str, list[str]] | None:
    """The value of ``passes=`` that texts on the command line stand for; None where there are none.

    One text may be a whole pipeline, ``Expand,Fusion,CodeGen,RTCGen``; others each have a place,
    ``after Simplify=Mine,Other``.

    Raises: SettingError for a mixture of both.
    """
    if not texts:
        return None
    lists = [[name.strip() for name in t.rpartition("=")[2].split(",")] for t in texts]
    if len(texts) == 1 and "=" not in texts[0]:
        return lists[0]
    found: dict[str, list[str]] = {}
    for text, names in zip(texts, lists, strict=True):
        where, equals, _ = text.rpartition("=")
        if not equals:
            raise SettingError(
                f"--passes is one list NAME,NAME,… or places such as 'after Simplify=Mine', got "
                f"{text!r} beside others"
            )
        found.setdefault(where.strip(), []).extend(names)
    return found
