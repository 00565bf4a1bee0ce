"""Quotients of float32 without divisions.

`mark_quotients` names the quotients whose bits next to 0, or whose range, allow a shorter form.
`divide_rows` divides by what a row has in common: its reciprocal is prepared once, and the elements
of a vector are divided together, so that they share one test for results next to 0.
"""

from __future__ import annotations

from attrs import evolve

from passkit.ast import Binary, Const, Expr, Load, Select, Var
from passkit.ast.stage import KernelAST, Let, Stage
from passkit.ast.tidy import replace_children
from passkit.ast.walk import children
from passkit.ir.loop import (
    Bind,
    Declare,
    DivideVector,
    For,
    If,
    KernelIR,
    LetStmt,
    LoopBuffer,
    PrepareDivisor,
    Stmt,
    StorageScope,
    StoreStmt,
    expressions_of,
)
from passkit.ir.reciprocal import has_divisor, is_quotient
from passkit.ir.rewrite import map_expressions, variable_names
from passkit.transforms.quotient_proofs import with_short_quotients
from passkit.values import dtype as dt


def mark_quotients(ast: KernelAST) -> KernelAST:
    """Return the stages with calls in place of the quotients that have a shorter form."""
    phases = []
    for phase in ast.phases:
        parts = [
            evolve(p, stages=tuple(_marked(s) if isinstance(s, Stage) else s for s in p.stages))
            for p in phase.parts
        ]
        phases.append(evolve(phase, parts=tuple(parts)))
    return evolve(ast, phases=tuple(phases))


def _marked(stage: Stage) -> Stage:
    """Return a stage with its quotients marked."""
    is_loop = bool(stage.loops)  # locals of a loop are not read by other stages
    own = {s.var for s in stage.body if isinstance(s, Let)} if is_loop else set()
    body = with_short_quotients(stage.body, own, stage.before)
    return evolve(stage, body=tuple(body))


def divide_rows(kernel: KernelIR) -> KernelIR:
    """Return the kernel with divisions by values of rows through their prepared reciprocals."""
    return _RowDivision(kernel).kernel_with_prepared_divisors()


class _RowDivision:
    """The rewriting of one kernel.

    ``divisors`` has the name of each prepared divisor, by the variable that it is.
    """

    def __init__(self, kernel: KernelIR) -> None:
        self.kernel = kernel
        self.divisors: dict[Var, str] = {}
        self.new_arrays: list[LoopBuffer] = []

    def kernel_with_prepared_divisors(self) -> KernelIR:
        """Return the rewritten kernel."""
        body = self._scope(self.kernel.body, is_kernel=True)
        return evolve(self.kernel, body=body, arrays=(*self.kernel.arrays, *self.new_arrays))

    def _scope(self, body: tuple[Stmt, ...], is_kernel: bool = False) -> tuple[Stmt, ...]:
        """Return the statements of a body with the vectors inside them divided.

        A divisor is prepared in the body that defines it, in front of the first statement that
        divides by it in a vector. The kernel's own body prepares those that no other one defines.
        """
        own = {s.var for s in body if isinstance(s, (LetStmt, Declare))}
        out: list[Stmt] = []
        for statement in body:
            prepared = set(self.divisors)
            changed = [self._statement(statement)] if is_kernel else self._vectors(statement)
            for divisor, name in self.divisors.items():
                if divisor not in prepared and (is_kernel or divisor in own):
                    out.append(PrepareDivisor(name, divisor))
            out += changed
        for divisor in own:
            self.divisors.pop(divisor, None)
        return tuple(out)

    def _statement(self, statement: Stmt) -> Stmt:
        """Return a statement, with the vectors in its body divided if it is a loop or branch."""
        if isinstance(statement, (For, If)):
            return evolve(statement, body=self._scope(statement.body))
        return statement

    def _vectors(self, statement: Stmt) -> list[Stmt]:
        """Return the statements that replace one in the body of a loop or branch.

        A loop over the elements of a vector, which is bound to UNROLL and has no loop inside, is
        split by `_divided`. Any other statement stays, with the loops inside it rewritten.
        """
        is_vector = isinstance(statement, For) and statement.bind is Bind.UNROLL
        if not is_vector:
            return [self._statement(statement)]
        assert isinstance(statement, For)
        if any(isinstance(s, For) for s in statement.body):
            return [self._statement(statement)]
        return self._divided(statement)

    def _divided(self, loop: For) -> list[Stmt]:
        """Return the statements that replace a loop over the elements of a vector.

        Each quotient that `_quotient` finds is computed in front of the loop: by a loop that stores
        its dividends, and a `DivideVector` that divides them together. The last statement is the
        loop itself, which reads the quotients. The arrays and divisors that this needs are added to
        ``new_arrays`` and ``divisors``.
        """
        quotient_and_lets = self._quotient(loop)
        if quotient_and_lets is None:
            return [loop]
        quotient, needed = quotient_and_lets
        assert isinstance(loop.stop, Const) and isinstance(quotient.b, (Var, Const))
        width = int(loop.stop.value)
        name: str | Const
        if isinstance(quotient.b, Var):
            name = self.divisors.setdefault(quotient.b, f"by_{quotient.b.name}")
        else:
            name = quotient.b
        number = len(self.new_arrays)
        dividends, quotients = f"dividend{number}", f"quotient{number}"
        for array in (dividends, quotients):
            self.new_arrays.append(
                LoopBuffer(array, dt.float32, StorageScope.REGISTER, width, True)
            )
        first = evolve(loop, body=(*needed, StoreStmt(dividends, loop.var, quotient.a)))
        taken = Load(quotients, loop.var, dt.float32)

        def change(x: Expr) -> Expr:
            return taken if x == quotient else replace_children(x, change)

        rest = evolve(loop, body=tuple(map_expressions(s, change) for s in loop.body))
        return [first, DivideVector(quotients, dividends, name), *self._divided(rest)]

    def _quotient(self, loop: For) -> tuple[Binary, tuple[Stmt, ...]] | None:
        """Return a quotient by a literal or a value of the row, and the definitions it needs.

        They are copied in front, so that they must only define locals from values that the loop
        does not change. None if there is no such quotient.
        """
        lets: dict[str, LetStmt] = {}
        defined = {loop.var.name}
        if not isinstance(loop.stop, Const):
            return None
        for statement in loop.body:
            for x in expressions_of(statement):
                for part in _walk_unguarded(x):
                    if not is_quotient(part) or not isinstance(part, Binary):
                        continue
                    is_of_row = isinstance(part.b, Var) and part.b.name not in defined
                    if is_of_row or (isinstance(part.b, Const) and has_divisor(part.b)):
                        needed = _needed(part.a, lets)
                        if needed is not None:
                            return part, needed
            if isinstance(statement, LetStmt):
                lets[statement.var.name] = statement
                defined.add(statement.var.name)
            elif not isinstance(statement, StoreStmt):
                return None
        return None


def _walk_unguarded(x: Expr) -> list[Expr]:
    """Return the parts of an expression that are computed for each element."""
    parts: list[Expr] = []
    todo = [x]
    while todo:
        part = todo.pop()
        parts.append(part)
        if isinstance(part, Select):
            todo.append(part.condition)
        elif not isinstance(part, Load):
            todo += reversed(children(part))
    return parts


def _needed(x: Expr, lets: dict[str, LetStmt]) -> tuple[Stmt, ...] | None:
    """Return the definitions that an expression needs, in order."""
    names: set[str] = set()
    todo = [x]
    while todo:
        for name in variable_names(todo.pop()):
            if name in lets and name not in names:
                names.add(name)
                todo.append(lets[name].value)
    return tuple(let for name, let in lets.items() if name in names)
