"""Floats of 16 bits: stored as they are, computed in float32, rounded after every operator.

Rounding is a cast to 16 bits and back, so a kernel AST says nothing that it did not say before; but
no dialect needs arithmetic of 16 bits. A sum, product, quotient or square root of such numbers that
is rounded to float32 first is the same when it is rounded to 16 bits then (S. A. Figueroa, When is
double rounding innocuous?, 1995).
"""

from __future__ import annotations

from attrs import evolve

from passkit.ast import Binary, Call, Cast, Const, Expr, Load, Select, Unary, Var, const
from passkit.ast.rounding import EXACT, ROUNDS
from passkit.ast.stage import (
    Dot,
    Fold,
    KernelAST,
    Let,
    Part,
    Phase,
    Place,
    Prefetch,
    Running,
    Stage,
    Statement,
    Store,
)
from passkit.ast.tidy import replace_children
from passkit.values.dtype import DType, float16, float32, float64, is_narrow

EXTREMES = frozenset(["maximum", "minimum"])
"""The functions that give the second of two equal zeros, as NumPy does for all floats but float16,
of which it gives the first."""
NEIGHBOUR = "nextafter"
"""The function that asks for the type's own floats: it has a name for each, as `nextafter_f16`."""


def legalize_floats(ast: KernelAST) -> KernelAST:
    """The AST with float32 in place of floats of 16 bits, but for the buffers of these."""
    return _Widening(ast).kernel()


class _Widening:
    """Registers, and what folds in memory, hold what is computed: they become float32."""

    def __init__(self, ast: KernelAST) -> None:
        self.ast = ast
        stages = [s for p in ast.phases for s in p.stages if isinstance(s, Stage)]
        held = {s.buffer for x in stages for s in x.body if isinstance(s, (Fold, Running))}
        held |= {b.name for b in ast.scratch if b.place is Place.LANES}
        everything = (*ast.params, *ast.scratch)
        self.narrow = {b.name: b.dtype for b in everything if is_narrow(b.dtype)}
        self.wide = {name for name in self.narrow if name in held}

    def kernel(self) -> KernelAST:
        scratch = tuple(
            evolve(b, dtype=float32) if b.name in self.wide else b for b in self.ast.scratch
        )
        return evolve(self.ast, scratch=scratch, phases=tuple(map(self.phase, self.ast.phases)))

    def phase(self, phase: Phase) -> Phase:
        return evolve(phase, parts=tuple(map(self.part, phase.parts)))

    def part(self, part: Part) -> Part:
        return evolve(part, stages=tuple(map(self.stage, part.stages)))

    def stage(self, stage: Stage | Dot) -> Stage | Dot:
        if isinstance(stage, Dot):
            return stage
        return evolve(
            stage,
            body=tuple(map(self.statement, stage.body)),
            before=tuple(map(self.let, stage.before)),
            after=tuple(map(self.store, stage.after)),
        )

    def statement(self, s: Statement) -> Statement:
        match s:
            case Let():
                return self.let(s)
            case Store():
                return self.store(s)
            case Prefetch():
                return s
        return self.fold(s)

    def let(self, let: Let) -> Let:
        value = self.expr(let.value)
        return Let(Var(let.var.name, value.dtype), value)

    def store(self, s: Store) -> Store:
        value = self.expr(s.value)
        if s.buffer in self.narrow and s.buffer not in self.wide:
            value = _stored(value, self.narrow[s.buffer])
        return evolve(s, value=value)

    def fold(self, f: Fold | Running) -> Fold | Running:
        identity = self.expr(f.identity)
        assert isinstance(identity, Const)
        return evolve(
            f,
            var=Var(f.var.name, identity.dtype),
            value=self.expr(f.value),
            identity=identity,
            combine=self.expr(f.combine),
        )

    def expr(self, x: Expr) -> Expr:
        """An expression of the same value whose dtype is not narrow."""
        if isinstance(x, Cast):
            return self.cast(x)
        if isinstance(x, Load):
            return self.load(x)
        inner = replace_children(x, self.expr)
        if not is_narrow(x.dtype):
            return inner
        match inner:
            case Const():
                return const(float(inner.value), float32)
            case Var(name):
                return Var(name, float32)
            case Unary(op, a):
                return Unary(op, a, float32)
            case Select(condition, a, b):
                return Select(condition, a, b, float32)
            case Binary(op, a, b):
                found: Expr = Binary(op, a, b, float32)
                return _rounded(found, x.dtype) if op in ROUNDS else found
            case Call(name, (a, b)) if name in EXTREMES and x.dtype is float16:
                return Call(name, (b, a), float32)
            case Call(name, args) if name == NEIGHBOUR:
                return Call(f"{NEIGHBOUR}_{x.dtype.short}", args, float32)
            case Call(name, args):
                found = Call(name, args, float32)
                return found if name in EXACT else _rounded(found, x.dtype)
        return inner

    def load(self, x: Load) -> Expr:
        if not is_narrow(x.dtype):
            return x
        if x.buffer in self.wide:
            return evolve(x, dtype=float32)
        return Cast(x, float32)

    def cast(self, x: Cast) -> Expr:
        """A conversion, through float32 where it rounds: so do NumPy and ml_dtypes.

        But from float64 to float16 there is only one rounding.
        """
        source, target, value = x.x.dtype, x.dtype, self.expr(x.x)
        if not is_narrow(target):
            return value if value.dtype is target else Cast(value, target)
        if source is target:
            return value
        if source.nbytes == 1:
            return Cast(value, float32)
        if target is float16 and source is float64:
            return Cast(Cast(value, target), float32)
        return _rounded(value if value.dtype is float32 else Cast(value, float32), target)


def _rounded(x: Expr, dtype: DType) -> Expr:
    return Cast(Cast(x, dtype), float32)


def _stored(value: Expr, dtype: DType) -> Expr:
    """What a buffer of ``dtype`` takes; what was just widened from it is not rounded again."""
    match value:
        case Cast(inner, wide) if wide is float32 and inner.dtype is dtype:
            return inner
    return Cast(value, dtype)
