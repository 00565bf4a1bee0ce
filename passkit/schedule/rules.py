"""Schedule rules: functions that give the actions of a loop nest, tried one after the other.

A rule of a target is registered by `register_schedule_rule`, one of an operator is its attribute
FScheduleRule. Rules of operators come first, then those of users, then the built-in ones.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Generic, TypeVar

from attrs import frozen

from passkit.diagnostics import Diagnostic
from passkit.errors import RuleError, SettingError, nearest
from passkit.graph.attribute_calls import call_attribute, refuse_result
from passkit.graph.graph import Graph
from passkit.graph.node import Node
from passkit.graph.op import FScheduleRule
from passkit.schedule.actions import Action
from passkit.schedule.loop_nest import LoopNest
from passkit.target import Target, list_targets, target_of
from passkit.values import arguments

S = TypeVar("S")
"""A kind of schedule."""
RuleFunction = Callable[[LoopNest, Target], Sequence[Action] | Diagnostic | None]
NEED = "a sequence of actions (passkit.schedule.actions), or None"


@frozen
class ScheduleRule:
    """A rule.

    Attributes:
        name: its name, for messages and `passkit show --schedule`.
        function: returns the actions for a nest on a target; None or a diagnostic if it has none.
        is_built_in: whether it is passkit's own. Actions of other rules must be legal; those of
            built-in rules are tried.
    """

    name: str
    function: RuleFunction
    is_built_in: bool = False


class _RuleTable:
    """The rules of all targets, and how often they changed."""

    def __init__(self) -> None:
        self.own: dict[str, dict[str, ScheduleRule]] = {}
        self.built_in: dict[str, tuple[ScheduleRule, ...]] = {}
        self.changes = 0


_table = _RuleTable()


def register_schedule_rule(target: str | Target, name: str, rule: RuleFunction) -> RuleFunction:
    """Register a rule for the loop nests of a target, in front of the built-in rules.

    Rules are tried in the order in which they were registered, and the first that returns actions
    is used. They must make a legal schedule. Registering a name again replaces the rule; one with
    the name of a built-in rule takes its place, and on CPUs the built-in one is tried at the end.

    Args:
        target: A registered target, or its name, or the name of its dialect, such as ``"cuda"``,
            for all targets of this dialect: one of CPUs ("cpu", "cxx") or of CUDA ("cuda").
        name: The name of the rule.
        rule: A function of a `passkit.schedule.loop_nest.LoopNest` and a target, which returns a
            sequence of actions (`passkit.schedule.actions`), or None for nests that it is not for.

    Returns: The rule.

    Raises: ArgumentError if ``target`` is neither target nor text, ``name`` no text or ``rule`` no
    function; SettingError, with the nearest name, if there is no such target or dialect, or if its
    targets have no schedule rules, as those of OpenCL.
    """
    key = target.name if isinstance(target, Target) else target
    arguments.text("register_schedule_rule: target", key)
    arguments.text("register_schedule_rule: name", name)
    arguments.function(f"register_schedule_rule({key!r}, {name!r}): rule", rule)
    targets = list_targets()
    names = targets + sorted({target_of(t).dialect for t in targets} - {*targets})
    if key not in names:
        raise SettingError(
            f"register_schedule_rule: target {arguments.shown(key)} is neither a target nor a "
            f"dialect; {nearest(key, names)}"
        )
    with_rules = [t for t in map(target_of, targets) if t.nests or t.lanes > 1]
    possible = sorted({t.name for t in with_rules} | {t.dialect for t in with_rules})
    if key not in possible:
        raise SettingError(
            f"register_schedule_rule: {key} has no schedule rules; {', '.join(possible)} have some"
        )
    _table.own.setdefault(key, {})[name] = ScheduleRule(name, rule)
    _table.changes += 1
    return rule


def remove_schedule_rule(target: str | Target, name: str) -> None:
    """Remove the rule that was registered for a target, or a dialect, under a name, if any."""
    key = target.name if isinstance(target, Target) else target
    _table.own.get(key, {}).pop(name, None)
    _table.changes += 1


def register_built_in_rules(dialect: str, rules: Iterable[tuple[str, RuleFunction]]) -> None:
    """Set the built-in rules of a dialect, in the order in which they are tried."""
    _table.built_in[dialect] = tuple(ScheduleRule(name, f, True) for name, f in rules)


def schedule_rules(
    target: Target, built_in: tuple[ScheduleRule, ...] | None = None
) -> tuple[ScheduleRule, ...]:
    """Return the rules of a target, in the order in which they are tried.

    These are the registered ones of its name, then of its dialect, then the built-in ones: those of
    the dialect, unless they are given. A rule with the name of a built-in one takes its place.
    """
    if built_in is None:
        built_in = _table.built_in.get(target.dialect, ())
    own = {**_table.own.get(target.dialect, {}), **_table.own.get(target.name, {})}
    names = {r.name for r in built_in}
    first = [r for r in own.values() if r.name not in names]
    return (*first, *(own.get(r.name, r) for r in built_in))


def operator_rules(nest: LoopNest) -> tuple[ScheduleRule, ...]:
    """Return the rules of the operators of a nest, in post-order: their attribute FScheduleRule."""
    if not FScheduleRule.rows:
        return ()
    rules = []
    for node in nest.graph.nodes:
        if node.op is None or node.op.name not in FScheduleRule.rows:
            continue

        def function(nest: LoopNest, target: Target, node: Node = node) -> Sequence[Action] | None:
            return call_schedule_rule(node, nest, target)

        rules.append(ScheduleRule(f"FScheduleRule of {node.op.name}", function))
    return tuple(rules)


def call_schedule_rule(node: Node, nest: LoopNest, target: Target) -> Sequence[Action] | None:
    """Call FScheduleRule: return the actions that a node's operator has for its nest, or None.

    Args:
        node: a node whose operator has FScheduleRule.
        nest: the loop nest that it is in.
        target: the target.

    Raises: RuleError if the result is neither None nor a sequence of actions, or the function takes
    another number of arguments. Errors of the function propagate unchanged.
    """
    result = call_attribute(FScheduleRule, node, node, nest, target)
    if not _is_actions(result):
        refuse_result(FScheduleRule, node, NEED, result)
    return result  # type: ignore[no-any-return]


def call_rule(
    rule: ScheduleRule, nest: LoopNest, target: Target
) -> Sequence[Action] | Diagnostic | None:
    """Return the actions of a rule for a nest, why it has none, or None if it is not for the nest.

    Raises: RuleError if the function returns something else. Its errors propagate unchanged.
    """
    result = rule.function(nest, target)
    if not isinstance(result, Diagnostic) and not _is_actions(result):
        shown = arguments.shown(result)
        raise RuleError(f"schedule rule {rule.name} must give {NEED}, got {shown}")
    return result


@frozen
class RuleResult(Generic[S]):
    """The schedule of a nest and the rule that made it, or why it has none.

    Attributes:
        schedule: the schedule; None if no rule has a legal one.
        rule: the name of the rule; empty without a schedule.
        diagnostic: the reason; None with a schedule.
        refusal: why the actions of a rule that is not built in are not legal, if they are not. A
            later rule made the schedule then.
    """

    schedule: S | None
    rule: str = ""
    diagnostic: Diagnostic | None = None
    refusal: Diagnostic | None = None


def apply_rules(
    nest: LoopNest,
    target: Target,
    rules: Iterable[ScheduleRule],
    apply: Callable[[LoopNest, Target, Iterable[Action]], S | Diagnostic],
) -> RuleResult[S]:
    """Return the schedule of the first rule whose actions are legal.

    Args:
        nest: the loop nest.
        target: the machine.
        rules: the rules, in the order in which they are tried.
        apply: returns the schedule that actions make of a nest, or why they are not legal.

    Raises: RuleError if a rule returns something else than actions.
    """
    problem = Diagnostic("rule.none", {"target": target.name})
    refusal: Diagnostic | None = None
    for rule in rules:
        actions = call_rule(rule, nest, target)
        if actions is None:
            continue
        result = actions if isinstance(actions, Diagnostic) else apply(nest, target, actions)
        if not isinstance(result, Diagnostic):
            return RuleResult(result, rule.name, None, refusal)
        problem = result
        if not rule.is_built_in and not isinstance(actions, Diagnostic):
            refusal = refusal or _illegal_rule(rule, nest, result)
    return RuleResult(None, "", problem, refusal)


def _illegal_rule(rule: ScheduleRule, nest: LoopNest, reason: Diagnostic) -> Diagnostic:
    """Return why the actions of a rule are not legal, with what they could refer to."""
    axes, values = ", ".join(map(str, nest.axes)), ", ".join(nest.values)
    data = {"rule": rule.name, "reason": reason, "axes": axes, "values": values}
    return Diagnostic("rule.illegal", data)


def has_own_rules() -> bool:
    """Return whether the user registered a rule for any target."""
    return any(_table.own.values())


def _is_actions(value: object) -> bool:
    """Return whether a value is None or a list or tuple of actions."""
    return value is None or (
        isinstance(value, (list, tuple)) and all(isinstance(a, Action) for a in value)
    )


def rules_key(graph: Graph) -> Hashable:
    """Return a value that differs where other rules may apply to a graph, for caches of plans."""
    rows = FScheduleRule.rows
    if not rows:
        return _table.changes
    names = (n.op.name for n in graph.nodes if n.op is not None)
    return _table.changes, tuple(rows[name].value for name in names if name in rows)
