"""Pictures of fusion plans: each kernel with its operators, or collapsed for larger graphs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import evolve

from passkit.analysis.group import Group
from passkit.graph.graph import graph_of_argument
from passkit.values import arguments
from passkit.values.units import percent_text
from passkit.viz.collapsed import draw_collapsed, repeated_sequences
from passkit.viz.labels import call_lines, last_part, scalar_text, short_name
from passkit.viz.picture import Picture, picture_of
from passkit.viz.plan_view import PlanView, seconds_by_node
from passkit.viz.scene import Scene, SceneArrow, SceneBox, SceneFrame
from passkit.viz.styles import FILL, INK, INNER, KINDS, LINE, SAME, heat

if TYPE_CHECKING:
    from passkit.graph.graph import Graph
    from passkit.graph.node import Entry, Node
    from passkit.runtime.profile import ExecutionProfile
    from passkit.viz.kernel_structure import KernelStructure

MANY = 60
"""The number of operators of a graph beyond which each kernel is drawn as one box."""
BOXES = 50
"""The default number of boxes beyond which scopes are collapsed."""
RECOMPUTED = "(recomputed)"
"""The last line of an operator that another part of the kernel computes, too."""
MAX_ARROWS_PER_BOX = 4
"""The number of arrows per box beyond which a picture is collapsed further."""
MIN_BOXES = 16
"""The number of boxes below which a picture is not collapsed further."""


def plan(
    graph: Graph,
    detail: bool | None = None,
    profile: ExecutionProfile | Mapping[str, float] | None = None,
    boxes: int = BOXES,
    repeats: bool = True,
    sizes: Mapping[str, int] | None = None,
) -> Picture:
    """Draw a planned graph with each group as a cluster, coloured by kind.

    Dark edges are values in memory, such as those between phases, labelled with their shape and
    bytes; grey ones stay inside a kernel. An operator that several parts of a kernel compute is
    drawn in each of them.

    Args:
        graph: A planned graph, such as `Executable.graph`; any other, or an entry or entries as
            outputs, has no groups, and is drawn as it is.
        detail: Whether to draw the operators of a group, or a box for it. By default they are
            drawn up to 60 operators, unless drawing repeated ones once would save 16 boxes or more.
        profile: A profile of the plan, or seconds by names of nodes: a darker box takes more of
            the time.
        boxes: Number of boxes beyond which scopes (``a/b/`` in names) are collapsed.
        repeats: Whether to draw repeated sequences, such as an unrolled recurrence or equal
            layers, as one iteration with their number. Iterations that take much longer than
            others are drawn by themselves.
        sizes: Numbers of symbolic sizes, such as `Executable.sizes`, those of the last call. None
            is the same as no numbers.

    Returns: A drawing, which `render` writes to a file and notebooks show. With ``detail`` nothing
        is collapsed, except where there are more than 4 arrows per box.

    Raises: ArgumentError for an argument of a wrong type; GraphError if ``graph`` is a sequence of
        something else than entries; SettingError if ``boxes`` is no integer from 1 on, or one of
        ``sizes`` none from 0 on.
    """
    graph = graph_of_argument("plan: graph", graph)
    if detail is not None:
        arguments.flag("plan: detail", detail)
    boxes = arguments.count("plan: boxes", boxes, 1)
    arguments.flag("plan: repeats", repeats)
    view = PlanView(graph, seconds_by_node(profile), _checked_sizes(sizes))
    sequences = repeated_sequences(view) if repeats and not detail else []
    if detail is None:
        detail = view.num_operators <= MANY and sum(r.saved for r in sequences) < MIN_BOXES
    scene = _draw_detailed(view) if detail else draw_collapsed(view, boxes, sequences)
    while (
        len(scene.arrows) > MAX_ARROWS_PER_BOX * len(scene.boxes) and len(scene.boxes) > MIN_BOXES
    ):
        boxes = min(boxes, len(scene.boxes)) // 2
        scene = draw_collapsed(view, boxes, sequences)
    scene.legend = _legend(scene, view)
    return picture_of(scene)


def _checked_sizes(sizes: Mapping[str, int] | None) -> dict[str, int]:
    """Return the sizes as whole numbers by name; None as an empty dict.

    Raises: ArgumentError for no mapping; SettingError for a value that is no integer >= 0.
    """
    need = "numbers by names of sizes, as Executable.sizes has them"
    mapping = arguments.mapping("plan: sizes", sizes, need)
    return {name: arguments.count(f"plan: sizes: {name!r}", n, 0) for name, n in mapping.items()}


def _draw_detailed(view: PlanView) -> Scene:
    """Return a scene with a box for every operator, those of a group in a frame."""
    scene = Scene("plan")
    view.scale_heat([n] for n in view.units)
    # For each value that is drawn: the key of its box, and the entry on the label of its arrows.
    sources: dict[Entry, tuple[str, Entry]] = {}
    for node in view.graph.nodes:
        if scalar_text(node) is not None:
            continue
        if "body" in node.params:
            _GroupDrawing(scene, view, node, sources).draw()
            continue
        key = scene.add(_box(view, node, f"n{len(scene.boxes)}"))
        for entry in node.inputs:
            if entry in sources:
                tail, labelled = sources[entry]
                scene.arrows.append(SceneArrow(tail, key, view.type_lines(labelled)))
        sources.update({e: (key, e) for e in node.entries})
    _draw_outputs(scene, view, sources)
    scene.arrows = _merged(scene.arrows)
    return scene


def _merged(arrows: Sequence[SceneArrow]) -> list[SceneArrow]:
    """Return the arrows with one in place of equal ones, in the order of their first occurrence.

    If the equal arrows have a label, "×" and their number is appended to its first line.
    """
    merged = []
    for arrow, count in Counter(arrows).items():
        if count > 1 and arrow.lines:
            first, *others = arrow.lines
            arrow = evolve(arrow, lines=(f"{first} ×{count}", *others))
        merged.append(arrow)
    return merged


def _box(view: PlanView, node: Node, key: str) -> SceneBox:
    """Return the scene's box called ``key`` for a node of the graph of ``view`` that is no group.

    Its form depends on what the node is: an input, a state, a constant or an operator.
    """
    name = view.name(node)
    if node.op is None:
        form = "cylinder" if node.params.get("state") else "ellipse"
        return SceneBox(
            key, (view.titles[name],), form, members=(name,), tooltip=_tooltip(view, node)
        )
    if node.op.name == "constant":
        title = (view.titles[name],)
        return SceneBox(key, title, "note", members=(name,), tooltip=_tooltip(view, node))
    kind = view.kind(node)
    fill, ink = view.heat(node)
    lines = (*call_lines(node, view.last_parts[name]), *view.time_line(node))
    form = KINDS[kind].form if view.fused else "box"
    tooltip = _tooltip(view, node)
    return SceneBox(key, lines, form, fill, LINE[kind], ink, tooltip, members=(name,))


def _tooltip(view: PlanView, node: Node) -> str:
    """Return the unique name of a node in ``view``, and how messages call it: "y · exp 'y'"."""
    return " · ".join(filter(None, (view.name(node), node.where)))


class _GroupDrawing:
    """Draws a group: its frame, the frames of its parts, its operators and their arrows.

    Attributes:
        scene: The scene to draw in.
        view: The planned graph.
        fused: The node of the group.
        sources: For each value that is drawn, the key of its box and the entry on its label; the
            group's outputs are added.
        body: The group.
        outer_values: For each input of the group's graph, the value outside.
        frame: The frame of the group.
        structure: The structure of its kernel, if it is scheduled.
        frames: For each operator of a kernel with parts, the frames that it is drawn in.
        regions: The region per tile of each value that parts pass to others in scratch.
        keys: The key of the box of each operator in each frame.
    """

    def __init__(
        self, scene: Scene, view: PlanView, fused: Node, sources: dict[Entry, tuple[str, Entry]]
    ) -> None:
        self.scene, self.view, self.fused, self.sources = scene, view, fused, sources
        self.body: Group = fused.params["body"]
        inputs = zip(self.body.inputs, fused.inputs, strict=True)
        self.outer_values = {v.entries[0]: e for v, e in inputs}
        key, kind = f"g{len(scene.frames)}", self.body.kind.value
        self.frame = scene.frames[key] = SceneFrame(
            key,
            "\n".join(_group_lines(view, fused)),
            fill=FILL[kind],
            line=LINE[kind],
            tooltip=view.name(fused),
        )
        self.structure = view.kernel_structure(fused)
        self.frames: dict[Node, tuple[str, ...]] = {}
        self.regions: dict[Node, str] = {}
        if self.structure is not None:
            self.frames = _draw_parts(scene, self.structure, self.frame)
            self.regions = self.structure.regions_in_scratch()
        self.keys: dict[tuple[Node, str], str] = {}

    def draw(self) -> None:
        """Draw the operators with their arrows, and add the group's outputs to ``sources``."""
        for node in self.body.graph.nodes:
            if node.op is not None and scalar_text(node) is None:
                for frame_key in self._frames_of(node):
                    self._draw_operator(node, frame_key)
        for entry, value in zip(self.fused.entries, self.body.graph.outputs, strict=True):
            value = self.outer_values.get(value, value)
            key = self.keys.get((value.node, self._frames_of(value.node)[0]))
            if value in self.sources:
                self.sources[entry] = self.sources[value]
            elif key is not None:
                self.sources[entry] = (key, entry)

    def _frames_of(self, node: Node) -> tuple[str, ...]:
        """Return the keys of the frames that an operator is drawn in; the first produces its value.

        Without parts that is the frame of the group.
        """
        return self.frames.get(node, (self.frame.key,))

    def _draw_operator(self, node: Node, frame_key: str) -> None:
        """Draw ``node``, an operator, in a frame, with the arrows of its inputs.

        Its box is recorded in ``keys``.
        """
        assert node.op is not None
        name = self.body.origin.get(node) or self.body.graph.names[node]
        if node.op.name == "constant":
            lines: tuple[str, ...] = (short_name(name),)
        else:
            lines = call_lines(node, last_part(name))
        if frame_key != self._frames_of(node)[0]:
            lines = (*lines, RECOMPUTED)
        # The time of a group is shown by its operators' boxes, on the pale colour of the frame.
        fill, ink = self.view.heat(self.fused) if self.view.total else (SAME, INK)
        line, members = LINE[self.body.kind.value], (self.view.name(self.fused),)
        key = self.keys[node, frame_key] = f"n{len(self.scene.boxes)}"
        self.scene.add(SceneBox(key, lines, "box", fill, line, ink, name, frame_key, members))
        for entry in node.inputs:
            outer = self.outer_values.get(entry)
            if outer in self.sources:
                tail, labelled = self.sources[outer]
                self.scene.arrows.append(SceneArrow(tail, key, self.view.type_lines(labelled)))
            elif outer is None and scalar_text(entry.node) is None:
                self._draw_inner_value(entry, key, frame_key)

    def _draw_inner_value(self, entry: Entry, key: str, frame_key: str) -> None:
        """Add the arrow of ``entry``, a value inside the group, to a box in the scene.

        ``key`` is the consumer's box, in the frame ``frame_key``. The arrow starts at the
        producer's box in that frame, or else in the first frame of the producer.
        """
        node, is_here = entry.node, (entry.node, frame_key) in self.keys
        source_frame = frame_key if is_here else self._frames_of(node)[0]
        is_phased = self.structure is not None and bool(self.structure.schedule.phase_outputs)
        is_stored = is_phased and entry in self.body.graph.outputs
        kind = "memory" if is_stored and source_frame != frame_key else "inner"
        # A value that stays in a kernel takes no memory: its label is its type alone.
        lines = self.view.type_lines(entry)[: 2 if kind == "memory" else 1]
        if node in self.regions and source_frame != frame_key:
            lines = (*lines, f"per tile: {self.regions[node]}")
        self.scene.arrows.append(SceneArrow(self.keys[node, source_frame], key, lines, kind))


def _draw_parts(
    scene: Scene, structure: KernelStructure, outer: SceneFrame
) -> dict[Node, tuple[str, ...]]:
    """Add a frame inside ``outer`` to the scene for each part of the kernel of ``structure``.

    Returns: For each operator the keys of the frames that it is drawn in; none without parts. The
    first frame of an operator is the part that its value comes from; others recompute it.
    """
    frames: dict[Node, tuple[str, ...]] = {}
    home_parts = structure.home_parts
    parts = zip(structure.parts(), structure.part_operators, strict=True)
    for k, (part, body) in enumerate(parts):
        summary = ", ".join(filter(None, (part.kind, part.composition)))
        tiles = f"\ntiles: {part.tiles}" if part.tiles else ""
        key = f"{outer.key}p{k}"
        label = f"{structure.part_noun} {k} · {summary}{tiles}"
        scene.frames[key] = SceneFrame(key, label, outer.key, line=outer.line)
        for n in body:
            others = frames.get(n, ())
            frames[n] = (key, *others) if home_parts[n] == k else (*others, key)
    return frames


def _group_lines(view: PlanView, fused: Node) -> tuple[str, ...]:
    """Return the label of a group's frame: title, kind, kernel name, structure and time.

    ``fused`` is the group's node in ``view``. Kernel, structure and time are left out where the
    graph or the profile has none.
    """
    kernel = view.kernels.get(fused)
    head = f"{view.titles[view.name(fused)]} · {view.kind(fused)}"
    structure = view.kernel_structure(fused)
    kernel_lines = (kernel.name,) if kernel else ()
    structure_lines = structure.lines() if structure else ()
    return (head, *kernel_lines, *structure_lines, *view.time_line(fused))


def _draw_outputs(scene: Scene, view: PlanView, sources: Mapping[Entry, tuple[str, Entry]]) -> None:
    """Add boxes for the graph's outputs, and dashed arrows for the updates of states, to the scene.

    ``view`` is the graph; ``sources`` has, for each value that is drawn, the key of its box and the
    entry on its label. Outputs and updates that are not drawn are left out.
    """
    graph = view.graph
    for k, entry in enumerate(graph.outputs):
        if entry in sources:
            tail, labelled = sources[entry]
            label = f"output {k}" if len(graph.outputs) > 1 else "output"
            scene.add(SceneBox(f"out{k}", (label,), "ellipse", double=True))
            scene.arrows.append(SceneArrow(tail, f"out{k}", view.type_lines(labelled)))
    for variable, value in graph.updates:
        home = sources.get(variable.entries[0])
        if value in sources and home is not None:
            scene.arrows.append(SceneArrow(sources[value][0], home[0], ("update",), "update"))


def _legend(scene: Scene, view: PlanView) -> list[SceneBox]:
    """Return a box for each colour, shape and arrow of the scene that needs an explanation.

    ``view`` is the graph of the scene.

    Returns: [] for a graph without groups.
    """
    if not view.fused:
        return []
    kinds = dict.fromkeys(view.kind(n) for n in view.units)
    is_detailed = any(f.key.startswith("g") for f in scene.frames.values())
    legend = []
    for k, kind in enumerate(kinds):
        style = KINDS[kind]
        form = "box" if is_detailed else style.form
        legend.append(SceneBox(f"legend{k}", (style.label,), form, style.fill, style.line))
    if any(b.form == "folder" for b in scene.boxes.values()):
        folder_lines = ("collapsed scope or run", "(colour of the kind that", "takes most time)")
        legend.append(SceneBox("legend_folder", folder_lines, "folder"))
    if view.total:
        for part in (0.04, 0.3, 1.0):
            fill, ink = heat("operator", part)
            text = f"{percent_text(part * view.most)} of the time"
            legend.append(SceneBox(f"legend_heat{part}", (text,), "box", fill, ink=ink))
    if any(a.kind == "carried" for a in scene.arrows):
        lines = ("dashed arrow: to the next", "iteration")
        legend.append(SceneBox("legend_carried", lines, "plaintext", ink=INNER))
    if is_detailed and not view.total:
        lines = ("grey arrow: inside the kernel", "black arrow: through memory")
        legend.append(SceneBox("legend_arrow", lines, "plaintext", ink=INNER))
    return legend
