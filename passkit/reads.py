"""What an operator reads: for an element of its result, the elements of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from attrs import frozen

from passkit import dtype as dt
from passkit.ast import Expr, Select, Var, size_of
from passkit.errors import CodeGenError
from passkit.index import Extents, simplify
from passkit.node import Entry, Node, known_shape
from passkit.op import FCodeGen, FElement
from passkit.size import Shape
from passkit.walk import children, variables, walk

Index = tuple[Expr, ...]
Reader = Callable[..., Expr]


def aligned(index: Sequence[Expr], shape: Shape) -> Index:
    """The index into an input of ``shape`` that broadcasts to a result indexed by ``index``."""
    tail = index[len(index) - len(shape) :]
    return tuple(size_of(0) if n == 1 else i for i, n in zip(tail, shape, strict=True))


def element(node: Node, index: Index, readers: Sequence[Reader]) -> Expr | tuple[Expr, ...]:
    """The value(s) of ``node`` at ``index``, given a reader for each input.

    Raises: CodeGenError for an operator that has neither FElement nor FCodeGen.
    """
    op = node.op
    assert op is not None
    by_index = FElement.get(op.name)
    if by_index is not None:
        return by_index(node, index, *readers)  # type: ignore[no-any-return]
    code = FCodeGen.get(op.name)
    if code is None:
        raise CodeGenError(
            f"{node.where} has no code: set FCodeGen or FElement on op {op.name}, or FCompute to "
            f"run it in NumPy"
        )
    values = [
        read(*aligned(index, known_shape(e))) for read, e in zip(readers, node.inputs, strict=True)
    ]
    return code(node, *values)  # type: ignore[no-any-return]


@frozen
class Reads:
    """Each read of an input, in order: its position and simplified index; and pinned variables.

    ``pinned`` are the index variables that the value itself depends on. ``guarded`` are the reads
    (numbers in ``at``) that happen in an arm of a select only: elsewhere their index may be none.
    ``plain`` says that the value is what is read, and nothing else.
    """

    at: tuple[tuple[int, Index], ...]
    pinned: frozenset[Var] = frozenset()
    guarded: frozenset[int] = frozenset()
    plain: bool = False


def reads_of(node: Node, index: Index, extents: Extents) -> Reads:
    """What ``node`` reads for its element at ``index``."""
    op = node.op
    assert op is not None
    if not op.has_attr("FElement"):
        shapes = [known_shape(e) for e in node.inputs]
        return Reads(tuple((k, aligned(index, s)) for k, s in enumerate(shapes)))
    found: list[tuple[int, Index]] = []
    probes: list[Var] = []

    def reader(k: int) -> Reader:
        entry = node.inputs[k]
        assert entry.dtype is not None
        dtype = entry.dtype

        def read(*at: Expr) -> Expr:
            probes.append(Var(f"read {len(found)}", dtype))
            found.append((k, tuple(simplify(i, extents) for i in at)))
            return probes[-1]

        return read

    out = element(node, index, [reader(k) for k in range(len(node.inputs))])
    values = out if isinstance(out, tuple) else (out,)
    pinned = frozenset(v for x in values for v in variables(x) if v.name in extents)
    always, todo = set[Var](), list(values)
    while todo:  # what is computed for any element, and what the indices of its reads need
        for v in _unguarded(todo.pop()):
            if v in probes and v not in always:
                always.add(v)
                todo += found[probes.index(v)][1]
    guarded = frozenset(n for n, v in enumerate(probes) if v not in always)
    return Reads(tuple(found), pinned, guarded, plain=values == tuple(probes))


def _unguarded(x: Expr) -> Iterator[Var]:
    """The variables outside the arms of selects."""
    if isinstance(x, Var):
        yield x
    for child in (x.condition,) if isinstance(x, Select) else children(x):
        yield from _unguarded(child)


def written_out(nodes: Iterable[Node]) -> int:
    """The parts of the longest expression among ``nodes``, producers first, as one single tree.

    A value that its reader mentions twice is written twice: what is read in the arm of a select
    has no local, as its loads must not leave the arm.
    """
    sizes: dict[Entry, int] = {}
    for node in nodes:
        probes: dict[Var, Entry] = {}

        def reader(entry: Entry, probes: dict[Var, Entry] = probes) -> Reader:
            def read(*at: Expr) -> Expr:
                assert entry.dtype is not None
                probe = Var(f"read {len(probes)}", entry.dtype)
                probes[probe] = entry
                return probe

            return read

        index = tuple(Var(f"i{k}", dt.int64) for k in range(len(known_shape(node.entries[0]))))
        out = element(node, index, [reader(e) for e in node.inputs])
        for entry, x in zip(node.entries, out if isinstance(out, tuple) else (out,), strict=True):
            sizes[entry] = sum(sizes.get(probes[p], 1) if p in probes else 1 for p in walk(x))
    return max(sizes.values(), default=0)
