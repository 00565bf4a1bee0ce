"""The body of a kernel as it grows: lines, loops and the statements outside lane loops."""

from __future__ import annotations

from collections.abc import Iterable

from passkit.ast.stage import Buffer, Let, Loop, Statement, Store
from passkit.dialects.expressions import Scalars
from passkit.values import dtype as dt

INDENT = "  "
BEHIND = "{start} + "
"""What a loop's template has in front of a thread's number."""


class Body:
    """The body of a kernel as it grows: lines, and the loops and statements outside lane loops.

    ``dtypes`` are those of the kernel's buffers. ``streams`` says whether a store went past the
    caches, ``by_row`` whether what follows is inside a loop over a tile's rows, which ``has_rows``
    says are somewhere in the kernel; ``rereads`` whether the kernel reads its own results.
    """

    def __init__(
        self,
        scalars: Scalars,
        buffers: Iterable[Buffer],
        has_rows: bool = False,
        rereads: bool = False,
    ) -> None:
        self.has_rows, self.rereads = has_rows, rereads
        self.scalars, self.dialect = scalars, scalars.dialect
        self.dtypes = {b.name: b.dtype for b in buffers}
        self.lines: list[str] = []
        self.depth = 0
        self.streams = self.by_row = False

    @property
    def lane(self) -> str:
        """A loop whose turns are shared out over the threads of a row, or of a tile without."""
        d = self.dialect
        return d.loop_of_tile if self.by_tile else d.lane

    @property
    def lane_of_block(self) -> str:
        """A loop whose iterations all threads of a block share out, if they are not of a row."""
        d = self.dialect
        return d.lane if self.by_row or not d.loop_of_tile else d.loop_of_tile

    @property
    def by_tile(self) -> bool:
        """Whether that are the threads of a tile whose rows have some of their own."""
        return bool(self.dialect.loop_of_tile) and self.has_rows and not self.by_row

    @property
    def fold(self) -> str:
        """What joins the partial results of those threads."""
        d = self.dialect
        return d.fold if self.by_row or not d.fold_of_tile else d.fold_of_tile

    def wait(self) -> None:
        """Let all threads of the row, or of the tile, come so far."""
        d = self.dialect
        text = d.wait_of_row if self.by_row else d.wait
        if text:
            self.line(text.format(memory=d.memory[self.rereads]))

    def line(self, text: str) -> None:
        """Add a line."""
        self.lines.append(INDENT * self.depth + text if text else "")

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
        self.scalars.positions.add(loop.var.name)
        if loop.limit is not None:
            limit, kind = self.scalars.expr(loop.limit), self.dialect.type_of(dt.int64)
            name = f"{loop.var.name}_end"
            self.line(f"const {kind} {name} = {stop} < {limit} ? {stop} : {limit};")
            stop = name
        self.open_loop(template, var=loop.var.name, start=start, stop=stop)

    def open_loop(self, template: str, start: str, **values: str | int) -> None:
        """Begin a loop by its parts: from 0 on, a thread's first turn is that of its number.

        In each it has so many ``times`` of what threads have.
        """
        if start == "0":
            template = template.replace(BEHIND, "")
        self.open(template.format(start=start, **{"times": "", **values}))

    def statement(self, s: Statement) -> None:
        """A local or an assignment: the others are for lanes."""
        if isinstance(s, Let):
            self.let(s)
        else:
            assert isinstance(s, Store)
            self.store_once(s)

    def let(self, let: Let) -> None:
        """A local."""
        kind, value = self.dialect.type_of(let.var.dtype), self.scalars.expr(let.value)
        self.line(self.dialect.local.format(type=kind, name=let.var.name, value=value))
        if self.scalars.is_position(let.value):
            self.scalars.positions.add(let.var.name)

    def store_once(self, s: Store) -> None:
        """An assignment by one thread, where all have the value."""
        d = self.dialect
        only = d.first_of_row if self.by_row else d.first
        at = self.scalars.element(s.buffer, s.index)
        self.line(f"{only}{' ' * bool(only)}{at} = {self.scalars.expr(s.value)};")

    def store(self, s: Store) -> None:
        """An assignment."""
        at = self.scalars.element(s.buffer, s.index)
        self.line(f"{at} = {self.scalars.expr(s.value)};")
