"""The site has every page and every link of the documentation; `.ci/run` builds it."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

import passkit as pk

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
GENERATED = DOCS / "reference"


@pytest.fixture(name="conf", scope="module")
def _conf() -> ModuleType:
    """The configuration that Sphinx reads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DOCS))
        spec = importlib.util.spec_from_file_location("docs_conf", DOCS / "conf.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


def written_pages() -> list[Path]:
    """Return the Markdown files of docs/, without generated ones."""
    return [p for p in DOCS.rglob("*.md") if GENERATED not in p.parents and "_build" not in p.parts]


def test_the_contents_list_every_page() -> None:
    """Each Markdown file is in the table of contents, once."""
    contents = (DOCS / "index.md").read_text()
    listed = re.findall(r"^[a-z][\w/-]+$", contents, re.MULTILINE)
    names = {str(p.relative_to(DOCS).with_suffix("")) for p in written_pages()} - {"index"}

    assert len(listed) == len(set(listed))
    assert names == {name for name in listed if not name.startswith("reference/")}


@pytest.mark.parametrize(
    "file, target, expected",
    [
        ("README.md", "docs/guides/index.md", "guides/index.md"),
        ("README.md", "benchmarks/README.md", "benchmarks.md"),
        ("README.md", "examples/04_gradients.py", "../examples/04_gradients.py"),
        ("README.md", "https://numpy.org", "https://numpy.org"),
        ("README.md", "#install", "#install"),
        ("benchmarks/README.md", "../README.md#install", "index.md#install"),
        ("benchmarks/README.md", "show.py", "../benchmarks/show.py"),
    ],
)
def test_links_of_files_outside(conf: ModuleType, file: str, target: str, expected: str) -> None:
    """A link to a page leads to the page; any other file is linked where it lies."""
    assert conf.link_target(ROOT / file, target) == expected


def test_links_lead_somewhere(conf: ModuleType) -> None:
    """Every relative link of a page names a file."""
    for path in [*written_pages(), *conf.OUTSIDE.values()]:
        prose = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
        for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", re.sub(r"`[^`]*`", "", prose)):
            there = "://" in link or (path.parent / link).exists()
            assert there, f"{path.relative_to(ROOT)}: {link}"


def test_reference_pages_have_every_operator_and_public_name(
    conf: ModuleType, tmp_path: Path
) -> None:
    """The generated pages name each public name and each operator; writing again changes none."""
    conf.reference_pages.write(tmp_path)
    times = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*.md")}
    conf.reference_pages.write(tmp_path)
    api = (tmp_path / "api.md").read_text()

    assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*.md")} == times
    for name in set(pk.__all__) - {"ast", "frontends", "ops", "viz", "xp"}:
        assert f":: passkit.{name}\n" in api, name
    modules: dict[str, list[str]] = {}
    for name in pk.list_ops():
        file = Path(pk.get_op(name).place.rpartition(":")[0])
        if file.parent == Path(pk.ops.__file__).parent:
            modules.setdefault(file.stem, []).append(name)
    for module, operators in modules.items():
        page = (tmp_path / "operators" / f"{module}.md").read_text()
        assert operators == re.findall(r"^## (\w+)$", page, re.MULTILINE)
