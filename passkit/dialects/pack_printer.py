"""The printer of packs of loop nests: one function, in which each block executes its nest.

The arguments are one structure. A nest that computes several parts reads its pointers and sizes
from the structure at positions that depend on the part: constants away from a multiple of it, or
in a table beside the function.

In a pack of several phases each nest is a function of its own, which a block of the grid calls for
one block of the phase after another. All blocks of the grid wait for each other between phases.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from textwrap import wrap

from passkit.dialects.base import Dialect
from passkit.dialects.c_printer import INDENT, IRPrinter
from passkit.ir.loop import BarrierScope, Bind, LoopBuffer, StorageScope
from passkit.ir.pack import PackedNest, PackIR, PackPhase

GATE = """\
// A cooperative launch: blocks wait for each other here, so that all must run at once.
__device__ uint32_t {name}_gate;
"""
WORDS = "const uint64_t *const pack_words = (const uint64_t *)&words;"


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
        self.loops = dialect.loop_templates
        names = [*(b.name for b in pack.params), *pack.sizes]
        self.position = {n: k for k, n in enumerate(names)}
        self.tables: list[str] = []

    def text(self) -> str:
        """Return the text of the structure, the tables and the function."""
        launch, name, phases = self.pack.launch, self.name, self.pack.phases
        bounds = f"__launch_bounds__({launch.threads}, {launch.blocks})"
        argument = f"const __grid_constant__ {name}_words words"
        lines = [f'extern "C" __global__ void {bounds} {name}({argument}) {{']
        functions: list[str] = []
        if len(phases) == 1:
            lines.append(INDENT + WORDS)
        if self.pack.shared_nbytes:
            nbytes = self.pack.shared_nbytes
            lines.append(f"  __shared__ __align__(16) unsigned char pack_shared[{nbytes}];")
        if len(phases) == 1:
            bodies = [self._nest(nest) for nest in self.pack.nests]
            lines += [INDENT + line for line in self._branches(phases[0], bodies)]
        else:
            functions = GATE.format(name=name).splitlines()
            for k, phase in enumerate(phases):
                if k:
                    lines.append(f"  wait_of_grid(&{name}_gate);")
                lines += [INDENT + line for line in self._phase(phase, f"{name}_{k}", functions)]
        struct = [f"struct {name}_words {{", *self._fields(), "};"]
        return "\n".join([*struct, *self.tables, *functions, *lines, "}"]) + "\n"

    @property
    def block(self) -> str:
        """Return the text of the number of a block of a phase."""
        return "blockIdx.x" if len(self.pack.phases) == 1 else "phase_block"

    def _phase(self, phase: PackPhase, name: str, functions: list[str]) -> list[str]:
        """Return the loop over the blocks of a phase of several.

        Arrays in shared memory are those of the next block after all threads have left this one.

        Args:
            phase: the phase.
            name: the beginning of the names of its functions.
            functions: the lines of the functions of nests, to which those of its nests are added.
        """
        calls: list[list[str]] = []
        has_shared = any(nest.kernel.shared_nbytes for nest in phase.nests)
        shared = ", unsigned char *const pack_shared" if has_shared else ""
        for k, nest in enumerate(phase.nests):
            words = f"const {self.name}_words &words"
            head = f"PK_FN void {name}_{k}({words}, const int phase_block{shared})"
            body = self._nest(nest)
            if any("pack_words" in line for line in body):
                body = [WORDS, *body]
            functions += [f"{head} {{", *(INDENT + line for line in body), "}"]
            calls.append(
                [f"{name}_{k}(words, phase_block{', pack_shared' if has_shared else ''});"]
            )
        loop = (
            f"for (int phase_block = blockIdx.x; phase_block < (int)words.{phase.end}; "
            "phase_block += gridDim.x) {"
        )
        inside = calls[0] if len(calls) == 1 else self._branches(phase, calls)
        inside = [*inside, *(["__syncthreads();"] if has_shared else [])]
        return [loop, *(INDENT + line for line in inside), "}"]

    def _branches(self, phase: PackPhase, bodies: Sequence[Sequence[str]]) -> list[str]:
        """Return the branches of a phase: each block executes the body of its nest."""
        lines: list[str] = []
        nests = phase.nests
        for k, body in enumerate(bodies):
            head = "{"
            if k + 1 < len(nests):
                end = nests[k + 1].parts[0].first
                head = f"if ((int){self.block} < (int)words.{end}) {{"
            if k:
                lines[-1] += f" else {head}"
            else:
                lines.append(head)
            lines += [INDENT + line for line in body]
            lines.append("}")
        return lines

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
            where = f"pack_words + {begin}, {self.block}"
            lines.append(f"const int pack_part = part_of<{len(nest.parts)}>({where});")
        for k, b in enumerate(kernel.params):
            kind = self._pointer(b)
            word = self._word([p.buffers[k] for p in nest.parts])
            lines.append(f"{kind}const {b.name} = ({kind}){word};")
        index_type = self.loops.index_types[kernel.index_bits]
        for k, n in enumerate(kernel.sizes):
            word = self._word([p.sizes[k] for p in nest.parts])
            lines.append(f"const {index_type} {n} = ({index_type}){word};")
        more, threads = self._threads(nest)
        barriers = dict(self.loops.barriers)
        if kernel.launch.threads < self.pack.launch.threads:
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
        texts, lines = {**self.loops.threads, Bind.GRID: "pack_block"}, []
        if own.x != whole.x:
            lines.append(f"const int pack_x = threadIdx.x % {own.x};")
            texts[Bind.THREAD_X] = "pack_x"
        if own.y != whole.y:
            lines.append(f"const int pack_y = threadIdx.x / {own.x} % {own.y};")
            texts[Bind.THREAD_Y] = "pack_y"
        block = f"(int){self.block} - (int){self._word([p.first for p in nest.parts])}"
        if own.threads != whole.threads:
            together = self.pack.side_by_side(nest)
            lines.append(f"const int pack_group = threadIdx.x / {own.threads};")
            block = f"({block}) * {together} + pack_group"
        return [*lines, f"const int pack_block = {block};"], texts

    def _guarded(self, nest: PackedNest, lines: list[str]) -> list[str]:
        """Return statements, in a branch for blocks that exist if some threads have none."""
        own, whole = nest.kernel.launch.threads, self.pack.launch.threads
        if own == whole:
            return lines
        together = self.pack.side_by_side(nest)
        blocks = self._word([p.blocks or "" for p in nest.parts])
        within = "" if together * own == whole else f"pack_group < {together} && "
        head = f"if ({within}pack_block < (int){blocks}) {{"
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
