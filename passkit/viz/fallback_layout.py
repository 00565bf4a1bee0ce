"""The fallback layout: scenes as SVG where no renderer is installed or none finishes in time.

Boxes are in rows, each below its inputs. Arrows that pass rows reserve a column in each of them,
unless there are too many. Frames are left out. The time is linear in boxes and arrows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from xml.sax.saxutils import escape, quoteattr

from attrs import frozen

from passkit.viz.scene import UNRANKED, Scene, SceneArrow, SceneBox, printable
from passkit.viz.styles import FONT

LETTER, LINE_HEIGHT, PAD = 6.4, 14.0, 9.0
"""The width of a letter, the height of a line, and the space around a text, in points."""
GAP, ROW_GAP = 26.0, 52.0
"""The space between the boxes of a row, and between rows, in points."""
MAX_WIDTH = 1800.0
"""The width in points beyond which a row continues in another line."""
SWEEPS = 3
"""How often the boxes of each row are sorted by the positions of their inputs."""
MAX_COLUMNS = 1500
"""The most columns that arrows reserve; further arrows are straight, perhaps behind boxes."""
COLUMN = "column"
"""The form of an invisible box that reserves a column."""
MAX_LABELLED = 120
"""The number of arrows beyond which they have no labels, which would hide boxes."""


@frozen
class _PlacedBox:
    """A box with the position of its upper left corner and its size, in points."""

    box: SceneBox
    x: float
    y: float
    width: float
    height: float


@frozen
class _ArrowCurve:
    """The SVG paths of an arrow's line and head, and the pieces that a label may be at."""

    line: str
    head: str
    pieces: list[tuple[tuple[float, float], tuple[float, float]]]


def fallback_svg(scene: Scene, note: str) -> str:
    """Return a scene as SVG, with ``note``, which says why it looks plain, as its first line."""
    rows, columns = _rows(scene)
    placed, width, height = _place(rows, top=40.0 + 44.0 * bool(scene.legend))
    legend, legend_width = _legend(scene.legend)
    width = max(width, legend_width, LETTER * len(note) + 2 * PAD)
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    font = f'font-family="{FONT},Arial,sans-serif" font-size="11"'
    out = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font}>',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        f'<text x="{PAD}" y="20" fill="#8a4b00">{_text(note)}</text>',
        *legend,
    ]
    out += _draw_arrows(scene.arrows, columns, placed)
    out += [line for p in placed.values() if p.box.form != COLUMN for line in _draw_box(p)]
    return "\n".join([*out, "</svg>", ""])


def _rows(scene: Scene) -> tuple[list[list[SceneBox]], dict[int, list[str]]]:
    """Return the boxes of each row, and the keys of the columns that each arrow passes.

    The keys are by the arrow's position in ``scene.arrows``; an arrow that passes no row has none,
    and one that points upward, or with which there would be MAX_COLUMNS boxes and columns, is no
    key. The row of a box is its longest distance from boxes without inputs; these are above their
    first consumer. Within a row, boxes are sorted by the positions of their inputs.
    """
    keys = sorted(scene.boxes, key=lambda k: not k.startswith("in"))  # inputs, then post-order
    feeds = _feeds(scene, keys)
    rank = _ranks(scene, keys, feeds)
    rows: list[list[SceneBox]] = [[] for _ in range(1 + max(rank.values(), default=-1))]
    for key, box in scene.boxes.items():
        rows[rank[key]].append(box)
    columns: dict[int, list[str]] = {}
    for k, arrow in enumerate(scene.arrows):
        between = range(rank.get(arrow.tail, 0) + 1, rank.get(arrow.head, 0))
        is_downward = arrow.tail in feeds.get(arrow.head, ())
        if is_downward and len(between) + len(feeds) < MAX_COLUMNS:
            columns[k] = [f"{COLUMN}{k}/{r}" for r in between]
            for r, key in zip(between, columns[k], strict=True):
                rows[r].append(SceneBox(key, (), COLUMN))
            path = [arrow.tail, *columns[k], arrow.head]
            feeds[arrow.head].remove(arrow.tail)
            feeds |= {head: [*feeds.get(head, ()), tail] for tail, head in pairwise(path)}
    _sort_rows(rows, feeds)
    return rows, columns


def _feeds(scene: Scene, keys: Sequence[str]) -> dict[str, list[str]]:
    """Return for each box of ``scene`` the boxes before it in ``keys`` that it reads.

    Arrows that point backwards, as those between collapsed scopes may, are ignored.
    """
    feeds: dict[str, list[str]] = {key: [] for key in scene.boxes}
    order = {key: k for k, key in enumerate(keys)}
    for arrow in scene.arrows:
        is_drawn = arrow.tail in order and arrow.head in order
        if is_drawn and order[arrow.tail] < order[arrow.head]:
            feeds[arrow.head].append(arrow.tail)
    return feeds


def _ranks(scene: Scene, keys: Sequence[str], feeds: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return the row of each box; inputs and constants are directly above their first consumer.

    ``keys`` are the boxes of ``scene`` in topological order, ``feeds`` the boxes that each of them
    reads.
    """
    rank: dict[str, int] = {}
    for key in keys:
        rank[key] = 1 + max((rank.get(t, -1) for t in feeds[key]), default=-1)
    first_consumer: dict[str, int] = {}
    for arrow in scene.arrows:
        if arrow.tail in feeds.get(arrow.head, ()):
            row = rank[arrow.head]
            first_consumer[arrow.tail] = min(row, first_consumer.get(arrow.tail, row))
    for key, row in first_consumer.items():
        if not feeds[key]:
            rank[key] = row - 1
    return rank


def _sort_rows(rows: Sequence[list[SceneBox]], feeds: Mapping[str, Sequence[str]]) -> None:
    """Sort the boxes of each row but the first by the mean position of their inputs, in place.

    ``feeds`` has the keys of the boxes that each box reads.
    """
    for _ in range(SWEEPS):
        position = {b.key: k / len(row) for row in rows for k, b in enumerate(row)}
        for row in rows[1:]:
            means = {
                b.key: sum(position[t] for t in feeds[b.key]) / max(1, len(feeds[b.key]))
                for b in row
            }
            row.sort(key=lambda b: means[b.key])
            position.update({b.key: k / len(row) for k, b in enumerate(row)})


def _place(
    rows: Sequence[Sequence[SceneBox]], top: float
) -> tuple[dict[str, _PlacedBox], float, float]:
    """Return the placed boxes by key, and the width and height of all of them, in points.

    Args:
        rows: The boxes of each row; rows that are too long take several lines.
        top: The upper end of the first row.
    """
    lines: list[list[tuple[SceneBox, float, float]]] = []
    for row in rows:
        length = MAX_WIDTH + 1
        for box in row:
            width = LETTER * max(map(len, box.lines), default=0) + 2 * PAD
            height = LINE_HEIGHT * len(box.lines) + PAD
            if length + width > MAX_WIDTH:
                lines.append([])
                length = 0.0
            lines[-1].append((box, width, height))
            length += width + GAP
    total = max((sum(w + GAP for _, w, _ in line) for line in lines), default=0.0)
    placed: dict[str, _PlacedBox] = {}
    y = top
    for line in lines:
        x = (total - sum(w + GAP for _, w, _ in line)) / 2 + GAP
        tallest = max(h for *_, h in line)
        for box, width, height in line:
            box_height = tallest if box.form == COLUMN else height
            placed[box.key] = _PlacedBox(box, x, y, width, box_height)
            x += width + GAP
        y += tallest + ROW_GAP
    return placed, total + 2 * GAP, y


def _draw_box(p: _PlacedBox) -> list[str]:
    """Return the SVG elements of a box with its text."""
    box = p.box
    radius = {"box": 5.0, "ellipse": p.height / 2}.get(box.form, 0.0)
    dash = ' stroke-dasharray="4 3"' if box.dashed else ""
    shape = (
        f'<rect x="{p.x:.1f}" y="{p.y:.1f}" width="{p.width:.1f}" height="{p.height:.1f}" '
        f'rx="{radius:.1f}" fill="{box.fill}" stroke="{box.line}"{dash}/>'
    )
    texts = [
        f'<text x="{p.x + p.width / 2:.1f}" y="{p.y + LINE_HEIGHT * (k + 1):.1f}" '
        f'text-anchor="middle" fill="{box.ink}">{_text(line)}</text>'
        for k, line in enumerate(box.lines)
    ]
    return [
        f'<g class="node" id={quoteattr(box.key)}><title>{_text(box.key)}</title>',
        shape,
        *texts,
        "</g>",
    ]


def _draw_arrows(
    arrows: Sequence[SceneArrow],
    columns: Mapping[int, Sequence[str]],
    placed: Mapping[str, _PlacedBox],
) -> Iterator[str]:
    """Yield the SVG elements of arrows, and of their labels if there are at most MAX_LABELLED.

    Args:
        arrows: The arrows; those with an end that is not placed are left out.
        columns: By position of an arrow: the keys of the columns that it passes.
        placed: The placed boxes and columns by key.
    """
    leaving, entering = Counter(a.tail for a in arrows), Counter(a.head for a in arrows)
    for k, arrow in enumerate(arrows):
        if arrow.tail not in placed or arrow.head not in placed or arrow.kind == "order":
            continue
        path = [placed[key] for key in (arrow.tail, *columns.get(k, ()), arrow.head)]
        is_downward = path[0].y + path[0].height <= path[-1].y
        curve = _downward_curve(path) if is_downward else _sideways_curve(path[0], path[-1])
        is_dashed = arrow.kind in UNRANKED or arrow.kind == "pending"
        dash = ' stroke-dasharray="4 3"' if is_dashed else ""
        style = f'fill="none" stroke="#777777" stroke-width="{arrow.width:.2f}"{dash}'
        yield f'<path d="{curve.line}" {style}/>'
        yield f'<path d="{curve.head}" fill="#777777"/>'
        if len(arrows) <= MAX_LABELLED:
            # Where several arrows leave a box, their labels are apart near the heads.
            near_head = leaving[arrow.tail] > entering[arrow.head]
            (x0, y0), (x1, y1) = curve.pieces[-1 if near_head else 0]
            part = 0.5 if leaving[arrow.tail] == entering[arrow.head] else 0.35
            part = 1 - part if near_head else part
            x, y = x0 + (x1 - x0) * part + 3, y0 + (y1 - y0) * part + 3
            halo = 'paint-order="stroke" stroke="#ffffff" stroke-width="3"'
            text = _text(" ".join(arrow.lines))
            yield f'<text x="{x:.1f}" y="{y:.1f}" font-size="8" fill="#444444" {halo}>{text}</text>'


def _downward_curve(path: Sequence[_PlacedBox]) -> _ArrowCurve:
    """Return a curve from the bottom of the first box through columns to the top of the last."""
    line, pieces = "", []
    for a, b in pairwise(path):
        is_last = b is path[-1]
        x0, y0 = a.x + a.width / 2, a.y + a.height
        x1, y1 = b.x + b.width / 2, b.y - (4 if is_last else 0)
        bend = max(16.0, (y1 - y0) / 2)
        begin = f"L{x0:.1f},{y0:.1f} " if line else f"M{x0:.1f},{y0:.1f} "
        line += f"{begin}C{x0:.1f},{y0 + bend:.1f} {x1:.1f},{y1 - bend:.1f} {x1:.1f},{y1:.1f} "
        pieces.append(((x0, y0), (x1, y1)))
    x, y = pieces[-1][1]
    head = f"M{x - 3:.1f},{y - 2:.1f} L{x + 3:.1f},{y - 2:.1f} L{x:.1f},{y + 4:.1f} Z"
    return _ArrowCurve(line.strip(), head, pieces)


def _sideways_curve(a: _PlacedBox, b: _PlacedBox) -> _ArrowCurve:
    """Return a curve from the right side of a box to the right side of one not below it."""
    x0, x1 = a.x + a.width, b.x + b.width + 4
    y0, y1 = a.y + a.height * 0.7, b.y + b.height * (0.3 if a is b else 0.6)
    far = max(x0, x1) + GAP
    line = f"M{x0:.1f},{y0:.1f} C{far:.1f},{y0:.1f} {far:.1f},{y1:.1f} {x1:.1f},{y1:.1f}"
    head = f"M{x1 + 2:.1f},{y1 - 3:.1f} L{x1 + 2:.1f},{y1 + 3:.1f} L{x1 - 4:.1f},{y1:.1f} Z"
    return _ArrowCurve(line, head, [((far - GAP / 4, y0), (far - GAP / 4, y1))])


def _legend(legend: Sequence[SceneBox]) -> tuple[list[str], float]:
    """Return the SVG elements of the legend in one row, and its width in points.

    ``legend`` has its boxes; without any, the elements are empty and the width is the left margin.
    """
    out: list[str] = []
    x = PAD
    for box in legend:
        width = LETTER * max(map(len, box.lines)) + 2 * PAD
        height = LINE_HEIGHT * len(box.lines) + PAD
        out += _draw_box(_PlacedBox(box, x, 30.0, width, height))
        x += width + 6.0
    return out, x


def _text(text: str) -> str:
    """Return a text for XML: escaped, without characters that XML cannot hold."""
    return escape(printable(text))
