"""Draw the README's speed chart from a report of `compare.py`.

    python benchmarks/speed_chart.py [--report benchmarks/results/show-core.json] [--out FILE]

A bar shows how many times as long as passkit a competitor takes for one call. Both times are the
best of the medians of all rounds, with results dropped between calls. The scale is logarithmic.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from attrs import frozen

ROOT = Path(__file__).resolve().parents[1]
REPORT = ROOT / "benchmarks" / "results" / "show-core.json"
PICTURE = ROOT / "docs" / "pictures" / "speed.svg"

COMPETITORS = {
    "compile": ("torch.compile", "#c2410c"),
    "jax": ("jax.jit", "#4338ca"),
}
"""The label and the colour of the bars of each competitor, by its key in the report."""

TITLES = {
    "gelu_erf": "GELU",
    "gelu_custom_erf": "GELU, erf by a polynomial of the user's",
    "chain": "three tanh with broadcasts",
    "softmax": "softmax",
    "layer_norm": "layer norm",
    "bias_gelu": "bias and GELU",
}
"""The label of each workload in the chart, by its name in the report. Others are left out."""

LABEL_WIDTH, PLOT_WIDTH, BAR, GAP, TOP = 330, 420, 13, 14, 78
LARGEST = 16.0
"""The right end of the scale. A longer bar is cut there; its number says how long it is."""


@frozen
class ChartRow:
    """One workload: its label and, for each competitor, its time divided by passkit's."""

    label: str
    ratios: Mapping[str, float]


def chart_rows(report: Mapping[str, Any]) -> list[ChartRow]:
    """Return those core rows of a report that have a title, in its order.

    Raises: KeyError when a competitor did not run.
    """
    rows = []
    for row in report["rows"]:
        name, _, shape = row["name"].partition(" ")
        if not row["core"] or name not in TITLES:
            continue
        medians = {k: c["dropped"]["median"] for k, c in row["competitors"].items() if "error" in c}
        rows.append(
            ChartRow(
                f"{TITLES[name]}, {shape.replace('x', '×')}",
                {key: medians[key] / medians["passkit"] for key in COMPETITORS},
            )
        )
    return rows


def x_of(ratio: float) -> float:
    """Return the horizontal position of a ratio, in pixels."""
    clipped = min(max(ratio, 0.5), LARGEST)
    return LABEL_WIDTH + PLOT_WIDTH * math.log(clipped / 0.5) / math.log(LARGEST / 0.5)


def text(x: float, y: float, content: str, **attributes: str) -> str:
    """Return an SVG text element."""
    extra = "".join(f' {k.replace("_", "-")}="{v}"' for k, v in attributes.items())
    return f'<text x="{x:.0f}" y="{y:.0f}"{extra}>{escape(content)}</text>'


def draw_legend() -> list[str]:
    """Return the elements of the legend, which stands above the plot."""
    elements = []
    x = float(LABEL_WIDTH)
    for label, colour in COMPETITORS.values():
        elements.append(f'<rect x="{x:.0f}" y="42" width="12" height="12" fill="{colour}"/>')
        elements.append(text(x + 18, 52, label))
        x += 130
    elements.append(text(x, 52, "passkit = 1", fill="#15803d", font_weight="bold"))
    return elements


def draw_row(row: ChartRow, y: float) -> list[str]:
    """Return the elements of one workload whose first bar starts at ``y``."""
    elements = [text(LABEL_WIDTH - 12, y + BAR + 4, row.label, text_anchor="end")]
    for k, (key, (_, colour)) in enumerate(COMPETITORS.items()):
        top = y + k * BAR
        ratio = row.ratios[key]
        left, right = sorted((x_of(1.0), x_of(ratio)))
        elements.append(
            f'<rect x="{left:.0f}" y="{top:.0f}" width="{max(right - left, 1):.0f}" '
            f'height="{BAR - 2}" fill="{colour}"/>'
        )
        elements.append(text(right + 5, top + 10, f"{ratio:.1f}", font_size="11"))
    return elements


def draw(report: Mapping[str, Any]) -> str:
    """Return the chart of a report as an SVG document."""
    rows = chart_rows(report)
    step = BAR * len(COMPETITORS) + GAP
    bottom = TOP + step * len(rows)
    width, height = LABEL_WIDTH + PLOT_WIDTH + 60, bottom + 52
    body = [
        f'<rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>',
        text(
            LABEL_WIDTH,
            26,
            "Time of one call, relative to passkit (longer is slower)",
            font_size="15",
            font_weight="bold",
        ),
        *draw_legend(),
    ]
    for ratio in (1, 2, 4, 8, 16):
        colour = "#15803d" if ratio == 1 else "#d4d4d8"
        x = x_of(ratio)
        ends = f'x1="{x:.0f}" y1="{TOP - 8}" x2="{x:.0f}" y2="{bottom}"'
        body.append(f'<line {ends} stroke="{colour}"/>')
        body.append(text(x, bottom + 16, str(ratio), text_anchor="middle", font_size="11"))
    for k, row in enumerate(rows):
        body += draw_row(row, TOP + k * step)
    versions = report["versions"]
    setting = (
        f"{report['cpu']}, {report['threads']} threads, {report['date'][:10]}; "
        f"torch {versions['torch']}, jax {versions['jax']}, float32"
    )
    body.append(text(12, height - 12, setting, font_size="11", fill="#52525b"))
    start = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="Helvetica, Arial, sans-serif" '
        f'font-size="13" fill="#18181b">'
    )
    return "\n".join([start, *body, "</svg>\n"])


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--report", type=Path, default=REPORT)
    parser.add_argument("--out", type=Path, default=PICTURE)
    options = parser.parse_args()
    options.out.write_text(draw(json.loads(options.report.read_text())))
    print(options.out)


if __name__ == "__main__":
    main()
