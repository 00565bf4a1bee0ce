"""Sphinx configuration of the documentation: ``python -m sphinx -W docs OUT`` builds the site.

Its pages are the Markdown files of this folder, the README, the changelog and the benchmarks'
README. `docs/reference_pages.py` generates pages of the Python API and of every operator, from
docstrings and the registry, when the site is built.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path[:0] = [str(ROOT), str(DOCS)]  # a checkout that is not installed

import reference_pages  # noqa: E402  (after the path)

project = "passkit"
author = "the passkit developers"
copyright = "the passkit developers, Apache-2.0"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["_build", "Thumbs.db"]
html_theme = "furo"
html_title = "passkit"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_show_sphinx = False
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
copybutton_prompt_text = "$ "
suppress_warnings = ["misc.highlighting_failure"]  # `sh` blocks of guides that show placeholders
autodoc_member_order = "bysource"
autodoc_typehints = "signature"

OUTSIDE = {
    "index": ROOT / "README.md",
    "changelog": ROOT / "CHANGELOG.md",
    "benchmarks": ROOT / "benchmarks" / "README.md",
}
"""Pages whose text is a file outside this folder: page name to file."""


def link_target(file: Path, target: str) -> str:
    """Return a link of a file outside docs/ as it is written in a page of docs/.

    Args:
        file: The file that has the link.
        target: The link, an address or a path relative to the file's folder.
    """
    path, mark, anchor = target.partition("#")
    if "://" in path or not path:
        return target
    linked = (file.parent / path).resolve()
    for page, outside in OUTSIDE.items():
        if linked == outside:
            return f"{page}.md{mark}{anchor}"
    if linked.is_relative_to(DOCS):
        return f"{linked.relative_to(DOCS)}{mark}{anchor}"
    return f"../{linked.relative_to(ROOT)}{mark}{anchor}"


def read_source(app: Any, page: str, source: list[str]) -> None:
    """Put the file of a page of `OUTSIDE` before the page's own text (Sphinx's ``source-read``)."""
    file = OUTSIDE.get(page)
    if file is None:
        return
    text = re.sub(
        r"\]\(([^)\s]+)\)",
        lambda link: f"]({link_target(file, link[1])})",
        file.read_text(encoding="utf-8"),
    )
    source[0] = text + "\n" + source[0]


def write_reference(app: Any) -> None:
    """Generate the pages of the API and of the operators (Sphinx's ``builder-inited``)."""
    reference_pages.write(DOCS / "reference")


def setup(app: Any) -> None:
    """Connect the functions above; Sphinx calls this."""
    app.connect("builder-inited", write_reference)
    app.connect("source-read", read_source)
