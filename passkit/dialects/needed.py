"""Of a preamble in C what kernels call: less to compile, and nothing that a device lacks."""

from __future__ import annotations

import re
from functools import cache

HEADS = ("static inline ", "PK_SCALAR ", "PK_TABLE ")
"""How a definition begins, at the left margin; it ends with the next line there that closes it."""
NAME = re.compile(r"(\w+)\s*[(\[]")
WORD = re.compile(r"\w+")


def needed(preamble: str, source: str) -> str:
    r"""The definitions that a text calls, and those that these call, in the preamble's order.

    >>> print(needed("static inline int f() { return 1; }\nstatic inline int g() {\n}\n", "g()"))
    static inline int g() {
    }
    """
    always, known = definitions(preamble)
    wanted: set[str] = set()
    todo = set(WORD.findall(source)) & known.keys()
    while todo:
        name = todo.pop()
        wanted.add(name)
        todo |= set(WORD.findall(known[name])) & known.keys() - wanted
    return "\n".join([*always, *(text for name, text in known.items() if name in wanted)])


@cache
def definitions(preamble: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """The macros of a preamble, and each of its functions and tables by name."""
    always: list[str] = []
    known: dict[str, str] = {}
    lines: list[str] = []
    skipping = False
    for line in preamble.splitlines():
        skipping = line.startswith("#ifdef ") or (skipping and line != "#endif")
        if skipping:
            continue  # what is for another language
        if line.startswith("#define ") and len(line.split()) > 2:
            always.append(line)
        if not lines and not line.startswith(HEADS):
            continue
        lines.append(line)
        if line.rstrip().endswith(("}", ";")) and not line.startswith(" "):
            found = NAME.search(lines[0])
            assert found is not None
            known[found.group(1)] = "\n".join(lines)
            lines = []
    return tuple(always), known
