"""The layers of the middle: which module imports which layer, for the folders that it is moving to.

    python -m tests.test_layers

prints the report. Folders that do not exist yet are checked from their first file on.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import frozen

from tests import syntax
from tests.raised import ROOT
from tests.test_floors import Import, imports, module_of, modules, room

LAYERS = (
    "errors diagnostics ast values",
    "ir",
    "graph serial",
    "target",
    "analysis",
    "schedule",
    "checks dialects transforms",
    "planner runtime library",
    "fusion",
    "passes",
    "program cli tuning viz reporting",
)
"""Low to high. A module imports lower layers and, in its own, folders that stand before its own."""
PLACES = {folder: (k, j) for k, line in enumerate(LAYERS) for j, folder in enumerate(line.split())}
NEW = ("ir", "target", "analysis", "schedule", "transforms", "planner", "fusion")
"""Folders whose modules are checked. `test_floors` checks the others until they move."""
UNFINISHED: dict[str, tuple[str, ...]] = {}
"""Modules of those folders that still import folders without a layer, or of a higher one."""
BY_NAME = ("passkit", "passkit.passes.base", "passkit.graph.op")
"""Modules that import others when a name is looked up."""
WARM_START = ("passkit.program.executable", "passkit.analysis.group")
"""Modules that import planners and analyses when called: a start from the plan cache needs none."""
OPTIONAL = ("cuda", "pycuda", "pyopencl", "highspy", "pulp", "IPython", "ml_dtypes", "scipy")
"""Packages that a function may import where they are needed."""


@frozen
class DeferredImport:
    """An import inside of a function."""

    target: str
    line: int


def deferred(path: Path) -> Iterator[DeferredImport]:
    """Yield the imports inside of functions of a file."""
    tree = ast.parse(path.read_text())
    functions = (n for n in syntax.statements(tree) if isinstance(n, syntax.FUNCTIONS))
    statements = {
        DeferredImport(name, node.lineno)
        for function in functions
        for node in syntax.statements(function)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in (
            [a.name for a in node.names] if isinstance(node, ast.Import) else [str(node.module)]
        )
    }
    yield from sorted(statements, key=lambda i: i.line)


def place(module: str) -> tuple[int, int] | None:
    """Return the layer of a module, and the position of its folder there; None if it has none."""
    return PLACES.get(room(module))


def wrong_imports(module: str, path: Path) -> list[str]:
    """Return what a module imports that it should not, at its top or inside of functions."""
    own = place(module)
    assert own is not None, f"{module} has no layer"
    problems = []
    for i in imports(path):
        other = place(i.target)
        if room(i.target) == room(module) or room(i.target) in UNFINISHED.get(module, ()):
            continue
        if i.target == "passkit":
            problems.append(f"{module}:{i.line} imports the package root")
        elif other is None:
            problems.append(f"{module}:{i.line} imports {i.target}, which has no layer")
        elif other >= own:
            problems.append(
                f"{module}:{i.line} imports {i.target} of layer {other[0]}, from layer {own[0]}"
            )
    if module in (*BY_NAME, *WARM_START):
        return problems
    return problems + [
        f"{module}:{i.line} imports {i.target} inside of a function"
        for i in deferred(path)
        if i.target.split(".")[0] not in OPTIONAL
    ]


def of_new_folders() -> dict[str, Path]:
    """Return the modules of the new folders by name."""
    return {m: p for m, p in modules().items() if room(m) in NEW}


def report() -> list[str]:
    """Return a line for each module of the new folders: the layers that it imports."""
    lines = []
    for module, path in sorted(of_new_folders().items()):
        rooms = {room(i.target) for i in imports(path)} - {room(module)}
        named = sorted(rooms, key=lambda r: PLACES.get(r, (99, 0)))
        shown = (f"{r} ({PLACES[r][0]})" if r in PLACES else f"{r} (no layer)" for r in named)
        lines.append(f"{module} ({PLACES[room(module)][0]}): {', '.join(shown) or 'nothing'}")
    return lines


def test_modules_of_the_new_folders_import_lower_layers() -> None:
    """A module imports lower layers, and folders that stand before its own; none when called."""
    problems = [x for m, p in of_new_folders().items() for x in wrong_imports(m, p)]

    assert problems == []


def test_unfinished_modules_need_their_exceptions() -> None:
    """An exception goes with the import that it is for."""
    paths = modules()
    stale = {
        f"{module} does not import {folder}"
        for module, folders in UNFINISHED.items()
        for folder in folders
        if module not in paths or folder not in {room(i.target) for i in imports(paths[module])}
    }

    assert stale == set()


def test_every_module_of_the_new_folders_is_reported() -> None:
    """The report has a line for each of their modules, whose layer is known."""
    names = [line.partition(" (")[0] for line in report()]

    assert names == sorted(of_new_folders()) and set(NEW) <= set(PLACES)


@pytest.mark.parametrize("folder", NEW)
def test_a_wrong_import_is_found(folder: str, tmp_path: Path) -> None:
    """The check sees planted imports: upward, of the root, of no layer, when called."""
    file = tmp_path / "planted.py"
    file.write_text(
        "from passkit.program.compiler import compile\n"
        "from passkit import cli\n"
        "import passkit\n"
        "import passkit.ops.movement\n"
        "from passkit.values import dtype\n"
        "def f():\n    import json\n    import pulp\n    from passkit.values import size\n"
    )
    module, layer = f"passkit.{folder}.planted", PLACES[folder][0]

    assert wrong_imports(module, file) == [
        f"{module}:1 imports passkit.program.compiler of layer 10, from layer {layer}",
        f"{module}:2 imports passkit.cli of layer 10, from layer {layer}",
        f"{module}:3 imports the package root",
        f"{module}:4 imports passkit.ops.movement, which has no layer",
        f"{module}:7 imports json inside of a function",
        f"{module}:9 imports passkit.values inside of a function",
    ]
    assert Import("passkit.values.size", 9, False) in set(imports(file))
    assert module_of(ROOT / "passkit" / folder / "planted.py") == module


def test_order_inside_a_layer() -> None:
    """Folders of one layer import those that are listed before them."""
    checks, dialects, transforms = (PLACES[f] for f in ("checks", "dialects", "transforms"))

    assert checks < dialects < transforms < PLACES["planner"] < PLACES["fusion"]


if __name__ == "__main__":
    print("\n".join(report()) or "none of the new folders exists yet")


DECISIONS = (
    "analysis",
    "ast.choice",
    "ast.index",
    "ir.strides",
    "planner",
    "transforms",
)
"""Modules and folders by which a printer would decide something, not spell it."""


def deciding_imports() -> list[str]:
    """Return what printers import by which they would decide something."""
    names = tuple(f"passkit.{name}." for name in DECISIONS)
    return [
        f"{module}:{i.line} imports {i.target}"
        for module, path in modules().items()
        if room(module) == "dialects"
        for i in imports(path)
        if f"{i.target}.".startswith(names)
    ]


def test_printers_decide_nothing() -> None:
    """Printers import no analysis, and no pass: they are given what the passes have decided."""
    assert deciding_imports() == []


def test_an_import_that_decides_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check sees an analysis and a pass in a printer."""
    file = tmp_path / "planted.py"
    file.write_text("from passkit.ast.index import normal\nimport passkit.transforms.columns\n")
    monkeypatch.setattr("tests.test_layers.modules", lambda: {"passkit.dialects.planted": file})

    assert deciding_imports() == [
        "passkit.dialects.planted:1 imports passkit.ast.index",
        "passkit.dialects.planted:2 imports passkit.transforms.columns",
    ]
