"""The C printer: a kernel AST and a dialect's table give the text of a kernel.

Here stands the kernel around its stages: arguments, scratch, phases and their loops.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from itertools import groupby

from attrs import evolve

from passkit.ast import Load, Var, const
from passkit.ast.stage import Buffer, Dot, KernelAST, Let, Part, Phase, Place, Stage
from passkit.ast.tidy import expressions
from passkit.ast.walk import walk
from passkit.dialects.base import Dialect, PartTemplates, PhaseTemplates
from passkit.dialects.body import Body
from passkit.dialects.bundled import Tie
from passkit.dialects.expressions import Scalars
from passkit.dialects.lost_nans import VARIANT, with_lost_nans
from passkit.dialects.odometer import Digit, digits_of, print_start, print_step
from passkit.dialects.phases import by_phase, passed_on
from passkit.dialects.row_lanes import has_rows
from passkit.dialects.separate import is_packed, separated
from passkit.dialects.stages import print_fused, print_row_groups, print_stage
from passkit.dialects.ties import ties_of
from passkit.errors import CodeGenError
from passkit.ir.vector import VECTOR_WIDTH
from passkit.sharing.shared import ALIGN
from passkit.values.dtype import int64


def print_kernel(
    ast: KernelAST, name: str, dialect: Dialect, aliased: Set[str] = frozenset()
) -> str:
    """The text of one kernel, without the dialect's prelude.

    Results are to take the place of inputs where buffers are ``aliased``.
    """
    if f"{VARIANT}/float32" in dialect.calls:
        ast = with_lost_nans(ast)
    if len(ast.phases) < 2:
        return _print_phase(ast, name, dialect, dialect.kernel, aliased)
    spoken = dialect.phases
    if spoken is None:
        raise CodeGenError(
            f"dialect {dialect.name} has no spelling for a kernel of {len(ast.phases)} phases; "
            f"give it PhaseTemplates, or take its operators out of keep_together"
        )
    if not spoken.wait:
        return _print_functions(ast, name, dialect, spoken)
    return spoken.head.format(name=name) + _Printer(ast, dialect).kernel(name, dialect.kernel)


def _print_functions(ast: KernelAST, name: str, dialect: Dialect, spoken: PhaseTemplates) -> str:
    """A kernel whose phases are functions, and what calls the one that it is launched for."""
    names = [f"{name}_phase{k}" for k in range(len(ast.phases))]
    texts = [
        _print_phase(own, function, dialect, spoken.function)
        for own, function in zip(by_phase(ast), names, strict=True)
    ]
    if not spoken.turn:
        return "".join(texts)
    body = Body(Scalars(dialect, ast.sizes, frozenset(), {}), ())
    params = [dialect.size.format(name=n) for n in ast.sizes]
    body.open(dialect.kernel.format(name=name, params=", ".join(params)))
    for k, function in enumerate(names):
        body.line(spoken.turn.format(k=len(ast.sizes), phase=k, function=function))
    body.close()
    return "".join(texts) + "\n".join(body.lines) + "\n"


def _print_phase(
    ast: KernelAST, name: str, dialect: Dialect, head: str, aliased: Set[str] = frozenset()
) -> str:
    """The text of a kernel of one phase, opened by ``head``."""
    if dialect.parts is not None and is_packed(ast):
        return _print_parts(ast, name, dialect, dialect.parts, head)
    return _Printer(ast, dialect, aliased).kernel(name, head)


def _print_parts(
    ast: KernelAST, name: str, dialect: Dialect, spoken: PartTemplates, head: str
) -> str:
    """A kernel whose parts are functions: those that do the same are one, called for each."""
    printed: dict[KernelAST, str] = {}
    known: dict[str, str] = {}
    functions: list[str] = []
    body = Body(Scalars(dialect, ast.sizes, frozenset(), {}), ())
    size_of = {n: spoken.size.format(k=k) for k, n in enumerate(ast.sizes)}
    params = [dialect.size.format(name=n) for n in ast.sizes]
    body.open(head.format(name=name, params=", ".join(params)))
    for part in separated(ast):
        if part.ast not in printed:
            printed[part.ast] = _Printer(part.ast, dialect).kernel("PART", spoken.function)
        text = printed[part.ast]
        if text not in known:
            known[text] = f"{name}_part{len(known)}"
            functions.append(text.replace("PART", known[text], 1))
        first, last = (size_of.get(t, t) for t in map(body.scalars.expr, part.span))
        buffers = ", ".join(spoken.buffer.format(k=k) for k in part.buffers)
        sizes = ", ".join(spoken.size.format(k=k) for k in part.sizes) or "0"
        begin, end = "begin", f"end < {last} ? end : {last}"
        if first != "0":
            begin, end = f"begin > {first} ? begin - {first} : 0", f"({end}) - {first}"
        call = spoken.call.format(
            **{"name": known[text], "buffers": buffers, "sizes": sizes},
            **{"first": first, "last": last, "begin": begin, "end": end},
        )
        for line in call.split("\n"):
            body.line(line)
    body.close()
    return "\n".join([*functions, *body.lines]) + "\n"


class _Printer:
    def __init__(self, ast: KernelAST, dialect: Dialect, aliased: Set[str] = frozenset()) -> None:
        self.ast, self.dialect = ast, dialect
        self.aliased = aliased if dialect.aliased else frozenset[str]()
        self.ties: Iterator[Tie | None] = iter(())
        self.registers = [b for b in ast.scratch if b.place is Place.LANES]
        self.shared = [b for b in ast.scratch if b.place is Place.SHARED]
        names = frozenset(b.name for b in self.registers)
        scratch = {b.name: b.extent for b in self.shared}
        scalars = Scalars(dialect, ast.sizes, names, scratch)
        rereads = dialect.memory[0] != "" and _rereads(ast)
        self.body = Body(scalars, (*ast.params, *ast.scratch), has_rows(ast), rereads, self.aliased)

    def kernel(self, name: str, head: str) -> str:
        d, body = self.dialect, self.body
        crossing = d.buffer if d.phases is None else d.phases.buffer or d.buffer
        shared = passed_on(self.ast) if len(self.ast.phases) > 1 else ()
        spoken = {**dict.fromkeys(self.aliased, d.aliased), **dict.fromkeys(shared, crossing)}
        params = [spoken.get(b.name, d.buffer).format(**self._spoken(b)) for b in self.ast.params]
        params += [d.size.format(name=n) for n in self.ast.sizes]
        body.open(head.format(name=name, params=", ".join(params)))
        for text in (*d.prologue, *self._fetched_buffers(), *self._fetched_sizes()):
            body.line(text)
        self._scratch()
        for k, phase in enumerate(self.ast.phases):
            if k and d.phases is not None:
                body.line(d.phases.wait.format(name=name))
            self._phase(phase)
        if body.streams and d.fence:
            body.line(d.fence)
        body.close()
        return "\n".join(self._used(body.lines)) + "\n"

    def _spoken(self, b: Buffer) -> dict[str, str]:
        """What a template may say of a buffer."""
        const = "" if b.written else "const "
        return {"type": self.dialect.type_of(b.dtype), "const": const, "name": b.name}

    def _fetched_buffers(self) -> dict[str, str]:
        """The lines that fetch buffers, and the buffer of each."""
        if not self.dialect.unpack:
            return {}
        template, params = self.dialect.unpack, enumerate(self.ast.params)
        return {template.format(k=k, **self._spoken(b)): b.name for k, b in params}

    def _fetched_sizes(self) -> dict[str, str]:
        """The lines that fetch size arguments, and the argument of each."""
        if not self.dialect.unpack_size:
            return {}
        template, sizes = self.dialect.unpack_size, enumerate(self.ast.sizes)
        return {template.format(name=n, k=k): n for k, n in sizes}

    def _used(self, lines: list[str]) -> list[str]:
        """The lines without fetched arguments that nothing reads."""
        fetched = self._fetched_buffers() | self._fetched_sizes()
        rest = "\n".join(x for x in lines if x.strip() not in fetched)
        words = set(re.findall(r"\w+", rest))
        return [x for x in lines if fetched.get(x.strip(), "") in words or x.strip() not in fetched]

    def _scratch(self) -> None:
        """The arrays that a tile's stages share, and those of its rows: behind, where all have.

        So they are in every language where arrays have places in scratch: each kind by itself.
        """
        d = self.dialect
        if self.shared and d.scratch_base:
            self.body.line(d.scratch_base)
        told = any(b.offset is not None for b in self.shared)
        apart = told or bool(d.scratch_of_row)
        of_tile = [b for b in self.shared if not (b.of_row and apart)]
        of_rows = [b for b in self.shared if b.of_row and apart]
        for b in self.shared:
            by_row = b.of_row and bool(d.scratch_of_row)
            arrays, front = (of_rows, of_tile) if b.of_row and apart else (of_tile, [])
            before = _nbytes(arrays[: arrays.index(b)]) if b.offset is None else str(b.offset)
            offset = _plus(_total(front), before) if front else before
            values = {"type": d.type_of(b.dtype), "name": b.name, "offset": offset}
            template = d.scratch_of_row if by_row else d.scratch
            self.body.line(template.format(total=_total(arrays), **values))

    def _phase(self, phase: Phase) -> None:
        if self.dialect.bundles is not None:
            self.ties = iter(ties_of(phase, self.ast, self.aliased, self.dialect.bundles))
        if phase.parts[0].span is not None:
            self._packed(phase)
            return
        self.body.loop(self.dialect.grid, phase.tile)
        self._in_order(phase.parts)
        self.body.close()

    def _packed(self, phase: Phase) -> None:
        """The tiles of packed parts: which part a tile is of holds for all its threads alike."""
        block = Var("block", phase.tile.var.dtype)
        self.body.loop(self.dialect.grid, evolve(phase.tile, var=block))
        branches = [(span, list(parts)) for span, parts in groupby(phase.parts, lambda p: p.span)]
        for k, (span, parts) in enumerate(branches):
            assert span is not None
            first, last = span
            test = f"if ({self.body.scalars.expr(block < last)}) {{"
            head = test if k == 0 else f"}} else {test}" if k < len(branches) - 1 else "} else {"
            self.body.depth -= k > 0
            self.body.line(head)
            self.body.depth += 1
            self.body.let(Let(phase.tile.var, block if first == const(0, int64) else block - first))
            self._in_order(parts)
        self.body.close()
        self.body.close()

    def _in_order(self, parts: Sequence[Part]) -> None:
        """The parts of a tile, each in a scope of its own."""
        for part in parts:
            if len(parts) > 1:
                self.body.scope()
            self._part(part, parts)
            if len(parts) > 1:
                self.body.close()

    def _part(self, part: Part, beside: Sequence[Part]) -> None:
        rows, digits = part.rows, list[Digit]()
        if part.waits:
            self.body.wait()
        for let in part.lets:
            self.body.let(let)
        if not self.body.aliased and print_row_groups(part, self.body):
            return
        if rows is not None:
            digits = digits_of(rows, part.row_lets) if self.dialect.counter else []
            print_start(rows, digits, self.body)
            self.body.loop(self.dialect.warp, rows)
        for let in part.row_lets:
            if let not in [d for d, _ in digits]:
                self.body.let(let)
        for b in self.registers:
            self._array(b)
        self.body.by_row = rows is not None
        if not print_fused(part, beside, self.body):
            for stage in part.stages:
                self.body.tie = next(self.ties, None)
                print_stage(stage, self.body)
        self.body.by_row = False
        if rows is not None:
            print_step(digits, self.body)
            self.body.close()

    def _array(self, b: Buffer) -> None:
        """The registers that hold a row's vectors between its stages."""
        v = self.dialect.vectors
        if v is None or not isinstance(b.extent, int):
            raise CodeGenError(
                f"dialect {self.dialect.name} keeps no row in registers; plan for its own target"
            )
        kind, count = self.dialect.type_of(b.dtype), -(-b.extent // VECTOR_WIDTH)
        self.body.line(v.array.format(type=kind, name=b.name, count=count))


def _rereads(ast: KernelAST) -> bool:
    """Whether a kernel reads what it has written to a result."""
    results = {b.name for b in ast.params if b.written}
    stages = [s for phase in ast.phases for s in phase.stages]
    if any(isinstance(s, Dot) and {s.a.buffer, s.b.buffer} & results for s in stages):
        return True
    values = (x for s in stages if isinstance(s, Stage) for t in s.body for x in expressions(t))
    return any(isinstance(x, Load) and x.buffer in results for v in values for x in walk(v))


def _total(arrays: Sequence[Buffer]) -> str:
    """How much memory arrays take, which may lie one over the other."""
    if all(b.offset is None for b in arrays):
        return _nbytes(arrays)
    begins = (0 if b.offset is None else b.offset for b in arrays)
    ends = dict.fromkeys(
        _plus(str(begin), _nbytes([b])) for b, begin in zip(arrays, begins, strict=True)
    )
    most = max((int(e) for e in ends if e.isdigit()), default=0)
    text = str(most)
    for end in (e for e in ends if not e.isdigit()):
        text = f"({text} > {end} ? {text} : {end})"
    return text


def _plus(a: str, b: str) -> str:
    return str(int(a) + int(b)) if a.isdigit() and b.isdigit() else f"{a} + {b}"


def _nbytes(arrays: Sequence[Buffer]) -> str:
    """How much memory arrays take one behind the other: what is known as one number."""
    known, open_ones = 0, []
    for b in arrays:
        if isinstance(b.extent, int):
            known += -(-b.extent * b.dtype.nbytes // ALIGN) * ALIGN
        else:
            open_ones.append(f"({b.extent} * {b.dtype.nbytes} + {ALIGN - 1}) / {ALIGN} * {ALIGN}")
    return " + ".join([str(known)] * (known > 0 or not open_ones) + open_ones)
