"""The C printer: a kernel AST and a dialect's table give the text of a kernel.

Parentheses are printed only where precedence needs them. Where the dialect has vectors, a value
that changes along the lane loop is printed as a vector, every other one as a scalar.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from passkit import dtype as dt
from passkit.ast import (
    FUNCTIONS,
    Binary,
    Buffer,
    Call,
    Cast,
    Const,
    Expr,
    Fold,
    KernelAST,
    Let,
    Level,
    Load,
    Loop,
    Phase,
    Place,
    Prefetch,
    Select,
    SizeOf,
    Stage,
    Statement,
    Store,
    Unary,
    Var,
    children,
    const,
    left,
    right,
    variables,
)
from passkit.dialects.base import Dialect, Vectors
from passkit.dialects.reciprocal import reciprocal
from passkit.dtype import DType
from passkit.errors import CodeGenError
from passkit.index import normal
from passkit.shared import ALIGN
from passkit.size import Extent
from passkit.tidy import replace_children

PRECEDENCE = {
    "|": 3,
    "^": 4,
    "&": 5,
    "==": 6,
    "!=": 6,
    "<": 7,
    "<=": 7,
    ">": 7,
    ">=": 7,
    "+": 9,
    "-": 9,
    "*": 10,
    "/": 10,
    "%": 10,
}
QUICK = frozenset(["maximum", "minimum", "abs", "floor", "ceil", "trunc", "rint"])
SLOW = frozenset(FUNCTIONS) - QUICK
"""Functions that take longer than folding does."""
TERNARY, UNARY, ATOM = 1, 11, 13
INDENT = "  "
LANES, SHORT = 16, 64
"""Lanes of a vector, and the longest row that is printed without a loop."""
PACK = 64
"""Lanes of a pack."""


def print_kernel(ast: KernelAST, name: str, dialect: Dialect) -> str:
    """The text of one kernel, without the dialect's prelude."""
    return _Printer(ast, dialect).kernel(name)


def literal(x: Const, dialect: Dialect) -> str:
    """A literal with the exact bits of its value."""
    value, dtype = x.value, x.dtype
    if dtype is dt.bool_:
        return "true" if value else "false"
    if dtype.is_integer:
        return _integer(int(value), dtype)
    if np.isnan(value) or dtype not in (dt.float32, dt.float64):
        bits = int.from_bytes(x.bits, "little")
        suffix = "ull" if dtype.nbytes == 8 else "u"
        unsigned = "uint64_t" if dtype.nbytes == 8 else "uint32_t"
        kind = dialect.type_of(dtype)
        return dialect.bits.format(
            type=kind, bits=f"0x{bits:x}{suffix}", unsigned=unsigned, short=dtype.short
        )
    if np.isinf(value):
        suffix = "f" if dtype is dt.float32 else ""
        return ("-" if value < 0 else "") + dialect.infinity.format(suffix=suffix)
    text = np.format_float_positional(value, unique=True, trim="0")
    if len(text) > 12:
        text = np.format_float_scientific(value, unique=True, trim="0")
    return text + ("f" if dtype is dt.float32 else "")


def _integer(value: int, dtype: DType) -> str:
    if value == np.iinfo(dtype.numpy).min and dtype.kind == "i" and dtype.nbytes >= 4:
        return f"({_integer(value + 1, dtype)} - 1)"
    suffix = "u" if dtype.kind == "u" and dtype.nbytes >= 4 else ""
    wide = "ll" if dtype.nbytes == 8 and abs(value) > 0x7FFFFFFF else ""
    return f"{value}{suffix}{wide}"


class _Printer:
    def __init__(self, ast: KernelAST, dialect: Dialect) -> None:
        self.ast, self.dialect = ast, dialect
        self.vectors: Vectors | None = dialect.vectors
        self.lines: list[str] = []
        self.depth = 0
        self.lane: Var | None = None
        self.varying: set[Var] = set()
        self.mask, self.like = "m", "m"
        self.arrays = {b.name: b for b in ast.scratch if b.place is Place.LANES}
        self.shared = tuple(b for b in ast.scratch if b.place is Place.SHARED)
        self.streams = False
        self.front: list[str] = []
        self.lanes = LANES
        self.divisors: dict[Expr, str] = {}
        self.num_divisors = 0

    def line(self, text: str) -> None:
        self.lines.append(INDENT * self.depth + text if text else "")

    def open(self, text: str) -> None:
        self.line(text + " {")
        self.depth += 1

    def close(self, text: str = "}") -> None:
        self.depth -= 1
        self.line(text)

    # The kernel and its loops.

    def kernel(self, name: str) -> str:
        d = self.dialect
        params = []
        for b in self.ast.params:
            kind, const = d.type_of(b.dtype), "" if b.written else "const "
            params.append(d.buffer.format(type=kind, const=const, name=b.name))
        params += [d.size.format(name=n) for n in self.ast.sizes]
        self.open(d.kernel.format(name=name, params=", ".join(params)))
        for text in d.prologue:
            self.line(text)
        for k, b in enumerate(self.ast.params):
            if d.unpack:
                kind, const = d.type_of(b.dtype), "" if b.written else "const "
                self.line(d.unpack.format(type=kind, const=const, name=b.name, k=k))
        for k, n in enumerate(self.ast.sizes):
            if d.unpack_size:
                self.line(d.unpack_size.format(name=n, k=k))
        self._scratch()
        for phase in self.ast.phases:
            self._phase(phase)
        if self.streams and self.dialect.fence:
            self.line(self.dialect.fence)
        self.close()
        return "\n".join(self._used(self.lines)) + "\n"

    def _used(self, lines: list[str]) -> list[str]:
        """The lines without fetched arguments that nothing reads."""
        if not self.dialect.unpack_size:
            return lines
        template, sizes = self.dialect.unpack_size, enumerate(self.ast.sizes)
        fetched = {template.format(name=n, k=k): n for k, n in sizes}
        rest = "\n".join(x for x in lines if x.strip() not in fetched)
        words = set(re.findall(r"\w+", rest))
        return [x for x in lines if fetched.get(x.strip(), "") in words or x.strip() not in fetched]

    def _scratch(self) -> None:
        offset: list[str] = []
        total = " + ".join(self._nbytes(b.extent, b.dtype) for b in self.shared)
        if self.shared and self.dialect.scratch_base:
            self.line(self.dialect.scratch_base)
        for b in self.shared:
            where = " + ".join(offset) or "0"
            kind = self.dialect.type_of(b.dtype)
            self.line(
                self.dialect.scratch.format(type=kind, name=b.name, offset=where, total=total)
            )
            offset.append(self._nbytes(b.extent, b.dtype))

    def _nbytes(self, extent: Extent, dtype: DType) -> str:
        if isinstance(extent, int):
            return str(-(-extent * dtype.nbytes // ALIGN) * ALIGN)
        return f"({extent} * {dtype.nbytes} + {ALIGN - 1}) / {ALIGN} * {ALIGN}"

    def _phase(self, phase: Phase) -> None:
        self._for(self.dialect.grid, phase.tile)
        if phase.rows is not None:
            self._for(self.dialect.warp, phase.rows)
        for let in phase.lets:
            self._let(let)
        for b in self.arrays.values():
            self._array(b)
        for stage in phase.stages:
            self._stage(stage)
        if phase.rows is not None:
            self.close()
        self.close()

    def _array(self, b: Buffer) -> None:
        """The registers that hold a row's vectors between its stages."""
        if self.vectors is None or not isinstance(b.extent, int):
            raise CodeGenError(
                f"dialect {self.dialect.name} keeps no row in registers; plan for its own target"
            )
        count = -(-b.extent // LANES)
        kind = self.dialect.type_of(b.dtype)
        self.line(self.vectors.array.format(type=kind, name=b.name, count=count))

    def _for(self, template: str, loop: Loop) -> None:
        stop = self.expr(loop.stop)
        if loop.limit is not None:
            limit = self.expr(loop.limit)
            name = f"{loop.var.name}_end"
            kind = self.dialect.type_of(dt.int64)
            self.line(f"const {kind} {name} = {stop} < {limit} ? {stop} : {limit};")
            stop = name
        self.open(
            template.format(var=loop.var.name, start=self.expr(loop.start), stop=stop)
        )

    # Stages.

    def _stage(self, stage: Stage) -> None:
        lane = next((x for x in stage.loops if x.level is Level.CTA), None)
        rows = [x for x in stage.loops if x.level is Level.WARP]
        serial = [x for x in stage.loops if x.level is Level.THREAD]
        folds = [s for s in stage.body if isinstance(s, Fold)]
        for loop in rows:
            self._for(self.dialect.warp, loop)
        for let in stage.before:
            self._let(let)
        if lane is None:
            for s in stage.body:
                self._statement(s)
            return
        self.lane, self.varying, self.divisors = lane.var, {lane.var}, {}
        self.lanes = LANES if self._is_fixed(lane) else self._pack(stage)
        self._declare(folds, lane)
        for loop in serial:
            self._for(self.dialect.thread, loop)
        self._lanes(stage, lane)
        for _ in serial:
            self.close()
        self.lane, self.varying, self.lanes = None, set(), LANES
        for f in folds:
            if f.buffer is None:
                self._finish(f)
        for store in stage.after:
            self._store(store)
        for _ in rows:
            self.close()

    def _is_fixed(self, lane: Loop) -> bool:
        """Whether the lane loop is short and known, so that it is no loop."""
        known = isinstance(lane.stop, Const) and int(lane.stop.value) <= SHORT
        return self.vectors is not None and bool(self.vectors.fixed) and known

    def _pack(self, stage: Stage) -> int:
        """How many lanes the stage takes a turn.

        Packs, where a fold or a long formula would else wait for itself.
        """
        values = [s.value for s in stage.body if not isinstance(s, Prefetch)]
        found = [x for value in values for x in _parts(value)]
        slow = sum(isinstance(x, Call) and x.name in SLOW for x in found)
        folds = any(isinstance(s, Fold) and s.buffer is None for s in stage.body)
        wide = any(x.dtype.nbytes > 4 for x in found)
        long = slow > 1 or (folds and not slow)
        return PACK if long and not wide else LANES

    def _declare(self, folds: list[Fold], lane: Loop) -> None:
        for f in folds:
            name, kind = f"{f.var.name}_lanes", self.dialect.type_of(f.var.dtype)
            if f.buffer is not None:
                assert f.index is not None
                store = Store(f.buffer, f.index, f.identity)
                self._lanes(Stage("identity", (lane,), (store,)), lane)
            elif self.vectors is None:
                self.line(f"{kind} {name} = {self.expr(f.identity)};")
            elif which := _extreme(f):
                self.line(
                    self.vectors.extreme.format(which=which, type=kind, lanes=self.lanes, name=name)
                )
            else:
                self.line(
                    self.vectors.folding.format(
                        type=kind,
                        lanes=self.lanes,
                        name=name,
                        identity=self.expr(f.identity),
                        combine=self._combine(f),
                    )
                )

    def _combine(self, f: Fold) -> str:
        """A fold's combination of a and b, which are vectors."""
        self.varying |= {left(f.var.dtype), right(f.var.dtype)}
        self.like = "a"
        text = self.splat(f.combine)
        self.varying -= {left(f.var.dtype), right(f.var.dtype)}
        self.like = "m"
        return text

    def _finish(self, f: Fold) -> None:
        template = self.dialect.fold if self.vectors is None else self.vectors.result
        text = template.format(
            type=self.dialect.type_of(f.var.dtype),
            name=f.var.name,
            acc=f"{f.var.name}_lanes",
            combine=self.expr(f.combine),
        )
        for part in text.splitlines():
            self.line(part)

    def _lanes(self, stage: Stage, lane: Loop) -> None:
        """The lane loop: what no lane changes stands in front of it."""
        inside: list[Statement] = []
        for s in stage.body:
            if isinstance(s, Let) and not self._depends(s.value):
                self._let(s)
                continue
            if isinstance(s, Let):
                self.varying.add(s.var)
            inside.append(s)
        saved, self.lines = self.lines, []
        self.front = []
        self.depth += 1
        for s in inside:
            self._statement(s)
        self.depth -= 1
        body, self.lines = self.lines, saved
        for text in self.front:
            self.line(text)
        template = self.dialect.lane if self.vectors is None else self.vectors.loop
        if self.vectors is not None and self._is_fixed(lane):
            template = self.vectors.fixed
        elif self.vectors is not None and self.lanes > LANES:
            template = self.vectors.pack_loop
        self._for_lanes(template, lane)
        self.lines += body
        self.close("}" if self.vectors is None else self.vectors.loop_end)

    def _for_lanes(self, template: str, lane: Loop) -> None:
        start, stop = self.expr(lane.start), self.expr(lane.stop)
        self.open(
            template.format(var=lane.var.name, start=start, stop=stop, lanes=self.lanes)
        )

    # Statements.

    def _statement(self, s: Statement) -> None:
        match s:
            case Let():
                self._let(s)
            case Store():
                self._store(s)
            case Fold():
                self._fold(s)
            case Prefetch(buffer, index):
                if self.dialect.prefetch:
                    at = self._address(buffer, index)
                    self.line(self.dialect.prefetch.format(at=at, mask=self.mask))

    def _let(self, let: Let) -> None:
        kind, template = self.dialect.type_of(let.var.dtype), self.dialect.local
        if self.vectors is not None and self._varies(let.value):
            template = self.vectors.local
        self.line(template.format(type=kind, name=let.var.name, value=self.expr(let.value)))

    def _store(self, s: Store) -> None:
        v = self.vectors
        if s.buffer in self.arrays:
            self.line(f"{s.buffer}[k] = {self.splat(s.value)};")
            return
        if v is None or self.lane is None:
            self.line(f"{s.buffer}[{self.expr(s.index)}] = {self.expr(s.value)};")
            return
        step = self._step(s.index)
        value = self.splat(s.value)
        if step == 1:
            at = self._address(s.buffer, s.index)
            self.streams |= s.stream
            template = v.stream if s.stream else v.store
            self.line(template.format(at=at, value=value, mask=self.mask))
        elif step is not None and step != 0:
            at = self._address(s.buffer, s.index)
            self.line(
                v.store_strided.format(
                    at=at, value=value, stride=self._extent(step), mask=self.mask
                )
            )
        else:
            raise CodeGenError(
                f"a store to {s.buffer} must step along the lanes, got index {s.index}"
            )

    def _fold(self, f: Fold) -> None:
        if f.buffer is not None:
            assert f.index is not None
            old = Load(f.buffer, f.index, f.var.dtype)
            value = _replace(f.combine, {"a": old, "b": f.value})
            self._store(Store(f.buffer, f.index, value))
            return
        acc = Var(f"{f.var.name}_lanes", f.var.dtype)
        if self.vectors is not None:
            text = self.splat(f.value)
            self.line(self.vectors.take.format(acc=acc.name, value=text, mask=self.mask))
            return
        term = f.value
        if not isinstance(term, Var):
            term = Var(f"{f.var.name}_term", f.var.dtype)
            self._let(Let(term, f.value))
        step = self.expr(_replace(f.combine, {"a": acc, "b": term}))
        self.line(f"{acc.name} = {step};")

    # Expressions.

    def _depends(self, x: Expr) -> bool:
        """Whether a value changes along the lane loop."""
        return self.lane is not None and any(v in self.varying for v in variables(x))

    def _varies(self, x: Expr) -> bool:
        """Whether a value is printed as a vector."""
        return self.vectors is not None and self._depends(x)

    def splat(self, x: Expr) -> str:
        """An expression as a vector, even where all lanes agree."""
        text = self.expr(x)
        if self.vectors is None or self.lane is None or self._varies(x):
            return text
        kind = self.dialect.type_of(x.dtype)
        return self.vectors.splat.format(type=kind, value=text, like=self.like)

    def operand(self, x: Expr, other: Expr) -> str:
        """One of two operands of a function that takes a scalar beside a vector."""
        plain = x.dtype.is_float and self._varies(other)
        return self.expr(x) if plain else self.splat(x)

    def expr(self, x: Expr, outer: int = 0) -> str:
        """The text of an expression inside one of precedence ``outer``."""
        text, inner = self._expr(x)
        return f"({text})" if inner < outer else text

    def _expr(self, x: Expr) -> tuple[str, int]:
        match x:
            case Const():
                text = literal(x, self.dialect)
                return text, UNARY if text.startswith("-") else ATOM
            case Var():
                if x == self.lane and self.vectors is not None:
                    return self.vectors.lane_value.format(var=x.name), ATOM
                return x.name, ATOM
            case SizeOf(size):
                return str(size), ATOM
            case Load():
                return self._load(x), ATOM
            case Unary(op, a):
                if op == "~" and x.dtype is dt.bool_ and not self._varies(x):
                    op = "!"
                return self._narrow(x, op + self.expr(a, UNARY + 1), UNARY)
            case Binary():
                return self._narrow(x, *self._binary(x))
            case Call(name, args):
                spelling = self.dialect.call_of(name, x.dtype)
                varies = self._varies(x)
                if varies and name in ("maximum", "minimum"):
                    texts = [self.operand(*args), self.operand(*args[::-1])]
                else:
                    texts = [self.splat(a) if varies else self._typed(a) for a in args]
                return f"{spelling}({', '.join(texts)})", ATOM
            case Cast(a):
                return self.dialect.cast_of(a.dtype, x.dtype, self.expr(a)), UNARY
            case Select():
                return self._select(x)
        raise CodeGenError(f"the C printer does not know {type(x).__name__}")

    def _narrow(self, x: Expr, text: str, level: int) -> tuple[str, int]:
        """Scalar arithmetic on integers of 8 and 16 bits, which C does in 32, wrapped again."""
        if not x.dtype.is_integer or x.dtype.nbytes >= 4 or self._varies(x):
            return text, level
        return self.dialect.cast.format(type=self.dialect.type_of(x.dtype), value=text), UNARY

    def _typed(self, x: Expr) -> str:
        """An expression whose type the language cannot mistake: a literal says its own."""
        text = self.expr(x)
        return text if _says_its_type(x) else self.dialect.cast_of(x.dtype, x.dtype, text)

    def _binary(self, x: Binary) -> tuple[str, int]:
        op = "/" if x.op == "//" else x.op
        level = PRECEDENCE[op]
        if op in ("/", "%") and x.a.dtype.is_integer and not self._is_position(x):
            name = self.dialect.call_of("cut_divide" if op == "/" else "fmod", x.dtype)
            a, b = (self.splat(s) if self._varies(x) else self._typed(s) for s in (x.a, x.b))
            return f"{name}({a}, {b})", ATOM
        if (
            op == "/"
            and x.dtype.is_float
            and self.vectors is not None
            and self._varies(x.a)
            and not self._varies(x.b)
            and not _is_power_of_two(x.b)
        ):
            return f"{self.expr(x.a, level)} / {self._divisor(x.b)}", level
        right = level if op in "+*&|^" and not x.dtype.is_float else level + 1
        if x.a.dtype is dt.bool_ and self._varies(x):  # masks do not mix with scalars
            sides = (x.a, level), (x.b, right)
            a, b = (self.expr(s, n) if self._varies(s) else self.splat(s) for s, n in sides)
            return f"{a} {op} {b}", level
        return f"{self.expr(x.a, level)} {op} {self.expr(x.b, right)}", level

    def _is_position(self, x: Binary) -> bool:
        """Whether a quotient is a part of an index: its divisor is an extent, so never 0 or -1."""
        b = x.b
        extent = isinstance(b, Const) and b.value > 0
        extent |= isinstance(b, Var) and b.name in self.ast.sizes
        return extent and b.dtype is dt.int64 and not self._varies(x)

    def _divisor(self, b: Expr) -> str:
        """One divisor serves all lanes: its reciprocal is taken once, in front of the loop."""
        assert self.vectors is not None
        if b not in self.divisors:
            name = self.divisors[b] = f"by{self.num_divisors}"
            self.num_divisors += 1
            kind = self.dialect.type_of(b.dtype)
            template, high, low = self.vectors.divisor, "", ""
            if isinstance(b, Const) and (pair := reciprocal(float(b.value), b.dtype.nbytes)):
                template = self.vectors.known_divisor
                high, low = (literal(const(x, b.dtype), self.dialect) for x in pair)
            self.front.append(
                template.format(type=kind, name=name, value=self.expr(b), high=high, low=low)
            )
        return self.divisors[b]

    def _select(self, x: Select) -> tuple[str, int]:
        v = self.vectors
        if v is None or not self._varies(x):
            c, b = self.expr(x.condition, TERNARY + 1), self.expr(x.b, TERNARY)
            a = self.expr(x.a, TERNARY + isinstance(x.a, Select))
            return f"{c} ? {a} : {b}", TERNARY
        condition = self.splat(x.condition)
        outer = self.mask
        self.mask = v.both.format(mask=outer, condition=condition)
        a = self.operand(x.a, x.b)
        self.mask = v.only.format(mask=outer, condition=condition)
        b = self.operand(x.b, x.a)
        self.mask = outer
        return v.select.format(condition=condition, a=a, b=b), ATOM

    # Memory.

    def _step(self, index: Expr) -> Extent | None:
        """How far the index moves from one lane to the next; None when unevenly."""
        assert self.lane is not None
        total = normal(index, {})
        for atom, _ in total.terms:
            if atom != self.lane and self.lane in set(variables(atom)):
                return None
        for atom, _ in total.terms:
            if isinstance(atom, Binary) and self.lane in set(variables(atom)):
                return None
        return total.coefficient(self.lane)

    def _extent(self, x: Extent) -> str:
        return str(x)

    def _load(self, x: Load) -> str:
        v = self.vectors
        if x.buffer in self.arrays:
            return f"{x.buffer}[k]"
        if v is None or self.lane is None or not self._varies(x.index):
            return f"{x.buffer}[{self._plain(x.index)}]"
        step = self._step(x.index)
        kind = self.dialect.type_of(x.dtype)
        if step == 1:
            return v.load.format(at=self._address(x.buffer, x.index), mask=self.mask)
        if step is not None:
            return v.load_strided.format(
                at=self._address(x.buffer, x.index), stride=self._extent(step), mask=self.mask
            )
        return v.gather.format(
            type=kind,
            var=self.lane.name,
            buffer=x.buffer,
            index=self._plain(x.index),
            mask=self.mask,
        )

    def _address(self, buffer: str, index: Expr) -> str:
        text = self._plain(index)
        return buffer if text == "0" else f"{buffer} + {text}"

    def _plain(self, index: Expr) -> str:
        """An index as a scalar: at the first lane of the vector."""
        lane, self.lane = self.lane, None
        text = self.expr(index)
        self.lane = lane
        return text


def _says_its_type(x: Expr) -> bool:
    """Whether C gives an expression its own type: literals are int, narrow integers become int."""
    match x:
        case Const():
            plain = not x.dtype.is_integer or x.dtype is dt.int32
            return plain and not (x.dtype.is_float and bool(np.isinf(x.value)))
        case Binary(_, a, b) if x.dtype is not dt.bool_:
            return not _is_narrow(x) and (_says_its_type(a) or _says_its_type(b))
        case Select(_, a, b):
            return not _is_narrow(x) and (_says_its_type(a) or _says_its_type(b))
        case Unary(_, a):
            return not _is_narrow(x) and _says_its_type(a)
    return True


def _is_narrow(x: Expr) -> bool:
    return x.dtype.is_integer and x.dtype.nbytes < 4


def _parts(x: Expr) -> Iterator[Expr]:
    """The values that an expression computes; an index is none of them."""
    yield x
    if not isinstance(x, Load):
        for child in children(x):
            yield from _parts(child)


def _extreme(f: Fold) -> str | None:
    """The fold that is just the greatest or least of floats."""
    a, b = left(f.var.dtype), right(f.var.dtype)
    if not f.var.dtype.is_float or not np.isinf(f.identity.value):
        return None
    if f.identity.value < 0 and f.combine == Call("maximum", (a, b), f.var.dtype):
        return "largest"
    if f.identity.value > 0 and f.combine == Call("minimum", (a, b), f.var.dtype):
        return "smallest"
    return None


def _is_power_of_two(x: Expr) -> bool:
    """Whether dividing by a literal is exactly multiplying by its reciprocal."""
    return isinstance(x, Const) and bool(x.value) and abs(np.frexp(x.value)[0]) == 0.5


def _replace(x: Expr, values: dict[str, Expr]) -> Expr:
    if isinstance(x, Var):
        return values.get(x.name, x)
    return replace_children(x, lambda child: _replace(child, values))
