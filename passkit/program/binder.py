"""Bind a compiled table to the shapes of a call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from passkit.runtime.native.feeds import InputSpec, make_program
from passkit.runtime.state import State
from passkit.runtime.table import ProgramTable

if TYPE_CHECKING:
    from passkit.runtime.program import RuntimeProgram

CallShapes = tuple[tuple[int, ...], ...]
"""The shape of each input of a call, in order."""


class Binder:
    """Binds a table to the shapes of calls; runners call `bind` once for shapes new to them.

    A plan relies on guards, such as "these two unknown sizes are equal". Shapes that break a guard
    get a program of their own, which ``specialize`` plans for them alone.

    Args:
        table: The table of the general program.
        specialize: Returns the program for shapes that break a guard of the table.
        state: The variables that runs of the program read and write.
    """

    on_device = False

    def __init__(
        self, table: ProgramTable, specialize: Callable[[CallShapes], RuntimeProgram], state: State
    ) -> None:
        self.table = table
        self.specialize = specialize
        self.state = state
        self.specialized: dict[CallShapes, RuntimeProgram] = {}
        self.last_shapes: CallShapes | None = None
        self.last_sizes: dict[str, int] = {}

    def runner(self, inputs: Sequence[InputSpec], unread: tuple[str, ...]) -> Any:
        """Return the callable that checks feeds and runs the program, for any fitting shapes.

        Calls that use variables run one at a time, and the memory of these is pinned.

        Args:
            inputs: the inputs' names, dtypes and shapes, in order.
            unread: names of inputs that the program does not read, which a call may feed, too.

        Raises: CompilerError if the launcher cannot be compiled, SettingError if PASSKIT_THREADS is
        no number of threads, CacheError if others may write to the cache folder. Calls of the
        result raise FeedError for feeds that do not fit, ShapeError for extents that an operator
        refuses or by which a size divides by zero, ArgumentError for a masked array, and
        CapacityError without memory for the results.
        """
        lock = self.state.lock if self.state.memory else None
        if lock:
            self.state.pin()
        return make_program(inputs, len(self.table.outputs), self.bind, lock, unread)

    def bind(self, shapes: CallShapes) -> Any:
        """Return the launcher's `Bound` for these shapes, with a number for every size.

        The shapes and the values of their sizes are kept in ``last_shapes`` and ``last_sizes``.

        Raises: FeedError if a shape does not fit its input; ShapeError if a size divides by zero;
        what ``specialize`` raises for shapes that break a guard.
        """
        program, sizes = self.fit(shapes)
        self.last_shapes, self.last_sizes = shapes, sizes
        return (self.table if program is None else program.table).bind(shapes, sizes)

    def fit(self, shapes: CallShapes) -> tuple[RuntimeProgram | None, dict[str, int]]:
        """Return the program planned for these shapes alone, and the values of its sizes.

        The program is None if the general table serves the shapes; the sizes are an empty dict if
        it does not. A new program is kept in ``specialized``.

        Raises: FeedError if a shape does not fit its input, or the shapes do not determine a size;
        ShapeError if an extent divides by zero; what ``specialize`` raises.
        """
        sizes = self.table.sizes(shapes)
        if self.table.broken(sizes) is None:
            return None, sizes
        program = self.specialized.get(shapes)
        if program is None:
            program = self.specialized[shapes] = self.specialize(shapes)
        return program, {}
