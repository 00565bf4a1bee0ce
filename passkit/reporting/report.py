"""The report of a compiled model: one self-contained page, which loads nothing from a network.

`write_report` writes the page into a folder, with the kernels and the figures as files.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from passkit.program.copying import copy_speed
from passkit.reporting.page_svg import svg_for_page
from passkit.reporting.step_facts import StepFacts, step_facts
from passkit.values.json_values import write_json
from passkit.values.units import bytes_text, seconds_text
from passkit.viz.picture import Picture
from passkit.viz.plan import plan
from passkit.viz.scene import printable

if TYPE_CHECKING:
    from passkit.program.executable import Executable
    from passkit.runtime.profile import ExecutionProfile

LAYOUT_SECONDS = 20.0
"""Seconds after which a plan is drawn in the simple layout."""
MAX_FIGURE = 120
"""The most letters of a figure at the top of the page."""
HERE = Path(__file__).resolve().parent
HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; \
script-src '{digest}'">
<title>{title}</title>
<style>
{style}</style>
</head>
"""
BODY = """<body>
<header>
<h1>{title}</h1>
<ul class="figures">{figures}</ul>
</header>
<noscript><p class="note">This page shows kernels with its own JavaScript; it loads nothing from
elsewhere. The kernels are also in kernels.cpp in the same folder.</p></noscript>
<main>
<section class="plan" aria-label="Plan">
<div class="bar"><h2>Plan</h2>
<button type="button" id="smaller" aria-label="smaller">−</button>
<button type="button" id="larger" aria-label="larger">+</button>
<button type="button" id="fit">fit to width</button>
<span class="hint">{hint}</span></div>
<div class="canvas" id="canvas" tabindex="0" aria-label="picture of the plan">{svg}</div>
</section>
<div class="side">
<section class="steps" aria-label="Steps">
<div class="bar"><h2>Steps</h2>
<input type="search" id="search" placeholder="filter by name or operator" aria-label="filter">
<label>order <select id="order"><option value="seconds">by time</option>\
<option value="kernel">grouped by kernel</option>\
<option value="id">of execution</option><option value="bytes">by bytes</option></select></label>
<button type="button" id="all" hidden>show all</button></div>
<div class="scroll"><table id="steps"><thead><tr><th>step</th><th>kind</th><th class="number">time\
</th><th class="number">share</th><th class="number">bytes</th>\
<th class="number" title="speed compared with a copy of as many bytes">of copy speed</th>\
</tr></thead><tbody></tbody></table></div>
</section>
<section class="detail" id="detail" aria-label="Details" aria-live="polite" tabindex="-1">
<p class="hint">Select a box of the plan or a step to see its details.</p>
</section>
</div>
</main>
<script type="application/json" id="data">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def write_report(
    folder: str | Path,
    run: Executable,
    profile: ExecutionProfile | None = None,
    about: Mapping[str, object] | None = None,
    layout_seconds: float = LAYOUT_SECONDS,
) -> Path:
    """Write ``report.html``, ``kernels.cpp`` and ``report.json`` into a folder.

    Args:
        folder: The folder, which is created if it does not exist.
        run: The executable.
        profile: The times of its steps; None leaves times out.
        about: Facts of the model and the run, as ``passkit run --json`` prints them; the content of
            ``report.json``. None for none.
        layout_seconds: Seconds that the layout of the plan may take.

    Returns: The path of the page.

    Raises: OSError where a file cannot be written; TypeError where ``about`` has a value that JSON
    cannot hold, after ``kernels.cpp`` was written; where ``profile`` has times of copies and this
    process cannot measure copies, CompilerError, CacheError if others may write to the cache
    folder, or SettingError if PASSKIT_THREADS is no number of threads.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernels.cpp").write_text(run.source + "\n", encoding="utf-8")
    html = report_page(run, profile, about or {}, layout_seconds)
    write_json(folder / "report.json", about or {})
    (folder / "report.html").write_text(html, encoding="utf-8")
    return folder / "report.html"


def report_page(
    run: Executable,
    profile: ExecutionProfile | None,
    about: Mapping[str, Any],
    layout_seconds: float = LAYOUT_SECONDS,
) -> str:
    """Return the report of an executable as HTML.

    Args:
        run: The executable.
        profile: The times of its steps; None leaves times out.
        about: Facts of the model and the run, for the title and the figures at the top.
        layout_seconds: Seconds that the layout of the plan may take.

    Raises: Where ``profile`` has times of copies and this process cannot measure copies,
    CompilerError, CacheError if others may write to the cache folder, or SettingError if
    PASSKIT_THREADS is no number of threads.
    """
    facts = step_facts(run, profile, run.sizes)
    picture = plan(run.graph, profile=profile, sizes=run.sizes)
    boxes = _steps_of_boxes(picture, facts)
    labels = {key: _steps_label(facts, ids) for key, ids in boxes.items()}
    svg, note = svg_for_page(picture, labels, layout_seconds)
    style = (HERE / "page.css").read_text(encoding="utf-8")
    script = (HERE / "page.js").read_text(encoding="utf-8")
    data = {
        "steps": facts,
        "boxes": boxes,
        "sources": {k.key: k.source for k in run.kernels},
        "copy": _copy_bandwidth(profile),
    }
    title = escape(f"passkit report: {_one_line(about.get('model', 'a graph'))}")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    figures = "".join(
        f"<li><b>{escape(_one_line(value))}</b> {escape(label)}</li>"
        for value, label in _figures(about, facts)
    )
    hint = f"laid out simply: {note}" if note else "darker boxes take more of the time"
    if profile is None:
        hint = "no times were measured"
    head = HEAD.format(digest=f"sha256-{digest}", title=title, style=style)
    return head + BODY.format(
        title=title,
        figures=figures,
        hint=escape(_one_line(hint)),
        svg=svg,
        data=in_script(data),
        script=script,
    )


def in_script(data: object) -> str:
    r"""Return data as JSON that cannot end its script element, whatever texts it has.

    Raises: TypeError for data that JSON cannot hold.

    >>> in_script({"name": "</script><b>&"})
    '{"name": "\\u003c/script\\u003e\\u003cb\\u003e\\u0026"}'
    """
    text = json.dumps(data)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _steps_of_boxes(picture: Picture, facts: list[StepFacts]) -> dict[str, list[int]]:
    """Return the ids of the steps that each box, or frame of a group, of a picture stands for.

    ``facts`` are those of the steps. The keys of the result are the keys of boxes and frames.
    """
    ids = {f["name"]: f["id"] for f in facts}
    steps_of_box: dict[str, list[int]] = {}
    for box in picture.scene.boxes.values():
        steps = [ids[m] for m in box.members if m in ids]
        if steps:
            steps_of_box[box.key] = steps
            frame = box.frame
            while frame is not None and frame.startswith("g"):
                steps_of_box[frame] = steps
                frame = picture.scene.frames[frame].parent
    return steps_of_box


def _steps_label(facts: list[StepFacts], ids: list[int]) -> str:
    """Return the name of the only step in ``ids``, or their number with the first and last name.

    ``facts`` are those of all steps, each with its "id" and "name".
    """
    names = [f["name"] for f in facts if f["id"] in set(ids)]
    return names[0] if len(names) == 1 else f"{len(names)} steps: {names[0]} … {names[-1]}"


def _copy_bandwidth(profile: ExecutionProfile | None) -> dict[str, float] | None:
    """Return the measured bandwidth of copies in bytes per second, under the key "bandwidth".

    None without a profile, or if no copy was measured for it. The first call in a process measures
    copies. Raises: CompilerError if there is no C++ compiler for that; CacheError or SettingError
    as `copy_speed`.
    """
    if profile is None or not any(r.copying for r in profile.rows):
        return None
    return {"bandwidth": copy_speed().bandwidth}


def _figures(about: Mapping[str, Any], facts: list[StepFacts]) -> list[tuple[str, str]]:
    """Return the figures at the top of the page as pairs of value and label.

    Args:
        about: The facts of `write_report`; those that are missing are left out. Without those of
            fused and unfused runs, there is the number of steps.
        facts: The facts of each step.
    """
    figures: list[tuple[str, str]] = []
    before, after = about.get("unfused"), about.get("fused")
    if about.get("operators"):
        figures.append((str(about["operators"]), "operators"))
    if before and after:
        figures.append((f"{before['kernels']} → {after['kernels']}", "kernels by fusion"))
        figures.append((str(after["library_calls"]), "library calls"))
        moved = f"{bytes_text(before['bytes'])} → {bytes_text(after['bytes'])}"
        figures.append((moved, "moved per run"))
        times = f"{seconds_text(before['seconds'])} → {seconds_text(after['seconds'])}"
        figures.append((times, "per run"))
    else:
        figures.append((str(len(facts)), "steps"))
    if about.get("accuracy") is not None:
        figures.append((f"{about['accuracy']:.2%}", "accuracy"))
    if about.get("inputs"):
        inputs = ", ".join(f"{k}: {v}" for k, v in about["inputs"].items())
        is_long = len(inputs) >= MAX_FIGURE
        figures.append((f"{inputs[: MAX_FIGURE - 3]}…" if is_long else inputs, ""))
    return figures


def _one_line(text: object) -> str:
    """Return a value as printable text on one line, with single spaces."""
    return printable(" ".join(str(text).split()))
