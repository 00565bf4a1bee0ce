"""Program tables: a program as plain tuples over symbolic sizes, bound to the shapes of a call.

An entry of a table is one of these tuples, or None for a step that does nothing:

- ``("launch", entry, grid, scratch bytes, seconds, points, weight, refs, sizes)``; a kernel of
  several phases has a pair (tiles, seconds) for each phase as its grid
- ``("gemm", name, entry, refs, batch of a, batch of b, m, n, k, transpose flags)``
- ``("gemm_sum", name, entry, refs, m, n, k of each pair, transpose flags)``
- ``("convolution", entry, itemsize, refs, fields of a Convolution, whether the filter is constant,
  stream bytes, epilogue or None)``
- ``("window_products", entry, refs, fields of a Convolution)``
- ``("python", function, views read, views written)``
- ``("copy", source ref, target ref, bytes)``

A ref is a kind ("input", "output", "arena" or "constant") and an index. A view is a ref, NumPy's
dtype number and a shape. Except for Python functions, entries consist of numbers, text and symbolic
sizes, so that plan files can hold them.

`table_binder` binds entries to the shapes of a call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from passkit.errors import FeedError
from passkit.runtime.feeds import all_sizes
from passkit.runtime.native.launcher import launcher
from passkit.runtime.table_binder import RowChain, TableBinder, TableEntry
from passkit.values.dtype import DType
from passkit.values.size import Extent, Shape, arena_layout, evaluate


class ProgramTable:
    """The part of a program that is needed to run it on the CPU.

    Attributes:
        inputs: (name, dtype, shape) of each input.
        outputs: (dtype, shape) of each output.
        entries: the entries, in execution order.
        guards: pairs of sizes that must be equal, each with a description.
        slots: for each arena slot, the sizes in bytes of the values stored in it.
        donors: for each output, the position of the input over which it may be stored, or -1.
        constants: arrays whose addresses are fixed.
        parallel: steps that are estimated to take more seconds than this are shared among threads.
        chains: the sequences of entries that run block by block of rows.
        packed_filters: constant filters in the layout of their kernel, for later calls of `bind`.
        epilogues: the number of kernels that the last `bind` merged into convolutions.
        row_chains: the number of chains that the last `bind` merged into one launch.
    """

    __slots__ = (
        "chains",
        "constants",
        "donors",
        "entries",
        "epilogues",
        "guards",
        "inputs",
        "outputs",
        "packed_filters",
        "parallel",
        "row_chains",
        "slots",
    )

    def __init__(
        self,
        inputs: Sequence[tuple[str, DType, Shape]],
        outputs: Sequence[tuple[DType, Shape]],
        entries: Sequence[TableEntry | None],
        guards: Sequence[tuple[Extent, Extent, str]],
        slots: Sequence[Sequence[Extent]],
        donors: Sequence[int],
        constants: Sequence[Any],
        parallel: float,
        chains: Sequence[RowChain] = (),
    ) -> None:
        self.inputs, self.outputs, self.entries, self.guards = inputs, outputs, entries, guards
        self.slots, self.donors = slots, donors
        self.constants, self.parallel = constants, parallel
        self.chains = chains
        self.packed_filters: dict[Any, Any] = {}
        self.epilogues = self.row_chains = 0

    def sizes(self, shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
        """Return the value of each symbolic size, by name, for the shapes of the inputs.

        ``shapes`` has one for each input, in order and of its rank.

        Raises:
            FeedError: An extent does not match that of its input, or the shapes do not determine a
                size.
            ShapeError: An extent divides by zero.
        """
        pairs = [
            (name, s, actual) for (name, _, s), actual in zip(self.inputs, shapes, strict=True)
        ]
        for name, shape, actual in pairs:
            for axis, (declared, number) in enumerate(zip(shape, actual, strict=True)):
                if isinstance(declared, int) and declared != number:
                    raise FeedError(
                        f"input '{name}' needs extent {declared} at axis {axis}, got {number}; "
                        "reshape it or pass another array"
                    )
        return all_sizes(pairs)

    def broken(self, sizes: Mapping[str, int]) -> str | None:
        """Return the description of the first guard that does not hold, None if all do.

        ``sizes`` has the values of symbolic sizes. Raises: ShapeError where one of a guard is
        missing in it, or a size in a guard divides by zero.
        """
        for a, b, description in self.guards:
            if evaluate(a, sizes) != evaluate(b, sizes):
                return description
        return None

    def bind(
        self,
        shapes: Sequence[tuple[int, ...]],
        sizes: Mapping[str, int],
        between: Callable[[int, list[TableEntry]], Callable[..., None]] | None = None,
    ) -> Any:
        """Build the launcher's `Bound` for the shapes of the inputs.

        Sets ``epilogues`` and ``row_chains``, and adds packed constant filters to
        ``packed_filters``.

        Args:
            shapes: the shape of each input.
            sizes: the value of each symbolic size.
            between: for profiles; ``between(k, steps)`` gets the index of an entry and the launcher
                steps it became, and returns a function that is called after them. No kernel is then
                merged into a convolution, no entries run block by block, and each is a native call
                of its own. None for none.

        Returns:
            A `Bound` of the launcher, in which every size is a number and every slot an offset.

        Raises:
            ShapeError: A symbolic size has no value.
            CompilerError: The launcher, or the unit of convolutions, of which the program has one,
                cannot be compiled.
            CacheError: Others can write to the cache folder, from which these are loaded.
            SettingError: The launcher is not loaded yet, and PASSKIT_THREADS is no number.
        """
        offsets, arena_nbytes = arena_layout(self.slots, sizes)
        binder = TableBinder(
            self.constants, self.packed_filters, self.parallel, offsets, sizes, arena_nbytes
        )
        bound: list[TableEntry] = []
        self.epilogues = self.row_chains = 0
        chain_steps: dict[int, list[TableEntry]] = {}
        chains = {chain.positions[0]: chain for chain in self.chains} if between is None else {}
        for k, entry in enumerate(self.entries):
            if k in chains:
                members = [m for p in chains[k].positions if (m := self.entries[p]) is not None]
                member_steps = binder.chain_steps(members, chains[k].tiles)
                chain_steps.update(zip(chains[k].positions, member_steps, strict=True))
                self.row_chains += binder.merged_chain
            if k in chain_steps:
                bound += chain_steps[k]
                continue
            merged, binder.merged_following = binder.merged_following, False
            self.epilogues += merged
            is_last = between is not None or k + 1 == len(self.entries)
            binder.following = None if is_last else self.entries[k + 1]
            steps = [] if merged or entry is None else binder.steps(entry)
            bound += steps
            if between is not None:
                bound.append(("python", between(k, steps), [], []))
        outputs = [
            (d.numpy.num, binder.shape(s), donor)
            for (d, s), donor in zip(self.outputs, self.donors, strict=True)
        ]
        return launcher().Bound(
            tuple(shapes),
            outputs,
            binder.arena_nbytes,
            binder.scratch_nbytes,
            bound,
            seconds=binder.seconds,
        )
