"""The page of a report: one file with everything in it, that asks no network for anything."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from passkit.reporting.embedded import embedded
from passkit.reporting.facts import facts
from passkit.values.units import bytes_text, seconds_text
from passkit.viz.plan import plan
from passkit.viz.scene import printable

if TYPE_CHECKING:
    from passkit.program.executable import Executable
    from passkit.runtime.profile import ExecutionProfile
    from passkit.viz.scene import Picture

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
<noscript><p class="note">This page needs its own JavaScript to show kernels; nothing is loaded from
elsewhere. kernels.cpp beside it has their text.</p></noscript>
<main>
<section class="plan" aria-label="Plan">
<div class="bar"><h2>Plan</h2>
<button type="button" id="smaller" aria-label="smaller">−</button>
<button type="button" id="larger" aria-label="larger">+</button>
<button type="button" id="fit">fit</button>
<span class="hint">{hint}</span></div>
<div class="canvas" id="canvas" tabindex="0" aria-label="picture of the plan">{svg}</div>
</section>
<div class="side">
<section class="steps" aria-label="Steps">
<div class="bar"><h2>Steps</h2>
<input type="search" id="search" placeholder="filter by name or operator" aria-label="filter">
<label>order <select id="order"><option value="seconds">by time</option>\
<option value="kernel">kernels together</option>\
<option value="id">as they run</option><option value="bytes">by bytes</option></select></label>
<button type="button" id="all" hidden>show all</button></div>
<div class="scroll"><table id="steps"><thead><tr><th>step</th><th>kind</th><th class="number">time\
</th><th class="number">share</th><th class="number">bytes</th><th class="number">of copy</th>\
</tr></thead><tbody></tbody></table></div>
</section>
<section class="detail" id="detail" aria-label="Details" aria-live="polite" tabindex="-1">
<p class="hint">Choose a box of the plan, or a step.</p>
</section>
</div>
</main>
<script type="application/json" id="data">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def page(
    run: Executable,
    profile: ExecutionProfile | None,
    about: Mapping[str, Any],
    drawing: float = 20.0,
) -> str:
    """The report of an executable as HTML. A plan takes at most ``drawing`` seconds to lay out."""
    told = facts(run, profile, run.sizes)
    picture = plan(run.graph, profile=profile, sizes=run.sizes)
    boxes = _boxes(picture, told)
    labels = {key: _called(told, ids) for key, ids in boxes.items()}
    svg, why = embedded(picture, labels, drawing)
    style = (HERE / "page.css").read_text(encoding="utf-8")
    script = (HERE / "page.js").read_text(encoding="utf-8")
    data = {
        "steps": told,
        "boxes": boxes,
        "sources": {k.key: k.source for k in run.kernels},
        "copy": _copy(profile),
    }
    title = escape(f"{_line(about.get('model', 'a graph'))}: what passkit made of it")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    figures = "".join(
        f"<li><b>{escape(_line(value))}</b> {escape(what)}</li>"
        for value, what in _figures(about, told)
    )
    hint = f"laid out simply: {why}" if why else "darker takes more of the time"
    if profile is None:
        hint = "no times: nothing was measured"
    head = HEAD.format(digest=f"sha256-{digest}", title=title, style=style)
    return head + BODY.format(
        title=title, figures=figures, hint=escape(_line(hint)), svg=svg, data=in_script(data),
        script=script,
    )  # fmt: skip


def in_script(data: object) -> str:
    r"""JSON that stays inside its element, whatever its texts are.

    >>> in_script({"name": "</script><b>&"})
    '{"name": "\\u003c/script\\u003e\\u003cb\\u003e\\u0026"}'
    """
    text = json.dumps(data)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _boxes(picture: Picture, told: list[dict[str, Any]]) -> dict[str, list[int]]:
    """The steps that a box or a group's frame of the picture stands for."""
    ids = {f["name"]: f["id"] for f in told}
    found: dict[str, list[int]] = {}
    for box in picture.scene.boxes.values():
        steps = [ids[m] for m in box.members if m in ids]
        if steps:
            found[box.key] = steps
            frame = box.frame
            while frame is not None and frame.startswith("g"):
                found[frame] = steps
                frame = picture.scene.frames[frame].parent
    return found


def _called(told: list[dict[str, Any]], ids: list[int]) -> str:
    names = [f["name"] for f in told if f["id"] in set(ids)]
    return names[0] if len(names) == 1 else f"{len(names)} steps: {names[0]} … {names[-1]}"


def _copy(profile: ExecutionProfile | None) -> dict[str, float] | None:
    if profile is None or not any(r.copying for r in profile.rows):
        return None
    from passkit.program.copying import (
        copy_speed,  # measured before, or there would be no such rows
    )

    return {"bandwidth": copy_speed().bandwidth}


def _figures(about: Mapping[str, Any], told: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """The figures at the top: what fusion changed, and how exact and how fast it all is."""
    found: list[tuple[str, str]] = []
    before, after = about.get("unfused"), about.get("fused")
    if about.get("operators"):
        found.append((str(about["operators"]), "operators"))
    if before and after:
        found.append((f"{before['kernels']} → {after['kernels']}", "kernels, fused"))
        found.append((str(after["library_calls"]), "library calls"))
        moved = f"{bytes_text(before['bytes'])} → {bytes_text(after['bytes'])}"
        found.append((moved, "moved by a run"))
        times = f"{seconds_text(before['seconds'])} → {seconds_text(after['seconds'])}"
        found.append((times, "a run"))
    else:
        found.append((str(len(told)), "steps"))
    if about.get("accuracy") is not None:
        found.append((f"{about['accuracy']:.2%}", "accuracy"))
    if about.get("inputs"):
        inputs = ", ".join(f"{k}: {v}" for k, v in about["inputs"].items())
        found.append((inputs if len(inputs) < 120 else f"{inputs[:117]}…", ""))
    return found


def _line(text: object) -> str:
    return printable(" ".join(str(text).split()))
