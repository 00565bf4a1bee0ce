"""A simple layout in SVG, for scenes that no renderer lays out, or not in time.

Boxes stand in rows, each below what it reads; frames are left out. Costs a time linear in boxes
and arrows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape, quoteattr

from attrs import frozen

from passkit.viz.scene import FONT, Arrow, Box, Scene, printable

LETTER, LINE_HEIGHT, PAD = 6.4, 14.0, 9.0
"""The width of a letter, the height of a line, and the space round a text, in points."""
GAP, BETWEEN = 26.0, 52.0
"""The space between boxes of a row, and between rows."""
WIDEST = 1800.0
"""A row longer than this goes on in the next line."""
SWEEPS = 3
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
    rows = _rows(scene)
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
    labelled = len(scene.arrows) <= LABELLED
    out += [line for a in scene.arrows for line in _arrow(a, places, labelled)]
    out += [line for p in places.values() for line in _draw(p)]
    return "\n".join([*out, "</svg>", ""])


def _rows(scene: Scene) -> list[list[Box]]:
    """Boxes by how far they are from what nothing feeds; neighbours near what they read."""
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
    rows: list[list[Box]] = [[] for _ in range(1 + max(rank.values(), default=-1))]
    for key, box in scene.boxes.items():
        rows[rank[key]].append(box)
    for _ in range(SWEEPS):
        at = {b.key: k / len(row) for row in rows for k, b in enumerate(row)}
        for row in rows[1:]:
            middles = {
                b.key: sum(at[t] for t in feeds[b.key]) / max(1, len(feeds[b.key])) for b in row
            }
            row.sort(key=lambda b: middles[b.key])
            at.update({b.key: k / len(row) for k, b in enumerate(row)})
    return rows


def _places(rows: Sequence[Sequence[Box]], top: float) -> tuple[dict[str, _Placed], float, float]:
    lines: list[list[tuple[Box, float, float]]] = []
    for row in rows:
        length = WIDEST + 1
        for box in row:
            width = LETTER * max(map(len, box.lines), default=1) + 2 * PAD
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
        for box, width, height in line:
            places[box.key] = _Placed(box, x, y, width, height)
            x += width + GAP
        y += max(h for *_, h in line) + BETWEEN
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
        shape, *texts, "</g>",
    ]  # fmt: skip


def _arrow(arrow: Arrow, places: Mapping[str, _Placed], labelled: bool) -> list[str]:
    if arrow.tail not in places or arrow.head not in places:
        return []
    a, b = places[arrow.tail], places[arrow.head]
    x0, y0 = a.x + a.width / 2, a.y + a.height
    x1, y1 = b.x + b.width / 2, b.y - 4
    bend = max(24.0, abs(y1 - y0) / 3)
    dash = ' stroke-dasharray="4 3"' if arrow.kind == "update" else ""
    curve = f"M{x0:.1f},{y0:.1f} C{x0:.1f},{y0 + bend:.1f} {x1:.1f},{y1 - bend:.1f} "
    point = f"M{x1 - 3:.1f},{y1 - 2:.1f} L{x1 + 3:.1f},{y1 - 2:.1f} L{x1:.1f},{y1 + 4:.1f} Z"
    style = f'fill="none" stroke="#777777" stroke-width="{arrow.width:.2f}"{dash}'
    out = [
        f'<path d="{curve}{x1:.1f},{y1:.1f}" {style}/>',
        f'<path d="{point}" fill="#777777"/>',
    ]
    if labelled:
        out.append(
            f'<text x="{(x0 + x1) / 2 + 3:.1f}" y="{(y0 + y1) / 2:.1f}" font-size="8" '
            f'fill="#444444">{_text(" ".join(arrow.lines))}</text>'
        )
    return out


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
