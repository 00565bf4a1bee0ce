"""Finished folders keep to the project's language: no vague names, packed literals, retired words.

`tests/language.py` counts, `tests/vocabulary.py` lists the retired words, and
`docs/contributing.md` says how to write instead.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import language
from tests.vocabulary import FINISHED

CHECKED = ("what", "vague", "starred", "skip", "retired")


def files_of(folder: str) -> list[Path]:
    """The Python files of a finished folder that are checked."""
    root = language.ROOT
    return [
        path
        for path in language.python_files()
        if f"{path.relative_to(root).as_posix()}/".startswith(f"{folder}/")
    ]


@pytest.mark.parametrize("folder", FINISHED)
def test_finished_folders_use_the_vocabulary(folder: str) -> None:
    """A finished folder has none of the findings that are checked."""
    findings = [f for path in files_of(folder) for f in language.findings(path)]

    assert files_of(folder)
    assert [str(f) for f in findings if f.kind in CHECKED] == []


def test_no_file_has_retired_words() -> None:
    """Retired words are gone from all Python files, those of the middle included."""
    findings = [f for path in language.python_files() for f in language.retired_words(path)]

    assert [str(f) for f in findings] == []


def test_the_checks_find_each_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file with one fault of each kind has one finding of each."""
    path = tmp_path / "passkit" / "graph" / "example.py"
    path.parent.mkdir(parents=True)
    path.write_text(
        '"""What it is."""\n'
        "found = 1\n"
        'NAMES = (*("a", "b"), "c")\n'
        "TABLE = (1,\n  2)  # fmt"
        ": skip\n"
        "def function():\n    import json\n"
        "class Wholes:\n    pass\n"
    )
    monkeypatch.setattr(language, "ROOT", tmp_path)

    kinds = [f.kind for f in language.findings(path)]

    assert sorted(kinds) == ["deferred", "retired", "skip", "starred", "vague", "what"]


def test_internal_imports_of_tests_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Public modules may be imported by tests; modules below them are internal."""
    path = tmp_path / "tests" / "graph" / "test_example.py"
    path.parent.mkdir(parents=True)
    path.write_text(
        "import passkit as pk\n"
        "from passkit import errors, ops\n"
        "from passkit.frontends.tinyflow import nn\n"
        "from passkit.graph.node import constant\n"
    )
    monkeypatch.setattr(language, "ROOT", tmp_path)

    findings = [f for f in language.findings(path) if f.kind == "internal"]

    assert [f.text for f in findings] == ["passkit.graph.node"]
