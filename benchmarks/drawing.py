"""Draw curves as SVG: a panel with axes, ticks, a legend, and lines through points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from attrs import frozen

WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 40, 48
GREY = "#666"


@frozen(eq=False)
class Curve:
    """A line through points, with its label, colour and width in pixels."""

    x: Sequence[Any]
    y: Sequence[Any]
    name: str
    colour: str
    width: float


@frozen(eq=False)
class Panel:
    """Curves over the same axes; ``log`` draws y on a logarithmic scale."""

    title: str
    x: str
    y: str
    curves: tuple[Curve, ...]
    log: bool = False

    def svg(self) -> str:
        """Return the picture as an SVG document."""
        xs = [float(v) for c in self.curves for v in c.x]
        ys = [float(v) for c in self.curves for v in c.y]
        x_end, y_marks = max(xs), decades(ys) if self.log else ticks(0, max(ys))
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12">'
        )
        parts = [
            head,
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
            f'<text x="{LEFT}" y="22" font-size="14">{escape(self.title)}</text>',
        ]
        for v in (v for v in ticks(0, x_end) if v <= x_end):
            position = LEFT + (WIDTH - RIGHT - LEFT) * v / x_end
            parts.append(_text(position, HEIGHT - BOTTOM + 18, f"{v:g}", "middle"))
        for v in y_marks:
            position = self._y(v, y_marks)
            parts.append(
                f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{position:.1f}" y2="{position:.1f}" '
                f'stroke="#ddd"/>'
            )
            parts.append(_text(LEFT - 8, position + 4, f"{v:g}", "end"))
        parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, self.x, "middle"))
        middle = (TOP + HEIGHT - BOTTOM) / 2
        turned = f' transform="rotate(-90 16 {middle:g})"'
        parts.append(_text(16, middle, self.y, "middle", turned))
        for curve in self.curves:
            points = " ".join(
                f"{LEFT + (WIDTH - RIGHT - LEFT) * float(x) / x_end:.1f},"
                f"{self._y(float(y), y_marks):.1f}"
                for x, y in zip(curve.x, curve.y, strict=True)
            )
            parts.append(
                f'<polyline points="{points}" fill="none" stroke="{curve.colour}" '
                f'stroke-width="{curve.width:g}"/>'
            )
        return "\n".join([*parts, *self._legend(), "</svg>"]) + "\n"

    def _legend(self) -> list[str]:
        """Return a line and a label for each curve, in the corner that curves leave free."""
        parts = []
        for k, curve in enumerate(self.curves):
            y = TOP + 16 + 18 * k if self.log else HEIGHT - BOTTOM - 16 - 18 * k
            left = WIDTH - RIGHT - 170
            parts.append(
                f'<line x1="{left}" x2="{left + 24}" y1="{y - 4}" y2="{y - 4}" '
                f'stroke="{curve.colour}" stroke-width="{curve.width:g}"/>'
            )
            parts.append(_text(left + 32, y, curve.name, "start"))
        return parts

    def _y(self, value: float, marks: Sequence[float]) -> float:
        """Return the vertical position of a value, in pixels."""
        low, high = marks[0], marks[-1]
        if self.log:
            low, high, value = math.log10(low), math.log10(high), math.log10(value)
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (value - low) / (high - low)


def _text(x: float, y: float, text: str, anchor: str, attributes: str = "") -> str:
    """Return an SVG text element; ``attributes`` is inserted into its tag."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{GREY}"{attributes}>'
        f"{escape(text)}</text>"
    )


def ticks(low: float, high: float) -> list[float]:
    """Return about five round numbers from ``low`` to ``high`` or just above it."""
    rough = (high - low) / 5
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * k for k in (1, 2, 5, 10) if unit * k >= rough * 0.999)
    count = math.ceil((high - low) / step - 1e-9)
    return [round(low + step * k, 12) for k in range(count + 1)]


def decades(values: Sequence[float]) -> list[float]:
    """Return the powers of ten that enclose positive values."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return [10.0**k for k in range(low, high + 1)]
