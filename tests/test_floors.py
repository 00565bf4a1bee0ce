"""The house has floors: a file imports only from its own or from lower ones."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from attrs import frozen

from tests import syntax
from tests.raised import ROOT, source_files

FLOORS = {
    "values": "errors diagnostics values ast ir",
    "graph": "graph serial",
    "plan": "target analysis schedule checks dialects transforms planner",
    "parts": "runtime library viz reasons ops",
    "passes": "fusion passes program reporting streams",
    "faces": "tuning cli frontends xp __main__",
}
"""Low to high. A folder stands for all its files."""

LEVEL = {room: k for k, rooms in enumerate(FLOORS.values()) for room in rooms.split()}


@frozen
class Import:
    """One import: what, where, and when it happens."""

    target: str
    line: int
    at_import: bool
    """False inside a function and under TYPE_CHECKING: it cannot make a cycle, but still points."""


def module_of(path: Path) -> str:
    """The name a file is imported by; ops/ and frontends/ are parts of passkit."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts if parts[0] == "passkit" else ("passkit", *parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules() -> dict[str, Path]:
    """All modules by name."""
    return {module_of(p): p for p in source_files()}


def room(module: str) -> str:
    """The file or folder directly under passkit that a module is in."""
    return module.split(".")[1] if "." in module else ""


@cache
def imports(path: Path) -> tuple[Import, ...]:
    """Every import of passkit in a file: at the top, in functions, under TYPE_CHECKING.

    A file is parsed once in a process.
    """

    def walk(node: ast.AST, at_import: bool) -> Iterator[Import]:
        for child in syntax.children(node):
            if isinstance(child, ast.Import):
                names = [a.name for a in child.names]
            elif isinstance(child, ast.ImportFrom):
                full = [f"{child.module}.{a.name}" for a in child.names]
                names = [n if n in modules() else str(child.module) for n in full]
            else:
                names = []
            for name in names:
                if name.split(".")[0] == "passkit":
                    yield Import(name, child.lineno, at_import)
            lazy = isinstance(child, syntax.FUNCTIONS) or (
                isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
            )
            yield from walk(child, at_import and not lazy)

    return tuple(walk(ast.parse(path.read_text()), True))


def upward(module: str, path: Path) -> list[str]:
    """The imports of a file that point to a higher floor, or to the root that stands above all."""
    problems = []
    for i in imports(path):
        if i.target == "passkit":
            problems.append(
                f"{module}:{i.line} imports the package root; import the module it means"
            )
        elif LEVEL.get(room(i.target), -1) > LEVEL.get(room(module), -1):
            problems.append(f"{module}:{i.line} imports {i.target}, which is above it")
    return problems


@pytest.mark.parametrize("module", [m for m in modules() if m != "passkit"])
def test_imports_point_down(module: str) -> None:
    """A module imports only from its own floor or a lower one, in functions too."""
    assert upward(module, modules()[module]) == []


def test_every_module_has_a_floor() -> None:
    """A new file must be given its place before anything can import it."""
    assert {room(m) for m in modules()} - {""} <= set(LEVEL)


def test_ops_and_frontends_stand_beside_the_core() -> None:
    """Below the faces nothing but a test imports an operator: the core stands without them."""
    named = {
        f"{module}:{i.line} imports {i.target}"
        for module, path in modules().items()
        if room(module) not in ("", "ops", *FLOORS["faces"].split())
        for i in imports(path)
        if room(i.target) in ("ops", "frontends")
    }

    assert named == set()


def test_imports_have_no_cycle() -> None:
    """No two modules need each other while they are imported."""
    needs = {
        module: {i.target for i in imports(path) if i.at_import and i.target in modules()}
        for module, path in modules().items()
    }
    while free := [m for m, below in needs.items() if not below - {m}]:
        needs = {m: below - {*free} for m, below in needs.items() if m not in free}

    assert needs == {}


def test_an_upward_import_is_found(tmp_path: Path) -> None:
    """The check sees a planted import, at the top, in a function and under TYPE_CHECKING."""
    file = tmp_path / "size.py"
    file.write_text(
        "from passkit import graph\nimport passkit\n"
        "def f():\n    from passkit.program.compiler import compile\n"
        "if TYPE_CHECKING:\n    from passkit.graph.node import Node\n"
    )

    assert upward("passkit.values.size", file) == [
        "passkit.values.size:1 imports passkit.graph, which is above it",
        "passkit.values.size:2 imports the package root; import the module it means",
        "passkit.values.size:4 imports passkit.program.compiler, which is above it",
        "passkit.values.size:6 imports passkit.graph.node, which is above it",
    ]


def test_no_public_name_hides_behind_a_module() -> None:
    """`passkit.x` is what it is said to be, whichever module happens to be imported first."""
    import passkit

    files = {m.split(".")[1] for m in modules() if m.count(".") == 1}
    public = {n for n in passkit.__all__ if n in files}

    assert {n for n in public if not hasattr(getattr(passkit, n), "__file__")} == set()
