"""The printer of kernel ASTs in final form: the text of a kernel in a dialect.

This module prints what surrounds the stages: parameters, scratch, phases and their loops. Stages
are printed by `vector_printer` and `thread_printer`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

from attrs import evolve

from passkit.ast import Var, const
from passkit.ast.stage import Buffer, Let, Loop, Place
from passkit.dialects.base import Dialect
from passkit.dialects.body import Body
from passkit.dialects.expressions import Scalars
from passkit.dialects.templates import PartTemplates
from passkit.dialects.thread_printer import ThreadPrinter
from passkit.dialects.vector_printer import VectorPrinter
from passkit.errors import CodeGenError
from passkit.ir.final import (
    FinalForm,
    FinalKernel,
    FinalPart,
    FinalPhase,
    FinalStage,
    PackedKernel,
    PhasedKernel,
    RowDigit,
)
from passkit.ir.rewrite import substitute
from passkit.ir.threads import ThreadStmt
from passkit.ir.vector import VectorStmt
from passkit.schedule.shared_plan import ALIGN
from passkit.values.dtype import int64


def print_final(form: FinalForm, name: str, dialect: Dialect) -> str:
    """Return the text of a kernel in final form, without the dialect's preamble.

    Args:
        form: the kernel.
        name: the name of its function.
        dialect: the language.

    Raises: CodeGenError for rows in registers that the dialect cannot declare.
    """
    if isinstance(form, PhasedKernel):
        return _print_phases(form, name, dialect)
    return _print_phase(form, name, dialect, dialect.kernel)


def _print_phases(form: PhasedKernel, name: str, dialect: Dialect) -> str:
    """Return a kernel whose phases are functions, and the function that calls one of them."""
    templates = dialect.phases
    assert templates is not None
    names = [f"{name}_phase{k}" for k in range(len(form.phases))]
    texts = [
        _print_phase(own, function, dialect, templates.function)
        for own, function in zip(form.phases, names, strict=True)
    ]
    if not templates.turn:
        return "".join(texts)
    body = _opened(form.sizes, name, dialect, dialect.kernel)
    for k, function in enumerate(names):
        body.line(templates.turn.format(k=len(form.sizes), phase=k, function=function))
    body.close()
    return "".join(texts) + "\n".join(body.lines) + "\n"


def _opened(sizes: Sequence[str], name: str, dialect: Dialect, head: str) -> Body:
    """Return the body of a function that calls others, opened by ``head``."""
    body = Body(Scalars(dialect, tuple(sizes), frozenset(), {}), ())
    params = [dialect.size.format(name=n) for n in sizes]
    body.open(head.format(name=name, params=", ".join(params)))
    return body


def _print_phase(form: FinalKernel | PackedKernel, name: str, dialect: Dialect, head: str) -> str:
    """Return the text of a kernel of one phase, opened by ``head``."""
    if isinstance(form, FinalKernel):
        return _Printer(form, dialect).kernel(name, head)
    assert dialect.parts is not None
    return _print_parts(form, name, dialect, dialect.parts, head)


def _print_parts(
    form: PackedKernel, name: str, dialect: Dialect, templates: PartTemplates, head: str
) -> str:
    """Return a kernel whose parts are functions; parts with equal texts share one."""
    printed: dict[int, str] = {}
    names: dict[str, str] = {}
    functions: list[str] = []
    body = _opened(form.sizes, name, dialect, head)
    size_of = {n: templates.size.format(k=k) for k, n in enumerate(form.sizes)}
    for part in form.calls:
        number = id(part.function)  # equal parts share the object
        if number not in printed:
            printed[number] = _Printer(part.function, dialect).kernel("PART", templates.function)
        text = printed[number]
        if text not in names:
            names[text] = f"{name}_part{len(names)}"
            functions.append(text.replace("PART", names[text], 1))
        first, last = (size_of.get(t, t) for t in map(body.scalars.expr, part.span))
        buffers = ", ".join(templates.buffer.format(k=k) for k in part.buffers)
        sizes = ", ".join(templates.size.format(k=k) for k in part.sizes) or "0"
        begin, end = "begin", f"end < {last} ? end : {last}"
        if first != "0":
            begin, end = f"begin > {first} ? begin - {first} : 0", f"({end}) - {first}"
        call = templates.call.format(
            **{"name": names[text], "buffers": buffers, "sizes": sizes},
            **{"first": first, "last": last, "begin": begin, "end": end},
        )
        for line in call.split("\n"):
            body.line(line)
    body.close()
    return "\n".join([*functions, *body.lines]) + "\n"


class _Printer:
    """The text of one kernel while it is printed."""

    def __init__(self, final: FinalKernel, dialect: Dialect) -> None:
        self.final, self.dialect = final, dialect
        self.registers = [b for b in final.scratch if b.place is Place.LANES]
        self.shared = [b for b in final.scratch if b.place is Place.SHARED]
        names = frozenset(b.name for b in self.registers)
        scratch = {b.name: b.extent for b in self.shared}
        scalars = Scalars(dialect, final.sizes, names, scratch)
        rereads = dialect.memory[0] != "" and final.rereads
        self.body = Body(scalars, (*final.params, *final.scratch), rereads)

    def kernel(self, name: str, head: str) -> str:
        """Return the text of the function ``name``, opened by ``head``."""
        d, body = self.dialect, self.body
        templates = dict.fromkeys(self.final.aliased, d.aliased)
        buffers = ((b, templates.get(b.name, d.buffer)) for b in self.final.params)
        params = [template.format(**self._texts(b)) for b, template in buffers]
        params += [d.size.format(name=n) for n in self.final.sizes]
        body.open(head.format(name=name, params=", ".join(params)))
        whole = (d.whole_tiles,) if d.whole_tiles and self.final.has_whole_tiles else ()
        for text in (*d.prologue, *whole, *self._fetched_buffers(), *self._fetched_sizes()):
            body.line(text)
        self._scratch()
        self._phase(self.final.phase)
        if body.streams and d.fence:
            body.line(d.fence)
        body.close()
        return "\n".join(self._used(body.lines)) + "\n"

    def _texts(self, b: Buffer) -> dict[str, str]:
        """Return the values of placeholders for a buffer."""
        const = "" if b.written else "const "
        return {"type": self.dialect.type_of(b.dtype), "const": const, "name": b.name}

    def _fetched_buffers(self) -> dict[str, str]:
        """Return the lines that fetch buffers, each with the name of its buffer."""
        if not self.dialect.unpack:
            return {}
        template, params = self.dialect.unpack, enumerate(self.final.params)
        return {template.format(k=k, **self._texts(b)): b.name for k, b in params}

    def _fetched_sizes(self) -> dict[str, str]:
        """Return the lines that fetch size arguments, each with the name of its argument."""
        if not self.dialect.unpack_size:
            return {}
        template, sizes = self.dialect.unpack_size, enumerate(self.final.sizes)
        return {template.format(name=n, k=k): n for k, n in sizes}

    def _used(self, lines: list[str]) -> list[str]:
        """Return the lines without those that fetch an unused argument."""
        fetched = self._fetched_buffers() | self._fetched_sizes()
        rest = "\n".join(x for x in lines if x.strip() not in fetched)
        words = set(re.findall(r"\w+", rest))
        return [x for x in lines if fetched.get(x.strip(), "") in words or x.strip() not in fetched]

    def _scratch(self) -> None:
        """Add the declarations of scratch arrays.

        Arrays of rows follow those of tiles if arrays have offsets, which are counted in each kind
        by itself.
        """
        d = self.dialect
        is_separate = any(b.offset is not None for b in self.shared)
        of_tile = [b for b in self.shared if not (b.of_row and is_separate)]
        of_rows = [b for b in self.shared if b.of_row and is_separate]
        for b in self.shared:
            arrays, front = (of_rows, of_tile) if b.of_row and is_separate else (of_tile, [])
            before = _nbytes(arrays[: arrays.index(b)]) if b.offset is None else str(b.offset)
            offset = _plus(_total(front), before) if front else before
            values = {"type": d.type_of(b.dtype), "name": b.name, "offset": offset}
            self.body.line(d.scratch.format(**values))

    def _phase(self, phase: FinalPhase) -> None:
        """Add the loop over the tiles of a phase."""
        if phase.parts[0].span is not None:
            self._packed(phase)
            return
        self.body.loop(self.dialect.grid, phase.tile)
        self._in_order(phase.parts)
        self.body.close()

    def _packed(self, phase: FinalPhase) -> None:
        """Add the loop over the tiles of packed parts, with a uniform branch for each part."""
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

    def _in_order(self, parts: Sequence[FinalPart]) -> None:
        """Add the parts of a tile, each in a scope of its own."""
        for part in parts:
            if len(parts) > 1:
                self.body.scope()
            self._part(part)
            if len(parts) > 1:
                self.body.close()

    def _part(self, part: FinalPart) -> None:
        """Add a part, with the loop over its rows if there is one."""
        rows = None if part.are_rows_inside else part.rows
        if part.barrier_before:
            self.body.barrier()
        for let in part.lets:
            self.body.let(let)
        if rows is not None:
            self._start(rows, part.digits)
            self.body.loop(self.dialect.thread, rows)
        if not part.are_rows_inside:
            for let in part.row_lets:
                self.body.let(let)
            for b in self.registers:
                self._array(b)
        for stage in part.stages:
            self._stage(stage)
        if rows is not None:
            self._step(part.digits)
            self.body.close()

    def _stage(self, stage: FinalStage) -> None:
        """Add a stage."""
        if stage.barrier_before:
            self.body.barrier()
        self.body.scalars.positions.update(stage.variables)
        if stage.is_of_vectors:
            vectors: tuple[VectorStmt, ...] = stage.statements  # type: ignore[assignment]
            VectorPrinter(self.body).print(vectors)
        else:
            threads: tuple[ThreadStmt, ...] = stage.statements  # type: ignore[assignment]
            ThreadPrinter(self.body).print(threads)

    def _start(self, rows: Loop, digits: Sequence[RowDigit]) -> None:
        """Declare counted coordinates, with their values in the first row, before the row loop."""
        for let in (d.let for d in digits):
            kind, value = (
                self.dialect.type_of(let.var.dtype),
                substitute(let.value, {rows.var.name: rows.start}),
            )
            values = {"type": kind, "name": let.var.name, "value": self.body.scalars.expr(value)}
            self.body.line(self.dialect.counter.format(**values))

    def _step(self, digits: Sequence[RowDigit]) -> None:
        """Increment the last coordinate; where it reaches its extent, carry to the one before."""
        body, opened = self.body, 0
        for digit in reversed(digits):
            name = digit.let.var.name
            if digit.extent is None:
                body.line(f"++{name};")
                break
            body.open(f"if (++{name} == {body.scalars.expr(digit.extent)})")
            body.line(f"{name} = 0;")
            opened += 1
        for _ in range(opened):
            body.close()

    def _array(self, b: Buffer) -> None:
        """Add the declaration of an array of vectors in registers.

        Raises: CodeGenError if the dialect has none, or the extent is not a literal.
        """
        v = self.dialect.vectors
        if v is None or not isinstance(b.extent, int):
            raise CodeGenError(
                f"dialect {self.dialect.name} keeps no row in registers; plan for its own target"
            )
        kind, count = self.dialect.type_of(b.dtype), -(-b.extent // v.width)
        self.body.line(v.array.format(type=kind, name=b.name, count=count))


def _total(arrays: Sequence[Buffer]) -> str:
    """Return the size in bytes of scratch arrays, which have offsets and may overlap."""
    ends = dict.fromkeys(_plus(str(b.offset), _nbytes([b])) for b in arrays)
    text = str(max((int(e) for e in ends if e.isdigit()), default=0))
    for end in (e for e in ends if not e.isdigit()):
        text = f"({text} > {end} ? {text} : {end})"
    return text


def _plus(a: str, b: str) -> str:
    """Return the text of a sum."""
    return str(int(a) + int(b)) if a.isdigit() and b.isdigit() else f"{a} + {b}"


def _nbytes(arrays: Sequence[Buffer]) -> str:
    """Return the size in bytes of arrays one after the other; literal sizes are one number."""
    literal, symbolic = 0, []
    for b in arrays:
        if isinstance(b.extent, int):
            literal += -(-b.extent * b.dtype.nbytes // ALIGN) * ALIGN
        else:
            symbolic.append(f"({b.extent} * {b.dtype.nbytes} + {ALIGN - 1}) / {ALIGN} * {ALIGN}")
    return " + ".join([str(literal)] * (literal > 0 or not symbolic) + symbolic)
