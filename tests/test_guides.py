"""The guides: every block of code runs, and prints what stands below it; links lead somewhere.

A page's blocks share a namespace and a folder. ``python needs=NAME`` runs where NAME is installed;
what ``text varies`` shows differs from run to run.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from attrs import frozen

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "docs" / "guides").glob("*.md"))
FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RUN = ("python", "sh")


@frozen
class Block:
    """A fenced block: its language, what is said of it, its text, and where that stands."""

    language: str
    note: str
    text: str
    start: int
    stop: int


def blocks(page: str) -> list[Block]:
    """The blocks of a page in their order."""
    return [Block(m[1], m[2].strip(), m[3], m.start(3), m.end(3)) for m in FENCE.finditer(page)]


def is_run(block: Block) -> bool:
    """Whether a block is code, and what it needs is there."""
    need = block.note.removeprefix("needs=") if block.note.startswith("needs=") else ""
    return block.language in RUN and (not need or importlib.util.find_spec(need) is not None)


def printed(block: Block, names: dict[str, object], where: str) -> str:
    """Run a block, and return the text that it prints."""
    if block.language == "sh":
        shim = (
            f'python() {{ "{sys.executable}" "$@"; }}\n'
            f'passkit() {{ "{sys.executable}" -m passkit "$@"; }}\n'
        )
        done = subprocess.run(
            ["bash", "-euc", shim + block.text],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100"},
        )
        return done.stdout
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(block.text, where, "exec"), names)
    return out.getvalue()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_code_prints_what_is_below_it(
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    golden: Callable[[Path, str], None],
    request: pytest.FixtureRequest,
) -> None:
    """Each block runs in order; the block after one that prints is what it printed."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    if path.stem == "tune-a-model":  # what it measures is not to change the plans of other tests
        monkeypatch.setenv("PASSKIT_CACHE_DIR", str(tmp_path / "cache"))
    page = path.read_text()
    page_blocks = blocks(page)
    names: dict[str, object] = {}
    changes: list[tuple[Block, str]] = []
    for k, block in enumerate(page_blocks):
        if not is_run(block):
            continue
        out = printed(block, names, str(path)).strip("\n")
        after = (
            page_blocks[k + 1]
            if k + 1 < len(page_blocks) and page_blocks[k + 1].language not in RUN
            else None
        )
        if after is None:
            assert not out, f"{path.name}: nothing below shows what is printed: {out}"
        elif after.note != "varies" or request.config.getoption("--update-golden"):
            changes.append((after, out + "\n" if out else ""))
        else:
            assert out
    for block, text in reversed(changes):
        page = page[: block.start] + text + page[block.stop :]

    golden(path, page)


def links(path: Path) -> Iterator[str]:
    """Where the links of a page lead, on this machine."""
    for target in re.findall(r"\]\(([^)#\s]+)", FENCE.sub("", path.read_text())):
        if "://" not in target:
            yield target


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_links_lead_somewhere(path: Path) -> None:
    """A page names only files that there are, and the index names every guide."""
    for target in links(path):
        assert (path.parent / target).exists(), target
    if path.stem == "index":
        assert {p.name for p in PAGES} - {"index.md"} <= set(links(path))
