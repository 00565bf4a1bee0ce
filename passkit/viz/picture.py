"""Pictures: a scene as a drawing in DOT, which renderers lay out and notebooks show as SVG."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import graphviz

from passkit.viz.fallback_layout import fallback_svg
from passkit.viz.renderers import render_with_note
from passkit.viz.scene import UNRANKED, Scene, SceneArrow, SceneBox, SceneFrame, printable
from passkit.viz.styles import FONT, PENDING, TIME

NOTEBOOK_SECONDS = 5.0
"""Seconds after which a notebook shows the fallback layout: it should not hang on a picture."""


class Picture(graphviz.Digraph):  # type: ignore[misc]
    """A drawing in DOT, with the scene that it shows. `passkit.viz.render` writes it to a file."""

    scene: Scene

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Return the display of a notebook, by MIME type: its text and its SVG.

        ``include`` and ``exclude`` belong to IPython's display protocol and have no effect.

        Raises: OSError where a temporary file cannot be written.
        """
        return {"text/plain": repr(self), "image/svg+xml": self.svg()}

    def svg(self, timeout: float = NOTEBOOK_SECONDS) -> str:
        """Return the drawing as SVG, in the fallback layout if no renderer finishes in time.

        The fallback layout also serves where no renderer is installed, or it fails. The picture
        passes through a file in a temporary folder, which is removed.

        Args:
            timeout: Seconds that a renderer may take.

        Raises: ArgumentError where ``timeout`` is no number; OSError where the file cannot be
        written.
        """
        with tempfile.TemporaryDirectory(prefix="passkit-") as folder:
            path, _ = render_with_note(self, Path(folder, "picture.svg"), timeout)
            return path.read_text(encoding="utf-8")

    def fallback_svg(self, note: str) -> str:
        """Return the drawing as SVG without using a renderer, with ``note`` as its first line."""
        return fallback_svg(self.scene, note)


def picture_of(scene: Scene) -> Picture:
    """Return a scene as a drawing in DOT. Raises: KeyError for an arrow of an unknown kind."""
    dot = _digraph(scene.name)
    dot.scene = scene
    boxes: dict[str | None, list[SceneBox]] = {}
    frames: dict[str | None, list[SceneFrame]] = {}
    for box in scene.boxes.values():
        boxes.setdefault(box.frame, []).append(box)
    for frame in scene.frames.values():
        frames.setdefault(frame.parent, []).append(frame)
    _draw_contents(dot, None, boxes, frames)
    for arrow in scene.arrows:
        _draw_arrow(dot, arrow)
    for above, below in _title_constraints(scene):
        dot.edge(above, below, style="invis")
    if scene.legend:
        with dot.subgraph(name="cluster_legend") as cluster:
            cluster.attr(
                label="legend",
                style="rounded",
                color="#bbbbbb",
                fontcolor="#555555",
                fontsize="9",
            )
            for box in scene.legend:
                _draw_box(cluster, box, fontsize="9")
    return dot


def _title_constraints(scene: Scene) -> list[tuple[str, str]]:
    """Return pairs of DOT nodes of which the first must be above the second.

    The title of a frame is a DOT node, since renderers route arrows around nodes but through labels
    of clusters. It is above everything in the frame, and below the boxes that feed the frame,
    unless one of these depends on the frame itself, as frames of scopes may depend on each other.
    """
    enclosing: dict[str, list[str]] = {}
    for frame in scene.frames.values():
        enclosing[_title(frame.key)] = list(scene.enclosing_frames(frame.parent))
    for box in scene.boxes.values():
        enclosing[box.key] = list(scene.enclosing_frames(box.frame))
    constraints = [(_title(frames[0]), key) for key, frames in enclosing.items() if frames]
    successors: dict[str, list[str]] = {}
    for tail, head in constraints:
        successors.setdefault(tail, []).append(head)
    feeds: dict[tuple[str, str], None] = {}
    for arrow in scene.arrows:
        if arrow.kind in UNRANKED or not {arrow.tail, arrow.head} <= enclosing.keys():
            continue
        successors.setdefault(arrow.tail, []).append(arrow.head)
        entered = [f for f in enclosing[arrow.head] if f not in enclosing[arrow.tail]]
        if entered and scene.boxes[arrow.tail].form != "note":
            feeds[arrow.tail, _title(entered[-1])] = None
    for tail, title in feeds:
        if not _is_reachable(successors, title, tail):
            successors.setdefault(tail, []).append(title)
            constraints.append((tail, title))
    return constraints


def _is_reachable(successors: Mapping[str, Sequence[str]], start: str, end: str) -> bool:
    """Return whether a path of ``successors`` leads from the key ``start`` to the key ``end``.

    A key is reachable from itself only by a cycle.
    """
    visited, pending = {start}, [start]
    while pending:
        for key in successors.get(pending.pop(), ()):
            if key == end:
                return True
            if key not in visited:
                visited.add(key)
                pending.append(key)
    return False


def _title(frame_key: str) -> str:
    """Return the key of the DOT node that is a frame's title."""
    return f"title_{frame_key}"


def _digraph(name: str) -> Picture:
    """Return an empty drawing with passkit's default attributes."""
    font = {"fontname": FONT}
    return Picture(
        name,
        graph_attr={**font, "rankdir": "TB", "nodesep": "0.3", "ranksep": "0.4", "fontsize": "11"},
        node_attr={
            **font,
            "fontsize": "11",
            "shape": "box",
            "style": "filled",
            "fillcolor": "white",
            "color": "#555555",
            "height": "0.3",
            "margin": "0.2,0.05",
        },
        edge_attr={**font, "fontsize": "9", "color": "#333333", "arrowsize": "0.6"},
    )


def _draw_contents(
    dot: graphviz.Digraph,
    frame_key: str | None,
    boxes: dict[str | None, list[SceneBox]],
    frames: dict[str | None, list[SceneFrame]],
) -> None:
    """Add the boxes and frames inside the frame ``frame_key`` to ``dot``; None is the picture.

    ``boxes`` and ``frames`` list contents by the key of the frame around them. The recursion is as
    deep as names have parts, which `collapse_scopes` limits.
    """
    for box in boxes.get(frame_key, ()):
        _draw_box(dot, box)
    for inner in frames.get(frame_key, ()):
        with dot.subgraph(name=f"cluster_{inner.key}") as cluster:
            cluster.attr(
                style="rounded" if inner.fill == "none" else "rounded,filled",
                fillcolor=inner.fill,
                color=inner.line,
                tooltip=quoted(inner.tooltip or inner.label),
            )
            cluster.node(
                _title(inner.key),
                quoted(inner.label).replace("\n", "\\l") + "\\l",
                shape="plaintext",
                style="",
                fontcolor=inner.line,
                margin="0.12,0.02",
                tooltip=quoted(inner.tooltip or inner.label),
                **{"class": "title"},
            )
            _draw_contents(cluster, inner.key, boxes, frames)


def _draw_box(dot: graphviz.Digraph, box: SceneBox, **attributes: str) -> None:
    """Draw a box into ``dot``; ``attributes`` are further DOT attributes of the node."""
    styles = ["rounded", "filled"] if box.form == "box" else ["filled"]
    if box.dashed:
        styles.append("dashed")
    dot.node(
        box.key,
        quoted("\n".join(box.lines)),
        tooltip=quoted(box.tooltip or " ".join(box.lines)),
        shape=box.form,
        style=",".join(styles),
        fillcolor=box.fill,
        color=box.line,
        fontcolor=box.ink,
        **({"peripheries": "2"} if box.double else {}),
        **attributes,
    )


def _draw_arrow(dot: graphviz.Digraph, arrow: SceneArrow) -> None:
    """Draw an arrow into ``dot`` in the style of its kind, see `SceneArrow`.

    Raises: KeyError for another kind.
    """
    text = "".join(f"  {graphviz.escape(printable(line))}\\l" for line in arrow.lines)
    style = {
        "memory": {"penwidth": f"{arrow.width:.3g}"},
        "inner": {"color": "#8a8a8a", "fontcolor": "#6f6f6f"},
        "update": {"style": "dashed", "constraint": "false"},
        "carried": {"style": "dashed", "constraint": "false"},
        "pending": {"style": "dashed", "color": PENDING, "fontcolor": PENDING},
        "time back": {"penwidth": "3", "color": TIME, "fontcolor": TIME, "constraint": "false"},
        "time": {"penwidth": "3", "color": TIME, "fontcolor": TIME, "weight": "4"},
        "order": {"style": "invis"},
    }[arrow.kind]
    dot.edge(arrow.tail, arrow.head, text, **style)


def quoted(text: str) -> str:
    """Return a DOT label that shows a text literally."""
    label: str = graphviz.nohtml(graphviz.escape(printable(text)))
    return label
