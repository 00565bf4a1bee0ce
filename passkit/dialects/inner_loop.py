"""Inner loops of stages in C without vectors: their statements, and the ends of reductions."""

from __future__ import annotations

from collections.abc import Iterable

from passkit.ast import Var
from passkit.ast.stage import Fold, Let, Loop, Prefetch, Running, Stage, Statement, Store
from passkit.ast.walk import walk
from passkit.dialects.body import Body
from passkit.dialects.bundles import bundles_of
from passkit.dialects.quotients import is_quotient, proofs_of
from passkit.dialects.wholes import whole_of
from passkit.errors import CodeGenError
from passkit.ir.rewrite import substitute
from passkit.transforms.partial_results import memory_of, partial_variable
from passkit.transforms.vector_shape import vector_variables


class InnerLoop:
    """Prints the inner loop of a stage in a language without vectors.

    Its iterations are shared out over threads, or run one after the other.

    Args:
        stage: the stage.
        loop: its inner loop.
        body: the body of the kernel.
    """

    def __init__(self, stage: Stage, loop: Loop, body: Body) -> None:
        self.stage, self.loop, self.body = stage, loop, body
        self.scalars, self.dialect = body.scalars, body.dialect
        self.template = body.lane
        self.varying = vector_variables(stage, loop.var, body.aliased)

    def print(self, statements: Iterable[Statement]) -> None:
        """Add the loop, and in front of it what is the same in all iterations."""
        statements, inside = list(statements), list[Statement]()
        if self.dialect.quotients is not None:
            self.scalars.proofs.update(proofs_of(statements, self.varying))
        for s in statements:
            if isinstance(s, Let) and s.var not in self.varying:
                self.body.let(s)
            else:
                inside.append(s)
        if whole := whole_of(self.loop, inside, self.body):
            return whole.print()
        self._prepare_divisors(inside)
        bundles = bundles_of(self.loop, inside, self.body)
        if bundles is not None:
            self.scalars.proofs.update(proofs_of(bundles.statements, self.varying))
            for s in bundles.open():
                self._statement(s)
        self.open(None if bundles is None else bundles.close())
        for s in inside:
            self._statement(s)
        self.body.close()
        if bundles is not None:
            self.body.close()
        self.scalars.proofs.clear()
        self.scalars.divisors.clear()

    def _prepare_divisors(self, inside: Iterable[Statement]) -> None:
        """Prepare the divisors that are the same in all iterations."""
        templates = self.dialect.quotients
        if templates is None:
            return
        for s in inside:
            for x in () if isinstance(s, Prefetch) else walk(s.value):
                if not is_quotient(x) or not isinstance(x.b, Var):  # type: ignore[attr-defined]
                    continue
                divisors, b = self.scalars.divisors, x.b  # type: ignore[attr-defined]
                if b in self.varying or b in divisors:
                    continue
                divisors[b] = f"by{self.body.num_divisors}"
                self.body.num_divisors += 1
                value = self.scalars.expr(b)
                self.body.line(templates.prepare.format(name=divisors[b], value=value))

    def open(self, rest: Loop | None = None) -> None:
        """Begin the loop, or ``rest``, the iterations of it that are left."""
        loop = rest or self.loop
        start, stop = self.scalars.expr(loop.start), self.scalars.expr(loop.stop)
        self.body.open_loop(self.template, var=loop.var.name, start=start, stop=stop)

    # Statements.

    def _statement(self, s: Statement) -> None:
        """Add a statement. Raises: CodeGenError for a scan, which needs vectors."""
        match s:
            case Let():
                self.body.let(s)
            case Store():
                self.body.store(s)
            case Fold():
                self._fold(s)
            case Prefetch(buffer, index):
                if self.dialect.prefetch:
                    at = self.scalars.address(buffer, index)
                    self.body.line(self.dialect.prefetch.format(at=at, mask="m"))
            case Running():
                raise CodeGenError(
                    f"dialect {self.dialect.name} has no scans; plan for its own target"
                )

    # Reductions.

    def begin(self, f: Fold) -> None:
        """Add the beginning of a reduction: its identity."""
        if f.buffer is not None:
            assert f.index is not None
            self.print([Store(f.buffer, f.index, f.identity)])
            return
        kind, name = self.dialect.type_of(f.var.dtype), partial_variable(f).name
        self.body.line(f"{kind} {name} = {self.scalars.expr(f.identity)};")

    def _fold(self, f: Fold) -> None:
        """Add a step of a reduction."""
        if f.buffer is not None:
            old = memory_of(f)
            combined = substitute(f.combine, {"a": old, "b": f.value})
            self.body.store(Store(old.buffer, old.index, combined))
            return
        partial, term = partial_variable(f), f.value
        if not isinstance(term, Var):
            term = Var(f"{f.var.name}_term", f.var.dtype)
            self.body.let(Let(term, f.value))
        step = self.scalars.expr(substitute(f.combine, {"a": partial, "b": term}))
        self.body.line(f"{partial.name} = {step};")

    def finish(self, f: Fold) -> None:
        """Add the end of a reduction: one number, unless each iteration has its own."""
        if f.buffer is not None:
            return
        text = self.body.fold.format(
            type=self.dialect.type_of(f.var.dtype),
            name=f.var.name,
            acc=partial_variable(f).name,
            combine=self.scalars.expr(f.combine),
        )
        for part in text.splitlines():
            self.body.line(part)
