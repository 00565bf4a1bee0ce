"""The documentation as a static site: ``python -m docs.site OUT``.

Every Markdown page of docs/ and the README become HTML, with one list of all pages; files that they
link to are copied. Nothing is fetched, when it is built or when it is read.
"""

from __future__ import annotations

import html
import re
import shutil
import sys
from collections.abc import Iterator
from os.path import relpath
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

ROOT = Path(__file__).resolve().parents[1]
SECTIONS = {"": "passkit", "docs/guides": "Guides", "docs": "Reference"}
"""The parts of the list of pages: a folder and its title."""

FORMAT = HtmlFormatter(nowrap=True)
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} - passkit</title>
<link rel="stylesheet" href="{style}">
</head>
<body>
<nav aria-label="Pages">
{nav}
</nav>
<main>
{body}
</main>
</body>
</html>
"""
STYLE = """
:root { color-scheme: light dark; --line: #8884; }
body { margin: 0; display: grid; grid-template-columns: 15rem minmax(0, 52rem); gap: 2rem;
  font: 16px/1.55 system-ui, sans-serif; }
nav { padding: 1.5rem 1rem; border-right: 1px solid var(--line); }
nav ul { list-style: none; padding: 0; }
nav [aria-current] { font-weight: bold; }
main { padding: 1rem 1rem 4rem; }
pre { padding: .8rem; overflow-x: auto; border: 1px solid var(--line); border-radius: 6px;
  font-size: 14px; line-height: 1.4; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { border: 1px solid var(--line); padding: .3rem .6rem; text-align: left;
  vertical-align: top; }
img { max-width: 100%; }
@media (max-width: 60rem) { body { display: block; } nav { border: 0; } }
"""


def pages() -> list[Path]:
    """The Markdown files of the site, the README first, below the root."""
    found = sorted((ROOT / "docs").rglob("*.md"), key=lambda p: (p.stem != "index", p))
    return [Path("README.md"), *(p.relative_to(ROOT) for p in found)]


def address(page: Path) -> Path:
    """Where a page lies in the site."""
    return Path("index.html") if page == Path("README.md") else page.with_suffix(".html")


def title(page: Path) -> str:
    """The first heading of a page."""
    found = re.search(r"^# (.+)$", (ROOT / page).read_text(), re.MULTILINE)
    return found[1] if found else page.stem


def _coloured(code: str, language: str, _attrs: str) -> str:
    try:
        lexer = get_lexer_by_name(language)
    except ClassNotFound:
        return html.escape(code)
    return str(highlight(code, lexer, FORMAT))


def _anchor(text: str) -> str:
    """What a heading is called in links."""
    return re.sub(r"[^\w-]+", "-", text.lower()).strip("-")


class Site:
    """A site on its way to a folder."""

    def __init__(self, out: Path) -> None:
        self.out, self.pages = out, pages()
        options = {"highlight": _coloured, "html": False}
        self.markdown = MarkdownIt("commonmark", options).enable("table")

    def build(self) -> int:
        """Write all pages; how many there are."""
        for page in self.pages:
            tokens = self.markdown.parse((ROOT / page).read_text())
            self.prepare(page, tokens)
            body = self.markdown.renderer.render(tokens, self.markdown.options, {})
            self.write(page, body)
        colours = FORMAT.get_style_defs("pre code")
        (self.out / "style.css").write_text(STYLE + str(colours))
        return len(self.pages)

    def write(self, page: Path, body: str) -> None:
        """One page with the list of all."""
        at = self.out / address(page)
        at.parent.mkdir(parents=True, exist_ok=True)
        nav = "\n".join(self.listed(page))
        style = relpath("style.css", address(page).parent)
        name = html.escape(title(page))
        at.write_text(PAGE.format(title=name, style=style, nav=nav, body=body))

    def listed(self, current: Path) -> Iterator[str]:
        """The list of pages as a page shows it."""
        for folder, name in SECTIONS.items():
            yield f"<h2>{name}</h2>\n<ul>"
            for page in self.pages:
                if page.parent == Path(folder):
                    href = relpath(address(page), address(current).parent)
                    mark = ' aria-current="page"' if page == current else ""
                    yield f'<li><a href="{href}"{mark}>{html.escape(title(page))}</a></li>'
            yield "</ul>"

    def prepare(self, page: Path, tokens: list[Any]) -> None:
        """Give headings their anchors and links their addresses; copy the files they lead to."""
        for k, token in enumerate(tokens):
            if token.type == "heading_open":
                token.attrSet("id", _anchor(tokens[k + 1].content))
            for child in token.children or ():
                for key in ("href", "src"):
                    target = child.attrGet(key)
                    if target is not None:
                        child.attrSet(key, self.moved(page, str(target)))

    def moved(self, page: Path, target: str) -> str:
        """Where a link of a page leads in the site. Raises: SystemExit where it leads nowhere."""
        name, mark, anchor = target.partition("#")
        if "://" in name or not name:
            return target
        file = (ROOT / page.parent / name).resolve()
        if not file.is_relative_to(ROOT) or not file.exists():
            raise SystemExit(f"{page} links to {target}, and there is no such file")
        inside = file.relative_to(ROOT)
        if inside in self.pages:
            to = address(inside)
        else:
            to = inside
            (self.out / to).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, self.out / to)
        return relpath(to, address(page).parent) + mark + anchor


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python -m docs.site OUT")
    count = Site(Path(sys.argv[1])).build()
    print(f"{count} pages in {sys.argv[1]}")
