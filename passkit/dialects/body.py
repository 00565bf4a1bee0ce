"""The body of a kernel as it grows: lines, loops and the statements outside lane loops."""

from __future__ import annotations

import re
from collections.abc import Iterable

from passkit import dtype as dt
from passkit.ast import Var
from passkit.dialects.expressions import Scalars
from passkit.stage import Buffer, Let, Loop, Statement, Store

INDENT = "  "


class Body:
    """The body of a kernel as it grows: lines, and the loops and statements outside lane loops.

    ``dtypes`` are those of the kernel's buffers.
    ``num_divisors`` have a name so far; ``streams`` says whether a store went past the caches, and
    ``by_row`` whether what follows is inside the loop over a tile's rows.
    """

    def __init__(self, scalars: Scalars, buffers: Iterable[Buffer]) -> None:
        self.scalars, self.dialect = scalars, scalars.dialect
        self.dtypes = {b.name: b.dtype for b in buffers}
        self.lines: list[str] = []
        self.depth = 0
        self.num_divisors = 0
        self.streams = self.by_row = False

    def line(self, text: str) -> None:
        """Add a line."""
        self.lines.append(INDENT * self.depth + text if text else "")

    def insert(self, at: int, texts: Iterable[str]) -> None:
        """Add lines in front of the line that is number ``at`` so far."""
        self.lines[at:at] = [INDENT * self.depth + text for text in texts]

    def drop_unused(self, locals: Iterable[Var], begin: int) -> None:
        """Take out locals among the lines from ``begin`` on that no other line names."""
        for var in locals:
            named = [k for k in range(begin, len(self.lines)) if _names(self.lines[k], var)]
            if len(named) == 1:
                del self.lines[named[0]]

    def open(self, text: str) -> None:
        """Begin a block."""
        self.line(text + " {")
        self.depth += 1

    def scope(self) -> None:
        """Begin a block that is no loop."""
        self.line("{")
        self.depth += 1

    def close(self, text: str = "}") -> None:
        """End the innermost block."""
        self.depth -= 1
        self.line(text)

    def loop(self, template: str, loop: Loop) -> None:
        """Begin a loop."""
        start, stop = self.scalars.expr(loop.start), self.scalars.expr(loop.stop)
        if loop.limit is not None:
            limit, kind = self.scalars.expr(loop.limit), self.dialect.type_of(dt.int64)
            name = f"{loop.var.name}_end"
            self.line(f"const {kind} {name} = {stop} < {limit} ? {stop} : {limit};")
            stop = name
        self.open(template.format(var=loop.var.name, start=start, stop=stop))

    def statement(self, s: Statement) -> None:
        """A local or an assignment: the others are for lanes."""
        if isinstance(s, Let):
            self.let(s)
        else:
            assert isinstance(s, Store)
            self.store(s)

    def let(self, let: Let) -> None:
        """A local."""
        kind, value = self.dialect.type_of(let.var.dtype), self.scalars.expr(let.value)
        self.line(self.dialect.local.format(type=kind, name=let.var.name, value=value))

    def store(self, s: Store) -> None:
        """An assignment."""
        at = self.scalars.element(s.buffer, s.index)
        self.line(f"{at} = {self.scalars.expr(s.value)};")


def _names(line: str, var: Var) -> bool:
    return re.search(rf"\b{var.name}\b", line) is not None
