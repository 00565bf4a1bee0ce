"""Guides and the tour: blocks of code run, and print what stands below them; links lead somewhere.

A page's blocks share a namespace and a folder. ``python needs=NAME`` runs where NAME is installed;
what ``text varies`` shows differs from run to run. A line of ``...`` in what is shown stands for
any lines.
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
from difflib import SequenceMatcher
from pathlib import Path

import pytest
from attrs import frozen

ROOT = Path(__file__).resolve().parents[1]
GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))
TOUR = ("architecture", "planning", "lowering", "runtime")
PAGES = [*GUIDES, *(ROOT / "docs" / f"{name}.md" for name in TOUR)]
OMISSION = re.compile(r"^ *\.\.\.$", re.MULTILINE)
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


def is_abridged(shown: str, text: str) -> bool:
    """Return whether ``shown`` is ``text`` without some lines, for which lines of ``...`` stand.

    A text that has such lines itself, and is shown in full, is no abridgement.
    """
    kept = OMISSION.split(shown)
    pattern = r"(?:[^\n]*\n)*?[^\n]*".join(re.escape(k) for k in kept)
    return len(kept) > 1 and re.fullmatch(pattern, text) is not None


def abridged(shown: str, text: str) -> str:
    """Return a text without the lines that ``shown``, an abridgement of an earlier one, leaves out.

    Where it is not clear which these are, the whole text is returned.
    """
    if is_abridged(shown, text) or OMISSION.search(shown) is None:
        return shown if is_abridged(shown, text) else text
    old, new = shown.splitlines(keepends=True), text.splitlines(keepends=True)
    lines: list[str] = []
    for _, i, j, first, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        omitted = [k for k in range(i, j) if OMISSION.match(old[k])]
        if not omitted:
            lines += new[first:end]
            continue
        before, behind = omitted[0] - i, j - 1 - omitted[-1]
        lines += [*new[first : first + before], "...\n", *new[max(first, end - behind) : end]]
    result = "".join(lines)
    return result if is_abridged(result, text) else text


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
            text = out + "\n" if out else ""
            changes.append((after, abridged(after.text, text)))
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
        assert {p.name for p in GUIDES} - {"index.md"} <= set(links(path))


def test_an_abridged_text_has_all_other_lines() -> None:
    """Lines of dots stand for whole lines, at any place; what else differs is found."""
    text = "a\nb\nc\nd\n"

    assert is_abridged("a\n...\nd\n", text) and is_abridged("...\nc\n  ...\n", text)
    assert is_abridged("a\nb\n...\nc\nd\n", "a\nb\n\nc\nd\n")
    assert not is_abridged("a\n...\nx\n", text) and not is_abridged("a\n...\nc\n", text)
    assert not is_abridged("b\n...\nd\n", text) and not is_abridged("a\n...\nb\n", text)
    assert not is_abridged(text, text)


def test_an_abridgement_follows_its_text() -> None:
    """Lines that `...` stands for in the old text are left out of the new text, too."""
    shown = "name 1\na\n...\ny\nend\n"
    text = "name 2\na\nb\nc\nx\ny\nend\n"

    assert abridged(shown, text) == "name 2\na\n...\ny\nend\n"
    assert abridged("a\n...\nc\n", "x\ny\nz\nc\n") == "x\n...\nc\n"
    assert abridged("a\nb\n", "a\nc\n") == "a\nc\n"
    assert abridged("...\n", "") == ""
