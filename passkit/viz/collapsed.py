"""Collapsed plans: scopes, runs and repeated sequences as single boxes, with one arrow between two.

Of a repeated sequence only the units of one iteration are drawn, each for all of its copies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from math import log10
from typing import TYPE_CHECKING

from attrs import evolve

from passkit.graph.node import is_state
from passkit.viz.labels import (
    brief,
    call_lines,
    counted,
    distinct,
    extent_text,
    scalar_text,
    short_name,
    type_text,
)
from passkit.viz.repeats import Repeat, find_repeats, shared_scope, split_at_outliers
from passkit.viz.scene import Scene, SceneArrow, SceneBox, SceneFrame
from passkit.viz.scopes import CollapsedBox, collapse_scopes
from passkit.viz.styles import KINDS, LINE

if TYPE_CHECKING:
    from passkit.graph.node import Entry, Node
    from passkit.viz.plan_view import PlanView

NO_SCOPE = "\0"
"""Replaces a "/" in names of rows that must not begin a scope."""
MAX_TERMINALS = 12
"""The most inputs, and the most outputs, that have boxes; of more only the number is shown."""


def draw_collapsed(view: PlanView, limit: int, repeats: Sequence[Repeat] = ()) -> Scene:
    """Draw a graph in at most about ``limit`` boxes.

    Args:
        view: The graph.
        limit: The number of boxes to aim at.
        repeats: The repeated sequences that are drawn as one iteration.

    Returns: The scene. The scale of colours of ``view`` is set to the boxes.
    """
    scene = Scene("plan")
    rows = UnitRows(view, _scoped_names(view), repeats)
    weights = None
    if view.total:  # time decides which scopes are opened, but every unit has some weight
        least = 1 / len(rows.units)
        weights = [least + 4 * (view.time_share(*nodes) or 0.0) for nodes in rows.units]
    collapsed, opened = collapse_scopes(rows.names, limit, weights)
    for path in opened:
        outer = [p for p in opened if path.startswith(f"{p}/")]
        parent = max(outer, key=len) if outer else ""
        key = f"s{opened.index(path)}"
        label = rows.readable(f"{path[len(parent) :].lstrip('/')}/")
        scene.frames[key] = SceneFrame(key, label, _frame_key(opened, parent))
    nodes_of_boxes = [[n for m in box.members for n in rows.units[m]] for box in collapsed]
    view.scale_heat(nodes_of_boxes)
    box_keys: dict[Node, str] = {}
    titles = _titles(collapsed, rows)
    for k, (box, nodes, title) in enumerate(zip(collapsed, nodes_of_boxes, titles, strict=True)):
        box_keys.update(dict.fromkeys(nodes, f"n{k}"))
        scene.add(_box(view, f"n{k}", box, nodes, title, _frame_key(opened, box.scope)))
    inputs = _draw_inputs(scene, view)
    _add_hidden_inputs(scene, view, box_keys, inputs)
    _draw_values(scene, view, box_keys | inputs, rows)
    _draw_outputs(scene, view, box_keys | inputs)
    return scene


def repeated_sequences(view: PlanView) -> list[Repeat]:
    """Return sequences of equivalent units that are repeated and take about the same time each.

    They do not overlap, and are in order. Without a profile, times do not matter.
    """
    keys, names = (
        [_equivalence_key(view, n) for n in view.units],
        [view.name(n) for n in view.units],
    )
    seconds = [view.seconds.get(name, 0.0) for name in names]
    repeats = find_repeats(keys, names)
    return [part for r in repeats for part in split_at_outliers(r, seconds, view.total)]


def _equivalence_key(view: PlanView, node: Node) -> Hashable:
    """Return a key that is equal for units of one kind with the same operators and result types.

    ``node`` is the unit in ``view``, a group or a single operator; of an operator the type of its
    first result counts, but not names, parameters and the order of operators.
    """
    body = node.params.get("body")
    ops = [node] if body is None else body.ops
    types = (
        (n.op.name, *(type_text(e.shape, e.dtype) for e in n.entries[:1]))
        for n in ops
        if n.op is not None
    )
    return view.kind(node), tuple(sorted(types))


class UnitRows:
    """Units in rows: a unit by itself, or all copies of a repeated unit.

    The names of the rows of a repeat share a part, so that `collapse_scopes` takes it for a scope.

    Attributes:
        units: The units of each row.
        names: The name of each row.
        iterations: For each repeated unit, the part that stands for its repeat in names, and the
            number of its iteration.
    """

    def __init__(self, view: PlanView, names: Sequence[str], repeats: Sequence[Repeat]) -> None:
        self.units: list[list[Node]] = []
        self.names: list[str] = []
        self.iterations: dict[Node, tuple[str, int]] = {}
        self._labels: dict[str, str] = {}
        units, position = view.units, 0
        for number, repeat in enumerate([*repeats, None]):
            until = len(units) if repeat is None else repeat.start
            self.units += [[n] for n in units[position:until]]
            self.names += names[position:until]
            if repeat is not None:
                position = repeat.iterations[-1].stop
                self._add_repeat(f"\0repeat {number}\0", repeat, names, units)

    def _add_repeat(
        self, part: str, repeat: Repeat, names: Sequence[str], units: Sequence[Node]
    ) -> None:
        """Add the rows of a repeat; ``part`` stands for an iteration's scope in their names.

        ``names`` and ``units`` are those of all units, which the repeat refers to by position.
        Changes the attributes of this object.
        """
        scopes = [shared_scope([names[k] for k in i]) for i in repeat.iterations]
        common = shared_scope([names[k] for i in repeat.iterations for k in i])
        ends = ["/".join(scopes[k][len(common) :]) for k in (0, -1)]
        times = f"{repeat.count} times"
        self._labels[part] = f"{ends[0]} … {ends[1]}, {times}" if all(ends) else f"repeated {times}"
        inside = len(scopes[0]) if all(ends) else len(common)
        for copies in zip(*repeat.iterations, strict=True):
            rest = names[copies[0]].split("/")[inside:]
            if not all(ends):  # an iteration crosses scopes, which then are no frames in it
                *scope, last = rest
                others = [names[k].split("/")[inside:-1] for k in copies]
                same = [p for p, *q in zip(scope, *others, strict=False) if {p} == set(q)]
                rest = [NO_SCOPE.join([*same, last])]
            self.names.append("/".join([*common, part, *rest]))
            self.units.append([units[k] for k in copies])
        for number, iteration in enumerate(repeat.iterations):
            self.iterations.update({units[k]: (part, number) for k in iteration})

    def readable(self, path: str) -> str:
        """Return the path of a scope with labels such as "repeated 8 times" for repeats.

        A path without repeats is returned as it is.
        """
        for part, label in self._labels.items():
            path = path.replace(f"{part}/", label if path.endswith(f"{part}/") else f"{label}/")
        return path

    def original_name(self, name: str) -> str:
        """Return the original of a shown name: without parts for repeats, with all its "/"."""
        for part in self._labels:
            name = name.replace(f"{part}/", "")
        return name.replace(NO_SCOPE, "/")

    def is_carried(self, producer: Node, consumer: Node) -> bool:
        """Return whether a value goes from one iteration to another of the same repeat.

        ``producer`` and ``consumer`` are the units that compute and read it.
        """
        a, b = self.iterations.get(producer), self.iterations.get(consumer)
        return a is not None and b is not None and a[0] == b[0] and a != b


def _titles(collapsed: Sequence[CollapsedBox], rows: UnitRows) -> list[str]:
    """Return the title of each of the ``collapsed`` boxes, in their order.

    Those of nodes in one frame differ as far as they fit. ``rows`` gives the names that readers see
    for rows of repeated units.
    """
    names_of_scope: dict[str, dict[str, str]] = {}
    for box in collapsed:
        if box.kind == "node":
            name = box.label.removeprefix(f"{box.scope}/") if box.scope else box.label
            names_of_scope.setdefault(box.scope, {})[box.label] = rows.original_name(name)
    short = {scope: distinct(names.values(), short_name) for scope, names in names_of_scope.items()}
    titles = []
    for box in collapsed:
        if box.kind == "node":
            titles.append(short[box.scope][names_of_scope[box.scope][box.label]])
        else:
            scope = f"{box.scope}/" if box.scope else ""
            parts = (part.removeprefix(scope) for part in box.label.split(" … "))
            titles.append(brief(" … ".join(map(rows.readable, parts)), 40))
    return titles


def _scoped_names(view: PlanView) -> list[str]:
    """Return the names of units, with a scope for those that have none.

    Passes and users add unnamed nodes inside scopes. A unit without a scope is put in the scope of
    most of its operators, or else of the last of its inputs that has one; the name stays without a
    scope where there is none.
    """
    scopes: dict[Node, str] = {}
    names = []
    for node in view.units:
        name = view.name(node)
        scope = name.rpartition("/")[0]
        if not scope:
            inside = Counter(o.rpartition("/")[0] for o in _operators(view, node) if "/" in o)
            outside = [scopes[e.node] for e in node.inputs if scopes.get(e.node)]
            scope = inside.most_common(1)[0][0] if inside else outside[-1] if outside else ""
            name = f"{scope}/{name}" if scope else name
        scopes[node] = scope
        names.append(name)
    return names


def _frame_key(opened: list[str], path: str) -> str | None:
    """Return the key of the frame of the scope ``path``; None if it is not among the ``opened``."""
    return f"s{opened.index(path)}" if path in opened else None


def _box(
    view: PlanView, key: str, box: CollapsedBox, nodes: list[Node], title: str, frame: str | None
) -> SceneBox:
    """Return the scene's box called ``key``, in ``frame``, for the ``nodes`` of a collapsed box.

    ``view`` is the graph, ``title`` the first line of the box; ``frame`` is None outside frames.
    """
    kind = view.main_kind(*nodes)
    fill, ink = view.heat(*nodes)
    members = tuple(view.name(n) for n in nodes)
    if box.kind == "node":
        lines = _copies_lines(view, nodes, title)
        form = KINDS[kind].form if view.fused else "box"
        names = ", ".join(dict.fromkeys((*members, *_operators(view, nodes[0]))))
        tooltip = f"{members[0]} … {members[-1]}" if len(nodes) > 1 else names
    else:
        lines, form, tooltip = _scope_lines(view, nodes, title), "folder", ", ".join(members)
    lines = (*lines, *view.time_line(*nodes))
    return SceneBox(key, lines, form, fill, LINE[kind], ink, brief(tooltip, 400), frame, members)


def _copies_lines(view: PlanView, nodes: Sequence[Node], title: str) -> tuple[str, ...]:
    """Return the lines of a unit, or those that all copies of a repeated unit share.

    ``nodes`` are the copies; the first line, ``title``, has their number in front. ``view`` is the
    graph.
    """
    head, *lines = _unit_lines(view, nodes[0], title)
    if len(nodes) == 1:
        return (head, *lines)
    for node in nodes[1:]:
        others = set(_unit_lines(view, node, title))
        lines = [line for line in lines if line in others]
    return (f"{len(nodes)} × {head}", *lines)


def _unit_lines(view: PlanView, node: Node, title: str) -> tuple[str, ...]:
    """Return the lines of a unit: its title, its call or kind, and the structure of its kernel.

    ``node`` is the unit in ``view``; a ``title`` that begins with the call of a single operator is
    left out.
    """
    body = node.params.get("body")
    if body is None:
        call = call_lines(node, "")[1:]
        return call if title.startswith(call[0]) else (title, *call)
    kernel = view.kernels.get(node)
    count = f"{body.kind.value}, {counted(len(body.ops), 'operator')}"
    structure = view.kernel_structure(node)
    kernel_lines = (brief(kernel.name),) if kernel else ()
    structure_lines = structure.lines() if structure else ()
    return (title, count, *kernel_lines, *structure_lines)


def _scope_lines(view: PlanView, nodes: list[Node], title: str) -> tuple[str, ...]:
    """Return the lines of a scope or run: its title, and its numbers of kernels and calls.

    ``nodes`` are its units in ``view``.
    """
    bodies = [b for n in nodes if (b := n.params.get("body")) is not None]
    lines = [title]
    if bodies:
        operators = sum(len(b.ops) for b in bodies)
        lines.append(f"{counted(len(bodies), 'kernel')} of {counted(operators, 'operator')}")
    others = Counter(view.kind(n) for n in nodes if "body" not in n.params)
    lines += [counted(count, KINDS[kind].label) for kind, count in others.items()]
    return tuple(lines)


def _operators(view: PlanView, node: Node) -> list[str]:
    """Return the names of the operators of a group, or the name of a single operator, in a list.

    ``node`` is the unit in ``view``.
    """
    body = node.params.get("body")
    if body is None:
        return [view.name(node)]
    return [body.origin.get(n) or n.label for n in body.ops]


def _draw_inputs(scene: Scene, view: PlanView) -> dict[Node, str]:
    """Add boxes for inputs and states of ``view`` to the scene if there are at most MAX_TERMINALS.

    Returns: The key of the box of each; empty if they are not drawn.
    """
    variables = [n for n in view.graph.nodes if n.op is None]
    if len(variables) > MAX_TERMINALS:
        return {}
    keys = {}
    for k, node in enumerate(variables):
        form = "cylinder" if is_state(node.entries[0]) else "ellipse"
        name = view.name(node)
        tooltip = " · ".join(filter(None, (name, node.where)))
        box = SceneBox(f"in{k}", (view.titles[name],), form, tooltip=tooltip, members=(name,))
        keys[node] = scene.add(box)
    return keys


def _add_hidden_inputs(
    scene: Scene, view: PlanView, box_keys: dict[Node, str], inputs: dict[Node, str]
) -> None:
    """Add a line to boxes that read values without a box: constants, or inputs if they are many.

    Args:
        scene: The scene, which is changed.
        view: The graph.
        box_keys: The key of the box of each unit.
        inputs: The key of the box of each input that has one.
    """
    reads: dict[str, dict[Entry, None]] = {}
    for node, key in box_keys.items():
        for entry in node.inputs:
            is_hidden = entry.node not in box_keys and entry.node not in inputs
            if is_hidden and scalar_text(entry.node) is None:
                reads.setdefault(key, {})[entry] = None
    for key, entries in reads.items():
        total = view.extent_of(entries)
        are_constants = all(e.node.op is not None for e in entries)
        text = f"reads {counted(len(entries), 'constant' if are_constants else 'input')}"
        text += f", {extent_text(total)}" if total is not None else ""
        _add_line(scene, key, text)


def _add_line(scene: Scene, key: str, line: str) -> None:
    """Add a line of text to the box called ``key`` in the scene, by replacing the box.

    Raises: KeyError where there is none.
    """
    box = scene.boxes[key]
    scene.boxes[key] = evolve(box, lines=(*box.lines, line))


def _draw_values(scene: Scene, view: PlanView, box_keys: dict[Node, str], rows: UnitRows) -> None:
    """Add one arrow to the scene for all values that go from one box to another.

    Values within a box, and those from nodes without a box, get none. ``view`` is the graph,
    ``box_keys`` has the key of the box of each unit and input; ``rows`` tells which values are
    carried from one iteration of a repeat to another.
    """
    values: dict[tuple[str, str, str], dict[Entry, None]] = {}
    for node in view.units:
        for entry in node.inputs:
            tail, head = box_keys.get(entry.node), box_keys[node]
            kind = "carried" if rows.is_carried(entry.node, node) else "memory"
            if tail is not None and (tail != head or kind == "carried"):
                values.setdefault((tail, head, kind), {})[entry] = None
    for (tail, head, kind), entries in values.items():
        lines, width = _value_lines(view, entries), _width(view, entries)
        scene.arrows.append(SceneArrow(tail, head, lines, kind, width))


def _value_lines(view: PlanView, entries: dict[Entry, None]) -> tuple[str, ...]:
    """Return the label of an arrow for several values: their type or number, and their bytes.

    ``entries`` are the values, in the graph of ``view``. The bytes are left out where a shape or
    dtype is not inferred.
    """
    if len(entries) == 1:
        return view.type_lines(next(iter(entries)))
    total = view.extent_of(entries)
    types = {view.type_lines(e)[0] for e in entries}
    count = f"{types.pop()} ×{len(entries)}" if len(types) == 1 else f"{len(entries)} values"
    return (count,) if total is None else (count, extent_text(total))


def _width(view: PlanView, entries: dict[Entry, None]) -> float:
    """Return the width of an arrow: 1 up to 16 KiB, and 0.6 more for each factor of ten, at most 5.

    It is 1 for values of unknown size; ``entries`` are the values of the arrow in ``view``.
    """
    total = view.extent_of(entries)
    if not isinstance(total, int) or total <= 1 << 14:
        return 1.0
    return min(5.0, 1.0 + 0.6 * log10(total / (1 << 14)))


def _draw_outputs(scene: Scene, view: PlanView, box_keys: dict[Node, str]) -> None:
    """Add outputs to the scene: boxes if there are few, else lines of their producers; add updates.

    ``view`` is the graph, ``box_keys`` has the key of the box of each unit and input. Outputs and
    updates of nodes without a box are left out.
    """
    graph = view.graph
    if len(graph.outputs) > MAX_TERMINALS:
        counts = Counter(box_keys[e.node] for e in graph.outputs if e.node in box_keys)
        for key, count in counts.items():
            _add_line(scene, key, f"produces {counted(count, 'output')}")
    else:
        for k, entry in enumerate(graph.outputs):
            if entry.node in box_keys:
                label = f"output {k}" if len(graph.outputs) > 1 else "output"
                scene.add(SceneBox(f"out{k}", (label,), "ellipse", double=True))
                tail = box_keys[entry.node]
                scene.arrows.append(SceneArrow(tail, f"out{k}", view.type_lines(entry)))
    for variable, value in graph.updates:
        if value.node in box_keys and variable in box_keys:
            tail, head = box_keys[value.node], box_keys[variable]
            scene.arrows.append(SceneArrow(tail, head, ("update",), "update"))
