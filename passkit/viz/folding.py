"""Folded plans: kernels, library calls, scopes and runs as boxes; values between them together."""

from __future__ import annotations

from collections import Counter
from math import log10
from typing import TYPE_CHECKING

from attrs import evolve

from passkit.graph.node import is_state
from passkit.viz.colours import FORM, LINE
from passkit.viz.labels import (
    brief,
    call_lines,
    counted,
    extent_of,
    extent_text,
    short_name,
    small,
    type_lines,
)
from passkit.viz.scene import Arrow, Box, Frame, Scene
from passkit.viz.scopes import Fold, folded

if TYPE_CHECKING:
    from passkit.graph.node import Entry, Node
    from passkit.viz.sight import Sight

FEW = 12
"""Inputs, and results, that get boxes of their own; of more the boxes only tell the number."""


def draw_folded(sight: Sight, limit: int) -> Scene:
    """At most about ``limit`` boxes that stand for all of a graph."""
    scene = Scene("plan")
    names = _in_scopes(sight)
    weights = None
    if sight.total:  # time decides what is opened, but everything counts a little
        weights = [1 / len(names) + 4 * (sight.share(n) or 0.0) for n in sight.units]
    folds, opened = folded(names, limit, weights)
    for path in opened:
        outer = [p for p in opened if path.startswith(f"{p}/")]
        parent = max(outer, key=len) if outer else ""
        key = f"s{opened.index(path)}"
        label = f"{path[len(parent) :].lstrip('/')}/"
        scene.frames[key] = Frame(key, label, _frame_key(opened, parent))
    sight.scale([sight.units[m] for m in fold.members] for fold in folds)
    homes: dict[Node, str] = {}
    for k, fold in enumerate(folds):
        nodes = [sight.units[m] for m in fold.members]
        homes.update(dict.fromkeys(nodes, f"n{k}"))
        scene.add(_box(sight, f"n{k}", fold, nodes, _frame_key(opened, fold.scope)))
    shown = _draw_inputs(scene, sight, homes)
    _tell_inputs(scene, sight, homes, shown)
    _draw_values(scene, sight, homes | shown)
    _draw_results(scene, sight, homes | shown)
    return scene


def _in_scopes(sight: Sight) -> list[str]:
    """The names of units; those without a scope are in that of their members, or of what they read.

    Passes and users leave nodes without names inside of what has one.
    """
    scopes: dict[Node, str] = {}
    found = []
    for node in sight.units:
        name = sight.name(node)
        scope = name.rpartition("/")[0]
        if not scope:
            inside = Counter(o.rpartition("/")[0] for o in _operators(sight, node) if "/" in o)
            outside = [scopes[e.node] for e in node.inputs if scopes.get(e.node)]
            scope = inside.most_common(1)[0][0] if inside else outside[-1] if outside else ""
            name = f"{scope}/{name}" if scope else name
        scopes[node] = scope
        found.append(name)
    return found


def _frame_key(opened: list[str], path: str) -> str | None:
    return f"s{opened.index(path)}" if path in opened else None


def _box(sight: Sight, key: str, fold: Fold, nodes: list[Node], frame: str | None) -> Box:
    kind = sight.main_kind(*nodes)
    fill, ink = sight.heat(*nodes)
    members = tuple(sight.name(n) for n in nodes)
    if fold.kind == "node":
        lines = _node_lines(sight, nodes[0], fold)
        form = FORM[kind] if sight.fused else "box"
        tip = ", ".join(_operators(sight, nodes[0]))
    else:
        lines, form, tip = _fold_lines(sight, fold, nodes), "folder", ", ".join(members)
    lines = (*lines, *sight.time_line(*nodes))
    return Box(key, lines, form, fill, LINE[kind], ink, brief(tip, 400), frame, members)


def _node_lines(sight: Sight, node: Node, fold: Fold) -> tuple[str, ...]:
    """What a unit is, by its name within the frame that it is in."""
    name, body = fold.label, node.params.get("body")
    name = name.removeprefix(f"{fold.scope}/") if fold.scope else name
    if body is None:
        call = call_lines(node, "")[1:]
        return call if name.startswith(call[0]) else (short_name(name), *call)
    kernel = sight.kernels.get(node)
    count = f"{body.kind.value}, {len(body.ops)} operators"
    made = sight.anatomy(node)
    lines = (*((brief(kernel.name),) if kernel else ()), *(made.lines() if made else ()))
    return (short_name(name), count, *lines)


def _fold_lines(sight: Sight, fold: Fold, nodes: list[Node]) -> tuple[str, ...]:
    bodies = [b for n in nodes if (b := n.params.get("body")) is not None]
    inside = f"{fold.scope}/" if fold.scope else ""
    label = " … ".join(part.removeprefix(inside) for part in fold.label.split(" … "))
    lines = [brief(label, 40)]
    if bodies:
        operators = sum(len(b.ops) for b in bodies)
        lines.append(f"{counted(len(bodies), 'kernel')} of {counted(operators, 'operator')}")
    others = Counter(sight.kind(n) for n in nodes if "body" not in n.params)
    for kind, count in others.items():
        words = {"library": "library call", "NumPy": "NumPy call", "own": "own kernel"}
        lines.append(counted(count, words.get(kind, kind)))
    return tuple(lines)


def _operators(sight: Sight, node: Node) -> list[str]:
    body = node.params.get("body")
    if body is None:
        return [sight.name(node)]
    return [body.origin.get(n) or n.label for n in body.ops]


def _draw_inputs(scene: Scene, sight: Sight, homes: dict[Node, str]) -> dict[Node, str]:
    """Boxes for inputs and state, where they are few."""
    variables = [n for n in sight.graph.nodes if n.op is None]
    if len(variables) > FEW:
        return {}
    shown = {}
    for k, node in enumerate(variables):
        form = "cylinder" if is_state(node.entries[0]) else "ellipse"
        name = sight.name(node)
        box = Box(f"in{k}", (short_name(name),), form, tooltip=node.where, members=(name,))
        shown[node] = scene.add(box)
    return shown


def _tell_inputs(
    scene: Scene, sight: Sight, homes: dict[Node, str], shown: dict[Node, str]
) -> None:
    """Lines for what boxes read that has no box: constants, and inputs where they are many."""
    reads: dict[str, dict[Entry, None]] = {}
    for node, key in homes.items():
        for entry in node.inputs:
            hidden = entry.node not in homes and entry.node not in shown
            if hidden and small(entry.node) is None:
                reads.setdefault(key, {})[entry] = None
    for key, entries in reads.items():
        total = extent_of(entries)
        constant = all(e.node.op is not None for e in entries)
        what = "constant" if constant else "input"
        text = f"reads {counted(len(entries), what)}"
        text += f", {extent_text(total)}" if total is not None else ""
        _tell(scene, key, text)


def _tell(scene: Scene, key: str, line: str) -> None:
    box = scene.boxes[key]
    scene.boxes[key] = evolve(box, lines=(*box.lines, line))


def _draw_values(scene: Scene, sight: Sight, homes: dict[Node, str]) -> None:
    """One arrow from a box to another for all values that go that way."""
    ways: dict[tuple[str, str], dict[Entry, None]] = {}
    for node in sight.units:
        for entry in node.inputs:
            tail, head = homes.get(entry.node), homes[node]
            if tail is not None and tail != head:
                ways.setdefault((tail, head), {})[entry] = None
    for (tail, head), entries in ways.items():
        scene.arrows.append(Arrow(tail, head, _value_lines(entries), width=_width(entries)))


def _value_lines(entries: dict[Entry, None]) -> tuple[str, ...]:
    if len(entries) == 1:
        return type_lines(next(iter(entries)))
    total = extent_of(entries)
    more = () if total is None else (extent_text(total),)
    return (f"{len(entries)} values", *more)


def _width(entries: dict[Entry, None]) -> float:
    """Thicker for more bytes: 1 up to 16 KiB, then 0.6 for each factor of ten."""
    total = extent_of(entries)
    if not isinstance(total, int) or total <= 1 << 14:
        return 1.0
    return min(5.0, 1.0 + 0.6 * log10(total / (1 << 14)))


def _draw_results(scene: Scene, sight: Sight, homes: dict[Node, str]) -> None:
    graph = sight.graph
    if len(graph.outputs) > FEW:
        counts = Counter(homes[e.node] for e in graph.outputs if e.node in homes)
        for key, count in counts.items():
            _tell(scene, key, f"gives {counted(count, 'result')}")
    else:
        for k, entry in enumerate(graph.outputs):
            if entry.node in homes:
                label = f"output {k}" if len(graph.outputs) > 1 else "output"
                scene.add(Box(f"out{k}", (label,), "ellipse", double=True))
                scene.arrows.append(Arrow(homes[entry.node], f"out{k}", type_lines(entry)))
    for variable, value in graph.updates:
        if value.node in homes and variable in homes:
            scene.arrows.append(Arrow(homes[value.node], homes[variable], ("update",), "update"))
