"""Tables: a program as plain rows over symbolic sizes, bound to the shapes of a call.

A row is ``("launch", entry, grid, scratch, seconds, points, weight, refs, sizes)``, where a kernel
of several phases has for each a pair of tiles and seconds as its grid; or ``("gemm", name, entry,
refs, batch of a, batch of b, m, n, k, flags)``, ``("gemm_sum", name, entry, refs, m, n, k of each
pair, flags)``, ``("convolution", entry, bytes of an element, refs, the numbers of a `Convolution`,
constant, stream bytes, epilogue)``, ``("window_products",
entry, refs, the numbers of a `Convolution`)``, ``("python", function,
views, views)``, ``("copy", ref, ref, nbytes)``, or None where there is nothing to do. A ref is a
kind ("input", "output", "arena", "constant") and an index; a view is a ref, NumPy's number of a
dtype and a shape. Rows hold numbers, text and sizes, so that they can be written to a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from math import prod
from typing import Any

from passkit.errors import FeedError
from passkit.runtime.feeds import all_sizes
from passkit.runtime.native.launcher import launcher
from passkit.values.dtype import DType
from passkit.values.size import Extent, Shape, Size, evaluate, known_or_zero, laid_out

Row = tuple[Any, ...]


class Table:
    """What a run needs of a program.

    ``inputs`` are (name, dtype, shape); ``guards`` are pairs of sizes that must be equal, with what
    they are. ``slots`` hold for each slot of the arena the bytes of what lives there. ``constants``
    are arrays that stay where they are. Above ``parallel`` seconds a row is shared among threads.
    ``kept`` are constants as libraries want them, ``epilogues`` counts the kernels that the last
    `bind` made part of a convolution.
    """

    __slots__ = (
        "constants",
        "epilogues",
        "guards",
        "inputs",
        "kept",
        "outputs",
        "parallel",
        "rows",
        "slots",
    )

    def __init__(
        self,
        inputs: Sequence[tuple[str, DType, Shape]],
        outputs: Sequence[tuple[DType, Shape]],
        rows: Sequence[Row | None],
        guards: Sequence[tuple[Extent, Extent, str]],
        slots: Sequence[Sequence[Extent]],
        constants: Sequence[Any],
        parallel: float,
    ) -> None:
        self.inputs, self.outputs, self.rows, self.guards = inputs, outputs, rows, guards
        self.slots, self.constants, self.parallel = slots, constants, parallel
        self.kept: dict[Any, Any] = {}
        self.epilogues = 0

    def sizes(self, shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
        """The number of every unknown size.

        Raises: FeedError when a shape does not fit, naming the input.
        """
        given = [(name, s, found) for (name, _, s), found in zip(self.inputs, shapes, strict=True)]
        for name, shape, found in given:
            for axis, (wanted, number) in enumerate(zip(shape, found, strict=True)):
                if isinstance(wanted, int) and wanted != number:
                    raise FeedError(f"input '{name}' needs {wanted} at axis {axis}, got {number}")
        return all_sizes(given)

    def broken(self, sizes: Mapping[str, int]) -> str | None:
        """What the first guard that does not hold is about."""
        for a, b, what in self.guards:
            if evaluate(a, sizes) != evaluate(b, sizes):
                return what
        return None

    def bind(
        self,
        shapes: Sequence[tuple[int, ...]],
        sizes: Mapping[str, int],
        between: Callable[[int, list[Row]], Callable[..., None]] | None = None,
    ) -> Any:
        """The launcher's `Bound` for these shapes: every size a number, every slot an offset.

        ``between(k, bound)``, if given, makes a function that is called after row k, which became
        the rows ``bound``; it ends up in Python between any two, which costs the one native call.
        """
        offsets, arena = laid_out(self.slots, sizes)
        binder = _Binder(self, offsets, sizes, arena)
        bound: list[Row] = []
        self.epilogues = 0
        for k, planned in enumerate(self.rows):
            row = None if binder.joined else planned
            self.epilogues += binder.joined
            binder.joined = False
            alone = between is not None or k + 1 == len(self.rows)
            binder.following = None if alone else self.rows[k + 1]
            made = None if row is None else getattr(binder, row[0])(*row[1:])
            made = made if isinstance(made, list) else [] if made is None else [made]
            bound += made
            if between is not None:
                bound.append(("python", between(k, made), [], []))
        outputs = [(d.numpy.num, binder.shape(s)) for d, s in self.outputs]
        return launcher().Bound(
            tuple(shapes), outputs, binder.arena, binder.most, bound, seconds=binder.spent
        )


class _Binder:
    """Rows with numbers in the place of sizes; ``most`` scratch and ``spent`` seconds of them.

    ``arena`` grows by what rows need beyond the slots. ``following`` is the next row, unless a
    function is called between the two; ``joined`` says that a convolution runs it as an epilogue.
    """

    def __init__(
        self, table: Table, offsets: Sequence[int], sizes: Mapping[str, int], arena: int
    ) -> None:
        self.table, self.offsets, self.sizes, self.arena = table, offsets, sizes, arena
        self.most = 0
        self.spent = 0.0
        self.following: Row | None = None
        self.joined = False

    def number(self, size: Extent) -> int:
        return size if isinstance(size, int) else evaluate(size, self.sizes)

    def shape(self, shape: Shape) -> tuple[int, ...]:
        return tuple(map(self.number, shape))

    def ref(self, ref: Row) -> Row:
        kind, index = ref
        if kind == "arena":
            return "arena", self.offsets[index]
        if kind == "constant":
            array = self.table.constants[index]
            return "address", array.ctypes.data, array
        return kind, index

    def view(self, view: Row) -> Row:
        ref, number, shape = view
        return self.ref(ref), number, self.shape(shape)

    def launch(
        self, entry: int, grid: Extent | Sequence[tuple[Extent, float]], scratch: Extent,
        seconds: float, points: Sequence[Extent], weight: float, refs: Sequence[Row],
        sizes: Sequence[Extent],
    ) -> Row | list[Row] | None:  # fmt: skip
        if not isinstance(grid, (int, Size)):
            usual = max(map(self.number, points)) * weight
            return self.phases(entry, grid, scratch, usual, refs, sizes)
        tiles = self.number(grid)
        if tiles == 0:
            return None
        self.most = max(self.most, self.number(scratch))
        # Where the model had no sizes, it is points times the weight of one.
        seconds = seconds or max(map(self.number, points)) * weight
        self.spent += seconds
        parallel = tiles > 1 and seconds > self.table.parallel
        return (
            *("launch", entry, tiles, parallel),
            *([self.ref(r) for r in refs], tuple(map(self.number, sizes))),
        )

    def phases(
        self, entry: int, grid: Sequence[tuple[Extent, float]], scratch: Extent, usual: float,
        refs: Sequence[Row], sizes: Sequence[Extent],
    ) -> list[Row]:  # fmt: skip
        """A row for each phase that has tiles: the next one begins when all have come so far.

        The phase's number is a last size. ``usual`` seconds stand for those that are not known.
        """
        counts = [self.number(tiles) for tiles, _ in grid]
        if not any(counts):
            return []
        self.most = max(self.most, self.number(scratch))
        numbers = [known_or_zero(n, self.sizes) for n in sizes]
        made: list[Row] = []
        for k, (tiles, (_, seconds)) in enumerate(zip(counts, grid, strict=True)):
            if tiles:
                seconds = seconds or usual
                self.spent += seconds
                parallel = tiles > 1 and seconds > self.table.parallel
                operands = [self.ref(r) for r in refs]
                kind = "phase" if made else "launch"
                made.append((kind, entry, tiles, parallel, operands, (*numbers, k)))
        return made

    def gemm(
        self, name: str, entry: int, refs: Sequence[Row], batch_a: Shape, batch_b: Shape,
        m: Extent, n: Extent, k: Extent, flags: tuple[int, int],
    ) -> list[Row]:  # fmt: skip
        from passkit.runtime.native.products import multiplier, tiles_of  # looks for libraries

        m, n, k = map(self.number, (m, n, k))
        trans_a, trans_b = flags
        axes = batch_axes(self.shape(batch_a), self.shape(batch_b), m * k, k * n, m * n)
        if m * n * prod(axis[0] for axis in axes) == 0:
            return []
        *outer, (batch, step_a, step_b, step_c) = axes
        if not outer and step_b == 0 and step_a == m * k and not trans_a:
            m, batch = m * batch, 1  # one matrix on the right serves all rows at once
        rows, columns = tiles_of(m, n, k, batch, bool(trans_b))
        function, kind = multiplier(name, rows, columns, k, bool(trans_a), bool(trans_b))
        itemsize = 4 if name == "gemm_f32" else 8
        moved_nbytes = itemsize * (m * k + k * n + m * n)
        seconds = max(2e-11 * m * n * max(k, 1), moved_nbytes * COPYING) * batch
        tiles = batch * -(-m // rows) * -(-n // columns)
        made: list[Row] = []
        for at in product(*(range(axis[0]) for axis in outer)):
            moved = [
                _beyond(self.ref(r), itemsize * sum(i * axis[1 + which] for i, axis in zip(
                    at, outer, strict=True))) for which, r in enumerate(refs)
            ]  # fmt: skip
            sizes = (
                *(m, n, k, trans_a, trans_b),
                *(m if trans_a else k, k if trans_b else n, n, batch),
                *(step_a, step_b, step_c, rows, columns, kind),
            )
            self.spent += seconds
            parallel = tiles > 1 and seconds > self.table.parallel
            made.append(("launch", entry, tiles, parallel, [function, *moved], sizes))
        return made

    def gemm_sum(
        self, name: str, entry: int, refs: Sequence[Row], m: Extent, n: Extent,
        steps: Sequence[Extent], flags: tuple[int, int],
    ) -> Row | None:  # fmt: skip
        """One launch: each tile of the result takes all pairs, one after the other."""
        from passkit.runtime.native.products import multiplier  # looks for libraries

        m, n = self.number(m), self.number(n)
        ks = [self.number(k) for k in steps]
        if m * n == 0:
            return None
        trans_a, trans_b = flags
        rows, columns = blocks_of(m, n)
        each = max(ks, default=0)
        function, kind = multiplier(name, rows, columns, each, bool(trans_a), bool(trans_b))
        tiles = -(-m // rows) * -(-n // columns)
        seconds = 2e-11 * m * n * max(sum(ks), 1)
        self.spent += seconds
        pairs = [(k, m if trans_a else k, k if trans_b else n) for k in ks]
        own = (x for pair in pairs for x in pair)
        sizes = (m, n, trans_a, trans_b, len(ks), rows, columns, kind, *own)
        parallel = tiles > 1 and seconds > self.table.parallel
        operands = [function, *map(self.ref, refs)]
        return "launch", entry, tiles, parallel, operands, sizes

    def python(self, function: Callable[..., Any], reads: Any, writes: Any) -> Row:
        views = [self.view(v) for v in reads], [self.view(v) for v in writes]
        return "python", partial(function, self.sizes), *views

    def copy(self, source: Row, target: Row, nbytes: Extent) -> Row:
        return "copy", self.ref(source), self.ref(target), self.number(nbytes)

    def convolution(
        self,
        entry: int,
        itemsize: int,
        refs: Sequence[Row],
        numbers: Row,
        constant: bool,
        stream: int,
        epilogue: Row | None = None,
    ) -> list[Row]:
        from passkit.runtime.native.convolution import laid_out, steps  # few programs have one
        from passkit.runtime.native.onednn import Geometry

        known: list[Any] = [
            self.shape(n) if isinstance(n, tuple) else self.number(n) for n in numbers
        ]
        shape = Geometry(*known)
        following = self.following
        found = steps(shape, itemsize, stream)
        if found is None:
            return []
        source, filters, target = map(self.ref, refs)
        wanted: Row = ("address", 0)
        made: list[Row] = []
        if found.layout is not None and constant:
            key = (refs[1], shape[2:])
            if key not in self.table.kept:
                plain = self.table.constants[refs[1][1]]
                self.table.kept[key] = laid_out(entry, found.layout, plain, found.nbytes)
            array = self.table.kept[key]
            wanted = "address", array.ctypes.data, array
        elif found.layout is not None:
            wanted = "arena", self.arena
            self.arena += -(-found.nbytes // 64) * 64
        for step in (None if constant else found.layout, found.run):
            if step is None:
                continue
            self.most = max(self.most, step.scratch)
            table = ("address", 0)
            if step.table is not None:
                table = ("address", step.table.ctypes.data, step.table)  # type: ignore[assignment]
            operands = [table, ("address", found.product), source, filters, wanted, target]
            sizes, seconds = step.sizes, step.seconds
            if epilogue and following and step is found.run and found.by_rows:
                sizes, behind, spent = self.with_epilogue(sizes, following, epilogue)
                operands += behind
                seconds += spent
                self.joined = True
            self.spent += seconds
            parallel = step.tiles > 1 and seconds > self.table.parallel
            made.append(("launch", entry, step.tiles, parallel, operands, sizes))
        return made

    def with_epilogue(
        self, sizes: tuple[int, ...], launch: Row, epilogue: Row
    ) -> tuple[tuple[int, ...], list[Row], float]:
        """The sizes of a convolution that runs a launch as its epilogue.

        Also the operands to append, and the seconds of the launch on one thread.
        """
        _, entry, _, _, seconds, points, weight, refs, numbers = launch
        *cut, row_nbytes = epilogue
        seconds = seconds or max(map(self.number, points)) * weight
        own = tuple(map(self.number, numbers))
        head = (len(refs), *cut, len(own), *row_nbytes)
        operands = [("address", entry), *(self.ref(r) for r in refs)]
        return (*sizes[:-1], *head, *own), operands, seconds

    def window_products(self, entry: int, refs: Sequence[Row], numbers: Row) -> list[Row]:
        from passkit.runtime.native.filters import steps  # few programs have one
        from passkit.runtime.native.onednn import Geometry

        known: list[Any] = [
            self.shape(n) if isinstance(n, tuple) else self.number(n) for n in numbers
        ]
        found = steps(Geometry(*known))
        x, given, target = map(self.ref, refs)
        parts: Row = target
        if found.nbytes:
            parts = "arena", self.arena
            self.arena += -(-found.nbytes // 64) * 64
        made: list[Row] = []
        for step in found.steps:
            self.most = max(self.most, step.scratch)
            self.spent += step.seconds
            table = "address", found.table.ctypes.data, found.table
            operands = [table, ("address", found.product), x, given, parts, target]
            parallel = step.tiles > 1 and step.seconds > self.table.parallel
            made.append(("launch", entry, step.tiles, parallel, operands, step.sizes))
        return made


def batch_axes(
    a: Sequence[int], b: Sequence[int], size_a: int, size_b: int, size_c: int
) -> list[tuple[int, int, int, int]]:
    """The axes of a batch of products as extent and steps of a, b and c, as few as will do.

    Neighbours whose steps go on where the inner one ends are one axis; at least one is left.
    """
    axes: list[tuple[int, int, int, int]] = []
    for n_a, n_b in zip(reversed(a), reversed(b), strict=True):
        n = n_b if n_a == 1 else n_a
        if n != 1:
            steps = (0 if n_a == 1 else size_a, 0 if n_b == 1 else size_b, size_c)
            inner = axes[-1] if axes else None
            if inner and all(s == i * inner[0] for s, i in zip(steps, inner[1:], strict=True)):
                axes[-1] = (inner[0] * n, *inner[1:])
            else:
                axes.append((n, *steps))
        size_a, size_b, size_c = size_a * n_a, size_b * n_b, size_c * n
    return axes[::-1] or [(1, 0, 0, 0)]


def blocks_of(m: int, n: int) -> tuple[int, int]:
    """Rows and columns of the tiles of a sum of products, by its shape alone.

    About `BLOCKS` that are alike, none so thin that a BLAS kernel would be slow.
    """
    down = max(1, min(BLOCKS, m // 64))
    across = max(1, min(-(-BLOCKS // down), n // 128))
    return -(-m // (8 * down)) * 8, -(-n // (16 * across)) * 16


COPYING = 2.5e-11
"""Seconds a byte that a product reads or writes, on one thread."""
BLOCKS = 4
"""Tiles of a sum of products: more had to lay out the same operands again. Measured on Zen 4."""


def _beyond(ref: Row, nbytes: int) -> Row:
    """A reference to what lies so many bytes behind another."""
    if ref[0] in ("address", "arena"):
        return (ref[0], ref[1] + nbytes, *ref[2:])
    return ref[0], ref[1], nbytes
