"""The printer of packs of loop nests: one function, in which each block executes its nest.

The arguments are one structure. A nest that computes several parts reads its pointers and sizes
from the structure at positions that depend on the part: constants away from a multiple of it, or
in a table beside the function.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from textwrap import wrap

from passkit.dialects.base import Dialect
from passkit.dialects.c_printer import BARRIERS, INDENT, INDEX_TYPES, THREADS, IRPrinter
from passkit.ir.loop import BarrierScope, Bind, LoopBuffer, StorageScope
from passkit.ir.pack import PackedNest, PackIR


def print_pack(pack: PackIR, name: str, dialect: Dialect) -> str:
    """Return the text of a pack.

    Args:
        pack: the pack, without violations of `passkit.ir.verify_pack`.
        name: the name of its function.
        dialect: the language; it has types, literals and functions.

    Raises: CodeGenError for a statement that the final form does not have.
    """
    return _PackPrinter(pack, name, dialect).text()


class _PackPrinter:
    """The text of one pack while it grows."""

    def __init__(self, pack: PackIR, name: str, dialect: Dialect) -> None:
        self.pack, self.name, self.dialect = pack, name, dialect
        names = [*(b.name for b in pack.params), *pack.sizes]
        self.position = {n: k for k, n in enumerate(names)}
        self.tables: list[str] = []

    def text(self) -> str:
        """Return the text of the structure, the tables and the function."""
        launch, name = self.pack.launch, self.name
        bounds = f"__launch_bounds__({launch.threads}, {launch.blocks})"
        argument = f"const __grid_constant__ {name}_words words"
        lines = [
            f'extern "C" __global__ void {bounds} {name}({argument}) {{',
            "  const uint64_t *const pack_words = (const uint64_t *)&words;",
        ]
        if self.pack.shared_nbytes:
            nbytes = self.pack.shared_nbytes
            lines.append(f"  __shared__ __align__(16) unsigned char pack_shared[{nbytes}];")
        nests = self.pack.nests
        for k, nest in enumerate(nests):
            head = "{"
            if k + 1 < len(nests):
                end = nests[k + 1].parts[0].first
                head = f"if ((int)blockIdx.x < (int)words.{end}) {{"
            lines[-1] += f" else {head}" if k else ""
            lines += [] if k else [f"  {head}"]
            lines += [INDENT * 2 + line for line in self._nest(nest)]
            lines.append("  }")
        struct = [f"struct {name}_words {{", *self._fields(), "};"]
        return "\n".join([*struct, *self.tables, *lines, "}"]) + "\n"

    def _fields(self) -> list[str]:
        """Return the fields of the structure of arguments; neighbours of one type share a line."""
        names = [(self._pointer(b), b.name) for b in self.pack.params]
        names += [("int64_t ", n) for n in self.pack.sizes]
        lines: list[str] = []
        for kind, group in groupby(names, key=lambda pair: pair[0]):
            star = "*" if kind.endswith("*") else ""
            declared = ", ".join(f"{star}{name}" for _, name in group)
            text = f"{kind.removesuffix('*')}{declared};"
            lines += wrap(text, 96, initial_indent=INDENT, subsequent_indent=INDENT * 2)
        return lines

    def _pointer(self, b: LoopBuffer) -> str:
        """Return the type of a pointer to a buffer, with the star."""
        const = "" if b.written else "const "
        return f"{const}{self.dialect.type_of(b.dtype)} *"

    def _nest(self, nest: PackedNest) -> list[str]:
        """Return the lines of a nest: its part, its arguments, its arrays and its statements."""
        kernel, lines = nest.kernel, []
        if len(nest.parts) > 1:
            begin = self.position[nest.parts[0].first]
            where = f"pack_words + {begin}, blockIdx.x"
            lines.append(f"const int pack_part = part_of<{len(nest.parts)}>({where});")
        for k, b in enumerate(kernel.params):
            kind = self._pointer(b)
            word = self._word([p.buffers[k] for p in nest.parts])
            lines.append(f"{kind}const {b.name} = ({kind}){word};")
        index_type = INDEX_TYPES[kernel.index_bits]
        for k, n in enumerate(kernel.sizes):
            word = self._word([p.sizes[k] for p in nest.parts])
            lines.append(f"const {index_type} {n} = ({index_type}){word};")
        more, threads = self._threads(nest)
        barriers = dict(BARRIERS)
        if self.pack.side_by_side(nest) > 1:
            barriers[BarrierScope.BLOCK] = f"wait_of_group(pack_group, {kernel.launch.threads});"
        printer = IRPrinter(kernel, self.dialect, threads, barriers)
        body = [*self._arrays(nest, printer), *printer.body_lines()]
        return [*lines, *more, *self._guarded(nest, body)]

    def _word(self, names: Sequence[str]) -> str:
        """Return the argument of a part, given the names of the arguments of all parts."""
        positions = [self.position[n] for n in names]
        if len(set(positions)) == 1:
            return f"words.{names[0]}"
        step = positions[1] - positions[0]
        if positions == [positions[0] + step * k for k in range(len(names))] and step > 0:
            factor = f" * {step}" if step > 1 else ""
            return f"pack_words[pack_part{factor} + {positions[0]}]"
        table = f"{self.name}_at{len(self.tables)}"
        texts = ", ".join(map(str, positions))
        self.tables.append(f"static __constant__ const uint16_t {table}[] = {{{texts}}};")
        return f"pack_words[{table}[pack_part]]"

    def _threads(self, nest: PackedNest) -> tuple[list[str], dict[Bind, str]]:
        """Return definitions of block and thread indices of a nest, and their texts."""
        own, whole = nest.kernel.launch, self.pack.launch
        texts, lines = {**THREADS, Bind.GRID: "pack_block"}, []
        if own.x != whole.x:
            lines.append(f"const int pack_x = threadIdx.x % {own.x};")
            texts[Bind.THREAD_X] = "pack_x"
        if own.y != whole.y:
            lines.append(f"const int pack_y = threadIdx.x / {own.x} % {own.y};")
            texts[Bind.THREAD_Y] = "pack_y"
        block = f"(int)blockIdx.x - (int){self._word([p.first for p in nest.parts])}"
        together = self.pack.side_by_side(nest)
        if together > 1:
            lines.append(f"const int pack_group = threadIdx.x / {own.threads};")
            block = f"({block}) * {together} + pack_group"
        return [*lines, f"const int pack_block = {block};"], texts

    def _guarded(self, nest: PackedNest, lines: list[str]) -> list[str]:
        """Return statements, in a branch for blocks that exist if several are side by side."""
        if self.pack.side_by_side(nest) == 1:
            return lines
        blocks = self._word([p.blocks or "" for p in nest.parts])
        head = f"if (pack_block < (int){blocks}) {{"
        return [head, *(INDENT + line for line in lines), "}"]

    def _arrays(self, nest: PackedNest, printer: IRPrinter) -> list[str]:
        """Return the declarations of a nest's arrays; those in shared memory are parts of one."""
        lines, begin = [], 0
        nbytes = nest.kernel.shared_nbytes
        group = f" + pack_group * {nbytes}" if self.pack.side_by_side(nest) > 1 else ""
        for b in nest.kernel.arrays:
            if b.scope is not StorageScope.SHARED:
                lines.append(printer.array(b))
                continue
            kind = self.dialect.type_of(b.dtype)
            where = f"pack_shared + {begin}{group}"
            lines.append(f"{kind} *const {b.name} = ({kind} *)({where});")
            begin += -(-int(b.extent) * b.dtype.nbytes // 16) * 16
        return lines
