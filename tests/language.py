"""Counts of how the source reads: vague names, duplicate classes, packed literals, retired words.

    python -m tests.language                      # a table of counts per folder
    python -m tests.language passkit/graph ops    # each finding in these folders, by file and line

`benchmarks/show.py language` compares the table with an earlier one, and `test_vocabulary.py` keeps
the finished folders free of what is counted here.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

from attrs import frozen

from tests import syntax
from tests.vocabulary import RETIRED

ROOT = Path(__file__).resolve().parents[1]
NEW_LAYERS = (
    "analysis",
    "checks",
    "dialects",
    "ir",
    "planner",
    "schedule",
    "target",
    "transforms",
)
"""Layers of the middle, whose tests have a row of their own, as they may import what they test."""
NEW_LAYERS_ROW = "tests: new layers of the middle"

VAGUE_NAMES = frozenset({"found", "made", "known", "wanted"})
"""Variable names that do not say what they hold."""

PUBLIC_MODULES = (
    r"passkit",
    r"passkit\.__main__",
    r"passkit\.(ast|errors|ops|viz|frontends)",
    r"passkit\.frontends\.(tf_graphdef|tinyflow)",
    r"passkit\.frontends\.tinyflow\.(contrib|nn|summary|train)",
    r"passkit\.schedule\.actions",
)
"""Modules that a test may import: users import them, too."""

LISTS_OF_WORDS = ("tests/vocabulary.py", "tests/test_vocabulary.py")
"""Files that name retired words in order to reject them."""

CLASS_OR_ALIAS = re.compile(r"class (\w+)|(_?[A-Z][a-z]\w*)(?:: TypeAlias)? = \w[\w.]*( \||\[)")
"""A top-level class, or a type alias such as ``Place = tuple[Node, int]``."""

KINDS = {
    "what": 'docstrings that begin with "What"',
    "vague": "variables called found, made, known or wanted",
    "duplicate": "class or alias names that are defined more than once",
    "starred": "starred literals",
    "skip": "`fmt: skip` comments",
    "deferred": "deferred imports",
    "retired": "retired words",
    "internal": "tests that import internal modules",
}
"""The kinds of findings, which head the table's columns, with their meaning."""


@frozen
class Finding:
    """One occurrence of a kind in a file."""

    kind: str
    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.kind}: {self.text}"


@cache
def python_files() -> tuple[Path, ...]:
    """All Python files of the project that are not generated."""
    folders = ("passkit", "ops", "frontends", "benchmarks", "examples", "tests")
    files = (p for folder in folders for p in sorted((ROOT / folder).rglob("*.py")))
    return tuple(p for p in files if "__pycache__" not in p.parts and "results" not in p.parts)


def folder_of(path: str) -> str:
    """The row of the table for a file: a top folder, or a folder directly under ``passkit/``.

    Tests of layers of the middle are a row of their own.
    """
    parts = path.split("/")
    if parts[0] == "tests" and parts[1] in NEW_LAYERS:
        return NEW_LAYERS_ROW
    if parts[0] in ("passkit", "frontends") and len(parts) > 2:
        return "/".join(parts[:2])
    return parts[0]


@cache
def findings(path: Path) -> tuple[Finding, ...]:
    """All findings of one file, except duplicate class names; a file is read once in a process."""
    source = path.read_text()
    name = path.relative_to(ROOT).as_posix()
    tree = ast.parse(source)
    nodes, statements = syntax.nodes(tree), syntax.statements(tree)
    return (
        *_docstrings_with_what(statements, name),
        *_vague_variables(nodes, name),
        *_starred_literals(nodes, name),
        *_format_skips(source, name),
        *_deferred_imports(statements, name),
        *_lazy_imports(nodes, name),
        *retired_words(path),
        *_internal_imports(statements, name),
    )


@cache
def retired_words(path: Path) -> tuple[Finding, ...]:
    """The retired words of one file, whose syntax is not parsed."""
    return tuple(_retired_words(path.read_text(), path.relative_to(ROOT).as_posix()))


def duplicate_classes(paths: Iterable[Path]) -> list[Finding]:
    """A finding for each definition of a class or alias whose name other modules define, too."""
    definitions: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for path in paths:
        name = path.relative_to(ROOT).as_posix()
        if name.startswith("tests/"):
            continue
        for k, line in enumerate(path.read_text().splitlines(), 1):
            definition = CLASS_OR_ALIAS.match(line)
            if definition:
                definitions[definition[1] or definition[2]].append((name, k))
    return [
        Finding("duplicate", name, line, f"{defined}, also in {_others(places, name)}")
        for defined, places in definitions.items()
        if len({name for name, _ in places}) > 1
        for name, line in places
    ]


def _others(places: list[tuple[str, int]], name: str) -> str:
    return ", ".join(sorted({other for other, _ in places if other != name}))


def _docstrings_with_what(statements: Iterable[ast.AST], name: str) -> Iterator[Finding]:
    for node in statements:
        for text in _strings_alone(node):
            value = str(text.value)
            if re.match(r"What\b", value):
                yield Finding("what", name, text.lineno, value.splitlines()[0])


def _strings_alone(node: ast.AST) -> Iterator[ast.Constant]:
    """Docstrings, and strings that document the assignment before them."""
    body = getattr(node, "body", None)
    for statement in body if isinstance(body, list) else []:
        value = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield value


def _vague_variables(nodes: Iterable[ast.AST], name: str) -> Iterator[Finding]:
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            identifier = node.id
        elif isinstance(node, ast.arg):
            identifier = node.arg
        else:
            continue
        if identifier.lstrip("_") in VAGUE_NAMES:
            yield Finding("vague", name, node.lineno, identifier)


def _starred_literals(nodes: Iterable[ast.AST], name: str) -> Iterator[Finding]:
    displays = (ast.Tuple, ast.List, ast.Set, ast.Dict)
    for node in nodes:
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            spread = [e.value for e in node.elts if isinstance(e, ast.Starred)]
        elif isinstance(node, ast.Dict):
            spread = [v for k, v in zip(node.keys, node.values, strict=True) if k is None]
        else:
            continue
        for value in spread:
            if isinstance(value, displays):
                yield Finding("starred", name, value.lineno, ast.unparse(value)[:60])


def _format_skips(source: str, name: str) -> Iterator[Finding]:
    for k, line in enumerate(source.splitlines(), 1):
        if re.search(r"#\s*fmt:\s*(skip|off)", line):
            yield Finding("skip", name, k, line.strip()[:60])


def _deferred_imports(statements: Iterable[ast.AST], name: str) -> Iterator[Finding]:
    if name.startswith("tests/"):
        return
    for function in statements:
        if isinstance(function, syntax.FUNCTIONS):
            for node in _own_statements(function):
                if isinstance(node, (ast.Import, ast.ImportFrom)):
                    yield Finding("deferred", name, node.lineno, ast.unparse(node)[:60])


def _lazy_imports(nodes: Iterable[ast.AST], name: str) -> Iterator[Finding]:
    if name.startswith("tests/"):
        return
    for call in nodes:
        if (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Name)
            and call.func.id == "Lazy"
        ):
            yield Finding("deferred", name, call.lineno, ast.unparse(call)[:60])


def _own_statements(function: ast.AST) -> Iterator[ast.AST]:
    """All statements inside a function, without those of functions inside it."""
    for child in syntax.children(function):
        if not isinstance(child, syntax.FUNCTIONS):
            yield child
            yield from _own_statements(child)


def _retired_words(source: str, name: str) -> Iterator[Finding]:
    if name in LISTS_OF_WORDS:
        return
    for pattern, instead in RETIRED.items():
        if not _without_boundaries(pattern).search(source):
            continue
        for match in re.finditer(pattern, source):
            line = source.count("\n", 0, match.start()) + 1
            yield Finding("retired", name, line, f"{match[0]!r}; write {instead}")


@cache
def _without_boundaries(pattern: str) -> re.Pattern[str]:
    """The pattern without the conditions that words begin or end: searched in a sixth of the time.

    It matches wherever the pattern does, and at more places.
    """
    return re.compile(pattern.replace(r"\b", ""))


def _internal_imports(statements: Iterable[ast.AST], name: str) -> Iterator[Finding]:
    if not re.search(r"/test_\w+\.py$", f"/{name}") or not name.startswith("tests/"):
        return
    for node in statements:
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            modules = [
                f"{node.module}.{alias.name}" if node.module == "passkit" else str(node.module)
                for alias in node.names
            ]
        else:
            continue
        for module in dict.fromkeys(modules):
            is_public = any(re.fullmatch(pattern, module) for pattern in PUBLIC_MODULES)
            is_name_of_root = re.fullmatch(r"passkit\.[A-Z]\w*|passkit\.[a-z]\w*", module)
            if module.split(".")[0] != "passkit" or is_public:
                continue
            if is_name_of_root and not (ROOT / module.replace(".", "/")).exists():
                continue
            yield Finding("internal", name, node.lineno, module)


def all_findings(is_chosen: Callable[[str], bool] = lambda name: True) -> list[Finding]:
    """The findings of all files, or of those whose names are chosen."""
    paths = python_files()
    chosen = [path for path in paths if is_chosen(path.relative_to(ROOT).as_posix())]
    duplicates = [f for f in duplicate_classes(paths) if is_chosen(f.path)]
    return [f for path in chosen for f in findings(path)] + duplicates


def counts() -> dict[str, dict[str, int]]:
    """The number of findings for each folder and kind.

    Kind ``internal`` counts files, ``duplicate`` distinct names within the folder.
    """
    table: dict[str, Counter[str]] = defaultdict(Counter)
    seen: set[tuple[str, str]] = set()
    for finding in all_findings():
        row = folder_of(finding.path)
        if finding.kind == "internal":
            key = (finding.kind, finding.path)
        elif finding.kind == "duplicate":
            key = (finding.kind, row + finding.text.split(",")[0])
        else:
            key = (finding.kind, f"{finding.path}:{finding.line}:{finding.text}")
        if finding.kind in ("internal", "duplicate") and key in seen:
            continue
        seen.add(key)
        table[row][finding.kind] += 1
    return {row: dict(kinds) for row, kinds in sorted(table.items())}


def duplicate_names() -> set[str]:
    """The names of classes and aliases outside the middle that other modules define, too."""
    return {finding.text.split(",")[0] for finding in duplicate_classes(python_files())}


def as_text(table: dict[str, dict[str, int]]) -> str:
    """The table with a line for each folder, and their sum."""
    total: Counter[str] = Counter()
    for kinds in table.values():
        total.update(kinds)
    rows = {**table, "sum": dict(total)}
    head = f"{'folder':24}" + "".join(f"{kind:>11}" for kind in KINDS)
    lines = [
        f"{row:24}" + "".join(f"{kinds.get(kind, 0):>11}" for kind in KINDS)
        for row, kinds in rows.items()
    ]
    return "\n".join([head, *lines])


def main(folders: list[str]) -> int:
    """Print the table, or the findings of some folders or files."""
    if not folders:
        print(as_text(counts()))
        return 0
    under = tuple(f"{folder.rstrip('/')}/" for folder in folders)
    chosen = all_findings(lambda name: f"{name}/".startswith(under))
    print("\n".join(map(str, chosen)) or "nothing found")
    return 1 if chosen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
