"""Faults of docstrings that a program can find: exceptions and parameters that they do not name.

    python -m tests.docstrings                # the faults of all folders, but those of the middle
    python -m tests.docstrings passkit/graph  # those of some folders or files

`test_docstring_raises.py` keeps the sources free of them.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from passkit import errors
from tests import language, syntax
from tests.raised import source_files
from tests.test_floors import module_of

Function = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = (*FUNCTIONS, ast.Lambda, ast.ClassDef)
SHARED_ENTRY = "others"
"""The entry that `passkit.frontends.tinyflow.docstrings` replaces by those of a table."""


def checked_files() -> list[Path]:
    """The source files."""
    return source_files()


def faults(path: Path, root: Path = language.ROOT) -> Iterator[str]:
    """The faults of the docstrings of a file, as lines of text."""
    statements = syntax.statements(ast.parse(path.read_text()))
    methods = {
        id(f)
        for c in statements
        if isinstance(c, ast.ClassDef)
        for f in c.body
        if isinstance(f, FUNCTIONS) and "staticmethod" not in map(ast.unparse, f.decorator_list)
    }
    for function in statements:
        text = isinstance(function, FUNCTIONS) and ast.get_docstring(function)
        if not text:
            continue
        assert isinstance(function, FUNCTIONS)
        place = f"{path.relative_to(root).as_posix()}:{function.lineno}: {function.name}"
        for name in unnamed_errors(function, text):
            yield f"{place} raises {name}, which its docstring does not name"
        parameters = parameters_of(function)[id(function) in methods :]
        entries = entries_of(text)
        if entries is not None and SHARED_ENTRY in {*entries} - {*parameters}:
            module = importlib.import_module(module_of(path))
            entries = entries_of(inspect.getdoc(getattr(module, function.name)) or "")
        if entries is None:
            continue
        # Keywords that a function passes on are documented under their own names.
        keywords = function.args.kwarg.arg if function.args.kwarg else None
        missing = [p for p in parameters if p not in entries and p != keywords]
        others = [e for e in entries if e not in parameters and keywords is None]
        if missing:
            yield f"{place} has no entry for {', '.join(missing)} among its arguments"
        if others:
            yield f"{place} has no parameter {', '.join(others)}, but an entry for it"
        if len(set(entries)) < len(entries):
            yield f"{place} has two entries for one parameter"


def unnamed_errors(function: Function, text: str) -> Iterator[str]:
    """The classes that a function itself raises and its docstring names neither nor a base of."""
    for name in dict.fromkeys(raised_by(function.body, frozenset())):
        if not any(re.search(rf"\b{base}s?\b", text) for base in bases_of(name)):
            yield name


def raised_by(statements: list[ast.stmt], caught: frozenset[str]) -> Iterator[str]:
    """The classes of ``raise Name(...)`` among statements, not caught by ``try`` around them."""
    for statement in statements:
        if isinstance(statement, SCOPES):
            continue
        if isinstance(statement, ast.Raise) and isinstance(statement.exc, ast.Call):
            name = ast.unparse(statement.exc.func).split(".")[-1]
            if re.fullmatch(r"[A-Z]\w*", name) and not caught & {*bases_of(name), "Exception"}:
                yield name
        for field, value in ast.iter_fields(statement):
            if not isinstance(value, list):
                continue
            inside = [s for s in value if isinstance(s, ast.stmt)]
            for part in value:
                if isinstance(part, (ast.ExceptHandler, ast.match_case)):
                    inside += part.body
            is_tried = isinstance(statement, ast.Try) and field == "body"
            more = handled(statement) if is_tried else frozenset()
            yield from raised_by(inside, caught | more)


def handled(statement: ast.Try) -> frozenset[str]:
    """The names of the classes that the handlers of a ``try`` catch."""
    names: set[str] = set()
    for handler in statement.handlers:
        kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        names |= {ast.unparse(k).split(".")[-1] if k else "Exception" for k in kinds}
    return frozenset(names)


@cache
def bases_of(name: str) -> frozenset[str]:
    """The names of an exception class and its bases, as far as they tell something."""
    error = getattr(errors, name, None) or getattr(builtins, name, None)
    if isinstance(error, type):
        return frozenset(b.__name__ for b in error.__mro__[:-1]) - {"Exception", "BaseException"}
    bases = local_errors().get(name, ())
    return frozenset({name}).union(*(bases_of(b) for b in bases))


@cache
def local_errors() -> dict[str, tuple[str, ...]]:
    """The exception classes of single modules, with the names of their bases."""
    return {
        c.name: tuple(ast.unparse(b).split(".")[-1] for b in c.bases)
        for path in source_files()
        for c in syntax.statements(ast.parse(path.read_text()))
        if isinstance(c, ast.ClassDef) and c.name.endswith("Error")
    }


def parameters_of(function: Function) -> list[str]:
    """The names of all parameters of a function, in order."""
    a = function.args
    named = [*a.posonlyargs, *a.args, a.vararg, *a.kwonlyargs, a.kwarg]
    return [p.arg for p in named if p is not None]


def entries_of(text: str) -> list[str] | None:
    """The names that the section ``Args:`` of a docstring explains, or None without the section."""
    section = re.search(r"^Args:\n((?:[ ]+.*\n|\n)*)", f"{text}\n", re.MULTILINE)
    if section is None:
        return None
    lines = section[1].splitlines()
    indent = re.match(" *", lines[0])
    assert indent is not None
    entry = re.compile(rf"{indent[0]}(\**\w+(?:, \**\w+)*)(?: \([^)]*\))?:")
    matches = [m for line in lines if (m := entry.match(line))]
    return [name for m in matches for name in re.findall(r"\w+", m[1])]


def main(folders: list[str]) -> int:
    """Print the faults of some folders or files, by default of all; 1 if there are some."""
    under = tuple(f"{folder.rstrip('/')}/" for folder in folders) or ("",)
    root = language.ROOT
    chosen = [p for p in checked_files() if f"{p.relative_to(root).as_posix()}/".startswith(under)]
    lines = [line for path in chosen for line in faults(path)]
    print("\n".join(lines) or "nothing found")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
