"""A simple layout in SVG, for scenes that no renderer lays out, or not in time.

Boxes stand in rows, each below what it reads. Arrows that go past rows keep a column free in each
of them, as long as there are not too many. Frames are left out. Costs a time linear in boxes and
arrows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from xml.sax.saxutils import escape, quoteattr

from attrs import frozen

from passkit.viz.scene import FONT, LOOSE, Arrow, Box, Scene, printable

LETTER, LINE_HEIGHT, PAD = 6.4, 14.0, 9.0
"""The width of a letter, the height of a line, and the space round a text, in points."""
GAP, BETWEEN = 26.0, 52.0
"""The space between boxes of a row, and between rows."""
WIDEST = 1800.0
"""A row longer than this goes on in the next line."""
SWEEPS = 3
COLUMNS = 1500
"""Columns that arrows keep free in rows; arrows beyond go straight, perhaps behind boxes."""
COLUMN = "column"
"""The form of a box that keeps a column free."""
LABELLED = 120
"""Arrows beyond which they have no text: it would hide the boxes."""


@frozen
class _Placed:
    box: Box
    x: float
    y: float
    width: float
    height: float


def simple_svg(scene: Scene, note: str) -> str:
    """A scene as SVG; ``note`` stands above it and says why it looks plain."""
    rows, columns = _rows(scene)
    places, width, height = _places(rows, top=40.0 + 44.0 * bool(scene.legend))
    legend, length = _legend(scene.legend)
    width = max(width, length, LETTER * len(note) + 2 * PAD)
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    font = f'font-family="{FONT},Arial,sans-serif" font-size="11"'
    out = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font}>',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        f'<text x="{PAD}" y="20" fill="#8a4b00">{_text(note)}</text>',
        *legend,
    ]
    out += _arrows(scene.arrows, columns, places)
    out += [line for p in places.values() if p.box.form != COLUMN for line in _draw(p)]
    return "\n".join([*out, "</svg>", ""])


def _rows(scene: Scene) -> tuple[list[list[Box]], dict[int, list[str]]]:
    """Boxes by how far they are from what nothing feeds; neighbours near what they read.

    Also the keys of the columns that arrows pass, by the numbers of the arrows.
    """
    rank: dict[str, int] = {}
    feeds: dict[str, list[str]] = {key: [] for key in scene.boxes}
    keys = sorted(scene.boxes, key=lambda k: not k.startswith("in"))  # inputs, then post-order
    order = {key: k for k, key in enumerate(keys)}
    for a in scene.arrows:
        # What points back, as arrows between folded scopes may, moves nothing down.
        if a.tail in order and a.head in order and order[a.tail] < order[a.head]:
            feeds[a.head].append(a.tail)
    for key in keys:
        rank[key] = 1 + max((rank.get(t, -1) for t in feeds[key]), default=-1)
    first: dict[str, int] = {}
    for a in scene.arrows:
        if a.tail in feeds.get(a.head, ()):
            first[a.tail] = min(rank[a.head], first.get(a.tail, rank[a.head]))
    for key, reader in first.items():
        if not feeds[key]:
            rank[key] = reader - 1  # inputs and constants stand above their first reader
    rows: list[list[Box]] = [[] for _ in range(1 + max(rank.values(), default=-1))]
    for key, box in scene.boxes.items():
        rows[rank[key]].append(box)
    columns: dict[int, list[str]] = {}
    for k, a in enumerate(scene.arrows):
        between = range(rank.get(a.tail, 0) + 1, rank.get(a.head, 0))
        if a.tail in feeds.get(a.head, ()) and len(between) + len(feeds) < COLUMNS:
            columns[k] = [f"{COLUMN}{k}/{r}" for r in between]
            for r, key in zip(between, columns[k], strict=True):
                rows[r].append(Box(key, (), COLUMN))
            path = [a.tail, *columns[k], a.head]
            feeds[a.head].remove(a.tail)
            feeds |= {head: [*feeds.get(head, ()), tail] for tail, head in pairwise(path)}
    for _ in range(SWEEPS):
        at = {b.key: k / len(row) for row in rows for k, b in enumerate(row)}
        for row in rows[1:]:
            middles = {
                b.key: sum(at[t] for t in feeds[b.key]) / max(1, len(feeds[b.key])) for b in row
            }
            row.sort(key=lambda b: middles[b.key])
            at.update({b.key: k / len(row) for k, b in enumerate(row)})
    return rows, columns


def _places(rows: Sequence[Sequence[Box]], top: float) -> tuple[dict[str, _Placed], float, float]:
    lines: list[list[tuple[Box, float, float]]] = []
    for row in rows:
        length = WIDEST + 1
        for box in row:
            width = LETTER * max(map(len, box.lines), default=0) + 2 * PAD
            height = LINE_HEIGHT * len(box.lines) + PAD
            if length + width > WIDEST:
                lines.append([])
                length = 0.0
            lines[-1].append((box, width, height))
            length += width + GAP
    total = max((sum(w + GAP for _, w, _ in line) for line in lines), default=0.0)
    places: dict[str, _Placed] = {}
    y = top
    for line in lines:
        x = (total - sum(w + GAP for _, w, _ in line)) / 2 + GAP
        tallest = max(h for *_, h in line)
        for box, width, height in line:
            tall = tallest if box.form == COLUMN else height
            places[box.key] = _Placed(box, x, y, width, tall)
            x += width + GAP
        y += tallest + BETWEEN
    return places, total + 2 * GAP, y


def _draw(p: _Placed) -> list[str]:
    box = p.box
    radius = {"box": 5.0, "ellipse": p.height / 2}.get(box.form, 0.0)
    shape = (
        f'<rect x="{p.x:.1f}" y="{p.y:.1f}" width="{p.width:.1f}" height="{p.height:.1f}" '
        f'rx="{radius:.1f}" fill="{box.fill}" stroke="{box.line}"/>'
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


def _arrows(
    arrows: Sequence[Arrow], columns: Mapping[int, Sequence[str]], places: Mapping[str, _Placed]
) -> Iterator[str]:
    """Draw arrows, and if they are not too many, what goes along them."""
    leaving, entering = Counter(a.tail for a in arrows), Counter(a.head for a in arrows)
    for k, arrow in enumerate(arrows):
        if arrow.tail not in places or arrow.head not in places:
            continue
        way = [places[key] for key in (arrow.tail, *columns.get(k, ()), arrow.head)]
        goes_down = way[0].y + way[0].height <= way[-1].y
        curve, point, segments = _downwards(way) if goes_down else _sideways(way[0], way[-1])
        dash = ' stroke-dasharray="4 3"' if arrow.kind in LOOSE else ""
        style = f'fill="none" stroke="#777777" stroke-width="{arrow.width:.2f}"{dash}'
        yield f'<path d="{curve}" {style}/>'
        yield f'<path d="{point}" fill="#777777"/>'
        if len(arrows) <= LABELLED:
            # Where several arrows begin, their labels stand apart at the other ends.
            near_head = leaving[arrow.tail] > entering[arrow.head]
            (x0, y0), (x1, y1) = segments[-1 if near_head else 0]
            part = 0.5 if leaving[arrow.tail] == entering[arrow.head] else 0.35
            part = 1 - part if near_head else part
            x, y = x0 + (x1 - x0) * part + 3, y0 + (y1 - y0) * part + 3
            halo = 'paint-order="stroke" stroke="#ffffff" stroke-width="3"'
            text = _text(" ".join(arrow.lines))
            yield f'<text x="{x:.1f}" y="{y:.1f}" font-size="8" fill="#444444" {halo}>{text}</text>'


Segment = tuple[tuple[float, float], tuple[float, float]]


def _downwards(way: Sequence[_Placed]) -> tuple[str, str, list[Segment]]:
    """A curve from the bottom of a box through columns to the top of another, and its point."""
    curve, segments = "", []
    for a, b in pairwise(way):
        last = b is way[-1]
        x0, y0 = a.x + a.width / 2, a.y + a.height
        x1, y1 = b.x + b.width / 2, b.y - (4 if last else 0)
        bend = max(16.0, (y1 - y0) / 2)
        begin = f"L{x0:.1f},{y0:.1f} " if curve else f"M{x0:.1f},{y0:.1f} "
        curve += f"{begin}C{x0:.1f},{y0 + bend:.1f} {x1:.1f},{y1 - bend:.1f} {x1:.1f},{y1:.1f} "
        segments.append(((x0, y0), (x1, y1)))
    x, y = segments[-1][1]
    point = f"M{x - 3:.1f},{y - 2:.1f} L{x + 3:.1f},{y - 2:.1f} L{x:.1f},{y + 4:.1f} Z"
    return curve.strip(), point, segments


def _sideways(a: _Placed, b: _Placed) -> tuple[str, str, list[Segment]]:
    """A curve from the right side of a box to that of one which is not below it, and its point."""
    x0, x1 = a.x + a.width, b.x + b.width + 4
    y0, y1 = a.y + a.height * 0.7, b.y + b.height * (0.3 if a is b else 0.6)
    far = max(x0, x1) + GAP
    curve = f"M{x0:.1f},{y0:.1f} C{far:.1f},{y0:.1f} {far:.1f},{y1:.1f} {x1:.1f},{y1:.1f}"
    point = f"M{x1 + 2:.1f},{y1 - 3:.1f} L{x1 + 2:.1f},{y1 + 3:.1f} L{x1 - 4:.1f},{y1:.1f} Z"
    return curve, point, [((far - GAP / 4, y0), (far - GAP / 4, y1))]


def _legend(legend: Sequence[Box]) -> tuple[list[str], float]:
    """The signs and what they mean in one line, and how long that is."""
    out: list[str] = []
    x = PAD
    for box in legend:
        width = LETTER * max(map(len, box.lines)) + 2 * PAD
        height = LINE_HEIGHT * len(box.lines) + PAD
        out += _draw(_Placed(box, x, 30.0, width, height))
        x += width + 6.0
    return out, x


def _text(text: str) -> str:
    """Text for XML: escaped, and without the letters that XML cannot hold."""
    return escape(printable(text))
