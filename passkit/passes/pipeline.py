"""Pipelines: the passes of a compilation in order, with the positions of a user's passes."""

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
    "MoveTransposes",
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
"""The passes of a compilation, in order; implied passes run in between where they are needed."""

STAGES = {
    "Fusion": "subgraph",
    "SchedulePlan": "schedule",
    "SharedMemPlan": "shared",
    "CodeGen": "kernel",
    "RTCGen": "rtc",
    "PlanMemory": "storage",
}
"""The annotation that each pass of the default pipeline sets; it tells how far a graph has come."""
OPTIONAL = ("SchedulePlan", "SharedMemPlan")
"""Stages that a list of passes may leave out: CodeGen then takes default plans."""
FORM = 'passes must be a list of passes, or a mapping such as {"after Simplify": ["Mine"]}'

_ANCHOR = re.compile(r"\s*(after|before)\s+(\S+)\s*")


@frozen(eq=False)
class Pipeline:
    """Passes in order.

    ``added`` has the user's passes by their position in the default pipeline, such as
    ``after Simplify``. It is None if the user gave the complete list.
    """

    passes: tuple[str | Pass, ...] = DEFAULT_PIPELINE
    added: Mapping[str, tuple[str | Pass, ...]] | None = None

    @property
    def is_default(self) -> bool:
        """Whether the pipeline consists of exactly the default passes, in their order."""
        return self.passes == DEFAULT_PIPELINE

    def names(self) -> list[str]:
        """Return the names of the passes, in order."""
        return [p if isinstance(p, str) else p.name for p in self.passes]

    def position(self, stage: str) -> int | None:
        """Return the position of the pass that takes the role of a default pass, None without one.

        It is the first that is the default pass ``stage`` itself, given by name, or another pass
        that provides its annotation in `STAGES`.

        Raises: RegistryError if a pass given by name is not registered.
        """
        for k, each in enumerate(self.passes):
            if each == stage:
                return k
            if each not in DEFAULT_PIPELINE and STAGES.get(stage) in _pass(each).provides:
                return k
        return None

    def as_option(self) -> Any:
        """Return the value of ``passes=`` for this pipeline, by names, so that a file can hold it.

        It is a list of names, or if the user added passes by position, a dict of lists of names by
        position, such as "after Simplify".

        Raises: PassError for a `Pass` that is not registered under its name; RegistryError for the
        name of a pass that is not registered.
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


def parse_pipeline(value: Any) -> Pipeline:
    """Return the pipeline for a value of ``passes=``.

    Args:
        value: The complete list of passes; or a mapping whose keys are "after NAME" and "before
            NAME", NAME a pass of `DEFAULT_PIPELINE`, and whose values are passes or lists of them.
            Passes are given by name or as `Pass`. A list in which no pass provides what PlanMemory
            does gets that at its end. A Pipeline is returned itself.

    Raises:
        SettingError: Another value, an empty list, an unknown position, or a pass before one that
            it depends on.
        RegistryError: An unknown pass, with the nearest name.
    """
    if isinstance(value, Pipeline):
        return value
    if isinstance(value, Mapping):
        pipeline = _with_added_passes(value)
    elif isinstance(value, (str, Pass)):
        raise SettingError(f"{FORM}, got {value!r}; write [{value!r}]")
    elif not isinstance(value, Iterable):
        raise SettingError(f"{FORM}, got {value!r}")
    else:
        passes = tuple(_parse_pass(p) for p in value)
        if not passes:
            raise SettingError(f"{FORM}, got an empty list")
        has_memory_plan = Pipeline(passes).position("PlanMemory") is not None
        pipeline = Pipeline(passes if has_memory_plan else (*passes, "PlanMemory"))
    _check_order(pipeline)
    return pipeline


def _with_added_passes(value: Mapping[Any, Any]) -> Pipeline:
    """Return the default pipeline with a user's passes at their positions.

    ``value`` has passes or lists of them by position, such as "after Simplify".

    Raises: SettingError for an unknown position or other values; RegistryError for an unknown pass.
    """
    added: dict[str, tuple[str | Pass, ...]] = {}
    for where, more in value.items():
        match = _ANCHOR.fullmatch(where) if isinstance(where, str) else None
        if match is None:
            raise SettingError(
                f'passes: the position of a pass is "after NAME" or "before NAME", got {where!r}'
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
        added[f"{side} {anchor}"] = tuple(_parse_pass(p) for p in several)
    passes: list[str | Pass] = []
    for name in DEFAULT_PIPELINE:
        passes += (*added.get(f"before {name}", ()), name, *added.get(f"after {name}", ()))
    return Pipeline(tuple(passes), added)


def _parse_pass(value: Any) -> str | Pass:
    """Return a Pass, or the name of a registered pass.

    Raises: RegistryError for an unknown name, SettingError for a value of another type.
    """
    if isinstance(value, Pass):
        return value
    if not isinstance(value, str):
        raise SettingError(
            f"passes: a pass must be a name or a Pass, got {value!r}; pk.register_pass makes a "
            f"Pass of a function"
        )
    try:
        return find_pass(value).name
    except RegistryError as error:
        raise RegistryError(f"passes: {error}") from None


def _pass(value: str | Pass) -> Pass:
    """Return a pass, or the registered pass of a name. Raises: RegistryError if there is none."""
    return find_pass(value) if isinstance(value, str) else value


def _registered(name: str) -> Pass | None:
    """Return the pass that is registered under a name, None without one."""
    try:
        return find_pass(name)
    except RegistryError:
        return None


def _check_order(pipeline: Pipeline) -> None:
    """Check that no pass precedes the only passes of the pipeline that provide what it depends on.

    Annotations that an implied pass provides do not matter.

    Raises: SettingError naming both passes; RegistryError if a name is not registered.
    """
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


def missing_stages(pipeline: Pipeline, last: str) -> Iterator[str]:
    """Yield the required stages up to and including ``last`` that a pipeline has no pass for.

    Nothing is required where ``last`` is no pass of `STAGES`, such as one before Fusion. Raises:
    RegistryError if a pass given by name is not registered.
    """
    for stage in STAGES if last in STAGES else ():
        if stage not in OPTIONAL and pipeline.position(stage) is None:
            yield stage
        if stage == last:
            return


def parse_passes_arguments(texts: Sequence[str]) -> list[str] | dict[str, list[str]] | None:
    """Return the value of ``passes=`` for arguments of the command line, None without any.

    A single text may be a complete pipeline, ``Expand,Fusion,CodeGen,RTCGen``, and is then a list
    of names. Otherwise each has a position, ``after Simplify=Mine,Other``, and they are a dict of
    lists by position. Names and positions are not checked.

    Raises: SettingError for a text without "=" beside others.
    """
    if not texts:
        return None
    lists = [[name.strip() for name in t.rpartition("=")[2].split(",")] for t in texts]
    if len(texts) == 1 and "=" not in texts[0]:
        return lists[0]
    names_by_position: dict[str, list[str]] = {}
    for text, names in zip(texts, lists, strict=True):
        where, equals, _ = text.rpartition("=")
        if not equals:
            raise SettingError(
                f"--passes is one list NAME,NAME,… or positions such as 'after Simplify=Mine', got "
                f"{text!r} beside others"
            )
        names_by_position.setdefault(where.strip(), []).extend(names)
    return names_by_position
