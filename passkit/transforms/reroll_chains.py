"""reroll_chains: a long chain of one operation in a vector loop becomes a loop inside of it.

An unrolled reduction is one expression, ``0 + x[i] + x[i + n] + x[i + 2n] + ...``. GCC evaluates
the operands of such a chain, the last one first, before it combines any of them: if each is more
than a load, their vectors exceed the registers, and to place them takes it longer than all else. In
a loop only the total and one operand are live. Elements are combined in the same order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import pairwise

from attrs import frozen

from passkit.ast import Binary, Call, Expr, Load, Select, SizeOf, Var, const, is_const
from passkit.ast.index import Sum, add, normal
from passkit.ast.stage import Fold, KernelAST, Let, Running, Stage, Statement, Store
from passkit.ast.tidy import expressions, replace_children
from passkit.ast.walk import children, variables
from passkit.values import dtype as dt
from passkit.values.size import Extent

MIN_OPERANDS = 16
"""The fewest operands of a chain that becomes a loop."""
OPERATORS = ("+", "*", "&", "|", "^")
FUNCTIONS = ("maximum", "minimum")

Sizes = Mapping[str, Extent]
"""The values of a kernel's size arguments by name."""


@frozen
class Chain:
    """``total = first``, then ``total = step`` for each ``position`` from ``start`` below ``stop``.

    The variables are of their own.
    """

    total: Var
    first: Expr
    position: Var
    start: int
    stop: int
    step: Expr


def rerolled(statements: Sequence[Statement], sizes: Sizes) -> list[Statement | Chain]:
    """Return statements with a loop for each long chain, in front of the statement that has it.

    Loads in local variables that only a chain reads move into it, unless a store is in between.

    Args:
        statements: the statements of a vector loop.
        sizes: the values of size arguments: places in memory that are one multiple of an argument
            apart from each other are known to be so only with these.
    """
    uses = Counter(v for s in statements for x in expressions(s) for v in variables(x))
    loaded: dict[Var, Load] = {}
    out: list[Statement | Chain] = []
    for s in statements:
        if isinstance(s, (Store, Fold, Running)) and s.buffer is not None:
            loaded.clear()  # what was loaded before the store stays there
        chain = _chain_of(s, loaded, uses, sizes) if isinstance(s, Let) else None
        if chain is not None:
            assert isinstance(s, Let)
            loop, value, moved = chain
            out = [x for x in out if not (isinstance(x, Let) and x.var in moved)]
            out.append(loop)
            s = Let(s.var, value)
        elif isinstance(s, Let) and isinstance(s.value, Load):
            loaded[s.var] = s.value
        out.append(s)
    return out


def has_long_chains(ast: KernelAST) -> bool:
    """Return whether a kernel has a long chain of one operation, which may become a loop."""
    stages = (s for phase in ast.phases for s in phase.stages if isinstance(s, Stage))
    statements = (s for stage in stages for s in (*stage.before, *stage.body))
    return any(_long_chain(s.value) is not None for s in statements if isinstance(s, Let))


def _long_chain(x: Expr) -> Expr | None:
    """Return a chain of many operands in an expression; None without one."""
    return next((y for y in _everywhere(x) if len(_operands(y)) >= MIN_OPERANDS), None)


def _chain_of(
    let: Let, loaded: Mapping[Var, Load], uses: Counter[Var], sizes: Sizes
) -> tuple[Chain, Expr, Set[Var]] | None:
    """Return the chain of a local variable's value as a loop, and the value with its total.

    The third part of the result are the variables whose loads are in the loop.

    Args:
        let: the local variable.
        loaded: the local variables that are loads.
        uses: how often each variable is read.
        sizes: the values of size arguments.

    Returns: None if the value has no long chain, or one that is no loop.
    """
    chain = _long_chain(let.value)
    if chain is None:
        return None
    own = Counter(v for x in _operands(chain) for v in set(variables(x)))
    inside = Counter(variables(chain))
    moving = {v: x for v, x in loaded.items() if own[v] == 1 and inside[v] == uses[v]}

    def with_loads(x: Expr) -> Expr:
        """Return an expression with loads in place of their variables."""
        return moving.get(x, x) if isinstance(x, Var) else replace_children(x, with_loads)

    first, *operands = map(with_loads, _operands(chain))
    position = Var(f"{let.var.name}_operand", dt.int64)
    start, operand = 1, _at(position, [first, *operands], sizes)
    if operand is None:  # the chain begins with the identity of its operation
        start, operand = 0, _at(position, operands, sizes)
    stop = start + len(operands)
    if operand is None or stop < MIN_OPERANDS:
        return None
    total = Var(f"{let.var.name}_total", chain.dtype)

    def with_total(x: Expr) -> Expr:
        """Return an expression with the total in place of the chain."""
        return total if x is chain else replace_children(x, with_total)

    step = _with_operands(chain, total, operand)
    loop = Chain(total, first, position, start, stop, step)
    return loop, with_total(let.value), moving.keys()


def _everywhere(x: Expr) -> Iterator[Expr]:
    """Yield an expression and those of its parts that are computed at all points, as it is."""
    if not isinstance(x, (Load, Select)):
        yield x
        for part in children(x):
            yield from _everywhere(part)


def _operands(x: Expr) -> list[Expr]:
    """Return the operands of a chain of one operation, the innermost first; one of other values."""
    operands: list[Expr] = []
    while True:
        match x:
            case Binary(op, a, b) if op in OPERATORS:
                pass
            case Call(op, (a, b)) if op in FUNCTIONS:
                pass
            case _:
                break
        operands.append(b)
        is_same = type(a) is type(x) and a.dtype is x.dtype and _operation(a) == op
        x = a
        if not is_same:
            break
    return [x, *reversed(operands)]


def _operation(x: Expr) -> str:
    """Return the operator or the name of the function of an operation; "" for another value."""
    match x:
        case Binary(op) | Call(op):
            return op
    return ""


def _with_operands(operation: Expr, a: Expr, b: Expr) -> Expr:
    """Return an operation of a chain with other operands."""
    if isinstance(operation, Binary):
        return Binary(operation.op, a, b, operation.dtype)
    assert isinstance(operation, Call)
    return Call(operation.name, (a, b), operation.dtype)


def _at(position: Var, operands: Sequence[Expr], sizes: Sizes) -> Expr | None:
    """Return the expression that has the value of each operand at its position.

    Returns: None if there is none: the operands are loads alone, which GCC keeps in memory, or
    differ in more than indices that move evenly.
    """
    first = operands[0]
    if not children(first) or isinstance(first, Load):
        return None
    bare = _without_indices(first)
    if any(_without_indices(x) != bare for x in operands[1:]):
        return None
    places = [[normal(_with_sizes(x.index, sizes), {}) for x in _outer_loads(o)] for o in operands]
    steps = [_step(of_load) for of_load in zip(*places, strict=True)]
    distances = [_moved(position, s, sizes) for s in steps if s is not None]
    if not distances or len(distances) < len(steps) or None in distances:
        return None
    remaining = iter(distances)

    def moved(x: Expr) -> Expr:
        """Return an expression whose loads move with the position."""
        if not isinstance(x, Load):
            return replace_children(x, moved)
        distance = next(remaining)
        assert distance is not None
        return x if is_const(distance, 0) else Load(x.buffer, x.index + distance, x.dtype)

    return moved(first)


def _outer_loads(x: Expr) -> Iterator[Load]:
    """Yield the loads in an expression that are in no index of another."""
    if isinstance(x, Load):
        yield x
    else:
        for part in children(x):
            yield from _outer_loads(part)


def _without_indices(x: Expr) -> Expr:
    """Return an expression whose loads have the index 0."""
    if isinstance(x, Load):
        return Load(x.buffer, const(0, dt.int64), x.dtype)
    return replace_children(x, _without_indices)


def _with_sizes(x: Expr, sizes: Sizes) -> Expr:
    """Return an index with the values of size arguments in place of their names."""
    if isinstance(x, Var) and x.name in sizes:
        return SizeOf(sizes[x.name])
    return replace_children(x, lambda part: _with_sizes(part, sizes))


def _step(places: Sequence[Sum]) -> Extent | None:
    """Return how far each of some indices is from the one before; None if that differs."""
    distances = [add(b, a, -1) for a, b in pairwise(places)]
    if any(d.terms or d.constant != distances[0].constant for d in distances):
        return None
    return distances[0].constant


def _moved(position: Var, stride: Extent, sizes: Sizes) -> Expr | None:
    """Return how far a load has moved at a position; None for a stride without a name."""
    if stride in (0, 1):
        return position if stride == 1 else const(0, dt.int64)
    for name, value in sizes.items():
        if value == stride:
            return position * Var(name, dt.int64)
    return position * const(stride, dt.int64) if isinstance(stride, int) else None
