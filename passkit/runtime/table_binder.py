"""Binding of program tables: entries become launcher steps for the shapes of a call.

Every symbolic size is replaced by its value and every arena slot by an offset; library routines and
the tiles of matrix products and convolutions are selected by the shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from passkit.values.size import Extent, Shape, Size, evaluate, known_or_zero

if TYPE_CHECKING:
    from passkit.runtime.native.convolution import ConvolutionLaunch
    from passkit.runtime.native.matrix_products import LongMatrix

TableEntry = tuple[Any, ...]
"""An entry of a `ProgramTable`, a reference or view in it, or a step of the launcher."""

SECONDS_PER_MULTIPLICATION = 2e-11
"""Estimated time of one multiplication and addition of a matrix product, on one thread."""
SECONDS_PER_BYTE = 2.5e-11
"""Estimated time per byte that a matrix product reads or writes, on one thread."""
TOTAL_TILE = 64
"""Elements of a tile of the sum of the results of all tiles of rows."""
MIN_BLOCKS = 4
"""The least blocks of a row chain; with fewer, the matrix is in the caches anyway."""
SUM_TILES = 4
"""Tiles of a sum of products: with more, each repacks the same operands. Measured on Zen 4."""


class RowTiles(NamedTuple):
    """How the tiles of a kernel divide rows, which its loops run over.

    Attributes:
        rows: the rows of a tile; those of a chunk where tiles are groups of chunks.
        chunks: the index of the size argument that is the number of chunks; -1 where tiles are not
            groups of chunks.
        per_tile: the index of the size argument that is the number of chunks of a tile, or -1.
    """

    rows: int
    chunks: int
    per_tile: int


class RowChain(NamedTuple):
    """Entries of a table that run block by block of the rows of a matrix.

    `passkit.runtime.row_chain` finds them.

    Attributes:
        positions: the positions of the entries: a product of each row with a vector, the kernels
            that follow it, and later a sum of the rows.
        tiles: for each entry how its tiles divide the rows; None for the product and the sum.
    """

    positions: tuple[int, ...]
    tiles: tuple[RowTiles | None, ...]


class TableBinder:
    """Translates the entries of a table into launcher steps for known sizes.

    Args:
        constants: arrays of constants and state variables.
        packed_filters: constant filters that are packed already; new ones are added.
        parallel: steps that are estimated to take more seconds than this are shared among threads.
        offsets: the offset of each arena slot in bytes.
        sizes: the value of each symbolic size.
        arena_nbytes: the size of all slots.

    Attributes:
        arena_nbytes: the size of the arena; grows by temporaries of library calls.
        scratch_nbytes: the most scratch memory per thread of all steps so far.
        seconds: the estimated time of all steps so far, on one thread.
        following: the entry after the current one; None if it cannot be merged.
        merged_following: whether the current entry, a convolution, runs ``following`` as an
            epilogue.
        merged_chain: whether the last row chain became one launch.
        long_matrix: the kind of the last matrix product, if it was one of a vector and a long
            matrix.
    """

    def __init__(
        self,
        constants: Sequence[Any],
        packed_filters: dict[Any, Any],
        parallel: float,
        offsets: Sequence[int],
        sizes: Mapping[str, int],
        arena_nbytes: int,
    ) -> None:
        self.constants, self.packed_filters = constants, packed_filters
        self.parallel, self.offsets, self.sizes = parallel, offsets, sizes
        self.arena_nbytes = arena_nbytes
        self.scratch_nbytes = 0
        self.seconds = 0.0
        self.following: TableEntry | None = None
        self.merged_following = False
        self.merged_chain = False
        self.long_matrix: LongMatrix | None = None

    def chain_steps(
        self, entries: Sequence[TableEntry], tiles: Sequence[RowTiles | None]
    ) -> list[list[TableEntry]]:
        """Return the launcher steps of each entry of a row chain.

        The first entry has the launch of the whole chain, the last one the launch that adds the
        results of its blocks, and others have none. Where a member has other tiles for these sizes
        than ranges of rows, or there are fewer than `MIN_BLOCKS` blocks, each entry has its own
        steps. Sets ``merged_chain``.

        Args:
            entries: the entries of the chain.
            tiles: how the tiles of each one divide the rows; None for products.

        Raises: ShapeError where a symbolic size has no value; CompilerError, CacheError or
        SettingError where the launcher cannot be compiled or loaded.
        """
        from passkit.runtime.native.launcher import builtin
        from passkit.runtime.native.matrix_products import ROW_TILE, LongMatrix

        self.merged_chain = False
        bound: list[list[TableEntry]] = []
        kinds: list[LongMatrix | None] = []
        start_seconds = self.seconds
        for entry in entries:
            self.long_matrix = None
            bound.append(self.steps(entry))
            kinds.append(self.long_matrix)
        if (kinds[0], kinds[-1]) != (LongMatrix.MAPPED, LongMatrix.SUMMED):
            return bound
        if not all(bound):
            return bound
        block_rows = max([ROW_TILE, *[t.rows for t in tiles if t is not None]])
        blocks = 0
        operands: list[TableEntry] = []
        member_sizes: list[int] = []
        for steps, row_tiles in zip(bound, tiles, strict=True):
            _, function, num_tiles, _, refs, sizes = steps[0]
            rows = ROW_TILE
            if row_tiles is not None:
                rows = row_tiles.rows
                if row_tiles.per_tile >= 0:
                    num_tiles = sizes[row_tiles.chunks]
                    sizes = list(sizes)
                    sizes[row_tiles.per_tile] = 1
            if block_rows % rows:
                return bound
            per_block = block_rows // rows
            blocks = max(blocks, -(-num_tiles // per_block))
            operands += [("address", int(function), function), *refs]
            member_sizes += [len(refs), len(sizes), per_block, num_tiles, *sizes]
        if blocks < MIN_BLOCKS:
            return bound
        parallel = self.seconds - start_seconds > self.parallel
        self.merged_chain = True
        launch_sizes = (len(entries), *member_sizes)
        chain = ("launch", builtin("row_chain"), blocks, parallel, operands, launch_sizes)
        return [[chain], *([] for _ in bound[1:-1]), bound[-1][1:]]

    def steps(self, entry: TableEntry) -> list[TableEntry]:
        """Return the launcher steps of an entry; an empty list if it has nothing to compute.

        Updates ``seconds``, ``scratch_nbytes``, ``arena_nbytes`` and ``merged_following``, and adds
        a constant filter to ``packed_filters``. Raises: ShapeError where a symbolic size has no
        value; CompilerError where the launcher or the unit of convolutions cannot be compiled.
        """
        binders: dict[str, Callable[..., list[TableEntry]]] = {
            "launch": self._launch,
            "gemm": self._gemm,
            "gemm_sum": self._gemm_sum,
            "convolution": self._convolution,
            "window_products": self._window_products,
            "python": self._python,
            "copy": self._copy,
        }
        return binders[entry[0]](*entry[1:])

    def shape(self, shape: Shape) -> tuple[int, ...]:
        """Return a shape with numbers in place of symbolic sizes.

        Raises: ShapeError where a size has no value.
        """
        return tuple(map(self._number, shape))

    def _number(self, size: Extent) -> int:
        """Return the number of an extent.

        Raises: ShapeError where a size has no value, or the extent divides by zero.
        """
        return size if isinstance(size, int) else evaluate(size, self.sizes)

    def _ref(self, ref: TableEntry) -> TableEntry:
        """Return the launcher's reference for a table's (kind, index).

        It is ("arena", byte offset) for a slot of the arena, ("address", address, array) for a
        constant; (kind, index) of an input or output stays as it is.
        """
        kind, index = ref
        if kind == "arena":
            return "arena", self.offsets[index]
        if kind == "constant":
            array = self.constants[index]
            return "address", array.ctypes.data, array
        return kind, index

    def _view(self, view: TableEntry) -> TableEntry:
        """Return a view (reference, type number, shape) with numbers in place of symbolic sizes.

        The reference is the launcher's. Raises: ShapeError where a size has no value.
        """
        ref, number, shape = view
        return self._ref(ref), number, self.shape(shape)

    def _allocate(self, nbytes: int) -> TableEntry:
        """Append ``nbytes`` bytes, rounded up to cache lines, to the arena.

        Return a reference to them, ("arena", byte offset).
        """
        ref = "arena", self.arena_nbytes
        self.arena_nbytes += -(-nbytes // 64) * 64
        return ref

    def _launch_step(
        self,
        kind: str,
        entry: int,
        tiles: int,
        seconds: float,
        operands: Sequence[TableEntry],
        sizes: Sequence[int],
    ) -> TableEntry:
        """Return a launch, shared among threads if it takes more ``seconds`` than ``parallel``.

        The seconds are added to the binder's. A launch of one tile is never shared.

        Args:
            kind: "launch", or "phase" for a later phase of the launch before it.
            entry: the address of the function.
            tiles: the number of tiles.
            seconds: the estimated time of all tiles.
            operands: references to the arrays.
            sizes: the size arguments.

        Returns:
            (kind, entry, tiles, whether threads share it, operands, sizes).
        """
        self.seconds += seconds
        parallel = tiles > 1 and seconds > self.parallel
        return kind, entry, tiles, parallel, operands, tuple(sizes)

    def _launch(
        self,
        entry: int,
        grid: Extent | Sequence[tuple[Extent, float]],
        scratch: Extent,
        seconds: float,
        points: Sequence[Extent],
        weight: float,
        refs: Sequence[TableEntry],
        sizes: Sequence[Extent],
    ) -> list[TableEntry]:
        """Bind a kernel launch.

        Args:
            entry: the address of the kernel.
            grid: the number of tiles, or for each phase that number and the estimated seconds.
            scratch: the bytes of scratch memory of a tile.
            seconds: the estimated time of all tiles; 0 where there is no estimate, and then the
                largest of ``points`` times ``weight`` is used.
            points: the sizes of its arrays in elements.
            weight: seconds per element.
            refs: the kernel's arrays.
            sizes: its size arguments.

        Returns: The launcher's steps, an empty list if there is no tile.

        Raises: ShapeError if a size has no value.
        """
        if not isinstance(grid, (int, Size)):
            default_seconds = max(map(self._number, points)) * weight
            return self._phases(entry, grid, scratch, default_seconds, refs, sizes)
        tiles = self._number(grid)
        if tiles == 0:
            return []
        self.scratch_nbytes = max(self.scratch_nbytes, self._number(scratch))
        seconds = seconds or max(map(self._number, points)) * weight
        operands = [self._ref(r) for r in refs]
        numbers = [self._number(n) for n in sizes]
        return [self._launch_step("launch", entry, tiles, seconds, operands, numbers)]

    def _phases(
        self,
        entry: int,
        grid: Sequence[tuple[Extent, float]],
        scratch: Extent,
        default_seconds: float,
        refs: Sequence[TableEntry],
        sizes: Sequence[Extent],
    ) -> list[TableEntry]:
        """Bind a kernel of several phases: one step per phase that has tiles.

        The list is empty if none has. A phase begins when all tiles of the previous one are done.
        The phase's number is appended to the size arguments; one that divides by zero is 0.
        ``grid`` has (tiles, seconds) for each phase; ``default_seconds`` replace seconds that are
        0. The other arguments are those of `_launch`.

        Raises: ShapeError if a size has no value.
        """
        counts = [self._number(tiles) for tiles, _ in grid]
        if not any(counts):
            return []
        self.scratch_nbytes = max(self.scratch_nbytes, self._number(scratch))
        numbers = [known_or_zero(n, self.sizes) for n in sizes]
        steps: list[TableEntry] = []
        for k, (tiles, (_, seconds)) in enumerate(zip(counts, grid, strict=True)):
            if tiles:
                operands = [self._ref(r) for r in refs]
                steps.append(
                    self._launch_step(
                        "phase" if steps else "launch",
                        entry,
                        tiles,
                        seconds or default_seconds,
                        operands,
                        (*numbers, k),
                    )
                )
        return steps

    def _gemm(
        self,
        name: str,
        entry: int,
        refs: Sequence[TableEntry],
        batch_a: Shape,
        batch_b: Shape,
        m: Extent,
        n: Extent,
        k: Extent,
        flags: tuple[int, int],
    ) -> list[TableEntry]:
        """Bind a batched matrix product: one launch per index of the outer batch axes.

        Args:
            name: "gemm_f32" or "gemm_f64".
            entry: the address of the built-in kernel.
            refs: both operands and the result.
            batch_a: the batch axes of the first operand.
            batch_b: the batch axes of the second; they broadcast.
            m: the rows of the product.
            n: its columns.
            k: the length of the sums.
            flags: whether the left and the right operand are stored transposed, 1 or 0 each.

        Returns: The launcher's steps, an empty list if the product has no elements.

        Raises: ShapeError if a size has no value; CompilerError if the launcher cannot be compiled.
        """
        # Importing this module finds libraries.
        from passkit.runtime.native.matrix_products import (
            ROW_TILE,
            LongMatrix,
            gemm_function,
            gemm_tiles,
            long_matrix,
        )

        m, n, k = map(self._number, (m, n, k))
        trans_a, trans_b = flags
        axes = batch_axes(self.shape(batch_a), self.shape(batch_b), m * k, k * n, m * n)
        if m * n * prod(axis[0] for axis in axes) == 0:
            return []
        *outer, (batch, step_a, step_b, step_c) = axes
        if not outer and step_b == 0 and step_a == m * k and not trans_a:
            m, batch = m * batch, 1  # the right operand is shared: multiply all rows at once
        long = None
        if batch == 1 and not outer:
            long = long_matrix(m, n, k, bool(trans_a), bool(trans_b))
        self.long_matrix = long
        if long is LongMatrix.SUMMED:
            return self._summed_rows(name, refs, (m, n, k, trans_a, trans_b))
        rows, columns = gemm_tiles(m, n, k, batch, bool(trans_a), bool(trans_b))
        if long is LongMatrix.MAPPED:
            rows, columns = (ROW_TILE, 1) if n == 1 else (1, ROW_TILE)
        function, kind = gemm_function(name, rows, columns, k, bool(trans_a), bool(trans_b))
        itemsize = 4 if name == "gemm_f32" else 8
        nbytes = itemsize * (m * k + k * n + m * n)
        arithmetic_seconds = SECONDS_PER_MULTIPLICATION * m * n * max(k, 1)
        seconds = max(arithmetic_seconds, nbytes * SECONDS_PER_BYTE) * batch
        tiles = batch * -(-m // rows) * -(-n // columns)
        lda, ldb = m if trans_a else k, k if trans_b else n
        matrix_sizes = (m, n, k, trans_a, trans_b, lda, ldb, n)
        sizes = (*matrix_sizes, batch, step_a, step_b, step_c, rows, columns, kind)
        steps: list[TableEntry] = []
        for index in product(*(range(axis[0]) for axis in outer)):
            operands = [function]
            for which, ref in enumerate(refs):
                elements = sum(i * axis[1 + which] for i, axis in zip(index, outer, strict=True))
                operands.append(_offset_by(self._ref(ref), itemsize * elements))
            steps.append(self._launch_step("launch", entry, tiles, seconds, operands, sizes))
        return steps

    def _summed_rows(
        self, name: str, refs: Sequence[TableEntry], product_sizes: tuple[int, int, int, int, int]
    ) -> list[TableEntry]:
        """Bind a product of a vector with a long matrix that is summed over the rows.

        Each tile multiplies `ROW_TILE` rows; its result is appended to the arena. A second launch
        adds the results of the tiles, in order.

        Args:
            name: "gemm_f32" or "gemm_f64".
            refs: both operands and the result.
            product_sizes: m, n, k and whether the left and the right operand are stored transposed.

        Returns: The two launches. Raises: CompilerError if the launcher cannot be compiled.
        """
        from passkit.runtime.native.launcher import builtin
        from passkit.runtime.native.matrix_products import ROW_TILE, gemm_function

        m, n, k, trans_a, trans_b = product_sizes
        itemsize = 4 if name == "gemm_f32" else 8
        tiles = -(-k // ROW_TILE)
        function, kind = gemm_function(name, m, n, ROW_TILE, bool(trans_a), bool(trans_b))
        tile_results = self._allocate(tiles * m * n * itemsize)
        a, b, target = map(self._ref, refs)
        sizes = (*product_sizes, m if trans_a else k, k if trans_b else n, ROW_TILE, kind)
        seconds = itemsize * (m * k + k * n) * SECONDS_PER_BYTE
        operands = [function, a, b, tile_results]
        multiply = self._launch_step(
            "launch", builtin(f"{name}_rows"), tiles, seconds, operands, sizes
        )
        total_tiles = -(-m * n // TOTAL_TILE)
        total_seconds = tiles * m * n * itemsize * SECONDS_PER_BYTE
        total = self._launch_step(
            "launch",
            builtin(f"{name}_total"),
            total_tiles,
            total_seconds,
            [tile_results, target],
            (tiles, m * n, TOTAL_TILE),
        )
        return [multiply, total]

    def _gemm_sum(
        self,
        name: str,
        entry: int,
        refs: Sequence[TableEntry],
        m: Extent,
        n: Extent,
        inner_sizes: Sequence[Extent],
        flags: tuple[int, int],
    ) -> list[TableEntry]:
        """Bind a sum of matrix products: one launch, whose tiles accumulate all pairs in order.

        Args:
            name: "gemm_f32" or "gemm_f64".
            entry: the address of the built-in kernel.
            refs: the operands in pairs, and the result.
            m: the rows of the result.
            n: its columns.
            inner_sizes: the length of the sums of each pair.
            flags: whether the left and the right operands are stored transposed, 1 or 0 each.

        Returns: The launcher's step in a list, which is empty if the result has no elements.

        Raises: ShapeError if a size has no value; CompilerError if the launcher cannot be compiled.
        """
        from passkit.runtime.native.matrix_products import gemm_function  # finds libraries

        m, n = self._number(m), self._number(n)
        ks = [self._number(k) for k in inner_sizes]
        if m * n == 0:
            return []
        trans_a, trans_b = flags
        rows, columns = sum_tile_shape(m, n)
        longest = max(ks, default=0)
        function, kind = gemm_function(name, rows, columns, longest, bool(trans_a), bool(trans_b))
        tiles = -(-m // rows) * -(-n // columns)
        seconds = SECONDS_PER_MULTIPLICATION * m * n * max(sum(ks), 1)
        pairs = [(k, m if trans_a else k, k if trans_b else n) for k in ks]
        pair_sizes = (x for pair in pairs for x in pair)
        sizes = (m, n, trans_a, trans_b, len(ks), rows, columns, kind, *pair_sizes)
        operands = [function, *map(self._ref, refs)]
        return [self._launch_step("launch", entry, tiles, seconds, operands, sizes)]

    def _python(self, function: Callable[..., Any], reads: Any, writes: Any) -> list[TableEntry]:
        """Bind a call of a Python function of sizes, inputs and outputs.

        ``reads`` and ``writes`` are the views of its inputs and outputs. Returns one launcher step
        in a list. Raises: ShapeError if a size has no value.
        """
        views = [self._view(v) for v in reads], [self._view(v) for v in writes]
        return [("python", partial(function, self.sizes), *views)]

    def _copy(self, source: TableEntry, target: TableEntry, nbytes: Extent) -> list[TableEntry]:
        """Bind a copy of ``nbytes`` bytes from ``source`` to ``target``, references of the table.

        Returns one launcher step in a list. Raises: ShapeError if a size has no value.
        """
        return [("copy", self._ref(source), self._ref(target), self._number(nbytes))]

    def _convolution(
        self,
        entries: Sequence[int],
        itemsize: int,
        refs: Sequence[TableEntry],
        fields: TableEntry,
        constant: bool,
        stream: int,
        epilogue: TableEntry | None = None,
    ) -> list[TableEntry]:
        """Bind a convolution: a launch that packs the filter, if needed, and the convolution.

        A constant filter is packed at once, and all calls of `ProgramTable.bind` share the result.

        Args:
            entries: the addresses of the functions of each unit, 0 for those that are not expected
                to be needed.
            itemsize: the bytes of an element.
            refs: source, filters and result.
            fields: the fields of the geometry.
            constant: whether the filters are a constant.
            stream: results of at least this many bytes are written past the caches; 0 for never.
            epilogue: the fields of the `RowEpilogue` by which the following kernel can run on rows
                just stored; None where it cannot.

        Returns: The launcher's steps, an empty list if the result has no elements.

        Raises: ShapeError if a size has no value; CompilerError if a unit of convolutions cannot
        be compiled, CacheError if others can write to the cache folder.
        """
        # Only programs with a convolution need these modules.
        from passkit.runtime.native.convolution import convolution_launches, packed_filter

        geometry = self._geometry(fields)
        launches = convolution_launches(geometry, itemsize, stream)
        if launches is None:
            return []
        source, filters, target = map(self._ref, refs)
        packed: TableEntry = ("address", 0)
        to_launch = [launches.run]
        if launches.pack is not None and constant:
            key = (refs[1], geometry[2:])
            if key not in self.packed_filters:
                plain = self.constants[refs[1][1]]
                self.packed_filters[key] = packed_filter(
                    self._unit_entry(entries, launches.pack),
                    launches.pack,
                    plain,
                    launches.packed_nbytes,
                )
            array = self.packed_filters[key]
            packed = "address", array.ctypes.data, array
        elif launches.pack is not None:
            packed = self._allocate(launches.packed_nbytes)
            to_launch = [launches.pack, launches.run]
        steps: list[TableEntry] = []
        for launch in to_launch:
            self.scratch_nbytes = max(self.scratch_nbytes, launch.scratch)
            table = _array_address(launch.table)
            operands = [table, ("address", launches.product), source, filters, packed, target]
            sizes, seconds = launch.sizes, launch.seconds
            entry = self._unit_entry(entries, launch)
            if epilogue and self.following and launch is launches.run and launches.by_rows:
                sizes, arrays, epilogue_seconds = self._with_epilogue(sizes, epilogue)
                operands += arrays
                seconds += epilogue_seconds
                self.merged_following = True
            steps.append(self._launch_step("launch", entry, launch.tiles, seconds, operands, sizes))
        return steps

    def _unit_entry(self, entries: Sequence[int], launch: ConvolutionLaunch) -> int:
        """Return the address of the function of a launch's unit.

        It is compiled now if ``entries`` does not have it: oneDNN may lack a primitive for a shape,
        or the library itself on the machine that loads a plan.

        Raises: CompilerError if it cannot be compiled, CacheError if others can write to the cache
        folder.
        """
        from passkit.runtime.native import convolution_unit  # only programs with a convolution

        return entries[launch.unit] or convolution_unit.entry(launch.unit)

    def _geometry(self, fields: TableEntry) -> Any:
        """Return the fields of a `Convolution` as a `Geometry`, whose sizes are numbers.

        Raises: ShapeError where a size has no value.
        """
        from passkit.runtime.native.onednn import Geometry  # only for programs with a convolution

        numbers: list[Any] = [
            self.shape(n) if isinstance(n, tuple) else self._number(n) for n in fields
        ]
        return Geometry(*numbers)

    def _with_epilogue(
        self, sizes: tuple[int, ...], epilogue: TableEntry
    ) -> tuple[tuple[int, ...], list[TableEntry], float]:
        """Merge ``following``, a kernel launch, into a convolution that runs it as its epilogue.

        Args:
            sizes: the size arguments of the convolution.
            epilogue: the fields of the `RowEpilogue`.

        Returns:
            The size arguments of the convolution with those of the epilogue, the operands to
            append, and the estimated seconds of the epilogue on one thread.
        """
        assert self.following is not None
        _, entry, _, _, seconds, points, weight, refs, kernel_sizes = self.following
        *row_sizes, row_nbytes = epilogue
        seconds = seconds or max(map(self._number, points)) * weight
        numbers = tuple(map(self._number, kernel_sizes))
        epilogue_sizes = (len(refs), *row_sizes, len(numbers), *row_nbytes)
        operands = [("address", entry), *(self._ref(r) for r in refs)]
        return (*sizes[:-1], *epilogue_sizes, *numbers), operands, seconds

    def _window_products(
        self, entries: Sequence[int], refs: Sequence[TableEntry], fields: TableEntry
    ) -> list[TableEntry]:
        """Bind the gradient of a convolution's filters: partial gradients, then their sum.

        Memory for the partial gradients is appended to the arena.

        Args:
            entries: the addresses of the functions of each unit, 0 for those not needed.
            refs: the source, the gradient of the results, and the result.
            fields: the fields of the geometry.

        Returns: The launcher's steps.

        Raises: ShapeError if a size has no value.
        """
        # Only programs with such a gradient need this module.
        from passkit.runtime.native.filter_gradients import filter_gradient_launches

        launches = filter_gradient_launches(self._geometry(fields))
        x, gradient, target = map(self._ref, refs)
        partial_results = self._allocate(launches.nbytes) if launches.nbytes else target
        table = _array_address(launches.table)
        function = "address", launches.product
        operands = [table, function, x, gradient, partial_results, target]
        steps: list[TableEntry] = []
        for launch in launches.launches:
            self.scratch_nbytes = max(self.scratch_nbytes, launch.scratch)
            steps.append(
                self._launch_step(
                    "launch",
                    self._unit_entry(entries, launch),
                    launch.tiles,
                    launch.seconds,
                    operands,
                    launch.sizes,
                )
            )
        return steps


def _array_address(array: Any) -> TableEntry:
    """Return the launcher's reference to a NumPy array, which keeps it alive.

    For None it is ("address", 0), a null pointer.
    """
    return ("address", 0) if array is None else ("address", array.ctypes.data, array)


def batch_axes(
    a: Sequence[int], b: Sequence[int], size_a: int, size_b: int, size_c: int
) -> list[tuple[int, int, int, int]]:
    """Return the axes of a batch of matrix products, as few as possible and at least one.

    Axes of extent 1 are left out, and neighbouring axes whose strides are contiguous are merged. A
    batch of one product is one axis of extent 1.

    Args:
        a: the batch shape of the left operand.
        b: that of the right operand, of the same rank; both broadcast against each other.
        size_a: elements of a left matrix.
        size_b: elements of a right matrix.
        size_c: elements of a result matrix.

    Returns:
        For each axis, outermost first, its extent and the strides of a, b and c in elements.
    """
    axes: list[tuple[int, int, int, int]] = []
    for n_a, n_b in zip(reversed(a), reversed(b), strict=True):
        n = n_b if n_a == 1 else n_a
        if n != 1:
            strides = (0 if n_a == 1 else size_a, 0 if n_b == 1 else size_b, size_c)
            inner = axes[-1] if axes else None
            if inner and all(s == i * inner[0] for s, i in zip(strides, inner[1:], strict=True)):
                axes[-1] = (inner[0] * n, *inner[1:])
            else:
                axes.append((n, *strides))
        size_a, size_b, size_c = size_a * n_a, size_b * n_b, size_c * n
    return axes[::-1] or [(1, 0, 0, 0)]


def sum_tile_shape(m: int, n: int) -> tuple[int, int]:
    """Return rows and columns of the tiles of a sum of products (m, n), by its shape only.

    Rows are a multiple of 8, columns of 16. There are about `SUM_TILES` tiles of equal size, fewer
    where one would have less than 64 rows or 128 columns.
    """
    down = max(1, min(SUM_TILES, m // 64))
    across = max(1, min(-(-SUM_TILES // down), n // 128))
    return -(-m // (8 * down)) * 8, -(-n // (16 * across)) * 16


def _offset_by(ref: TableEntry, nbytes: int) -> TableEntry:
    """Return a launcher's reference to ``nbytes`` bytes after another one.

    For an input or output it is (kind, index, nbytes).
    """
    if ref[0] in ("address", "arena"):
        return (ref[0], ref[1] + nbytes, *ref[2:])
    return ref[0], ref[1], nbytes
