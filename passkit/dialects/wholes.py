"""Whole bundles: elements that follow each other as one vector, with which a lane computes.

For devices whose lanes have vectors of their own, such as CPUs. Vectors take the elements that are
left, too: so all elements are computed by the same functions, which may round otherwise than those
of single numbers. A loop that has something without a spelling for vectors has none at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import field, frozen

from passkit.ast import Binary, Call, Cast, Const, Expr, Load, Select, Unary, Var
from passkit.ast.stage import Fold, Let, Loop, Statement, Store
from passkit.ast.walk import children, loads, variables
from passkit.dialects.base import BundleTemplates, WholeTemplates
from passkit.dialects.body import Body
from passkit.dialects.bundled import BufferElement, Bundle, found_in, plain_of
from passkit.dialects.expressions import (
    ATOM,
    PRECEDENCE,
    TERNARY,
    UNARY,
    enclosed,
    operator,
)
from passkit.ir.rewrite import substitute
from passkit.transforms.partial_results import partial_variable
from passkit.transforms.vector_shape import SLOW_FUNCTIONS, computed_parts
from passkit.values import dtype as dt
from passkit.values.dtype import DType

COMPARED = frozenset(["<", "<=", ">", ">=", "==", "!="])
JOINED = frozenset(["&", "|", "^"])
EXTREMES = frozenset(["maximum", "minimum"])
WIDEST = 16
"""Elements of a vector, at most."""


def whole_count(
    loop: Loop, statements: Iterable[Statement], found: Sequence[Bundle], templates: BundleTemplates
) -> int:
    """How many elements the vectors of a loop have; 0 where it has none."""
    assert templates.vectors is not None
    spoken = _Spoken.of(loop, statements, found, templates.vectors)
    if not found or not all(map(spoken.has, spoken.statements)):
        return 0
    sizes = [b.dtype.nbytes for b in found]
    for s in spoken.statements:
        parts = (x for e in _values(s) for x in computed_parts(e))
        sizes += [x.dtype.nbytes for x in parts if spoken.varies(x)]
    count = min(templates.nbytes // max(sizes), WIDEST)
    few = False
    if isinstance(loop.start, Const) and isinstance(loop.stop, Const):
        few = int(loop.stop.value) - int(loop.start.value) < count
    return 0 if count < 2 or few else count


def pays(statements: Iterable[Statement]) -> bool:
    """Whether statements gain by vectors: they fold, or call what is no single instruction.

    Of other loops a compiler makes vectors by itself, and better.
    """
    return any(
        isinstance(s, Fold)
        or any(
            isinstance(x, Call) and x.name in SLOW_FUNCTIONS
            for e in _values(s)
            for x in computed_parts(e)
        )
        for s in statements
    )


def whole_of(loop: Loop, statements: Iterable[Statement], body: Body) -> Whole | None:
    """A loop over lanes whose bundles are vectors; None where it has something else.

    One with a ``tie`` has vectors of so many elements as that says.
    """
    templates = body.dialect.bundles
    if templates is None or not templates.computes or templates.vectors is None:
        return None
    plain, tie = plain_of(statements), body.tie
    found = found_in(loop, plain)
    if found is None or (tie is not None and not tie.count):
        return None
    if tie is None and not pays(plain):
        return None
    count = whole_count(loop, plain, found, templates) if tie is None else tie.count
    if not count:
        return None
    spoken = _Spoken.of(loop, plain, found, templates.vectors)
    return Whole(body, loop, count, spoken)


def _values(s: Statement) -> list[Expr]:
    """What a statement computes."""
    found: list[Expr] = [s.value]  # type: ignore[union-attr]
    return [*found, s.combine] if isinstance(s, Fold) else found


@frozen
class _Spoken:
    """What of a loop over lanes is vectors: ``varying`` variables, and bundles by their places."""

    statements: tuple[Statement, ...]
    places: Mapping[BufferElement, Bundle]
    varying: frozenset[Var]
    lane: Var
    templates: WholeTemplates

    @classmethod
    def of(
        cls,
        loop: Loop,
        statements: Iterable[Statement],
        found: Iterable[Bundle],
        templates: WholeTemplates,
    ) -> _Spoken:
        """That of a loop with these statements, in which these bundles were found."""
        kept, varying = tuple(statements), {loop.var}
        for s in kept:
            if isinstance(s, Fold):
                varying |= {_total(s), _term(s), *variables(s.combine)}
            elif isinstance(s, Let) and not varying.isdisjoint(variables(s.value)):
                varying.add(s.var)
        places = {(b.buffer, b.index): b for b in found}
        return cls(kept, places, frozenset(varying), loop.var, templates)

    def varies(self, x: Expr) -> bool:
        """Whether a value differs from lane to lane."""
        return not self.varying.isdisjoint(variables(x))

    def has(self, s: Statement) -> bool:
        """Whether there is a spelling of a statement."""
        match s:
            case Let():
                return self._knows(s.value)
            case Store():
                return (s.buffer, s.index) in self.places and self._knows(s.value)
            case Fold():
                folds = s.var.dtype.is_float or s.var.dtype is dt.int64
                return folds and self._knows(s.value) and self._knows(s.combine)
        return False

    def _knows(self, x: Expr, chosen: bool = False) -> bool:
        """Whether there is one of an expression, which may be ``chosen`` in some lanes only."""
        if not self.varies(x):
            return not (chosen and any(True for _ in loads(x)))
        if dt.is_narrow(x.dtype):
            return False
        match x:
            case Load():
                return (x.buffer, x.index) in self.places
            case Var():
                return True
            case Unary(op, a):
                is_known = x.dtype.is_float if op == "-" else x.dtype is dt.bool_
                return is_known and self._knows(a, chosen)
            case Binary(op, a, b):
                is_known = op in COMPARED and a.dtype is not dt.bool_
                is_known |= op in JOINED and x.dtype is dt.bool_
                is_known |= op in ("+", "-", "*", "/") and x.dtype.is_float
                is_known |= op in ("+", "-", "*") and self._is_place(x)
                return is_known and self._knows(a, chosen) and self._knows(b, chosen)
            case Call(name, args):
                is_known = x.dtype.is_float and name in self.templates.calls
                is_known |= x.dtype is dt.int64 and name in EXTREMES
                return is_known and all(self._knows(a, chosen) for a in args)
            case Cast(a):
                return x.dtype.is_float and self._knows(a, chosen)
            case Select(condition, a, b):
                is_known = x.dtype is not dt.bool_ and self._knows(condition, chosen)
                return is_known and self._knows(a, True) and self._knows(b, True)
        return False

    def _is_place(self, x: Expr) -> bool:
        """Whether a number is made of the lane's own and of what all lanes share."""
        if x.dtype is not dt.int64:
            return False
        if not self.varies(x) or x == self.lane:
            return True
        return isinstance(x, Binary) and all(map(self._is_place, children(x)))


@frozen
class Whole:
    """A loop over lanes, each with a vector of ``count`` elements at a time."""

    body: Body = field(repr=False)
    loop: Loop
    count: int
    spoken: _Spoken
    widths: dict[str, int] = field(factory=dict, eq=False, repr=False)

    @property
    def templates(self) -> WholeTemplates:
        """The language's spellings."""
        return self.spoken.templates

    def print(self) -> None:
        """The loop, in a scope of its own, and what its folds have found."""
        body, name, n = self.body, self.loop.var.name, self.count
        assert body.dialect.bundles is not None
        t = body.dialect.bundles
        start, stop = (body.scalars.expr(x, ATOM) for x in (self.loop.start, self.loop.stop))
        folds = [s for s in self.spoken.statements if isinstance(s, Fold)]
        body.scope()
        length = stop if start == "0" else f"{stop} - {start}"
        body.line(t.whole.format(name=name, value=f"({length} + {n - 1}) / {n}"))
        for f in folds:
            body.line(f"{self._kind(f.var.dtype)} {_total(f).name} = {self._splat(f.identity)};")
        body.open_loop(body.lane, var=f"{name}_bundle", start="0", stop=f"{name}_bundles")
        first = f"{name}_bundle * {n}"
        body.line(t.first.format(name=name, at=first if start == "0" else f"{start} + {first}"))
        body.scalars.positions.add(f"{name}_first")
        self._local(f"{body.dialect.type_of(dt.int64)} {name}_left", f"{stop} - {name}_first")
        if any(_is_read(self.loop.var, e) for s in self.spoken.statements for e in _values(s)):
            numbers = ", ".join(map(str, range(n)))
            text = self._spell(
                self.templates.places, dt.int64, first=f"{name}_first", numbers=numbers
            )
            self._local(f"{self._kind(dt.int64)} {name}", text)
        for b in self.spoken.places.values():
            if b.loaded:
                self._local(f"{self._kind(b.dtype)} {b.name}", self._access(self.templates.take, b))
        for s in self.spoken.statements:
            self._statement(s)
        body.close()
        for f in folds:
            self._joined(f)
        body.close()

    def _statement(self, s: Statement) -> None:
        match s:
            case Let(var, value) if not self.spoken.varies(value):
                self.body.let(s)
            case Let(var, value) if var.dtype is dt.bool_:
                width = self.widths[var.name] = self._width(value)
                kind = f"{self.templates.masks[width]}{self.count}"
                self._local(f"{kind} {var.name}", self.expr(value))
            case Let(var, value):
                self._local(f"{self._kind(var.dtype)} {var.name}", self.expr(value))
            case Store(buffer, index, value):
                bundle = self.spoken.places[buffer, index]
                text = self._number(value, value.dtype)
                self.body.line(self._access(self.templates.put, bundle, value=text) + ";")
            case Fold():
                self._fold(s)

    def _local(self, head: str, value: str) -> None:
        self.body.line(f"const {head} = {value};")

    def _fold(self, f: Fold) -> None:
        """One step of a fold, in the lanes that have an element."""
        term, total = _term(f), _total(f)
        self._local(f"{self._kind(term.dtype)} {term.name}", self._splat(f.value))
        new = self.expr(substitute(f.combine, {"a": total, "b": term}))
        values = {"old": total.name, "new": new, "left": f"{self.loop.var.name}_left"}
        self.body.line(f"{total.name} = {self._spell(self.templates.keep, f.var.dtype, **values)};")

    def _joined(self, f: Fold) -> None:
        """A lane's own total: that of its vector's elements, one after the other."""
        acc = partial_variable(f)
        combine = self.body.scalars.expr(substitute(f.combine, {"a": acc}))
        values = {"name": _total(f).name, "acc": acc.name, "combine": combine}
        text = self._spell(self.templates.each, f.var.dtype, **values)
        for line in text.splitlines():
            self.body.line(line)

    def _access(self, template: str, b: Bundle, **values: str) -> str:
        """What loads or stores a bundle, or what is left of it."""
        var = self.loop.var.name
        index = substitute(b.index, {var: Var(f"{var}_first", dt.int64)})
        scalars = self.body.scalars
        space = self.templates.space[b.buffer in scalars.scratch]
        at = scalars.address(b.buffer, index)
        return self._spell(template, b.dtype, at=at, left=f"{var}_left", space=space, **values)

    def _spell(self, template: str, dtype: DType, **values: str) -> str:
        kind = self.body.dialect.type_of(dtype)
        mask = self.templates.masks[dtype.nbytes]
        return template.format(type=kind, count=self.count, mask=mask, **values)

    def _kind(self, dtype: DType) -> str:
        """The type of a vector."""
        return self._spell(self.templates.kind, dtype)

    # Expressions.

    def expr(self, x: Expr, outer: int = 0) -> str:
        """The text of an expression inside one of precedence ``outer``."""
        return enclosed(*self._leveled(x), outer)

    def _leveled(self, x: Expr) -> tuple[str, int]:
        if not self.spoken.varies(x):
            return self.body.scalars.leveled(x)
        match x:
            case Load():
                name = self.spoken.places[x.buffer, x.index].name
                if x.dtype is not dt.bool_:
                    return name, ATOM
                nothing = self._spell(self.templates.splat, x.dtype, value="0")
                return f"{name} != {nothing}", PRECEDENCE["!="]
            case Unary(op, a):
                return op + self.expr(a, UNARY + 1), UNARY
            case Binary():
                return self._binary(x)
            case Call(name, args):
                kind = self.body.dialect.type_of(x.dtype)
                call = self.templates.calls[name].format(type=kind, count=self.count)
                return f"{call}({', '.join(map(self._splat, args))})", ATOM
            case Cast(a):
                return self._number(a, x.dtype), ATOM
            case Select(condition, a, b):
                return self._select(condition, a, b), ATOM
        assert isinstance(x, Var)
        return x.name, ATOM

    def _binary(self, x: Binary) -> tuple[str, int]:
        op, level, right = operator(x)
        if x.a.dtype is dt.bool_:
            width = self._width(x)
            return f"{self._mask(x.a, width, level)} {op} {self._mask(x.b, width, right)}", level
        a, b = (
            self.expr(side, n) if side.dtype.is_float or self.spoken.varies(side)
            else self._splat(side)
            for side, n in ((x.a, level), (x.b, right))
        )  # fmt: skip
        return f"{a} {op} {b}", level

    def _select(self, condition: Expr, a: Expr, b: Expr) -> str:
        chosen, other = self._splat(a), self._splat(b)
        if not self.spoken.varies(condition):
            return f"({self.expr(condition, TERNARY + 1)} ? {chosen} : {other})"
        mask = self._mask(condition, a.dtype.nbytes)
        return self._spell(self.templates.select, a.dtype, a=chosen, b=other, condition=mask)

    def _splat(self, x: Expr) -> str:
        """An expression as a vector."""
        text = self.expr(x)
        if self.spoken.varies(x):
            return text
        return self._spell(self.templates.splat, x.dtype, value=text)

    def _number(self, x: Expr, dtype: DType) -> str:
        """A vector converted to elements of a dtype; true is 1."""
        if not self.spoken.varies(x):
            text = self.body.scalars.expr(x if x.dtype is dtype else Cast(x, dtype))
            return self._spell(self.templates.splat, dtype, value=text)
        if x.dtype is dt.bool_:
            return self._spell(self.templates.convert, dtype, value=f"-{self.expr(x, UNARY + 1)}")
        if x.dtype is dtype:
            return self.expr(x)
        return self._spell(self.templates.convert, dtype, value=self.expr(x))

    def _width(self, x: Expr) -> int:
        """The bytes of an element of a mask."""
        match x:
            case Var(name) if name in self.widths:
                return self.widths[name]
            case Unary(_, a):
                return self._width(a)
            case Binary(_, a, b):
                if a.dtype is not dt.bool_:
                    return a.dtype.nbytes
                return self._width(a if self.spoken.varies(a) else b)
        return 1

    def _mask(self, x: Expr, width: int, outer: int = 0) -> str:
        """Booleans whose elements have so many bytes, inside what binds by ``outer``."""
        kind = self.templates.masks[width]
        if not self.spoken.varies(x):
            value = f"{self.expr(x, TERNARY + 1)} ? -1 : 0"
            return self.templates.splat.format(type=kind, count=self.count, value=value)
        if self._width(x) == width:
            return self.expr(x, outer)
        return self.templates.convert.format(type=kind, count=self.count, value=self.expr(x))


def _total(f: Fold) -> Var:
    """What a fold has in a vector so far."""
    return Var(f"{f.var.name}_whole", f.var.dtype)


def _term(f: Fold) -> Var:
    """What it joins to that next."""
    return Var(f"{f.var.name}_term", f.var.dtype)


def _is_read(var: Var, x: Expr) -> bool:
    """Whether a variable is a value in an expression, not only a part of an index."""
    if isinstance(x, Load):
        return False
    return x == var or any(_is_read(var, child) for child in children(x))
