"""The text of a kernel's body: lines, blocks, loops, and statements of scalars."""

from __future__ import annotations

from collections.abc import Iterable

from passkit.ast.stage import Buffer, Let, Loop, Statement, Store
from passkit.dialects.expressions import Scalars
from passkit.values import dtype as dt

INDENT = "  "
OFFSET = "{start} + "
"""The part of a loop's template that is left out if the loop starts at 0."""


class Body:
    """The text of a kernel's body while it is printed.

    Attributes:
        scalars: the printer of scalar expressions.
        dtypes: the dtypes of the kernel's buffers.
        lines: the lines so far.
        depth: the depth of the current block.
        rereads: whether the kernel loads its own outputs.
        streams: whether a store bypassed the caches.
    """

    def __init__(
        self,
        scalars: Scalars,
        buffers: Iterable[Buffer],
        rereads: bool = False,
    ) -> None:
        self.rereads = rereads
        self.scalars, self.dialect = scalars, scalars.dialect
        self.dtypes = {b.name: b.dtype for b in buffers}
        self.lines: list[str] = []
        self.depth = 0
        self.streams = False

    def barrier(self) -> None:
        """Add a barrier of the threads of the tile."""
        d = self.dialect
        if d.wait:
            self.line(d.wait.format(memory=d.memory[self.rereads]))

    def line(self, text: str) -> None:
        """Add a line."""
        self.lines.append(INDENT * self.depth + text if text else "")

    def open(self, text: str) -> None:
        """Begin a block."""
        self.line(text + " {")
        self.depth += 1

    def scope(self) -> None:
        """Begin a block without a head."""
        self.line("{")
        self.depth += 1

    def close(self, text: str = "}") -> None:
        """End the innermost block."""
        self.depth -= 1
        self.line(text)

    def loop(self, template: str, loop: Loop) -> None:
        """Begin a loop with a template; a second bound becomes a variable."""
        start, stop = self.scalars.expr(loop.start), self.scalars.expr(loop.stop)
        self.scalars.positions.add(loop.var.name)
        if loop.limit is not None:
            limit, kind = self.scalars.expr(loop.limit), self.dialect.type_of(dt.int64)
            name = f"{loop.var.name}_end"
            self.line(f"const {kind} {name} = {stop} < {limit} ? {stop} : {limit};")
            stop = name
        self.open_loop(template, var=loop.var.name, start=start, stop=stop)

    def open_loop(self, template: str, start: str, **values: str | int) -> None:
        """Begin a loop.

        Args:
            template: its template.
            start: the text of its first value.
            values: the texts of other placeholders.
        """
        if start == "0":
            template = template.replace(OFFSET, "")
        self.open(template.format(start=start, **values))

    def statement(self, s: Statement) -> None:
        """Add a local variable, or a store by one thread."""
        if isinstance(s, Let):
            self.let(s)
        else:
            assert isinstance(s, Store)
            self.store_once(s)

    def let(self, let: Let) -> None:
        """Add a local variable."""
        kind, value = self.dialect.type_of(let.var.dtype), self.scalars.expr(let.value)
        self.line(self.dialect.local.format(type=kind, name=let.var.name, value=value))
        if self.scalars.is_position(let.value):
            self.scalars.positions.add(let.var.name)

    def store_once(self, s: Store) -> None:
        """Add a store by one thread of a value that all threads have."""
        only = self.dialect.first
        at = self.scalars.element(s.buffer, s.index)
        self.line(f"{only}{' ' * bool(only)}{at} = {self.scalars.expr(s.value)};")

    def store(self, s: Store) -> None:
        """Add a store."""
        at = self.scalars.element(s.buffer, s.index)
        self.line(f"{at} = {self.scalars.expr(s.value)};")
