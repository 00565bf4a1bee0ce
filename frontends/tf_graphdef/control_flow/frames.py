"""Control flow of TensorFlow 1: Switch and Merge of branches, and loops between Enter and Exit.

A Switch whose condition is known has one living result, and what reads the other is not computed.
Where only a call knows it both live, and the Merge behind them chooses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.body import Body, Ref, order, reached
from passkit.frontends.tf_graphdef.control_flow.branches import known_truth, select, truth_of
from passkit.frontends.tf_graphdef.control_flow.calls import unreachable
from passkit.frontends.tf_graphdef.control_flow.loops import around
from passkit.frontends.tf_graphdef.opaque import Anything, Dead, Handle, Missing
from passkit.frontends.tf_graphdef.proto import called, short
from passkit.frontends.tf_graphdef.running_loops import Loop
from passkit.frontends.tf_graphdef.scope import DEEPEST, Every, Scope, Site, structure
from passkit.frontends.tf_graphdef.value import value_of
from passkit.ops.helpers import make
from passkit.values.dtype import dtype_of

_LOOKS_PER_NODE = 50
"""Nodes looked at for a Merge that take about as long as one that is built."""

_DEEPEST = 64
_FREE: Mapping[Ref, int] = {}
"""The conditions of what always comes."""


@structure("Switch", "RefSwitch")
def _switch(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    """The value, on the side of the condition; the other side is dead."""
    site.needs(inputs, 2)
    if (found := unreachable(site, inputs)) is not None:
        return found
    value = inputs[0]
    if isinstance(value, Handle) and value.by_reference and site.call.node.op == "Switch":
        value = site.value(value)
    truth = known_truth(site, site.value(inputs[1]))
    dead = Dead(site.call.name)
    return (value if truth is not True else dead, value if truth is not False else dead)


@structure("Merge", "RefMerge")
def _merge(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    """The one value that lives, and which it is; of two that do, the one that is chosen."""
    site.needs(inputs, 1, None)
    living = [(k, x) for k, x in enumerate(inputs) if not isinstance(x, Dead)]
    if not living:
        return Every(Dead(site.call.name))
    if any(isinstance(x, Missing) for _, x in living):
        return Every(Missing(site.call.name))
    if len(living) == 1:
        k, value = living[0]
        return value, site.call.known(dtype_of("int32"), k)
    if len(living) > 2:
        raise ModelError(
            f"{site.where} merges {len(living)} values that may all come; at most two can be "
            f"chosen from"
        )
    (first, a), (second, b) = living
    reads = site.scope.body.inputs[site.number]
    ref, side = _condition(site, reads[first], reads[second])
    condition = truth_of(site.value(site.scope.result(ref)))
    chosen = select(site, condition, a, b) if side else select(site, condition, b, a)
    one, other = (first, second) if side else (second, first)
    numbers = [make("full", shape=(), fill_value=k, dtype="int32") for k in (one, other)]
    return chosen, value_of(make("where", condition, *numbers))


def _condition(site: Site, a: Ref, b: Ref) -> tuple[Ref, int]:
    """The condition that decides between two values, and what it is where the first one comes.

    Raises: ModelError when no Switch leads to both.
    """
    body = site.scope.body
    heads = [a[0], b[0]]
    wanted = reached(body, heads, body.contexts, control=True)
    for k, number in enumerate(order(body, heads, wanted, body.contexts)):
        body.contexts[number] = _context_of(body, number)
        if k % _LOOKS_PER_NODE == 0:
            site.program.work.take(site.where)
    one, other = _context(body, a), _context(body, b)
    for condition, side in one.items():
        if other.get(condition) == 1 - side:
            return condition, side
    raise ModelError(
        f"{site.where} merges values of which only a call knows which one comes, and no Switch "
        f"leads to both"
    )


def _context(body: Body, ref: Ref) -> Mapping[Ref, int]:
    """The conditions under which a result comes, and what each of them is then."""
    number, index = ref
    found = body.contexts[number]
    if body.nodes[number].op in ("Switch", "RefSwitch") and len(body.inputs[number]) == 2:
        return {**found, body.inputs[number][1]: index}
    return found


def _context_of(body: Body, number: int) -> Mapping[Ref, int]:
    """The conditions of all that a node reads; a Merge is free of those that it decides."""
    reads = [ref for ref in body.inputs[number] if ref[0] in body.contexts]
    contexts = [_context(body, ref) for ref in reads]
    contexts += [body.contexts[k] for k in body.control[number] if k in body.contexts]
    contexts = [c for c in contexts if c]
    if not contexts:
        return _FREE
    if body.nodes[number].op.removeprefix("Ref") == "Merge":
        first, *rest = contexts if len(contexts) == len(body.inputs[number]) else [_FREE]
        return {c: s for c, s in first.items() if all(r.get(c) == s for r in rest)}
    same = all(c is contexts[0] for c in contexts)
    joined = contexts[0] if same else {c: s for found in contexts for c, s in found.items()}
    if len(joined) > _DEEPEST:
        raise ModelError(
            f"{called(body.nodes[number])} of {body.where} depends on {len(joined)} conditions, "
            f"and at most {_DEEPEST} inside one another are supported"
        )
    return joined


@structure("Enter", "RefEnter", "NextIteration", "RefNextIteration")
def _passed(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    site.needs(inputs, 1)
    return tuple(inputs)


@frozen(eq=False)
class _Frame:
    """A loop of TensorFlow 1: what enters it, goes round in it, and says that it goes on."""

    entrances: tuple[int, ...]
    """What enters: first those that go round, in the order of the others here, then the rest."""
    merges: tuple[int, ...]
    following: tuple[Ref, ...]
    """What the next round begins with."""
    condition: Ref


@structure("Exit", "RefExit")
def _exit(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    """A value after the last round. The loop is gone round when the first value of it is asked."""
    scope, body = site.scope, site.scope.body
    name = body.frame(site.number)
    if name not in scope.frames:
        _check_depth(site, name)
        frame = _frame(site, name)
        entered = [scope.result((k, 0)) for k in frame.entrances]
        if (lost := unreachable(site, entered)) is not None:
            return lost
        after = around(site, _loop(scope, frame, name), entered)
        scope.frames[name] = dict(zip(frame.merges, _listed(after, frame), strict=False))
    merge = body.inputs[body.inputs[site.number][0][0]][0][0]
    if merge not in scope.frames[name]:
        raise ModelError(
            f"{site.where} leaves the loop {short(name.decode('utf-8', 'replace'))}, "
            f"and {short(body.nodes[merge].name)} does not go round in it"
        )
    return (scope.frames[name][merge],)


def _check_depth(site: Site, name: bytes) -> None:
    """Make sure that a loop is not a part of itself, nor of very many others."""
    around_it: Scope | None = site.scope
    depth = len(site.scope.inside)
    while around_it is not None:
        depth += 1
        if around_it.frame == name or depth > DEEPEST:
            shown = short(name.decode("utf-8", "replace"))
            reason = "a part of itself" if around_it.frame == name else f"over {DEEPEST} deep"
            raise ModelError(f"{site.where} leaves the loop {shown}, which is {reason}")
        around_it = around_it.outer


def _listed(after: Sequence[Anything], frame: _Frame) -> list[Anything]:
    """The values of a loop, also where it was not computed."""
    return [after[k] for k in range(len(frame.merges))]


def _frame(site: Site, name: bytes) -> _Frame:
    """The loop of a name. Raises: ModelError for what is no loop as TensorFlow builds them."""
    body = site.scope.body
    entrances = body.entrances.get(name, [])
    merges, following, condition = [], [], None
    readers = _readers(body)
    for enter in entrances:
        for merge in readers.get(enter, ()):
            if len(body.inputs[merge]) != 2 or "Merge" not in body.nodes[merge].op:
                continue
            switches = [k for k in readers.get(merge, ()) if "Switch" in body.nodes[k].op]
            if "NextIteration" in body.nodes[body.inputs[merge][1][0]].op and switches:
                merges.append((enter, merge))
                following.append(body.inputs[merge][1])
                condition = body.inputs[switches[0]][-1]
                break
    if condition is None or body.nodes[condition[0]].op != "LoopCond":
        shown = short(name.decode("utf-8", "replace"))
        raise ModelError(
            f"{site.where} leaves the loop {shown} of {len(entrances)} entrances, which has no "
            f"LoopCond that says when; a loop needs Enter, Merge, LoopCond, Switch and "
            f"NextIteration"
        )
    going = {enter for enter, _ in merges}
    rest = [k for k in entrances if k not in going]
    return _Frame(
        (*(enter for enter, _ in merges), *rest),
        tuple(merge for _, merge in merges),
        tuple(following),
        condition,
    )


def _readers(body: Body) -> dict[int, list[int]]:
    """For each node at a loop's begin those that read it first; found once for each body."""
    if not body.readers:
        for number, reads in enumerate(body.inputs):
            if reads and body.nodes[number].op.removeprefix("Ref") in ("Merge", "Switch"):
                body.readers.setdefault(reads[0][0], []).append(number)
    return body.readers


def _loop(scope: Scope, frame: _Frame, name: bytes) -> Loop:
    """A loop as functions of what enters it; one round is a run of the same nodes."""
    count = len(frame.merges)
    rounds: dict[int, Scope] = {}

    def begin(values: Sequence[Anything], k: int) -> Scope:
        prefix = f"{scope.prefix}{name.decode('utf-8', 'replace')}/{k}/"
        inner = Scope(
            scope.program, scope.body, prefix, scope.inside, scope.attrs, outer=scope, frame=name
        )
        inner.values.update((m, (v, v)) for m, v in zip(frame.merges, values, strict=False))
        inner.values.update(
            (e, (v,)) for e, v in zip(frame.entrances[count:], values[count:], strict=True)
        )
        rounds.clear()
        rounds[k] = inner
        return inner

    def goes_on(values: Sequence[Anything], k: int) -> Anything:
        return begin(values, k).run([frame.condition], ("condition", name))[0]

    def next_round(values: Sequence[Anything], k: int) -> Sequence[Anything]:
        return [*rounds[k].run(frame.following, ("round", name)), *values[count:]]

    kept = frozenset(range(count, len(frame.entrances)))
    return Loop(goes_on, next_round, kept)
