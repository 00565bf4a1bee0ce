"""The static site: it builds without a network, and every link in it leads somewhere."""

from __future__ import annotations

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from docs.site import Site, pages

ROOT = Path(__file__).resolve().parents[1]


class Page(HTMLParser):
    """What a page links to, and the anchors it has."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note links, pictures, styles and anchors."""
        for key, value in attrs:
            if key in ("href", "src") and value:
                self.targets.append(value)
            elif key == "id" and value:
                self.anchors.add(value)


def test_every_link_leads_somewhere(tmp_path: Path) -> None:
    """To a page, a file or a heading in the site; nothing is fetched from elsewhere."""
    command = [sys.executable, "-m", "docs.site", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    found = {path: Page(path) for path in tmp_path.rglob("*.html")}

    assert done.stdout.startswith(f"{len(pages())} pages")
    assert len(found) == len(pages())
    for path, page in found.items():
        for target in page.targets:
            name, _, anchor = target.partition("#")
            if "://" in name:
                continue
            file = (path.parent / unquote(name)).resolve() if name else path
            assert file.exists(), f"{path.name}: {target}"
            assert not anchor or anchor in found[file].anchors, f"{path.name}: {target}"


def test_every_page_names_every_other(tmp_path: Path) -> None:
    """The list on the left is whole, and marks where one is."""
    Site(tmp_path).build()
    text = (tmp_path / "docs" / "guides" / "first-steps.html").read_text()

    assert text.count("<li><a href") >= len(pages())
    assert '<a href="first-steps.html" aria-current="page">First steps</a>' in text


def test_a_link_to_nowhere_is_an_error(tmp_path: Path) -> None:
    """The page and the link are named."""
    with pytest.raises(SystemExit, match=r"README.md links to no/such.md"):
        Site(tmp_path).moved(Path("README.md"), "no/such.md")
