"""Samples for a blind reading: what a stranger sees of random functions, errors and reasons.

    python benchmarks/reading.py functions --count 60 --seed 1     # signatures with docstrings
    python benchmarks/reading.py errors --count 10 --seed 1        # messages of raise statements
    python benchmarks/reading.py reasons --count 10 --seed 1       # texts of `pk.explain`
    python benchmarks/reading.py functions --seed 1 --code         # the same functions, with bodies

A reader says of each function what it does, takes, returns and raises, without the code. Somebody
else compares the answers with the code, by experiment, and gives two marks. An answer is ``right``
if nothing that it says is false for arguments of the types that the signature and the docstring
name, and if it misses neither the main effect nor an exception that the function itself raises. It
is ``never_misled`` if a caller who relies on it cannot be surprised either by what it leaves out:
exceptions of the functions that are called, and odd values that the types allow.
`results/language-reading.json` holds the last reading, which `show.py language` counts.
"""

from __future__ import annotations

import argparse
import ast
import random
import sys
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from tests import language  # noqa: E402  (after the path)

SOURCES = ("passkit", "ops", "frontends")
Function = ast.FunctionDef | ast.AsyncFunctionDef


def source_files() -> list[Path]:
    """Return the source files."""
    root = language.ROOT
    return [path for path in language.python_files() if path.relative_to(root).parts[0] in SOURCES]


def functions() -> Iterator[tuple[str, Function]]:
    """Yield file and line of every documented function, and the function."""
    for path in source_files():
        name = path.relative_to(language.ROOT).as_posix()
        for node in ast.walk(ast.parse(path.read_text())):
            is_function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            if is_function and ast.get_docstring(node):
                yield f"{name}:{node.lineno}", node


def signature(node: Function) -> str:
    """Return a function as a reader sees it: decorators, signature and docstring."""
    decorators = "".join(f"@{ast.unparse(d)}\n" for d in node.decorator_list)
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    docstring = ast.get_docstring(node, clean=True)
    return f'{decorators}def {node.name}({ast.unparse(node.args)}){returns}:\n    """{docstring}"""'


def errors() -> Iterator[tuple[str, str]]:
    """Yield file and line of every raise statement, and the exception with its placeholders."""
    for path in source_files():
        name = path.relative_to(language.ROOT).as_posix()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
                text = ast.unparse(node.exc)
                if len(text) > 40:
                    yield f"{name}:{node.lineno}", text


def reasons() -> Iterator[tuple[str, str]]:
    """Yield a label and one line of `explain` for each rule that keeps operators apart.

    The graphs are of the corpus; the label has the rule, the graph and the strategy.
    """
    import corpus_graphs

    import passkit as pk

    shown = set()
    random_graphs = islice(corpus_graphs.random_graphs(pk), 40)
    for case in chain(corpus_graphs.programs(pk), random_graphs):
        for strategy in ("stitch", "nnvm", "xla", "deep"):
            for decision in pk.explain(case.graph, fusion=strategy).apart:
                if decision.code not in shown:
                    shown.add(decision.code)
                    yield f"{decision.code} {case.name} {strategy}", str(decision)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("subject", choices=("functions", "errors", "reasons"))
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--code", action="store_true", help="with the bodies, for who compares")
    options = parser.parse_args(arguments)
    chance = random.Random(options.seed)
    if options.subject == "functions":
        everything = list(functions())
        for k, (place, node) in enumerate(chance.sample(everything, options.count), 1):
            text = ast.unparse(node) if options.code else signature(node)
            print(f"--- {k}{f' {place}' if options.code else ''}\n{text}\n")
        return 0
    texts = list(errors() if options.subject == "errors" else reasons())
    for k, (place, text) in enumerate(chance.sample(texts, min(options.count, len(texts))), 1):
        print(f"--- {k}{f' {place}' if options.code else ''}\n{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
