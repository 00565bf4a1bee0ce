"""Accesses: the elements of its inputs that an operator reads for an element of its result."""

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
"""A coordinate along each dimension of a value."""
Reader = Callable[..., Expr]
"""A function that returns the element of an input at coordinates."""


def broadcast_index(index: Sequence[Expr], shape: Shape) -> Index:
    """Return the index at which an input of a shape is read, which broadcasts to a result."""
    tail = index[len(index) - len(shape) :]
    return tuple(size_of(0) if n == 1 else i for i, n in zip(tail, shape, strict=True))


def element_expr(node: Node, index: Index, readers: Sequence[Reader]) -> tuple[Expr, ...]:
    """Return the element of each result of a node at an index, given a reader for each input.

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
    """The reads by which an operator computes an element.

    Attributes:
        at: for each read in order the number of the input and the simplified index.
        pinned: the index variables on which the element itself depends.
        integers: the integers by which it depends on them.
        plain: whether the elements are those that are read, unchanged.
    """

    at: tuple[tuple[int, Index], ...]
    pinned: frozenset[Var] = frozenset()
    integers: tuple[Expr, ...] = ()
    plain: bool = False


def accesses_of(node: Node, index: Index, extents: Extents) -> Accesses:
    """Return the reads by which a node computes its element at an index.

    Args:
        node: the node, which is no reduction, scan or product.
        index: the index, an expression for each dimension.
        extents: the extents of index variables.
    """
    op = node.op
    assert op is not None
    if not op.has_attr("FElement"):
        shapes = [known_shape(e) for e in node.inputs]
        return Accesses(tuple((k, broadcast_index(index, s)) for k, s in enumerate(shapes)))
    values, probes = _with_probes(node, index)
    reads: dict[
        Expr, Expr
    ] = {}  # those of integers, of which the indices of later ones may be made
    accesses: list[tuple[int, Index]] = []
    for probe, (k, probe_index) in probes.items():
        at = tuple(simplify(_with_reads(i, reads), extents) for i in probe_index)
        accesses.append((k, at))
        if not probe.dtype.is_float:
            reads[probe] = Read(node.inputs[k], at, probe.dtype)
    pinned = frozenset(v for x in values for v in variables(x) if v.name in extents)
    integers = tuple(simplify(i, extents) for x in values for i in _integers(x, extents))
    return Accesses(tuple(accesses), pinned, integers, plain=values == tuple(probes))


def _integers(x: Expr, extents: Extents) -> Iterator[Expr]:
    """Yield the largest integer subexpressions that depend on index variables, with repetition."""
    if all(v.name not in extents for v in variables(x)):
        return
    if x.dtype == dt.int64 and not isinstance(x, Select):
        yield x
        return
    for child in children(x):
        yield from _integers(child, extents)


def _with_reads(x: Expr, reads: Mapping[Expr, Expr]) -> Expr:
    """Return an expression with reads in place of the variables that represent them."""
    if not reads:
        return x
    if isinstance(x, Var):
        return reads.get(x, x)
    return replace_children(x, lambda child: _with_reads(child, reads))


def guarded_accesses(node: Node, index: Index) -> frozenset[int]:
    """Return the numbers of the reads that happen only in a branch of a select.

    Otherwise their indices may be out of bounds.
    """
    values, probes = _with_probes(node, index)
    always: set[Var] = set()
    worklist = list(values)
    while worklist:  # values that are computed for any element, and the indices of their reads
        for v in _unguarded(worklist.pop()):
            if v in probes and v not in always:
                always.add(v)
                worklist += probes[v][1]
    return frozenset(n for n, v in enumerate(probes) if v not in always)


def expression_size(nodes: Iterable[Node]) -> int:
    """Return the number of terms of the largest expression if each node is one expression tree.

    A value that its user reads twice counts twice: values that are read in a branch of a select
    have no local variable, as their loads must not leave the branch. ``nodes`` are in post-order.
    """
    sizes: dict[Entry, int] = {}
    for node in nodes:
        rank = len(known_shape(node.entries[0]))
        values, probes = _with_probes(node, tuple(Var(f"i{k}", dt.int64) for k in range(rank)))
        input_sizes = {v: sizes.get(node.inputs[k], 1) for v, (k, _) in probes.items()}
        for entry, value in zip(node.entries, values, strict=True):
            sizes[entry] = sum(input_sizes.get(x, 1) for x in walk(value))
    return max(sizes.values(), default=0)


def _with_probes(
    node: Node, index: Index
) -> tuple[tuple[Expr, ...], dict[Expr, tuple[int, Index]]]:
    """Return the element of each result of a node at an index, with a variable for each read.

    Returns: the elements; and for each variable the number of the input and the index.
    """
    probes: dict[Expr, tuple[int, Index]] = {}

    def reader(k: int) -> Reader:
        """Return a function that represents reads of an input by new variables."""
        dtype = node.inputs[k].dtype
        assert dtype is not None

        def read(*at: Expr) -> Expr:
            """Return a new variable for a read."""
            probe = Var(f"read {len(probes)}", dtype)
            probes[probe] = k, at
            return probe

        return read

    return element_expr(node, index, [reader(k) for k in range(len(node.inputs))]), probes


def _unguarded(x: Expr) -> Iterator[Var]:
    """Yield the variables of an expression outside the branches of selects."""
    if isinstance(x, Var):
        yield x
    for child in (x.condition,) if isinstance(x, Select) else children(x):
        yield from _unguarded(child)
