"""vectorize: vector loops become vector accesses around unrolled loops.

GPU threads compute with single numbers. So a vector loop of ``width`` positions becomes an unrolled
loop over register arrays of that many elements, which vector loads fill and vector stores read. An
access is a vector access if its index increases by 1 with the position and is a multiple of the
width at position 0; any other stays an access for each position.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from attrs import evolve

from passkit.ast import Binary, Const, Expr, Load, Select, Var
from passkit.ast.index import Sum, expression, normal
from passkit.ast.tidy import replace_children
from passkit.ast.walk import has_loads, loads
from passkit.ir.divisors import divisor_of
from passkit.ir.index import literal, plus, with_literals
from passkit.ir.loop import (
    ACCESS_NBYTES,
    Bind,
    CachePolicy,
    Declare,
    For,
    If,
    IsAligned,
    KernelIR,
    LetStmt,
    LoopBuffer,
    ReduceStmt,
    Stmt,
    StorageScope,
    StoreStmt,
    VectorLoad,
    VectorStore,
    walk_statements,
)
from passkit.ir.rewrite import map_bodies, map_expressions, substitute, variable_names
from passkit.values import dtype as dt

Definitions = Mapping[str, Expr]
VECTOR_COMPARISONS = ("<", "<=", ">", ">=")
"""Comparisons of a position with a limit that is a multiple of the vector's width, or 1 less."""


def vector_base(index: Expr, var: Var, width: int, definitions: Definitions) -> Expr | None:
    """Return the index at position 0 of a vector access; None if it is no vector access.

    Args:
        index: the index of the element at a position.
        var: the variable of the position.
        width: the number of positions.
        definitions: the values of variables that are defined in front of the loop.
    """
    if has_loads(index) or var.name not in variable_names(index):
        return None
    total = normal(index, {})
    rest = Sum(tuple(t for t in total.terms if t[0] != var), total.constant)
    if total.coefficient(var) != 1 or any(var.name in variable_names(a) for a, _ in rest.terms):
        return None
    base = with_literals(expression(rest))
    return None if divisor_of(base, definitions) % width else base


def vector_condition(
    condition: Expr, var: Var, width: int, definitions: Definitions
) -> Expr | None:
    """Return a condition that holds at all positions of a vector, or at none, without the position.

    Args:
        condition: a comparison of integers, or several that are joined by ``&`` or ``|``.
        var: the variable of the position.
        width: the number of positions.
        definitions: the values of variables that are defined in front of the loop.

    Returns:
        None where positions may differ: the position is compared with what may be no multiple of
        ``width``, or the condition is of another form.
    """
    if has_loads(condition):
        return None
    if var.name not in variable_names(condition):
        return condition
    if not isinstance(condition, Binary):
        return None
    op, a, b = condition.op, condition.a, condition.b
    if op in ("&", "|") and condition.dtype == dt.bool_:
        sides = [vector_condition(x, var, width, definitions) for x in (a, b)]
        first, second = sides
        if first is None or second is None:
            return None
        return Binary(op, first, second, dt.bool_)
    if op not in VECTOR_COMPARISONS or var.name in variable_names(b) or not b.dtype.is_integer:
        return None
    limit = b if op in ("<", ">=") else plus(b, literal(1))
    base = vector_base(a, var, width, definitions)
    if base is None or divisor_of(with_literals(limit), definitions) % width:
        return None
    return Binary(op, base, b, dt.bool_)


def vectorize(kernel: KernelIR) -> KernelIR:
    """Return the kernel without VECTOR loops."""
    return _Vectorizer(kernel).kernel_without_vector_loops()


class _Vectorizer:
    """The rewriting of one kernel, which collects the register arrays that it adds."""

    def __init__(self, kernel: KernelIR) -> None:
        self.kernel = kernel
        self.params = {b.name: b for b in kernel.params}
        self.registers = {b.name for b in kernel.arrays if b.scope is StorageScope.REGISTER}
        self.new_arrays: list[LoopBuffer] = []

    def kernel_without_vector_loops(self) -> KernelIR:
        """Return the rewritten kernel."""
        body = self._statements(self.kernel.body, {})
        return evolve(self.kernel, body=body, arrays=(*self.kernel.arrays, *self.new_arrays))

    def _statements(self, body: tuple[Stmt, ...], outer: Definitions) -> tuple[Stmt, ...]:
        """Return a body without VECTOR loops; ``outer`` has the definitions in front of it."""
        definitions = dict(outer)
        out: list[Stmt] = []
        for statement in body:
            if isinstance(statement, LetStmt):
                definitions[statement.var.name] = statement.value
            if isinstance(statement, For) and statement.bind is Bind.VECTOR:
                out += self._vector_loop(statement, definitions)
            elif isinstance(statement, For):
                # What divides the first value and the step divides the variable.
                values = plus(statement.start, literal(statement.step))
                inside = {**definitions, statement.var.name: values}
                out.append(map_bodies(statement, partial(self._statements, outer=inside)))
            elif isinstance(statement, If):
                out.append(map_bodies(statement, partial(self._statements, outer=definitions)))
            else:
                out.append(self._single(statement))
        return tuple(out)

    def _single(self, statement: Stmt) -> Stmt:
        """Return a statement outside of vector loops; a copy to a register is a load."""
        if (
            isinstance(statement, StoreStmt)
            and statement.buffer in self.registers
            and isinstance(statement.value, Load)
            and statement.value.buffer in self.params
        ):
            load = statement.value
            access = self._access(load.buffer, CachePolicy.STREAM)
            return VectorLoad(statement.buffer, statement.index, load.buffer, load.index, 1, access)
        return statement

    def _access(self, buffer: str, access: CachePolicy) -> CachePolicy:
        """Return how a parameter is loaded."""
        is_changing = buffer in self.kernel.aliased or self.params[buffer].written
        return CachePolicy.CHANGING if is_changing else access

    def _vector_loop(self, loop: For, definitions: Definitions) -> list[Stmt]:
        """Return the statements in place of a VECTOR loop."""
        assert isinstance(loop.stop, Const)
        width, var = int(loop.stop.value), loop.var
        copied = self._copy(loop, width, definitions)
        if copied is not None:
            return [copied]
        before: list[Stmt] = []
        after: list[Stmt] = []
        loaded: dict[Load, str] = {}
        inside = {
            s.var.name for s in walk_statements(loop.body) if isinstance(s, (LetStmt, Declare))
        }

        indices = _index_definitions(loop.body)

        def change(x: Expr) -> Expr:
            if isinstance(x, Select):  # what an arm loads may exist only where it is chosen
                whole = substitute(x, indices)
                assert isinstance(whole, Select)
                name = self._selected_vector(whole, loop, definitions, inside, before)
                if name is not None:
                    return Load(name, var, x.dtype)
                return Select(change(x.condition), x.a, x.b, x.dtype)
            if isinstance(x, Load) and x.buffer in self.params:
                if x not in loaded:
                    base = vector_base(x.index, var, width, definitions)
                    is_wide = self._is_wide(x.buffer, width)
                    if base is None or is_wide or not inside.isdisjoint(variable_names(base)):
                        return replace_children(x, change)
                    name = self._array(x.buffer, x.dtype, width)
                    loaded[x] = name
                    access = self._access(x.buffer, CachePolicy.KEEP)
                    before.append(VectorLoad(name, literal(0), x.buffer, base, width, access))
                return Load(loaded[x], var, x.dtype)
            return replace_children(x, change)

        body: list[Stmt] = []
        for statement in loop.body:
            changed = _changed(statement, change)
            store = changed.body[0] if isinstance(changed, If) else changed
            if isinstance(store, StoreStmt) and store.buffer in self.params:
                base = vector_base(store.index, var, width, definitions)
                is_wide = self._is_wide(store.buffer, width)
                if base is not None and not is_wide and inside.isdisjoint(variable_names(base)):
                    name = self._array(store.buffer, self.params[store.buffer].dtype, width)
                    body.append(StoreStmt(name, var, store.value))
                    whole: Stmt = VectorStore(
                        store.buffer, base, name, literal(0), width, store.stream
                    )
                    is_guarded = isinstance(changed, If)
                    after.append(If(changed.condition, (whole,)) if is_guarded else whole)  # type: ignore[union-attr]
                    continue
            body.append(changed)
        unrolled = For(var, loop.start, loop.stop, Bind.UNROLL, tuple(body))
        return [*before, unrolled, *after]

    def _selected_vector(
        self, x: Select, loop: For, definitions: Definitions, inside: set[str], before: list[Stmt]
    ) -> str | None:
        """Compute a choice between loads for a vector in front of its loop, in a branch.

        So a concatenation or a pad along the vectors reads vectors, where its bounds are multiples
        of their width.

        Args:
            x: the choice.
            loop: the vector loop.
            definitions: the values of variables that are defined in front of the loop.
            inside: the names of the variables that are defined in its body.
            before: where the statements go.

        Returns:
            The register array with a choice for each position. None where the positions of a vector
            may choose differently, an arm uses a value of the body, or nothing is loaded.
        """
        width, var = int(loop.stop.value), loop.var  # type: ignore[attr-defined]
        condition = vector_condition(x.condition, var, width, definitions)
        is_loading = any(a.buffer in self.params for arm in (x.a, x.b) for a in loads(arm))
        if condition is None or not is_loading or not inside.isdisjoint(variable_names(x)):
            return None
        name = self._array("selected", x.dtype, width)
        self.registers.add(name)

        def chosen(arm: Expr) -> tuple[Stmt, ...]:
            store = evolve(loop, body=(StoreStmt(name, var, arm),))
            return tuple(self._vector_loop(store, definitions))

        holds = Var(f"{name}_holds", dt.bool_)
        before += [LetStmt(holds, condition), If(holds, chosen(x.a), chosen(x.b))]
        return name

    def _copy(self, loop: For, width: int, definitions: Definitions) -> Stmt | None:
        """Return the vector load for a loop that copies a parameter to registers, else None.

        It is None, too, if a vector would have more than `ACCESS_NBYTES`.
        """
        match loop.body:
            case (StoreStmt(buffer, at, Load(source, index)),) if buffer in self.registers:
                if source not in self.params or self._is_wide(source, width):
                    return None
                base = vector_base(index, loop.var, width, definitions)
                begin = vector_base(at, loop.var, width, definitions) if at != loop.var else None
                if at == loop.var:
                    begin = literal(0)
                if base is None or begin is None:
                    return None
                access = self._access(source, CachePolicy.STREAM)
                return VectorLoad(buffer, begin, source, base, width, access)
        return None

    def _is_wide(self, buffer: str, width: int) -> bool:
        """Return whether so many elements of a parameter are too many bytes for one access."""
        return width * self.params[buffer].dtype.nbytes > ACCESS_NBYTES

    def _array(self, buffer: str, dtype: dt.DType, width: int) -> str:
        """Add a register array for a vector of a buffer, and return its name."""
        number = sum(b.name.startswith(f"{buffer}_v") for b in self.new_arrays)
        name = f"{buffer}_v{number}"
        self.new_arrays.append(LoopBuffer(name, dtype, StorageScope.REGISTER, width, True))
        return name


def _index_definitions(body: tuple[Stmt, ...]) -> dict[str, Expr]:
    """Return the values of integers that a body defines from others, without their own names."""
    definitions: dict[str, Expr] = {}
    for s in body:
        if isinstance(s, LetStmt) and s.var.dtype == dt.int64 and not has_loads(s.value):
            definitions[s.var.name] = substitute(s.value, definitions)
    return definitions


def _changed(statement: Stmt, change: object) -> Stmt:
    """Return a statement of a vector loop with ``change`` applied to its expressions."""
    if isinstance(statement, If):
        inner = tuple(map_expressions(s, change) for s in statement.body)  # type: ignore[arg-type]
        return evolve(statement, body=inner)
    if isinstance(statement, (LetStmt, StoreStmt, ReduceStmt, Declare)):
        return map_expressions(statement, change)  # type: ignore[arg-type]
    return statement


def scalar_accesses(kernel: KernelIR) -> KernelIR:
    """Return the kernel with an access for each element in place of vector accesses.

    It computes the same bits, for buffers whose addresses are not aligned to vectors.
    """
    var = Var("element", dt.int64)

    def statements(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(map(statement_of, body))

    params = {b.name for b in kernel.params}

    def statement_of(s: Stmt) -> Stmt:
        match s:
            case VectorLoad() if s.width > 1 and s.buffer in params:
                at, index = _shifted(s.at, var), _shifted(s.index, var)
                inner: Stmt = evolve(s, at=at, index=index, width=1)
                return For(var, literal(0), literal(s.width), Bind.UNROLL, (inner,))
            case VectorStore() if s.width > 1 and s.buffer in params:
                at, index = _shifted(s.at, var), _shifted(s.index, var)
                inner = evolve(s, at=at, index=index, width=1)
                return For(var, literal(0), literal(s.width), Bind.UNROLL, (inner,))
            case For():
                return evolve(s, body=statements(s.body))
            case If():
                body, otherwise = statements(s.body), statements(s.otherwise)
                return evolve(s, body=body, otherwise=otherwise)
        return s

    return evolve(kernel, body=statements(kernel.body))


def guard_alignment(kernel: KernelIR) -> KernelIR:
    """Return the kernel with a branch for parameters whose addresses are not aligned to vectors.

    One test of all addresses decides for the whole kernel, so that neither branch has any more. A
    kernel with a peeled loop runs that loop for them.
    """
    dtypes = {b.name: b.dtype for b in kernel.params}
    accesses = [
        s
        for s in walk_statements(kernel.body)
        if isinstance(s, (VectorLoad, VectorStore)) and s.buffer in dtypes
    ]
    nbytes = max((s.width * dtypes[s.buffer].nbytes for s in accesses if s.width > 1), default=0)
    if not nbytes:
        return kernel
    names = {s.buffer for s in accesses if s.width > 1}
    buffers = tuple(b.name for b in kernel.params if b.name in names)
    is_aligned = IsAligned(buffers, nbytes)
    peeled = [s for s in kernel.body if isinstance(s, If) and s.is_peeled]
    if peeled:
        (branch,) = peeled
        condition: Expr = is_aligned
        if not isinstance(branch.condition, Const):
            condition = Binary("&", branch.condition, is_aligned, dt.bool_)
        guarded = evolve(branch, condition=condition)
        return evolve(kernel, body=tuple(guarded if s is branch else s for s in kernel.body))
    scalar = scalar_accesses(kernel).body
    return evolve(kernel, body=(If(is_aligned, kernel.body, scalar),))


def _shifted(index: Expr, var: Var) -> Expr:
    """Return ``index + var``."""
    return var if index == literal(0) else Binary("+", index, var, dt.int64)
