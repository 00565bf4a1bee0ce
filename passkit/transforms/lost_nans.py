"""Maxima of rows that may leave out NaN, because every result gets it back from a sum.

So it is in a softmax: where an element x is NaN, exp(x - max) and the sum of such are NaN, and what
is divided by the sum. The instruction for a maximum leaves NaN out; to keep it takes three.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum, auto

from attrs import evolve, field, frozen

from passkit.ast import Binary, Call, Cast, Expr, Load, Select, Unary, Var, is_sum
from passkit.ast.stage import Fold, KernelAST, Let, Running, Stage, Statement, Store
from passkit.ast.tidy import replace_children
from passkit.ast.walk import children, loads, walk
from passkit.ir.features import MAXIMUM_NUMBER
from passkit.transforms.partial_results import extreme_of
from passkit.values import dtype as dt

KEEPING = frozenset(
    [
        "abs",
        "cos",
        "erf",
        "exp",
        "exp2",
        "exp_nonpositive",
        "log",
        "maximum",
        "minimum",
        "sigmoid",
        "sin",
        "sqrt",
        "tanh",
    ]
)
"""Functions that are NaN if an argument is."""
EXPONENTIALS = ("exp", "exp_nonpositive")


def with_lost_nans(ast: KernelAST) -> KernelAST:
    """Return a kernel in which such maxima are those of numbers."""
    if len(ast.phases) != 1 or len(ast.phases[0].parts) != 1:
        return ast
    (phase,) = ast.phases
    (part,) = phase.parts
    stages = [s for s in part.stages if isinstance(s, Stage)]
    if len(stages) != len(part.stages):
        return ast
    results = frozenset(b.name for b in ast.params)
    for k, stage in enumerate(stages):
        body = tuple(
            _of_numbers(s)
            if isinstance(s, Fold) and _gets_it_back(s, stage, stages[k + 1 :], results)
            else s
            for s in stage.body
        )
        stages[k] = stage if body == stage.body else evolve(stage, body=body)
    if stages == list(part.stages):
        return ast
    return evolve(ast, phases=(evolve(phase, parts=(evolve(part, stages=tuple(stages)),)),))


def _of_numbers(f: Fold) -> Fold:
    assert isinstance(f.combine, Call)
    return evolve(f, combine=evolve(f.combine, name=MAXIMUM_NUMBER))


def _gets_it_back(f: Fold, stage: Stage, behind: list[Stage], results: frozenset[str]) -> bool:
    """Whether results are NaN where a term of a maximum is, and none shows the sign of a 0."""
    if f.buffer is not None or f.var.dtype is not dt.float32 or extreme_of(f) != "largest":
        return False
    if stage.after or any(isinstance(s, Store) for s in stage.body):
        return False
    term = _Locals.of(stage).inlined(f.value)
    distance = Binary("-", term, f.var, dt.float32)
    read = {x.buffer for x in loads(term)} | results
    for own in behind:
        locals_ = _Locals.of(own)
        for g in (*own.body, *own.after):
            if isinstance(g, Store) and g.buffer in read:
                return False
            if not isinstance(g, Fold) or g.buffer is not None or own.loops != stage.loops:
                continue
            if is_sum(g.combine, dt.float32) and _is_nan(locals_.inlined(g.value), distance):
                return _is_safe(f, g, behind, results)
    return False


def _is_nan(x: Expr, part: Expr) -> bool:
    """Whether a value is NaN where a part of it is."""
    if x == part:
        return True
    staged = isinstance(x, Unary) or (isinstance(x, Binary) and x.op in "+-*/")
    staged |= isinstance(x, Call) and x.name in KEEPING
    return staged and any(_is_nan(child, part) for child in children(x))


def _is_safe(f: Fold, g: Fold, behind: list[Stage], results: frozenset[str]) -> bool:
    """Whether all that depends on the maximum is in exponentials, and then NaN by the sum ``g``."""
    nan = _Nan(f.var, g.var)
    rows: dict[Var, Expr] = {}  # what is computed once per row
    for k, stage in enumerate(behind):
        locals_ = _Locals.of(stage, rows)
        if not stage.loops:
            rows = locals_.values
        for s in (*stage.body, *stage.after):
            if isinstance(s, Running):
                return False
            if not isinstance(s, (Fold, Store)):
                continue
            value = locals_.inlined(s.value)
            if not _is_in_exponential(value, f.var):
                return False
            if s.index is not None and nan.of(locals_.inlined(s.index)) is not NanState.SAME:
                return False
            if s is g or nan.of(value) is not NanState.OTHER:
                continue
            if isinstance(s, Fold):
                return False
            if s.buffer in results and not _is_stored_again(s, stage, behind[k + 1 :]):
                return False
            nan.buffers.add(s.buffer)
    return True


def _is_stored_again(store: Store, stage: Stage, behind: list[Stage]) -> bool:
    """Whether each element of a result has another value in the end: one checked like all."""
    return any(
        isinstance(s, Store) and (s.buffer, s.index) == (store.buffer, store.index)
        for own in behind
        if own.loops == stage.loops
        for s in own.body
    )


def _is_in_exponential(x: Expr, maximum: Var) -> bool:
    """Whether a maximum is only what exponentials take from their argument: 1 for both zeros.

    Or what a logarithm is added to, as in a logsumexp: no 0 that is added is -0.
    """
    match x:
        case Call(name, (Binary("-", a, b),)) if name in EXPONENTIALS and b == maximum:
            return maximum not in set(walk(a))
        case Binary("+", a, Call("log")) if a == maximum:  # a logarithm is not -0
            return maximum not in set(walk(x.b))
    return x != maximum and all(_is_in_exponential(child, maximum) for child in children(x))


class NanState(Enum):
    """The kind of a value in rows where a term of the maximum is NaN."""

    SAME = auto()
    """It has the same bits, whether or not the maximum keeps NaN."""
    NAN = auto()
    """It is NaN in both cases."""
    OTHER = auto()
    """It may differ."""


@frozen
class _Nan:
    """The states of values; ``buffers`` hold what may differ."""

    maximum: Var
    total: Var
    buffers: set[str] = field(factory=set, eq=False)

    def of(self, x: Expr) -> NanState:
        """Return the state of an expression without locals."""
        if x == self.maximum:
            return NanState.OTHER
        if x == self.total:
            return NanState.NAN
        states = [self.of(child) for child in children(x)]
        match x:
            case Load(buffer) if buffer in self.buffers:
                return NanState.OTHER
            case Select():
                chosen = states[1:]
                if all(s is NanState.NAN for s in chosen):
                    return NanState.NAN
            case Binary(op) if NanState.NAN in states:
                if op in ("+", "-", "*", "/"):
                    return NanState.NAN
                if op in ("<", "<=", ">", ">=", "==", "!="):
                    return NanState.SAME
            case Unary() if states == [NanState.NAN]:
                return NanState.NAN
            case Cast() if states == [NanState.NAN] and x.dtype.is_float:
                return NanState.NAN
            case Call(name) if NanState.NAN in states and name in KEEPING:
                return NanState.NAN
        return NanState.OTHER if NanState.OTHER in states else NanState.SAME


@frozen
class _Locals:
    """The locals of a stage."""

    values: dict[Var, Expr]

    @classmethod
    def of(cls, stage: Stage, before: Mapping[Var, Expr] | None = None) -> _Locals:
        """Return the locals of a stage; ``before`` are those of rows in front of it."""
        values: dict[Var, Expr] = dict(before or {})
        lets: Iterable[Statement] = (*stage.before, *stage.body)
        for s in lets:
            if isinstance(s, Let):
                values[s.var] = cls(values).inlined(s.value)
        return cls(values)

    def inlined(self, x: Expr) -> Expr:
        """Return an expression with the values of locals in their place."""
        if isinstance(x, Var):
            return self.values.get(x, x)
        return replace_children(x, self.inlined)
