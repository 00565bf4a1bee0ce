"""Plans as pictures: each kernel with its operators, or, for larger graphs, boxes that fold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import evolve

from passkit.graph.graph import graph_of_argument
from passkit.plan.group import Group
from passkit.values import arguments
from passkit.values.units import percent_text
from passkit.viz.colours import FILL, FORM, INK, INNER, LINE, SAME, heat
from passkit.viz.folding import draw_folded, repeated
from passkit.viz.labels import call_lines, last_part, short_name, small
from passkit.viz.scene import Arrow, Box, Frame, Scene
from passkit.viz.sight import Sight, seconds_of

if TYPE_CHECKING:
    from passkit.graph.graph import Graph
    from passkit.graph.node import Entry, Node
    from passkit.runtime.profile import ExecutionProfile
    from passkit.viz.anatomy import Anatomy
    from passkit.viz.scene import Picture

MANY = 60
"""Operators beyond which a kernel is drawn as one box."""
BOXES = 50
"""Boxes beyond which scopes are folded."""
AGAIN = "(computed again)"
CROWDED, FEWEST = 4, 16
"""Arrows for each box beyond which more is folded, as long as there are so many boxes."""


def plan(
    graph: Graph,
    detail: bool | None = None,
    profile: ExecutionProfile | Mapping[str, float] | None = None,
    boxes: int = BOXES,
    repeats: bool = True,
    sizes: Mapping[str, int] | None = None,
) -> Picture:
    """Draw a graph with each group as a cluster, coloured by kind.

    Dark edges go through memory, as those between phases do, and tell their shape and bytes; grey
    ones stay in a kernel. What several parts of a kernel compute each for itself stands in each.

    Args:
        graph: A planned graph, or any other.
        detail: Whether to draw the operators of a group, or a box for it. By default they are
            drawn up to 60 operators, unless most of these are repeated.
        profile: A profile of the plan, or seconds by names of nodes: a darker box takes more of
            the time.
        boxes: Number of boxes beyond which scopes (``a/b/`` in names) are folded.
        repeats: Whether to draw steps that are repeated, as those of an unrolled recurrence or
            equal layers, once with their number. Iterations that take much longer than others
            stand for themselves. With ``detail`` nothing is folded.
        sizes: Numbers for sizes that only a call tells, as `Executable.sizes` has those of the
            last call.

    Returns: A drawing for `render`, which notebooks show as it is.
    """
    graph = graph_of_argument("plan: graph", graph)
    if detail is not None:
        arguments.flag("plan: detail", detail)
    boxes = arguments.count("plan: boxes", boxes, 1)
    arguments.flag("plan: repeats", repeats)
    sight = Sight(graph, seconds_of(profile), _sizes(sizes))
    steps = repeated(sight) if repeats and not detail else []
    if detail is None:
        detail = sight.operators <= MANY and sum(r.saved for r in steps) < FEWEST
    scene = _detailed(sight) if detail else draw_folded(sight, boxes, steps)
    while len(scene.arrows) > CROWDED * len(scene.boxes) and len(scene.boxes) > FEWEST:
        boxes = min(boxes, len(scene.boxes)) // 2
        scene = draw_folded(sight, boxes, steps)  # arrows everywhere hide what is there
    scene.legend = _legend(scene, sight)
    return scene.picture()


def _sizes(sizes: Mapping[str, int] | None) -> dict[str, int]:
    need = "numbers by names of sizes, as Executable.sizes has them"
    given = arguments.mapping("plan: sizes", sizes, need)
    return {name: arguments.count(f"plan: sizes: {name!r}", n, 0) for name, n in given.items()}


def _detailed(sight: Sight) -> Scene:
    """Every operator, those of a group in a frame."""
    scene = Scene("plan")
    sight.scale([n] for n in sight.units)
    sources: dict[Entry, tuple[str, Entry]] = {}
    for node in sight.graph.nodes:
        if small(node) is not None:
            continue
        if "body" in node.params:
            _draw_group(scene, sight, node, sources)
            continue
        key = scene.add(_box(sight, node, f"n{len(scene.boxes)}"))
        for entry in node.inputs:
            if entry in sources:
                tail, seen = sources[entry]
                scene.arrows.append(Arrow(tail, key, sight.type_lines(seen)))
        sources.update({e: (key, e) for e in node.entries})
    draw_results(scene, sight, sources)
    scene.arrows = _merged(scene.arrows)
    return scene


def _merged(arrows: Sequence[Arrow]) -> list[Arrow]:
    """One arrow for those of one value to one operator, which reads it several times."""
    found = []
    for arrow, count in Counter(arrows).items():
        if count > 1 and arrow.lines:
            first, *others = arrow.lines
            arrow = evolve(arrow, lines=(f"{first} ×{count}", *others))
        found.append(arrow)
    return found


def _box(sight: Sight, node: Node, key: str) -> Box:
    """A node that is in no group."""
    name = sight.name(node)
    if node.op is None:
        form = "cylinder" if node.params.get("state") else "ellipse"
        return Box(key, (sight.titles[name],), form, members=(name,), tooltip=_tooltip(sight, node))
    if node.op.name == "constant":
        title = (sight.titles[name],)
        return Box(key, title, "note", members=(name,), tooltip=_tooltip(sight, node))
    kind = sight.kind(node)
    fill, ink = sight.heat(node)
    lines = (*call_lines(node, sight.last_parts[name]), *sight.time_line(node))
    form = FORM[kind] if sight.fused else "box"
    tooltip = _tooltip(sight, node)
    return Box(key, lines, form, fill, LINE[kind], ink, tooltip, members=(name,))


def _tooltip(sight: Sight, node: Node) -> str:
    """The whole name of a node, and the line of the user's program that made it."""
    return " · ".join(filter(None, (sight.name(node), node.where)))


def _draw_group(
    scene: Scene, sight: Sight, fused: Node, sources: dict[Entry, tuple[str, Entry]]
) -> None:
    body: Group = fused.params["body"]
    outside = {v.entries[0]: e for v, e in zip(body.inputs, fused.inputs, strict=True)}
    names, kind = body.graph.names, body.kind.value
    ids: dict[tuple[Node, str], str] = {}
    frame = scene.frames[f"g{len(scene.frames)}"] = Frame(
        f"g{len(scene.frames)}",
        "\n".join(_group_lines(sight, fused)),
        fill=FILL[kind],
        line=LINE[kind],
        tooltip=sight.name(fused),
    )
    made = sight.anatomy(fused)
    frames = _draw_parts(scene, made, frame) if made else {}
    crossing = made.crossing() if made else {}
    stored = set(body.graph.outputs if made and made.schedule.makes else ())
    # The time of a group is told by its operators' boxes, which stand on its pale colour.
    fill, ink = sight.heat(fused) if sight.total else (SAME, INK)
    for node in body.graph.nodes:
        if node.op is None or small(node) is not None:
            continue
        name = body.origin.get(node) or names[node]
        if node.op.name == "constant":
            lines: tuple[str, ...] = (short_name(name),)
        else:
            lines = call_lines(node, last_part(name))
        home, *others = frames.get(node, (frame.key,))
        for where in (home, *others):
            key = ids[node, where] = f"n{len(scene.boxes)}"
            told = lines if where == home else (*lines, AGAIN)
            members = (sight.name(fused),)
            scene.add(Box(key, told, "box", fill, LINE[kind], ink, name, where, members))
            for entry in node.inputs:
                source, inner = outside.get(entry), entry.node
                if source in sources:
                    tail, seen = sources[source]
                    scene.arrows.append(Arrow(tail, key, sight.type_lines(seen)))
                    continue
                if source is not None or small(inner) is not None:
                    continue
                here = where if (inner, where) in ids else frames.get(inner, (frame.key,))[0]
                way = "memory" if entry in stored and here != where else "inner"
                # What stays in a kernel takes no memory: its type alone is told.
                lines_of = sight.type_lines(entry)[: 2 if way == "memory" else 1]
                if inner in crossing and here != where:
                    lines_of = (*lines_of, f"a tile: {crossing[inner]}")
                scene.arrows.append(Arrow(ids[inner, here], key, lines_of, way))
    for entry, value in zip(fused.entries, body.graph.outputs, strict=True):
        value = outside.get(value, value)
        if value in sources:
            sources[entry] = sources[value]
        else:
            found = ids.get((value.node, frames.get(value.node, (frame.key,))[0]))
            if found is not None:
                sources[entry] = (found, entry)


def _draw_parts(scene: Scene, made: Anatomy, around: Frame) -> dict[Node, tuple[str, ...]]:
    """A frame for each part of a kernel that has several; the frames that each operator is in.

    Of several the first is where its value comes from; the others compute it for themselves.
    """
    frames: dict[Node, tuple[str, ...]] = {}
    homes = made.homes
    for k, (part, body) in enumerate(zip(made.parts(), made.bodies, strict=True)):
        what = ", ".join(filter(None, (part.kind, part.composition)))
        label = f"{made.word} {k} · {what}" + (f"\ntiles: {part.tiles}" if part.tiles else "")
        key = f"{around.key}p{k}"
        scene.frames[key] = Frame(key, label, around.key, line=around.line)
        for n in body:
            known = frames.get(n, ())
            frames[n] = (key, *known) if homes[n] == k else (*known, key)
    return frames


def _group_lines(sight: Sight, fused: Node) -> tuple[str, ...]:
    kernel = sight.kernels.get(fused)
    head = f"{sight.titles[sight.name(fused)]} · {sight.kind(fused)}"
    made = sight.anatomy(fused)
    lines = (*((kernel.name,) if kernel else ()), *(made.lines() if made else ()))
    return (head, *lines, *sight.time_line(fused))


def draw_results(scene: Scene, sight: Sight, sources: Mapping[Entry, tuple[str, Entry]]) -> None:
    """Draw what a run returns as boxes, and what it writes back as dashed arrows."""
    graph = sight.graph
    for k, entry in enumerate(graph.outputs):
        if entry in sources:
            tail, seen = sources[entry]
            label = f"output {k}" if len(graph.outputs) > 1 else "output"
            scene.add(Box(f"out{k}", (label,), "ellipse", double=True))
            scene.arrows.append(Arrow(tail, f"out{k}", sight.type_lines(seen)))
    for variable, value in graph.updates:
        home = sources.get(variable.entries[0])
        if value in sources and home is not None:
            scene.arrows.append(Arrow(sources[value][0], home[0], ("update",), "update"))


def _legend(scene: Scene, sight: Sight) -> list[Box]:
    """A box for each sign that the scene has; none where it needs no words."""
    if not sight.fused:
        return []
    kinds = dict.fromkeys(sight.kind(n) for n in sight.units)
    detailed = any(f.key.startswith("g") for f in scene.frames.values())
    found = []
    for k, kind in enumerate(kinds):
        what = f"{kind} kernel" if kind in FILL and kind not in ("library", "NumPy") else kind
        words = {"library": "library call", "NumPy": "run by NumPy"}.get(kind, what)
        form = "box" if detailed else FORM[kind]
        found.append(Box(f"legend{k}", (words,), form, FILL[kind], LINE[kind]))
    if any(b.form == "folder" for b in scene.boxes.values()):
        lines = ("scope or run, folded", "(colour of its heaviest kind)")
        found.append(Box("legend_folder", lines, "folder"))
    if sight.total:
        for part in (0.04, 0.3, 1.0):
            fill, ink = heat("operator", part)
            text = f"{percent_text(part * sight.most)} of the time"
            found.append(Box(f"legend_heat{part}", (text,), "box", fill, ink=ink))
    if any(a.kind == "carried" for a in scene.arrows):
        lines = ("dashed arrow: to the next", "repetition")
        found.append(Box("legend_carried", lines, "plaintext", ink=INNER))
    if detailed and not sight.total:
        lines = ("grey arrow: stays in the kernel", "black arrow: through memory")
        found.append(Box("legend_arrow", lines, "plaintext", ink=INNER))
    return found
