"""Pages name only files, modules and names that there are, the layers as tests enforce them.

Their prose has no retired word.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import passkit as pk
from tests.raised import ROOT
from tests.test_floors import FLOORS, modules
from tests.test_layers import LAYERS
from tests.vocabulary import RETIRED

DOCS = ROOT / "docs"
TOUR = DOCS / "architecture.md"
PAGES = [ROOT / "README.md", *sorted(p for p in DOCS.rglob("*.md") if "reference" not in p.parts)]
DESIGN = [TOUR, *(DOCS / f"{name}.md" for name in ("planning", "lowering", "runtime"))]
"""Pages about the code itself, whose every name must be one of the code's."""
WRITTEN = [p for p in PAGES if p.stem not in ("operators", "tf_ops", "tf_save", "tinyflow")]
"""Pages that people write; the texts of the others stand in the sources."""
SUFFIXES = (".py", ".pyi", ".h", ".c", ".cpp")
BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"[\w./-]+(?:/|\.\w+)")
NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
OUTSIDE = frozenset(["kernels/", "libraries/", "plans/", "streams/", "tuned/", "encoder/layer_7/"])
"""Folders of the cache, and a scope of a model."""


ENTRY_POINTS = frozenset({"passkit.plugins"})
"""Names of groups of entry points, which are no modules."""


def spans(path: Path) -> Iterator[str]:
    """Yield what stands in backticks in the prose of a page."""
    yield from SPAN.findall(BLOCK.sub("", path.read_text(encoding="utf-8")))


@cache
def top_folders() -> frozenset[str]:
    """Return the names of the folders that paths begin with: those of the root and of passkit/."""
    folders = (p for base in (ROOT, ROOT / "passkit") for p in base.iterdir())
    return frozenset(p.name for p in folders if p.is_dir() and not p.name.startswith("."))


@cache
def files_and_folders() -> tuple[str, ...]:
    """Return the paths of all source files, and of their folders with a slash behind."""
    files = [
        p.relative_to(ROOT)
        for folder in ("passkit", "ops", "frontends", "tests", "benchmarks", "docs", "examples")
        for p in (ROOT / folder).rglob("*.*")
        if p.suffix in SUFFIXES
    ]
    folders = {folder for p in files for folder in p.parents if folder.parts}
    return (*(f"/{p}" for p in files), *(f"/{p}/" for p in sorted(folders)))


@cache
def words() -> frozenset[str]:
    """Return all words of the source files, and of the texts of the command line."""
    files = [*modules().values(), *(ROOT / "passkit").rglob("*.[hc]"), ROOT / "setup.cfg"]
    text = "\n".join(p.read_text(encoding="utf-8") for p in files)
    return frozenset(re.findall(r"\w+", text))


def is_path(text: str) -> bool:
    """Return whether a text is the path of a source file or folder of the project."""
    if PATH.fullmatch(text) is None or text.startswith(("/", ".")):
        return False
    return "/" in text and text.split("/")[0] in top_folders() and not text.endswith(".")


def exists(path: str) -> bool:
    """Return whether a path is one of the root, or of passkit/."""
    return (ROOT / path).exists() or (ROOT / "passkit" / path).exists()


def resolves(name: str) -> bool:
    """Return whether a dotted name, which begins with passkit, is a module or in one."""
    parts = name.split(".")
    for k in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:k]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[k:]:
            if not hasattr(value, attribute):
                return False
            value = getattr(value, attribute)
        return True
    return False


def retired_words(path: Path) -> list[str]:
    """Return the retired words in the prose of a page."""
    prose = BLOCK.sub("", path.read_text(encoding="utf-8"))
    return [m[0] for pattern in RETIRED for m in re.finditer(pattern, prose)]


def unknown_paths(path: Path) -> list[str]:
    """Return the paths and dotted names of a page that lead nowhere."""
    dotted = re.compile(r"passkit(?:\.\w+)+")
    return [
        s
        for s in spans(path)
        if (is_path(s) and not exists(s))
        or (dotted.fullmatch(s) and s not in ENTRY_POINTS and not resolves(s))
    ]


def unknown_names(path: Path) -> list[str]:
    """Return the files, folders and names of a page that the source files do not have."""
    unknown = []
    for span in spans(path):
        text = span.removeprefix("pk.").removesuffix("()")
        if PATH.fullmatch(text) and text.endswith((*SUFFIXES, "/")):
            if text not in OUTSIDE and not any(p.endswith(f"/{text}") for p in files_and_folders()):
                unknown.append(span)
        elif NAME.fullmatch(text) and not text.startswith("passkit."):
            parts = frozenset(text.split("."))
            has_public = not span.startswith("pk.") or hasattr(pk, text.split(".")[0])
            if not has_public or not parts <= words():
                unknown.append(span)
    return unknown


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_paths_lead_somewhere(path: Path) -> None:
    """Every path of a source file, and every dotted name of passkit, is there."""
    assert unknown_paths(path) == []


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.stem)
def test_prose_has_no_retired_word(path: Path) -> None:
    """`tests/vocabulary.py` lists the words and what to write instead."""
    assert retired_words(path) == []


def test_a_retired_word_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check reads prose, and not what code prints."""
    page = tmp_path / "page.md"
    page.write_text("The sprockets, a gear.\n```text\na sprocket\n```\n")
    monkeypatch.setattr("tests.test_page_names.RETIRED", {r"\bsprockets?\b": "gear"})

    assert retired_words(page) == ["sprockets"]


@pytest.mark.parametrize("path", DESIGN, ids=lambda path: path.stem)
def test_names_are_those_of_the_code(path: Path) -> None:
    """Every file and folder, from any folder on, and every name is one of the source files."""
    assert unknown_names(path) == []


def test_planted_names_are_found(tmp_path: Path) -> None:
    """The checks see a missing file, module and name, and let others pass."""
    page = tmp_path / "page.md"
    page.write_text(
        "`passkit/gone/` `fusion/gone.py` `fusion/select.py` `passkit.gone.x` `passkit.Graph`\n"
        "`passkit.graph.graph.gone` `gone.py` `select.py` `NoSuchName` `Graph` `pk.Graph`\n"
        "`Graph.no_such_name()` `pk.plan_group` `a b` `n + 1`\n```text\n`gone.py`\n```\n"
    )

    assert unknown_paths(page) == [
        "passkit/gone/",
        "fusion/gone.py",
        "passkit.gone.x",
        "passkit.graph.graph.gone",
    ]
    assert unknown_names(page) == [
        "passkit/gone/",
        "fusion/gone.py",
        "gone.py",
        "NoSuchName",
        "Graph.no_such_name()",
        "pk.plan_group",
    ]


def test_the_tour_has_the_layers_that_are_enforced() -> None:
    """The table of layers is that of test_floors, the list of the middle that of test_layers."""
    text = TOUR.read_text(encoding="utf-8")
    table = text[text.index("| layer | folders |") :].split("\n\n")[0].splitlines()[2:]
    rows = [set(SPAN.findall(line.split("|")[2])) for line in table]
    stems = [{s.strip("/").removesuffix(".py") for s in row} for row in rows]
    middle = text[text.index("<!-- layers of the middle -->") :]
    match = re.search(r"```text\n(.*?)\n```", middle, re.DOTALL)

    assert stems == [set(names.split()) for names in FLOORS.values()]
    assert match is not None and match[1].splitlines() == list(LAYERS)


def test_the_tour_has_every_attribute_of_operators() -> None:
    """The table lists what `passkit/graph/op.py` declares, each attribute once."""
    text = TOUR.read_text(encoding="utf-8")
    table = text[text.index("| attribute | content |") :].split("\n\n")[0].splitlines()[2:]
    listed = sorted(name for line in table for name in SPAN.findall(line.split("|")[1]))
    source = (ROOT / "passkit" / "graph" / "op.py").read_text(encoding="utf-8")

    assert listed == sorted(re.findall(r"^([FT]\w+) = declare\(", source, re.MULTILINE))
