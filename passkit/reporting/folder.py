"""The folder of a report: the page, the picture of the plan, the kernels and the figures."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from passkit.reporting.page import page

if TYPE_CHECKING:
    from passkit.program.executable import Executable
    from passkit.runtime.profile import ExecutionProfile

DRAWING = 20.0
"""Seconds after which a plan is laid out simply."""


def write_report(
    folder: str | Path,
    run: Executable,
    profile: ExecutionProfile | None = None,
    about: Mapping[str, object] | None = None,
    drawing: float = DRAWING,
) -> Path:
    """Write ``report.html``, ``kernels.cpp`` and ``report.json`` into a folder; the page's path.

    ``about`` are facts of the model, as ``passkit run --json`` tells them: they are what
    ``report.json`` holds. A plan takes at most ``drawing`` seconds to lay out.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernels.cpp").write_text(run.source + "\n", encoding="utf-8")
    text = page(run, profile, about or {}, drawing)
    (folder / "report.json").write_text(json.dumps(about or {}, indent=2) + "\n", encoding="utf-8")
    (folder / "report.html").write_text(text, encoding="utf-8")
    return folder / "report.html"
