"""What notebooks show: graphs as pictures, executables and kernels with their texts, tables.

Every view has plain text too, for terminals and for notebooks that show nothing else.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from passkit.reporting.highlight import HTML, highlighted
from passkit.values.units import bytes_text, seconds_text
from passkit.viz.plan import plan
from passkit.viz.renderers import rendered
from passkit.viz.sizes import size_text

if TYPE_CHECKING:
    from passkit.graph.graph import Graph
    from passkit.plan.kernel import Kernel
    from passkit.program.executable import Executable
    from passkit.reasons.explanation import Explanation
    from passkit.reasons.ranking import Ranking
    from passkit.runtime.profile import ExecutionProfile
    from passkit.viz.scene import Picture

Bundle = dict[str, str]
"""Texts by MIME type."""
DRAWING = 5.0
"""Seconds after which a picture is laid out simply: a notebook should not hang on one."""
PAPER = "color: #1c1c1c; background: #f8f8f8; padding: 8px; overflow: auto"
"""The style of source code: the colours of its syntax are for light paper, whatever the theme."""
ROWS = 200
"""Rows of a table beyond which only their number is told."""


def graph(shown: Graph) -> Bundle:
    """A graph as the picture of its plan."""
    return {"text/plain": repr(shown), "image/svg+xml": drawn(plan(shown))}


def picture(shown: Picture) -> Bundle:
    """A drawing; a notebook needs no renderer for it."""
    return {"text/plain": repr(shown), "image/svg+xml": drawn(shown)}


def drawn(shown: Picture) -> str:
    """A drawing as SVG, laid out simply where nothing else does it in time."""
    with tempfile.TemporaryDirectory(prefix="passkit-") as folder:
        path, _ = rendered(shown, Path(folder, "plan.svg"), DRAWING)
        return path.read_text(encoding="utf-8")


def kernel(shown: Kernel) -> Bundle:
    """A kernel as its text, with the operators that are in it."""
    return {"text/plain": str(shown), "text/html": _kernel(shown)}


def _kernel(shown: Kernel) -> str:
    operators = escape(", ".join(shown.ops))
    source = highlighted(shown.source, "c++", HTML)
    return (
        f"<details open><summary><code>{escape(shown.name)}</code>: {operators}</summary>"
        f'<pre style="{PAPER}">{source}</pre></details>'
    )


def executable(shown: Executable) -> Bundle:
    """An executable: what it takes and gives, its steps, and each of its kernels to unfold."""
    stats = shown.stats
    facts = [
        ("takes", ", ".join(f"{s.name}: {_type(s.dtype, s.shape)}" for s in shown.inputs)),
        ("gives", ", ".join(f"{s.name}: {_type(s.dtype, s.shape)}" for s in shown.outputs)),
        ("runs", f"{stats['kernels']} kernels, {stats['library_calls']} library calls"),
    ]
    if stats["bytes_read"]:
        moved, unfused = stats["bytes_read"] + stats["bytes_written"], stats["bytes_unfused"]
        facts.append(("moves", f"{bytes_text(moved)}; {bytes_text(unfused)} unfused"))
    texts = {k.key: k for k in shown.kernels}.values()
    folded = "".join(_kernel(k).replace("<details open>", "<details>") for k in texts)
    return {"text/plain": repr(shown), "text/html": _table((), facts) + folded}


def _type(dtype: object, shape: Iterable[object]) -> str:
    return f"{dtype}[{', '.join(map(str, shape))}]"


def explanation(shown: Explanation) -> Bundle:
    """Decisions as a table, those that keep edges apart first."""
    rows = [
        (
            d.producer,
            d.consumer,
            "yes" if d.fused else "no",
            d.reason,
            ", ".join(f"{k}={v}" for k, v in d.data.items()),
            d.way_out,
        )
        for d in sorted(shown, key=lambda d: d.fused)
    ]
    header = ("producer", "consumer", "fused", "reason", "data", "way out")
    return {"text/plain": str(shown), "text/html": _table(header, rows)}


def profile(shown: ExecutionProfile) -> Bundle:
    """Times as a table, a line for each kernel, most time first."""
    total = shown.seconds or 1.0
    rows = [
        (
            x.what,
            str(x.calls),
            seconds_text(x.seconds),
            f"{100 * x.seconds / total:.1f} %",
            bytes_text(x.nbytes),
            "" if x.of_copy is None else f"{100 * x.of_copy:.0f} %",
        )
        for x in shown.lines
    ]
    header = ("kernel", "calls", "time", "share", "bytes", "of copy")
    return {"text/plain": str(shown), "text/html": _table(header, rows)}


def ranking(shown: Ranking) -> Bundle:
    """The groups of a plan as a table: the template of each, its cost, and its runners-up."""
    from passkit.reasons.ranking import MAX_ALTERNATIVES  # loaded where a ranking exists

    rows = []
    for group in shown:
        others = group.others[:MAX_ALTERNATIVES]
        rows.append(
            (
                group.name,
                ", ".join(group.operators),
                group.template,
                group.composition,
                size_text(group.tiles),
                bytes_text(group.nbytes) if group.nbytes else "",
                seconds_text(group.seconds) if group.seconds else "",
                group.why,
                "\n".join(
                    f"{seconds_text(v.seconds)}: {v.template}" if v.seconds else str(v.template)
                    for v in others
                ),
            )
        )
    header = (
        "group",
        "operators",
        "template",
        "composition",
        "tiles",
        "bytes",
        "time by the model",
        "why this template",
        "runners-up",
    )
    return {"text/plain": str(shown), "text/html": _table(header, rows)}


def listing(
    text: str, header: Sequence[str], rows: Sequence[Sequence[str]], notes: Iterable[str]
) -> Bundle:
    """A table with remarks below it; ``text`` says the same where nothing shows HTML."""
    below = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return {"text/plain": text, "text/html": _table(header, rows) + below}


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(h)}</th>" for h in header)
    body = "".join(
        f"<tr>{''.join(f'<td>{_lines(cell)}</td>' for cell in row)}</tr>" for row in rows[:ROWS]
    )
    rest = f"<p>and {len(rows) - ROWS} rows more</p>" if len(rows) > ROWS else ""
    return f"<table>{f'<tr>{head}</tr>' if header else ''}{body}</table>{rest}"


def _lines(cell: str) -> str:
    return escape(cell).replace("\n", "<br>")
