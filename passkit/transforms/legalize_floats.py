"""Legalization of narrow floats: loaded and stored as they are, computed in float32.

Each result is rounded by a cast to the narrow type and back, so that no dialect needs arithmetic of
16 bits. A sum, product, quotient or square root of such numbers that is rounded to float32 and then
to 16 bits equals the one that is rounded once (S. A. Figueroa, When is double rounding innocuous?,
1995).
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
"""The functions that return the second of two equal zeros, as in NumPy for all floats but float16.

For float16 NumPy returns the first, so that the operands are exchanged.
"""
NEXTAFTER = "nextafter"
"""The function whose result depends on the type: each has one of its own, like `nextafter_f16`."""


def legalize_floats(ast: KernelAST) -> KernelAST:
    """Return a kernel that computes with float32 in place of narrow floats.

    Parameters and shared arrays keep their narrow types. Registers, and arrays with partial results
    of reductions, become float32.
    """
    return _Legalizer(ast).kernel()


class _Legalizer:
    """The legalization of one kernel.

    Attributes:
        ast: the kernel.
        narrow: the dtypes of buffers of narrow floats.
        widened: the names of those that become float32.
    """

    def __init__(self, ast: KernelAST) -> None:
        self.ast = ast
        stages = [s for p in ast.phases for s in p.stages if isinstance(s, Stage)]
        partial = {s.buffer for x in stages for s in x.body if isinstance(s, (Fold, Running))}
        registers = {b.name for b in ast.scratch if b.place is Place.LANES}
        buffers = (*ast.params, *ast.scratch)
        self.narrow = {b.name: b.dtype for b in buffers if is_narrow(b.dtype)}
        self.widened = {name for name in self.narrow if name in partial | registers}

    def kernel(self) -> KernelAST:
        """Return the legalized kernel."""
        scratch = tuple(
            evolve(b, dtype=float32) if b.name in self.widened else b for b in self.ast.scratch
        )
        return evolve(self.ast, scratch=scratch, phases=tuple(map(self.phase, self.ast.phases)))

    def phase(self, phase: Phase) -> Phase:
        """Return a legalized phase."""
        return evolve(phase, parts=tuple(map(self.part, phase.parts)))

    def part(self, part: Part) -> Part:
        """Return a legalized part."""
        return evolve(part, stages=tuple(map(self.stage, part.stages)))

    def stage(self, stage: Stage | Dot) -> Stage | Dot:
        """Return a legalized stage; the dialect legalizes matrix products."""
        if isinstance(stage, Dot):
            return stage
        return evolve(
            stage,
            body=tuple(map(self.statement, stage.body)),
            before=tuple(map(self.let, stage.before)),
            after=tuple(map(self.store, stage.after)),
        )

    def statement(self, s: Statement) -> Statement:
        """Return a legalized statement."""
        match s:
            case Let():
                return self.let(s)
            case Store():
                return self.store(s)
            case Prefetch():
                return evolve(s, index=self.expr(s.index))
        return self.reduction(s)

    def let(self, let: Let) -> Let:
        """Return a local variable with a legalized value."""
        value = self.expr(let.value)
        return Let(Var(let.var.name, value.dtype), value)

    def store(self, s: Store) -> Store:
        """Return a store that rounds to the type of the buffer."""
        value = self.expr(s.value)
        if s.buffer in self.narrow and s.buffer not in self.widened:
            value = _narrowed(value, self.narrow[s.buffer])
        return evolve(s, index=self.expr(s.index), value=value)

    def reduction(self, f: Fold | Running) -> Fold | Running:
        """Return a legalized reduction or scan."""
        identity = self.expr(f.identity)
        assert isinstance(identity, Const)
        return evolve(
            f,
            var=Var(f.var.name, identity.dtype),
            value=self.expr(f.value),
            identity=identity,
            combine=self.expr(f.combine),
            index=None if f.index is None else self.expr(f.index),
        )

    def expr(self, x: Expr) -> Expr:
        """Return an expression of the same value whose dtype is not narrow."""
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
                result: Expr = Binary(op, a, b, float32)
                return _rounded(result, x.dtype) if op in ROUNDS else result
            case Call(name, (a, b)) if name in EXTREMES and x.dtype is float16:
                return Call(name, (b, a), float32)
            case Call(name, args) if name == NEXTAFTER:
                return Call(f"{NEXTAFTER}_{x.dtype.short}", args, float32)
            case Call(name, args):
                result = Call(name, args, float32)
                return result if name in EXACT else _rounded(result, x.dtype)
        return inner

    def load(self, x: Load) -> Expr:
        """Return a load, converted to float32 if its buffer stays narrow.

        Its index may be computed from narrow floats, as that of a gather behind a cast is.
        """
        x = evolve(x, index=self.expr(x.index))
        if not is_narrow(x.dtype):
            return x
        if x.buffer in self.widened:
            return evolve(x, dtype=float32)
        return Cast(x, float32)

    def cast(self, x: Cast) -> Expr:
        """Return a conversion, which rounds through float32 like NumPy and ml_dtypes.

        A conversion from float64 to float16 rounds once.
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
    """Return a float32 rounded to a narrow type."""
    return Cast(Cast(x, dtype), float32)


def _narrowed(value: Expr, dtype: DType) -> Expr:
    """Return a value converted to a narrow type; one that was widened from it is that one."""
    match value:
        case Cast(inner, wide) if wide is float32 and inner.dtype is dtype:
            return inner
    return Cast(value, dtype)
