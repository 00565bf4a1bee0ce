"""What an operator reads: for an element of its result, the elements of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from attrs import frozen

from passkit.ast import Expr, Read, Select, Var, size_of
from passkit.ast.index import Extents, simplify
from passkit.ast.tidy import replace_children
from passkit.ast.walk import children, variables, walk
from passkit.errors import CodeGenError
from passkit.graph.attribute_calls import call_codegen, call_element
from passkit.graph.node import Entry, Node, known_shape
from passkit.graph.op import FCodeGen, FElement
from passkit.values import dtype as dt
from passkit.values.size import Shape

Index = tuple[Expr, ...]
Reader = Callable[..., Expr]


def broadcast_index(index: Sequence[Expr], shape: Shape) -> Index:
    """The index into an input of ``shape`` that broadcasts to a result indexed by ``index``."""
    tail = index[len(index) - len(shape) :]
    return tuple(size_of(0) if n == 1 else i for i, n in zip(tail, shape, strict=True))


def element_expr(node: Node, index: Index, readers: Sequence[Reader]) -> tuple[Expr, ...]:
    """The value of each result of ``node`` at ``index``, given a reader for each input.

    Raises: CodeGenError for an operator that has neither FElement nor FCodeGen.
    """
    op = node.op
    assert op is not None
    if FElement.get(op.name) is not None:
        return call_element(node, index, readers)
    if FCodeGen.get(op.name) is None:
        raise CodeGenError(
            f"{node.where} has no code: set FCodeGen or FElement on op {op.name}, or FCompute to "
            f"run it in NumPy"
        )
    values = [
        read(*broadcast_index(index, known_shape(e)))
        for read, e in zip(readers, node.inputs, strict=True)
    ]
    return call_codegen(node, *values)


@frozen
class Accesses:
    """Each read of an input, in order: its position and simplified index; and pinned variables.

    ``pinned`` are the index variables that the value itself depends on, ``numbers`` the integers
    through which it does. ``plain`` says that the value is what is read, and nothing else.
    """

    at: tuple[tuple[int, Index], ...]
    pinned: frozenset[Var] = frozenset()
    numbers: tuple[Expr, ...] = ()
    plain: bool = False


def accesses_of(node: Node, index: Index, extents: Extents) -> Accesses:
    """What ``node`` reads for its element_expr at ``index``."""
    op = node.op
    assert op is not None
    if not op.has_attr("FElement"):
        shapes = [known_shape(e) for e in node.inputs]
        return Accesses(tuple((k, broadcast_index(index, s)) for k, s in enumerate(shapes)))
    values, probes = _with_probes(node, index)
    known: dict[Expr, Expr] = {}
    found = []
    for probe, (k, given) in probes.items():
        at = tuple(simplify(_with_reads(i, known), extents) for i in given)
        found.append((k, at))
        if not probe.dtype.is_float:  # what a later index may be made of
            known[probe] = Read(node.inputs[k], at, probe.dtype)
    pinned = frozenset(v for x in values for v in variables(x) if v.name in extents)
    numbers = tuple(simplify(i, extents) for x in values for i in _integers(x, extents))
    return Accesses(tuple(found), pinned, numbers, plain=values == tuple(probes))


def _integers(x: Expr, extents: Extents) -> Iterator[Expr]:
    """The largest integer parts of a value that depend on index variables, with repetition."""
    if all(v.name not in extents for v in variables(x)):
        return
    if x.dtype == dt.int64 and not isinstance(x, Select):
        yield x
        return
    for child in children(x):
        yield from _integers(child, extents)


def _with_reads(x: Expr, values: Mapping[Expr, Expr]) -> Expr:
    """``x`` with the reads that it is made of in place of their variables."""
    if not values:
        return x
    if isinstance(x, Var):
        return values.get(x, x)
    return replace_children(x, lambda child: _with_reads(child, values))


def guarded_accesses(node: Node, index: Index) -> frozenset[int]:
    """The reads, by number, that happen in an arm of a select only.

    Elsewhere their index may be none.
    """
    values, probes = _with_probes(node, index)
    always, todo = set[Var](), list(values)
    while todo:  # what is computed for any element, and what the indices of its reads need
        for v in _unguarded(todo.pop()):
            if v in probes and v not in always:
                always.add(v)
                todo += probes[v][1]
    return frozenset(n for n, v in enumerate(probes) if v not in always)


def expression_size(nodes: Iterable[Node]) -> int:
    """The parts of the longest expression among ``nodes``, producers first, as one single tree.

    A value that its reader mentions twice is written twice: what is read in the arm of a select
    has no local, as its loads must not leave the arm.
    """
    sizes: dict[Entry, int] = {}
    for node in nodes:
        rank = len(known_shape(node.entries[0]))
        values, probes = _with_probes(node, tuple(Var(f"i{k}", dt.int64) for k in range(rank)))
        read = {v: sizes.get(node.inputs[k], 1) for v, (k, _) in probes.items()}
        for entry, x in zip(node.entries, values, strict=True):
            sizes[entry] = sum(read.get(part, 1) for part in walk(x))
    return max(sizes.values(), default=0)


def _with_probes(
    node: Node, index: Index
) -> tuple[tuple[Expr, ...], dict[Expr, tuple[int, Index]]]:
    """The value(s) of ``node`` with a variable for each read, and which input that reads where."""
    probes: dict[Expr, tuple[int, Index]] = {}

    def reader(k: int) -> Reader:
        dtype = node.inputs[k].dtype
        assert dtype is not None

        def read(*at: Expr) -> Expr:
            probe = Var(f"read {len(probes)}", dtype)
            probes[probe] = k, at
            return probe

        return read

    return element_expr(node, index, [reader(k) for k in range(len(node.inputs))]), probes


def _unguarded(x: Expr) -> Iterator[Var]:
    """The variables outside the arms of selects."""
    if isinstance(x, Var):
        yield x
    for child in (x.condition,) if isinstance(x, Select) else children(x):
        yield from _unguarded(child)
