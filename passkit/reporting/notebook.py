"""Notebook displays: graphs as pictures, executables and kernels with their sources, tables.

Each function returns the display of one class as texts by MIME type. Every display has plain text,
too, for terminals and for notebooks that show nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from passkit.reasons.ranking import MAX_ALTERNATIVES
from passkit.values.highlight import HTML, highlighted
from passkit.values.units import bytes_text, seconds_text
from passkit.viz.labels import size_text
from passkit.viz.plan import plan

if TYPE_CHECKING:
    from passkit.graph.graph import Graph
    from passkit.graph.kernel import Kernel
    from passkit.program.executable import Executable
    from passkit.reasons.explanation import Explanation
    from passkit.reasons.ranking import Ranking
    from passkit.runtime.profile import ExecutionProfile

MimeBundle = dict[str, str]
"""Texts by MIME type."""
SOURCE_STYLE = "color: #1c1c1c; background: #f8f8f8; padding: 8px; overflow: auto"
"""The style of source code. The colours of its syntax need a light background in any theme."""
MAX_ROWS = 200
"""The most rows of a table that are shown; of more only the number is."""


def graph(shown: Graph) -> MimeBundle:
    """Return the display of a graph: the picture of its plan, and its repr as plain text."""
    return {"text/plain": repr(shown), "image/svg+xml": plan(shown).svg()}


def kernel(shown: Kernel) -> MimeBundle:
    """Return the display of a kernel: its operators and its source."""
    return {"text/plain": str(shown), "text/html": _kernel_html(shown)}


def _kernel_html(shown: Kernel) -> str:
    """Return a kernel as an HTML element that can be folded, and is open."""
    operators = escape(", ".join(shown.ops))
    source = highlighted(shown.source, "c++", HTML)
    return (
        f"<details open><summary><code>{escape(shown.name)}</code>: {operators}</summary>"
        f'<pre style="{SOURCE_STYLE}">{source}</pre></details>'
    )


def executable(shown: Executable) -> MimeBundle:
    """Return the display of an executable: inputs, outputs, traffic, and its folded kernels.

    The traffic is left out where it is unknown, as before a call with symbolic sizes.
    """
    stats = shown.stats
    facts = [
        ("inputs", ", ".join(f"{s.name}: {_type(s.dtype, s.shape)}" for s in shown.inputs)),
        ("outputs", ", ".join(f"{s.name}: {_type(s.dtype, s.shape)}" for s in shown.outputs)),
        ("runs", f"{stats['kernels']} kernels, {stats['library_calls']} library calls"),
    ]
    if stats["bytes_read"]:
        moved, unfused = stats["bytes_read"] + stats["bytes_written"], stats["bytes_unfused"]
        facts.append(("moves", f"{bytes_text(moved)}; {bytes_text(unfused)} unfused"))
    kernels = {k.key: k for k in shown.kernels}.values()
    folded = "".join(_kernel_html(k).replace("<details open>", "<details>") for k in kernels)
    return {"text/plain": repr(shown), "text/html": _table((), facts) + folded}


def _type(dtype: object, shape: Iterable[object]) -> str:
    """Return a dtype and a shape, such as "float32[n, 8]"."""
    return f"{dtype}[{', '.join(map(str, shape))}]"


def explanation(shown: Explanation) -> MimeBundle:
    """Return the display of fusion decisions: a table, edges that are not fused first."""
    rows = [
        (
            d.producer,
            d.consumer,
            "yes" if d.fused else "no",
            d.reason,
            d.way_out,
        )
        for d in sorted(shown, key=lambda d: d.fused)
    ]
    header = ("producer", "consumer", "fused", "reason", "what to do")
    return {"text/plain": str(shown), "text/html": _table(header, rows)}


def profile(shown: ExecutionProfile) -> MimeBundle:
    """Return the display of a profile: a table with a row for each kernel, most time first."""
    total = shown.seconds or 1.0
    rows = [
        (
            x.label,
            str(x.calls),
            seconds_text(x.seconds),
            f"{100 * x.seconds / total:.1f} %",
            bytes_text(x.nbytes),
            "" if x.of_copy is None else f"{100 * x.of_copy:.0f} %",
        )
        for x in shown.lines
    ]
    header = ("kernel", "calls", "time", "share", "bytes", "of copy speed")
    return {"text/plain": str(shown), "text/html": _table(header, rows)}


def ranking(shown: Ranking) -> MimeBundle:
    """Return the display of ranked templates: a table with the best alternatives of each group."""
    rows = [
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
                for v in group.others[:MAX_ALTERNATIVES]
            ),
        )
        for group in shown
    ]
    header = (
        "group",
        "operators",
        "template",
        "composition",
        "tiles",
        "bytes",
        "modelled time",
        "why this template",
        "alternatives",
    )
    return {"text/plain": str(shown), "text/html": _table(header, rows)}


def listing(
    text: str, header: Sequence[str], rows: Sequence[Sequence[str]], notes: Iterable[str]
) -> MimeBundle:
    """Return the display of a table with notes below it.

    Args:
        text: The same content as plain text.
        header: The titles of the columns.
        rows: The cells of each row.
        notes: A paragraph each.
    """
    paragraphs = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return {"text/plain": text, "text/html": _table(header, rows) + paragraphs}


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return an HTML table of the first MAX_ROWS rows, and a paragraph with the number of others.

    There are no titles if ``header`` is empty, and no paragraph if there are no other rows.
    """
    head = "".join(f"<th>{escape(h)}</th>" for h in header)
    body = "".join(
        f"<tr>{''.join(f'<td>{_cell(cell)}</td>' for cell in row)}</tr>" for row in rows[:MAX_ROWS]
    )
    rest = f"<p>and {len(rows) - MAX_ROWS} more rows</p>" if len(rows) > MAX_ROWS else ""
    return f"<table>{f'<tr>{head}</tr>' if header else ''}{body}</table>{rest}"


def _cell(text: str) -> str:
    """Return the text of a cell as HTML, with its line ends."""
    return escape(text).replace("\n", "<br>")
