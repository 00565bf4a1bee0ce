"""Folded plans: kernels, library calls, scopes and runs as boxes; values between them together.

Of steps that are repeated the units of one iteration are drawn, each for all of its copies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from math import log10
from typing import TYPE_CHECKING

from attrs import evolve

from passkit.graph.node import is_state
from passkit.viz.colours import FORM, LINE
from passkit.viz.labels import (
    brief,
    call_lines,
    counted,
    distinct,
    extent_text,
    short_name,
    small,
    type_text,
)
from passkit.viz.repeats import Repeat, even, repeats, scope_of
from passkit.viz.scene import Arrow, Box, Frame, Scene
from passkit.viz.scopes import Fold, folded

if TYPE_CHECKING:
    from passkit.graph.node import Entry, Node
    from passkit.viz.sight import Sight

NO_SCOPE = "\0"
"""Stands for a "/" in names of rows that must not begin a scope."""
FEW = 12
"""Inputs, and results, that get boxes of their own; of more the boxes only tell the number."""


def draw_folded(sight: Sight, limit: int, repeats: Sequence[Repeat] = ()) -> Scene:
    """Draw a graph in at most about ``limit`` boxes, each iteration of ``repeats`` in the same."""
    scene = Scene("plan")
    rolled = Rolled(sight, _in_scopes(sight), repeats)
    weights = None
    if sight.total:  # time decides what is opened, but everything counts a little
        least = 1 / len(rolled.rows)
        weights = [least + 4 * (sight.share(*nodes) or 0.0) for nodes in rolled.rows]
    folds, opened = folded(rolled.names, limit, weights)
    for path in opened:
        outer = [p for p in opened if path.startswith(f"{p}/")]
        parent = max(outer, key=len) if outer else ""
        key = f"s{opened.index(path)}"
        label = rolled.text(f"{path[len(parent) :].lstrip('/')}/")
        scene.frames[key] = Frame(key, label, _frame_key(opened, parent))
    boxes = [[n for m in fold.members for n in rolled.rows[m]] for fold in folds]
    sight.scale(boxes)
    homes: dict[Node, str] = {}
    titles = _titles(folds, rolled)
    for k, (fold, nodes, title) in enumerate(zip(folds, boxes, titles, strict=True)):
        homes.update(dict.fromkeys(nodes, f"n{k}"))
        scene.add(_box(sight, f"n{k}", fold, nodes, title, _frame_key(opened, fold.scope)))
    shown = _draw_inputs(scene, sight, homes)
    _tell_inputs(scene, sight, homes, shown)
    _draw_values(scene, sight, homes | shown, rolled)
    _draw_results(scene, sight, homes | shown)
    return scene


def repeated(sight: Sight) -> list[Repeat]:
    """Find steps that are repeated, and that take about the same time each."""
    found = repeats([_alike(sight, n) for n in sight.units], [sight.name(n) for n in sight.units])
    seconds = [sight.seconds.get(sight.name(n), 0.0) for n in sight.units]
    return [part for r in found for part in even(r, seconds, sight.total)]


def _alike(sight: Sight, node: Node) -> Hashable:
    """A key that units have in common which do the same to values of the same types."""
    body = node.params.get("body")
    ops = [node] if body is None else body.ops
    types = (
        (n.op.name, *(type_text(e.shape, e.dtype) for e in n.entries[:1]))
        for n in ops
        if n.op is not None
    )
    return sight.kind(node), tuple(sorted(types))


class Rolled:
    """Units in rows: a unit by itself, or all copies of a unit that is repeated.

    The names of rows have a part in common for each repeat, so that `folded` sees it as a scope.
    """

    def __init__(self, sight: Sight, names: Sequence[str], repeats: Sequence[Repeat]) -> None:
        self.rows: list[list[Node]] = []
        self.names: list[str] = []
        self.steps: dict[Node, tuple[str, int]] = {}
        """The repeat that a unit is in, by its part in names, and the number of its iteration."""
        self._texts: dict[str, str] = {}
        units, at = sight.units, 0
        for number, repeat in enumerate([*repeats, None]):
            until = len(units) if repeat is None else repeat.start
            self.rows += [[n] for n in units[at:until]]
            self.names += names[at:until]
            if repeat is not None:
                at = repeat.iterations[-1].stop
                self._roll(f"\0repeat {number}\0", repeat, names, units)

    def _roll(self, part: str, repeat: Repeat, names: Sequence[str], units: Sequence[Node]) -> None:
        """Add the rows of a repeat, in whose names ``part`` stands for an iteration's scope."""
        scopes = [scope_of([names[k] for k in i]) for i in repeat.iterations]
        whole = scope_of([names[k] for i in repeat.iterations for k in i])
        ends = ["/".join(scopes[k][len(whole) :]) for k in (0, -1)]
        times = f"{repeat.count} times"
        self._texts[part] = f"{ends[0]} … {ends[1]}, {times}" if all(ends) else f"repeated {times}"
        inside = len(scopes[0]) if all(ends) else len(whole)
        for copies in zip(*repeat.iterations, strict=True):
            rest = names[copies[0]].split("/")[inside:]
            if not all(ends):  # an iteration goes across scopes, which then are no frames in it
                *scope, last = rest
                others = [names[k].split("/")[inside:-1] for k in copies]
                same = [p for p, *q in zip(scope, *others, strict=False) if {p} == set(q)]
                rest = [NO_SCOPE.join([*same, last])]
            self.names.append("/".join([*whole, part, *rest]))
            self.rows.append([units[k] for k in copies])
        for number, iteration in enumerate(repeat.iterations):
            self.steps.update({units[k]: (part, number) for k in iteration})

    def text(self, path: str) -> str:
        """Return a scope's path as a reader is told it."""
        for part, text in self._texts.items():
            path = path.replace(f"{part}/", text if path.endswith(f"{part}/") else f"{text}/")
        return path

    def own(self, name: str) -> str:
        """Return a name without the parts that stand for iterations."""
        for part in self._texts:
            name = name.replace(f"{part}/", "")
        return name.replace(NO_SCOPE, "/")

    def carried(self, tail: Node, head: Node) -> bool:
        """Return whether a value goes from an iteration to another one of the same repeat."""
        one, other = self.steps.get(tail), self.steps.get(head)
        return one is not None and other is not None and one[0] == other[0] and one != other


def _titles(folds: Sequence[Fold], rolled: Rolled) -> list[str]:
    """What each fold is called within its frame; no two nodes in a frame are called the same."""
    inside: dict[str, dict[str, str]] = {}
    for fold in folds:
        if fold.kind == "node":
            name = fold.label.removeprefix(f"{fold.scope}/") if fold.scope else fold.label
            inside.setdefault(fold.scope, {})[fold.label] = rolled.own(name)
    short = {scope: distinct(names.values(), short_name) for scope, names in inside.items()}
    titles = []
    for fold in folds:
        if fold.kind == "node":
            titles.append(short[fold.scope][inside[fold.scope][fold.label]])
        else:
            scope = f"{fold.scope}/" if fold.scope else ""
            parts = (part.removeprefix(scope) for part in fold.label.split(" … "))
            titles.append(brief(" … ".join(map(rolled.text, parts)), 40))
    return titles


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


def _box(
    sight: Sight, key: str, fold: Fold, nodes: list[Node], title: str, frame: str | None
) -> Box:
    kind = sight.main_kind(*nodes)
    fill, ink = sight.heat(*nodes)
    members = tuple(sight.name(n) for n in nodes)
    if fold.kind == "node":
        lines = _copies_lines(sight, nodes, title)
        form = FORM[kind] if sight.fused else "box"
        told = ", ".join(dict.fromkeys((*members, *_operators(sight, nodes[0]))))
        tip = f"{members[0]} … {members[-1]}" if len(nodes) > 1 else told
    else:
        lines, form, tip = _fold_lines(sight, nodes, title), "folder", ", ".join(members)
    lines = (*lines, *sight.time_line(*nodes))
    return Box(key, lines, form, fill, LINE[kind], ink, brief(tip, 400), frame, members)


def _copies_lines(sight: Sight, nodes: Sequence[Node], title: str) -> tuple[str, ...]:
    """Describe a unit; of one with several copies, what is the same for all of them."""
    head, *lines = _node_lines(sight, nodes[0], title)
    if len(nodes) == 1:
        return (head, *lines)
    for node in nodes[1:]:
        others = set(_node_lines(sight, node, title))
        lines = [line for line in lines if line in others]
    return (f"{len(nodes)} × {head}", *lines)


def _node_lines(sight: Sight, node: Node, title: str) -> tuple[str, ...]:
    """Describe a unit: its title, what it computes, and how its kernel is made."""
    body = node.params.get("body")
    if body is None:
        call = call_lines(node, "")[1:]
        return call if title.startswith(call[0]) else (title, *call)
    kernel = sight.kernels.get(node)
    count = f"{body.kind.value}, {counted(len(body.ops), 'operator')}"
    made = sight.anatomy(node)
    lines = (*((brief(kernel.name),) if kernel else ()), *(made.lines() if made else ()))
    return (title, count, *lines)


def _fold_lines(sight: Sight, nodes: list[Node], title: str) -> tuple[str, ...]:
    bodies = [b for n in nodes if (b := n.params.get("body")) is not None]
    lines = [title]
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
        tooltip = " · ".join(filter(None, (name, node.where)))
        box = Box(f"in{k}", (sight.titles[name],), form, tooltip=tooltip, members=(name,))
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
        total = sight.extent_of(entries)
        constant = all(e.node.op is not None for e in entries)
        what = "constant" if constant else "input"
        text = f"reads {counted(len(entries), what)}"
        text += f", {extent_text(total)}" if total is not None else ""
        _tell(scene, key, text)


def _tell(scene: Scene, key: str, line: str) -> None:
    box = scene.boxes[key]
    scene.boxes[key] = evolve(box, lines=(*box.lines, line))


def _draw_values(scene: Scene, sight: Sight, homes: dict[Node, str], rolled: Rolled) -> None:
    """One arrow from a box to another for all values that go that way."""
    ways: dict[tuple[str, str, str], dict[Entry, None]] = {}
    for node in sight.units:
        for entry in node.inputs:
            tail, head = homes.get(entry.node), homes[node]
            kind = "carried" if rolled.carried(entry.node, node) else "memory"
            if tail is not None and (tail != head or kind == "carried"):
                ways.setdefault((tail, head, kind), {})[entry] = None
    for (tail, head, kind), entries in ways.items():
        lines, width = _value_lines(sight, entries), _width(sight, entries)
        scene.arrows.append(Arrow(tail, head, lines, kind, width))


def _value_lines(sight: Sight, entries: dict[Entry, None]) -> tuple[str, ...]:
    if len(entries) == 1:
        return sight.type_lines(next(iter(entries)))
    total = sight.extent_of(entries)
    types = {sight.type_lines(e)[0] for e in entries}
    count = f"{types.pop()} ×{len(entries)}" if len(types) == 1 else f"{len(entries)} values"
    return (count, *(() if total is None else (extent_text(total),)))


def _width(sight: Sight, entries: dict[Entry, None]) -> float:
    """Thicker for more bytes: 1 up to 16 KiB, then 0.6 for each factor of ten."""
    total = sight.extent_of(entries)
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
                scene.arrows.append(Arrow(homes[entry.node], f"out{k}", sight.type_lines(entry)))
    for variable, value in graph.updates:
        if value.node in homes and variable in homes:
            scene.arrows.append(Arrow(homes[value.node], homes[variable], ("update",), "update"))
