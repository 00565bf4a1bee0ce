"""The definitions of a preamble in C that a kernel uses: less to compile, nothing unsupported."""

from __future__ import annotations

import re
from functools import cache

HEADS = ("static inline ", "PK_SCALAR ", "PK_TABLE ")
"""The beginnings of definitions at the left margin; the next line there that closes one ends it."""
NAME = re.compile(r"(\w+)\s*[(\[]")
WORD = re.compile(r"\w+")


def used_definitions(preamble: str, source: str) -> str:
    r"""Return the macros of a preamble, and the functions and tables that a text refers to.

    Those that they refer to themselves are included. All are in the order of the preamble.

    >>> text = "static inline int f() { return 1; }\nstatic inline int g() {\n}\n"
    >>> print(used_definitions(text, "g()"))
    static inline int g() {
    }
    """
    macros, texts = definitions(preamble)
    used: set[str] = set()
    todo = set(WORD.findall(source)) & texts.keys()
    while todo:
        name = todo.pop()
        used.add(name)
        todo |= set(WORD.findall(texts[name])) & texts.keys() - used
    return "\n".join([*macros, *(text for name, text in texts.items() if name in used)])


@cache
def definitions(preamble: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the macros of a preamble, and the texts of its functions and tables by name."""
    macros: list[str] = []
    texts: dict[str, str] = {}
    lines: list[str] = []
    is_skipped = False
    for line in preamble.splitlines():
        is_skipped = line.startswith("#ifdef ") or (is_skipped and line != "#endif")
        if is_skipped:
            continue  # for another language
        if line.startswith("#define ") and len(line.split()) > 2:
            macros.append(line)
        if not lines and not line.startswith(HEADS):
            continue
        lines.append(line)
        if line.rstrip().endswith(("}", ";")) and not line.startswith(" "):
            name = NAME.search(lines[0])
            assert name is not None
            texts[name.group(1)] = "\n".join(lines)
            lines = []
    return tuple(macros), texts
